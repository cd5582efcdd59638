"""Bounds: never above the best of all schedules, and the numbers they are known to have."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dovetail.model.workload import Provenance, Workload
from dovetail.optimize.bounds import awf_bound_s, lower_bound
from dovetail.optimize.objective import Bsld, Objective, Pasf, parse
from dovetail.optimize.problem import Problem, alone
from dovetail.workloads.source import read_workload
from tests.conftest import TRACES, needs_traces
from tests.optimize.brute import all_starts, best_order, random_problem, span_of, values


def workload(submit: list[int], size: list[int], runtime: list[int], processors: int) -> Workload:
    columns = {
        "id": np.arange(len(submit)),
        "submit": np.array(submit),
        "size": np.array(size),
        "runtime": np.array(runtime),
        "limit": np.array(runtime),
    }
    return Workload("small", columns, processors, Provenance("by hand"))


@pytest.mark.parametrize("text", ["af", "awf", "bsld", "wait", "makespan", "af+2*bsld"])
def test_never_above_the_best_order(text: str) -> None:
    rng = np.random.default_rng(1)
    objective, ratios = parse(text), []
    for _ in range(40):
        problem = random_problem(rng, 5, longest=25, weight=rng.random(5))
        best = best_order(problem, objective)
        ratios.append(lower_bound(problem, objective) / best)
        assert ratios[-1] <= 1 + 1e-12
    assert max(ratios) > 0.95  # and it says something
    assert np.mean(ratios) > 0.7


def test_never_above_the_best_of_all_starts() -> None:
    rng = np.random.default_rng(2)
    for _ in range(40):
        problem = random_problem(rng, 3, longest=6, weight=rng.random(3))
        rows = all_starts(problem, span_of(problem))
        for name in ("af", "awf", "bsld", "wait", "makespan"):
            assert lower_bound(problem, parse(name)) <= values(name, problem, rows).min() * (1 + 1e-12), name


@pytest.mark.parametrize("objective", [parse("af"), parse("awf"), parse("bsld"), Bsld(0), parse("wait")], ids=str)
def test_at_least_each_job_alone(objective: Objective) -> None:
    rng = np.random.default_rng(3)
    gained = 0
    for _ in range(50):
        problem = random_problem(rng, 6, longest=25)
        by_itself = objective.value(problem, alone(problem))
        bound = lower_bound(problem, objective)
        assert bound >= by_itself * (1 - 1e-12)
        gained += bound > by_itself * 1.01
    assert gained > 25


def test_jobs_as_wide_as_the_machine_are_bounded_well() -> None:
    """One after another, shortest first: AF is (10 + 30 + 60) / 3."""
    problem = Problem(0, 4, np.array([0]), np.array([4]), np.zeros(3, np.int64), np.full(3, 4), np.array([10, 20, 30]))
    assert best_order(problem, parse("af")) == pytest.approx(100 / 3)
    # Handed in at rate 4 each, from 0 on: the first alone has no backlog. The first two: backlog rises by 4 a second
    # to 40 at 10 and is served until 30: between them 4 a second come and 4 go until 20. 200 + 400 + 200 = 800.
    # All three: 80 at 10, 120 at 20, 120 at 30, 0 at 60: 400 + 1000 + 1200 + 1800 = 4400.
    densities = [Fraction(1, 3 * 4 * length) for length in (10, 20, 30)]
    expected = Fraction(60, 3) + (densities[1] - densities[2]) * 800 + densities[2] * 4400
    assert lower_bound(problem, parse("af")) == pytest.approx(float(expected), rel=1e-14)


@pytest.mark.parametrize("level", [0, 0.5, 2, 5])
def test_pasf_is_never_below_its_bound_even_with_idling(level: float) -> None:
    rng = np.random.default_rng(5)
    objective, ratios = Pasf(level), []
    for _ in range(10):
        problem = random_problem(rng, 2, longest=9)
        rows = all_starts(problem, 2 * span_of(problem))
        least = min(objective.value(problem, row) for row in rows)
        ratios.append(lower_bound(problem, objective) / least)
        assert ratios[-1] <= 1 + 1e-12
    assert max(ratios) > 0.8


def test_where_none_is_known() -> None:
    none = np.empty(0, np.int64)
    assert np.isnan(lower_bound(Problem(0, 1, np.array([0]), np.array([1]), none, none, none), parse("af")))


def test_a_whole_workload_by_hand() -> None:
    """Two jobs of 3 x 10 at 0 on 4 processors: 60 units of work take 15 s, their mean instant is 7.5 s; plus 10/2."""
    two = workload([0, 0], [3, 3], [10, 10], 4)
    assert awf_bound_s(two) == 12.5
    # At 3 a second each, 6 come and 4 go: 20 are left at 10 s, gone at 15 s: 100 + 50 over 60, and the 10 s of each.
    assert awf_bound_s(two, by_size=True) == 10 + 150 / 60
    # A job that has the machine for itself can only take its own length.
    assert awf_bound_s(workload([5], [1], [10], 4), by_size=True) == 10
    assert awf_bound_s(workload([5], [1], [10], 4)) == 10 / 4 / 2 + 5
    assert np.isnan(awf_bound_s(workload([5], [1], [0], 4)))


@pytest.mark.parametrize(("size", "runtime"), [(5, 1), (0, 1), (1, -1)])
def test_jobs_that_cannot_run_have_no_bound(size: int, runtime: int) -> None:
    with pytest.raises(ValueError, match="unknown run time or that do not fit"):
        awf_bound_s(workload([0], [size], [runtime], 4))


def test_a_whole_workload_never_above_the_best_of_all_starts() -> None:
    rng = np.random.default_rng(4)
    for _ in range(40):
        submit = np.sort(rng.integers(0, 8, 3))
        submit[0] = 0
        size, runtime = rng.integers(1, 4, 3), rng.integers(1, 7, 3)
        jobs = workload(submit.tolist(), size.tolist(), runtime.tolist(), 3)
        offline = Problem(0, 3, np.array([0]), np.array([3]), submit, size, runtime)
        best = values("awf", offline, all_starts(offline, span_of(offline))).min()
        plain, tighter = awf_bound_s(jobs), awf_bound_s(jobs, by_size=True)
        assert plain * (1 - 1e-12) <= tighter <= best * (1 + 1e-12)
        # The fluid as a server that takes jobs in order of submit: it finishes each second what it can.
        done_at, total = Fraction(0), Fraction(0)
        for at, area, length in zip(submit.tolist(), (size * runtime).tolist(), runtime.tolist(), strict=True):
            begin = max(done_at, Fraction(at))
            done_at = begin + Fraction(area, 3)
            total += area * ((begin + done_at) / 2 - at + Fraction(length, 2))
        assert plain == pytest.approx(float(total / int((size * runtime).sum())), rel=1e-13)


@needs_traces
def test_ctc_sp2() -> None:
    """`list-reg` has 82,269 s there (tests/golden)."""
    log = read_workload(TRACES / "papers" / "CTC-SP2.swf.gz")
    assert round(awf_bound_s(log)) == 59_702
    assert round(awf_bound_s(log, by_size=True)) == 67_291
