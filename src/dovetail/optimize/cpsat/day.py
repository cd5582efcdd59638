"""The day of the profit paper as a model for CP-SAT: its equations 2 to 5, over one pool of processors.

Importing this loads OR-Tools. The paper's model assigns every job unit to one of 300 nodes; a pool stands in for them.
Its RelaxationSearch fixes the nodes of jobs with several units and lets the default search move the rest, from the plan
of MultiSearch on; in a pool nothing is left of that but the search from this plan.
"""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from dovetail.energy.cooling import ONE, STEP_W
from dovetail.optimize.day import Day, Searched

Count = cp_model.IntVar | int

_SCALE: Final = 2**42
"""What a machine that is full all day earns, in the integers of the model."""


class _Best(cp_model.CpSolverSolutionCallback):
    """Remembers when the last solution was found."""

    def __init__(self, begun: float) -> None:
        super().__init__()
        self._begun, self.cpu_s = begun, 0.0

    def on_solution_callback(self) -> None:
        self.cpu_s = process_time() - self._begun


def solve_day(
    day: Day, begin: Searched | None, *, deterministic_s: float, window: int, seed: int = 0
) -> Searched | None:
    """The best plan that CP-SAT finds: from a plan on, which it must not fall below, or from nothing; None: it found no
    plan in time. `window` jobs are planned, the first in order of submission; those behind wait for tomorrow, or, with
    a plan to begin with, stay where they are in it."""
    begun = process_time()
    inside = np.argsort(day.earliest[: day.jobs], kind="stable")[:window]
    model, times = cp_model.CpModel(), day.segments.times.tolist()
    starts: dict[int, cp_model.IntVar] = {}
    there: dict[int, cp_model.IntVar] = {}
    done: dict[int, list[Count]] = {}
    intervals: list[cp_model.IntervalVar] = []
    sizes: list[int] = []
    draws: list[int] = []

    def occupy(at: cp_model.LinearExprT, length: int, job: int, present: cp_model.IntVar | None) -> None:
        end = at + length
        if present is None:
            intervals.append(model.new_fixed_size_interval_var(at, length, ""))
        else:
            intervals.append(model.new_optional_interval_var(at, length, end, present, ""))
        sizes.append(int(day.size[job]))
        draws.append(int(day.draw_mw[job]))

    for job in inside.tolist():
        if day.earliest[job] >= day.end:
            continue
        length = int(day.length[job])
        starts[job] = at = model.new_int_var(int(day.earliest[job]), day.end - 1, "")
        there[job] = present = model.new_bool_var("")
        occupy(at, length, job, present)
        ran: list[Count] = []  # seconds until each border
        for border in times[1:]:
            longest = border - int(day.earliest[job])
            if longest <= 0:
                ran.append(0)
                continue
            since, until = model.new_int_var(0, longest, ""), model.new_int_var(0, min(length, longest), "")
            model.add_max_equality(since, [border - at, 0])
            model.add_min_equality(until, [since, length])
            counted = model.new_int_var(0, min(length, longest), "")
            model.add(counted == until).only_enforce_if(present)
            model.add(counted == 0).only_enforce_if(~present)
            ran.append(counted)
        done[job] = ran
    fixed = [] if begin is None else [j for j in range(day.jobs) if j not in starts and begin.starts[j] >= 0]
    for job in [*fixed, *range(day.jobs, len(day.size))]:
        begins = int(day.earliest[job] if begin is None or job >= day.jobs else begin.starts[job])
        occupy(model.new_constant(begins), int(day.length[job]), job, None)
        done[job] = [min(max(border - begins, 0), int(day.length[job])) for border in times[1:]]
    model.add_cumulative(intervals, sizes, day.processors)
    if day.room_mw >= 0:
        model.add_cumulative(intervals, draws, day.room_mw)
    _maximise(model, day, done)
    if begin is not None:
        for job, at in starts.items():
            model.add_hint(there[job], int(begin.starts[job] >= 0))
            model.add_hint(at, int(begin.starts[job] if begin.starts[job] >= 0 else day.earliest[job]))
    solver, best = cp_model.CpSolver(), _Best(begun)
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.max_deterministic_time = deterministic_s
    status = solver.solve(model, best)
    spent = process_time() - begun
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None if begin is None else replace(begin, begun_with=begin.profit, cpu_s=spent, best_cpu_s=0.0)
    found = np.full(day.jobs, -1, np.int64)
    for job in fixed:
        found[job] = begin.starts[job]  # type: ignore[union-attr]
    for job, at in starts.items():
        if solver.boolean_value(there[job]):
            found[job] = solver.value(at)
    profit, order = day.profit(found), np.argsort(np.where(found < 0, day.end, found), kind="stable")
    if begin is not None and profit <= begin.profit:
        return replace(begin, begun_with=begin.profit, cpu_s=spent, best_cpu_s=0.0)
    return Searched(found, profit, order, -np.inf if begin is None else begin.profit, spent, best.cpu_s)


def _maximise(model: cp_model.CpModel, day: Day, done: dict[int, list[Count]]) -> None:
    """Equation 3, in whole numbers: what jobs earn less their energy, and less that of cooling at a load that is
    rounded, as in the table. `done`: seconds that each job has run until the end of each segment."""
    scale = _SCALE / max(day.earns * day.processors * (day.end - day.begin), 1e-9)
    step_mw = STEP_W * 1000
    idle_mw = day.processors * day.site.idle_mw
    most_mw = idle_mw + day.processors * int(np.max(-(-day.draw_mw // day.size), initial=0))
    rows = np.arange(most_mw // step_mw + 2, dtype=np.int64) * step_mw
    total: list[cp_model.LinearExprT] = []
    for s, price in enumerate(day.segments.price.tolist()):
        seconds = int(day.segments.times[s + 1] - day.segments.times[s])
        drawn: list[cp_model.LinearExprT] = [idle_mw * seconds]
        for job, ran in done.items():
            here: cp_model.LinearExprT = ran[s] - ran[s - 1] if s else ran[s]
            draw = int(day.draw_mw[job])
            total.append(round(scale * (day.earns * int(day.size[job]) - draw * price)) * here)
            drawn.append(draw * here)
        pue = day.site.cooling.at(rows, np.full(len(rows), day.segments.temperature_mc[s])) - ONE
        costs = np.rint(scale * rows * pue / ONE * seconds * price).astype(np.int64)
        row = model.new_int_var(0, len(rows) - 1, "")
        load = cp_model.LinearExpr.sum(drawn)
        model.add(2 * load <= (2 * row + 1) * step_mw * seconds)
        model.add(2 * load >= (2 * row - 1) * step_mw * seconds)
        cooling = model.new_int_var(int(costs.min()), int(costs.max()), "")
        model.add_element(row, costs.tolist(), cooling)
        total.append(-cooling)
    model.maximize(cp_model.LinearExpr.sum(total))
