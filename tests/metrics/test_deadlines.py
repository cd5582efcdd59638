"""The metrics of deadlines, by hand."""

from __future__ import annotations

from dataclasses import replace
from math import isnan

import numpy as np
import pytest

from dovetail.metrics import of_deadlines, summarize
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Step
from tests.metrics.schedules import schedule_of

ROWS = [(0, 0, 2, 10), (0, 10, 2, 20), (0, 5, 2, 15), (0, 0, 2, 40), (0, 40, 2, 20), (0, 50, 2, 10)]
"""Arrival, start, size, run time (the limit too). The last three have deadlines at 80, 50 and 100."""


def made(accepted: list[int] | None) -> Schedule:
    schedule = schedule_of(ROWS)
    deadline_s = np.array([-1, -1, -1, 80, 50, 100])
    workload = schedule.workload.with_columns(Step("deadlines"), deadline_s=deadline_s)
    return replace(schedule, workload=workload, accepted=np.array(accepted or [], np.int64))


def test_by_hand() -> None:
    found = of_deadlines(made([-1, -1, -1, 1, 0, 1]))
    assert found == pytest.approx(
        {
            "regular_jobs": 3,
            "regular_mean_wait_s": 5.0,
            "regular_max_wait_s": 10.0,
            "regular_stretch": (1 + 30 / 20 + 20 / 15) / 3,
            "regular_max_stretch": 1.5,
            "regular_at_once": 1 / 3,
            "stretch": (1 + 30 / 20 + 20 / 15 + 1 + 3 + 6) / 6,
            "max_stretch": 6.0,
            "deadline_jobs": 3,
            "deadline_at_once": 1 / 3,
            "deadline_usage": (60 / 50 + 60 / 100) / 2,
            "deadline_usage_above_80": 1 / 3,
            "deadlines_late": 1,
            "deadlines_refused": 1,
            "deadlines_missed": 0,
        }
    )
    assert of_deadlines(made([-1, -1, -1, 1, 1, 1]))["deadlines_missed"] == 1


@pytest.mark.parametrize(("deadline_s", "late", "above"), [(50, 1, 1), (60, 0, 1), (74, 0, 1), (75, 0, 0)])
def test_at_the_deadline_and_at_four_fifths_of_it(deadline_s: int, late: int, above: int) -> None:
    """A job of 60 s from arrival to end: at its deadline it is not late, at 0.8 of it not above."""
    schedule = schedule_of([(0, 40, 2, 20)])
    workload = schedule.workload.with_columns(Step("deadlines"), deadline_s=np.array([deadline_s]))
    found = of_deadlines(replace(schedule, workload=workload, accepted=np.array([1])))
    told = [found[name] for name in ("deadlines_late", "deadlines_missed", "deadline_usage_above_80")]
    assert told == [late, late, above]


def test_a_policy_that_was_not_asked_refuses_nothing() -> None:
    found = of_deadlines(made(None))
    assert found["deadlines_late"] == 1
    assert isnan(found["deadlines_refused"])
    assert isnan(found["deadlines_missed"])


def test_where_no_regular_job_waits_the_longest_wait_is_0() -> None:
    schedule = schedule_of([(0, 0, 2, 10), (0, 10, 2, 20)])
    workload = schedule.workload.with_columns(Step("deadlines"), deadline_s=np.array([-1, 80]))
    found = of_deadlines(replace(schedule, workload=workload))
    assert (found["regular_max_wait_s"], found["regular_max_stretch"]) == (0, 1)


def test_they_are_told_only_where_there_are_deadlines() -> None:
    assert "deadline_jobs" in summarize(made(None))
    assert "deadline_jobs" not in summarize(schedule_of(ROWS))
