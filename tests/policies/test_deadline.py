"""Deadline-based backfilling: by hand, and its promises on thousands of small dense workloads."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.engine.contract import check_policy
from dovetail.engine.fair_starts import fair_starts
from dovetail.engine.pass_times import timed_replay
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import SettingError
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from tests.slow.policies import SlowJob
from tests.slow.workloads import random_jobs, with_deadlines, workload_of

MANY = 10_000


def made(jobs: Sequence[SlowJob], processors: int, name: str = "dbf") -> Schedule:
    """The schedule of a few jobs, the same by both engines."""
    workload = workload_of(jobs, (processors,))
    whole, by_event = (replay(workload, policy(name), event_by_event=one) for one in (False, True))
    for column in ("start", "promised_first", "promised_last", "accepted"):
        assert getattr(whole, column).tolist() == getattr(by_event, column).tolist(), column
    return whole


def drawn(seed: int) -> Workload:
    """A small dense workload, a part of its jobs with deadlines; every job keeps its limit."""
    rng = random.Random(seed)
    jobs, capacity = random_jobs(rng)
    return workload_of(with_deadlines(rng, jobs), capacity)


def job(submit: int, size: int, estimate: int, deadline: int = -1) -> SlowJob:
    return SlowJob(submit, (size,), estimate, estimate, deadline=deadline)


def test_a_job_that_can_wait_makes_room() -> None:
    jobs = [job(0, 2, 10), job(1, 2, 10, deadline=100), job(2, 2, 10)]
    schedule = made(jobs, 2)
    assert schedule.start.tolist() == [0, 20, 10]
    assert schedule.accepted.tolist() == [-1, 1, -1]
    assert schedule.promised_first.tolist() == [0, -1, 10]  # it was promised an end, not a start
    assert replay(workload_of(jobs, (2,)), policy("conservative")).start.tolist() == [0, 10, 20]


def test_a_deadline_that_is_near_goes_first_and_becomes_firm() -> None:
    schedule = made([job(0, 2, 10), job(1, 2, 10, deadline=20), job(2, 2, 10)], 2)
    assert schedule.start.tolist() == [0, 10, 20]
    assert schedule.promised_first.tolist() == [0, 10, 20]
    assert schedule.accepted.tolist() == [-1, 1, -1]


def test_a_deadline_that_cannot_be_met_is_refused_and_the_job_is_regular() -> None:
    schedule = made([job(0, 2, 10), job(1, 2, 10, deadline=18), job(2, 2, 10)], 2)
    assert schedule.start.tolist() == [0, 10, 20]
    assert schedule.promised_first.tolist() == [0, 10, 20]
    assert schedule.accepted.tolist() == [-1, 0, -1]


def test_a_deadline_of_0_s_is_answered_however_many_wait() -> None:
    """And is promised a start at once, as it is regular then: nobody starts that is in its way."""
    schedule = made([job(0, 2, 10), job(1, 2, 10), job(2, 3, 10, deadline=0), job(3, 1, 30)], 3, "dbf:depth=1")
    assert schedule.accepted.tolist() == [-1, -1, 0, -1]
    assert schedule.start.tolist() == [0, 10, 20, 30]


def test_a_refused_job_takes_the_place_of_one_that_can_wait() -> None:
    jobs = [job(0, 2, 10), job(1, 2, 10, deadline=100), job(2, 2, 10, deadline=20)]
    schedule = made(jobs, 2)
    assert schedule.accepted.tolist() == [-1, 1, 0]
    assert schedule.start.tolist() == [0, 20, 10]


def test_a_start_that_was_promised_happens_though_nobody_comes_or_ends_then() -> None:
    """Job 3 was to start behind a tentative job, which has been moved since."""
    rows = [
        (1, 1, 1, 8, -1), (1, 2, 2, 3, -1), (3, 1, 2, 2, -1), (3, 1, 4, 4, 21), (4, 1, 3, 3, -1), (5, 2, 1, 3, -1),
        (5, 2, 1, 1, -1), (6, 2, 3, 3, 17), (7, 2, 2, 2, 100), (7, 2, 7, 7, -1), (9, 1, 6, 6, -1),
    ]  # fmt: skip
    jobs = [SlowJob(submit, (size,), run, estimate, deadline=due) for submit, size, run, estimate, due in rows]
    schedule = made(jobs, 2)
    assert schedule.start[3] == schedule.promised_first[3] == 11
    assert 11 not in {*schedule.end.tolist(), *schedule.arrive.tolist()}


@pytest.mark.parametrize("name", ["dbf", "plan-deadline:decodes=5"])
def test_a_job_that_outlives_its_estimate_is_not_looked_at_every_second(name: str) -> None:
    jobs = [SlowJob(0, (2,), 20_000, 100), SlowJob(1, (2,), 10, 10), SlowJob(2, (1,), 10, 10, deadline=50)]
    workload = workload_of(jobs, (2,))
    schedule = replay(workload, policy(name), estimate=np.array([100, 10, 10]))
    assert schedule.passes < 10
    assert schedule.start.min() >= 0


@pytest.mark.slow
def test_fair_starts_leave_the_trunk_as_it_was() -> None:
    """A fork that makes a tentative job firm must not make it so elsewhere."""
    wrong = 0
    for seed in range(80):
        workload = drawn(seed)
        fair = fair_starts(workload, policy("dbf"), Cluster(workload.processors), np.array(workload.limit))
        for last in range(len(workload)):
            known = workload.take(np.arange(len(workload)) <= last, "later")
            wrong += int(fair[last]) != int(replay(known, policy("dbf")).start[last])
    assert wrong == 0


def test_a_budget_in_milliseconds_keeps_what_was_promised() -> None:
    jobs, capacity = random_jobs(random.Random(7))
    workload = workload_of(with_deadlines(random.Random(7), jobs), capacity)
    answers: dict[int, tuple[int, int]] = {}

    def see(state: State, plan: Plan) -> None:
        for number in plan.deadlines:
            now = (plan.deadlines[number], plan.promised.get(number, -1))
            assert answers.setdefault(number, now) == now

    estimate = np.array(workload.limit)
    Stepper(workload, Cluster(capacity[0]), policy("plan-deadline:ms=5"), estimate, see=see).advance()
    assert answers


@pytest.mark.slow
def test_jobs_that_count_nothing_have_deadlines_too() -> None:
    for seed in range(400):
        jobs, capacity = random_jobs(random.Random(seed))
        everybody = [replace(one, deadline=one.estimate + random.Random(seed).randint(0, 60)) for one in jobs]
        schedule = replay(workload_of(everybody, capacity), policy("plan-deadline:patient=0,decodes=10"))
        assert check_schedule(schedule, promises=True) == [], seed


@pytest.mark.slow
def test_every_pass_is_timed() -> None:
    for seed in range(60):
        workload = drawn(seed)
        schedule, times = timed_replay(workload, policy("plan-deadline:decodes=5,foresight=3"))
        assert len(times.seconds) == schedule.passes, seed


def test_an_order_of_the_users_sees_deadlines() -> None:
    def first_due(state: State) -> npt.NDArray[np.float64]:
        due = state.submit + np.where(state.deadline_s < 0, 10**9, state.deadline_s)
        return due[state.waiting].astype(np.float64)

    jobs = [job(0, 2, 10), job(1, 2, 10, deadline=900), job(2, 2, 10, deadline=20), job(3, 2, 10)]
    for by_event in (False, True):
        made = replay(workload_of(jobs, (2,)), ListPolicy(first_due), event_by_event=by_event)
        assert made.start.tolist() == [0, 20, 10, 30]


def test_settings() -> None:
    with pytest.raises(SettingError, match="must be yes or no"):
        policy("dbf:guard=perhaps")
    with pytest.raises(SettingError, match="must be from 0 to 1"):
        policy("plan-deadline:patient=2")
    for name in ("dbf", "plan-deadline"):
        with pytest.raises(SettingError, match="cannot run with --every"):
            replay(workload_of([job(0, 1, 1)], (1,)), policy(name), every_s=60)


def test_without_deadlines_it_is_conservative_backfilling() -> None:
    for seed in range(200):
        jobs, capacity = random_jobs(random.Random(seed))
        workload = workload_of(jobs, capacity)
        dbf, conservative = (replay(workload, policy(name)) for name in ("dbf", "conservative"))
        assert dbf.start.tolist() == conservative.start.tolist(), seed
        assert dbf.accepted.tolist() == []


def broken(seed: int, name: str) -> list[str]:
    """The promises that a policy breaks on a workload in which every job keeps its limit."""
    schedule = replay(drawn(seed), policy(name))
    return [violation.rule for violation in check_schedule(schedule, promises=True)]


@pytest.mark.slow
@pytest.mark.parametrize("part", range(4))
def test_no_promise_is_broken(part: int) -> None:
    """No accepted deadline is missed, no regular job starts later than it was first promised."""
    for seed in range(part * MANY // 4, (part + 1) * MANY // 4):
        assert broken(seed, "dbf") == [], seed


@pytest.mark.slow
def test_without_the_guard_a_deadline_is_broken_now_and_then() -> None:
    found = Counter(rule for seed in range(MANY) for rule in broken(seed, "dbf:guard=no"))
    assert found == {"deadline kept": 4}  # docs/deadlines.md has the number


PLANNERS = (
    "plan-deadline:decodes=30",
    "plan-deadline:decodes=30,window=5,foresight=3",
    "plan-p2sf:patient=0.1,decodes=20",
    "plan-awf:patient=0,decodes=10,starve=20",
)


@pytest.mark.slow
@pytest.mark.parametrize("name", PLANNERS)
def test_the_planner_keeps_deadlines_and_serves_regular_jobs(name: str) -> None:
    """No promise is broken, whatever is in the plan; and regular jobs wait less than with dbf."""
    waits = Counter[str]()
    for seed in range(500):
        workload = drawn(seed)
        planned, dbf = (replay(workload, policy(one)) for one in (name, "dbf"))
        assert check_schedule(planned, promises=True) == [], seed
        if seed < 50:
            by_event = replay(workload, policy(name), event_by_event=True)
            assert by_event.start.tolist() == planned.start.tolist(), seed
            assert by_event.accepted.tolist() == planned.accepted.tolist(), seed
        regular = workload["deadline_s"] < 0
        waits["plan"] += int(planned.wait[regular].sum())
        waits["dbf"] += int(dbf.wait[regular].sum())
    if name.startswith("plan-deadline"):
        assert waits["plan"] < waits["dbf"]


def test_a_planner_that_is_not_patient_is_not_asked_about_deadlines() -> None:
    jobs = [job(0, 2, 10), job(1, 2, 10, deadline=11), job(2, 2, 5)]
    assert made(jobs, 2, "plan-af").accepted.tolist() == []
    assert made(jobs, 2, "plan-deadline").accepted.tolist() == [-1, 0, -1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["dbf", "plan-deadline:decodes=10", "plan-deadline:decodes=10,foresight=2"])
def test_the_contract_holds(name: str) -> None:
    assert [finding for finding in check_policy(policy(name), cases=40) if finding.broken] == []


@pytest.mark.slow
def test_promises_only_move_earlier() -> None:
    """Seen from pass to pass, with all that the policy may use to remember in its plans."""
    moved = 0
    for seed in range(300):
        workload = drawn(seed)

        def see(state: State, plan: Plan) -> None:
            nonlocal moved
            for number, at in state.standing.promised.items():
                if number in state.waiting:
                    assert plan.promised[number] <= at
            for number, at in state.standing.expected.items():
                moved += number in plan.expected and plan.expected[number] > at

        estimate = np.array(workload.limit)
        Stepper(workload, Cluster(workload.processors), policy("dbf"), estimate, see=see).advance()
    assert moved > 100  # tentative ones move later too
