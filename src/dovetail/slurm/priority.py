"""How a Slurm gives priorities: its settings, and what it says of waiting jobs, as the rules and numbers of the sum of
factors (multifactor) and of the tree of shares (model/shares)."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import Final

import numpy as np

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.errors import DovetailError, InputError, SettingError
from dovetail.model.shares import AS_ITS_ACCOUNT, Tree
from dovetail.model.turns import TreeTurns
from dovetail.model.workload import Workload
from dovetail.slurm import words
from dovetail.slurm.limits import enforced, used
from dovetail.slurm.machine import NOTHING, ROOT, Machine, Texts, account_above
from dovetail.slurm.multifactor import LARGE, SMALL, Asking, Multifactor, Weights
from dovetail.units import printable

KIND: Final = "priority/multifactor"
WEIGHTS: Final = {
    "age": "PriorityWeightAge", "account": "PriorityWeightAssoc", "turn": "PriorityWeightFairShare",
    "size": "PriorityWeightJobSize", "partition": "PriorityWeightPartition", "qos": "PriorityWeightQOS",
}  # fmt: skip
_AS_THEY_ARE: Final = {
    "NO_NORMAL_PART": "partition", "NO_NORMAL_QOS": "qos", "NO_NORMAL_ASSOC": "account", "NO_NORMAL_TRES": "resources",
}  # fmt: skip
_NOT_YET: Final = ("NO_FAIR_TREE", "DEPTH_OBLIVIOUS", "INCR_ONLY", "CALCULATE_RUNNING")
"""Flags that change priorities, or whose they are, and that are not followed."""
_KNOWN: Final = (
    *_AS_THEY_ARE, *_NOT_YET, "NO_NORMAL_ALL", "SMALL_RELATIVE_TO_TIME", "FAIR_TREE", "ACCRUE_ALWAYS", "MAX_TRES",
    "MAX_TRES_GRES",
)  # fmt: skip
_FIRST: Final = ("cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages")
"""Resources that every Slurm has, in its order."""
_MOST_WEIGHT: Final = 1e12
_NO_END: Final = 1 << 32
"""What Slurm takes for a time without an end, in seconds and in minutes."""
_FAIR_WITHOUT_A_NUMBER: Final = "parent"


@dataclass(frozen=True)
class Priorities:
    """The rules, and which place in them has which name."""

    rules: Multifactor
    partitions: dict[str, int]
    qos: dict[str, int]
    members: dict[tuple[str, str], int]
    """Accounts and, with their user, those who belong to them: by account and user, '' for the account itself."""
    tree: Tree
    half_life_s: int
    period_s: int
    """How often they are worked out."""
    to_the_end: bool = True
    """What a job has used since then is counted when it ends. Only a Slurm that enforces limits does so."""
    longest: tuple[int, ...] = ()
    """Minutes that a job without a limit may run, by partition."""
    notes: tuple[str, ...] = ()

    @property
    def turns(self) -> TreeTurns:
        """How whose turn it is gets counted."""
        return TreeTurns(self.tree, self.members, self.half_life_s, self.period_s, self.to_the_end)

    def of_workload(self, workload: Workload) -> Asking:
        """What the jobs of a workload ask for; since when, and whose turn it is, comes with the replay. A log tells
        neither what its site adds nor what is taken away."""
        jobs = np.zeros(len(workload), np.int64)
        has = used(workload)
        return Asking(
            since=jobs, processors=workload.size, nodes=has["node"], limit_minutes=-(-workload.limit // 60),
            partition=workload.places(self.partitions, "partition"), qos=workload.places(self.qos, "qos"),
            account=workload.places(self.members, "account", "user"), turn=jobs.astype(np.float64),
            site=jobs, nice=jobs,
            resources={name: has.get(name, jobs) for name in self.rules.weights.resources},
        )  # fmt: skip

    def asking(self, jobs: Sequence[Texts], turn: Floats) -> Asking:
        """What waiting jobs ask for, by what `scontrol show job` says of each. `turn`: where members stand."""

        def numbers(read: Callable[[Texts], int]) -> Ints:
            return np.array([read(job) for job in jobs], np.int64)

        partition = numbers(lambda job: self.partitions.get(job.get("Partition", "").partition(",")[0], -1))
        account = numbers(lambda job: self.members.get((job.get("Account", ""), _user_of(job)), -1))
        asked = [_amounts(job.get("ReqTRES", "") or job.get("TRES", "")) for job in jobs]
        names = self.rules.weights.resources
        return Asking(
            since=numbers(lambda job: _since(job.get("AccrueTime", ""))),
            processors=numbers(lambda job: _whole(job.get("NumCPUs", "").rpartition("-")[2], "NumCPUs")),
            nodes=np.array([one.get("node", 1) for one in asked], np.int64),  # NumNodes is Slurm's guess
            limit_minutes=np.array([self._limit(job, at) for job, at in zip(jobs, partition.tolist(), strict=True)]),
            partition=partition,
            qos=numbers(lambda job: self.qos.get(job.get("QOS", ""), -1)), account=account,
            turn=np.append(turn, 0.0)[account],
            site=numbers(lambda job: _whole(job.get("SiteFactor", ""), "SiteFactor")),
            nice=numbers(lambda job: _whole(job.get("Nice", ""), "Nice")),
            resources={name: np.array([one.get(name, 0) for one in asked], np.int64) for name in names},
        )  # fmt: skip

    def _limit(self, job: Texts, partition: int) -> int:
        text = job.get("TimeLimit", "")
        if text.lower() == "partition_limit":
            return self.longest[partition] if partition >= 0 else _NO_END
        minutes = words.limit_minutes(text)
        return max(minutes, 1) if minutes >= 0 else _NO_END


def priorities(machine: Machine) -> Priorities:
    """How a Slurm gives priorities, by what it says of its machine."""
    try:
        return _priorities(machine)
    except ValueError as error:
        if isinstance(error, DovetailError):
            raise
        raise InputError(machine.path, 0, f"priorities: {error}") from error


def _priorities(machine: Machine) -> Priorities:
    config, notes = machine.config, list[str]()

    def number(key: str, otherwise: int = 0) -> int:
        text = config.get(key, "")
        return otherwise if text in NOTHING else _whole(text, key)

    def seconds(key: str, otherwise: int) -> int:
        text = config.get(key, "")
        minutes = otherwise // 60 if text in NOTHING else words.limit_minutes(text)
        return 60 * minutes if minutes >= 0 else _NO_END

    if (kind := config.get("PriorityType", "priority/basic")) != KIND:
        raise SettingError(f"PriorityType={printable(kind, 40)}: only {KIND} has factors")
    flags = {text.strip().upper() for text in config.get("PriorityFlags", "").split(",")} - {"", "(NULL)"}
    as_they_are = {_AS_THEY_ARE[flag] for flag in flags if flag in _AS_THEY_ARE}
    if "NO_NORMAL_ALL" in flags:
        as_they_are = set(_AS_THEY_ARE.values())
        if machine.version:
            notes.append("PriorityFlags: scontrol says NO_NORMAL_ALL of any one of four flags: slurm.conf tells which")
    notes += [f"PriorityFlags={flag} is not followed" for flag in _NOT_YET if flag in flags]
    notes += [f"PriorityFlags={printable(flag, 40)} is not known" for flag in sorted(flags - set(_KNOWN))]
    members, tree, own = _members(machine, notes)
    if number(WEIGHTS["turn"]) and not any(tree.user):
        notes.append("no users are known (sacctmgr): whose turn it is adds nothing to any priority")
    weights = Weights(**{name: number(key) for name, key in WEIGHTS.items()}, resources=_of_resources(machine))
    rules = Multifactor(
        weights, sum(_cores(node) for node in machine.nodes.values()), len(machine.nodes),
        max(seconds("PriorityMaxAge", 7 * 86_400), 1),
        SMALL if config.get("PriorityFavorSmall", "").upper() in ("YES", "UP", "TRUE", "1") else LARGE,
        "SMALL_RELATIVE_TO_TIME" in flags,
        tuple(_count(one, "Priority", "PriorityJobFactor", otherwise=1) for one in machine.partitions.values()),
        tuple(_count(one, "Priority") for one in machine.qos), own,
        tuple(_has(machine, name) for name in machine.partitions), frozenset(as_they_are),
    )  # fmt: skip
    return Priorities(
        rules, {name: at for at, name in enumerate(machine.partitions)},
        {one["Name"]: at for at, one in enumerate(machine.qos)}, members, tree,
        seconds("PriorityDecayHalfLife", 7 * 86_400), max(seconds("PriorityCalcPeriod", 300), 60),
        enforced(machine),
        tuple(_longest(one.get("MaxTime", "")) for one in machine.partitions.values()), tuple(notes),
    )  # fmt: skip


def _members(machine: Machine, notes: list[str]) -> tuple[dict[tuple[str, str], int], Tree, tuple[int, ...]]:
    """The members of the tree of shares below root, which stands for -1, and the priority of each."""
    own = [one for one in machine.members if not one.get("Partition") and (one["Account"], one["User"]) != ROOT]
    if parts := sum(bool(one.get("Partition")) for one in machine.members):
        notes.append(f"{parts:,} associations of one partition are left out")
    place = {(one["Account"], one["User"]): at for at, one in enumerate(own)}
    above, shares = list[int](), list[int]()
    for one in own:
        over = account_above(one)
        if over != ROOT and over not in place:
            raise InputError(machine.path, 0, f"an association of {printable(one['Account'], 40)}: no account above it")
        above.append(place.get(over, -1))
        text = one["Fairshare"]
        as_account = text == _FAIR_WITHOUT_A_NUMBER and bool(one["User"])
        if text == _FAIR_WITHOUT_A_NUMBER and not as_account:
            notes.append(f"account {printable(one['Account'], 40)} has Fairshare=parent: taken to be 1")
        plain = "1" if text in ("", _FAIR_WITHOUT_A_NUMBER) else text
        shares.append(AS_ITS_ACCOUNT if as_account else _whole(plain, "Fairshare"))
    tree = Tree(tuple(above), tuple(shares), tuple(bool(one["User"]) for one in own))
    return place, tree, tuple(_count(one, "Priority") for one in own)


_NUMBER: Final = re.compile(r"-?[0-9]{1,18}")


def _of_resources(machine: Machine) -> dict[str, float]:
    """Weights of trackable resources, in Slurm's order of them."""
    text = machine.config.get("PriorityWeightTRES", "")
    pairs = [] if text in NOTHING else [one.partition("=") for one in text.split(",")]
    try:
        given = {name.strip().lower(): float(weight) for name, _, weight in pairs}
        if not all(isfinite(weight) and abs(weight) <= _MOST_WEIGHT for weight in given.values()):
            raise ValueError(text)
    except ValueError as error:
        rule = f"PriorityWeightTRES={printable(text, 60)} is no list such as CPU=1000,Mem=2000"
        raise InputError(machine.path, 0, rule) from error
    order = [name.strip().lower() for name in machine.config.get("AccountingStorageTRES", "").split(",")]
    places = {name: at for at, name in enumerate(dict.fromkeys([*_FIRST, *order]))}
    return {name: given[name] for name in sorted(given, key=lambda one: places.get(one, len(places)))}


