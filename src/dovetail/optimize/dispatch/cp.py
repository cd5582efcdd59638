"""The models of the paper's dispatchers for the original CP solver of OR-Tools, which their authors took. Importing
this loads OR-Tools.

PCP'19 and HCP'19 search as the authors' misc/heuristic_search.cc does: of the intervals that can start first, the one
with the earlier latest end, then the first in the list, is set to its earliest start, or postponed until that has
changed. PCP'21 takes, of the jobs that can start first, the one with the highest priority, sets or postpones it, and
then places its units, each in the least positions that are left, the scarcest resource first. A job can start where
there is room for it: constraints on positions do not say so before they are tried, so this looks. PCP'21s never tries
other positions once that has failed: it goes back to the job's start. The authors' builder of these decisions is not
public; this one follows the paper's section 3. (In what is public, positions are handed to it in a fixed order of
resources, cores last.)

Where the authors have an alternative of several intervals, which they added to the solver, this has a sum of presences
and equal starts; where they have an element constraint for positions on one node, the domain of the position.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter, process_time
from typing import Any, Final

import numpy as np
from ortools.constraint_solver import pywrapcp  # type: ignore[import-untyped]

from dovetail.arrays import NEVER, Ints, Mask
from dovetail.optimize.dispatch.problem import (
    Dispatched,
    DispatchProblem,
    Limits,
    Queued,
    has_boxes,
    pair_rules,
    running_boxes,
    slopes,
    total_slowdown,
    units_by_node,
)
from dovetail.optimize.window.problem import Status

WORK_PER_S: Final = {"pcp19": 200_000, "hcp19": 100_000, "pcp21": 60_000, "pcp21s": 60_000}
"""On the clock "work" a second is so many branches of a search, divided by the variables of the model and ten: a
quarter of a CPU second to four, on 64 nodes and on a thousand."""

_Builder: Final[Any] = pywrapcp.PyDecisionBuilder
_Decision: Final[Any] = pywrapcp.PyDecision


@dataclass
class _Model:
    """A model: the interval and the start of each job, and what else a plan is read from."""

    solver: Any
    intervals: list[Any]
    starts: list[Any]
    builder: Any = None
    units: list[list[tuple[int, Any]]] | None = None
    """PCP'19: the node and the presence of each unit that could be there, by job."""
    boxes: list[list[dict[int, Any]]] | None = None
    """PCP'21: the positions by resource of each unit, by job."""
    variables: int = 0

    def read_from(self) -> Iterator[Any]:
        yield from self.starts
        yield from (here for job in self.units or () for _, here in job)
        yield from (y for job in self.boxes or () for unit in job for y in unit.values())


def solved(problem: DispatchProblem, model: str, limits: Limits, *, pairs: bool, look: bool = True) -> Dispatched:
    """The best plan of a model within the limits; of "hcp19", the schedule alone. `look`: PCP'21 does not try to start
    a job for whose units there is no room."""
    again, modelling_s, solving_s, branches = not has_boxes(model), 0.0, 0.0, 0
    ends: list[float | None] = []
    while True:
        begun = process_time()
        built = _built(problem, model, pairs, look)
        solver = built.solver
        total = solver.ScalProd(built.starts, slopes(problem)).Var()
        goal, best = solver.Minimize(total, 1), solver.BestValueSolutionCollector(False)
        best.AddObjective(total)
        for var in built.read_from():
            best.Add(var)
        modelling_s += process_time() - begun
        watch = _Watch(solver, best, model, limits, ends, again, WORK_PER_S[model] / (built.variables + 10))
        begun = process_time()
        any_found = solver.Solve(built.builder, [goal, best, solver.CustomLimit(watch)])
        solving_s += process_time() - begun
        branches += solver.Branches()
        complete = not watch.stopped
        if complete:
            ends.append(watch.value())
        watch.forget()
        settled = limits.enough(model, ends, complete)
        if settled or not again or len(ends) == len(watch.steps):
            break
    fails = best.Failures(0) if any_found else solver.Failures()
    status: Status = "unknown"
    if any_found:  # PCP'21s has not looked everywhere
        status = "optimal" if complete and model != "pcp21s" else "feasible"
    elif complete and model != "pcp21s":
        status = "infeasible"
    starts, nodes, positions = _answer(problem, built, best) if any_found else ((), (), ())
    objective = total_slowdown(problem, starts) if any_found else float("nan")
    return Dispatched(
        status, objective, starts, nodes, positions, built.variables, solver.Constraints(), fails, branches,
        modelling_s, solving_s, max(len(ends) - 1, 0), settled,
    )  # fmt: skip


