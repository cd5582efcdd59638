"""What the pictures draw, computed: from a schedule to a few hundred numbers. No drawing here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail import metrics
from dovetail.arrays import Floats, Ints
from dovetail.metrics.jobs import Outcomes
from dovetail.metrics.system import areas, bin_edges, bin_length
from dovetail.model.schedule import Schedule

POINTS: Final = 160
"""Points of a curve over a logarithmic axis."""
MOST_BINS: Final = 400
"""Bins of the baseline's queue over time."""
MOST_POINTS: Final = 600
"""Bins of any policy, one that ends much later too."""

HOUR: Final = 3600
DAY: Final = 24 * HOUR
WEEK: Final = 7 * DAY

RUNTIMES: Final = (0, 60, 600, HOUR, 4 * HOUR, 12 * HOUR, DAY)
"""From which run time on each column of the wait map begins; the last has no end."""
MOST_SIZES: Final = 8
"""Rows of the wait map."""


@dataclass(frozen=True)
class Line:
    """A curve: y over x, as drawn."""

    x: Floats
    y: Floats


@dataclass(frozen=True)
class WaitMap:
    """Mean wait and number of jobs by size (rows) and run time (columns)."""

    sizes: tuple[int, ...]
    """The least size of each row, from 1 on; the last has no end."""
    mean_s: Floats
    """nan where there is no job."""
    jobs: Ints


@dataclass(frozen=True)
class Curves:
    """All that the pictures of a case need to know of one policy."""

    policy: str
    waits: Line
    """Share of the jobs that waited up to x seconds; the first point is at 0 s."""
    queue: Line
    """Jobs that waited, mean over each bin, by the middle of the bin in seconds since the first arrival."""
    queue_bin_s: int
    busy: Line
    """Share of the processors that ran jobs, likewise."""
    busy_bin_s: int
    job_share: Line
    """Share of the jobs with an area up to x processor seconds."""
    area_share: Line
    wait_area: Line
    """Processor seconds waited for by jobs with an area up to x."""
    wait_map: WaitMap


def curves(policy: str, schedule: Schedule, like: Curves | None = None) -> Curves:
    """What is drawn of one policy. Bins and rows are those of `like`, where it is given, so that lines compare."""
    jobs, line = metrics.outcomes(schedule), metrics.timeline(schedule)
    queue_bin_s = like.queue_bin_s if like else bin_length(line.span_s, MOST_BINS)
    while line.span_s > MOST_POINTS * queue_bin_s:
        queue_bin_s *= 2
    busy_bin_s = like.busy_bin_s if like else bin_length(line.span_s, 80)
    while line.span_s > MOST_POINTS * busy_bin_s:
        busy_bin_s *= 2
    queue_edges = bin_edges(line.times, queue_bin_s)
    queue = binned(line.times, line.queue_jobs, queue_edges)
    busy_edges, busy = metrics.utilization_by_bin(line, busy_bin_s)
    by_area = metrics.wait_area_curve(jobs)
    keep = thinned(by_area.area)
    area = by_area.area[keep].astype(np.float64)
    at = rising(int(jobs.wait.max(initial=0)))
    return Curves(
        policy=policy,
        waits=Line(at.astype(np.float64), share_up_to(jobs.wait, at)),
        queue=Line(middles(queue_edges), queue),
        queue_bin_s=queue_bin_s,
        busy=Line(middles(busy_edges), busy),
        busy_bin_s=busy_bin_s,
        job_share=Line(area, by_area.job_fraction[keep]),
        area_share=Line(area, by_area.area_fraction[keep]),
        wait_area=Line(area, by_area.wait_area[keep]),
        wait_map=wait_map(jobs, like.wait_map.sizes if like else size_rows(jobs.size)),
    )


def binned(times: Ints, values: Ints, at: Ints) -> Floats:
    """The mean of a step function within each bin: exact areas under it, divided by the lengths of the bins."""
    if len(at) < 2:
        return np.empty(0)
    means: Floats = (areas(times, values, at) / np.diff(at)).astype(np.float64)
    return means


def middles(at: Ints) -> Floats:
    """The middle of each bin, in seconds since the first edge."""
    return (at[:-1] + at[1:]) / 2 - at[0] if len(at) else np.empty(0)


def rising(top: int) -> Ints:
    """0, and whole numbers from 1 to `top` that lie evenly on a logarithmic axis, each once."""
    if top < 1:
        return np.zeros(1, np.int64)
    return np.unique(np.append(0, np.rint(np.geomspace(1, top, POINTS))).astype(np.int64))


def share_up_to(values: Ints, at: Ints) -> Floats:
    """The share of the values that are at most `at`."""
    return np.searchsorted(np.sort(values), at, side="right") / max(len(values), 1)


def thinned(area: Ints) -> Ints:
    """Positions in a rising array, evenly spread on a logarithmic axis; the first and the last are among them."""
    if len(area) <= POINTS:
        return np.arange(len(area))
    wanted = np.geomspace(max(int(area[0]), 1), int(area[-1]), POINTS)
    return np.unique(np.append(np.searchsorted(area, wanted).clip(0, len(area) - 1), [0, len(area) - 1]))


def size_rows(size: Ints) -> tuple[int, ...]:
    """The least size of each row of a wait map: 1, then each power of two, plus 1; on wide machines, of four."""
    top = int(size.max(initial=1))
    factor = 2
    while 1 + len(_powers(factor, top)) > MOST_SIZES:
        factor *= 2
    return (1, *(power + 1 for power in _powers(factor, top)))


def _powers(factor: int, top: int) -> list[int]:
    found, power = [], 1
    while power < top:
        found.append(power)
        power *= factor
    return found


def wait_map(jobs: Outcomes, sizes: tuple[int, ...]) -> WaitMap:
    """Mean wait by size and run time."""
    row = np.searchsorted(sizes, jobs.size, side="right") - 1
    column = np.searchsorted(RUNTIMES, jobs.runtime, side="right") - 1
    cell, shape = row * len(RUNTIMES) + column, (len(sizes), len(RUNTIMES))
    count = np.bincount(cell, minlength=shape[0] * shape[1])
    total = np.bincount(cell, weights=jobs.wait, minlength=shape[0] * shape[1])
    mean = np.divide(total, count, out=np.full(len(count), np.nan), where=count > 0)
    return WaitMap(sizes, mean.reshape(shape), count.reshape(shape))
