"""Limits to ask for: by hand, against the share of later jobs that they would stop, and on the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dovetail.errors import SettingError
from dovetail.model.workload import Provenance, Workload
from dovetail.predict.advise import advise, survival
from tests.cli.test_cli import lines
from tests.command import run
from tests.conftest import TRACES, needs_traces


def history(ran: list[int], limit: list[int], **more: list[int]) -> Workload:
    n = len(ran)
    columns = {"id": range(n), "submit": range(n), "size": [1] * n, "runtime": ran, "limit": limit, "user": [1] * n}
    made = {name: np.array(values, np.int64) for name, values in (columns | more).items()}
    return Workload("history", made, 8, Provenance("by hand"))


def test_survival_by_hand() -> None:
    """Five jobs: one stopped at 3, two end at 5, one stopped there, one ends at 9."""
    times, left = survival(np.array([3, 5, 5, 5, 9]), np.array([False, True, True, False, True]))
    assert times.tolist() == [5, 9]
    assert left.tolist() == [0.5, 0.0]


def test_few_jobs_promise_little() -> None:
    found = advise(history([600] * 30, [3600] * 30), user=1)
    assert found.limits == ((0.2, 660), (0.1, 660), (0.05, 660), (0.02, None), (0.01, None))
    assert (found.jobs, found.censored, found.median_limit_s, found.alike) == (30, 0, 3600, ("user",))
    stopped = advise(history([3600] * 200, [3600] * 200), user=1)
    assert {limit for _, limit in stopped.limits} == {None}
    assert stopped.censored == 200


@pytest.mark.parametrize(
    ("ran", "limit"),
    [(1, 60), (59, 60), (60, 120), (3598, 3600), (3599, 3600), (3600, 3900), (4199, 4200), (4200, 4500)],
)
def test_limits_are_whole_minutes_and_from_an_hour_on_five_of_them(ran: int, limit: int) -> None:
    """A job that runs so long again must not be stopped: a limit is at least a second more."""
    assert advise(history([ran] * 30, [9000] * 30), user=1).limits[0] == (0.2, limit)


def test_the_most_specific_group_that_is_large_enough() -> None:
    sizes = [1] * 25 + [2] * 25 + [4] * 3
    ran = [100] * 25 + [200] * 25 + [400] * 3
    workload = history(ran, [1000] * 53, size=sizes, name=[7] * 53)
    assert advise(workload, user=1, size=2).alike == ("user", "size")
    assert advise(workload, user=1, size=2, name=7).alike == ("user", "name", "size")
    assert advise(workload, user=1, size=4, name=7).jobs == 53  # three are too few: all of the user and name
    with pytest.raises(SettingError, match="user 2 has no job"):
        advise(workload, user=2)


@needs_traces
def test_later_jobs_are_stopped_about_as_often_as_said(tmp_path: Path) -> None:
    """On KTH-SP2: limits from the first half of each busy user's jobs, tried on the second half. Users change their
    habits, so this is only roughly so: not three times as many."""
    from dovetail.io.read import read_workload

    path = TRACES / "papers" / "KTH-SP2.swf.gz"
    workload = read_workload(path)
    users, counts = np.unique(workload.get("user"), return_counts=True)
    stopped = asked = 0
    for user in users[counts >= 200].tolist():
        mine = np.flatnonzero(workload.get("user") == user)
        first, later = mine[: len(mine) // 2], mine[len(mine) // 2 :]
        before = np.isin(np.arange(len(workload)), first)
        limit = dict(advise(workload.take(before, "later"), user=user).limits)[0.1]
        if limit is not None:
            stopped += int(np.count_nonzero(workload.runtime[later] > limit))
            asked += len(later)
    assert asked > 5000
    assert 0.03 < stopped / asked < 0.3
    [told] = lines(run("predict", "advise", path, "--user", "91", "--json"))
    assert told["jobs"] == 2389
    assert [risk for risk, _ in told["limits"]] == [0.2, 0.1, 0.05, 0.02, 0.01]
    assert (
        "risk of being stopped  10 %: ask for " in run("predict", "advise", path, "--user", "91", "--size", "8").stdout
    )
    assert "knows no user 'nobody'" in run("predict", "advise", path, "--user", "nobody").stderr
