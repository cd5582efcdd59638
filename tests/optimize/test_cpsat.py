"""CP-SAT against all schedules of small problems."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

from dovetail.arrays import NEVER
from dovetail.errors import SettingError
from dovetail.optimize.window import cpsat as model
from dovetail.optimize.window.bounds import lower_bound
from dovetail.optimize.window.cpsat import solve
from dovetail.optimize.window.cpsat_costs import costs_around
from dovetail.optimize.window.cpsat_grid import coarsened
from dovetail.optimize.window.objective import Pasf, parse
from dovetail.optimize.window.problem import Problem, alone, check, decode, free_beside
from tests.optimize.brute import all_starts, best_order, random_problem, span_of, values

REGULAR = ("af", "awf", "bsld", "wait", "makespan")


@pytest.mark.parametrize("name", REGULAR)
def test_proves_the_least_of_all_schedules(name: str) -> None:
    rng = np.random.default_rng(1)
    for jobs in (1, 2, 3, 3, 4, 4):
        problem = random_problem(rng, jobs, longest=4 if jobs == 4 else 7, weight=rng.integers(0, 4, jobs) + 0.5)
        least = values(name, problem, all_starts(problem, span_of(problem))).min()
        found = solve(problem, parse(name), deterministic_s=5)
        assert check(problem, found.starts) == []
        assert found.status == "optimal"
        assert found.value == pytest.approx(least, rel=1e-12)
        assert values(name, problem, found.starts[None])[0] == pytest.approx(found.value, rel=1e-12)
        assert least * (1 - 1e-8) <= found.bound <= least * (1 + 1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*REGULAR, "af+0.5*bsld+0.01*makespan", "pasf:0"])
def test_regular_objectives_have_an_optimal_order(name: str) -> None:
    rng = np.random.default_rng(2)
    objective = parse(name)
    for _ in range(4):
        problem = random_problem(rng, 6, longest=30)
        found = solve(problem, objective, deterministic_s=5)
        assert check(problem, found.starts) == []
        assert found.status == "optimal"
        assert found.value == pytest.approx(best_order(problem, objective), rel=1e-12)


def test_p2sf_is_least_of_all_schedules() -> None:
    rng = np.random.default_rng(3)
    idle = 0
    for _ in range(12):
        problem = random_problem(rng, 3, longest=8, steps=2)
        orders = best_order(problem, parse("p2sf"))
        # Once its wait is above the value of PaSF, no job gains by more of it.
        span = max(span_of(problem), int(problem.arrive.max() - problem.now + orders) + int(problem.estimate.sum()))
        least = values("p2sf", problem, all_starts(problem, span)).min()
        found = solve(problem, parse("p2sf"), deterministic_s=10)
        assert check(problem, found.starts) == []
        assert found.status == "optimal"
        assert found.value == pytest.approx(least, rel=1e-12)
        assert least * (1 - 1e-6) <= found.bound <= least * (1 + 1e-12)
        idle += least < orders * (1 - 1e-9)
    assert idle  # some of them idle on purpose


@pytest.mark.parametrize("name", ["p2sf", "pasf:1.5"])
def test_ratios_are_never_worse_than_the_best_order_of_small_problems(name: str) -> None:
    rng = np.random.default_rng(4)
    objective = parse(name)
    for longest in (8, 8, 50, 5000):
        problem = random_problem(rng, 5, longest=longest)
        found = solve(problem, objective, deterministic_s=3)
        assert check(problem, found.starts) == []
        assert found.value <= best_order(problem, objective) * (1 + 1e-12)
        assert not found.bound > found.value


@pytest.mark.parametrize("level", [0.5, 1, 2, 3])
def test_tangents_bound_pasf_from_below(level: float, monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail.optimize.window import cpsat_build as build

    rng = np.random.default_rng(8)
    objective, close = Pasf(level), 0
    for _ in range(8):
        problem = random_problem(rng, 3, longest=9)
        monkeypatch.setattr(build, "POINTS", 10**6)
        exact = solve(problem, objective, deterministic_s=10)
        assert exact.status == "optimal"
        monkeypatch.setattr(build, "POINTS", 0)
        found = solve(problem, objective, deterministic_s=3)
        assert found.status == "feasible"  # tangents alone prove no optimum
        assert found.bound <= exact.value * (1 + 1e-12) <= found.value * (1 + 2e-12)
        assert check(problem, found.starts) == []
        close += found.bound > 0.9 * exact.value
    assert close >= 2


@pytest.mark.parametrize("level", [0.5, 1, 1.5, 2, 3, 6])
def test_no_tangent_is_above_the_cost(level: float) -> None:
    from dovetail.optimize.window import cpsat_build as build

    rng = np.random.default_rng(10)
    lines = touched = 0
    for _ in range(40):
        problem = random_problem(rng, 4, longest=40)
        known = decode(problem, rng.permutation(4))
        costs = costs_around(problem, Pasf(level), known)
        frame = build.framed(problem, costs, known, int(rng.integers(1, 4)))
        (ratio,) = costs.ratios
        units = frame.low[:, None] + np.arange(frame.widest)
        cost = costs.at(problem, frame.starts(units)) - costs.least(problem, frame.starts(frame.low))[:, None]
        small = 1e-12 * np.abs(cost).max()
        assert np.all(cost[units <= frame.high[:, None]] >= -small)
        for job, tangents in enumerate(build.tangent_lines(frame, ratio)):
            inside = cost[job, : frame.high[job] - frame.low[job] + 1]
            for slope, height in tangents:
                gap = inside - (slope * np.arange(len(inside)) + height)
                assert gap.min() >= -small
                lines, touched = lines + 1, touched + bool(gap.min() <= small)
    assert lines > 500
    assert touched > 0.9 * lines  # and none could be higher


@pytest.mark.parametrize("name", ["af", "bsld", "makespan", "p2sf"])
def test_a_coarse_model_first_changes_no_proof(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(9)
    for _ in range(4):
        problem = random_problem(rng, 4, longest=9)
        plain = solve(problem, parse(name), deterministic_s=10)
        with monkeypatch.context() as patch:
            patch.setattr(model, "STEPS", 4)
            coarse = solve(problem, parse(name), deterministic_s=10)
        assert plain.status == coarse.status == "optimal"
        assert coarse.value == pytest.approx(plain.value, rel=1e-12)


def test_without_idling_nobody_waits_for_nothing() -> None:
    rng = np.random.default_rng(3)  # the problems on which the least P2SF idles
    worse = 0
    for _ in range(12):
        problem = random_problem(rng, 3, longest=8, steps=2)
        found = solve(problem, parse("p2sf"), deterministic_s=5, idle=False)
        assert found.starts.tolist() == decode(problem, np.argsort(found.starts, kind="stable")).tolist()
        least = solve(problem, parse("p2sf"), deterministic_s=5)
        assert found.status == "feasible"
        assert found.bound <= least.value * (1 + 1e-12)
        assert least.value <= best_order(problem, parse("p2sf")) <= found.value * (1 + 1e-12)
        worse += least.value < found.value * (1 - 1e-9)
    assert worse


def window(jobs: int, seed: int = 0) -> Problem:
    """A queue as it may stand on a machine of 100 processors."""
    rng = np.random.default_rng(seed)
    times, free = free_beside(10_000, 100, [40, 30, 20], [11_000, 25_000, 60_000])
    return Problem(
        now=10_000,
        processors=100,
        times=times,
        free=free,
        arrive=rng.integers(0, 10_000, jobs),
        size=2 ** rng.integers(0, 7, jobs),
        estimate=rng.integers(60, 40_000, jobs),
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", ["af", "awf", "p2sf", "af+0.5*p2sf"])
def test_large_windows_are_never_worse_than_their_hint_and_repeat(name: str) -> None:
    problem, objective = window(25), parse(name)
    hint = decode(problem, np.argsort(problem.arrive))
    found = solve(problem, objective, deterministic_s=0.3, seed=5, hint=hint)
    assert check(problem, found.starts) == []
    assert found.value < objective.value(problem, hint)
    assert found.value == objective.value(problem, found.starts)
    assert found.status == "feasible"
    assert 0 < lower_bound(problem, objective) <= found.bound < found.value
    again = solve(problem, objective, deterministic_s=0.3, seed=5, hint=hint)
    assert again.starts.tolist() == found.starts.tolist()


def test_latest_starts_are_kept_or_proved_impossible() -> None:
    rng = np.random.default_rng(6)
    seen = set()
    for _ in range(25):
        problem = random_problem(rng, 3, longest=5)
        late = problem.earliest + rng.integers(0, 7, 3)
        problem = Problem(**{**vars(problem), "latest": np.where(rng.random(3) < 0.7, late, NEVER)})
        rows = all_starts(problem, span_of(problem))
        found = solve(problem, parse("af"), deterministic_s=5)
        seen.add(found.status)
        if not len(rows):
            assert (found.status, found.value, found.starts.tolist()) == ("infeasible", np.inf, [-1, -1, -1])
        else:
            assert found.status == "optimal"
            assert check(problem, found.starts) == []
            assert found.value == pytest.approx(values("af", problem, rows).min(), rel=1e-12)
    assert seen == {"optimal", "infeasible"}


def test_coarse_schedules_are_true_and_decoding_never_delays() -> None:
    rng = np.random.default_rng(7)
    for _ in range(200):
        problem = random_problem(rng, 5, longest=40, steps=5)
        unit = int(rng.integers(1, 12))
        starts = problem.now + unit * decode(coarsened(problem, unit), rng.permutation(5))
        assert check(problem, starts) == []
        assert np.all(decode(problem, np.argsort(starts, kind="stable")) <= starts)
    assert coarsened(problem, 1).free.tolist() == problem.free.tolist()


def test_a_hint_must_be_a_schedule_and_work_above_0() -> None:
    problem = window(5)
    with pytest.raises(ValueError, match="the hint is no schedule of the problem: job 0 starts at 0, before"):
        solve(problem, parse("af"), hint=np.zeros(5, np.int64))
    with pytest.raises(ValueError, match="deterministic_s is above 0"):
        solve(problem, parse("af"), deterministic_s=0)


def test_no_jobs() -> None:
    none = np.empty(0, np.int64)
    problem = Problem(0, 4, np.array([0]), np.array([4]), none, none, none)
    found = solve(problem, parse("af"))
    assert (found.status, found.starts.tolist()) == ("optimal", [])
    assert np.isnan(found.value)


def test_a_schedule_at_its_least_needs_no_search() -> None:
    problem = Problem(0, 9, np.array([0, 5]), np.array([2, 9]), np.array([0, 0]), np.array([2, 3]), np.array([5, 5]))
    for name in ("af", "makespan", "af+makespan", "bsld"):
        found = solve(problem, parse(name))
        assert found.starts.tolist() == alone(problem).tolist() == [0, 5]
        assert found.status == "optimal"
        assert found.bound == found.value


def test_ortools_is_loaded_only_to_solve() -> None:
    rooms = "dovetail.optimize.window.cpsat, dovetail.optimize.window.bounds"
    code = f"import sys, {rooms}; sys.exit('ortools' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_without_ortools_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)
    with pytest.raises(SettingError, match="pip install ortools"):
        solve(window(3), parse("af"))
