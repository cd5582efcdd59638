"""Jobs that may not start before some time, and jobs that leave the queue."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.api import read
from dovetail.arrays import Ints
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.io.schedules import write_schedule_parquet
from dovetail.metrics import summarize
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.optimize.window.bounds import workload_bounds
from dovetail.policies.conservative import Conservative
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from tests.contract.cases import case

ROWS = {
    "id": [1, 2, 3, 4], "submit": [0, 1, 2, 3], "size": [8, 8, 1, 1], "runtime": [10, 10, 20, 10],
    "limit": [10, 10, 20, 10], "wait": [0, -1, 8, 7], "leaves_s": [-1, 5, -1, -1], "not_before_s": [-1, -1, -1, 1],
}  # fmt: skip
JOBS = Workload("four", {name: np.array(values) for name, values in ROWS.items()}, 8, Provenance("by hand"))


@pytest.mark.parametrize("by_event", [False, True])
@pytest.mark.parametrize("name", ["easy", "conservative", "dbf", "list-reg", "plan-af:decodes=5", "strict-fcfs"])
def test_who_leaves_makes_room(name: str, by_event: bool) -> None:
    """The second, which would hold back the third, leaves at 6; the fourth comes at 4."""
    made = replay(JOBS, policy(name), event_by_event=by_event)
    assert made.start.tolist() == [0, -1, 10, 10]
    assert made.arrive.tolist() == [0, 1, 2, 4]
    assert check_schedule(made) == []
    assert made.left.tolist() == [False, True, False, False]
    found = summarize(made)
    assert (found["jobs_left"], found["jobs_unstarted"], found["jobs_counted"]) == (1, 0, 3)
    assert found["mean_wait_s"] == pytest.approx((0 + 8 + 6) / 3)
    stays = replay(replace(JOBS, columns={**JOBS.columns, "leaves_s": np.full(4, -1)}), policy(name))
    assert stays.start.tolist() == [0, 10, 20, 20]


def test_a_pass_follows_at_once() -> None:
    """When the first in the queue leaves, who waits behind it need not wait for an end."""
    rows = {"id": [1, 2, 3], "submit": [0, 1, 2], "size": [4, 8, 4], "runtime": [50] * 3, "limit": [50, 50, 60]}
    rows |= {"leaves_s": [-1, 9, -1]}
    workload = Workload("three", {name: np.array(values) for name, values in rows.items()}, 8, Provenance("by hand"))
    for by_event in (False, True):
        made = replay(workload, policy("easy"), event_by_event=by_event)
        assert made.start.tolist() == [0, -1, 10]
        assert made.passes == 6  # three arrivals, a departure, two ends


def test_who_leaves_before_it_may_start_never_comes() -> None:
    columns = {**JOBS.columns, "not_before_s": np.array([-1, 5, -1, -1])}
    for by_event in (False, True):
        made = replay(replace(JOBS, columns=columns), policy("easy"), event_by_event=by_event)
        assert made.start.tolist() == [0, -1, 10, 10]
        assert made.arrive.tolist() == [0, -1, 2, 3]
        assert check_schedule(made) == []


def test_the_referee_knows_who_had_left_and_who_came_too_soon() -> None:
    made = replay(JOBS, policy("easy"))
    late, soon = made.start.copy(), made.arrive.copy()
    late[1], soon[3] = 40, 3
    assert [one.rule for one in check_schedule(replace(made, start=late))] == ["left the queue"]
    assert [one.rule for one in check_schedule(replace(made, arrive=soon))] == ["submit"]
    late[1], late[2] = -1, -1
    assert [one.rule for one in check_schedule(replace(made, start=late))] == ["every job starts"]


def test_what_happened_knows_them() -> None:
    made = replay(JOBS, policy("recorded"))
    assert made.start.tolist() == [0, -1, 10, 10]
    assert check_schedule(made) == []


def test_promises_are_kept_when_others_leave() -> None:
    """Conservative backfilling gives the room of who has left to others, and breaks no promise."""
    moved = 0
    for seed in range(2, 200, 3):
        this = case(seed)
        if not (this.feedback or this.every_s) and this.bounded:
            whole, stepped = (this.replay(Conservative(), event_by_event=one) for one in (False, True))
            assert check_schedule(whole, promises=True) == []
            assert whole.start.tolist() == stepped.start.tolist()
            moved += int((whole.start < whole.promised_first).any())
    assert moved > 5


def test_of_many_alike_only_those_leave_that_do() -> None:
    """Planners group arrays where very many jobs wait: not where one of them may leave."""
    n = 1104
    leaves = np.full(n, -1)
    leaves[[1, 500]] = 5
    rows = {"id": np.arange(n) + 1, "submit": np.minimum(np.arange(n), 1), "size": np.full(n, 4)}
    rows |= {"runtime": np.full(n, 10), "limit": np.full(n, 10), "leaves_s": leaves}
    made = replay(Workload("array", rows, 4, Provenance("by hand")), policy("plan-af:decodes=1"))
    assert np.flatnonzero(made.start < 0).tolist() == [1, 500]


def test_an_order_of_arrival_knows_when_jobs_come() -> None:
    def last_first(state: State) -> Ints:
        return -state.submit[state.waiting]

    last_first.static = True  # type: ignore[attr-defined]
    rows = {"id": [1, 2, 3], "submit": [0, 1, 2], "size": [1] * 3, "runtime": [100, 10, 10], "limit": [100, 10, 10]}
    columns = {name: np.array(values) for name, values in (rows | {"not_before_s": [-1, 50, -1]}).items()}
    workload = Workload("three", columns, 1, Provenance("by hand"))
    for by_event in (False, True):
        made = replay(workload, ListPolicy(last_first), event_by_event=by_event)
        assert made.start.tolist() == [0, 100, 110]


def test_a_schedule_that_is_written_is_what_happened(tmp_path: Path) -> None:
    stays = replace(JOBS, columns={name: of for name, of in JOBS.columns.items() if name != "leaves_s"})
    made = replay(stays, policy("easy"))
    write_schedule_parquet(made, tmp_path / "made.parquet")
    again = read(tmp_path / "made.parquet", filters=())
    assert replay(again, policy("recorded"), cluster=made.cluster).start.tolist() == made.start.tolist()


@pytest.mark.parametrize(
    ("name", "asked", "said"),
    [
        ("offline-af", {}, "plans for all jobs to come from their submits on"),
        ("easy", {"feedback": True}, "have no end that others follow"),
        ("easy", {"charge_decisions": 1.0}, "may have left the queue"),
    ],
)
def test_what_cannot_be_replayed_is_refused(name: str, asked: dict[str, float], said: str) -> None:
    with pytest.raises(SettingError, match=said):
        replay(JOBS, policy(name), **asked)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="no bound is known"):
        workload_bounds(JOBS)
