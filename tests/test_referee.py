"""The referee must see every broken rule, and nothing else."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.errors import DovetailError
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.referee import RefereeError, Violation, assert_valid, check_plan, check_schedule


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def schedule(
    start: Ints,
    *,
    submit: Ints | None = None,
    arrive: Ints | None = None,
    first: Ints | None = None,
    last: Ints | None = None,
    accepted: Ints | None = None,
    runtime: Ints | None = None,
    **more: Ints,
) -> Schedule:
    """Four jobs of 3, 4, 1 and 1 processors on a cluster of 4, all submitted at 0 unless said otherwise."""
    n = 4
    columns = {
        "id": np.arange(n) + 1,
        "submit": np.zeros(n, np.int64) if submit is None else submit,
        "size": ints(3, 4, 1, 1),
        "runtime": ints(10, 5, 9, 3) if runtime is None else runtime,
        "limit": ints(10, 5, 9, 3),
    }
    workload = Workload("hand", {**columns, **more}, 4, Provenance("hand"))
    none = np.full(n, -1, np.int64)
    return Schedule(
        workload=workload,
        cluster=Cluster(4),
        policy="hand",
        estimate="limit",
        start=start,
        arrive=workload.submit if arrive is None else arrive,
        promised_first=none if first is None else first,
        promised_last=none if last is None else last,
        passes=0,
        accepted=ints() if accepted is None else accepted,
    )


def rules(found: list[Violation]) -> list[tuple[str, int]]:
    return [(v.rule, v.job) for v in found]


VALID = ints(0, 10, 15, 0)
"""
    3 | 3 3 3 . . .  1 1 1  .          job 0 on three processors until 10, job 3 beside it until 3,
    . | 0 0 0 0 0 0  1 1 1  2 2        job 1 on all four from 10 to 15, job 2 after it
      0             10     15