class _Watch:
    """Whether a search is over, asked at each branch. Writes down the best value by the end of each limit."""

    def __init__(
        self, solver: Any, best: Any, model: str, limits: Limits, ends: list[float | None], again: bool, per_s: float
    ) -> None:
        self.solver, self.best, self.model, self.limits, self.ends, self.again, self.per_s = (
            solver, best, model, limits, ends, again, per_s,
        )  # fmt: skip
        self.steps, self.begun, self.stopped = limits.steps(model), perf_counter(), False

    def forget(self) -> None:
        """The solver has this, and this has the solver: nothing would ever free them."""
        self.solver = self.best = None

    def value(self) -> float | None:
        return float(self.best.ObjectiveValue(0)) if self.best.SolutionCount() else None

    def __call__(self) -> bool:
        wall = self.limits.clock == "wall"
        done = perf_counter() - self.begun if wall else self.solver.Branches() / self.per_s
        while not self.stopped and done > self.steps[len(self.ends)]:
            self.ends.append(self.value())
            last = len(self.ends) == len(self.steps)
            self.stopped = self.again or last or self.limits.enough(self.model, self.ends, proved=False)
        return self.stopped


def _answer(problem: DispatchProblem, built: _Model, best: Any) -> tuple[Any, Any, Any]:
    """Starts, nodes and positions of the best solution."""
    starts = tuple(problem.now + best.Value(0, start) for start in built.starts)
    if built.units is not None:
        return starts, tuple(tuple(n for n, here in job if best.Value(0, here)) for job in built.units), ()
    if built.boxes is None:
        return starts, (), ()
    resources = range(problem.capacity.shape[1])
    positions = tuple(
        tuple(tuple(best.Value(0, unit[r]) if r in unit else -1 for r in resources) for unit in job)
        for job in built.boxes
    )
    nodes = []
    for job, its in zip(problem.queue, positions, strict=True):
        r = next(r for r, need in enumerate(job.need) if need)
        at = np.searchsorted(problem.first_position[1:, r], [unit[r] for unit in its], side="right")
        nodes.append(tuple(at.tolist()))
    return starts, tuple(nodes), positions


def _built(problem: DispatchProblem, model: str, pairs: bool, look: bool) -> _Model:
    solver: Any = pywrapcp.Solver(model)
    intervals = [solver.FixedDurationIntervalVar(0, problem.horizon, job.duration, False, "") for job in problem.queue]
    built = _Model(solver, intervals, [interval.StartExpr().Var() for interval in intervals])
    built.variables = len(intervals)
    held = [solver.FixedDurationIntervalVar(0, 0, one.remaining, False, "") for one in problem.running]
    if model == "hcp19":
        for r, total in enumerate(problem.capacity.sum(axis=0).tolist()):
            wants = [len(one.nodes) * one.need[r] for one in problem.running]
            wants += [job.units * job.need[r] for job in problem.queue]
            _cumulative(solver, [*held, *intervals], wants, total)
        built.builder = _Units(intervals, [[interval] for interval in intervals])
    elif model == "pcp19":
        _with_units(problem, built, held)
    else:
        boxes, places = _with_boxes(problem, built)
        apart, in_order = pair_rules(problem) if pairs else ([], [])
        both, after = [*held, *intervals], defaultdict[int, list[int]](list)
        for i, j in apart:
            solver.Add(solver.DisjunctiveConstraint([both[i], both[j]], ""))
        for i, j in in_order:
            solver.Add(built.starts[j] >= built.starts[i])
            after[j].append(i)
        ends, room = [one.remaining for one in problem.running], _Room(problem, boxes) if look else None
        built.builder = _Interleaved(intervals, places, ends, model == "pcp21s", room, after if look else {})
    return built


