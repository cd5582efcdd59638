"""Metrics over jobs: values by hand, the papers' properties, and the numbers of large jobs."""

from __future__ import annotations

from fractions import Fraction
from math import inf, isnan, nan

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dovetail import metrics
from dovetail.errors import SettingError
from dovetail.metrics import Outcomes
from dovetail.model.schedule import Schedule
from tests.metrics.schedules import feasible, moved, rows_of, schedule_of


def of(*jobs: tuple[int, int, int]) -> Outcomes:
    """Outcomes from (size, run time, wait)."""
    table = np.array(jobs, np.int64).reshape(-1, 3)
    return Outcomes(table[:, 0], table[:, 1], table[:, 2])


def test_values_by_hand() -> None:
    jobs = of((2, 100, 0), (1, 5, 45), (4, 20, 60))
    assert metrics.bsld(jobs) == pytest.approx((1 + 50 / 10 + 80 / 20) / 3, rel=1e-15)
    assert metrics.bsld(jobs, bound_s=60) == pytest.approx((1 + 1 + 80 / 60) / 3, rel=1e-15)
    assert metrics.slowdown(jobs) == pytest.approx((1 + 50 / 5 + 80 / 20) / 3, rel=1e-15)
    assert metrics.af_s(jobs) == 230 / 3
    assert metrics.mean_wait_s(jobs) == 105 / 3
    assert metrics.awf_s(jobs) == (200 * 100 + 5 * 50 + 80 * 80) / 285
    assert metrics.awq_s(jobs) == (5 * 45 + 80 * 60) / 285
    for weight in (np.array([0, 1, 3]), np.array([0, 1, 3]) * 5e-324):  # the least number above 0 that a float can be
        assert metrics.weighted_wait_s(jobs, weight) == (45 + 3 * 60) / 4


def test_a_run_time_of_zero_counts_as_one_second_in_slowdowns() -> None:
    jobs = of((1, 0, 0), (1, 0, 7), (1, 1, 6))
    assert metrics.slowdowns(jobs, 0).tolist() == [1, 7, 7]
    assert metrics.slowdowns(jobs, 10).tolist() == [1, 1, 1]
    assert metrics.slowdown(jobs) == 5
    assert isnan(metrics.awf_s(of((3, 0, 5))))
    assert isnan(metrics.awq_s(of((3, 0, 5))))


@given(feasible())
def test_area_weighted_wait_is_awq(schedule: Schedule) -> None:
    jobs = metrics.outcomes(schedule)
    assert metrics.weighted_wait_s(jobs, jobs.area) == pytest.approx(metrics.awq_s(jobs), rel=1e-14)
    assert metrics.weighted_wait_s(jobs, np.ones(len(jobs))) == pytest.approx(metrics.mean_wait_s(jobs), rel=1e-14)


@given(feasible(), st.data())
def test_starting_one_job_earlier_lowers_awf_af_and_pasf_of_level_0(schedule: Schedule, data: st.DataObject) -> None:
    late = np.flatnonzero(schedule.wait > 0)
    assume(len(late))
    start = schedule.start.copy()
    start[data.draw(st.sampled_from(late.tolist()))] -= 1
    before, after = metrics.outcomes(schedule), metrics.outcomes(moved(schedule, start))
    assert metrics.af_s(after) < metrics.af_s(before)
    assert metrics.awf_s(after) < metrics.awf_s(before)
    assert metrics.pasf_s(after, 0) < metrics.pasf_s(before, 0)


@given(feasible(), st.data())
def test_awf_is_unchanged_by_a_split_in_parallel_and_af_is_not(schedule: Schedule, data: st.DataObject) -> None:
    rows = rows_of(schedule)
    wide = [i for i, row in enumerate(rows) if row[2] > 1]
    assume(wide)
    arrive, start, size, runtime = rows.pop(data.draw(st.sampled_from(wide)))
    part = data.draw(st.integers(1, size - 1))
    rows += [(arrive, start, part, runtime), (arrive, start, size - part, runtime)]
    whole, split = metrics.outcomes(schedule), metrics.outcomes(schedule_of(rows))
    assert metrics.awf_s(split) == metrics.awf_s(whole)
    assert metrics.awq_s(split) == metrics.awq_s(whole)
    one_more = (metrics.af_s(whole) * len(whole) + start + runtime - arrive) / (len(whole) + 1)
    assert metrics.af_s(split) == pytest.approx(one_more, rel=1e-14)


