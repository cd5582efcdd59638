"""Bounds: never above the best of all schedules, and the numbers they are known to have."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dovetail import metrics
from dovetail.arrays import Ints
from dovetail.io.read import read_workload
from dovetail.model.workload import Provenance, Workload
from dovetail.optimize.window import bounds
from dovetail.optimize.window.bounds import awf_bound_s, lower_bound, workload_bounds
from dovetail.optimize.window.cpsat import solve
from dovetail.optimize.window.objective import Bsld, Objective, Pasf, parse
from dovetail.optimize.window.problem import Problem, alone
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


@pytest.mark.slow
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


@pytest.mark.slow
@pytest.mark.parametrize("level", [0, 0.5, 2, 5])
def test_pasf_is_never_below_its_bound_even_with_idling(level: float) -> None:
    rng = np.random.default_rng(5)
    objective, ratios = Pasf(level), []
    for _ in range(40):
        problem = random_problem(rng, 2, longest=9)
        rows = all_starts(problem, 2 * span_of(problem))
        least = min(objective.value(problem, row) for row in rows)
        ratios.append(lower_bound(problem, objective) / least)
        assert ratios[-1] <= 1 + 1e-12
    assert max(ratios) > 0.999
    assert np.mean(ratios) > 0.9


def test_pasf_by_hand() -> None:
    """One job of 12 s on the machine at once: its units have all ages from 0 to 12 s.

    P2SF is 3/4 x 12 = 9 s, and units younger than 2/3 of it pull it down. With those below y raised to y it is
    ((12^4 - y^4) / 4 + y^4) / ((12^3 - y^3) / 3 + y^3), and the right y is 2/3 of that.
    """
    problem = Problem(0, 2, np.array([0]), np.array([2]), np.zeros(1, np.int64), np.array([2]), np.array([12]))
    low, high = 0.0, 12.0
    for _ in range(100):
        y = (low + high) / 2
        raised = ((12**4 - y**4) / 4 + y**4) / ((12**3 - y**3) / 3 + y**3)
        low, high = (y, high) if raised > 1.5 * y else (low, y)
    assert lower_bound(problem, Pasf(2)) == pytest.approx(1.5 * low, rel=1e-13)
    assert 8 < 1.5 * low < 9


@pytest.mark.parametrize("level", [0, 2, 100])
def test_pasf_is_bounded_at_least_as_by_level_0(level: float) -> None:
    """Layers of backlog, and units matched one by one, must agree on the mean age."""
    rng = np.random.default_rng(6)
    for jobs in (1, 2, 5, 30):
        for _ in range(10):
            problem = random_problem(rng, jobs, longest=200, steps=5)
            mean_age = bounds._per_job(problem, Pasf(0).level_0(problem), alone(problem))
            found = lower_bound(problem, Pasf(level))
            assert found >= mean_age * (1 - 1e-12)
            if level == 0:
                assert found == pytest.approx(mean_age, rel=1e-12)


def slow_backlog(problem: Problem, first: Ints, jobs: list[int]) -> Fraction:
    """The integral of the server's backlog, from event to event in exact fractions."""
    events = sorted(
        {*problem.times.tolist(), *(int(first[j] + more * problem.estimate[j]) for j in jobs for more in (0, 1))}
    )
    backlog = total = Fraction(0)
    for at, until in zip(events, [*events[1:], None], strict=True):
        rate = sum(int(problem.size[j]) for j in jobs if first[j] <= at < first[j] + problem.estimate[j])
        falls = int(problem.free[problem.times <= at][-1]) - rate
        empty_s = backlog / falls if falls > 0 else None
        if until is None or (empty_s is not None and empty_s < until - at):
            assert empty_s is not None
            total, backlog = total + backlog * empty_s / 2, Fraction(0)
        else:
            left = backlog - falls * (until - at)
            total, backlog = total + (backlog + left) * (until - at) / 2, left
    return total


def slow_delay(problem: Problem, weight: list[int]) -> Fraction:
    """All layers of a weighted sum of delays."""
    first = alone(problem)
    density = [Fraction(w, int(area)) for w, area in zip(weight, problem.area, strict=True)]
    jobs = sorted(range(len(problem)), key=lambda j: -density[j])
    below = [*(density[j] for j in jobs[1:]), Fraction(0)]
    layers = (density[j] - d for j, d in zip(jobs, below, strict=True))
    return sum((layer * slow_backlog(problem, first, jobs[: k + 1]) for k, layer in enumerate(layers)), Fraction(0))