def _has(machine: Machine, partition: str) -> dict[str, int]:
    """What a partition has, as jobs ask for it."""
    nodes = [machine.nodes[name] for name in machine.nodes_of(partition) if name in machine.nodes]
    counted = {"cpu": sum(map(_cores, nodes)), "node": len(nodes)}
    told = _amounts(machine.partitions[partition].get("TRES", ""))
    return {**counted, **told, "mem": sum(_count(node, "RealMemory") for node in nodes)}


def _cores(node: Texts) -> int:
    """Those that jobs may have."""
    return _count(node, "CPUEfctv", "CPUTot", "CPUs") - ("CPUEfctv" not in node) * _count(node, "CoreSpecCount")


def _longest(text: str) -> int:
    """Minutes of a partition's MaxTime."""
    minutes = -1 if text in NOTHING else words.limit_minutes(text)
    return max(minutes, 1) if minutes >= 0 else _NO_END


def _amounts(text: str) -> dict[str, int]:
    """Resources; memory in MiB, as Slurm counts it here."""
    found = {} if text in NOTHING else words.tres(text)
    return found | {"mem": found["mem"] // 1024} if "mem" in found else found


def _count(texts: Texts, *keys: str, otherwise: int = 0) -> int:
    key = next((key for key in keys if texts.get(key, "") not in NOTHING), "")
    return _whole(texts[key], key) if key else otherwise


def _whole(text: str, key: str) -> int:
    """A whole number; 0 where there is none."""
    if text and not _NUMBER.fullmatch(text):
        raise ValueError(f"{key}={printable(text, 40)} is no whole number")
    return int(text or 0)


def _since(text: str) -> int:
    """Seconds since 1970; -1: never."""
    at = words.instant(text or "Unknown")
    return -1 if at in (NEVER, 0) else at


def _user_of(job: Texts) -> str:
    """Whose job it is, by name."""
    return job.get("UserId", "").partition("(")[0]
