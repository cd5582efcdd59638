"""Lanes: which processors a job is drawn on. A counted cluster has none, so this is for drawing only.

Where nodes are known, the lanes are the cores of all nodes, those of node 0 first. A job is drawn on the nodes that it
had; on which of a node's cores means nothing.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.cluster import Cluster
from dovetail.model.requests import requests_of
from dovetail.model.schedule import Schedule


@dataclass(frozen=True)
class Rectangles:
    """What is drawn: one rectangle per unbroken run of lanes of a job, in the order of the jobs."""

    job: Ints
    """Whose it is: a position in the arrays that were given."""
    lane: Ints
    """Its lowest lane."""
    lanes: Ints
    """How many lanes it has. Those of a job add up to its size; on nodes to the cores that it has of them."""


def lay_out(start: Ints, end: Ints, size: Ints, processors: int, most: int) -> Rectangles | None:
    """Give each job lanes of its own while it runs; None if that takes more than `most` rectangles.

    A job gets the lowest run of free lanes that holds it. Where none does, it is split over the largest runs,
    which makes the fewest rectangles. Within a second, jobs end before others start.
    """
    free, sizes = _Free(0, processors), size.tolist()
    return _over_time(start, end, lambda job: free.take(sizes[job]), free.give_back, most)


def lay_on_nodes(schedule: Schedule, jobs: Ints, most: int) -> Rectangles | None:
    """The same for these jobs of a schedule with a placement: each job gets lanes of its nodes.

    Units of a job on one node stand together, and so do whole nodes beside each other. A rectangle never lies on nodes
    of two kinds. A unit without cores has no lane.
    """
    blocks, nodes = _blocks(schedule, jobs), _Nodes(schedule.cluster)
    first = np.searchsorted(blocks.job, np.arange(len(jobs) + 1)).tolist()
    rows = list(zip(blocks.node.tolist(), blocks.nodes.tolist(), blocks.cores.tolist(), strict=True))

    def take(job: int) -> list[tuple[int, int]]:
        return [piece for row in rows[first[job] : first[job + 1]] for piece in nodes.take(*row)]

    return _over_time(schedule.start[jobs], schedule.end[jobs], take, nodes.give_back, most)


def _over_time(
    start: Ints,
    end: Ints,
    take: Callable[[int], list[tuple[int, int]]],
    give_back: Callable[[int, int], None],
    most: int,
) -> Rectangles | None:
    """Let each job take its runs of lanes when it starts, and give them back when it ends."""
    held: list[list[tuple[int, int]]] = [[] for _ in range(len(start))]
    used = 0
    # Ends stand before starts, and the sort is stable: so they come first within a second.
    for event in np.argsort(np.concatenate([end, start]), kind="stable").tolist():
        job = event - len(start)
        if job < 0:
            for low, high in held[event]:
                give_back(low, high)
        else:
            held[job] = take(job)
            used += len(held[job])
            if used > most:
                return None
    pieces = np.array([piece for runs in held for piece in runs], np.int64).reshape(-1, 2)
    job_of = np.repeat(np.arange(len(start)), [len(runs) for runs in held])
    return Rectangles(job_of, pieces[:, 0], pieces[:, 1] - pieces[:, 0])


@dataclass(frozen=True)
class _Blocks:
    """What jobs have: some cores of each of some nodes in a row. More than one node only where that is all of it."""

    job: Ints
    node: Ints
    nodes: Ints
    cores: Ints


def _blocks(schedule: Schedule, jobs: Ints) -> _Blocks:
    """The blocks of these jobs, in their order, then in that of the nodes."""
    asked, place, cluster = requests_of(schedule.workload, schedule.cluster), schedule.placement, schedule.cluster
    if place is None:
        raise ValueError("a schedule without a placement has no nodes to draw on")
    units = place.first[jobs + 1] - place.first[jobs]
    job = np.repeat(np.arange(len(jobs)), units)
    unit = np.arange(len(job)) + np.repeat(place.first[jobs] - (np.cumsum(units) - units), units)
    if len(unit) and not 0 <= int(place.node[unit].min()) <= int(place.node[unit].max()) < cluster.nodes:
        raise ValueError(f"a job that ran has a unit that is on none of the {cluster.nodes} nodes")
    pair, count = np.unique(job * cluster.nodes + place.node[unit], return_counts=True)
    job, node = np.divmod(pair, cluster.nodes)
    all_of_it = _cores(cluster)[node]
    cores = np.where(asked.exclusive[jobs[job]] > 0, all_of_it, count * asked.need[jobs[job], 0])
    drawn = cores > 0
    job, node, cores, whole = job[drawn], node[drawn], cores[drawn], (cores == all_of_it)[drawn]
    joins = np.zeros(len(job), bool)
    kind = cluster.kind_of[node]
    joins[1:] = whole[1:] & whole[:-1] & (np.diff(job) == 0) & (np.diff(node) == 1) & (np.diff(kind) == 0)
    begin = np.flatnonzero(~joins)
    return _Blocks(job[begin], node[begin], np.diff(begin, append=len(job)), cores[begin])


def _cores(cluster: Cluster) -> Ints:
    """The cores of each node."""
    return np.array([kind.capacity[0] for kind in cluster.kinds], np.int64)[cluster.kind_of]


class _Nodes:
    """Free lanes by node. Those of a node are known once a part of it was taken; whole nodes are only counted."""

    def __init__(self, cluster: Cluster) -> None:
        self._cores = _cores(cluster)
        self._base = np.concatenate([[0], np.cumsum(self._cores)])
        """The first lane of each node; one more for the end."""
        self._used = np.zeros(len(self._cores), np.int64)
        self._free: dict[int, _Free] = {}

    def take(self, node: int, nodes: int, cores: int) -> list[tuple[int, int]]:
        """Take `cores` cores of each of some nodes in a row, which are alike; of more than one, all."""
        used, all_of_it = self._used[node : node + nodes], int(self._cores[node])
        if (left := all_of_it - int(used.max())) < cores:
            raise ValueError(
                f"a job took {cores} cores of node {node + int(used.argmax())} while only {left} were free"
            )
        used += cores
        low = int(self._base[node])
        if cores == all_of_it:
            return [(low, low + nodes * cores)]
        if node not in self._free:
            self._free[node] = _Free(low, low + all_of_it)
        return self._free[node].take(cores)

    def give_back(self, low: int, high: int) -> None:
        """Free the lanes of a run that was taken."""
        node = int(np.searchsorted(self._base, low, side="right")) - 1
        if high - low < self._cores[node]:
            self._used[node] -= high - low
            self._free[node].give_back(low, high)
        else:
            self._used[node : np.searchsorted(self._base, high)] = 0


class _Free:
    """Free lanes as runs [low, high), lowest first, with a used lane between any two."""

    def __init__(self, low: int, high: int) -> None:
        self._low, self._high = [low], [high]

    def take(self, size: int) -> list[tuple[int, int]]:
        """Take a number of lanes: the lowest run that holds them, else parts of the largest."""
        low, high = self._low, self._high
        for i, (a, b) in enumerate(zip(low, high, strict=True)):
            if b - a >= size:
                return [self._cut(i, size)]
        taken, left = [], size
        for i in sorted(range(len(low)), key=lambda i: low[i] - high[i]):
            part = min(left, high[i] - low[i])
            taken.append((i, part))
            left -= part
            if not left:
                # From the highest on: a run that vanishes moves those above it.
                return [self._cut(i, part) for i, part in sorted(taken, reverse=True)]
        raise ValueError(f"a job of {size} processors started while only {size - left} were free")

    def _cut(self, i: int, size: int) -> tuple[int, int]:
        """Take the lowest lanes of a run."""
        a = self._low[i]
        if self._high[i] - a == size:
            del self._low[i], self._high[i]
        else:
            self._low[i] = a + size
        return a, a + size

    def give_back(self, a: int, b: int) -> None:
        """Free the lanes a to b; the run joins its neighbours."""
        low, high = self._low, self._high
        i = bisect_left(low, a)
        joins_below, joins_above = i > 0 and high[i - 1] == a, i < len(low) and low[i] == b
        if joins_below and joins_above:
            high[i - 1] = high[i]
            del low[i], high[i]
        elif joins_below:
            high[i - 1] = b
        elif joins_above:
            low[i] = a
        else:
            low.insert(i, a)
            high.insert(i, b)
