"""The cluster and its queue over time, against loops over every second."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from math import isnan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail import metrics
from dovetail.model.schedule import Schedule
from tests.metrics.schedules import PROCESSORS, Row, feasible, from_columns, rows_of, schedule_of


def seconds_of(schedule: Schedule) -> range:
    rows = [row for row in rows_of(schedule) if row[1] >= 0]
    return range(min(a for a, _, _, _ in rows), max(b + d for _, b, _, d in rows))


def each_second(schedule: Schedule, value: Callable[[Row, int], int]) -> list[int]:
    """The sum over jobs of a value, in each second of the schedule."""
    rows = [row for row in rows_of(schedule) if row[1] >= 0]
    return [sum(value(row, t) for row in rows) for t in seconds_of(schedule)]


def busy(schedule: Schedule) -> list[int]:
    return each_second(schedule, lambda row, t: row[2] if row[1] <= t < row[1] + row[3] else 0)


def demand(schedule: Schedule) -> list[int]:
    return each_second(schedule, lambda row, t: row[2] if row[0] <= t < row[1] else 0)


def queue(schedule: Schedule) -> list[int]:
    return each_second(schedule, lambda row, t: int(row[0] <= t < row[1]))


@given(feasible())
def test_every_step_function_in_every_second(schedule: Schedule) -> None:
    line = metrics.timeline(schedule)
    at = np.searchsorted(line.times, np.array(seconds_of(schedule)), side="right") - 1
    assert line.busy[at].tolist() == busy(schedule)
    assert line.queue_processors[at].tolist() == demand(schedule)
    assert line.queue_jobs[at].tolist() == queue(schedule)
    assert np.all(np.diff(line.times) > 0)
    assert line.busy[-1] == line.queue_jobs[-1] == line.queue_processors[-1] == 0


@given(feasible())
def test_metrics_against_loops_over_seconds(schedule: Schedule) -> None:
    line = metrics.timeline(schedule)
    used, asked, waiting = busy(schedule), demand(schedule), queue(schedule)
    span = len(used)
    share = [Fraction(b, PROCESSORS) for b in used]
    middle = sum(share) / span
    lost = sum(min(q, PROCESSORS - b) for q, b in zip(asked, used, strict=True))
    assert metrics.makespan_s(line) == span
    assert metrics.utilization(line) == float(middle)
    assert metrics.utilization_variance(line) == float(sum((s - middle) ** 2 for s in share) / span)
    assert metrics.loss_of_capacity(line) == lost / (PROCESSORS * span)
    assert metrics.mean_queue_jobs(line) == sum(waiting) / span
    assert metrics.mean_queue_processors(line) == sum(asked) / span
    assert metrics.max_queue_jobs(line) == max(waiting)
    assert metrics.max_queue_processors(line) == max(asked)


@given(feasible(), st.integers(1, 40))
def test_bins_against_loops_over_seconds(schedule: Schedule, bin_s: int) -> None:
    edges, share = metrics.utilization_by_bin(metrics.timeline(schedule), bin_s)
    used = busy(schedule)
    bins = [used[i : i + bin_s] for i in range(0, len(used), bin_s)]
    expected = [Fraction(sum(b), PROCESSORS * len(b)) for b in bins]
    assert np.diff(edges).tolist() == [len(b) for b in bins]
    assert share.tolist() == [float(e) for e in expected]
    middle = Fraction(sum(used), PROCESSORS * len(used))
    variance = sum((e - middle) ** 2 * len(b) for e, b in zip(expected, bins, strict=True)) / len(used)
    found = metrics.binned_variance(metrics.timeline(schedule), bin_s)
    assert found == pytest.approx(float(variance), rel=1e-12, abs=1e-30)


@given(feasible())
def test_bins_of_a_second_have_the_exact_variance(schedule: Schedule) -> None:
    line = metrics.timeline(schedule)
    assert metrics.binned_variance(line, 1) == pytest.approx(metrics.utilization_variance(line), rel=1e-12, abs=1e-30)


@given(feasible())
def test_identities(schedule: Schedule) -> None:
    line, jobs = metrics.timeline(schedule), metrics.outcomes(schedule)
    used, lost = metrics.utilization(line), metrics.loss_of_capacity(line)
    # Areas add up, no work is lost, and the queue holds every second of every wait (Little's law).
    assert used == int(jobs.area.sum()) / (PROCESSORS * line.span_s)
    assert metrics.mean_queue_jobs(line) == int(jobs.wait.sum()) / line.span_s
    assert metrics.mean_queue_processors(line) == int((jobs.size * jobs.wait).sum()) / line.span_s
    assert 0 <= lost <= 1 - used + 1e-15


def test_under_a_long_queue_loss_of_capacity_is_one_less_utilization() -> None:
    # CP, Section 3.1, writes "LOC equals Utilization"; idle is what it equals. 4 of 6 are busy until the end.
    line = metrics.timeline(schedule_of([(0, 0, 4, 10), (0, 10, 6, 10), (0, 20, 6, 10)]))
    assert line.integral(lambda part: 6 - line.busy[part]) == 20
    assert metrics.loss_of_capacity(line) == 20 / 180
    assert metrics.utilization(line) == 160 / 180


def test_a_job_wider_than_what_is_free_still_counts_as_lost_capacity() -> None:
    line = metrics.timeline(schedule_of([(0, 0, 4, 10), (0, 10, 5, 10)]))
    assert metrics.loss_of_capacity(line) == 2 * 10 / (6 * 20)


def test_jobs_that_never_started_take_no_part() -> None:
    rows = [(0, 0, 4, 10), (3, 10, 5, 10)]
    without, with_one = schedule_of(rows), schedule_of([*rows, (5, -1, 6, 1000)])
    one, two = metrics.timeline(without), metrics.timeline(with_one)
    for name in ("times", "busy", "queue_jobs", "queue_processors"):
        assert getattr(one, name).tolist() == getattr(two, name).tolist()


def test_a_history_above_capacity_has_nothing_free() -> None:
    line = metrics.timeline(schedule_of([(0, 0, 4, 10), (0, 0, 4, 10), (0, 10, 1, 10)]))
    assert metrics.utilization(line) == 90 / 120
    assert metrics.loss_of_capacity(line) == 0


def test_nothing_to_measure_is_nan() -> None:
    for rows in ([], [(3, -1, 1, 5)]):
        line = metrics.timeline(schedule_of(rows))
        for measure in (
            metrics.makespan_s, metrics.utilization, metrics.utilization_variance, metrics.binned_variance,
            metrics.loss_of_capacity, metrics.mean_queue_jobs, metrics.max_queue_jobs,
            metrics.mean_queue_processors, metrics.max_queue_processors,
        ):  # fmt: skip
            assert isnan(measure(line)), measure
    instant = metrics.timeline(schedule_of([(3, 3, 1, 0)]))
    assert metrics.makespan_s(instant) == 0
    assert metrics.max_queue_jobs(instant) == 0
    assert isnan(metrics.utilization(instant))
    with pytest.raises(ValueError, match="at least 1 s"):
        metrics.utilization_by_bin(instant, 0)
    with pytest.raises(ValueError, match="at least 1 s"):
        metrics.binned_variance(instant, 0)


def test_large_clusters_over_decades_do_not_wrap() -> None:
    n, processors = 4, 10**7
    arrive, start = np.zeros(n, np.int64), np.arange(n) * 10**8
    size, runtime = np.array([10**7, 10**7 - 1, 3, 10**7]), np.full(n, 10**8)
    line = metrics.timeline(from_columns(arrive, start, size, runtime, processors))
    share = [Fraction(int(r), processors) for r in size]
    middle = sum(share) / n
    assert metrics.utilization(line) == float(middle)
    assert metrics.utilization_variance(line) == float(sum((s - middle) ** 2 for s in share) / n)
    assert metrics.loss_of_capacity(line) == (1 + 10**7 - 3) / (4 * 10**7)


def test_more_moments_than_a_block_holds() -> None:
    n = 600_000
    rng = np.random.default_rng(3)
    arrive = np.sort(rng.integers(0, 10**8, n))
    start = arrive + rng.integers(0, 10**5, n)
    size, runtime = rng.integers(1, 100, n), rng.integers(1, 10**4, n)
    line = metrics.timeline(from_columns(arrive, start, size, runtime, 10**5))
    assert len(line.times) > 1 << 20
    assert line.integral(lambda part: line.busy[part]) == int((size * runtime).sum())
    assert line.integral(lambda part: line.queue_jobs[part]) == int((start - arrive).sum())
    assert line.integral(lambda part: line.queue_processors[part]) == int((size * (start - arrive)).sum())