def test_layers_are_added_up_exactly_and_fewer_of_them_give_less(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    kept = []
    for jobs in (1, 2, 3, 20, 40):
        weight = rng.integers(0, 9, jobs)
        problem = random_problem(rng, jobs, longest=90, steps=4)
        exact = float(slow_delay(problem, weight.tolist()))
        last = 0.0
        for layers in (2, 3, 6, 12, 100):
            monkeypatch.setattr(bounds, "LAYERS", layers)
            found = bounds._weighted_delay(problem, weight.astype(float), alone(problem), np.full(jobs, True))
            assert last * (1 - 1e-12) <= found <= exact * (1 + 1e-12)
            last = found
            kept.append(found / exact if layers == 12 and exact else 1.0)
        assert last == pytest.approx(exact, rel=1e-12)
    assert min(kept) > 0.8


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
    # An area of 10^19 processor seconds is more than 64 bits hold.
    assert np.isnan(awf_bound_s(workload([0], [10**9], [10**10], 10**9)))
    with pytest.raises(ValueError, match="times all processors must stay below 2"):
        awf_bound_s(workload([0], [10**9], [10**10], 10**9), by_size=True)


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


def measured(jobs: Workload, starts: Ints) -> dict[str, float]:
    done = metrics.Outcomes(jobs.size, jobs.runtime, starts - jobs.submit)
    return {
        "af_s": metrics.af_s(done),
        "awf_s": metrics.awf_s(done),
        "bsld": metrics.bsld(done),
        "p2sf_s": metrics.pasf_s(done, 2),
    }


def random_workload(rng: np.random.Generator, jobs: int, longest: int, processors: int) -> tuple[Workload, Problem]:
    """A workload, and the same as a problem without the jobs that ran 0 s."""
    submit = np.sort(rng.integers(0, 3 * jobs, jobs))
    size, runtime = rng.integers(1, processors + 1, jobs), rng.integers(0, longest + 1, jobs)
    runtime[0] = longest
    made = workload(submit.tolist(), size.tolist(), runtime.tolist(), processors)
    now, some = int(submit[0]), runtime > 0
    capacity = np.array([processors])
    return made, Problem(now, processors, np.array([now]), capacity, submit[some], size[some], runtime[some])


@pytest.mark.slow
def test_metrics_of_a_workload_are_never_below_their_bounds() -> None:
    """Every schedule of three jobs, those that idle on purpose included; jobs of 0 s start at their submits."""
    rng = np.random.default_rng(8)
    ratios: dict[str, list[float]] = {"af_s": [], "awf_s": [], "bsld": [], "p2sf_s": []}
    for case in range(16):
        jobs, offline = random_workload(rng, 3, (5, 12)[case % 2], 3)
        best = dict.fromkeys(ratios, np.inf)
        for row in all_starts(offline, min(span_of(offline) + 4, 22)):
            starts = jobs.submit.copy()
            starts[jobs.runtime > 0] = row
            best = {key: min(best[key], value) for key, value in measured(jobs, starts).items()}
        for key, bound in workload_bounds(jobs).items():
            ratios[key].append(bound / best[key])
            assert ratios[key][-1] <= 1 + 1e-12, key
    assert all(max(found) > 0.95 and np.mean(found) > 0.75 for found in ratios.values()), ratios
    assert any(min(found) < 0.999 for found in ratios.values())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "key"), [("af", "af_s"), ("awf", "awf_s"), ("bsld", "bsld"), ("p2sf", "p2sf_s")])
def test_never_above_the_proved_optimum_of_a_workload(name: str, key: str) -> None:
    rng = np.random.default_rng(9)
    proved = 0
    for _ in range(6):
        jobs, offline = random_workload(rng, 7, 40, 8)
        found = solve(offline, parse(name), deterministic_s=0.5)
        starts = jobs.submit.copy()
        starts[jobs.runtime > 0] = found.starts
        assert workload_bounds(jobs)[key] <= measured(jobs, starts)[key] * (1 + 1e-12)
        assert lower_bound(offline, parse(name)) <= found.value * (1 + 1e-12)
        proved += found.status == "optimal"
    assert proved >= (3 if name == "p2sf" else 6)


def test_workloads_with_nothing_to_do() -> None:
    idle = workload_bounds(workload([1, 2], [1, 1], [0, 0], 4))
    assert [idle["af_s"], idle["bsld"]] == pytest.approx([0, 1], rel=1e-13)
    assert np.isnan([idle["awf_s"], idle["p2sf_s"]]).all()
    one = workload_bounds(workload([1, 2], [4, 1], [30, 0], 4))
    assert [one[name] for name in ("af_s", "awf_s", "bsld")] == pytest.approx([15, 30, 1], rel=1e-13)
    with pytest.raises(ValueError, match="unknown run time or that do not fit"):
        workload_bounds(workload([0], [5], [1], 4))
    huge = workload_bounds(workload([0], [10**9], [10**9], 10**9))  # beyond what a double counts
    assert np.isnan(list(huge.values())).all()


@needs_traces
def test_ctc_sp2() -> None:
    """`list-reg` has AF 27,516 s, AWF 82,269 s (tests/golden), BSLD 28.77 and P2SF 117,316 s there."""
    log = read_workload(TRACES / "papers" / "CTC-SP2.swf.gz")
    assert round(awf_bound_s(log)) == 59_702
    found = workload_bounds(log)
    assert round(found["awf_s"]) == round(awf_bound_s(log, by_size=True)) == 67_291
    assert 11_770 < found["af_s"] < 11_254 + 545  # all of its layers add up to between 534 and 544 s
    assert round(found["p2sf_s"]) == 84_029
    assert 1.014 < found["bsld"] < 1.018
