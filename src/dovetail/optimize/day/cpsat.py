"""The day of the profit paper as a model for CP-SAT: its equations 2 to 6.

Importing this loads OR-Tools. On nodes the model is the paper's: a job unit is on one of them, and each node has a
cumulative of each resource. RelaxationSearch begins with the plan of MultiSearch (equation 6): jobs with several units
stay on the nodes that they have there, jobs with one may go to any other, and the start of every job may move. In a
pool nothing is left of that but the search from this plan.

What equation 6 leaves open: the nodes of a job that MultiSearch does not start today are those that the heuristic gives
it after midnight, in order of submission; and a job outside of the window keeps its start and its nodes.
"""

from __future__ import annotations

from dataclasses import replace
from time import process_time
from typing import Final

import numpy as np
from ortools.sat.python import cp_model

from dovetail.arrays import Ints
from dovetail.energy.cooling import ONE, STEP_W
from dovetail.model.requests import most_on_idle
from dovetail.optimize.day.problem import Day, OnNodes, Placer, Searched

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
    """The best plan that CP-SAT finds: from a plan on, which it must not fall below (RelaxationSearch), or from
    nothing; None: it found no plan in time. `window` jobs are planned, the first in order of submission; those behind
    wait for tomorrow, or, with a plan to begin with, stay where they are in it."""
    begun = process_time()
    inside = np.argsort(day.earliest[: day.jobs], kind="stable")[:window]
    inside = inside[day.earliest[inside] < day.end]
    fixed = np.full(day.jobs, -1, np.int64)
    where = None
    if begin is not None:
        fixed[:], where = begin.starts, begin.where
    placer = Placer(day)
    # A job that is not planned for today is planned for later, as in the paper: a plan that ends late enough.
    settled = np.flatnonzero(fixed >= 0)
    later = placer.place(np.union1d(inside, settled), fixed=fixed, until=_FAR, where=where)
    horizon = int((later + day.length[: day.jobs])[inside].max(initial=day.end))
    if day.on is not None:
        horizon += int(day.length[inside].sum())  # all of them may be put off
    fixed[inside] = -1
    model, times = cp_model.CpModel(), day.segments.times.tolist()
    starts: dict[int, cp_model.IntVar] = {}
    done: dict[int, list[Count]] = {}
    known: dict[int, int] = {}  # what variables are in the plan to begin with
    machine = _Pool(model, day) if day.on is None else _Nodes(model, day, day.on, placer.where)
    several = day.units > 1
    for job in inside.tolist():
        first, length = int(day.earliest[job]), int(day.length[job])
        starts[job] = at = model.new_int_var(first, horizon, "")
        machine.occupy(at, job, begin is None or not several[job])
        done[job] = []
        for border in times[1:]:  # seconds run until then
            ran: Count = 0
            if border > first:
                since, ran = (model.new_int_var(0, most, "") for most in (border - first, min(length, border - first)))
                model.add_max_equality(since, [border - at, 0])
                model.add_min_equality(ran, [since, length])
                known[since.index] = max(border - int(later[job]), 0)
                known[ran.index] = min(known[since.index], length)
            done[job].append(ran)
    begins = np.concatenate([fixed, day.earliest[day.jobs :]])
    for job in np.flatnonzero(begins >= 0).tolist():
        at_once = int(begins[job])
        machine.occupy(at_once, job, False)
        done[job] = [min(max(border - at_once, 0), int(day.length[job])) for border in times[1:]]
    machine.limit()
    _maximise(model, day, done, known)
    model.add_decision_strategy(list(starts.values()), cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE)
    if begin is not None:
        for job, at in starts.items():
            model.add_hint(at, int(later[job]))
        machine.hint(known)
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
    if day.on is not None and begin is not None:
        # As CP Optimizer's default search does: large neighbourhoods of the plan at hand.
        solver.parameters.interleave_search = True
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
    begun_with = -np.inf if begin is None else begin.profit
    return Searched(found, profit, order, begun_with, spent, best.cpu_s, machine.where(solver))


