"""How long the dispatchers of the paper search, and what all of their models share. Importing this loads OR-Tools.

In the paper's words: "search is bounded by a time limit; if no satisfiability answer is obtained within the limit, the
time limit is extended to 2 delta, as opposed to restarting search with the new time limit as was done in PCP'19 and
HCP'19. This continues until the limit reaches delta_max. We suspend the search if the solution quality did not change
after k consecutive time limit extensions." An extension can leave the quality as it is only if there is a solution
already. So we read: PCP'19 and HCP'19 take what they have once they have anything; PCP'21 goes on until it has proved
its plan, has gained nothing in k extensions, or has reached delta_max.

CP-SAT cannot be halted and resumed. So PCP'21 is continued by another call, for as long as the extension adds, from the
best plan so far as a hint; what the solver had learnt is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from time import process_time
from typing import Final

from ortools.sat.python import cp_model

from dovetail.optimize.dispatch.problem import DispatchProblem, Limits
from dovetail.optimize.window.problem import Status

WORK_PER_S: Final = {"pcp19": 0.02, "hcp19": 0.25, "pcp21": 0.1, "pcp21s": 0.1}
"""On the clock "work" a second is this part of CP-SAT's own count of work. It counts some work too low, and in each
model another part; with these rates a second of each is about a CPU second (64 nodes, 40 to 100 jobs waiting)."""

_SPAN: Final = 2**56  # of the objective in integers


@dataclass(frozen=True)
class Ran:
    """What became of one model: the value of each variable, None where nothing was found."""

    status: Status
    values: list[int] | None
    conflicts: int
    branches: int
    solving_s: float
    extensions: int


@dataclass(frozen=True)
class PoolSchedule:
    """The part that all models have: a start for each job, from now on, and its interval."""

    model: cp_model.CpModel
    starts: list[cp_model.IntVar]
    intervals: list[cp_model.IntervalVar]


def scheduled(problem: DispatchProblem, later: Collection[int] = ()) -> PoolSchedule:
    """The paper's scheduling model: starts from now to the worst makespan, one cumulative per resource over the sum of
    all nodes, and the total slowdown. Jobs at the places `later` of the queue do not start now.

    Slowdowns are counted from a start now: the wait from now on, times scale / d_i rounded to a whole number. The scale
    is such that a sum is below 2^56. A job's slowdown is so off by at most half a scale-th of its wait from now.
    """
    model, horizon = cp_model.CpModel(), problem.horizon + bool(later)
    starts = [
        model.new_int_var(1 if i in later else 0, horizon - job.duration, f"s{i}")
        for i, job in enumerate(problem.queue)
    ]
    intervals = [
        model.new_fixed_size_interval_var(start, job.duration, "")
        for start, job in zip(starts, problem.queue, strict=True)
    ]
    ends = [model.new_fixed_size_interval_var(0, held.remaining, "") for held in problem.running]
    for r, total in enumerate(problem.capacity.sum(axis=0).tolist()):
        demands = [job.units * job.need[r] for job in problem.queue]
        demands += [len(held.nodes) * held.need[r] for held in problem.running]
        _cumulative(model, [*intervals, *ends], demands, total)
    scale = scale_of(problem)
    slopes = [round(scale / job.duration) for job in problem.queue]
    model.minimize(cp_model.LinearExpr.weighted_sum(starts, slopes))
    return PoolSchedule(model, starts, intervals)


def scale_of(problem: DispatchProblem) -> int:
    """What a slowdown of 1 is in the integers of a model."""
    return max(int(_SPAN / ((problem.horizon + 1) * sum(1 / job.duration for job in problem.queue))), 1)


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


def restarted(model: cp_model.CpModel, limits: Limits, work_per_s: float) -> Ran:
    """From scratch with twice the limit, until something is found or excluded."""

    def enough(values: list[int] | None, status: Status) -> bool:
        return values is not None or status == "infeasible"

    return _repeated(model, limits, work_per_s, enough, again=False)


def continued(model: cp_model.CpModel, limits: Limits, work_per_s: float) -> Ran:
    """On from the best plan, until it is proved or has not changed in `still` extensions."""
    qualities: list[float | None] = []

    def enough(values: list[int] | None, status: Status) -> bool:
        qualities.append(None if values is None else _value(model, values))
        return status in ("optimal", "infeasible") or (
            values is not None and qualities[-limits.still - 1 :] == [qualities[-1]] * (limits.still + 1)
        )

    return _repeated(model, limits, work_per_s, enough, again=True)


def _repeated(
    model: cp_model.CpModel,
    limits: Limits,
    work_per_s: float,
    enough: Callable[[list[int] | None, Status], bool],
    *,
    again: bool,
) -> Ran:
    values: list[int] | None = None
    conflicts = branches = extensions = 0
    spent, limit, share = 0.0, limits.delta, limits.delta
    while True:
        begun = process_time()
        solver = _solver(limits, share, work_per_s)
        code = solver.solve(model)
        spent += process_time() - begun
        conflicts, branches = conflicts + solver.num_conflicts, branches + solver.num_branches
        if code not in _STATUS:
            raise ValueError(f"CP-SAT does not take the model: {model.validate()}")
        status = _STATUS[code]
        if status in ("optimal", "feasible"):
            found = list(solver.response_proto.solution)
            values = found if values is None else min(values, found, key=lambda plan: _value(model, plan))
        elif values is not None:  # not even the hint was found again
            status = "feasible"
        if enough(values, status) or 2 * limit > limits.most:
            return Ran(status, values, conflicts, branches, spent, extensions)
        extensions, limit = extensions + 1, 2 * limit
        share = limit / 2 if again else limit
        if again and values is not None:
            _hint(model, values)


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
