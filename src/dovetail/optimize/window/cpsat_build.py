"""One CP-SAT model: intervals on one cumulative, costs in scaled integers, and what its answer means.

Importing this loads OR-Tools.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import floor, fsum
from typing import Any, Final

import numpy as np
from ortools.sat.python import cp_model

from dovetail.arrays import Floats, Ints
from dovetail.optimize.window.cpsat_costs import Costs, Ratio
from dovetail.optimize.window.cpsat_grid import coarsened
from dovetail.optimize.window.problem import Problem, alone, check, decode

POINTS: Final = 200
"""Most starts of a job for which PaSF gets a table of its costs; beyond that tangents bound them from below."""

_TANGENTS: Final = 12
_SCALE: Final = 2**40  # the span of the costs in integers; n of them stay far below 2^63


@dataclass(frozen=True)
class Frame:
    """Where the jobs may start, in units from now, so that no better schedule is excluded.

    `known` is a schedule of the coarse problem, None where none is at hand. `least` is the cost that no job falls
    below, `room` how much more than the sum of these a schedule may cost that is at least as good as the known one.
    """

    problem: Problem
    coarse: Problem
    unit: int
    known: Ints | None
    low: Ints
    high: Ints
    least: Floats
    last_end: int
    room: float

    @property
    def widest(self) -> int:
        """How many starts the job has that has the most."""
        return int((self.high - self.low).max()) + 1

    def starts(self, units: Ints) -> Ints:
        """Instants, from units."""
        return self.problem.now + self.unit * units


def framed(problem: Problem, costs: Costs, known: Ints | None, unit: int) -> Frame:
    """The frame for a unit, from the schedule `known` of the problem."""
    coarse = coarsened(problem, unit)
    units: Ints | None = None
    if known is not None:
        units = known - problem.now if unit == 1 else decode(coarse, np.argsort(known, kind="stable").tolist())
        units = None if check(coarse, units) else units
    low = alone(coarse)
    # After its own instant a job's cost only grows, and after `calm` so do all, with all that is ever free: shifted to
    # the left, the jobs after `calm` start within the sum of their estimates.
    grows = (problem.arrive - problem.now + costs.grows_after_s) // unit + 1 if costs.ratios else low
    calm = max(int(coarse.times[-1]), int(low.max()), int(grows.max()))
    top = np.minimum(np.full(len(problem), calm + int(coarse.estimate.sum())), coarse.latest)
    least = costs.least(problem, problem.now + unit * low)
    last_end = int((low + coarse.estimate).max())
    high = np.maximum(top, low)
    worst = high if units is None else units
    spent = fsum(costs.at(problem, (problem.now + unit * worst)[:, None])[:, 0])
    spent += costs.makespan * unit * (int((worst + coarse.estimate).max()) - last_end)
    room = max(spent - fsum(least), 0.0) * (1 + 1e-9)
    high = _furthest(problem, costs, unit, np.clip(grows, low, high), high, least + room)
    return Frame(problem, coarse, unit, units, low, np.minimum(high, top), least, last_end, room)


def _furthest(problem: Problem, costs: Costs, unit: int, begin: Ints, end: Ints, cap: Floats) -> Ints:
    """The last start from `begin` to `end` at which each job costs no more than its cap; `begin` if there is none."""
    good, bad = begin.copy(), end + 1
    while bool(np.any(bad - good > 1)):
        middle = (good + bad) // 2
        fine = costs.at(problem, (problem.now + unit * middle)[:, None])[:, 0] <= cap
        good, bad = np.where(fine, middle, good), np.where(fine, bad, middle)
    return good


@dataclass(frozen=True)
class Answer:
    """What CP-SAT says of one model. `units` is None where it found no schedule."""

    units: Ints | None
    bound: float
    """No schedule costs less (in the coarse problem, if the unit is above 1 s)."""
    optimal: bool
    infeasible: bool
    deterministic_s: float


def run(frame: Frame, costs: Costs, *, deterministic_s: float, seed: int) -> Answer:
    """Build the model and let CP-SAT search, `deterministic_s` at most by its own count: same call, same answer."""
    if bool(np.any(frame.high < frame.low)):
        return Answer(None, -np.inf, False, True, 0.0)
    model = cp_model.CpModel()
    starts = [
        model.new_int_var(low, high, f"start_{job}")
        for job, (low, high) in enumerate(zip(frame.low.tolist(), frame.high.tolist(), strict=True))
    ]
    _add_capacity(model, frame, starts)
    for start, hint in zip(starts, [] if frame.known is None else frame.known.tolist(), strict=False):
        model.add_hint(start, hint)
    if exact := costs.ratios and frame.widest <= POINTS:
        terms, scale, base = _tables(model, frame, costs, starts)
    else:
        scale, base = _SCALE / frame.room if frame.room > 0 else 1.0, fsum(frame.least)
        terms = _lines(model, frame, costs, starts, scale) + _tangents(model, frame, costs, starts, scale)
    if costs.makespan:
        terms.append(_makespan(model, frame, costs.makespan * scale, starts))
    model.minimize(sum(terms))
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed
    solver.parameters.max_deterministic_time = deterministic_s
    status = solver.solve(model)
    found = status in (cp_model.OPTIMAL, cp_model.FEASIBLE)
    return Answer(
        np.array([solver.value(start) for start in starts], np.int64) if found else None,
        base + solver.best_objective_bound / scale if found or status == cp_model.UNKNOWN else -np.inf,
        status == cp_model.OPTIMAL and (exact or not costs.ratios),
        status == cp_model.INFEASIBLE,
        float(solver.response_proto.deterministic_time),
    )


def _add_capacity(model: cp_model.CpModel, frame: Frame, starts: list[Any]) -> None:
    """The jobs, and what is not free as fixed intervals, on one cumulative of the most that is ever free."""
    coarse = frame.coarse
    most, end = int(coarse.free.max()), int((frame.high + coarse.estimate).max())
    lengths = coarse.estimate.tolist()
    blocks = [model.new_fixed_size_interval_var(at, long, "") for at, long in zip(starts, lengths, strict=True)]
    demands = coarse.size.tolist()
    ends = [*coarse.times[1:].tolist(), max(end, int(coarse.times[-1]) + 1)]
    for begin, until, free in zip(coarse.times.tolist(), ends, coarse.free.tolist(), strict=True):
        if free < most:
            blocks.append(model.new_fixed_size_interval_var(begin, until - begin, ""))
            demands.append(most - free)
    model.add_cumulative(blocks, demands, most)


# Costs are counted above the least of each job, scaled, and rounded down: so a bound of the model is a bound.


def _lines(model: cp_model.CpModel, frame: Frame, costs: Costs, starts: list[Any], scale: float) -> list[Any]:
    """Each line as a slope times the start; one that begins flat as a variable above it."""
    problem, terms = frame.problem, []
    wait = frame.starts(frame.low) - problem.arrive
    for slopes, zero, flat in costs.lines:
        rise = zero + slopes * wait - flat  # below 0 while the cost is flat
        for job, start in enumerate(starts):
            slope, low, high = floor(slopes[job] * frame.unit * scale), int(frame.low[job]), int(frame.high[job])
            if not slope:
                continue
            if rise[job] >= 0:
                terms.append(slope * (start - low))
                continue
            begin = floor(rise[job] * scale)
            above = model.new_int_var(0, max(begin + slope * (high - low), 0), "")
            model.add(above >= slope * (start - low) + begin)
            terms.append(above)
            if frame.known is not None:
                model.add_hint(above, max(begin + slope * (int(frame.known[job]) - low), 0))
    return terms


def _tables(model: cp_model.CpModel, frame: Frame, costs: Costs, starts: list[Any]) -> tuple[list[Any], float, float]:
    """One table of costs per job, an element for each start that may lead to something better; scale and base."""
    width = frame.high - frame.low + 1
    units = frame.low[:, None] + np.arange(int(width.max()))
    cost = costs.at(frame.problem, frame.starts(units))
    cost[units > frame.high[:, None]] = np.inf
    least = cost.min(axis=1)
    room = max(frame.room - fsum(least - frame.least), 0.0) + 1e-9 * frame.room
    scale = _SCALE / room if room > 0 else 1.0
    terms = []
    for job, start in enumerate(starts):
        above = cost[job, : width[job]] - least[job]
        kept = above <= room
        if frame.known is not None:
            kept[frame.known[job] - frame.low[job]] = True  # whatever rounding says
        values = np.floor(np.minimum(above, room) * scale).astype(np.int64).tolist()
        allowed = (int(frame.low[job]) + np.flatnonzero(kept)).tolist()
        model.add_linear_expression_in_domain(start, cp_model.Domain.from_values(allowed))
        target = model.new_int_var(0, max(values), "")
        model.add_element(start - int(frame.low[job]), values, target)
        terms.append(target)
        if frame.known is not None:
            model.add_hint(target, values[int(frame.known[job] - frame.low[job])])
    return terms, scale, fsum(least)


def _tangents(model: cp_model.CpModel, frame: Frame, costs: Costs, starts: list[Any], scale: float) -> list[Any]:
    """The costs of PaSF from below: a variable per job above a few tangents."""
    terms = []
    for ratio in costs.ratios:
        for job, (start, tangents) in enumerate(zip(starts, tangent_lines(frame, ratio), strict=True)):
            low, above = int(frame.low[job]), model.new_int_var(0, 2 * _SCALE, "")
            lines = [(floor(slope * scale), floor(height * scale)) for slope, height in tangents]
            for slope, height in lines:
                model.add(above >= slope * (start - low) + height)
            terms.append(above)
            if frame.known is not None:
                ahead = int(frame.known[job]) - low
                model.add_hint(above, max([0, *(slope * ahead + height for slope, height in lines)]))
    return terms


def tangent_lines(frame: Frame, ratio: Ratio) -> list[list[tuple[float, float]]]:
    """For each job lines that are nowhere above its cost (less its least): slope per unit, height at its first start.

    Where the cost is convex, a tangent is below it, from there on and back to where it is concave; and a concave
    cost is above a line if its two ends are. So a tangent that is not above the cost at the first start is below it
    everywhere; one that is, is moved down. One of them is the tangent at the known start.
    """
    problem, low = frame.problem, frame.low[:, None]
    share = np.linspace(0, 1, _TANGENTS) ** 2  # closer where jobs can start soon
    units = low + ((frame.high[:, None] - low) * share).astype(np.int64)
    if frame.known is not None:
        units = np.concatenate([units, frame.known[:, None]], axis=1)
    wait = frame.starts(units) - problem.arrive[:, None]
    slope = ratio.slope(problem, wait) * frame.unit
    height = ratio.at(problem, wait) - ratio.least(problem, frame.starts(frame.low))[:, None]
    at_low = np.minimum(height - slope * (units - low), height[:, :1])
    convex = wait >= ratio.convex_after_s
    return [
        list(zip(slope[job, fine].tolist(), at_low[job, fine].tolist(), strict=True)) for job, fine in enumerate(convex)
    ]


def _makespan(model: cp_model.CpModel, frame: Frame, weight: float, starts: list[Any]) -> Any:
    """The last end, counted from the least that it can be."""
    lengths = frame.coarse.estimate.tolist()
    last = model.new_int_var(frame.last_end, int((frame.high + frame.coarse.estimate).max()), "last_end")
    for start, length in zip(starts, lengths, strict=True):
        model.add(last >= start + length)
    if frame.known is not None:
        model.add_hint(last, int((frame.known + frame.coarse.estimate).max()))
    return floor(weight * frame.unit) * (last - frame.last_end)