"""


def test_valid_schedule_has_no_violation() -> None:
    assert check_schedule(schedule(VALID), promises=True) == []
    assert_valid(schedule(VALID), promises=True)


def test_capacity_is_checked_to_the_second() -> None:
    one_too_early = check_schedule(schedule(ints(0, 9, 15, 0)))
    assert rules(one_too_early) == [("capacity", 1)]
    assert one_too_early[0].at == 9
    assert "7 processors into use where there are 4" in one_too_early[0].detail
    assert rules(check_schedule(schedule(ints(0, 10, 14, 0)))) == [("capacity", 2)]


def test_capacity_sees_three_starts_in_one_second() -> None:
    assert rules(check_schedule(schedule(ints(0, 10, 0, 0)))) == [("capacity", 3)]


def test_start_before_arrival_and_wrong_arrival() -> None:
    late = schedule(VALID, submit=ints(0, 1, 1, 1))
    assert rules(check_schedule(late)) == [("arrival", 3)]
    early = schedule(ints(0, 10, 15, 1), submit=ints(0, 1, 1, 1), arrive=ints(0, 1, 1, 0))
    assert rules(check_schedule(early)) == [("submit", 3)]
    never = schedule(VALID, arrive=ints(0, 0, 0, -1))
    assert rules(check_schedule(never)) == [("submit", 3)]


def test_feedback_sets_the_arrival() -> None:
    """Job 2 (id 3) follows job 1 (id 2), which ends at 15, after a pause of 4."""
    after, think = ints(-1, -1, 2, -1), ints(-1, -1, 4, -1)
    good = schedule(ints(0, 10, 19, 0), arrive=ints(0, 0, 19, 0), after=after, think_s=think)
    assert check_schedule(good) == []
    bad = schedule(ints(0, 10, 19, 0), arrive=ints(0, 0, 18, 0), after=after, think_s=think)
    assert rules(check_schedule(bad)) == [("submit", 2)]
    before_submit = schedule(
        ints(0, 10, 19, 30), submit=ints(0, 0, 30, 30), arrive=ints(0, 0, 19, 30), after=after, think_s=think
    )
    assert check_schedule(before_submit) == []


def test_jobs_that_do_not_start() -> None:
    assert rules(check_schedule(schedule(ints(0, -1, 15, 0)))) == [("every job starts", 1)]
    assert check_schedule(schedule(ints(0, -1, 15, 0)), expect_all_started=False) == []
    assert rules(check_schedule(schedule(ints(0, -2, 15, 0)))) == [("start", 1)]


def test_a_job_larger_than_the_cluster_never_starts() -> None:
    big = schedule(ints(0, -1, 15, 0))
    small_cluster = Schedule(**{**big.__dict__, "cluster": Cluster(3), "start": ints(0, -1, 15, 10)})
    assert check_schedule(small_cluster) == []
    started = Schedule(**{**big.__dict__, "cluster": Cluster(3), "start": ints(0, 30, 15, 10)})
    assert rules(check_schedule(started)) == [("jobs fit the cluster", 1), ("capacity", 1)]


def test_negative_run_time_and_missing_values() -> None:
    assert rules(check_schedule(schedule(VALID, runtime=ints(10, 5, -9, 3)))) == [("run time", 2)]
    assert rules(check_schedule(schedule(ints(0, 10, 15)))) == [("one start per job", -1)]


def test_promises_are_checked_where_asked() -> None:
    kept = schedule(VALID, first=ints(0, 12, -1, 0), last=ints(0, 10, -1, 0))
    assert check_schedule(kept, promises=True) == []
    broken = schedule(VALID, first=ints(0, 9, -1, 0), last=ints(0, 11, -1, 0))
    assert check_schedule(broken) == []
    assert rules(check_schedule(broken, promises=True)) == [("promise kept", 1), ("last promise", 1)]
    too_soon = schedule(ints(2, 12, 17, 2), arrive=ints(2, 2, 2, 2), submit=ints(2, 2, 2, 2), first=ints(1, 12, -1, -1))
    found = check_schedule(too_soon, promises=True)
    assert rules(found) == [
        ("promise kept", 0),
        ("last promise", 0),
        ("last promise", 1),
        ("promise after arrival", 0),
    ]


def test_the_error_speaks_plainly() -> None:
    with pytest.raises(RefereeError, match="job 1: started at 9, which brings 7 processors into use") as caught:
        assert_valid(schedule(ints(0, 9, 15, 0)))
    assert isinstance(caught.value, DovetailError)
    assert len(caught.value.violations) == 1


def state(now: int = 5) -> State:
    """Job 0 (3 of 4 processors) runs since 0 with an estimate of 10; jobs 1 to 3 wait."""
    return State(
        now=now,
        processors=4,
        free=1,
        waiting=ints(1, 2, 3),
        running=ints(0),
        arrived=ints(),
        ended=ints(),
        submit=ints(0, 0, 0, 0),
        size=ints(3, 4, 1, 1),
        limit=ints(10, 5, 9, 3),
        estimate=ints(10, 5, 9, 3),
        user=ints(0, 0, 0, 0),
        start=ints(0, -1, -1, -1),
    )


def test_good_plans() -> None:
    assert check_plan(state(), Plan()) == []
    assert check_plan(state(), Plan(starts=(3,), promised={1: 10, 2: 15})) == []
    assert check_plan(state(), Plan(starts=(3,), promised={3: 5, 1: 10, 2: 15})) == []
    assert check_plan(state(), Plan(starts=(3,), promised={3: 6, 1: 20}, expected={1: 10})) == []  # none is later
    assert check_plan(state(12), Plan(promised={1: 13})) == []  # job 0 is late: taken to end at 13


@pytest.mark.parametrize(
    ("now", "plan", "broken"),
    [
        (5, Plan(starts=(0,)), [("starts wait", 0)]),
        (5, Plan(starts=(3, 3)), [("one start per job", 3)]),
        (5, Plan(starts=(3, 2)), [("capacity", 2)]),
        (5, Plan(promised={0: 20}), [("promises wait", 0)]),
        (5, Plan(promised={1: 4}), [("promise not past", 1)]),
        (5, Plan(promised={1: 10}, expected={1: 11}), [("promise planned", 1)]),
        (5, Plan(promised={1: 9}), [("capacity", 1)]),
        (5, Plan(starts=(2,), promised={1: 10}), [("capacity", 1)]),
        (12, Plan(promised={1: 12}), [("capacity", 1)]),
        (5, Plan(deadlines={0: 50}), [("deadlines wait", 0), ("deadline stays", 2)]),
        (5, Plan(promised={1: 10}, expected={2: 12}, deadlines={2: 24}), [("capacity", 2)]),
        (5, Plan(expected={2: 15}, deadlines={2: 23}), [("deadline stays", 2), ("deadline kept", 2)]),
        (5, Plan(expected={2: 15}, deadlines={2: -1}), [("deadline stays", 2)]),
        (5, Plan(deadlines={2: 24}), [("deadline planned", 2)]),
    ],
)
def test_bad_plans(now: int, plan: Plan, broken: list[tuple[str, int]]) -> None:
    standing = Plan(deadlines={2: 24}) if plan.deadlines else Plan()
    assert rules(check_plan(replace(state(now), standing=standing), plan, deadlines=True)) == broken


def test_deadlines_that_were_accepted_are_kept() -> None:
    def found(accepted: Ints, deadline_s: Ints) -> list[tuple[str, int]]:
        made = schedule(ints(0, 10, 15, 0), accepted=accepted, deadline_s=deadline_s)
        assert check_schedule(made) == []
        return rules(check_schedule(made, promises=True))

    deadline_s = ints(-1, 15, 23, -1)  # they end at 10, 15, 24 and 3
    assert found(ints(-1, 1, 0, -1), deadline_s) == []
    assert found(ints(), deadline_s) == []  # nobody was asked
    assert found(ints(-1, 1, 1, -1), deadline_s) == [("deadline kept", 2)]
    assert found(ints(0, 1, -1, -1), deadline_s) == [("deadline asked for", 0), ("deadline answered", 2)]


def test_many_jobs_take_little_time() -> None:
    """A valid schedule of 300,000 jobs, each following the one before, is checked in under 2 s of CPU."""
    n = 300_000
    runtime = np.full(n, 10, np.int64)
    start = np.arange(n, dtype=np.int64) * 10
    columns = {
        "id": np.arange(n) + 1,
        "submit": np.arange(n),
        "size": np.full(n, 4),
        "runtime": runtime,
        "limit": runtime,
        "after": np.arange(n),
        "think_s": np.zeros(n),
    }
    workload = Workload("long", columns, 4, Provenance("made here"))
    arrive = np.concatenate([ints(0), start[:-1] + 10])
    whole = Schedule(workload, Cluster(4), "fcfs", "limit", start, arrive, start, start, 2 * n)
    before = time.process_time()
    assert check_schedule(whole, promises=True) == []
    assert time.process_time() - before < 2.0
