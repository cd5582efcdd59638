"""Cluster: the capacity that jobs run on, as a number of processors or node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby
from typing import Final

import numpy as np

from dovetail.arrays import NEVER, Ints, Mask
from dovetail.model.features import NAME, PLAIN, chosen
from dovetail.model.workload import LICENCE, Workload

WHOLE: Final = 1000
"""Parts of one shared device (a GPU): a share is a number of thousandths."""
MOST_DEVICES: Final = 62
MOST_RESERVATIONS: Final = 100
PARTITION: Final = "partition="
"""Before the name of a partition, in the features of its nodes: jobs of the partition run there alone."""
MOST_LICENCES: Final = 1 << 40
"""Of a kind: what all jobs hold together fits into 64 bits."""


@dataclass(frozen=True)
class NodeKind:
    """`count` nodes that are all alike. `capacity` is what one has of each of the cluster's resources; `features` are
    what a job may ask for by name: a partition, a model of GPU."""

    name: str
    count: int
    capacity: tuple[int, ...]
    features: tuple[str, ...] = ()


@dataclass(frozen=True)
class Typical:
    """What a `part` of the jobs asks for: units that each need this of every resource and this share of shared devices,
    on the kinds of these bits."""

    part: float
    need: tuple[int, ...]
    share: int
    kinds: int


@dataclass(frozen=True)
class Outage:
    """Time in which nodes are not to be had: down, drained, or kept for some jobs.

    From `begin` until before `end` no job starts on `nodes`, and none that would not end by `begin`, by its estimate,
    starts there before. What runs there all the same may end. Policies know of it from `known` on, at `begin` at the
    latest. `only`: the name of a reservation, whose jobs may use the nodes all the same. `fails`: nobody knows before,
    and what runs there is lost: it waits again, from then on, for all of its run time.
    """

    nodes: tuple[int, ...]
    begin: int
    end: int
    """NEVER: no end is known. A replay wants one."""
    only: str = ""
    known: int = 0
    fails: bool = False

    def __post_init__(self) -> None:
        numbers = (*self.nodes, self.begin, self.end, self.known)
        if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) for n in numbers):
            raise ValueError("an outage has whole numbers for its nodes and times")
        if not isinstance(self.only, str) or not isinstance(self.fails, bool):
            raise ValueError("an outage is for the name of a reservation, and fails or does not")
        if not (
            self.nodes and min(self.nodes) >= 0 and 0 <= self.begin < self.end <= NEVER and 0 <= self.known <= NEVER
        ):
            raise ValueError(
                f"an outage has nodes, and ends after it begins, from 0 s on; got {self.begin} to {self.end}"
            )
        if self.fails and self.only:
            raise ValueError(f"a node that fails is kept for nobody, got {self.only!r}")
        object.__setattr__(self, "nodes", tuple(map(int, self.nodes)))
        for name in ("begin", "end", "known"):
            object.__setattr__(self, name, int(getattr(self, name)))

    @property
    def told(self) -> int:
        """When policies learn of it."""
        return self.begin if self.fails else min(self.known, self.begin)


MOST_MW: Final = 10**9
"""Milliwatts of a processor: with a billion processors sums still fit into 64 bits."""


POWER: Final = "mW of power"
"""What a power cap counts (`Cluster.counted`)."""


@dataclass(frozen=True)
class PowerCap:
    """What processors may draw together, jobs and idle ones, at any instant; in milliwatts, cooling apart."""

    mw: int
    idle_mw: int = 0
    """Of a processor on which nothing runs."""
    busy_mw: int = 0
    """Of each processor of a job whose own power (`power_mw`) is not known."""

    def room(self, processors: int) -> int:
        """What is left for jobs on an idle machine."""
        return self.mw - processors * self.idle_mw

    def draws(self, workload: Workload) -> Ints:
        """What each job draws beyond what its processors draw when idle."""
        return workload.draws_mw(self.idle_mw, self.busy_mw)


@dataclass(frozen=True)
class Cluster:
    """`processors` in all. Where `kinds` are known, so are the nodes: those of the first kind come first, from 0 on.
    Without kinds processors are only counted, and any of them will do.

    `resources` are the names of what a node has; the first is "cores". `shared` is the one of them whose pieces jobs
    may share in thousandths: each piece is a device, and a share is of one device. Empty: none. `typical` are the jobs
    that the cluster is there for: what is free and of no use to them is fragmented. `cap`: what all may draw together.
    `licences`: how many of each there are, by name, for all jobs together.
    `outages` are when which nodes are not to be had; `reservations` the names in them, by number. `names`: what the
    nodes are called, in their order, where that is known.
    """

    processors: int
    resources: tuple[str, ...] = ()
    kinds: tuple[NodeKind, ...] = ()
    shared: str = ""
    typical: tuple[Typical, ...] = ()
    cap: PowerCap | None = None
    outages: tuple[Outage, ...] = ()
    reservations: tuple[str, ...] = ()
    licences: tuple[tuple[str, int], ...] = ()
    names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        named = dict.fromkeys((*self.reservations, *(one.only for one in self.outages if one.only)))
        object.__setattr__(self, "reservations", tuple(named))
        if len(named) > MOST_RESERVATIONS:
            raise ValueError(f"more than {MOST_RESERVATIONS} reservations: each costs memory for every job")
        if self.processors < 1:
            raise ValueError(f"a cluster has at least 1 processor, got {self.processors}")
        names = [name for name, _ in self.licences]
        if len(set(names)) < len(names) or not all(0 <= n <= MOST_LICENCES for _, n in self.licences):
            raise ValueError(f"licences have different names and are from 0 to {MOST_LICENCES:,}; got {self.licences}")
        if not self.kinds:
            if self.outages:
                raise ValueError("outages are of nodes, and the cluster has none")
            return
        if self.resources[:1] != ("cores",) or len(set(self.resources)) < len(self.resources):
            raise ValueError(f"the resources of nodes are different, and the first is cores; got {self.resources}")
        if self.shared and self.shared not in self.resources[1:]:
            raise ValueError(f"shared={self.shared!r}: must be a resource behind cores, one of {self.resources[1:]}")
        for kind in self.kinds:
            if kind.count < 1 or len(kind.capacity) != len(self.resources) or min(kind.capacity) < 0:
                raise ValueError(f"{kind}: a kind is at least one node, and has {self.resources}, none below 0")
            if self.shared and kind.capacity[self.shared_at] > MOST_DEVICES:
                raise ValueError(f"kind {kind.name!r}: a node has at most {MOST_DEVICES} {self.shared} that are shared")
        for one in self.outages:
            if max(one.nodes) >= self.nodes:
                raise ValueError(f"an outage of node {max(one.nodes)}: they go from 0 to {self.nodes - 1:,}")
        if self.names and not len(set(self.names)) == len(self.names) == self.nodes:
            raise ValueError(f"{len(set(self.names)):,} different names of nodes, for {self.nodes:,} nodes")
        total = sum(kind.count * kind.capacity[0] for kind in self.kinds)
        if total != self.processors:
            raise ValueError(f"the nodes have {total} cores, and the cluster {self.processors} processors")

    @property
    def in_words(self) -> str:
        """How large it is: 64 nodes in 3 kinds, 1,024 cores."""
        if not self.kinds:
            return f"{self.processors:,} processors"
        kinds = f" in {len(self.kinds)} kinds" if len(self.kinds) > 1 else ""
        return f"{self.nodes:,} node{'s' * (self.nodes > 1)}{kinds}, {self.processors:,} cores"

    def __repr__(self) -> str:
        cap = f", at most {self.cap.mw / 1e6:,.1f} kW" if self.cap is not None else ""
        return f"Cluster: {self.in_words}{cap}"

    @property
    def nodes(self) -> int:
        """How many nodes there are; 0 where they are not known."""
        return sum(kind.count for kind in self.kinds)

    @cached_property
    def kind_of(self) -> Ints:
        """The kind of each node, as a position in `kinds`."""
        return np.repeat(np.arange(len(self.kinds)), [kind.count for kind in self.kinds])

    def having(self, features: str) -> Mask:
        """Which kinds have what an expression of features asks for (features.py); all, if it asks for none."""
        none = np.zeros(len(self.kinds), bool)
        return chosen(features, lambda name: self._having.get(name, none)).copy() if features else ~none

    @cached_property
    def _having(self) -> dict[str, Mask]:
        found: dict[str, Mask] = {}
        for k, kind in enumerate(self.kinds):
            for name in kind.features:
                found.setdefault(name, np.zeros(len(self.kinds), bool))[k] = True
        return found

    @property
    def partitions(self) -> list[str]:
        """The partitions that jobs of their names run in, and nowhere else."""
        return [name.removeprefix(PARTITION) for name in self._having if name.startswith(PARTITION)]

    @cached_property
    def number(self) -> dict[str, int]:
        """The number of each node that has a name."""
        return {name: node for node, name in enumerate(self.names)}

    @cached_property
    def counted(self) -> dict[str, int]:
        """What is counted for all jobs together, beside processors, and how much there is: the power that a cap leaves,
        in milliwatts, then each licence."""
        power = {} if self.cap is None else {POWER: self.cap.room(self.processors)}
        return power | {f"licences of {name}": count for name, count in self.licences}

    def takes(self, workload: Workload) -> Ints:
        """What each job (row) takes of that."""
        power = [] if self.cap is None else [self.cap.draws(workload)]
        held = [np.maximum(workload.get(f"{LICENCE}{name}"), 0) for name, _ in self.licences]
        return np.array([*power, *held], np.int64).reshape(len(power) + len(held), len(workload)).T

    def known(self, now: int) -> tuple[Outage, ...]:
        """The outages that policies know of at an instant and that are not over."""
        return tuple(one for one in self.outages if one.told <= now < one.end)

    @property
    def failures(self) -> list[Outage]:
        """The outages that fail, the first last."""
        return sorted((one for one in self.outages if one.fails), key=lambda one: -one.begin)

    @cached_property
    def out(self) -> Ints:
        """The outages node by node, a column each: node, begin, end, number of the reservation (-1: none), told."""
        number = {name: r for r, name in enumerate(self.reservations)}
        rows = [
            (node, one.begin, one.end, number.get(one.only, -1), one.told)
            for one in self.outages
            for node in dict.fromkeys(one.nodes)
        ]
        return np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 5).T)

    @property
    def shared_at(self) -> int:
        """Which of the resources is shared; -1: none."""
        return self.resources.index(self.shared) if self.shared else -1

    @cached_property
    def capacity(self) -> Ints:
        """What a node of each kind (row) has of each resource."""
        return np.array([kind.capacity for kind in self.kinds], np.int64)

    @cached_property
    def vectors(self) -> Ints:
        """What a node of each kind has, as one row of numbers: of each resource, then of each shared device. The shared
        resource itself counts 0 there."""
        plain = self.capacity.copy()
        if not self.shared:
            return plain
        devices = plain[:, self.shared_at].copy()
        plain[:, self.shared_at] = 0
        return np.hstack([plain, WHOLE * (np.arange(devices.max()) < devices[:, np.newaxis])])


def with_features(cluster: Cluster, nodes_of: Mapping[str, Sequence[int]]) -> Cluster:
    """The same nodes, some of them with more features: partitions that overlap, nodes by their names. A kind is split
    where its nodes differ by them."""
    more: list[tuple[str, ...]] = [()] * cluster.nodes
    for name, nodes in nodes_of.items():
        if not NAME.fullmatch(name):
            raise ValueError(f"feature {name!r}: must be a text {PLAIN}")
        for node in nodes:
            if not 0 <= node < cluster.nodes:
                raise ValueError(f"feature {name!r}: there is no node {node}: they go from 0 to {cluster.nodes - 1:,}")
            more[node] += (name,)
    kinds, into = list[NodeKind](), list[int]()
    for (k, names), run in groupby(zip(cluster.kind_of.tolist(), more, strict=True)):
        kind = cluster.kinds[k]
        kinds.append(replace(kind, count=len(list(run)), features=(*kind.features, *names)))
        into.append(k)
    typical = tuple(
        replace(one, kinds=sum(1 << new for new, old in enumerate(into) if one.kinds >> old & 1))
        for one in cluster.typical
    )
    return replace(cluster, kinds=tuple(kinds), typical=typical)


def by_node(resources: tuple[str, ...], kinds: tuple[NodeKind, ...], shared: str = "") -> Cluster:
    """A cluster of these nodes."""
    return Cluster(sum(kind.count * kind.capacity[0] for kind in kinds), resources, kinds, shared)
