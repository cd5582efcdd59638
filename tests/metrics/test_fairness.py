"""PaSF and its properties, norms, fair start times, wait by job area."""

from __future__ import annotations

from decimal import Decimal, localcontext
from math import isnan, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dovetail import metrics
from dovetail.metrics import Outcomes
from dovetail.model.schedule import Schedule
from tests.metrics.schedules import feasible, rows_of, schedule_of
from tests.metrics.test_jobs import large, of

LEVELS = (0, 0.5, 1, 2, 2.75, 3, 20)


def pasf(schedule: Schedule, level: float) -> float:
    return metrics.pasf_s(metrics.outcomes(schedule), level)


def exactly(jobs: Outcomes, level: str) -> float:
    """PaSF by the formula of the paper in 80 digits."""
    with localcontext() as context:
        context.prec = 80
        a, over, under = Decimal(level), Decimal(0), Decimal(0)
        for r, d, q in zip(jobs.size.tolist(), jobs.runtime.tolist(), jobs.wait.tolist(), strict=True):
            over += r * (Decimal(q + d) ** (a + 2) - Decimal(q) ** (a + 2))
            under += r * (Decimal(q + d) ** (a + 1) - Decimal(q) ** (a + 1))
        return float((a + 1) / (a + 2) * over / under)


@pytest.mark.parametrize("level", ["0", "0.5", "1", "2", "2.75", "3", "14", "15", "60.5", "100"])
def test_any_level_against_eighty_digits(level: str) -> None:
    jobs = large(200)
    assert metrics.pasf_s(jobs, float(level)) == pytest.approx(exactly(jobs, level), rel=1e-13)


@pytest.mark.parametrize("level", ["0", "0.5", "2", "2.5"])
def test_a_second_of_work_after_a_wait_of_thirty_years(level: str) -> None:
    jobs = of((3, 1, 10**9), (10**5, 1, 10**9 - 1))
    assert metrics.pasf_s(jobs, float(level)) == pytest.approx(exactly(jobs, level), rel=1e-14)


def test_both_ways_to_take_the_difference_agree_where_they_meet() -> None:
    jobs = large(1000)
    assert metrics.pasf_s(jobs, 2 + 1e-12) == pytest.approx(metrics.pasf_s(jobs, 2), rel=1e-10)


@given(feasible())
def test_level_0_is_the_mean_of_awf_and_awq(schedule: Schedule) -> None:
    jobs = metrics.outcomes(schedule)
    middle = (metrics.awf_s(jobs) + metrics.awq_s(jobs)) / 2
    assert metrics.pasf_s(jobs, 0) == pytest.approx(middle, rel=1e-14)


@given(level=st.sampled_from(LEVELS), schedule=feasible(), data=st.data())
def test_a_split_in_parallel_or_in_series_leaves_pasf(level: float, schedule: Schedule, data: st.DataObject) -> None:
    rows = rows_of(schedule)
    arrive, start, size, runtime = rows.pop(data.draw(st.integers(0, len(rows) - 1)))
    r, d = data.draw(st.integers(0, size)), data.draw(st.integers(0, runtime))
    pieces = [
        (arrive, start, r, runtime),
        (arrive, start, size - r, d),
        (arrive, start + d, size - r, runtime - d),
    ]
    assert pasf(schedule_of(rows + pieces), level) == pytest.approx(pasf(schedule, level), rel=1e-13)


SHAPES = [(2, 10), (2, 4), (2, 1), (2, 7)]


@given(st.sampled_from(LEVELS), st.integers(0, 20), st.permutations(SHAPES))
def test_reordering_jobs_of_one_arrival_under_one_profile_leaves_pasf(
    level: float, arrive: int, jobs: list[tuple[int, int]]
) -> None:
    def one_after_another(order: list[tuple[int, int]]) -> Schedule:
        starts = 20 + np.cumsum([0, *(d for _, d in order[:-1])])
        rows = [(arrive, int(b), r, d) for b, (r, d) in zip(starts, order, strict=True)]
        return schedule_of([(0, 3, 4, 30), *rows])  # and one job that stays where it is

    assert pasf(one_after_another(jobs), level) == pytest.approx(
        pasf(one_after_another(sorted(jobs)), level), rel=1e-13
    )


@given(feasible(least=2), st.floats(0.1, 1), st.data())
def test_up_to_level_1_the_longer_wait_first_lowers_pasf(schedule: Schedule, level: float, data: st.DataObject) -> None:
    # Two jobs of one shape, the younger before the older: let them swap places.
    late, early = 200, 200 + data.draw(st.integers(1, 20))
    wrong = [(0, early, 1, 3), (data.draw(st.integers(1, 150)), late, 1, 3)]
    right = [(0, late, 1, 3), (wrong[1][0], early, 1, 3)]
    rest = rows_of(schedule)
    assert pasf(schedule_of(rest + right), level) < pasf(schedule_of(rest + wrong), level)


def test_above_level_1_the_longer_wait_first_may_raise_pasf() -> None:
    # One job that waited for long dominates the mean; a swap of two young ones takes weight from the low end.
    outlier = (0, 1000, 1, 10)
    wrong = schedule_of([outlier, (0, 10, 1, 5), (4, 5, 1, 5)])
    right = schedule_of([outlier, (0, 5, 1, 5), (4, 10, 1, 5)])
    assert pasf(right, 2) > pasf(wrong, 2)
    assert pasf(right, 1) < pasf(wrong, 1)


def test_above_level_0_an_earlier_start_may_raise_pasf() -> None:
    # A unit below level / (level + 1) of the metric's value pulls it down, and its weight grows with time.
    old, young = (0, 1000, 1, 10), [(0, 0, 1, 5)]
    delayed = [(0, 100, 1, 5)]
    for level in (0.5, 1, 2, 3):
        assert pasf(schedule_of([old, *delayed]), level) < pasf(schedule_of([old, *young]), level)
    assert pasf(schedule_of([old, *delayed]), 0) > pasf(schedule_of([old, *young]), 0)