def _cumulative(solver: Any, intervals: list[Any], wants: list[int], total: int) -> None:
    pairs = [(interval, want) for interval, want in zip(intervals, wants, strict=True) if want]
    if pairs:
        solver.Add(solver.Cumulative([one for one, _ in pairs], [want for _, want in pairs], total, ""))


# PCP'19 ------------------------------------------------------------------------------------------------------


def _with_units(problem: DispatchProblem, built: _Model, held: list[Any]) -> None:
    """An optional interval for each unit that a node could hold."""
    solver = built.solver
    on_node: list[list[tuple[Any, tuple[int, ...]]]] = [[] for _ in range(problem.cluster.nodes)]
    for one, interval in zip(problem.running, held, strict=True):
        for node in one.nodes:
            on_node[node].append((interval, one.need))
    built.units, choices = [], []
    for job, whole in zip(problem.queue, built.intervals, strict=True):
        units, mine = [], []
        for node, most in enumerate(problem.places(job).tolist()):
            for _ in range(most):
                unit = solver.FixedDurationIntervalVar(0, problem.horizon, job.duration, True, "")
                solver.Add(unit.StartsAtStart(whole))
                units.append((node, unit.PerformedExpr().Var()))
                on_node[node].append((unit, job.need))
                mine.append(unit)
        solver.Add(solver.Sum([here for _, here in units]) == job.units)
        built.units.append(units)
        choices.append(mine)
        built.variables += len(units)
    for node, capacity in enumerate(problem.capacity.tolist()):
        for r, has in enumerate(capacity):
            _cumulative(solver, [one for one, _ in on_node[node]], [need[r] for _, need in on_node[node]], has)
    built.builder = _Units(built.intervals, choices)


class _Set(_Decision):  # type: ignore[misc]
    """Set an interval to a start, or postpone it until its earliest start has changed. What changes in a builder's
    Next lasts on both branches; so it is here that `current` becomes `number`."""

    def __init__(self, interval: Any, at: int, marker: Any, current: Any = None, number: int = -1) -> None:
        super().__init__()
        self.interval, self.at, self.marker, self.current, self.number = interval, at, marker, current, number

    def Apply(self, solver: Any) -> None:  # noqa: N802
        if self.current is not None:
            self.current.SetValue(solver, self.number)
        self.interval.SetPerformed(True)
        self.interval.SetStartRange(self.at, self.at)

    def Refute(self, solver: Any) -> None:  # noqa: N802
        self.marker.SetValue(solver, self.at + 1)


