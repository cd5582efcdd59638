"""Metrics by group against the metric functions on each group alone; weeks and users of schedules."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail import metrics
from dovetail.arrays import Floats, Ints
from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.metrics import Outcomes
from dovetail.metrics.exact import exact_dot
from dovetail.metrics.groups import by_group, users, weeks
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Step
from dovetail.policies.registry import policy
from dovetail.units import WEEK_S
from tests.conftest import TRACES, needs_traces
from tests.metrics.schedules import feasible, schedule_of
from tests.metrics.test_jobs import large, of

KEYS = ["jobs", "bsld", "af_s", "awf_s", "p2sf_s", "mean_wait_s"]


def one_by_one(jobs: Outcomes, group: Ints, groups: int, bound_s: float = 10) -> dict[str, list[float]]:
    found = []
    for number in range(groups):
        alone = jobs.where(group == number)
        values = (metrics.bsld(alone, bound_s), metrics.af_s(alone), metrics.awf_s(alone), metrics.pasf_s(alone, 2))
        found.append((len(alone), *values, metrics.mean_wait_s(alone)))
    return {key: [row[i] for row in found] for i, key in enumerate(KEYS)}


def check(jobs: Outcomes, group: Ints, groups: int, bound_s: float = 10) -> None:
    found = by_group(jobs, group, groups, bound_s)
    assert list(found) == KEYS
    for key, expected in one_by_one(jobs, group, groups, bound_s).items():
        assert found[key].dtype == np.float64
        assert found[key].tolist() == pytest.approx(expected, rel=1e-12, abs=0, nan_ok=True), key


@given(feasible(), st.integers(1, 5), st.sampled_from([0, 10, 60]), st.data())
def test_each_group_as_if_alone(schedule: Schedule, groups: int, bound_s: float, data: st.DataObject) -> None:
    jobs = metrics.outcomes(schedule)
    member = st.integers(0, groups - 1)  # some groups may stay empty
    group = np.array(data.draw(st.lists(member, min_size=len(jobs), max_size=len(jobs))), np.int64)
    check(jobs, group, groups, bound_s)


@pytest.mark.parametrize("groups", [1, 7])
def test_sums_that_pass_64_bits(groups: int) -> None:
    jobs = large(20_000)
    assert exact_dot(jobs.area, jobs.response) > 2**64
    check(jobs, np.arange(len(jobs)) % groups, groups)


def test_powers_of_the_largest_job_do_not_overflow() -> None:
    for job in ((1, 1, 2**62), (1, 2**62, 2**60), (2**20, 2**42 - 1, 0), (2**60, 3, 4)):
        check(of(job), np.array([1]), 2)


def test_groups_with_nothing_to_measure() -> None:
    idle = of((2, 0, 5), (1, 3, 1))
    found = by_group(idle, np.array([2, 1]), 4)
    assert found["jobs"].tolist() == [0, 1, 1, 0]
    assert found["mean_wait_s"].tolist() == pytest.approx([np.nan, 1, 5, np.nan], nan_ok=True)
    assert found["awf_s"].tolist() == pytest.approx([np.nan, 4, np.nan, np.nan], nan_ok=True)  # no area, no AWF
    assert found["p2sf_s"].tolist() == pytest.approx([np.nan, 0.75 * 255 / 63, np.nan, np.nan], nan_ok=True)
    none = by_group(of(), np.empty(0, np.int64), 0)
    assert [len(values) for values in none.values()] == [0] * len(KEYS)


def test_groups_that_do_not_match_are_refused() -> None:
    jobs = of((1, 1, 1), (1, 1, 1))
    with pytest.raises(ValueError, match="2 jobs count"):
        by_group(jobs, np.array([0]), 1)
    for wrong in ([0, 2], [-1, 0]):
        with pytest.raises(ValueError, match="from 0 to 1"):
            by_group(jobs, np.array(wrong), 2)


# Weeks.


def submitted(*submit: int, start: dict[int, int] | None = None) -> Schedule:
    """Jobs of 1 s that start when they arrive, but those that `start` names."""
    return schedule_of([(at, (start or {}).get(at, at), 1, 1) for at in submit])


def test_weeks_by_hand() -> None:
    first = 1000
    schedule = submitted(first, first + WEEK_S - 1, first + WEEK_S, first + 3 * WEEK_S, first + 4 * WEEK_S - 1)
    week, starts = weeks(schedule)
    assert week.tolist() == [0, 0, 1, 3, 3]  # nothing was submitted in week 2: it is there, and empty
    assert starts.tolist() == [first, first + WEEK_S, first + 2 * WEEK_S, first + 3 * WEEK_S]
    found = by_group(metrics.outcomes(schedule), week, len(starts))
    assert found["jobs"].tolist() == [2, 1, 0, 2]
    assert np.isnan(found["bsld"]).tolist() == [False, False, True, False]


@pytest.mark.parametrize(
    ("quarters", "count"),
    [(0, 1), (2, 1), (3, 1), (4, 1), (5, 1), (6, 2), (7, 2), (8, 2), (9, 2), (10, 3), (12, 3), (13, 3), (14, 4)],
)
def test_a_rest_of_less_than_half_a_week_is_part_of_the_week_before(quarters: int, count: int) -> None:
    last = quarters * WEEK_S // 4
    assert len(weeks(submitted(500, 500 + max(0, last - 1)))[1]) == max(1, count - (quarters % 4 == 2))
    week, starts = weeks(submitted(500, 500 + last))
    assert len(starts) == count
    assert week.tolist() == [0, count - 1]


def test_weeks_and_users_of_nothing() -> None:
    for groups in (weeks, users):
        group, names = groups(submitted())
        assert len(group) == len(names) == 0


def test_weeks_follow_the_counting_rule() -> None:
    late, never = WEEK_S + 5, 2 * WEEK_S
    schedule = submitted(0, late, never, start={late: 10 * WEEK_S, never: -1})
    week, starts = weeks(schedule)
    assert (week.tolist(), len(starts)) == ([0, 1], 2)  # the job that never started is in no group, its week remains
    week, starts = weeks(schedule, "ended")
    assert (week.tolist(), len(starts)) == ([0], 2)
    for counting in metrics.COUNTING:
        jobs = metrics.outcomes(schedule, counting)
        check(jobs, weeks(schedule, counting)[0], 2)


def test_a_job_that_feedback_held_back_stays_in_its_week() -> None:
    schedule = submitted(0, WEEK_S + 1, 4 * WEEK_S - 1)
    later = schedule.arrive + np.array([0, WEEK_S, 0])
    assert weeks(replace(schedule, arrive=later, start=later))[0].tolist() == weeks(schedule)[0].tolist() == [0, 1, 3]


# Users.


def of_users(schedule: Schedule, user: list[int]) -> Schedule:
    return replace(schedule, workload=schedule.workload.with_columns(Step("users"), user=np.array(user, np.int64)))


def test_users_by_hand() -> None:
    schedule = of_users(submitted(0, 1, 2, 3, 4, 5, start={4: -1}), [7, 3, -1, 7, 9, -5])
    group, user = users(schedule)
    assert user.tolist() == [-1, 3, 7, 9]
    assert group.tolist() == [2, 1, 0, 2, 0]  # the job of user 9 never started
    assert by_group(metrics.outcomes(schedule), group, len(user))["jobs"].tolist() == [2, 1, 2, 0]


def test_a_workload_without_users_has_one_unknown() -> None:
    group, user = users(submitted(0, 1))
    assert (group.tolist(), user.tolist()) == ([0, 0], [-1])


@needs_traces
@pytest.mark.parametrize("counting", metrics.COUNTING)
def test_a_real_trace(counting: str) -> None:
    workload = read_workload(TRACES / "papers" / "KTH-SP2.swf.gz")
    schedule = replay(workload, policy("easy"))
    jobs = metrics.outcomes(schedule, counting)
    week, starts = weeks(schedule, counting)
    assert len(starts) == 49  # 48.55 weeks from the first submit to the last
    check(jobs, week, len(starts))
    group, user = users(schedule, counting)
    assert user.tolist() == sorted(set(workload["user"].tolist()))
    check(jobs, group, len(user))
    summary: dict[str, float] = metrics.summarize(schedule, counting=counting)
    everybody: dict[str, Floats] = by_group(jobs, np.zeros(len(jobs), np.int64), 1)
    for key in KEYS[1:]:
        assert everybody[key][0] == pytest.approx(summary[key], rel=1e-12)
