"""How CP-SAT searches for the dispatchers of the paper, and what all of their models share. Importing this loads
OR-Tools.

How long a search takes: problem.Limits. CP-SAT cannot be halted and resumed. So PCP'21, where it is to go on, gets
another call, for as long as is added, from the best plan so far as a hint; what the solver had learnt is lost. Where
there is no plan yet, the call is for the whole time.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import process_time
from typing import Final

from ortools.sat.python import cp_model

from dovetail.optimize.dispatch.problem import DispatchProblem, Limits, has_boxes, slopes
from dovetail.optimize.window.problem import Status

WORK_PER_S: Final = {"pcp19": 0.02, "hcp19": 0.25, "pcp21": 0.1, "pcp21s": 0.1}
"""On the clock "work" a second is this part of CP-SAT's own count of work. It counts some work too low, and in each
model another part; with these rates a second of each is about a CPU second (64 nodes, 40 to 100 jobs waiting)."""


@dataclass(frozen=True)
class Ran:
    """What became of one model: the value of each variable, None where nothing was found."""

    status: Status
    values: list[int] | None
    conflicts: int
    branches: int
    solving_s: float
    extensions: int
    settled: bool


@dataclass(frozen=True)
class PoolSchedule:
    """The part that all models have: a start for each job, from now on, and its interval."""

    model: cp_model.CpModel
    starts: list[cp_model.IntVar]
    intervals: list[cp_model.IntervalVar]


def scheduled(problem: DispatchProblem) -> PoolSchedule:
    """The paper's scheduling model: starts from now to the worst makespan, one cumulative per resource over the sum of
    all nodes, and the total slowdown.

    Slowdowns are counted from a start now: the wait from now on, times scale / d_i rounded to a whole number. The scale
    is such that a sum is below 2^56. A job's slowdown is so off by at most half a scale-th of its wait from now.
    """
    model = cp_model.CpModel()
    starts = [model.new_int_var(0, problem.horizon - job.duration, f"s{i}") for i, job in enumerate(problem.queue)]
    intervals = [
        model.new_fixed_size_interval_var(start, job.duration, "")
        for start, job in zip(starts, problem.queue, strict=True)
    ]
    ends = [model.new_fixed_size_interval_var(0, held.remaining, "") for held in problem.running]
    for r, total in enumerate(problem.capacity.sum(axis=0).tolist()):
        demands = [job.units * job.need[r] for job in problem.queue]
        demands += [len(held.nodes) * held.need[r] for held in problem.running]
        _cumulative(model, [*intervals, *ends], demands, total)
    model.minimize(cp_model.LinearExpr.weighted_sum(starts, slopes(problem)))
    return PoolSchedule(model, starts, intervals)


def _cumulative(
    model: cp_model.CpModel, intervals: list[cp_model.IntervalVar], demands: list[int], capacity: int
) -> None:
    """A cumulative of those that want anything."""
    pairs = [(interval, demand) for interval, demand in zip(intervals, demands, strict=True) if demand]
    if pairs:
        model.add_cumulative([interval for interval, _ in pairs], [demand for _, demand in pairs], capacity)


def by_priority(schedule: PoolSchedule) -> None:
    """The paper's search on starts: of the jobs that can start first the one with the highest priority, as early as it
    can. Its other half, to postpone a job that was refused until its earliest start changes, CP-SAT does not have."""
    schedule.model.add_decision_strategy(schedule.starts, cp_model.CHOOSE_LOWEST_MIN, cp_model.SELECT_MIN_VALUE)


def searched(model: cp_model.CpModel, name: str, limits: Limits) -> Ran:
    """Search until it is enough."""
    values: list[int] | None = None
    found: list[float | None] = []
    conflicts = branches = 0
    spent = 0.0
    steps = limits.steps(name)
    if has_boxes(name) and limits.takes_what_it_has(name):  # each call begins anew: so one more, for all that is left
        steps = [steps[0], *(steps[-1:] if len(steps) > 1 else [])]
    settled = False
    for i, limit in enumerate(steps):
        on = has_boxes(name) and values is not None
        if on:
            _hint(model, values or [])
        begun = process_time()
        solver = _solver(limits, limit - steps[i - 1] if i and has_boxes(name) else limit, WORK_PER_S[name])
        solver.parameters.stop_after_first_solution = i > 0 and limits.takes_what_it_has(name)
        code = solver.solve(model)
        spent += process_time() - begun
        conflicts, branches = conflicts + solver.num_conflicts, branches + solver.num_branches
        if code not in _STATUS:
            raise ValueError(f"CP-SAT does not take the model: {model.validate()}")
        status = _STATUS[code]
        if status in ("optimal", "feasible"):
            new = list(solver.response_proto.solution)
            values = new if values is None else min(values, new, key=lambda plan: _value(model, plan))
        elif values is not None:  # not even the hint was found again
            status = "feasible"
        found.append(None if values is None else _value(model, values))
        settled = limits.enough(name, found, status in ("optimal", "infeasible"))
        if settled:
            break
    return Ran(status, values, conflicts, branches, spent, len(found) - 1, settled)


_STATUS: Final[dict[cp_model.CpSolverStatus, Status]] = {
    cp_model.OPTIMAL: "optimal", cp_model.FEASIBLE: "feasible",
    cp_model.INFEASIBLE: "infeasible", cp_model.UNKNOWN: "unknown",
}  # fmt: skip


def _solver(limits: Limits, limit: float, work_per_s: float) -> cp_model.CpSolver:
    """One thread, and no probing: on 64 nodes that alone takes more than the first limits, before any search. The
    solver of the paper begins to search at once."""
    solver = cp_model.CpSolver()
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.max_presolve_iterations = 1
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = limits.seed
    if limits.clock == "work":
        solver.parameters.max_deterministic_time = limit * work_per_s
    else:
        solver.parameters.max_time_in_seconds = limit
    return solver


def _value(model: cp_model.CpModel, values: list[int]) -> float:
    objective = model.proto.objective
    return float(sum(slope * values[var] for var, slope in zip(objective.vars, objective.coeffs, strict=True)))


def _hint(model: cp_model.CpModel, values: list[int]) -> None:
    """Begin the next search there."""
    model.clear_hints()  # type: ignore[no-untyped-call]
    model.proto.solution_hint.vars.extend(range(len(values)))
    model.proto.solution_hint.values.extend(values)
