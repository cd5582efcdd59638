"""What a log says happened: when its jobs came and started, and on which nodes they ran."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import SettingError
from dovetail.io.node_list import ran_on
from dovetail.model.cluster import Cluster
from dovetail.model.requests import Placement, Requests, requests_of
from dovetail.model.workload import Workload

MOST_TRIED: Final = 50
"""Jobs that are asked to make room for another."""
MOVES: Final = ("scale-load", "set-load", "sample", "lengthen")
"""Scenarios after which recorded waits are not those of the jobs any more."""


def recorded_times(workload: Workload, name: str) -> tuple[Ints, Ints]:
    """When each job started, -1 where it left before, and when it came."""
    wait = workload.get("wait")
    if missing := int(((wait < 0) & (workload.leaves < 0)).sum()):
        raise SettingError(
            f"{name}: {workload.name} does not say when {missing:,} of its {len(workload):,} jobs started; leave"
            " them out with the filters standard and known_start"
        )
    moved = [step.name for step in workload.provenance.steps if step.name.startswith(MOVES)]
    if moved:
        raise SettingError(f"{name}: the log does not say what would have happened with {moved[0]}")
    start = np.where(wait >= 0, workload.submit + wait, -1)
    arrive = workload.arrives
    arrive = np.where(start >= 0, np.minimum(np.where(arrive < 0, workload.submit, arrive), start), arrive)
    return start, arrive


def recorded_places(workload: Workload, cluster: Cluster, name: str) -> Placement:
    """Where the log says that jobs ran: it names the node of each unit by its number, or the nodes by their names.
    How many units of a job each of these had no log says: where they are more than the nodes, each has one, and the
    rest goes where there was room, the first nodes first."""
    asked, places = requests_of(workload, cluster), workload.get("ran_on")
    if cluster.shared:
        raise SettingError(f"{name}: the log does not say which {cluster.shared} of a node a job had")
    listed = {one: _nodes(workload.called("ran_on", one), cluster) for one in np.unique(places).tolist()}
    nodes = [listed[one] for one in places.tolist()]
    ran = workload.get("wait") >= 0
    wrong = [
        job for job in np.flatnonzero(ran).tolist()
        if not nodes[job] or len(nodes[job]) > asked.units[job] or max(nodes[job]) >= cluster.nodes
    ]  # fmt: skip
    if wrong:
        raise SettingError(
            f"{name}: the log does not say on which nodes {len(wrong):,} of its {len(workload):,} jobs ran"
            f" (column ran_on; first: job {workload['id'][wrong[0]]})"
        )
    node = np.full(int(asked.first[-1]), -1, np.int64)
    spread = list[int]()
    for job in np.flatnonzero(ran).tolist():
        if len(nodes[job]) == asked.units[job]:
            node[asked.first[job] : asked.first[job + 1]] = nodes[job]
        else:
            spread.append(job)
    if spread:
        _Room(workload, cluster, asked, node).put(spread, nodes)
    return Placement(asked.first, node, np.empty(0, np.int64))


def _nodes(text: str, cluster: Cluster) -> list[int]:
    """The nodes of a text: numbers, `0 5 7`, or a list of names, `c[1-3]`; none, if it names one that is not there."""
    named = ran_on(text)
    if text not in cluster.number and not text.strip("0123456789 "):
        return [int(one) for one in named]
    found = [cluster.number.get(one, -1) for one in named]
    return [] if -1 in found else found


class _Room:
    """How many units of each job are on each node, and what a node has left beside them while a job runs."""

    def __init__(self, workload: Workload, cluster: Cluster, asked: Requests, node: Ints) -> None:
        self.cluster, self.asked, self.node = cluster, asked, node
        self.start = workload.submit + workload.get("wait")
        self.end = self.start + workload.runtime
        self.there: list[list[tuple[int, int, int]]] = [[] for _ in range(cluster.nodes)]
        """The jobs of each node in order of their starts: start, end, job."""
        self.longest = [0] * cluster.nodes
        self.units: dict[tuple[int, int], int] = {}
        """Of a job on a node."""
        self.may_move = set[int]()
        for job in range(len(workload)):
            self._add(job, Counter(node[asked.first[job] : asked.first[job + 1]].tolist()))

    def _add(self, job: int, places: Mapping[int, int]) -> None:
        """Put a job on its nodes."""
        start, end = int(self.start[job]), int(self.end[job])
        for one, count in places.items():
            if one >= 0:
                insort(self.there[one], (start, end, job))
                self.longest[one] = max(self.longest[one], end - start)
                self.units[job, one] = count

    def _beside(self, one: int, job: int) -> list[tuple[int, int, int]]:
        """Who else is on a node while a job runs."""
        start, end = int(self.start[job]), int(self.end[job])
        begin = bisect_left(self.there[one], (start - self.longest[one], 0, 0))
        stop = bisect_left(self.there[one], (end, 0, 0))
        return [entry for entry in self.there[one][begin:stop] if entry[1] > start and entry[2] != job]

    def _fits(self, one: int, job: int) -> int:
        """How many units of a job have room on a node, beside the others."""
        beside, most = self._beside(one, job), np.zeros(len(self.cluster.resources), np.int64)
        if beside:
            takes = np.stack([self._takes(other, one) for _, _, other in beside])
            begin, end = np.array([entry[:2] for entry in beside]).T
            change = np.repeat([1, 0], len(beside))  # at one instant ends come first
            order = np.lexsort((change, np.concatenate([np.maximum(begin, self.start[job]), end])))
            most = np.cumsum(np.concatenate([takes, -takes])[order], axis=0).max(axis=0)
        free = self.cluster.vectors[self.cluster.kind_of[one]] - most
        need = self.asked.need[job]
        return max(min((int(has) // int(n) for has, n in zip(free, need, strict=True) if n), default=0), 0)

    def _takes(self, job: int, one: int) -> Ints:
        if self.asked.exclusive[job]:
            return np.asarray(self.cluster.vectors[self.cluster.kind_of[one]])
        return np.asarray(self.asked.need[job] * self.units[job, one], np.int64)

    def put(self, jobs: list[int], nodes: list[list[int]]) -> None:
        """Say which of its nodes each unit of these jobs had, in order of their starts."""
        for job in sorted(jobs, key=lambda job: (int(self.start[job]), job)):
            places = dict.fromkeys(nodes[job], 1)
            self._add(job, places)
            self.may_move.add(job)
            left = int(self.asked.units[job]) - len(places)
            for one in places:
                more = max(min(self._fits(one, job) - 1, left), 0)
                self.units[job, one] += more
                left -= more
            for one in places:
                while left and self._makes_room(one, job, nodes):
                    self.units[job, one] += 1
                    left -= 1
            for at in range(left):  # more than there was room for: the referee will say so
                self.units[job, nodes[job][at % len(places)]] += 1
        for job in jobs:
            row = [one for one in sorted(nodes[job]) for _ in range(self.units[job, one])]
            self.node[self.asked.first[job] : self.asked.first[job + 1]] = row

    def _makes_room(self, one: int, job: int, nodes: list[list[int]]) -> bool:
        """Whether a unit of another job can go to another of its nodes, so that one more of this has room; it goes."""
        for _, _, other in self._beside(one, job)[:MOST_TRIED]:
            if other in self.may_move and self.units[other, one] > 1:
                for instead in nodes[other]:
                    if instead != one and self._fits(instead, other) > self.units[other, instead]:
                        self.units[other, one] -= 1
                        self.units[other, instead] += 1
                        if self._fits(one, job) > self.units[job, one]:
                            return True
                        self.units[other, one] += 1
                        self.units[other, instead] -= 1
        return False
