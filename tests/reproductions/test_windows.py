"""The search as a solver: proved optima where they are known, the planner's own plans, no rule broken."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from dovetail.errors import SettingError
from dovetail.model.plan import Plan
from dovetail.optimize.window.cpsat import solve
from dovetail.optimize.window.objective import OBJECTIVES, Bsld, parse
from dovetail.optimize.window.problem import Problem, alone, check, decode
from dovetail.policies.planner import Planner
from dovetail.policies.published.solver import problem_of
from reproductions.windows.cutting import Passes, passes, small
from reproductions.windows.search import METHODS, Method, search
from tests.conftest import TRACES, needs_traces
from tests.optimize.brute import best_order, random_problem
from tests.optimize.test_cpsat import window
from tests.policies.test_planner import starts_of, watched

pytestmark = pytest.mark.xdist_group("windows")  # they compile kernels of their own

REGULAR = ("af", "awf", "bsld")


@cache
def kth() -> Passes:
    return passes(TRACES / "papers" / "KTH-SP2.swf.gz", "runtime")


def list_plans(problem: Problem) -> list[list[int]]:
    """The orders of the five lists, by their formulas."""
    area = problem.area
    keys = (problem.arrive, problem.estimate, area, -area, area * problem.estimate)
    return [np.argsort(key, kind="stable").tolist() for key in keys]


def is_optimum(problem: Problem, name: str, seed: int) -> bool:
    """Whether the search found what CP-SAT proves to be the least over all whole starts; False: it proves nothing."""
    objective = OBJECTIVES[name]
    found = search(problem, objective, decodes=3000, seed=seed).solution
    assert check(problem, found.starts) == []
    least = solve(problem, objective, deterministic_s=1, seed=seed)
    assert found.value <= least.value * (1 + 1e-12)
    assert found.value >= least.bound * (1 - 1e-9)
    if least.status == "optimal":
        assert found.value == pytest.approx(least.value, rel=1e-12)
    return least.status == "optimal"


@pytest.mark.parametrize("name", REGULAR)
def test_random_windows_reach_the_proved_optimum(name: str) -> None:
    rng = np.random.default_rng(11)
    windows = [random_problem(rng, int(rng.integers(2, 9)), longest=20, steps=4) for _ in range(25)]
    assert sum(is_optimum(problem, name, seed) for seed, problem in enumerate(windows)) >= 20


@needs_traces
@pytest.mark.parametrize("name", REGULAR)
def test_real_windows_reach_the_proved_optimum(name: str) -> None:
    """On a coarser clock, where CP-SAT proves quickly; the page has 1,000 of them."""
    windows = list(small(kth(), 40, seed=3))
    assert max(len(problem) for problem in windows) == 8
    assert sum(is_optimum(problem, name, seed) for seed, problem in enumerate(windows)) >= 36


@pytest.mark.parametrize("name", ["p2sf", "pasf:3", "pasf:0", "wait", "makespan", "af+makespan"])
def test_small_windows_reach_the_best_order(name: str) -> None:
    rng = np.random.default_rng(12)
    objective = parse(name)
    for seed in range(12):
        problem = random_problem(rng, 5, longest=50, steps=4)
        found = search(problem, objective, decodes=1000, seed=seed).solution
        assert found.value == pytest.approx(best_order(problem, objective), rel=1e-12), seed


def test_terms_of_a_sum_count_as_they_are() -> None:
    """In the planner they count relative to the FCFS plan."""
    objective = parse("awf+300*bsld")
    for seed in range(12):
        problem = window(6, seed)
        found = search(problem, objective, decodes=2000).solution
        assert found.value == pytest.approx(best_order(problem, objective), rel=1e-12), seed


@pytest.mark.parametrize("name", [*REGULAR, "p2sf"])
def test_annealing_is_what_the_planner_does_in_a_pass(name: str) -> None:
    passes_seen = 0
    planner = Planner(name, decodes=60, window=100, long_s=None)
    for seed in range(25):
        for state, _ in watched(seed, Planner(name, decodes=5)):
            alone_here = replace(state, standing=Plan(), seed=seed)
            wanted = starts_of(alone_here, planner.decide(alone_here))
            found = search(
                problem_of(state), OBJECTIVES[name], decodes=60, seed=seed, hot=planner.hot, cold=planner.cold
            )
            assert found.solution.starts.tolist() == [wanted[job] for job in state.waiting.tolist()]
            passes_seen += len(state.waiting) > 2
    assert passes_seen > 50


@pytest.mark.parametrize("method", METHODS)
def test_no_list_plan_is_better_and_every_plan_is_a_schedule(method: Method) -> None:
    rng = np.random.default_rng(13)
    better = 0
    for seed in range(40):
        problem = random_problem(rng, int(rng.integers(1, 40)), longest=90, steps=6)
        for name in ("af", "awf", "bsld", "p2sf", "awf+p2sf"):
            objective = parse(name)
            found = search(problem, objective, decodes=300, seed=seed, method=method)
            starts, values = found.solution.starts, [one.value for one in found.history]
            assert check(problem, starts) == []
            assert starts.tolist() == decode(problem, np.argsort(starts, kind="stable").tolist()).tolist()
            assert found.solution.value == objective.value(problem, starts)
            lists = min(objective.value(problem, decode(problem, order)) for order in list_plans(problem))
            assert values[0] == pytest.approx(lists, rel=1e-12)
            assert values == sorted(values, reverse=True)
            better += values[-1] < lists * (1 - 1e-9)
    assert better > (15 if method == "random" else 60)


@pytest.mark.parametrize("method", METHODS)
def test_same_seed_same_bytes_and_another_seed_others(method: Method) -> None:
    problem = window(20)
    starts = [
        search(problem, OBJECTIVES["awf"], decodes=500, seed=seed, method=method).solution.starts.tobytes()
        for seed in (3, 3, 4)
    ]
    assert starts[0] == starts[1] != starts[2]


@pytest.mark.parametrize("method", METHODS)
def test_rounds_go_on_from_the_best_and_end_in_time(method: Method) -> None:
    problem = window(20)
    search(problem, OBJECTIVES["awf"], decodes=1, method=method)  # compiled before the clock runs
    found = search(problem, OBJECTIVES["awf"], decodes=50, cpu_s=0.3, method=method)
    history = found.history
    assert len(history) > 4
    assert [one.decodes for one in history] == sorted({one.decodes for one in history})
    assert [one.value for one in history] == sorted((one.value for one in history), reverse=True)
    assert history[-1].value < history[0].value
    assert 0.2 < history[-1].cpu_s <= found.solution.cpu_s < 3  # the last round is as long as the one before, or so


def test_a_plan_as_if_each_job_were_alone_is_proved() -> None:
    problem = Problem(0, 9, np.array([0, 5]), np.array([2, 9]), np.array([0, 0]), np.array([2, 3]), np.array([5, 5]))
    for method in METHODS:
        found = search(problem, OBJECTIVES["af"], decodes=100, cpu_s=60, method=method)
        assert found.solution.starts.tolist() == alone(problem).tolist() == [0, 5]
        assert found.solution.status == "optimal"
        assert found.solution.bound == found.solution.value == 7.5
        assert len(found.history) == 1
    assert search(problem, OBJECTIVES["p2sf"], decodes=100).solution.status == "feasible"  # idling might be better


def test_earliest_starts_and_capacity_that_falls() -> None:
    """By hand: four processors, none of them from 10 to 20 and two from 30 on. Job 0 may start from 5 on only."""
    problem = Problem(
        now=0, processors=4, times=np.array([0, 10, 20, 30]), free=np.array([4, 0, 4, 2]),
        arrive=np.array([0, 0, 0]), size=np.array([2, 2, 2]), estimate=np.array([5, 6, 20]),
        earliest=np.array([5, 0, 0]),
    )  # fmt: skip
    found = search(problem, OBJECTIVES["af"], decodes=50).solution
    assert found.starts.tolist() == [5, 0, 20]
    later = replace(problem, earliest=np.array([6, 0, 21]))
    assert search(later, OBJECTIVES["af"], decodes=50).solution.starts.tolist() == [20, 0, 21]


def test_no_jobs_and_what_it_cannot_do() -> None:
    none = np.empty(0, np.int64)
    empty = Problem(0, 4, np.array([0]), np.array([4]), none, none, none)
    assert search(empty, OBJECTIVES["af"]).solution.status == "optimal"
    problem = random_problem(np.random.default_rng(0), 3)
    for objective, says in {
        Bsld(60): "cannot minimise Bsld", parse("pasf:1.5"): "whole level", parse("p2sf+pasf:3"): "one PaSF",
    }.items():  # fmt: skip
        with pytest.raises(SettingError, match=says):
            search(problem, objective)
    with pytest.raises(SettingError, match="no search method 'hope': choose anneal, tabu"):
        search(problem, OBJECTIVES["af"], method="hope")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="decodes=-1: must be from 0"):
        search(problem, OBJECTIVES["af"], decodes=-1)
    late = replace(problem, latest=problem.earliest + 5)
    with pytest.raises(SettingError, match="no latest starts"):
        search(late, OBJECTIVES["af"])


def test_rounds_never_lose_the_best_plan_of_jobs_still_to_come() -> None:
    rng = np.random.default_rng(4)
    for seed in range(12):
        made = random_problem(rng, 7, longest=20, steps=3)
        arrive = made.arrive + rng.integers(0, 40, 7)
        later = replace(made, arrive=arrive, earliest=np.maximum(arrive, made.earliest))
        found = search(later, OBJECTIVES["af"], decodes=4, cpu_s=0.01, seed=seed)
        values = [step.value for step in found.history]
        assert values == sorted(values, reverse=True)
        assert found.solution.value == values[-1]


def test_a_term_that_no_plan_can_better_is_left_out() -> None:
    alone = random_problem(np.random.default_rng(0), 1)
    now = np.array([alone.now])
    free = replace(alone, times=now, free=np.array([alone.processors]), arrive=now, earliest=now)
    assert search(free, parse("af+wait")).solution.starts.tolist() == [alone.now]
