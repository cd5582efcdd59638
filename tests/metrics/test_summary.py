"""The flat dictionary of all metrics, the classes, and the worked example of the documentation."""

from __future__ import annotations

import doctest
import json
from math import isnan

import numpy as np
import pytest
from hypothesis import given

from dovetail import metrics
from dovetail.model.schedule import Schedule
from tests.conftest import ROOT
from tests.metrics.schedules import feasible, schedule_of

HEAD = [
    "jobs", "jobs_counted", "jobs_unstarted", "bsld", "slowdown", "af_s", "awf_s", "awq_s", "p2sf_s",
    "l2_response_s", "l3_response_s", "mean_wait_s",
    "wait_p50_s", "wait_p90_s", "wait_p95_s", "wait_p99_s", "max_wait_s",
    "bsld_p50", "bsld_p90", "bsld_p95", "bsld_p99", "max_bsld",
]  # fmt: skip
TAIL = [
    "utilization", "utilization_variance", "loss_of_capacity", "makespan_s",
    "mean_queue_jobs", "max_queue_jobs", "mean_queue_processors", "max_queue_processors",
]  # fmt: skip
OF_CLASS = ["jobs", "bsld", *HEAD[11:]]


def test_keys_and_their_order() -> None:
    expected = HEAD + [f"{name}_{key}" for name in metrics.CLASSES for key in OF_CLASS] + TAIL
    assert list(metrics.summarize(schedule_of([]))) == expected
    assert list(metrics.summarize(schedule_of([(0, 0, 1, 1)]), counting="ended")) == expected


def test_documentation_names_every_key() -> None:
    text = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    assert [key for key in HEAD + TAIL if f"`{key}`" not in text] == []
    assert [name for name in metrics.__all__ if name not in text] == []


@pytest.mark.slow
@given(feasible())
def test_values_are_those_of_the_functions(schedule: Schedule) -> None:
    for counting in metrics.COUNTING:
        found = metrics.summarize(schedule, counting=counting, bound_s=2, short_s=4, narrow=3)
        jobs, line = metrics.outcomes(schedule, counting), metrics.timeline(schedule)
        expected = {
            "jobs": len(schedule.start),
            "jobs_counted": len(jobs),
            "jobs_unstarted": 0,
            "bsld": metrics.bsld(jobs, 2),
            "slowdown": metrics.slowdown(jobs),
            "af_s": metrics.af_s(jobs),
            "awf_s": metrics.awf_s(jobs),
            "awq_s": metrics.awq_s(jobs),
            "p2sf_s": metrics.pasf_s(jobs, 2),
            "l2_response_s": metrics.lp_response_s(jobs, 2),
            "l3_response_s": metrics.lp_response_s(jobs, 3),
            "mean_wait_s": metrics.mean_wait_s(jobs),
            **metrics.spread(jobs.wait, "wait", "_s"),
            **metrics.spread(metrics.slowdowns(jobs, 2), "bsld"),
            **{key: getattr(metrics, key)(line) for key in TAIL},
        }
        for name, mask in metrics.classes(jobs, 4, 3).items():
            members = jobs.where(mask)
            expected[f"{name}_jobs"] = len(members)
            expected[f"{name}_bsld"] = metrics.bsld(members, 2)
            expected[f"{name}_mean_wait_s"] = metrics.mean_wait_s(members)
            expected |= {f"{name}_{k}": v for k, v in metrics.spread(members.wait, "wait", "_s").items()}
            slow = metrics.spread(metrics.slowdowns(members, 2), "bsld")
            expected |= {f"{name}_{k}": v for k, v in slow.items()}
        assert found == pytest.approx(expected, rel=0, abs=0, nan_ok=True)


def test_each_job_is_in_one_class() -> None:
    jobs = metrics.outcomes(schedule_of([(0, 0, 8, 3600), (0, 0, 9, 3600), (0, 0, 8, 3601), (0, 0, 9, 3601)], 64))
    masks = metrics.classes(jobs)
    assert list(masks) == ["short_narrow", "short_wide", "long_narrow", "long_wide"]
    assert np.array(list(masks.values())).tolist() == np.eye(4, dtype=bool).tolist()


def test_nothing_counted_gives_counts_of_zero_and_nan() -> None:
    for rows, unstarted in (([], 0), ([(0, -1, 1, 5)], 1)):
        found = metrics.summarize(schedule_of(rows))
        assert found["jobs_unstarted"] == unstarted
        assert found["jobs"] == unstarted
        for key, value in found.items():
            if key == "jobs_counted" or (key.endswith("_jobs") and "queue" not in key):
                assert value == 0, key
            elif key not in ("jobs", "jobs_unstarted"):
                assert isnan(value), key


def test_a_start_at_instant_0_is_a_start() -> None:
    found = metrics.summarize(schedule_of([(0, 0, 4, 10), (0, 0, 1, 10), (1, -1, 4, 30)]))
    assert (found["jobs"], found["jobs_counted"], found["jobs_unstarted"]) == (3, 2, 1)


def test_the_counting_rule_leaves_the_cluster_alone() -> None:
    schedule = schedule_of([(0, 0, 4, 10), (1, 10, 4, 30), (12, 40, 6, 5)])
    every, ended = metrics.summarize(schedule), metrics.summarize(schedule, counting="ended")
    assert (every["jobs_counted"], ended["jobs_counted"]) == (3, 1)
    assert ended["mean_wait_s"] == 0 < every["mean_wait_s"]
    assert {key: every[key] for key in TAIL} == {key: ended[key] for key in TAIL}


def test_values_are_plain_numbers() -> None:
    found = metrics.summarize(schedule_of([(0, 0, 4, 10), (1, 10, 4, 4000), (12, 4010, 6, 5)]))
    assert {type(value) for value in found.values()} == {int, float}
    assert [key for key, value in found.items() if isinstance(value, int)] == [
        "jobs", "jobs_counted", "jobs_unstarted", *(f"{name}_jobs" for name in metrics.CLASSES)
    ]  # fmt: skip
    assert json.loads(json.dumps(found))["max_wait_s"] == 3998


def test_the_worked_example_of_the_documentation() -> None:
    result = doctest.testfile(str(ROOT / "docs" / "metrics.md"), module_relative=False, encoding="utf-8")
    assert result.attempted >= 10
    assert result.failed == 0
