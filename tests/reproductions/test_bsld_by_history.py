"""One over the run time, guessed from what has ended: from the past alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dovetail.engine.contract import busy_workload
from dovetail.engine.replay import replay
from dovetail.model.state import State
from dovetail.model.workload import Step
from dovetail.policies.planner import PLANNED, Planner
from reproductions.planner_terms.history import ByHistory

NONE = np.empty(0, np.int64)


def at(now: int, start: list[int], waiting: list[int]) -> State:
    """Five jobs: the fourth of another user, the fifth with another limit."""
    limit, user = np.array([100, 100, 100, 100, 50]), np.array([1, 1, 1, 2, 1])
    return State(
        now=now, processors=4, free=1, waiting=np.array(waiting), running=NONE, arrived=NONE, ended=NONE, user=user,
        start=np.array(start), submit=np.zeros(5, np.int64), size=np.ones(5, np.int64), estimate=limit, limit=limit,
    )  # fmt: skip


def test_the_mean_over_what_has_ended() -> None:
    guess = ByHistory(np.array([20, 50, 100, 100, 5]))
    assert guess(at(19, [0, 0, -1, -1, -1], [2, 3, 4])).tolist() == [1, 1, 1]  # nothing has ended
    assert guess(at(20, [0, 0, -1, -1, -1], [2, 3, 4])).tolist() == [(1 + 5) / 2, 1, (1 + 2.5) / 2]
    assert guess(at(50, [0, 0, -1, -1, -1], [2, 3])).tolist() == [(1 + 5 + 2) / 3, 1]
    assert guess(at(60, [0, 0, -1, -1, 50], [2])).tolist() == [(1 + 5 + 2) / 3]  # another limit: same user, not alike


def test_what_is_to_come_changes_nothing() -> None:
    workload, cluster = busy_workload(np.random.Generator(np.random.PCG64(3)))
    own = Planner(**PLANNED["bsld"], name="plan-bsld")
    made = replay(workload, replace(own, favour=ByHistory(workload.runtime)), cluster=cluster)
    assert made.start.tolist() != replay(workload, own, cluster=cluster).start.tolist()
    now = int(np.median(made.start))
    unknown = made.end > now
    longer = np.where(unknown, np.maximum(workload.limit, workload.runtime), workload.runtime)
    changed = workload.with_columns(Step("what has not ended takes its limit"), runtime=longer)
    again = replay(changed, replace(own, favour=ByHistory(changed.runtime)), cluster=cluster)
    before = made.start <= now
    assert again.start[before].tolist() == made.start[before].tolist()
