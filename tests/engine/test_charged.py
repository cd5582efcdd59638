"""Decisions that take time: what they decide happens later, and nothing is lost meanwhile."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import PolicyError, SettingError
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.policies.base import Policy
from dovetail.policies.registry import policy
from tests.slow.policies import SlowJob
from tests.slow.workloads import random_jobs, workload_of


def ticking(seconds: float) -> Callable[[], int]:
    """A clock by which every decision takes so long."""

    def readings() -> Iterator[int]:
        at = 0
        while True:
            yield at
            at += int(seconds * 1e9)

    going = readings()
    return lambda: next(going)


def charged(jobs: list[SlowJob], processors: int, seconds: float, name: str = "easy") -> Stepper:
    workload = workload_of(jobs, (processors,))
    stepper = Stepper(workload, Cluster(processors), policy(name), np.array(workload.limit), clock=ticking(seconds))
    stepper.advance()
    return stepper


def test_by_hand() -> None:
    """Three jobs on one processor, decisions of 10 s. The second comes while the first is decided on."""
    jobs = [SlowJob(0, (1,), 100, 100), SlowJob(3, (1,), 50, 50), SlowJob(500, (1,), 1, 1)]
    assert charged(jobs, 1, 10.0).start.tolist() == [10, 120, 510]  # 0 + 10; ends at 110, + 10; 500 + 10


def test_decisions_can_be_charged_several_times(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decisions of 2.5 s, four times, are the 10 s from above."""
    workload = workload_of([SlowJob(0, (1,), 100, 100), SlowJob(3, (1,), 50, 50), SlowJob(500, (1,), 1, 1)], (1,))
    monkeypatch.setattr("time.thread_time_ns", ticking(2.5))
    assert replay(workload, "easy", charge_decisions=4).start.tolist() == [10, 120, 510]
    with pytest.raises(SettingError, match="must be a number of at least 0"):
        replay(workload, "easy", charge_decisions=-1)


def test_parts_of_a_second_add_up() -> None:
    """Of 16 decisions every second is at an end, where nobody waits for it."""
    jobs = [SlowJob(100 * i, (1,), 1, 1) for i in range(8)]
    made = charged(jobs, 1, 0.375)
    assert (made.start - made.arrive).tolist() == [0, 1, 0, 0, 0, 1, 0, 0]
    assert made.charged_s == 6.0


@pytest.mark.parametrize("name", ["conservative", "dbf"])
def test_a_plan_that_a_late_start_has_upset_is_made_anew(name: str) -> None:
    """On one processor, decisions of 5 s. At 15 s the second job is started, from 20 s on, and the third promised 25 s,
    when the second still runs; the fourth comes at that instant."""
    jobs = [SlowJob(at, (1,), 10, 10) for at in (0, 1, 2, 25)]
    assert charged(jobs, 1, 5.0, name).start.tolist() == [5, 20, 35, 50]


def test_no_time_is_no_change_and_more_time_is_legal() -> None:
    for seed in range(60):
        jobs, capacity = random_jobs(random.Random(seed))
        if len(capacity) > 1:
            continue
        free = replay(workload_of(jobs, capacity), policy("easy"))
        assert charged(jobs, capacity[0], 0.0).start.tolist() == free.start.tolist()
        slow = charged(jobs, capacity[0], 2.5)
        assert bool(np.all(slow.start >= slow.arrive))
        events = sorted((t, d) for s, j in zip(slow.start.tolist(), jobs, strict=True)
                        for t, d in ((s, j.size[0]), (s + j.runtime, -j.size[0])))  # fmt: skip
        used = 0
        for _, change in sorted(events, key=lambda pair: (pair[0], pair[1])):
            used += change
            assert used <= capacity[0]


@dataclass
class Sleeper(Policy):
    """Starts the first in the queue, but only when it has been woken."""

    name: str = "sleeper"

    def decide(self, state: State) -> Plan:
        if not len(state.waiting):
            return Plan()
        if state.standing.wake is None:
            return Plan(wake=state.now + 2)
        return Plan(starts=state.waiting[:1].tolist())


def test_an_alarm_that_rings_during_the_decision_is_heard() -> None:
    workload = workload_of([SlowJob(0, (1,), 5, 5)], (1,))
    stepper = Stepper(workload, Cluster(1), Sleeper(), np.array(workload.limit), clock=ticking(7.0))
    stepper.advance()
    assert stepper.start.tolist() == [15]  # asked at 0, done at 7; rung at 8, done at 15


def test_what_is_no_plan_is_refused() -> None:
    class Silent(Policy):
        name = "silent"

        def decide(self, state: State) -> Plan:
            return None  # type: ignore[return-value]

    workload = workload_of([SlowJob(0, (1,), 5, 5)], (1,))
    with pytest.raises(PolicyError, match="must return a Plan"):
        replay(workload, Silent(), charge_decisions=True)
