"""Small random problems, and their best schedules by looking at all of them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import permutations
from typing import Any

import numpy as np
import numpy.typing as npt

from dovetail.optimize.window.objective import Objective
from dovetail.optimize.window.problem import Problem, check, decode

Array = npt.NDArray[Any]


def random_problem(rng: np.random.Generator, jobs: int, longest: int = 6, steps: int = 3, **more: Any) -> Problem:
    """A few jobs that may still arrive, on up to five processors; free capacity that rises and falls."""
    processors = int(rng.integers(2, 6))
    now = int(rng.integers(0, 50))
    times = now + np.concatenate([[0], 1 + np.sort(rng.choice(8, size=steps - 1, replace=False))])
    free = rng.integers(0, processors + 1, size=steps)
    free[-1] = rng.integers(1, processors + 1)
    arrive = now - rng.integers(-3, 20, size=jobs)
    return Problem(
        now=now,
        processors=processors,
        times=times,
        free=free,
        arrive=arrive,
        size=rng.integers(1, free[-1] + 1, size=jobs),
        estimate=rng.integers(1, longest + 1, size=jobs),
        earliest=np.maximum(arrive, now) + rng.integers(0, 3, size=jobs),
        **more,
    )


def all_starts(problem: Problem, span: int) -> Array:
    """Every schedule in which all jobs start less than `span` seconds from now, one per row; feasible ones only."""
    n = len(problem)
    rows = np.stack([axis.ravel() for axis in np.meshgrid(*[np.arange(span)] * n, indexing="ij")], axis=1)
    rows = rows[np.all((rows + problem.now >= problem.earliest) & (rows + problem.now <= problem.latest), axis=1)]
    seconds = np.arange(span + int(problem.estimate.max()))
    free = problem.free[np.searchsorted(problem.times - problem.now, seconds, side="right") - 1]
    used = np.zeros((len(rows), len(seconds)), np.int8)
    for job in range(n):
        begin = rows[:, job, None]
        used += (problem.size[job] * ((seconds >= begin) & (seconds < begin + problem.estimate[job]))).astype(np.int8)
    return rows[np.all(used <= free, axis=1)] + problem.now


def span_of(problem: Problem) -> int:
    """Seconds within which every schedule without idling on purpose starts its jobs."""
    return int(max(problem.times[-1], problem.earliest.max()) - problem.now + problem.estimate.sum())


def values(name: str, problem: Problem, rows: Array) -> Array:
    """The objective of each row, by the formula in words."""
    q = (rows - problem.arrive).astype(float)
    e, r = problem.estimate, problem.size
    f = q + e
    formulas: dict[str, Callable[[], Array]] = {
        "af": lambda: f.mean(axis=1),
        "awf": lambda: (r * e * f).sum(axis=1) / (r * e).sum(),
        "bsld": lambda: np.maximum(1, f / np.maximum(e, 10)).mean(axis=1),
        "wait": lambda: (problem.weight * q).sum(axis=1) / problem.weight.sum(),
        "makespan": lambda: (rows + e).max(axis=1) - problem.arrive.min(),
        "p2sf": lambda: 3 / 4 * (r * (f**4 - q**4)).sum(axis=1) / (r * (f**3 - q**3)).sum(axis=1),
    }
    return formulas[name]()


def best_order(problem: Problem, objective: Objective) -> float:
    """The least value over all orders, decoded."""
    plans = (decode(problem, order) for order in permutations(range(len(problem))))
    return min(objective.value(problem, plan) for plan in plans if not check(problem, plan))
