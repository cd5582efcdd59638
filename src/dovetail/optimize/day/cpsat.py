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
from dovetail.optimize.day.problem import Day, Placer, Searched

Count = cp_model.IntVar | int

_FAR: Final = 2**40

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
    inside = inside[day.earliest[inside] < day.end]
    fixed = np.full(day.jobs, -1, np.int64)
    if begin is not None:
        fixed[:] = begin.starts
    placer = Placer(day)
    # A job that is not planned for today is planned for later, as in the paper: a plan that ends late enough.
    settled = np.flatnonzero(fixed >= 0)
    later = placer.place(np.union1d(inside, settled), fixed=fixed, until=_FAR)
    horizon = int((later + day.length[: day.jobs])[inside].max(initial=day.end))
    fixed[inside] = -1
    model, times = cp_model.CpModel(), day.segments.times.tolist()
    starts: dict[int, cp_model.IntVar] = {}
    done: dict[int, list[Count]] = {}
    intervals, rows = [], []

    def occupy(at: Count, job: int) -> None:
        intervals.append(model.new_fixed_size_interval_var(at, int(day.length[job]), ""))
        rows.append(job)

    for job in inside.tolist():
        first, length = int(day.earliest[job]), int(day.length[job])
        starts[job] = at = model.new_int_var(first, horizon, "")
        occupy(at, job)
        done[job] = []
        for border in times[1:]:  # seconds run until then
            ran: Count = 0
            if border > first:
                since, ran = (model.new_int_var(0, most, "") for most in (border - first, min(length, border - first)))
                model.add_max_equality(since, [border - at, 0])
                model.add_min_equality(ran, [since, length])
            done[job].append(ran)
    begins = np.concatenate([fixed, day.earliest[day.jobs :]])
    for job in np.flatnonzero(begins >= 0).tolist():
        at_once = int(begins[job])
        occupy(at_once, job)
        done[job] = [min(max(border - at_once, 0), int(day.length[job])) for border in times[1:]]
    model.add_cumulative(intervals, day.size[rows].tolist(), day.processors)
    if day.room_mw >= 0:
        model.add_cumulative(intervals, day.draw_mw[rows].tolist(), day.room_mw)
    _maximise(model, day, done)
    model.add_decision_strategy(list(starts.values()), cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE)
    if begin is not None:
        for job, at in starts.items():
            model.add_hint(at, int(later[job]))
    solver, best = cp_model.CpSolver(), _Best(begun)
    solver.parameters.num_workers = 1
    # The rest finds a first plan sooner, or at all: one round of presolving without probing, no linear relaxation, and
    # the earliest start first among what is tried.
    solver.parameters.search_branching = cp_model.PORTFOLIO_SEARCH
    solver.parameters.linearization_level = 0
    solver.parameters.symmetry_level = 0
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.max_presolve_iterations = 1
    solver.parameters.random_seed = seed % 2**31
    solver.parameters.max_deterministic_time = deterministic_s
    status = solver.solve(model, best)
    spent = process_time() - begun
    if status not in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return None if begin is None else replace(begin, begun_with=begin.profit, cpu_s=spent, best_cpu_s=0.0)
    found = fixed
    for job, at in starts.items():
        value = solver.value(at)
        found[job] = value if value < day.end else -1
    profit, order = day.profit(found), np.argsort(np.where(found < 0, day.end, found), kind="stable")
    if begin is not None and profit <= begin.profit:
        return replace(begin, begun_with=begin.profit, cpu_s=spent, best_cpu_s=0.0)
    return Searched(found, profit, order, -np.inf if begin is None else begin.profit, spent, best.cpu_s)


def _maximise(model: cp_model.CpModel, day: Day, done: dict[int, list[Count]]) -> None:
    """Equation 3, in whole numbers: what jobs earn less their energy, and less that of cooling at a load that is
    rounded, as in the table. `done`: seconds that each job has run until the end of each segment."""
    scale = _SCALE / max(day.earns * day.processors * (day.end - day.begin), 1e-9)
    step_mw = STEP_W * 1000
    idle_mw = day.processors * day.site.rest_mw
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
