"""The planner's search as a solver of one problem, and three others that use the same decoder, to measure it against.

PaSF is minimised among the schedules without idling on purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from time import process_time
from typing import Final

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.kernels import state as layout
from dovetail.kernels.planner.search import BEST_AT, BEST_ORDER, FROM, STOOD
from dovetail.optimize.window.objective import Objective
from dovetail.optimize.window.problem import Problem, Solution
from dovetail.optimize.window.terms import MOST_DECODES, plan_rule
from reproductions.windows import comparators as kernels
from reproductions.windows.comparators import Window, new_window

METHODS: Final[dict[str, Callable[[Window, int], int]]] = {
    "anneal": lambda window, budget: kernels.anneal(window._replace(rule=window.rule._replace(decodes=budget))),
    "tabu": kernels.tabu, "genetic": kernels.genetic, "random": kernels.scatter,
}  # fmt: skip
"""One round of each: takes a budget of candidates to decode, gives how many it took."""
GROWTH: Final = 2
"""With a budget of CPU seconds, each round has this many times the decodes of the round before."""


@dataclass(frozen=True)
class Incumbent:
    """The best schedule after a round: candidates decoded and CPU seconds spent until then, and its value."""

    decodes: int
    cpu_s: float
    value: float


@dataclass(frozen=True)
class Found:
    """The answer of a search, and how it got there: after the list plans, and after each round."""

    solution: Solution
    history: tuple[Incumbent, ...]


def search(
    problem: Problem, objective: Objective, method: str = "anneal", *,
    decodes: int = 200, cpu_s: float | None = None, seed: int = 0,
) -> Found:  # fmt: skip
    """The best schedule that a search over orders finds; never worse than the best of five list plans.

    The budget is a number of candidates to decode, in one round: same call, same schedule. With `cpu_s` that is the
    first of several rounds: each goes on from the best so far and has GROWTH times the budget of the round before, the
    last as much as there seems to be time for. `anneal` is the planner's own search; `random` decodes random orders.
    """
    begun, turn = process_time(), METHODS[method]
    window = _window(problem, objective, seed)
    kernels.lists(window)
    starts, budget, done = _answer(window), decodes, 0
    history = [Incumbent(0, process_time() - begun, objective.value(problem, starts))]
    while budget > 0 and not _at_least(window, starts):
        since = process_time()
        done += turn(window, budget)
        starts = _answer(window)
        # The next round begins with this plan: decoded in the order of its starts, it is the same again.
        window.rule.space.ints[STOOD, : window.n] = starts
        now = process_time()
        history.append(Incumbent(done, now - begun, objective.value(problem, starts)))
        left = 0.0 if cpu_s is None else cpu_s - (now - begun)
        budget = min(GROWTH * budget, MOST_DECODES, int(left / max(now - since, 1e-9) * budget))
    value, proved = history[-1].value, objective.regular and _at_least(window, starts)
    spent, bound = process_time() - begun, value if proved else nan
    return Found(Solution(starts, value, bound, "optimal" if proved else "feasible", spent), tuple(history))


def _window(problem: Problem, objective: Objective, seed: int) -> Window:
    """The problem for the kernels. Behind its jobs is what is not free: one block per step of the capacity, the last
    one for ever."""
    n, taken = len(problem), np.flatnonzero(problem.free < problem.processors)
    ends = np.append(problem.times[1:], NEVER // 2)
    jobs = np.full((layout.JOB_ROWS, n + len(taken)), -1, np.int64)
    jobs[layout.ARRIVE] = np.concatenate([problem.arrive, problem.times[taken]])
    jobs[layout.SIZE] = np.concatenate([problem.size, problem.processors - problem.free[taken]])
    jobs[layout.ESTIMATE] = np.concatenate([problem.estimate, (ends - problem.times)[taken]])
    blocks = np.ascontiguousarray(problem.times[taken])
    rule = plan_rule(objective, window=n, seed=seed)
    return new_window(rule, problem.now, problem.processors, jobs, blocks, problem.weight)


def _answer(window: Window) -> Ints:
    """The starts of the best plan, by job."""
    starts = np.empty(window.n, np.int64)
    starts[window.rule.space.ints[BEST_ORDER, : window.n]] = window.rule.space.ints[BEST_AT, : window.n]
    return starts


def _at_least(window: Window, starts: Ints) -> bool:
    """Whether every job starts as early as it could if it were alone."""
    return bool(np.array_equal(starts, window.rule.space.ints[FROM, : window.n]))
