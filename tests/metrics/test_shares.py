"""Who received what, against a count second by second."""

from __future__ import annotations

import random
from math import isnan

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.metrics.shares import by_owner, received
from dovetail.model.turns import Turns
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.lists import ListPolicy
from dovetail.units import WEEK_S

TURNS = Turns("user", shares=(("a", 3), ("b", 1)), members=(("a", ("1", "2")), ("b", ("3",))))


def drawn(seed: int, step: int = 20_000) -> Workload:
    """Some weeks in steps of hours, so that a count by steps is exact."""
    rng = random.Random(seed)
    n = rng.randint(2, 60)
    columns = {
        "id": np.arange(1, n + 1), "submit": step * np.sort([rng.randint(0, 90) for _ in range(n)]),
        "size": np.array([rng.randint(1, 8) for _ in range(n)]),
        "runtime": step * np.array([rng.randint(1, 40) for _ in range(n)]),
        "user": np.array([rng.randint(1, 3) for _ in range(n)]),
    }  # fmt: skip
    return Workload("drawn", columns | {"limit": columns["runtime"]}, 8, Provenance("drawn"))


@pytest.mark.parametrize("seed", range(20))
def test_received_is_that_of_a_slow_count(seed: int) -> None:
    workload = drawn(seed)
    schedule = replay(workload, ListPolicy())
    found = received(schedule, TURNS)
    assert found.names == ("a", "b")
    assert found.due.tolist() == [0.75, 0.25]
    first, last, step = int(workload.submit[0]), int(workload.submit[-1]), 200
    weeks = max(1, round((last - first) / WEEK_S))
    assert found.begins.tolist() == [first + week * WEEK_S for week in range(weeks)]
    for week in range(weeks):
        had = [0, 0]
        for at in range(first + week * WEEK_S, last if week == weeks - 1 else first + (week + 1) * WEEK_S, step):
            for job, start in enumerate(schedule.start.tolist()):
                end = start + int(workload.runtime[job])
                busy = max(0, min(at + step, end) - max(at, start))
                had[int(workload["user"][job] == 3)] += busy * int(workload.size[job])
        assert found.had[week].tolist() == had
        if sum(had):
            assert found.share[week].tolist() == pytest.approx([one / sum(had) for one in had], rel=1e-12)
        else:
            assert np.isnan(found.share[week]).all()
    gaps = [abs(week[0] - 0.75) for week in found.share.tolist() if not isnan(week[0])]
    assert found.gap == pytest.approx(sum(gaps) / len(gaps), rel=1e-12)


def test_who_waited_longest_comes_first() -> None:
    workload = drawn(3)
    schedule = replay(workload, ListPolicy())
    rows = by_owner(schedule, "user")
    assert sorted(str(row["name"]) for row in rows) == ["1", "2", "3"]
    waits = [float(row["mean_wait_s"]) for row in rows]
    assert waits == sorted(waits, reverse=True)
    assert sum(float(row["jobs"]) for row in rows) == len(workload)
    assert sum(float(row["received_share"]) for row in rows) == pytest.approx(1, rel=1e-12)
    assert all(isnan(float(row["due_share"])) for row in rows)
    user = {str(row["name"]): row for row in rows}["2"]
    mine = workload["user"] == 2
    assert user["mean_wait_s"] == pytest.approx((schedule.start - workload.submit)[mine].mean(), rel=1e-12)
