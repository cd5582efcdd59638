"""Nodes over time: how much of each resource jobs had, and how much lay idle where no core was left to use it.

As in system.py, every started job counts, and time is from the first arrival to the last end. A resource whose devices
are shared is counted in thousandths of a device.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from dovetail.arrays import Ints
from dovetail.metrics.exact import exact_dot
from dovetail.metrics.system import Timeline, timeline
from dovetail.model.cluster import WHOLE, Cluster
from dovetail.model.requests import Requests, requests_of
from dovetail.model.schedule import Schedule


def of_nodes(schedule: Schedule, line: Timeline | None = None) -> dict[str, float]:
    """The metrics of nodes; none where the schedule does not say which nodes jobs had.

    `utilization_R`: share of resource R that jobs had, averaged over time. `stranded_R`, for all but cores: share of R
    that was free on nodes without a free core, averaged over the time in which at least one job waited. nan where the
    cluster has nothing of R, where there is no time, and where no job waited.
    """
    if schedule.placement is None:
        return {}
    line = timeline(schedule) if line is None else line
    units, names = _units(schedule, schedule.placement.node), schedule.cluster.resources
    pieces = _pieces(units, schedule.cluster.nodes, line)
    capacity, full = _capacity(schedule.cluster), np.empty(0, np.bool_)
    utilized: dict[str, float] = {}
    stranded: dict[str, float] = {}
    for r, name in enumerate(names):
        has, taken = capacity[schedule.cluster.kind_of, r], units.taken(schedule.cluster, capacity, r)
        free = has[pieces.node] - pieces.used(taken)
        if r == 0:
            full = free <= 0  # a recorded history may hold more than there is: then nothing is free
        else:
            idle = exact_dot(np.maximum(free[full], 0), pieces.waited_s[full])
            stranded[f"stranded_{name}"] = _share(idle, int(has.sum()) * int(_waited(line)[-1]))
        utilized[f"utilization_{name}"] = _share(
            exact_dot(taken, units.end - units.start), int(has.sum()) * line.span_s
        )
    return utilized | stranded


def _share(part: int, whole: int) -> float:
    return part / whole if whole else nan


def _capacity(cluster: Cluster) -> Ints:
    """What a node of each kind has of each resource; of the shared one in thousandths."""
    capacity = cluster.capacity.copy()
    if cluster.shared:
        capacity[:, cluster.shared_at] *= WHOLE
    return capacity


@dataclass(frozen=True)
class _Units:
    """The units of all jobs that started."""

    asked: Requests
    job: Ints
    node: Ints
    start: Ints
    end: Ints

    def taken(self, cluster: Cluster, capacity: Ints, r: int) -> Ints:
        """What each has of a resource."""
        need = self.asked.need[:, r]
        if r == cluster.shared_at:
            need = need * self.asked.share
        whole = self.asked.exclusive[self.job] > 0
        return np.where(whole, capacity[cluster.kind_of[self.node], r], need[self.job])


def _units(schedule: Schedule, node: Ints) -> _Units:
    asked = requests_of(schedule.workload, schedule.cluster)
    job = np.repeat(np.arange(len(asked.units)), asked.units)
    ran = schedule.start[job] >= 0
    job = job[ran]
    return _Units(asked, job, node[ran], schedule.start[job], schedule.end[job])


@dataclass(frozen=True)
class _Pieces:
    """The time of every node, one node after the other, cut wherever a unit came or went."""

    order: Ints
    """What happened where each piece begins: of n units, i came if it is i, and went if it is n + i; from 2 n on, the
    time of a node begins."""
    node: Ints
    waited_s: Ints
    """Seconds of the piece in which at least one job waited."""

    def used(self, taken: Ints) -> Ints:
        """What is in use in each piece, from what each unit has. All that comes to a node goes again, so that the sum
        over the pieces before is 0 where the time of the next node begins."""
        begins = np.zeros(len(self.order) - 2 * len(taken), np.int64)
        return np.cumsum(np.concatenate([taken, -taken, begins])[self.order])


def _pieces(units: _Units, nodes: int, line: Timeline) -> _Pieces:
    every = np.arange(nodes)
    begin, end = (line.times[0], line.times[-1]) if len(line.times) else (0, 0)
    at = np.concatenate([units.start, units.end, np.full(nodes, begin)])
    node = np.concatenate([units.node, units.node, every])
    order = np.lexsort((at, node))
    at, node = at[order], node[order]
    until = np.append(at[1:], end)
    until[:-1][node[1:] != node[:-1]] = end
    waited = _waited(line)
    moment = np.searchsorted(line.times, np.stack([at, until]))  # each is one of them
    return _Pieces(order, node, waited[moment[1]] - waited[moment[0]])


def _waited(line: Timeline) -> Ints:
    """Seconds up to each moment in which at least one job waited."""
    waited = np.zeros(max(len(line.times), 1), np.int64)
    np.cumsum(np.diff(line.times) * (line.queue_jobs[:-1] > 0), out=waited[1:])
    return waited
