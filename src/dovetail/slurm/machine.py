"""What a Slurm says of its machine: nodes, partitions, reservations, what was out and when, and how it is set up; and
the cluster that they make."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from itertools import groupby
from typing import Any, Final

from dovetail.errors import InputError
from dovetail.io.node_list import host_list, hosts
from dovetail.model.cluster import MOST_RESERVATIONS, PARTITION, Cluster, NodeKind, Outage
from dovetail.model.features import NAME as FEATURE
from dovetail.slurm import words
from dovetail.units import printable

Texts = dict[str, str]
"""What one line says: a text for each key."""
DEVICE: Final = "gpu:"
"""Before the type of a GPU, in the features of the nodes that have one."""
_GONE: Final = ("FUTURE",)
"""A state of nodes that are only named."""
ROOT: Final = ("root", "")
"""The association above all others: its account, and no user."""
NOTHING: Final = ("", "(null)", "N/A", "None", None)


@dataclass(frozen=True)
class Machine:
    """All of it, in Slurm's own words: a record for each node, partition, ..., with the keys as scontrol has them (of
    nodes and partitions of a slurm.conf as well), in their order."""

    path: str
    nodes: dict[str, Texts]
    partitions: dict[str, Texts]
    config: Texts = field(default_factory=dict)
    reservations: tuple[Texts, ...] = ()
    """Those that were, then those that are there or to come: Name, Nodes, Start, End, Flags, TRES."""
    events: tuple[Texts, ...] = ()
    """When a node was out: NodeName, State, Start, End, Reason."""
    qos: tuple[Texts, ...] = ()
    associations: tuple[Texts, ...] = ()
    asked_at: int = 0
    """Seconds since 1970; 0: nobody knows when Slurm said so."""

    @property
    def version(self) -> str:
        """Of Slurm; empty where it does not say."""
        return self.config.get("SLURM_VERSION", "")

    @property
    def members(self) -> list[Texts]:
        """Its own associations: a database knows those of other clusters, too."""
        here = self.config.get("ClusterName", "")
        return [one for one in self.associations if not here or one.get("Cluster", here) in ("", here)]

    def kept(self) -> dict[str, Any]:
        """All of it as it was said, for JSON."""
        lists = {name: list(getattr(self, name)) for name in ("reservations", "events", "qos", "associations")}
        return {
            "config": self.config, "nodes": list(self.nodes.values()), "partitions": list(self.partitions.values()),
            **lists,
        }  # fmt: skip

    @property
    def counts_memory(self) -> bool:
        """Whether jobs are given memory as well as cores: where all get whole nodes, only if it is said."""
        linear = self.config.get("SelectType", "").lower() == "select/linear"
        how = self.config.get("SelectTypeParameters", "")
        told = how.upper() not in ("", "(NULL)", "NONE")
        return "MEMORY" in how.upper() if told or linear else True

    def nodes_of(self, partition: str) -> tuple[str, ...]:
        """The nodes of a partition, by name."""
        text = self.partitions[partition].get("Nodes", "")
        return tuple(self.nodes) if text.upper() == "ALL" else self._listed(text, f"partition {partition!r}: Nodes")

    def _listed(self, text: str, what: str) -> tuple[str, ...]:
        try:
            return hosts("" if text in NOTHING else text)
        except ValueError as error:
            raise InputError(self.path, 0, f"{printable(what)}: {error}") from error

    def cluster(self, notes: list[str]) -> Cluster:
        """Nodes with their cores, memory, GPUs, features and partitions. Outages are not in it: `outages` has them.
        Notes are what is left out."""
        within: dict[str, list[str]] = {name: [] for name in self.nodes}
        for partition in self.partitions:
            its = set(self.nodes_of(partition))
            if lost := sorted(its - within.keys()):
                notes.append(f"partition {printable(partition, 40)}: no node is called {_some(lost)}")
            if not its & within.keys():
                notes.append(f"partition {printable(partition, 40)} has no node: its jobs may run anywhere")
            for name in its & within.keys():
                within[name].append(partition)
        there = {name: texts for name, texts in self.nodes.items() if not _is(texts, _GONE)}
        if len(there) < len(self.nodes):
            notes.append(f"{len(self.nodes) - len(there):,} nodes of the future are left out")
        if not there:
            raise InputError(self.path, 0, "no node that is there")
        if wrong := [name for name in there if not FEATURE.fullmatch(name) or "=" in name]:
            raise InputError(self.path, 0, f"no name of a node: {_some(wrong)}")
        made = {name: self._node(name, texts) for name, texts in there.items()}
        devices = any(one.gpus for one in made.values())
        names = ("cores", *["memory_mb"] * self.counts_memory, *["gpus"] * devices)
        more = dict.fromkeys(name for one in made.values() for name in one.others)
        if more:
            notes.append(f"devices that are not counted: {_some(list(more))}")
        odd = dict.fromkeys(text for one in made.values() for text in one.features if not FEATURE.fullmatch(text))
        odd |= dict.fromkeys(text for text in self.partitions if not FEATURE.fullmatch(text))
        if odd:
            notes.append(f"names with spaces, &, |, !, ( or ) are left out: {_some(list(odd))}")

        def alike(name: str) -> tuple[tuple[int, ...], tuple[str, ...]]:
            one = made[name]
            has = (one.cpus, *[one.memory_mb] * self.counts_memory, *[one.gpus] * devices)
            features = (*one.features, *(f"{PARTITION}{partition}" for partition in within[name]))
            return has, tuple(text for text in dict.fromkeys(features) if FEATURE.fullmatch(text))

        kinds = list[NodeKind]()
        for (has, features), run in groupby(there, alike):
            called = list(run)
            kinds.append(NodeKind(_short(called), len(called), has, features))
        processors = sum(kind.count * kind.capacity[0] for kind in kinds)
        return Cluster(processors, names, tuple(kinds), names=tuple(there), licences=self._licences(notes))

    def _node(self, name: str, texts: Texts) -> _Node:
        def number(key: str) -> int:
            found = re.match(r"\d{1,9}", texts.get(key, ""))
            return int(found[0]) if found else 0

        try:
            given = words.gres(texts.get("Gres", ""))
        except ValueError as error:
            raise InputError(self.path, 0, f"node {printable(name, 40)}: Gres: {error}") from error
        gpus = words.devices(given)
        features = [text for text in texts.get("AvailableFeatures", "").split(",") if text not in NOTHING]
        cpus = number("CPUEfctv") or number("CPUTot")
        if cpus < 1:
            raise InputError(self.path, 0, f"node {printable(name, 40)}: it says no number of CPUs")
        return _Node(
            cpus, max(number("RealMemory") - number("MemSpecLimit"), 0), sum(gpus.values()),
            (*features, *(f"{DEVICE}{kind}" for kind in gpus if kind)),
            [one for one in given if one.partition(":")[0] != "gres/gpu"],
        )  # fmt: skip

    def _licences(self, notes: list[str]) -> tuple[tuple[str, int], ...]:
        """Those that Slurm counts itself: `matlab:20,ansys@server:5`."""
        text = self.config.get("Licenses", "")
        found = dict[str, int]()
        for piece in [] if text in NOTHING else text.split(","):
            name, _, count = piece.strip().partition(":")
            if FEATURE.fullmatch(name) and re.fullmatch(r"\d{0,9}", count, re.ASCII):
                found[name] = int(count or 1)
            else:
                notes.append(f"licence {printable(piece, 40)!r} is left out: not a name and a number")
        return tuple(found.items())

    def outages(self, cluster: Cluster, first: int, named: Iterable[str], notes: list[str]) -> tuple[Outage, ...]:
        """When nodes of a cluster of this machine were not to be had, in the seconds of a log that begins at an instant
        (since 1970). `named`: the reservations that jobs of the log have."""
        found: dict[tuple[int, int, str, bool], set[int]] = {}
        there = {texts.get("Name", "") for texts in self.reservations}
        kept, open_ones, strange = set(named) & there, 0, list[str]()
        odd = [name for name in kept if not _WRITTEN.fullmatch(name)]
        odd += sorted(kept - set(odd))[MOST_RESERVATIONS:]
        kept -= set(odd)
        if set(named) and not there & set(named):
            notes.append(
                "the log has jobs in reservations, and none has a name of this machine's: they count as of nobody"
            )

        def add(names: Iterable[str], begin: int, end: int, only: str, known: bool) -> None:
            nodes = {cluster.number[name] for name in names if name in cluster.number}
            if nodes and end > max(begin, first):
                found.setdefault((max(begin - first, 0), end - first, only, known), set()).update(nodes)

        for texts in self.events:
            begin, end = (_instant(texts.get(key, "")) for key in ("Start", "End"))
            if begin is None:
                strange.append(texts["NodeName"])
                continue
            open_ones += end is None
            add(self._listed(texts["NodeName"], "an event"), begin, end or self.asked_at, "", known=False)
        partly, cpus = list[str](), {name: self._node(name, texts).cpus for name, texts in self.nodes.items()}
        for texts in _different(self.reservations):
            begin, end = (_instant(texts.get(key, "")) for key in ("Start", "End"))
            if end is not None and end <= first:
                continue
            called = self._listed(texts.get("Nodes", ""), "a reservation")
            some = _cpus(texts, sum(cpus.get(name, 0) for name in called))
            if begin is None or end is None or not called or some:
                partly.append(texts.get("Name", ""))
                continue
            name = texts.get("Name", "")
            add(called, begin, end, name if name in kept else "", known=True)
        if odd:
            notes.append(f"reservations that count as of nobody, too many or with odd names: {_some(odd)}")
        until = "they end when Slurm was asked" if self.asked_at else "left out, as nobody knows when Slurm was asked"
        if open_ones:
            notes.append(f"{open_ones:,} outages of nodes have no end yet: {until}")
        if partly:
            notes.append(f"reservations of cores, of licences or without an end are left out: {_some(partly)}")
        if strange:
            notes.append(f"events without a time are left out: {_some(strange)}")
        return tuple(
            Outage(tuple(sorted(nodes)), begin, end, only, 0 if known else begin)
            for (begin, end, only, known), nodes in sorted(found.items())
        )


@dataclass(frozen=True)
class _Node:
    cpus: int
    memory_mb: int
    gpus: int
    features: tuple[str, ...]
    others: list[str]


def _cpus(texts: Texts, there: int) -> bool:
    """Whether a reservation is of fewer CPUs than its nodes have."""
    if "ALL_NODES" in texts.get("Flags", ""):
        return False
    try:
        told = words.tres(texts.get("TRES", "")).get("cpu", 0)
    except ValueError:
        told = 0
    return 0 < told < there


_WRITTEN: Final = re.compile(r"[^\s,\"\x00-\x1f\x7f][^,\"\x00-\x1f\x7f]{0,198}(?<!\s)")
"""A name that a table of outages can have."""


def _is(texts: Texts, states: Sequence[str]) -> bool:
    return bool(set(re.split(r"[+*~#!%$@^-]", texts.get("State", "").upper())) & set(states))


def _some(texts: Sequence[str]) -> str:
    """The first few of them, and how many more."""
    more = f" and {len(texts) - 5:,} more" if len(texts) > 5 else ""
    return ", ".join(printable(text, 40) for text in texts[:5]) + more


def _short(names: Sequence[str]) -> str:
    """The name of a kind: its nodes, if that is short."""
    text = host_list(names)
    return text if len(text) <= 60 else f"{names[0]} and {len(names) - 1:,} more"


def _instant(text: str) -> int | None:
    """Seconds since 1970; None: none is told."""
    try:
        found = words.instant(text)
    except ValueError:
        return None
    return found if 0 < found < MOST_INSTANT else None


MOST_INSTANT: Final = 1 << 32
"""Slurm counts seconds with 32 bits in places."""


def _different(reservations: Iterable[Texts]) -> list[Texts]:
    """Each reservation once: what is there is in the database, too."""
    return list({(one.get("Name"), one.get("Start"), one.get("Nodes")): one for one in reservations}.values())


def account_above(association: Texts) -> tuple[str, str]:
    """That of a user, or the one to which an account belongs."""
    return (association["Account"] if association["User"] else association["ParentName"], "")


def of_lines(text: str, key: str) -> dict[str, Texts]:
    """The records of `scontrol show ... -o`: one a line, that begins with a key. The first text of a key counts: what
    somebody wrote stands last."""
    found: dict[str, Texts] = {}
    for line in text.splitlines():
        if line.startswith(f"{key}="):
            made: Texts = {}
            for name, value in _KEY.findall(line):
                made.setdefault(name, value.strip())
            found.setdefault(made[key], made)
    return found


_KEY: Final = re.compile(r"([A-Z][A-Za-z_/:]*(?:\[\d+\])?)=(.*?)(?=\s[A-Z][A-Za-z_/:]*(?:\[\d+\])?=|$)")


def of_table(text: str, fields: Sequence[str]) -> tuple[Texts, ...]:
    """The records of `sacctmgr -nP show ... format=`: fields between bars, the last of which may hold some. A line with
    too few goes on with the one before."""
    rows = [line.split("|", len(fields) - 1) for line in text.splitlines()]
    return tuple(dict(zip(fields, row, strict=True)) for row in rows if len(row) == len(fields))


def of_config(text: str) -> Texts:
    """What `scontrol show config` prints."""
    pairs = (line.partition(" = ") for line in text.splitlines())
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


@cache
def known_settings() -> frozenset[str]:
    """The settings of slurm.conf that 22.05, 24.11 and 26.05 have, and some older ones."""
    return frozenset(resources.files("dovetail.slurm").joinpath("settings.txt").read_text(encoding="ascii").split())


def unknown_settings(machine: Machine) -> list[str]:
    """Those that no such version has."""
    plain = {name: re.sub(r"\[\d+\]", "", name) for name in machine.config}
    return [name for name, key in plain.items() if key not in known_settings()]


SCHEDULING: Final = (
    "SchedulerType", "SchedulerParameters", "SelectType", "SelectTypeParameters", "PriorityType", "PriorityWeightAge",
    "PriorityWeightAssoc", "PriorityWeightFairShare", "PriorityWeightJobSize", "PriorityWeightPartition",
    "PriorityWeightQOS", "PriorityWeightTRES", "PriorityDecayHalfLife", "PriorityMaxAge", "PriorityFavorSmall",
    "PriorityFlags", "PreemptType", "PreemptMode", "AccountingStorageEnforce", "EnforcePartLimits", "OverTimeLimit",
)  # fmt: skip
"""Settings that decide who runs when."""
