"""Values that no schedule can beat.

All of them relax the machine to a fluid: work may be cut, moved and done by any number of processors, as long as no
more is done in a second than processors are free. Let W(t) be the work done by t in some schedule, A(t) the work
that could have been done by t if each job had the machine for itself (from its earliest fit, at the rate of its
size). Then W(t) <= A(t), and what is done from u to t is at most C(u, t), the capacity between them; so
W(t) <= min over u of A(u) + C(u, t). The right side is what a server leaves behind that is handed the work of A
and works whenever there is any; its backlog is q = A - W. Less work done by every instant means work done later:
the integral of t dW is the integral of t dA, plus the integral of A - W, so at least that of q.

For a real job, at work at the constant rate r from start to end, the integral of t dW is r E (end - E/2). So a sum
of area times end is, up to a constant of the jobs, an integral of t dW; and any other weighted sum of ends is a sum of
such integrals: with the jobs in falling order of weight per area d_1 >= d_2 >= ..., it is the sum over k of
(d_k - d_(k+1)) times the integral for the first k jobs alone (Goemans and others: mean busy times).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import fsum, nan

import numpy as np
import numpy.typing as npt

from dovetail.model.workload import Ints, Workload
from dovetail.optimize.objective import Lines, Makespan, Objective, Pasf, PerJob, Sum
from dovetail.optimize.problem import Floats, Problem, alone

Mask = npt.NDArray[np.bool_]
Handed = list[tuple[int, int, int]]
"""Work that is handed in: from an instant, so much at once, and so much more (or less) per second."""


def lower_bound(problem: Problem, objective: Objective) -> float:
    """A value that no schedule of the problem can beat; nan where none is known (PaSF, no jobs)."""
    if not len(problem):
        return nan
    if isinstance(objective, Sum):
        return fsum(weight * lower_bound(problem, part) for weight, part in objective.parts)
    first = alone(problem)
    if isinstance(objective, Makespan):
        last_end = max(int((first + problem.estimate).max()), _done_at(problem, int(first.min())))
        return float(last_end - problem.arrive.min())
    if isinstance(objective, PerJob):
        return _per_job(problem, objective.lines(problem), first)
    if isinstance(objective, Pasf):
        return _per_job(problem, objective.level_0(problem), first)
    return nan


def _per_job(problem: Problem, lines: Lines, first: Ints) -> float:
    """The better of two: all flat beginnings ignored; or jobs that are still flat at their earliest left out."""
    at_first = lines.zero + lines.slope * (first - problem.arrive)
    rising = at_first >= lines.floor
    everyone = np.ones_like(rising)
    return max(
        fsum(at_first) + _weighted_delay(problem, lines.slope, first, everyone),
        fsum(np.maximum(at_first, lines.floor)) + _weighted_delay(problem, lines.slope, first, rising),
    )


def _weighted_delay(problem: Problem, weight: Floats, first: Ints, among: Mask) -> float:
    """At least the sum of weight x (start - earliest fit) over the jobs `among`."""
    density = weight / problem.area
    jobs = np.flatnonzero(among)
    jobs = jobs[np.argsort(-density[jobs], kind="stable")]
    steps = list(zip(problem.times.tolist(), problem.free.tolist(), strict=True))
    parts = []
    for k in range(len(jobs)):
        below = density[jobs[k + 1]] if k + 1 < len(jobs) else 0.0
        if density[jobs[k]] > below:
            some = jobs[: k + 1]
            handed = _at_rates(first[some], problem.size[some], problem.estimate[some])
            parts.append((density[jobs[k]] - below) * _backlog(steps, handed))
    return fsum(parts)


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


def awf_bound_s(workload: Workload, *, by_size: bool = False) -> float:
    """No schedule of the workload, whatever it knows, has a lower AWF. Arrivals are the submits; jobs as they ran.

    AWF is the mean of end - submit by area. Each job's work has its mean instant at end - D/2 (run time D), so the
    sum of area x end is the integral of t dW plus the sum of area x D/2; the second belongs to the jobs alone.
    The first is least if the machine works at its full rate whenever work that was submitted is left: then as
    much as can be has been done by every instant (the module's text). That is the plain fluid bound: work is
    handed in at once at its submit. With `by_size` a job is handed in at the rate of its size over its run time,
    as no schedule can do it faster; that bound is never lower, and a good deal higher on real logs.
    """
    runtime, size, submit = workload.runtime, workload.size, workload.submit
    if bool(np.any(runtime < 0)) or bool(np.any((size < 1) | (size > workload.processors))):
        raise ValueError(f"{workload.name!r} has jobs of unknown run time or that do not fit: filter them out first")
    areas = (size * runtime).tolist()
    total: int = sum(areas)
    if not total:
        return nan
    # Handed in at once, the work's mean instant is its submit, and half of the run time is still to come.
    served = 2 if by_size else 1
    own: float = sum(area * length for area, length in zip(areas, runtime.tolist(), strict=True)) * served / 2
    if by_size:
        handed = _at_rates(submit, size, runtime)
    else:
        handed = [(at, area, 0) for at, area in zip(submit.tolist(), areas, strict=True)]
    return (own + _backlog([(int(submit[0]), workload.processors)], handed)) / total


def _at_rates(start: Ints, size: Ints, length: Ints) -> Handed:
    """Each job handed in at the rate of its size, from its start, for its length."""
    jobs = list(zip(start.tolist(), size.tolist(), length.tolist(), strict=True))
    return [(at, 0, rate) for at, rate, _ in jobs] + [(at + long, 0, -rate) for at, rate, long in jobs]


def _backlog(steps: Iterable[tuple[int, int]], handed: Handed) -> float:
    """The integral of the backlog of a server of that capacity (from an instant on, so much), in area x seconds.

    At the instants of the events the backlog is a whole number; between them it is a line, or a line down to 0.
    The last capacity is above 0, and in the end nothing more is handed in.
    """
    changes: dict[int, tuple[int, int, int | None]] = {at: (0, 0, capacity) for at, capacity in steps}
    for at, burst, rate in handed:
        known = changes.get(at, (0, 0, None))
        changes[at] = (known[0] + burst, known[1] + rate, known[2])
    instants = sorted(changes)
    backlog = rate = capacity = 0
    twice = 0  # exact: twice the integral where the line does not reach 0
    triangles = []
    for i, at in enumerate(instants):
        burst, more, new = changes[at]
        backlog, rate, capacity = backlog + burst, rate + more, capacity if new is None else new
        if i + 1 == len(instants):
            triangles.append(backlog * backlog / (2 * capacity))
            break
        left = backlog + (rate - capacity) * (instants[i + 1] - at)
        if left >= 0:
            twice += (backlog + left) * (instants[i + 1] - at)
        elif backlog:
            triangles.append(backlog * backlog / (2 * (capacity - rate)))
        backlog = max(left, 0)
    return twice / 2 + fsum(triangles)
