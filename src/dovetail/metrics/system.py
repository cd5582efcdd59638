"""The cluster and its queue over time: utilisation and its variance, loss of capacity, queue length.

All of it counts every started job; the counting rule of the metrics over jobs does not apply here. A job that
never started takes no part.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.metrics.exact import blocks, exact_dot, products
from dovetail.model.schedule import Schedule
from dovetail.units import DAY_S, WEEK_S

_LENGTHS: Final = (
    1, 5, 15, 60, 300, 900, 3600, 7200, DAY_S // 4, DAY_S // 2, DAY_S, 2 * DAY_S, WEEK_S, 2 * WEEK_S, 4 * WEEK_S,
    13 * WEEK_S, 52 * WEEK_S,
)  # fmt: skip
"""Lengths of bins that people know."""


@dataclass(frozen=True)
class Timeline:
    """Step functions of time: a value holds from its moment up to the next one; after the last all are 0.

    The first moment is the first arrival, the last is the last end.
    """

    processors: int
    """R: processors of the cluster."""
    times: Ints
    """The moments in which a job arrived, started or ended, each once, in order."""
    busy: Ints
    """Processors that run jobs."""
    queue_jobs: Ints
    """Jobs that wait."""
    queue_processors: Ints
    """Processors that the waiting jobs ask for."""

    @property
    def span_s(self) -> int:
        """Seconds from the first arrival to the last end."""
        return int(self.times[-1] - self.times[0]) if len(self.times) else 0

    def integral(self, values: Callable[[slice], Ints]) -> int:
        """The exact integral over time of a step function that is not negative, given piece by piece."""
        total = 0
        for part in blocks(len(self.times) - 1):
            seconds = np.diff(self.times[part.start : part.stop + 1])
            total += exact_dot(values(part), seconds)
        return total


def timeline(schedule: Schedule) -> Timeline:
    """What the cluster and the queue held at each moment of a schedule."""
    started = schedule.start >= 0
    size, arrive, start, end = schedule.workload.size, schedule.arrive, schedule.start, schedule.end
    if not bool(started.all()):
        size, arrive, start, end = size[started], arrive[started], start[started], end[started]
    times = _moments(arrive, start, end)
    busy, jobs, demand = (np.zeros(len(times), np.int64) for _ in range(3))
    for instants, to_queue, to_busy in ((arrive, 1, 0), (start, -1, 1), (end, 0, -1)):
        order = np.argsort(instants)
        instants = instants[order]
        sizes = np.zeros(len(order) + 1, np.int64)
        np.cumsum(size[order], out=sizes[1:])
        for part in blocks(len(times)):
            happened = np.searchsorted(instants, times[part], side="right")
            moved = sizes[happened]
            if to_queue:
                jobs[part] += to_queue * happened
                demand[part] += to_queue * moved
            if to_busy:
                busy[part] += to_busy * moved
    return Timeline(schedule.cluster.processors, times, busy, jobs, demand)


def _moments(*instants: Ints) -> Ints:
    """Every instant once, in order. (np.unique would hold two more copies.)"""
    every = np.concatenate(instants)
    every.sort()
    first = np.ones(len(every), np.bool_)
    np.not_equal(every[1:], every[:-1], out=first[1:])
    return every[first]


def makespan_s(line: Timeline) -> float:
    """Seconds from the first arrival to the last end. CP, Section 3.1."""
    return float(line.span_s) if len(line.times) else nan


def utilization(line: Timeline) -> float:
    """Share of the processor seconds from first arrival to last end that ran jobs. CP, Section 3.1."""
    if not line.span_s:
        return nan
    return line.integral(lambda part: line.busy[part]) / (line.processors * line.span_s)


def utilization_variance(line: Timeline) -> float:
    """Variance over time of the busy share of the cluster. CP, Section 3.1 (Boëzennec et al.)."""
    span = line.span_s
    if not span:
        return nan
    total = line.integral(lambda part: line.busy[part])
    squares = 0
    for part in blocks(len(line.times) - 1):
        busy = line.busy[part]
        squares += exact_dot(busy, products(busy, np.diff(line.times[part.start : part.stop + 1])))
    # In integers to the last step: the difference of two large numbers keeps all its digits.
    return (squares * span - total * total) / (span * line.processors) ** 2


def utilization_by_bin(line: Timeline, bin_s: int = 3600) -> tuple[Ints, Floats]:
    """Edges of bins of equal length from the first arrival on, and the mean busy share within each.

    The last bin ends with the last job, so it may be shorter than the others.
    """
    edges = bin_edges(line.times, bin_s)
    if not line.span_s:
        return edges[:1], np.empty(0)
    share = areas(line.times, line.busy, edges) / products(np.diff(edges), line.processors)
    return edges, share.astype(np.float64)


def bin_edges(times: Ints, bin_s: int) -> Ints:
    """Edges of bins from the first moment on; the last bin ends with the last moment and may be shorter."""
    if bin_s < 1:
        raise ValueError(f"a bin has at least 1 s, got {bin_s}")
    if len(times) < 2:
        return times[:1]
    number = -(-int(times[-1] - times[0]) // bin_s)  # (np.arange with these ends would count bins in floats)
    return np.append(times[0] + bin_s * np.arange(number), times[-1])


def bin_length(span_s: int, most: int) -> int:
    """The shortest length of bin that people know of which `most` are enough for the span."""
    fits = (length for length in _LENGTHS if span_s <= most * length)
    return next(fits, -(-span_s // (most * WEEK_S)) * WEEK_S)


def areas(times: Ints, values: Ints, edges: Ints) -> Ints:
    """The exact integral within each bin of a step function that is not negative; Python integers where that over all
    bins might pass 2^63."""
    if int(values.max()) * int(times[-1] - times[0]) >= 2**63:
        values = values.astype(object)
    done = np.zeros(len(times), values.dtype)
    np.cumsum(values[:-1] * np.diff(times), out=done[1:])
    at = np.searchsorted(times, edges, side="right") - 1
    return np.diff(done[at] + values[at] * (edges - times[at]))


def binned_variance(line: Timeline, bin_s: int = 3600) -> float:
    """Variance of the mean busy share of bins, each weighted by its length."""
    edges = bin_edges(line.times, bin_s)
    if not line.span_s:
        return nan
    in_bins: list[int] = areas(line.times, line.busy, edges).tolist()
    last, last_s = in_bins[-1], int(edges[-1] - edges[-2])
    # In integers to the last step, as the variance above; all bins but the last are `bin_s` long.
    squares = last_s * sum(area * area for area in in_bins[:-1]) + bin_s * last * last
    each, total = bin_s * last_s, sum(in_bins)
    return (squares * line.span_s - each * total * total) / (each * (line.span_s * line.processors) ** 2)


def loss_of_capacity(line: Timeline) -> float:
    """LOC: share of the processor seconds idle while waiting jobs asked for them. Packing, Section VII."""
    if not line.span_s:
        return nan

    def lost(part: slice) -> Ints:
        # A recorded history may hold more processors than the cluster is known to have: then nothing is free.
        free = np.maximum(line.processors - line.busy[part], 0)
        return np.minimum(line.queue_processors[part], free)

    return line.integral(lost) / (line.processors * line.span_s)


def mean_queue_jobs(line: Timeline) -> float:
    """Jobs that wait, averaged over time."""
    return line.integral(lambda part: line.queue_jobs[part]) / line.span_s if line.span_s else nan


def mean_queue_processors(line: Timeline) -> float:
    """Processors that waiting jobs ask for, averaged over time."""
    return line.integral(lambda part: line.queue_processors[part]) / line.span_s if line.span_s else nan


def max_queue_jobs(line: Timeline) -> float:
    """The most jobs that waited at once. A job that starts in the second it arrives never waits."""
    return float(line.queue_jobs.max()) if len(line.times) else nan


def max_queue_processors(line: Timeline) -> float:
    """The most processors that waiting jobs asked for at once."""
    return float(line.queue_processors.max()) if len(line.times) else nan
