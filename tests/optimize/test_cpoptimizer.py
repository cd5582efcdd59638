"""CP Optimizer against all schedules of small problems, where its program is found."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.optimize.window.cpoptimizer import BRANCHES_PER_S, solve_cpoptimizer
from dovetail.optimize.window.objective import parse
from dovetail.optimize.window.problem import Problem, check, decode
from dovetail.referee import check_schedule
from tests.conftest import needs
from tests.optimize.brute import all_starts, best_order, random_problem, span_of, values
from tests.slow.policies import SlowJob
from tests.slow.workloads import workload_of

needs_program = needs("cpoptimizer", shutil.which("cpoptimizer") is not None)


def _in_order(problem: Problem) -> Ints:
    return decode(problem, np.argsort(problem.arrive, kind="stable").tolist())


@needs_program
@pytest.mark.parametrize("name", ["af", "awf", "bsld", "wait", "makespan", "p2sf"])
def test_proves_the_least_of_all_schedules(name: str) -> None:
    rng = np.random.default_rng(1)
    for jobs in (1, 2, 3, 3):
        problem = random_problem(rng, jobs, longest=7, weight=rng.integers(0, 4, jobs) + 0.5)
        least = values(name, problem, all_starts(problem, span_of(problem))).min()
        found = solve_cpoptimizer(problem, parse(name), deterministic_s=5, hint=_in_order(problem))
        assert check(problem, found.starts) == []
        assert found.value == pytest.approx(least, rel=1e-9)
        assert found.status == "optimal"
        assert found.bound <= found.value


@needs_program
@pytest.mark.parametrize("name", ["af+0.5*bsld+0.01*makespan", "p2sf"])
def test_no_worse_than_where_it_began_and_the_same_again(name: str) -> None:
    rng, objective = np.random.default_rng(2), parse(name)
    for idle in (False, True):
        problem = random_problem(rng, 6, longest=30)
        hint = _in_order(problem)
        few, some, again = (
            solve_cpoptimizer(problem, objective, deterministic_s=branches / BRANCHES_PER_S, hint=hint, idle=idle)
            for branches in (1, 20_000, 20_000)
        )
        assert few.value <= objective.value(problem, hint)
        assert some.value <= best_order(problem, objective) * (1 + 1e-9)
        assert some.starts.tolist() == again.starts.tolist()
        assert few.status == "feasible"


@needs_program
def test_as_a_policy() -> None:
    """On two processors a wide job comes first; the narrow short ones that come with it are better before it."""
    jobs = [SlowJob(0, (2,), 10, 10), SlowJob(1, (2,), 50, 50), SlowJob(1, (1,), 5, 5), SlowJob(1, (1,), 5, 5)]
    made = replay(workload_of(jobs, (2,)), "cp-af:solver=cpoptimizer", estimate="runtime")
    assert made.start.tolist() == [0, 15, 10, 10]
    assert not check_schedule(made)


def test_a_hint_that_is_no_schedule_is_refused() -> None:
    problem = random_problem(np.random.default_rng(1), 2, latest=np.array([0, 0]))
    with pytest.raises(ValueError, match="the hint is no schedule"):
        solve_cpoptimizer(problem, parse("af"), deterministic_s=1, hint=_in_order(problem))


def test_its_time_is_not_charged() -> None:
    workload = workload_of([SlowJob(0, (1,), 5, 5)], (1,))
    with pytest.raises(SettingError, match="whose time is not charged"):
        replay(workload, "cp-af:solver=cpoptimizer", charge_decisions=True)


@needs_program
def test_a_window_that_is_too_large_for_the_edition() -> None:
    problem = random_problem(np.random.default_rng(1), 1500)
    with pytest.raises(SettingError, match="window of 1500 jobs is too large for this edition; set window= to fewer"):
        solve_cpoptimizer(problem, parse("af"), deterministic_s=1e-5, hint=_in_order(problem))


def test_without_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    problem = random_problem(np.random.default_rng(1), 2)
    with pytest.raises(SettingError, match="no program cpoptimizer in the PATH"):
        solve_cpoptimizer(problem, parse("af"), deterministic_s=1, hint=_in_order(problem))
