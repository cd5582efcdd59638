"""The pictures of estimates: their numbers by hand, and when they are drawn."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.metrics.estimates import r2
from dovetail.model.schedule import Schedule
from dovetail.policies.registry import policy
from dovetail.reports.estimate_figures import POINTS, estimates_of, gain_of, is_learned
from dovetail.reports.figures import pictures
from dovetail.studies.cases import of_schedules
from dovetail.workloads.lublin import lublin

USERS = ("<script>alert(1)</script>", "anna", "bert")
TITLES = ["How near estimates were", "Whose run times could be predicted", "Which jobs gained from it"]


@pytest.fixture(scope="module")
def made() -> dict[str, Schedule]:
    workload = lublin(600, 32, seed=3, load=0.9)
    user = np.arange(600) % 3
    user[:10] = 1
    columns = {**workload.columns, "user": user, "limit": workload.runtime * (1 + np.arange(600) % 20)}
    named = replace(workload, columns=columns, names={"user": USERS})
    return {name: replay(named, policy("easy"), estimate=name) for name in ("limit", "runtime", "recent", "quantile")}


def test_who_has_said_something(made: dict[str, Schedule]) -> None:
    assert [is_learned(one) for one in made.values()] == [False, False, True, True]


def test_numbers_of_estimates(made: dict[str, Schedule]) -> None:
    one = made["recent"]
    found, work = estimates_of(one), one.workload
    assert found.within[POINTS // 2] == found.by == np.mean(work.runtime <= one.said)
    assert found.limit_within[POINTS // 2] == 1
    assert found.within[0] == pytest.approx(np.mean(work.runtime / one.said <= 0.01))
    assert [name for name, _, _ in found.users] == ["anna", *(USERS[i] for i in (2, 0))]
    mine = work.get("user") == 1
    assert found.users[0][1:] == (
        r2(one.said[mine], work.runtime[mine]), r2(work.limit[mine], work.runtime[mine])
    )  # fmt: skip


def test_gain_by_share_of_the_limit(made: dict[str, Schedule]) -> None:
    limits, other = made["limit"], made["recent"]
    found = gain_of(limits, other)
    used = limits.workload.runtime / limits.workload.limit
    assert found.labels == ("0 to 10 %", "10 to 25 %", "25 to 50 %", "50 to 75 %", "75 to 100 %")
    assert sum(found.jobs) == 600
    for at, (low, high) in enumerate(((0, 0.1), (0.1, 0.25), (0.25, 0.5), (0.5, 0.75), (0.75, 1.0))):
        mask = (used > low) & (used <= high)
        assert found.jobs[at] == mask.sum()
        if mask.any():
            assert found.limit_wait_s[at] == pytest.approx(limits.wait[mask].mean())
            assert found.wait_s[at] == pytest.approx(other.wait[mask].mean())


@pytest.mark.slow
def test_pictures_are_there_for_predictors_only(made: dict[str, Schedule]) -> None:
    titles = [one.title for one in pictures(of_schedules([made["limit"]]), "a")]
    assert not set(TITLES) & set(titles)
    case = of_schedules([made["quantile"]])
    assert [one.title for one in pictures(case, "a")][-2:] == TITLES[:2]
    drawn = pictures(replace(case, with_limits=lambda: made["limit"]), "a")[-3:]
    assert [one.title for one in drawn] == TITLES
    assert "<script" not in drawn[1].svg