class _Kept(_Builder):  # type: ignore[misc]
    """Decisions that are made in Python must live as long as the search may come back to them."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[int, Any] = {}

    def _keep(self, solver: Any, decision: Any) -> Any:
        self._kept[solver.SearchDepth()] = decision
        return decision


class _Units(_Kept):
    """Set-times on the units of all jobs."""

    def __init__(self, jobs: list[Any], units: list[list[Any]]) -> None:
        super().__init__()
        self._jobs, self._units = jobs, units
        self._markers = [[pywrapcp.RevInteger(0) for _ in its] for its in units]

    def Next(self, solver: Any) -> Any:  # noqa: N802
        first, last, chosen, refused = NEVER, NEVER, None, False
        for job, units, markers in zip(self._jobs, self._units, self._markers, strict=True):
            if job.StartMin() > first:
                refused = True
                continue
            for unit, marker in zip(units, markers, strict=True):
                if unit.IsPerformedBound() and (not unit.MustBePerformed() or unit.StartMin() == unit.StartMax()):
                    continue
                at, end = unit.StartMin(), unit.EndMax()
                if at >= marker.Value() and (at, end) < (first, last):
                    first, last, chosen = at, end, (unit, at, marker)
                else:
                    refused = True
        if chosen is None:
            return solver.FailDecision() if refused else None
        return self._keep(solver, _Set(*chosen))


# PCP'21 ------------------------------------------------------------------------------------------------------


def _with_boxes(problem: DispatchProblem, built: _Model) -> tuple[list[list[dict[int, Any]]], list[list[Any]]]:
    """A unit is a box in each resource: from its start for its duration, from its position for what it needs. Returns
    the positions of each job by unit and resource, and in the order in which they are decided."""
    solver, resources = built.solver, range(problem.capacity.shape[1])
    node_of = [np.repeat(np.arange(problem.cluster.nodes), problem.capacity[:, r]).tolist() for r in resources]
    built.boxes = [_positions(problem, solver, job, node_of) for job in problem.queue]
    built.variables += sum(len(unit) for job in built.boxes for unit in job)
    for r, held in enumerate(running_boxes(problem)):
        boxes = [(0, at, remaining, many) for remaining, at, many in held]
        boxes += [
            (start, unit[r], job.duration, job.need[r])
            for job, start, units in zip(problem.queue, built.starts, built.boxes, strict=True) if job.need[r]
            for unit in units
        ]  # fmt: skip
        if len(boxes) > 1:
            sides = ([solver.IntConst(x) if isinstance(x, int) else x for x in one] for one in zip(*boxes, strict=True))
            solver.Add(solver.NonOverlappingBoxesConstraint(*sides))
    places = [[unit[r] for r in problem.scarcest_first for unit in job if r in unit] for job in built.boxes]
    return built.boxes, places


def _positions(problem: DispatchProblem, solver: Any, job: Queued, node_of: list[list[int]]) -> list[dict[int, Any]]:
    """The positions of the units of a job. All boxes of a unit are on one node."""
    wanted = [r for r, need in enumerate(job.need) if need]
    able = np.flatnonzero(units_by_node(problem.cluster, problem.capacity, job)).tolist()
    units: list[dict[int, Any]] = []
    allowed = {}
    for r in wanted:
        first = problem.first_position[:, r].tolist()
        allowed[r] = [y for n in able for y in range(first[n], first[n + 1] - job.need[r] + 1)]
    nodes = []
    for _ in range(job.units):
        unit = {r: solver.IntVar(allowed[r], "") for r in wanted}
        if len(wanted) > 1 or job.per_node:
            where = [solver.Element(node_of[r], unit[r]) for r in wanted]
            for one, other in pairwise(where):
                solver.Add(one == other)
            nodes.append(where[0])
        units.append(unit)
    for before, after in pairwise(units):
        for r in wanted:
            solver.Add(before[r] + job.need[r] <= after[r])
    for one, other in zip(nodes, nodes[job.per_node :], strict=False) if job.per_node else ():
        solver.Add(one < other)
    return units


class _Interleaved(_Kept):
    """Of the jobs that can start first the one with the highest priority, as early as it can; then its positions.

    Set-times tries a postponed job again when its earliest start has changed. Positions that are still open do not
    change it: so searched, PCP'21 finds no plan at all for many problems. Here such a job is tried again when the next
    of the jobs that have their place ends.

    With `room`, a job that would find no place is postponed without a fail, and so are those that may not start before
    it: `after` has the jobs that each of them comes after."""

    def __init__(
        self,
        jobs: list[Any],
        places: list[list[Any]],
        ends: list[int],
        symmetry: bool,
        room: _Room | None,
        after: Mapping[int, Sequence[int]],
    ) -> None:
        super().__init__()
        self._jobs, self._places, self._ends, self._symmetry = jobs, places, ends, symmetry
        self._room, self._after = room, after
        self._markers = [pywrapcp.RevInteger(0) for _ in jobs]
        self._done = [pywrapcp.RevInteger(0) for _ in jobs]
        self._current = pywrapcp.RevInteger(-1)

    def Next(self, solver: Any) -> Any:  # noqa: N802
        current = self._current.Value()
        if current >= 0:
            for y in self._places[current]:
                if not y.Bound():
                    if self._symmetry:
                        return solver.AssignVariableValueOrFail(y, y.Min())
                    return solver.AssignVariableValue(y, y.Min())
            self._done[current].SetValue(solver, 1)
        left = [i for i, done in enumerate(self._done) if not done.Value()]
        placed = [(i, job.StartMin(), job.EndMin()) for i, job in enumerate(self._jobs) if self._done[i].Value()]
        ends = sorted({*self._ends, *(end for _, _, end in placed)})
        earliest, latest = {i: self._jobs[i].StartMin() for i in left}, {i: self._jobs[i].StartMax() for i in left}
        while left:
            first, chosen = self._first(earliest, latest, ends)
            if chosen < 0:
                return solver.FailDecision()
            if self._room is None or self._room.holds(chosen, first, placed):
                return self._keep(solver, _Set(self._jobs[chosen], first, self._markers[chosen], self._current, chosen))
            self._markers[chosen].SetValue(solver, first + 1)
        return None

    def _first(self, earliest: dict[int, int], latest: dict[int, int], ends: list[int]) -> tuple[int, int]:
        """When a job can start first, and which of those that are left; -1 if one of them cannot start any more."""
        first, chosen, starts = NEVER, -1, dict[int, int]()
        for i, at in earliest.items():
            not_before = self._markers[i].Value()
            if not_before > latest[i]:
                return NEVER, -1
            at = max([at, *(starts[one] for one in self._after.get(i, ()) if one in starts)])
            if at < not_before:
                place = bisect_left(ends, not_before)
                at = ends[place] if place < len(ends) else NEVER
            starts[i] = at
            if at < first:
                first, chosen = at, i
        return first, chosen


class _Room:
    """What is free beside what runs and the jobs that have their place."""

    def __init__(self, problem: DispatchProblem, boxes: list[list[dict[int, Any]]]) -> None:
        self._problem, self._boxes = problem, boxes
        self._node_of = [np.repeat(np.arange(problem.cluster.nodes), has) for has in problem.capacity.T]
        self._held: list[Ints] = []
        """How long each position of each resource is held by what runs."""
        for r, held in enumerate(running_boxes(problem)):
            self._held.append(np.zeros(len(self._node_of[r]), np.int64))
            for remaining, at, many in held:
                self._held[r][at : at + many] = remaining

    def holds(self, job: int, at: int, placed: list[tuple[int, int, int]]) -> bool:
        """Whether the units of a job could be there from then on. `placed`: jobs with their starts and ends."""
        problem, mine = self._problem, self._problem.queue[job]
        beside = [one for one, start, end in placed if start < at + mine.duration and end > at]
        room = np.empty_like(problem.capacity)
        for r, need in enumerate(mine.need):
            if need:
                free = self._held[r] <= at
                for one in beside:
                    many = problem.queue[one].need[r]
                    for unit in self._boxes[one] if many else ():
                        y = unit[r].Min()
                        free[y : y + many] = False
                room[:, r] = need * self._pieces(r, free, need)
        return bool(units_by_node(problem.cluster, room, mine).sum() >= mine.units)

    def _pieces(self, r: int, free: Mask, need: int) -> Ints:
        """How many units that need so many positions in a row there are on each node."""
        node_of, nodes = self._node_of[r], self._problem.cluster.nodes
        new = np.ones(len(free), bool)
        new[1:] = (free[1:] != free[:-1]) | (node_of[1:] != node_of[:-1])
        first = np.flatnonzero(new)
        long = np.diff(np.append(first, len(free)))
        found: Ints = np.bincount(node_of[first], weights=free[first] * (long // need), minlength=nodes).astype(
            np.int64
        )
        return found
