"""How a Slurm is set up to decide: what it says of its scheduler, read from a machine that is kept as JSON, too."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dovetail.errors import InputError, SettingError
from dovetail.io.streams import regular_file
from dovetail.slurm import priority
from dovetail.slurm.limits import Limited, limited
from dovetail.slurm.machine import NOTHING, Machine, Texts
from dovetail.slurm.priority import Priorities
from dovetail.units import printable

BACKFILL: Final = "sched/backfill"
MOST_TIER: Final = 65_533
MOST_BYTES: Final = 1 << 28
"""Of a file that keeps a machine."""
_DIFFERENT: Final[Mapping[str, Callable[[str], bool]]] = {
    "SelectType": lambda text: text != "select/cons_tres",
    "SelectTypeParameters": lambda text: "LLN" in text or "PACK_NODES" in text,
    "PreemptType": lambda text: text != "preempt/none",
    "TopologyPlugin": lambda text: text not in ("topology/default", "topology/flat", "topology/none"),
}
"""Settings that change who runs when, with the values that do."""
_OF_PARTITIONS: Final[Mapping[str, Callable[[str], bool]]] = {
    "LLN": lambda text: text.upper() == "YES",
    "OverSubscribe": lambda text: text.upper().startswith(("YES", "FORCE")),
    "TRESBillingWeights": lambda text: text not in NOTHING,
}


@dataclass(frozen=True)
class Scheduling:
    """What is said of it."""

    version: tuple[int, int] | None
    """Of Slurm; None: it does not say."""
    parameters: dict[str, str]
    """SchedulerParameters, in small letters."""
    tiers: dict[str, int]
    """PriorityTier of the partitions."""
    priorities: Priorities | None
    """None: first come, first served."""
    limits: Limited
    """What QOS and accounts may have at a time."""
    notes: tuple[str, ...]
    """What is set and changes decisions, and is not in the rest."""


def scheduling(machine: Machine) -> Scheduling:
    """How a machine's Slurm is set up to decide."""
    config, notes = machine.config, list[str]()
    kind = config.get("SchedulerType", "")
    if kind not in (*NOTHING, BACKFILL):
        raise SettingError(f"{machine.path}: SchedulerType={printable(kind, 40)}: only {BACKFILL} is followed")
    ranks = None
    if config.get("PriorityType", "") == priority.KIND:
        ranks = priority.priorities(machine)
        notes += ranks.notes
    tiers = {name: _tier(machine, one) for name, one in machine.partitions.items()}
    notes += [
        f"{key}={config[key]} is not followed"
        for key, changes in _DIFFERENT.items()
        if config.get(key, "") not in NOTHING and changes(config[key])
    ]
    for key, changes in _OF_PARTITIONS.items():
        if named := [name for name, one in machine.partitions.items() if changes(one.get(key, ""))]:
            notes.append(f"{key} of {len(named)} partitions ({named[0]}, ...) is not followed")
    if len({one.get("Weight", "1") for one in machine.nodes.values()}) > 1:
        notes.append("Weight of nodes is not followed")
    limits = limited(machine)
    return Scheduling(_version(machine.version), _parameters(config), tiers, ranks, limits, (*notes, *limits.notes))


def _tier(machine: Machine, partition: Texts) -> int:
    """PriorityTier; Priority sets it, too, where an older file has that."""
    text = partition.get("Priority") or partition.get("PriorityTier") or "1"
    if not re.fullmatch(r"\d{1,9}", text, re.ASCII) or int(text) > MOST_TIER:
        raise InputError(machine.path, 0, f"PriorityTier={printable(text, 40)}: a number from 0 to {MOST_TIER:,}")
    return int(text)


def _parameters(config: Texts) -> dict[str, str]:
    """SchedulerParameters; of what is named twice the first counts."""
    text = config.get("SchedulerParameters", "")
    found = dict[str, str]()
    for key, _, value in (one.partition("=") for one in ([] if text in NOTHING else text.split(","))):
        if key.strip():
            found.setdefault(key.strip().lower(), value.strip())
    return found


def _version(text: str) -> tuple[int, int] | None:
    found = re.match(r"(\d{1,4})\.(\d{1,2})", text, re.ASCII)
    return (int(found[1]), int(found[2])) if found else None


def parameters_line(machine: Machine, changes: Mapping[str, str]) -> str:
    """The line of slurm.conf that a machine would have with some of its parameters changed."""
    told = {key: f"={value}" if value else "" for key, value in _parameters(machine.config).items()}
    told |= {key: f"={value}" for key, value in changes.items()}
    return f"SchedulerParameters={','.join(f'{key}{value}' for key, value in told.items())}"


def kept_beside(cluster: Path) -> Path:
    """Where `dovetail cluster import-slurm` keeps what a Slurm said, for the cluster that it wrote."""
    return cluster.with_name(f"{cluster.stem}.slurm.json")


def read_kept(path: Path) -> Machine:
    """The machine of a file that `dovetail cluster import-slurm` keeps beside a cluster."""
    with regular_file(path).open("rb") as stream:
        data = stream.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise InputError(path, 0, f"more than {MOST_BYTES:,} bytes")
    try:
        told = json.loads(data)
        nodes, partitions = (_records(told, name, key) for name, key in _KEYS)
        lists: dict[str, Any] = {name: tuple(map(_texts, told.get(name, []))) for name in _LISTS}
        for name, keys in _LISTS.items():
            for record in lists[name]:
                _ = [record[key] for key in keys]  # whoever reads them finds these
        return Machine(str(path), nodes, partitions, _texts(told["config"]), **lists)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        rule = "it is not what `dovetail cluster import-slurm` keeps (CLUSTER.slurm.json)"
        raise InputError(path, 0, f"{rule}: {type(error).__name__}") from error


_KEYS: Final = (("nodes", "NodeName"), ("partitions", "PartitionName"))
_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "reservations": (), "events": (), "qos": ("Name",), "associations": ("Account", "User", "ParentName", "Fairshare"),
}  # fmt: skip


def _records(told: Mapping[str, Any], name: str, key: str) -> dict[str, Texts]:
    return {one[key]: one for one in map(_texts, told[name])}


def _texts(record: Any) -> Texts:
    if not all(isinstance(text, str) for pair in record.items() for text in pair):
        raise TypeError(record)
    return dict(record)
