"""A slurm.conf as what the Slurm would say of its machine."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from math import prod
from pathlib import Path
from typing import Final

from dovetail.errors import InputError
from dovetail.io.node_list import hosts
from dovetail.io.streams import regular_file
from dovetail.slurm.machine import Machine, Texts, known_settings
from dovetail.units import printable

MOST_BYTES: Final = 1 << 24
"""Of a file, and of all that it includes."""
MOST_DEEP: Final = 10
"""Files that include one another."""
_INCLUDE: Final = re.compile(r"include\s+(\S+)\s*", re.IGNORECASE)
_PAIR: Final = re.compile(r"""([A-Za-z_][A-Za-z0-9_]*)\s*\+?=\s*("[^"]*"|\S*)""")
_COMMENT: Final = re.compile(r"(?<!\\)#.*")
_LINES: Final = ("nodename", "partitionname", "nodeset")
"""What a line is about that begins so."""
_SPELLED: Final = (
    "CPUs", "Procs", "Boards", "Sockets", "SocketsPerBoard", "CoresPerSocket", "ThreadsPerCore", "RealMemory",
    "MemSpecLimit", "CoreSpecCount", "CpuSpecList", "Gres", "Weight", "State", "TmpDisk", "NodeAddr", "NodeHostname",
    "Port", "Reason", "Nodes", "Default", "MaxTime", "DefaultTime", "MinNodes", "MaxNodes", "Priority", "PriorityTier",
    "PriorityJobFactor", "OverSubscribe", "Shared", "AllowAccounts", "AllowGroups", "AllowQos", "DenyAccounts",
    "DenyQos", "QOS", "LLN", "Hidden", "RootOnly", "ReqResv", "PreemptMode", "GraceTime", "MaxCPUsPerNode",
    "MaxMemPerNode", "MaxMemPerCPU", "DefMemPerNode", "DefMemPerCPU", "ExclusiveUser", "ExclusiveTopo", "Alternate",
    "OverTimeLimit", "SelectTypeParameters", "TRESBillingWeights", "DisableRootJobs", "AllocNodes", "JobDefaults",
)  # fmt: skip
"""Keys of nodes and partitions as scontrol spells them."""


def read_conf(path: Path) -> Machine:
    """The machine of a slurm.conf and of the files beside it that it includes."""
    config, sets = Texts(), dict[str, Texts]()
    nodes, partitions = dict[str, Texts](), dict[str, Texts]()
    defaults: dict[str, Texts] = {"nodename": {}, "partitionname": {}}
    for file, number, line in _lines(path, config):
        pairs = [(key.lower(), text.strip('"')) for key, text in _PAIR.findall(line)]
        if not pairs:
            raise InputError(file, number, f"no setting: {printable(line, 60)!r}")
        about, name = pairs[0]
        if about not in _LINES:
            config |= {_spelled(key): text for key, text in pairs}
            continue
        said = {_spelled(key): text for key, text in pairs[1:]}
        if about == "nodeset":
            sets[name] = said
        elif name.upper() == "DEFAULT":
            defaults[about] |= said
        elif about == "partitionname":
            partitions[name] = {"PartitionName": name, **defaults[about], **said}
        else:
            try:
                told = _as_told(defaults[about] | said)
                for one in hosts(name):
                    nodes.setdefault(one, {"NodeName": one, **told})
            except ValueError as error:
                raise InputError(file, number, f"{_shown(name)}: {error}") from error
    for name, texts in partitions.items():
        try:
            texts["Nodes"] = ",".join(_of_sets(texts.get("Nodes", ""), sets, nodes))
        except ValueError as error:
            raise InputError(path, 0, f"partition {_shown(name)}: {error}") from error
    return Machine(str(path), nodes, partitions, config)