class _Pool:
    """Processors that are counted, and power where there is a cap."""

    def __init__(self, model: cp_model.CpModel, day: Day) -> None:
        self._model, self._day = model, day
        self._intervals: list[cp_model.IntervalVar] = []
        self._jobs: list[int] = []

    def occupy(self, at: Count, job: int, free: bool) -> None:
        """A job runs from `at` on; `free` is for nodes."""
        self._intervals.append(self._model.new_fixed_size_interval_var(at, int(self._day.length[job]), ""))
        self._jobs.append(job)

    def limit(self) -> None:
        """No more than there is."""
        day = self._day
        self._model.add_cumulative(self._intervals, day.size[self._jobs].tolist(), day.processors)
        if day.room_mw >= 0:
            self._model.add_cumulative(self._intervals, day.draw_mw[self._jobs].tolist(), day.room_mw)

    def hint(self, known: dict[int, int]) -> None:
        """The starts are enough: the rest follows from them."""

    def where(self, solver: cp_model.CpSolver) -> Ints:
        """No job has a node."""
        return np.empty((2, 0), np.int64)


class _Nodes:
    """Nodes with some of each resource. `where`: the nodes of jobs that stay on theirs, and those to begin with."""

    def __init__(self, model: cp_model.CpModel, day: Day, on: OnNodes, where: Ints) -> None:
        self._model, self._day, self._on, self._where = model, day, on, where
        self._held: list[list[tuple[cp_model.IntervalVar, Ints]]] = [[] for _ in range(on.cluster.nodes)]
        self._present: dict[int, list[tuple[int, cp_model.IntVar]]] = {}
        """Of each job that may go anywhere: a node, and whether a unit of it is there."""
        self._most = [most_on_idle(on.cluster, on.requests, kind) for kind in range(len(on.cluster.kinds))]

    def _mine(self, job: int) -> slice:
        return slice(self._on.requests.first[job], self._on.requests.first[job + 1])

    def occupy(self, at: Count, job: int, free: bool) -> None:
        """A job runs from `at` on, on any nodes (`free`) or on those that it has."""
        model, length, cluster, asked = self._model, int(self._day.length[job]), self._on.cluster, self._on.requests
        if not free:
            nodes = self._where[0, self._mine(job)].tolist()
            interval = model.new_fixed_size_interval_var(at, length, "")
            for node, takes in zip(nodes, asked.taken(job, cluster, nodes, [0] * len(nodes)), strict=True):
                self._held[node].append((interval, takes))
            return
        self._present[job] = []
        for node, kind in enumerate(cluster.kind_of.tolist()):
            takes = asked.taken(job, cluster, [node], [0])[0]
            for _ in range(self._most[kind][job]):
                here = model.new_bool_var("")
                self._held[node].append((model.new_optional_fixed_size_interval_var(at, length, here, ""), takes))
                self._present[job].append((node, here))
        model.add(cp_model.LinearExpr.sum([here for _, here in self._present[job]]) == int(asked.units[job]))

    def limit(self) -> None:
        """No node gives more of a resource than it has."""
        for node, kind in enumerate(self._on.cluster.kind_of.tolist()):
            for r, has in enumerate(self._on.cluster.capacity[kind].tolist()):
                if wants := [(interval, int(takes[r])) for interval, takes in self._held[node] if takes[r]]:
                    self._model.add_cumulative([interval for interval, _ in wants], [need for _, need in wants], has)

    def hint(self, known: dict[int, int]) -> None:
        """Begin with the nodes that jobs have. The search needs a plan to begin with: it is told all of it."""
        for variable, value in known.items():
            self._model.add_hint(self._model.get_int_var_from_proto_index(variable), value)
        for job, units in self._present.items():
            left = self._where[0, self._mine(job)].tolist()
            for node, here in units:
                inside = node in left
                self._model.add_hint(here, inside)
                if inside:
                    left.remove(node)

    def where(self, solver: cp_model.CpSolver) -> Ints:
        """The node of each unit in the solution."""
        found = self._where.copy()
        for job, units in self._present.items():
            found[0, self._mine(job)] = [node for node, here in units if solver.boolean_value(here)]
        return found


def _maximise(model: cp_model.CpModel, day: Day, done: dict[int, list[Count]], known: dict[int, int]) -> None:
    """Equation 3, in whole numbers: what jobs earn less their energy, and less that of cooling at a load that is
    rounded, as in the table. `done`: seconds that each job has run until the end of each segment; `known`: what
    variables are in a plan, to which those of the cooling are added."""

    def value(count: Count) -> int:
        return count if isinstance(count, int) else known[count.index]

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
        drawn_mws = idle_mw * seconds + sum(
            int(day.draw_mw[job]) * (value(ran[s]) - (value(ran[s - 1]) if s else 0)) for job, ran in done.items()
        )
        known[row.index] = (2 * drawn_mws + step_mw * seconds) // (2 * step_mw * seconds)
        known[cooling.index] = int(costs[known[row.index]])
        total.append(-cooling)
    model.maximize(cp_model.LinearExpr.sum(total))
