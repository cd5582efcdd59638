"""The planner's search as a solver of one problem, and three others that use the same decoder, to measure it against.

PaSF is minimised among the schedules without idling on purpose.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import nan
from time import process_time
from typing import Final, Literal, get_args

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.errors import SettingError
from dovetail.kernels import state as layout
from dovetail.kernels.planner.search import BEST_AT, BEST_ORDER, FROM, STOOD
from dovetail.optimize.window.objective import Objective, Sum
from dovetail.optimize.window.problem import Problem, Solution, decode
from dovetail.optimize.window.terms import COLD, HOT, MOST_DECODES, plan_rule
from reproductions.windows import comparators as kernels
from reproductions.windows.comparators import Window, new_window

Method = Literal["anneal", "tabu", "genetic", "random"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)

GROWTH: Final = 2
"""With a budget of CPU seconds, each round has so many times the decodes of the round before."""


@dataclass(frozen=True)
class Incumbent:
    """The best schedule after a round: candidates decoded and CPU seconds spent until then, and its value."""

    decodes: int
    cpu_s: float
    value: float


@dataclass(frozen=True)
class Found:
    """The answer of a search, and how it got there."""

    solution: Solution
    history: tuple[Incumbent, ...]
    """After the list plans, and after each round."""


def search(
    problem: Problem,
    objective: Objective,
    *,
    decodes: int = 200,
    cpu_s: float | None = None,
    seed: int = 0,
    method: Method = "anneal",
    hot: float = HOT,
    cold: float = COLD,
) -> Found:
    """The best schedule that a search over orders finds; never worse than the best of five list plans.

    The budget is a number of candidates to decode, in one round: same call, same schedule. With `cpu_s` that is the
    first of several rounds: each goes on from the best so far and has GROWTH times the budget of the round before, the
    last as much as there seems to be time for. `anneal` is the planner's own search; the others are `tabu`, `genetic`
    and `random` (random orders). `hot` and `cold` are the temperatures of the annealing.
    """
    begun = process_time()
    _check(problem, decodes, method)
    if not len(problem):
        return Found(Solution(np.empty(0, np.int64), nan, nan, "optimal", process_time() - begun), ())
    window = _window(problem, objective, seed)
    turn = _turn(window, method, hot, cold)
    starts, budget, done = _listed(window), decodes, 0
    history = [Incumbent(0, process_time() - begun, objective.value(problem, starts))]
    while budget > 0 and not _at_least(window, starts):
        since = process_time()
        done += turn(budget)
        starts = _answer(window)
        _stand(window, starts)
        now = process_time()
        history.append(Incumbent(done, now - begun, objective.value(problem, starts)))
        left = 0.0 if cpu_s is None else cpu_s - (now - begun)
        budget = min(GROWTH * budget, MOST_DECODES, int(left / max(now - since, 1e-9) * budget))
    value = history[-1].value
    spent = process_time() - begun
    if objective.regular and _at_least(window, starts):
        return Found(Solution(starts, value, value, "optimal", spent), tuple(history))
    return Found(Solution(starts, value, nan, "feasible", spent), tuple(history))


def _check(problem: Problem, decodes: int, method: str) -> None:
    if method not in METHODS:
        raise SettingError(f"no search method {method!r}: choose {', '.join(METHODS)}")
    if not 0 <= decodes <= MOST_DECODES:
        raise SettingError(f"decodes={decodes}: must be from 0 to {MOST_DECODES:,}")
    if bool(np.any(problem.latest < NEVER)):
        raise SettingError("the search knows no latest starts: solve with CP-SAT")


# From here on: how a problem is told to the kernels, and what they answer.


def _window(problem: Problem, objective: Objective, seed: int) -> Window:
    """The jobs of the problem, and behind them what is not free: one block per step of the capacity, the last one
    for ever."""
    n = len(problem)
    taken = np.flatnonzero(problem.free < problem.processors)
    ends = np.append(problem.times[1:], NEVER // 2)
    jobs = np.full((layout.JOB_ROWS, n + len(taken)), -1, np.int64)
    jobs[layout.ARRIVE] = np.concatenate([problem.arrive, problem.times[taken]])
    jobs[layout.SIZE] = np.concatenate([problem.size, problem.processors - problem.free[taken]])
    jobs[layout.ESTIMATE] = np.concatenate([problem.estimate, (ends - problem.times)[taken]])
    release = np.concatenate([problem.earliest, problem.times[taken]])
    if isinstance(objective, Sum):
        # The kernels take each term relative to its value in the FCFS plan.
        fcfs = decode(problem, np.argsort(problem.arrive, kind="stable").tolist())
        scaled = [(weight * part.value(problem, fcfs), part) for weight, part in objective.parts]
        objective = Sum(tuple(each for each in scaled if each[0] > 0) or objective.parts)  # 0: no plan does better
    blocks = np.ascontiguousarray(problem.times[taken])
    rule = plan_rule(objective, window=n, seed=seed)
    return new_window(rule, problem.now, problem.processors, jobs, release, blocks, problem.weight)


def _turn(window: Window, method: Method, hot: float, cold: float) -> Callable[[int], int]:
    """One round of a method: takes a budget of decodes, gives how many it took."""
    turns: dict[Method, Callable[[int], int]] = {
        "anneal": lambda budget: kernels.anneal(
            window._replace(rule=window.rule._replace(decodes=budget, hot=hot, cold=cold))
        ),
        "tabu": lambda budget: kernels.tabu(window, budget),
        "genetic": lambda budget: kernels.genetic(window, budget),
        "random": lambda budget: kernels.scatter(window, budget),
    }
    return turns[method]


def _listed(window: Window) -> Ints:
    """The starts of the best list plan."""
    kernels.lists(window)
    return _answer(window)


def _answer(window: Window) -> Ints:
    """The starts of the best plan, by job."""
    starts = np.empty(window.n, np.int64)
    starts[window.rule.space.ints[BEST_ORDER, : window.n]] = window.rule.space.ints[BEST_AT, : window.n]
    return starts


def _stand(window: Window, starts: Ints) -> None:
    """The next round begins with this plan: decoded in the order of its starts, it is the same again."""
    window.rule.space.ints[STOOD, : window.n] = starts


def _at_least(window: Window, starts: Ints) -> bool:
    """Whether every job starts as early as it could if it were alone."""
    return bool(np.array_equal(starts, window.rule.space.ints[FROM, : window.n]))
