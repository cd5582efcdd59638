"""What a log says happened: when its jobs came and started, and on which nodes they ran."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import SettingError
from dovetail.io.node_list import hosts
from dovetail.model.cluster import Cluster
from dovetail.model.requests import Placement, Requests, requests_of
from dovetail.model.workload import Workload

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
    asked, ran_on = requests_of(workload, cluster), workload.get("ran_on")
    if cluster.shared:
        raise SettingError(f"{name}: the log does not say which {cluster.shared} of a node a job had")
    listed = {one: _nodes(workload.called("ran_on", one), cluster) for one in np.unique(ran_on).tolist()}
    nodes = [listed[one] for one in ran_on.tolist()]
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
    if re.fullmatch(r"[0-9 ]*", text):
        return [int(node) for node in text.split()]
    try:
        found = [cluster.number.get(one, -1) for one in hosts(text)]
    except ValueError:
        return []
    return [] if -1 in found else found


class _Room:
    """What each node had left while a job ran, beside the others whose place is known."""

    def __init__(self, workload: Workload, cluster: Cluster, asked: Requests, node: Ints) -> None:
        self.cluster, self.asked, self.node = cluster, asked, node
        self.start = workload.submit + workload.get("wait")
        self.end = self.start + workload.runtime
        self.has: list[list[tuple[int, int, Ints]]] = [[] for _ in range(cluster.nodes)]
        self.longest = np.zeros(cluster.nodes, np.int64)
        for job in range(len(workload)):
            self._add(job, node[asked.first[job] : asked.first[job + 1]].tolist())

    def _add(self, job: int, places: list[int]) -> None:
        """Remember what a job has on its nodes, in order of starts."""
        start, end = int(self.start[job]), int(self.end[job])
        for one in set(places) - {-1}:
            takes = self.asked.need[job] * places.count(one)
            if self.asked.exclusive[job]:
                takes = self.cluster.vectors[self.cluster.kind_of[one]]
            at = bisect_left(self.has[one], start, key=lambda entry: entry[0])
            self.has[one].insert(at, (start, end, takes))
            self.longest[one] = max(self.longest[one], end - start)

    def _left(self, one: int, start: int, end: int) -> Ints:
        """What is free of each resource of a node all the time from a start to an end."""
        begin = bisect_left(self.has[one], start - int(self.longest[one]), key=lambda entry: entry[0])
        stop = bisect_left(self.has[one], end, key=lambda entry: entry[0])
        beside = [entry for entry in self.has[one][begin:stop] if entry[1] > start]
        instants = sorted({start, *(max(entry[0], start) for entry in beside)})
        most = np.zeros(len(self.cluster.resources), np.int64)
        for at in instants:
            now = [takes for first, last, takes in beside if first <= at < last]
            most = np.maximum(most, np.sum(now, axis=0)) if now else most
        return np.asarray(self.cluster.vectors[self.cluster.kind_of[one]] - most, np.int64)

    def put(self, jobs: list[int], nodes: list[list[int]]) -> None:
        """Say which of its nodes each unit of these jobs had, in order of their starts."""
        for job in sorted(jobs, key=lambda job: (int(self.start[job]), job)):
            need, left = self.asked.need[job], int(self.asked.units[job]) - len(nodes[job])
            places = list(nodes[job])
            for one in nodes[job]:
                free = self._left(one, int(self.start[job]), int(self.end[job]))
                fit = min((int(have) // int(n) for have, n in zip(free, need, strict=True) if n), default=0) - 1
                more = min(max(fit, 0), left)
                places += [one] * more
                left -= more
            for at in range(left):  # more than there was room for: the referee will say so
                places.append(nodes[job][at % len(nodes[job])])
            self.node[self.asked.first[job] : self.asked.first[job + 1]] = sorted(places)
            self._add(job, places)
