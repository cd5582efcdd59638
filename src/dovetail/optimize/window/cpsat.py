"""The door to CP-SAT: the best schedule of a problem that it finds in a given amount of work, and what it proved."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, inf, nan
from time import process_time
from typing import TYPE_CHECKING, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import SettingError
from dovetail.optimize.window.bounds import lower_bound
from dovetail.optimize.window.cpsat_costs import Costs, costs_around
from dovetail.optimize.window.objective import Objective, Pasf
from dovetail.optimize.window.problem import Problem, Solution, Status, alone, check, decode

if TYPE_CHECKING:
    from dovetail.optimize.window.cpsat_build import Answer, Frame

STEPS: Final = 500
"""About how many starts a job has in the coarse model, from which the one in seconds goes on."""


@dataclass(frozen=True)
class _Best:
    """The best schedule so far; None while there is none."""

    starts: Ints | None
    value: float


def solve(
    problem: Problem,
    objective: Objective,
    *,
    deterministic_s: float = 0.2,
    seed: int = 0,
    hint: Ints | None = None,
    idle: bool = True,
) -> Solution:
    """The best schedule that CP-SAT finds from the hint, or from the best of a few list plans; never a worse one.

    `deterministic_s` is CP-SAT's own count of work, a few seconds each: same call, same schedule. Where jobs may start
    at many instants, half of it goes to a model with a coarser clock; its answer is brought back to seconds by
    decoding the jobs in the order of their starts, and so no job is later than it was. The rest goes to a model in
    seconds, from there on. Only that one proves anything: `bound` and `status` hold for starts at any second.
    Without `idle`, every answer is decoded, so that no job waits for nothing; that matters for PaSF only, and then no
    optimum is proved.
    """
    begun = process_time()
    if not deterministic_s > 0:
        raise ValueError(f"deterministic_s is above 0, got {deterministic_s}")
    if not len(problem):
        return Solution(np.empty(0, np.int64), nan, nan, "optimal", process_time() - begun)
    need_ortools()
    best = _first(problem, objective, hint)
    coarse = _round(problem, objective, best, deterministic_s / 2, seed, idle, STEPS)
    best, left = coarse.best, deterministic_s - coarse.deterministic_s
    bound = lower_bound(problem, objective)
    while True:
        last = _round(problem, objective, best, max(left, deterministic_s / 4), seed, idle)
        left -= max(last.deterministic_s, deterministic_s / 100)  # a round is never free
        bound = float(np.fmax(bound, last.bound))
        improved, best = last.best is not best, last.best
        if not (improved and last.again and left > 0):
            break
    starts = np.full(len(problem), -1, np.int64) if best.starts is None else best.starts
    if best.value < bound <= best.value * (1 + 1e-9):
        bound = best.value  # the same number, rounded twice
    return Solution(starts, best.value, bound, last.status, process_time() - begun)


@dataclass(frozen=True)
class _Round:
    """One model solved: the best schedule after it, and whether another round, around it, may find more."""

    best: _Best
    bound: float
    status: Status
    again: bool
    deterministic_s: float


def _round(
    problem: Problem, objective: Objective, best: _Best, deterministic_s: float, seed: int, idle: bool, steps: int = 0
) -> _Round:
    """A model in seconds; or, if `steps` is given, in units such that no job has many more starts than that."""
    from dovetail.optimize.window import cpsat_build as build

    around = decode(problem, np.argsort(problem.latest, kind="stable")) if best.starts is None else best.starts
    costs = costs_around(problem, objective, around)
    frame = build.framed(problem, costs, best.starts, 1)
    if steps:
        if frame.widest <= steps:
            return _Round(best, nan, "unknown", True, 0.0)
        frame = build.framed(problem, costs, best.starts, -(-frame.widest // steps))
    answer = build.run(frame, costs, deterministic_s=deterministic_s, seed=seed)
    after = _better(problem, objective, best, frame, answer, idle)
    status: Status = "unknown" if after.starts is None else "feasible"
    bound = nan
    if frame.unit == 1:
        bound = _proved(problem, objective, costs, frame, answer, around)
        # A ratio is proved least when nothing better was found around it. For a sum with a ratio that proves nothing.
        proved = not costs.ratios or (isinstance(objective, Pasf) and after is best and idle)
        if answer.optimal and proved:
            status = "optimal"
        elif answer.infeasible and best.starts is None:
            status = "infeasible"
    return _Round(after, bound, status, bool(costs.ratios), answer.deterministic_s)


def _first(problem: Problem, objective: Objective, hint: Ints | None) -> _Best:
    """The hint; without one the best of a few list plans that keep the latest starts, if any does."""
    if hint is not None:
        hint = np.asarray(hint, np.int64)
        if wrong := check(problem, hint):
            raise ValueError(f"the hint is no schedule of the problem: {wrong[0]}")
        return _Best(hint, objective.value(problem, hint))
    keys = (problem.arrive, problem.estimate, problem.area, -problem.area, problem.latest)
    plans = [decode(problem, np.argsort(key, kind="stable").tolist()) for key in keys]
    fine = [_Best(plan, objective.value(problem, plan)) for plan in plans if not check(problem, plan)]
    return min(fine, key=lambda plan: plan.value, default=_Best(None, inf))


def _better(problem: Problem, objective: Objective, best: _Best, frame: Frame, answer: Answer, idle: bool) -> _Best:
    """The best of what is known and the answer, decoded and (if jobs may idle) as it is; judged by the objective."""
    if answer.units is None:
        return best
    starts = frame.starts(answer.units)
    tight = decode(problem, np.argsort(starts, kind="stable").tolist())
    plans = (tight, starts) if idle else (tight,)
    found = min((_Best(plan, objective.value(problem, plan)) for plan in plans), key=lambda one: one.value)
    # A difference in the last digits is rounding, and might be found for ever.
    return found if found.value < best.value * (1 - 1e-12) else best


def _proved(problem: Problem, objective: Objective, costs: Costs, frame: Frame, answer: Answer, around: Ints) -> float:
    """The bound that a model in seconds proves for the objective; nan for none."""
    if not costs.ratios:
        return answer.bound + costs.makespan * float(problem.now + frame.last_end - problem.arrive.min())
    if not isinstance(objective, Pasf):
        return nan
    # N - rho D >= b for all, so N/D >= rho + b/D, and as b is not above 0, at least rho + b / (the least D).
    (ratio,) = costs.ratios
    under = [
        fsum(objective.parts(problem.size, problem.estimate, starts - problem.arrive, ratio.rho)[1])
        for starts in (around, alone(problem))
    ]
    return ratio.rho + min(answer.bound, 0.0) * under[0] / under[1]


def need_ortools() -> None:
    """Say what to install where OR-Tools is not."""
    try:
        import ortools.sat.python.cp_model  # noqa: F401
    except ImportError as missing:
        raise SettingError("CP-SAT is in OR-Tools, which is not installed: pip install ortools") from missing