def _lines(path: Path, config: Texts, deep: int = 0) -> Iterator[tuple[Path, int, str]]:
    """Lines without comments, those that go on put together, with file and number. What has been said by the time that
    a file is included names the cluster."""
    with regular_file(path).open("rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(path, 0, f"more than {MOST_BYTES:,} bytes, too many for a slurm.conf")
    held = ""
    for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
        text = (held + _COMMENT.sub("", line)).strip()
        held = text.removesuffix("\\") if text.endswith("\\") else ""
        if held or not text:
            continue
        include = _INCLUDE.fullmatch(text)
        if include is None:
            yield path, number, text
        elif deep >= MOST_DEEP:
            raise InputError(path, number, f"more than {MOST_DEEP} files that include one another")
        else:
            for file in _included(path, number, include[1].replace("%c", config.get("ClusterName", ""))):
                yield from _lines(file, config, deep + 1)


def _included(path: Path, number: int, name: str) -> list[Path]:
    """The files of that name, or that match it: they lie beside this one, wherever they lie on the cluster."""
    folder, wanted = path.parent, Path(name)
    if wanted.is_absolute() or ".." in wanted.parts:  # the last folder of it may lie here, or the file alone
        beside = folder / wanted.parent.name
        wanted = Path(wanted.parent.name, wanted.name) if wanted.parent.name and beside.is_dir() else Path(wanted.name)
    try:
        found = sorted(folder.glob(str(wanted))) if re.search(r"[*?\[]", name) else [folder / wanted]
        found = [file for file in found if file.resolve() != path.resolve() or len(found) == 1]
        known = all(file.is_file() and file.resolve().is_relative_to(folder.resolve()) for file in found)
    except (ValueError, OSError) as error:
        raise InputError(path, number, f"includes {printable(name, 60)}: {printable(str(error))}") from error
    if not found or not known:
        raise InputError(path, number, f"includes {printable(name)}: copy it to {printable(str(folder))}")
    return found


def _shown(name: str) -> str:
    return printable(name, 40)


@cache
def _by_low() -> dict[str, str]:
    # Some versions spell a key otherwise: of these the first counts, by the alphabet.
    return {key.lower(): key for key in (*sorted(known_settings(), reverse=True), *_SPELLED)} | {
        "feature": "Feature",
        "features": "Feature",
    }


def _spelled(key: str) -> str:
    """A key, of which the file may write any letter large or small, as scontrol has it."""
    return _by_low().get(key.lower(), key)


def _as_told(said: Texts) -> Texts:
    """A node's line with what scontrol makes of it: CPUs in all and those that jobs may have."""

    def number(key: str, otherwise: int = 1) -> int:
        return int(said[key]) if re.fullmatch(r"\d{1,9}", said.get(key, ""), re.ASCII) else otherwise

    sockets = number("Sockets", number("SocketsPerBoard") * number("Boards"))
    threads = prod((sockets, number("CoresPerSocket"), number("ThreadsPerCore")))
    cpus = number("CPUs", number("Procs", threads))
    kept = number("CoreSpecCount", 0) * (number("ThreadsPerCore") if cpus >= threads else 1)
    if said.get("CpuSpecList"):
        kept = len(hosts(f"[{said['CpuSpecList']}]"))
    made = {"CPUTot": f"{cpus}", "CPUEfctv": f"{max(cpus - kept, 0)}", "AvailableFeatures": said.get("Feature", "")}
    return {"RealMemory": "1"} | said | made


def _of_sets(text: str, sets: dict[str, Texts], nodes: dict[str, Texts]) -> Iterable[str]:
    """A partition's nodes by name, in their order in the file: lists, sets of nodes, or ALL."""
    if text.upper() == "ALL":
        return nodes
    found = set[str]()
    for name in hosts(text):
        if name not in sets:
            found.add(name)
            continue
        found |= set(nodes if sets[name].get("Nodes", "").upper() == "ALL" else hosts(sets[name].get("Nodes", "")))
        if feature := sets[name].get("Feature"):
            found |= {one for one, texts in nodes.items() if feature in texts["AvailableFeatures"].split(",")}
    return [name for name in nodes if name in found] + sorted(found - nodes.keys())
