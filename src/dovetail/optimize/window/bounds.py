"""Values that no schedule can beat, for one pass and for a whole workload.

All of them relax the machine to a fluid: work may be cut, moved and done by any number of processors, as long as no
more is done in a second than processors are free. Let W(t) be the work done by t in some schedule, A(t) the work
that could have been done by t if each job had the machine for itself (from its earliest fit, at the rate of its
size). Then W(t) <= A(t), and what is done from u to t is at most C(u, t), the capacity between them; so
W(t) <= min over u of A(u) + C(u, t). The right side is what a server leaves behind that is handed the work of A
and works whenever there is any; its backlog is q = A - W. Less work done by every instant means work done later:
the integral of t dW is the integral of t dA, plus the integral of A - W, so at least that of q.

**Weighted sums of ends.** For a real job, at work at the constant rate r from start to end, the integral of t dW is
r E (end - E/2). So a sum of area times end is, up to a constant of the jobs, an integral of t dW; and any other
weighted sum of ends is a sum of such integrals: with the jobs in falling order of weight per area d_1 >= d_2 >= ...,
it is the sum over k of (d_k - d_(k+1)) times the integral for the first k jobs alone (Goemans and others: mean busy
times). `_weighted_delay` adds that up, over fewer layers where there are many jobs.

**PaSF of level a** is the mean of age by age^a over all units of computation; the age of a unit is the span from its
job's arrival to its doing. In a schedule of value v the sum of age^(a+1) - v age^a is 0. That term falls up to the age
y = v a/(a+1) and is convex and rising beyond. So it is at least its value at max(age, y), a function h of the age that
never falls and is convex. Therefore a multiset of ages (a *measure*) that makes the sum of every such h no larger than
any schedule does proves this: v is at least the root v' of "the sum of h over the measure is 0", which is the PaSF of
the measure with all ages below y raised to y, y itself by v' (`_least_pasf`). Two such measures are known:

- each job alone, from its earliest fit: no unit of any schedule is younger;
- the k-th unit of work by arrival matched with the k-th unit that the server above does. A schedule does its k-th unit
  no earlier than the server. And among all ways to match arrivals with instants of doing, the one in which both rise
  makes a sum of convex functions of their differences least: swapping two that cross never raises it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from heapq import heappop, heappush
from math import fsum, nan
from typing import Final, NamedTuple

import numpy as np

from dovetail.arrays import Floats, Ints, Mask
from dovetail.model.workload import Workload
from dovetail.optimize.window.objective import Af, Awf, Bsld, Lines, Makespan, Objective, Pasf, PerJob, Sum, power_gap
from dovetail.optimize.window.problem import Problem, alone

LAYERS: Final = 100
"""Sums of more layers than this are bounded from below by this many: each costs a walk over all jobs."""


def lower_bound(problem: Problem, objective: Objective) -> float:
    """A value that no schedule of the problem can beat; nan where none is known (no jobs, numbers too large)."""
    if not len(problem) or not _countable(problem):
        return nan
    if isinstance(objective, Sum):
        return fsum(weight * lower_bound(problem, part) for weight, part in objective.parts)
    first = problem.earliest if len(problem.times) == 1 else alone(problem)
    if isinstance(objective, Makespan):
        last_end = max(int((first + problem.estimate).max()), _done_at(problem, int(first.min())))
        return float(last_end - problem.arrive.min())
    if isinstance(objective, PerJob):
        return _per_job(problem, objective.lines(problem), first)
    if isinstance(objective, Pasf):
        wait = (first - problem.arrive).astype(np.float64)
        by_itself = Ages(wait, wait + problem.estimate, problem.size.astype(np.float64))
        return max(_least_pasf(ages, objective.level) for ages in (by_itself, _matched(problem, first)))
    return nan


ROUNDING: Final = 1e-14
"""Bounds of a workload are lowered by this share: more than the rounding of all that is added up."""


def workload_bounds(workload: Workload) -> dict[str, float]:
    """By metric (`af_s`, `awf_s`, `bsld`, `p2sf_s`): no policy, whatever it knows, is below it on this workload.

    The workload is one problem: an empty cluster, each job from its submit on, as long as it ran. So the metrics must
    be over all jobs, with arrivals at the submits. Jobs that ran 0 s use nothing: they add a response of at least 0
    to AF, a slowdown of at least 1 to BSLD, and are in no other sum. nan where there is nothing to measure.
    """
    problem, jobs = _offline(workload), len(workload)
    if not jobs:
        return dict.fromkeys(("af_s", "awf_s", "bsld", "p2sf_s"), nan)
    short = jobs - len(problem)
    af, bsld = ((len(problem) * lower_bound(problem, each) if len(problem) else 0.0) for each in (Af(), Bsld()))
    awf, p2sf = (lower_bound(problem, each) for each in (Awf(), Pasf(2)))
    found = {"af_s": af / jobs, "awf_s": awf, "bsld": (bsld + short) / jobs, "p2sf_s": p2sf}
    return {metric: value * (1 - ROUNDING) for metric, value in found.items()}


def awf_bound_s(workload: Workload, *, by_size: bool = False) -> float:
    """No schedule of the workload, whatever it knows, has a lower AWF. Arrivals are the submits; jobs as they ran.

    AWF is the mean of end - submit by area. Each job's work has its mean instant at end - D/2 (run time D), so the
    sum of area x end is the integral of t dW plus the sum of area x D/2; the second belongs to the jobs alone.
    The first is least if the machine works at its full rate whenever work that was submitted is left: then as
    much as can be has been done by every instant (the module's text). That is the plain fluid bound: work is
    handed in at once at its submit. With `by_size` a job is handed in at the rate of its size over its run time,
    as no schedule can do it faster; that bound is never lower, and a good deal higher on real logs.
    """
    if by_size:
        return lower_bound(_offline(workload), Awf())
    _check(workload)
    area, since = workload.size * workload.runtime, workload.submit - workload.submit[:1]
    total = int(area.sum())
    if not total or workload.processors * (int(workload.runtime.sum()) + workload.span_s) >= 2**63:
        return nan  # nothing to do, or more than 64 bits hold
    # Work done in order of submit: in front of each job stands the backlog, and on average half of its own work.
    level = np.cumsum(area) - area - workload.processors * since
    backlog = level - np.minimum.accumulate(level)
    return fsum(area * ((backlog + area / 2) / workload.processors + workload.runtime / 2)) / total


def _check(workload: Workload) -> None:
    fits = (workload.size >= 1) & (workload.size <= workload.processors)
    if not bool(np.all(fits & (workload.runtime >= 0))):
        raise ValueError(f"{workload.name!r} has jobs of unknown run time or that do not fit: filter them out first")
    if not workload.comes_and_stays:
        raise ValueError(f"{workload.name!r} has jobs that come later than their submits, or leave: no bound is known")


def _offline(workload: Workload) -> Problem:
    """A workload as one problem, without the jobs that ran 0 s."""
    _check(workload)
    some = workload.runtime > 0
    submit, capacity = workload.submit[some], workload.processors
    now = int(submit[0]) if len(submit) else 0
    return Problem(
        now, capacity, np.array([now]), np.array([capacity]), submit, workload.size[some], workload.runtime[some]
    )


def _countable(problem: Problem) -> bool:
    """Whether all work, and all capacity up to the last instant that matters, are whole numbers that a double holds."""
    span = int(max(problem.times[-1], (problem.earliest + problem.estimate).max())) - problem.now
    return max(problem.processors * span, float(np.dot(problem.size.astype(float), problem.estimate))) < 2**52


def _per_job(problem: Problem, lines: Lines, first: Ints) -> float:
    """The better of two: all flat beginnings ignored; or jobs that are still flat at their earliest left out."""
    at_first = lines.zero + lines.slope * (first - problem.arrive)
    rising = at_first >= lines.floor
    only_rising = fsum(np.maximum(at_first, lines.floor)) + _weighted_delay(problem, lines.slope, first, rising)
    if bool(rising.all()):
        return only_rising
    everyone = np.ones_like(rising)
    return max(only_rising, fsum(at_first) + _weighted_delay(problem, lines.slope, first, everyone))


def _weighted_delay(problem: Problem, weight: Floats, first: Ints, among: Mask) -> float:
    """At least the sum of weight x (start - earliest fit) over the jobs `among`.

    The sum over layers is the integral, over d, of the backlog of all jobs of a density of at least d: a function of d
    that never rises. So the least value on each of a few intervals of d, times its length, adds up to no more.
    """
    jobs = np.flatnonzero(among & (weight > 0))
    if not len(jobs):
        return 0.0
    density = weight[jobs] / problem.area[jobs]
    order = np.argsort(-density, kind="stable")
    jobs, density = jobs[order], density[order]
    fluid = _Fluid.of(problem, first[jobs], jobs)
    last = np.flatnonzero(np.append(np.diff(density) < 0, True))  # of the jobs of one density
    return _least_integral(density[last], lambda level: fluid.backlog(int(last[level]) + 1))


def _least_integral(levels: Floats, value: Callable[[int], float]) -> float:
    """At most the sum over i of (levels[i] - levels[i + 1]) x value(i), where levels fall to 0 and values never fall.

    Exact for up to LAYERS levels. Beyond that the interval that may lose most is halved, again and again.
    """
    found = {level: value(level) for level in {0, len(levels) - 1}}
    lossy: list[tuple[float, int, int]] = []

    def look(left: int, right: int) -> None:
        if right - left > 1:
            heappush(lossy, (-(levels[left] - levels[right]) * (found[right] - found[left]), left, right))

    look(0, len(levels) - 1)
    while lossy and len(found) < LAYERS:
        _, left, right = heappop(lossy)
        middle = np.sqrt(levels[left]) * np.sqrt(levels[right])  # densities span many powers of ten
        between = min(max(int(np.searchsorted(-levels, -middle)), left + 1), right - 1)
        found[between] = value(between)
        look(left, between)
        look(between, right)
    known = sorted(found)
    below = [*levels[known[1:]].tolist(), 0.0]
    return fsum((float(levels[level]) - after) * found[level] for level, after in zip(known, below, strict=True))


def _done_at(problem: Problem, begin: int) -> int:
    """The first second at which all work can be done, if all processors that are free from `begin` on are used."""
    left = int(problem.area.sum())
    ends: list[int | None] = [*problem.times[1:].tolist(), None]
    for at, until, free in zip(problem.times.tolist(), ends, problem.free.tolist(), strict=True):
        since = max(int(at), begin)
        if free and (until is None or since + -(-left // free) <= until):
            return since + -(-left // int(free))
        left -= free * max((until or since) - since, 0)
    raise AssertionError("the last capacity of a problem is above 0")


@dataclass(frozen=True)
class _Fluid:
    """The server of the module's text: jobs handed in at the rate of their size, and whatever is free works on them.

    Between two neighbours of `instants` nothing changes but the backlog, which is a line, or a line down to 0.
    """

    instants: Ints
    capacity: Ints
    begin: Ints
    """Where in `instants` each job begins to be handed in."""
    end: Ints
    size: Ints

    @classmethod
    def of(cls, problem: Problem, first: Ints, jobs: Ints) -> _Fluid:
        """The given jobs of a problem, each handed in from its earliest fit."""
        size, length = problem.size[jobs], problem.estimate[jobs]
        instants, at = np.unique(np.concatenate([first, first + length, problem.times]), return_inverse=True)
        capacity = problem.free[np.searchsorted(problem.times, instants, side="right") - 1]
        return cls(instants, capacity, at[: len(jobs)], at[len(jobs) : 2 * len(jobs)], size)

    def flow(self, jobs: int) -> tuple[Ints, Ints]:
        """Of the first `jobs` jobs: what is handed in per second from each instant on, and the backlog there."""
        n, size = len(self.instants), self.size[:jobs]
        more, less = (np.bincount(at[:jobs], size, n).astype(np.int64) for at in (self.begin, self.end))
        rate = np.cumsum(more - less)
        level = np.cumsum((rate - self.capacity)[:-1] * np.diff(self.instants))
        level = np.concatenate([[0], level])
        return rate, level - np.minimum.accumulate(level)

    def backlog(self, jobs: int) -> float:
        """The integral of the backlog of the first `jobs` jobs, in area x seconds."""
        rate, backlog = self.flow(jobs)
        length, falls = np.diff(self.instants), (self.capacity - rate)[:-1]
        before = backlog[:-1].astype(np.float64)
        after = before - falls * length
        empties = after < 0  # within its interval: a triangle
        lines = (before + after) * length
        lines[empties] = before[empties] ** 2 / falls[empties]
        return float(lines.sum() + float(backlog[-1]) ** 2 / float(self.capacity[-1])) / 2

    def done(self) -> tuple[Floats, Floats]:
        """The work that is done by each of some instants, both rising; between them it is a line."""
        rate, backlog = self.flow(len(self.size))
        length, falls = np.diff(self.instants), (self.capacity - rate)[:-1]
        handed = np.concatenate([[0], np.cumsum(rate[:-1] * length)])
        falls, length = np.append(falls, self.capacity[-1]), np.append(length, np.iinfo(np.int64).max)
        empties = np.flatnonzero((backlog > 0) & (backlog < falls * length.astype(np.float64)))
        empty_at = self.instants[empties] + backlog[empties] / falls[empties]
        by_then = handed[empties] + rate[empties] * (backlog[empties] / falls[empties])
        instants, work = np.concatenate([self.instants, empty_at]), np.concatenate([handed - backlog, by_then])
        order = np.lexsort((work, instants))
        return instants[order], np.maximum.accumulate(work[order])


class Ages(NamedTuple):
    """A measure of the ages of units of computation: from `low` to `high` at a constant rate, piece by piece."""

    low: Floats
    high: Floats
    rate: Floats


def _matched(problem: Problem, first: Ints) -> Ages:
    """The k-th unit of work by arrival, matched with the k-th that the server does."""
    jobs = np.argsort(problem.arrive, kind="stable")
    instants, work = _Fluid.of(problem, first[jobs], jobs).done()
    arrived = np.cumsum(problem.area[jobs])
    edges = np.unique(np.concatenate([work, arrived]))
    line = np.searchsorted(work, edges[:-1], side="right") - 1
    slowness = (instants[line + 1] - instants[line]) / (work[line + 1] - work[line])
    since = instants[line] - problem.arrive[jobs[np.searchsorted(arrived, edges[:-1], side="right")]]
    low, high = (np.maximum(since + (edge - work[line]) * slowness, 0) for edge in (edges[:-1], edges[1:]))
    wide = high > low  # not so where two edges are one but for rounding
    return Ages(low[wide], high[wide], np.diff(edges)[wide] / (high - low)[wide])


def _least_pasf(ages: Ages, level: float) -> float:
    """The PaSF of a measure whose ages below y = level / (level + 1) x that PaSF are raised to y.

    The sum of h (the module's text) is concave in v, as it is the least of lines, and falls. From above its root, a
    Newton step leads to the PaSF of the measure raised for the last v, and never below the root.
    """
    scale = float(ages.high.max())
    low, high = ages.low / scale, ages.high / scale
    found, last = 1.0, 2.0
    while found < last * (1 - 1e-14):
        last, raised = found, found * level / (level + 1)
        from_age, to_age = np.maximum(low, raised), np.maximum(high, raised)
        young = float((ages.rate * (np.minimum(high, raised) - np.minimum(low, raised))).sum())
        over, under = (
            float((ages.rate * power_gap(from_age, to_age - from_age, level + m)).sum()) / (level + m) for m in (2, 1)
        )
        found = (over + young * raised ** (level + 1)) / (under + young * raised**level)
    return scale * found