def test_awf_changes_with_a_split_in_series() -> None:
    # The paper says in Section III that it does not. Half of the work is done, and counted, 5 s earlier.
    assert metrics.awf_s(metrics.outcomes(schedule_of([(0, 0, 1, 10)]))) == 10
    assert metrics.awf_s(metrics.outcomes(schedule_of([(0, 0, 1, 5), (0, 5, 1, 5)]))) == 7.5


@given(feasible())
def test_awf_less_half_the_mean_run_time_by_area_depends_on_the_busy_profile_only(schedule: Schedule) -> None:
    # Fig. 2b: why reordering whole jobs, of any arrivals, under the same profile leaves AWF alone.
    jobs, line = metrics.outcomes(schedule), metrics.timeline(schedule)
    seconds = range(int(line.times[0]), int(line.times[-1]))
    busy = [int(line.busy[np.searchsorted(line.times, t, side="right") - 1]) for t in seconds]
    moment = sum(b * Fraction(2 * t + 1, 2) for t, b in zip(seconds, busy, strict=True))
    area = int(jobs.area.sum())
    fixed = Fraction(int((jobs.area * jobs.runtime).sum()), 2) - int((jobs.area * schedule.arrive).sum())
    assert metrics.awf_s(jobs) == float((moment + fixed) / area)


def test_reordering_under_the_same_profile_leaves_awf_and_changes_the_rest() -> None:
    # Size 2 for 10 s then size 2 for 4 s, on a profile that is flat: swap them.
    before = metrics.outcomes(schedule_of([(0, 20, 2, 10), (8, 30, 2, 4)]))
    after = metrics.outcomes(schedule_of([(0, 24, 2, 10), (8, 20, 2, 4)]))
    assert metrics.awf_s(after) == metrics.awf_s(before)
    assert metrics.af_s(after) < metrics.af_s(before)
    assert metrics.bsld(after) < metrics.bsld(before)


@pytest.mark.slow
@given(feasible(), st.integers(0, 10**9))
def test_a_shift_of_time_changes_nothing(schedule: Schedule, shift: int) -> None:
    later = schedule_of([(a + shift, b + shift, r, d) for a, b, r, d in rows_of(schedule)])
    for counting in metrics.COUNTING:
        found = metrics.summarize(later, counting=counting)
        assert found == pytest.approx(metrics.summarize(schedule, counting=counting), abs=0, rel=0, nan_ok=True)


@pytest.mark.slow
@given(feasible(), st.integers(2, 1000))
def test_seconds_scale_with_time_and_ratios_do_not(schedule: Schedule, k: int) -> None:
    longer = schedule_of([(a * k, b * k, r, d * k) for a, b, r, d in rows_of(schedule)])
    one = metrics.summarize(schedule)
    many = metrics.summarize(longer, bound_s=10 * k, short_s=3600 * k)
    for key, value in one.items():
        expected = value * k if key.endswith("_s") else value
        assert many[key] == pytest.approx(expected, rel=1e-13, nan_ok=True), key


