"""Ask a Slurm for its machine, by scontrol and sacctmgr, into a folder that is kept; and read such a folder."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from dovetail.errors import InputError
from dovetail.files import beside, folder
from dovetail.io.streams import regular_file
from dovetail.slurm.machine import Machine, Texts, of_config, of_lines, of_table
from dovetail.slurm.programs import SlurmError, answer, shell_line

EVENT: Final = ("Cluster", "NodeName", "State", "Start", "End", "User", "Reason")
PAST: Final = ("Cluster", "Name", "NodeNames", "Start", "End", "Flags", "TRES")
QOS: Final = (
    "Name", "Priority", "Preempt", "PreemptMode", "GraceTime", "Flags", "UsageThreshold", "UsageFactor", "GrpTRES",
    "GrpTRESMins", "GrpTRESRunMins", "GrpJobs", "GrpSubmitJobs", "GrpWall", "MaxTRES", "MaxTRESPerNode", "MaxTRESMins",
    "MaxWall", "MaxTRESPerUser", "MaxJobsPerUser", "MaxSubmitJobsPerUser", "MaxTRESPerAccount", "MaxJobsPerAccount",
    "MaxSubmitJobsPerAccount", "MinTRESPerJob",
)  # fmt: skip
ASSOCIATION: Final = (
    "Cluster", "Account", "User", "Partition", "ParentName", "Fairshare", "Priority", "GrpJobs", "GrpTRES",
    "GrpSubmitJobs", "GrpWall", "GrpTRESMins", "GrpTRESRunMins", "MaxJobs", "MaxTRES", "MaxTRESPerNode",
    "MaxSubmitJobs", "MaxWall", "MaxTRESMins", "DefaultQOS", "QOS",
)  # fmt: skip
ALWAYS: Final = {"nodes": ["node"], "partitions": ["partition"], "reservations": ["reservation"]}
CALLS: Final = {
    **{name: ["scontrol", "show", *what, "-o"] for name, what in ALWAYS.items()},
    "config": ["scontrol", "show", "config"],
    "events": ["sacctmgr", "-nP", "show", "event", "all_time", f"format={','.join(EVENT)}"],
    "past": ["sacctmgr", "-nP", "show", "reservation", "start=2000-01-01", f"format={','.join(PAST)}"],
    "qos": ["sacctmgr", "-nP", "show", "qos", f"format={','.join(QOS)}"],
    "associations": ["sacctmgr", "-nP", "show", "associations", f"format={','.join(ASSOCIATION)}"],
}
"""What is asked, by the name of the file that keeps the answer."""
NEEDED: Final = ("nodes",)
MOST_BYTES: Final = 1 << 28
"""Of an answer that is read."""


def ask(path: Path) -> list[str]:
    """Keep what this Slurm says of its machine in a folder, which only its owner can read; what it refuses to say."""
    folder(path, 0o700)
    refused = list[str]()
    for name, call in CALLS.items():
        try:
            said = answer(call)
        except SlurmError as error:
            if name in NEEDED:
                raise
            refused.append(str(error))
            continue
        with beside(path / f"{name}.txt") as new:
            new.touch(0o600)
            new.write_text(said, encoding="utf-8")
    return refused


def command() -> str:
    """Lines for a shell that fill such a folder, called machine."""
    calls = (f"{shell_line(call)} > machine/{name}.txt" for name, call in CALLS.items())
    return "\n".join(["umask 077; mkdir -p machine", *calls])


def read_folder(path: Path) -> Machine:
    """The machine that the answers in a folder tell of."""

    def said(name: str) -> str:
        file = path / f"{name}.txt"
        if not file.exists() and name not in NEEDED:
            return ""
        with regular_file(file).open("rb") as stream:
            data = stream.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise InputError(file, 0, f"more than {MOST_BYTES:,} bytes")
        return data.decode("utf-8", "replace")

    nodes = of_lines(said("nodes"), "NodeName")
    if not nodes:
        raise InputError(path / "nodes.txt", 0, "no node: it holds what `scontrol show node -o` prints")
    config = said("config")
    asked_at = re.match(r"Configuration data as of (\d{1,10})\s", config, re.ASCII)
    past = said("past")
    columns = past.partition("\n")[0].count("|") + 1  # older dumps have no TRES
    coming = of_lines(said("reservations"), "ReservationName").values()
    return Machine(
        str(path), nodes, of_lines(said("partitions"), "PartitionName"), of_config(config),
        reservations=(
            *(one | {"Nodes": one["NodeNames"]} for one in of_table(past, PAST[:columns])),
            *(one | _named(one, Name="ReservationName", Start="StartTime", End="EndTime") for one in coming),
        ),
        events=tuple(one for one in of_table(said("events"), EVENT) if one["NodeName"]),
        qos=of_table(said("qos"), QOS), associations=of_table(said("associations"), ASSOCIATION),
        asked_at=int(asked_at[1]) if asked_at else 0,
    )  # fmt: skip


def _named(one: Texts, **keys: str) -> Texts:
    return {name: one.get(key, "") for name, key in keys.items()}
