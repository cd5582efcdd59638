"""Problems, decoding and checking, by hand and against a clock that counts seconds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dovetail.arrays import NEVER
from dovetail.optimize.window.problem import Problem, Solution, alone, check, decode, free_beside
from tests.optimize.brute import random_problem


def small(**other: Any) -> Problem:
    """Four processors, three of them busy until 110 and one more until 120; three jobs."""
    times, free = free_beside(100, 4, [2, 1], [110, 120])
    given: dict[str, Any] = {
        "now": 100, "processors": 4, "times": times, "free": free,
        "arrive": np.array([90, 95, 100]), "size": np.array([4, 1, 2]), "estimate": np.array([30, 10, 5]),
    }  # fmt: skip
    return Problem(**(given | other))


def test_by_hand() -> None:
    problem = small()
    assert (problem.times.tolist(), problem.free.tolist()) == ([100, 110, 120], [1, 3, 4])
    assert problem.earliest.tolist() == [100, 100, 100]
    assert problem.latest.tolist() == [NEVER] * 3
    assert problem.area.tolist() == [120, 10, 10]
    assert alone(problem).tolist() == [120, 100, 110]
    assert decode(problem, [0, 1, 2]).tolist() == [120, 100, 110]
    assert decode(small(estimate=np.array([30, 11, 12])), [2, 1, 0]).tolist() == [122, 100, 110]
    assert decode(problem, [2]).tolist() == [-1, -1, 110]


def test_one_with_all_that_ends_at_once() -> None:
    times, free = free_beside(0, 8, [3, 2, 1], [5, 5, 9])
    assert (times.tolist(), free.tolist()) == ([0, 5, 9], [2, 7, 8])
    with pytest.raises(ValueError, match=r"expected to end at 5, which is not after now \(5\)"):
        free_beside(5, 8, [3], [5])


def test_decode_takes_the_earliest_second_at_which_a_job_fits() -> None:
    rng = np.random.default_rng(1)
    for _ in range(300):
        problem = random_problem(rng, 5, longest=9, steps=4)
        order = rng.permutation(5)
        starts = decode(problem, order)
        assert check(problem, starts) == []
        # The same, second by second.
        seconds = problem.now + np.arange(100)
        left = problem.free[np.searchsorted(problem.times, seconds, side="right") - 1].copy()
        for job in order:
            length = problem.estimate[job]
            start = int(problem.earliest[job] - problem.now)
            while left[start : start + length].min() < problem.size[job]:
                start += 1
            left[start : start + length] -= problem.size[job]
            assert starts[job] == problem.now + start


def test_check_sees_what_a_clock_of_seconds_sees() -> None:
    rng = np.random.default_rng(2)
    broken = 0
    for _ in range(500):
        problem = random_problem(rng, 3, longest=6, steps=4, latest=rng.integers(60, 80, 3))
        starts = problem.earliest + rng.integers(-1, 15, 3)
        seconds = problem.now + np.arange(-5, 60)
        free = problem.free[np.maximum(np.searchsorted(problem.times, seconds, side="right") - 1, 0)]
        runs = (seconds >= starts[:, None]) & (seconds < (starts + problem.estimate)[:, None])
        used = (problem.size[:, None] * runs).sum(axis=0)
        early, late = bool(np.any(starts < problem.earliest)), bool(np.any(starts > problem.latest))
        full = bool(np.any((used > free) & (seconds >= problem.now)))
        said = " ".join(check(problem, starts))
        assert ("before its earliest start" in said, "after its latest" in said, "are free" in said) == (
            early,
            late,
            full,
        )
        broken += bool(said)
    assert 50 < broken < 450
    assert check(problem, starts[:2]) == ["there are 3 jobs, and starts of the shape (2,)"]


@pytest.mark.parametrize(
    ("other", "rule"),
    [
        ({"size": np.array([4, 0, 1])}, "job 1 of the problem has a size of less than 1"),
        ({"size": np.array([5, 1, 1])}, "job 0 of the problem has a size above the 4 processors"),
        ({"estimate": np.array([1, 1, 0])}, "job 2 of the problem has an estimate of less than 1 s"),
        ({"earliest": np.array([99, 100, 100])}, "job 0 of the problem has an earliest start before now"),
        ({"weight": np.array([1, np.nan, 1])}, "job 1 of the problem has a weight"),
        ({"weight": np.array([1, -1, 1])}, "job 1 of the problem has a weight"),
        ({"estimate": np.array([1, 1, 2**40])}, "below 2"),
        ({"arrive": np.array([-(2**40), 1, 1])}, "below 2"),
        ({"size": np.array([1, 1])}, r"3 jobs have an arrival, but size has the shape \(2,\)"),
        ({"now": 99}, "the first instant is now"),
        ({"times": np.array([100, 120, 110])}, "must rise"),
        ({"free": np.array([1, -1, 4])}, "from 0 to the cluster's 4 processors"),
        ({"free": np.array([1, 5, 4])}, "from 0 to the cluster's 4 processors"),
    ],
)
def test_what_is_no_problem(other: dict[str, Any], rule: str) -> None:
    with pytest.raises(ValueError, match=rule):
        small(**other)


def test_a_problem_cannot_be_changed() -> None:
    sizes = np.array([4, 1, 2])
    problem = small(size=sizes)
    sizes[0] = 1
    assert problem.size.tolist() == [4, 1, 2]
    with pytest.raises(ValueError, match="read-only"):
        problem.size[0] = 1


def test_a_solution_knows_whether_it_has_a_schedule() -> None:
    assert Solution(np.array([3]), 1.0, 1.0, "optimal", 0.0).found
    assert not Solution(np.array([-1]), np.inf, np.nan, "unknown", 0.0).found