@given(feasible(), st.sampled_from([0.5, 1, 2, 3]), st.floats(0.5, 2))
def test_the_response_below_which_a_delay_lowers_pasf(schedule: Schedule, level: float, where: float) -> None:
    # One second of work among jobs of hours: the threshold is level / (level + 1) of the metric's value.
    rows = [(a * 1000, b * 1000, r, d * 1000) for a, b, r, d in rows_of(schedule)]
    threshold = level / (level + 1) * pasf(schedule_of(rows), level)
    wait = int(where * threshold)
    before = pasf(schedule_of([*rows, (0, wait, 1, 1)]), level)
    after = pasf(schedule_of([*rows, (0, wait + 1, 1, 1)]), level)
    threshold = level / (level + 1) * before
    assume(wait > 1.01 * threshold or wait + 2 < 0.99 * threshold)
    assert (after > before) == (wait > threshold)


def test_pasf_without_work_is_nan_and_levels_have_bounds() -> None:
    assert isnan(metrics.pasf_s(of()))
    assert isnan(metrics.pasf_s(of((1, 0, 5))))
    assert metrics.pasf_s(of((1, 0, 10**9), (1, 2, 0)), 100) == pytest.approx(2 * 101 / 102, rel=1e-14)
    for level in (-0.1, 101, nan):
        with pytest.raises(ValueError, match="level"):
            metrics.pasf_s(of((1, 1, 0)), level)


@pytest.mark.parametrize("p", [1, 2, 3])
def test_norms_of_the_response(p: int) -> None:
    jobs = large(5000)
    total = sum((q + d) ** p for d, q in zip(jobs.runtime.tolist(), jobs.wait.tolist(), strict=True))
    with localcontext() as context:
        context.prec = 60
        norm = float(Decimal(total) ** (Decimal(1) / p))
        power_mean = float((Decimal(total) / len(jobs)) ** (Decimal(1) / p))
    assert metrics.lp_response_s(jobs, p) == pytest.approx(norm, rel=1e-14)
    assert metrics.lp_response_s(jobs, p, normalized=True) == pytest.approx(power_mean, rel=1e-14)


def test_norms_at_the_edges() -> None:
    assert isnan(metrics.lp_response_s(of()))
    assert metrics.lp_response_s(of((1, 0, 0), (1, 0, 0))) == 0
    assert metrics.lp_response_s(of((1, 3, 0), (1, 0, 4)), 2) == 5
    assert metrics.lp_response_s(of((1, 1, 0), (1, 0, 10**9)), 1000) == pytest.approx(1e9, rel=1e-12)
    for p in (0.5, nan, 1001, float("inf")):
        with pytest.raises(ValueError, match="norm"):
            metrics.lp_response_s(of((1, 1, 0)), p)


def test_unfairness_by_hand() -> None:
    schedule = schedule_of([(0, 5, 1, 5), (1, 10, 1, 5), (2, 3, 1, 50), (3, 4, 1, 2), (4, -1, 1, 2), (20, 20, 1, 1)])
    fair = np.array([1, 10, 9, -1, 4, 14])
    assert metrics.unfairness(schedule, fair) == {
        "fair_start_jobs": 4,
        "fair_start_miss_total_s": 10,
        "fair_start_miss_mean_s": 2.5,
        "fair_start_miss_max_s": 6,
        "fair_start_missed_share": 0.5,
    }
    assert metrics.unfairness(schedule, fair, "ended")["fair_start_jobs"] == 2
    none = metrics.unfairness(schedule, np.full(6, -1))
    assert none.pop("fair_start_jobs") == 0
    assert all(isnan(value) for value in none.values())
    with pytest.raises(ValueError, match="6 jobs"):
        metrics.unfairness(schedule, fair[:5])


@given(feasible())
def test_wait_area_curve_against_its_definition(schedule: Schedule) -> None:
    jobs = metrics.outcomes(schedule)
    curve = metrics.wait_area_curve(jobs)
    rows = list(zip(jobs.size.tolist(), jobs.runtime.tolist(), jobs.wait.tolist(), strict=True))
    assert curve.area.tolist() == sorted({r * d for r, d, _ in rows})
    total = sum(r * d for r, d, _ in rows)
    for i, x in enumerate(curve.area.tolist()):
        inside = [(r, d, q) for r, d, q in rows if r * d <= x]
        assert curve.job_fraction[i] == len(inside) / len(rows)
        assert curve.area_fraction[i] == sum(r * d for r, d, _ in inside) / total
        assert curve.wait_area[i] == sum(r * q for r, _, q in inside)


def test_wait_area_of_large_jobs_and_of_none() -> None:
    jobs = large(10**5)
    jobs = Outcomes(jobs.size + 10**9, jobs.runtime, jobs.wait)
    total = sum(r * q for r, q in zip(jobs.size.tolist(), jobs.wait.tolist(), strict=True))
    assert total > 2**63
    curve = metrics.wait_area_curve(jobs)
    assert curve.wait_area[-1] == pytest.approx(total, rel=1e-15)
    assert curve.job_fraction[-1] == curve.area_fraction[-1] == 1
    none = metrics.wait_area_curve(of())
    assert len(none.area) == len(none.job_fraction) == len(none.area_fraction) == len(none.wait_area) == 0
    idle = metrics.wait_area_curve(of((2, 0, 5), (3, 0, 1)))
    assert idle.area.tolist() == [0]
    assert isnan(idle.area_fraction[0])
    assert idle.wait_area.tolist() == [13]