def large(n: int) -> Outcomes:
    rng = np.random.default_rng(7)
    size = rng.integers(1, 10**5, n, endpoint=True)
    runtime = rng.integers(1, 10**7, n, endpoint=True)
    wait = rng.integers(0, 10**9, n, endpoint=True)
    runtime[: n // 10] = 1  # small run times after large waits are where differences of powers lose digits
    wait[: n // 20] = 10**9
    return Outcomes(size, runtime, wait)


@pytest.mark.slow
def test_a_million_large_jobs_are_right_to_the_last_digit() -> None:
    jobs = large(10**6)
    rows = list(zip(jobs.size.tolist(), jobs.runtime.tolist(), jobs.wait.tolist(), strict=True))
    area = sum(r * d for r, d, _ in rows)
    waited = sum(r * d * q for r, d, q in rows)
    worked = sum(r * d * d for r, d, _ in rows)
    assert area * 10**9 > 2**63
    assert metrics.awq_s(jobs) == waited / area
    assert metrics.awf_s(jobs) == (waited + worked) / area
    assert metrics.af_s(jobs) == sum(q + d for _, d, q in rows) / len(rows)
    over = sum(r * ((q + d) ** 4 - q**4) for r, d, q in rows)
    under = sum(r * ((q + d) ** 3 - q**3) for r, d, q in rows)
    assert metrics.pasf_s(jobs) == pytest.approx(3 * over / (4 * under), rel=1e-14)


def test_slowdowns_of_large_jobs_against_fractions() -> None:
    jobs = large(5_000)
    rows = zip(jobs.runtime.tolist(), jobs.wait.tolist(), strict=True)
    exact = float(sum(max(Fraction(1), Fraction(q + d, max(d, 10))) for d, q in rows) / len(jobs))
    assert metrics.bsld(jobs) == pytest.approx(exact, rel=1e-14)


def test_counting_rules() -> None:
    # The last arrival is at 20; the second job ends with it, the third after it, the fourth never starts.
    schedule = schedule_of([(0, 0, 1, 5), (3, 10, 1, 10), (4, 10, 1, 11), (20, -1, 1, 5)])
    assert metrics.counted(schedule).tolist() == [True, True, True, False]
    assert metrics.counted(schedule, "ended").tolist() == [True, True, False, False]
    assert len(metrics.outcomes(schedule)) == 3
    assert metrics.mean_wait_s(metrics.outcomes(schedule, "ended")) == 7 / 2
    with pytest.raises(SettingError, match="'some'; choose one of all, ended"):
        metrics.counted(schedule, "some")


def test_percentiles_interpolate_between_neighbours() -> None:
    found = metrics.spread(np.array([40, 0, 10, 20, 30]), "wait", "_s")
    assert list(found) == ["wait_p50_s", "wait_p90_s", "wait_p95_s", "wait_p99_s", "max_wait_s"]
    assert list(found.values()) == pytest.approx([20, 36, 38, 39.6, 40], rel=1e-15)


def test_no_jobs_give_nan() -> None:
    none = of()
    found = [
        metrics.bsld(none), metrics.slowdown(none), metrics.af_s(none), metrics.mean_wait_s(none),
        metrics.awf_s(none), metrics.awq_s(none), metrics.weighted_wait_s(none, np.empty(0)),
        *metrics.spread(none.wait, "wait").values(),
    ]  # fmt: skip
    assert found == pytest.approx([nan] * len(found), nan_ok=True)


def test_what_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="the wait of counted job 1 is -2"):
        metrics.outcomes(schedule_of([(5, 5, 1, 1), (7, 5, 1, 1)]))
    with pytest.raises(ValueError, match="run time of counted job 0 is -1"):
        of((1, -1, 0))
    with pytest.raises(ValueError, match="below 2\\^63"):
        of((1, 1, 1), (1, 2**62, 2**62))
    with pytest.raises(ValueError, match="bound"):
        metrics.bsld(of((1, 1, 0)), bound_s=-1)
    with pytest.raises(ValueError, match="2 jobs count"):
        metrics.weighted_wait_s(of((1, 1, 0), (1, 1, 0)), np.ones(3))
    with pytest.raises(ValueError, match="at least 0"):
        metrics.weighted_wait_s(of((1, 1, 0)), np.array([nan]))
    with pytest.raises(ValueError, match="at least 0"):
        metrics.weighted_wait_s(of((1, 1, 0)), np.array([inf]))
