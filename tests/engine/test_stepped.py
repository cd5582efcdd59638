"""The event-by-event engine: what a policy is shown, and what becomes of plans that cannot be carried out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.engine.contract import random_workload
from dovetail.engine.estimates import estimator_of
from dovetail.engine.replay import replay
from dovetail.engine.stepped import MOST_WAKES, Stepper
from dovetail.errors import PolicyError
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import Policy
from dovetail.policies.registry import policy
from dovetail.predict.base import Job, Predictor
from tests.contract.cases import case
from tests.engine.first_fits import first_fits


class Says(Policy):
    """A policy that answers with a function of the state."""

    name = "says"

    def __init__(self, answer: Callable[[State], object]) -> None:
        self.answer = answer

    def decide(self, state: State) -> Plan:
        return self.answer(state)  # type: ignore[return-value]


def three() -> Workload:
    """Jobs 0 and 1 at 0 s, job 2 at 3 s; 4, 3 and 2 of 8 processors for 5, 9 and 2 s."""
    columns = {
        "submit": [0, 0, 3],
        "size": [4, 3, 2],
        "runtime": [5, 9, 2],
        "limit": [6, 9, 4],
        "user": [7, 8, 9],
    }
    arrays = {name: np.array(values) for name, values in {"id": [1, 2, 3], **columns}.items()}
    return Workload("three", arrays, 8, Provenance("made here"))


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (lambda s: None, "says.decide returned NoneType: it must return a Plan"),
        (lambda s: [0], "says.decide returned list: it must return a Plan"),
        (lambda s: Plan(starts=[0, 0]), "says at 0 s starts job 0, which is not waiting"),
        (lambda s: Plan(starts=[2]), "says at 0 s starts job 2, which is not waiting"),
        (lambda s: Plan(starts=[-1]), "says at 0 s starts job -1, which is not waiting"),
        (lambda s: Plan(starts=[99]), "says at 0 s starts job 99, which is not waiting"),
        (lambda s: Plan(promised={2: 50}), "says at 0 s promises job 2, which is not waiting"),
        (lambda s: Plan(promised={99: 50}), "says at 0 s promises job 99, which is not waiting"),
        (lambda s: Plan(starts=s.waiting.tolist()), "starts job 1, which needs 3 processors; 2 are free"),
    ],
)
def test_plans_that_cannot_be_carried_out(answer: Callable[[State], object], words: str) -> None:
    with pytest.raises(PolicyError) as caught:
        replay(three(), Says(answer), cluster=Cluster(6))
    assert words in str(caught.value)


def test_a_job_that_runs_cannot_be_started_again() -> None:
    with pytest.raises(PolicyError, match="at 3 s starts job 0, which is not waiting"):
        replay(three(), Says(lambda state: Plan(starts=[0])))


def test_what_a_policy_is_shown() -> None:
    shown = []

    def see(state: State, plan: Plan) -> None:
        lists = (state.waiting, state.running, state.arrived, state.ended)
        shown.append((state.now, state.free, *(jobs.tolist() for jobs in lists)))
        assert state.processors == 8
        assert state.size.tolist() == [4, 3, 2]
        assert state.limit.tolist() == [6, 9, 4]
        assert state.user.tolist() == [7, 8, 9]
        assert state.estimate.tolist() == [6, 10, 4]
        assert state.submit[state.waiting].tolist() == [three().submit[j] for j in state.waiting]

    stepper = Stepper(three(), Cluster(8), Says(first_fits), np.array([6, 10, 4]), see=see)
    assert stepper.advance()
    assert shown == [
        (0, 8, [0, 1], [], [0, 1], []),
        (3, 1, [2], [0, 1], [2], []),  # one processor is free, job 2 needs two
        (5, 5, [2], [1], [], [0]),
        (7, 5, [], [1], [], [2]),
        (9, 8, [], [], [], [1]),
    ]
    assert stepper.start.tolist() == [0, 0, 5]
    assert stepper.passes == 5


@pytest.mark.parametrize(
    ("correct", "second", "third"), [("none", [2, 2], [2, 2]), ("limit", [6, 9], [6, 9]), ("double", [4, 4], [4, 8])]
)
def test_who_outlives_an_estimate_is_given_another(correct: str, second: list[int], third: list[int]) -> None:
    """All are expected to run 2 s. At 3 s jobs 0 and 1 still run; at 5 s job 0 ends and job 1 still runs."""

    class TwoSeconds(Predictor):
        name = "two-seconds"

        def estimate(self, job: Job) -> float:
            return 2.0

        def observe(self, job: Job, runtime_s: int) -> None:
            """Learns nothing."""

    predictor, shown = TwoSeconds(), []
    predictor.correct = correct

    def see(state: State, plan: Plan) -> None:
        shown.append((state.now, state.estimate[:2].tolist(), state.corrected.tolist()))

    Stepper(three(), Cluster(8), Says(first_fits), estimator_of(three(), predictor), see=see).advance()
    assert shown[:3] == [
        (0, [2, 2], []),
        (3, second, [0, 1] if second != [2, 2] else []),
        (5, third, [1] if third != second else []),
    ]


def test_the_last_plan_stands_in_the_next_state() -> None:
    plans: list[Plan] = []

    def answer(state: State) -> Plan:
        assert state.standing == (plans[-1] if plans else Plan())
        starts = first_fits(state).starts
        plan = Plan(starts=starts, promised={j: state.now + 5 for j in state.waiting.tolist() if j not in starts})
        plans.append(plan)
        return plan

    schedule = replay(three(), Says(answer))
    assert len(plans) == 5
    assert schedule.promised_first.tolist() == [-1, -1, 8]
    assert schedule.promised_last.tolist() == [-1, -1, 5]  # it started then


@pytest.mark.parametrize("column", ["submit", "size", "limit", "estimate", "user", "start"])
def test_a_policy_cannot_change_what_it_is_shown(column: str) -> None:
    def answer(state: State) -> Plan:
        getattr(state, column)[0] = 1
        return Plan()

    with pytest.raises(PolicyError, match="read-only"):
        replay(three(), Says(answer))


def test_a_policy_that_starts_nothing_leaves_jobs_behind() -> None:
    schedule = replay(three(), Says(lambda state: Plan()))
    assert schedule.start.tolist() == [-1, -1, -1]
    assert schedule.arrive.tolist() == [0, 0, 3]


def test_errors_of_the_policy_come_through() -> None:
    def answer(state: State) -> Plan:
        raise RuntimeError("my own fault")

    with pytest.raises(PolicyError, match=r"raised RuntimeError: my own fault \(test_stepped.py, line \d+\)") as caught:
        replay(three(), Says(answer))
    assert isinstance(caught.value.__cause__, RuntimeError)


def test_stopping_changes_nothing() -> None:
    for seed in range(40):
        this = case(seed)
        undisturbed = this.replay(event_by_event=True)
        stepper = Stepper(
            this.workload,
            Cluster(this.processors),
            this.policy,
            this.estimate,
            feedback=this.feedback,
            every_s=this.every_s,
        )
        last = int(undisturbed.end.max())
        for until in range(0, last, max(1, last // 7)):
            assert not stepper.advance(until)
            assert stepper.now <= until
            assert stepper.started == int((stepper.start >= 0).sum())
            wanted = np.where(undisturbed.start <= until, undisturbed.start, -1)
            assert stepper.start.tolist() == wanted.tolist(), seed
        assert stepper.advance()
        assert stepper.start.tolist() == undisturbed.start.tolist(), seed
        assert stepper.passes == undisturbed.passes, seed


def test_a_policy_in_python_equals_a_compiled_one() -> None:
    """First-come first-served without and with holes filled, in three lines of Python."""

    def strict(state: State) -> Plan:
        plan = first_fits(state)
        first_left = next((i for i, j in enumerate(state.waiting.tolist()) if j not in plan.starts), None)
        return Plan(starts=state.waiting.tolist()[:first_left])

    for seed in range(60):
        this = case(seed)
        jobs, cluster = this.workload, Cluster(this.processors)
        for mine, name in ((first_fits, "greedy-fcfs"), (strict, "strict-fcfs")):
            got = replay(jobs, Says(mine), cluster=cluster, feedback=this.feedback, every_s=this.every_s)
            wanted = replay(jobs, policy(name), cluster=cluster, feedback=this.feedback, every_s=this.every_s)
            assert got.start.tolist() == wanted.start.tolist(), seed
            assert (got.arrive.tolist(), got.passes) == (wanted.arrive.tolist(), wanted.passes), seed


def test_periodic_passes_end_when_a_policy_never_starts_anything() -> None:
    class Never(Policy):
        name = "never"

        def decide(self, state: State) -> Plan:
            return Plan()

    workload, cluster = random_workload(np.random.Generator(np.random.PCG64(1)))
    stepper = Stepper(workload, cluster, Never(), np.array(workload.limit), every_s=10)
    assert stepper.advance()
    assert (stepper.start == -1).all()


def test_periodic_passes_are_told_all_that_came_since_the_last_one() -> None:
    told: list[int] = []

    class Told(Policy):
        name = "told"

        def decide(self, state: State) -> Plan:
            told.extend(state.arrived.tolist())
            fits = [int(job) for job in state.waiting if state.size[job] <= state.free]
            return Plan(starts=fits[:1])

    workload, cluster = random_workload(np.random.Generator(np.random.PCG64(1)))
    stepper = Stepper(workload, cluster, Told(), np.array(workload.limit), every_s=10)
    assert stepper.advance()
    assert told == list(range(len(workload)))
    assert (stepper.start >= 0).all()
    assert (stepper.start % 10 == 0).all()


def test_starts_may_be_an_array() -> None:
    def first(state: State) -> Plan:
        return Plan(starts=state.waiting[:1])  # type: ignore[arg-type]

    assert replay(three(), Says(first)).start.tolist() == [0, 3, 5]


def test_a_policy_may_ask_to_be_woken() -> None:
    seen: list[int] = []

    def answer(state: State) -> Plan:
        seen.append(state.now)
        return first_fits(state) if state.now >= 100 else Plan(wake=100)

    schedule = replay(three(), Says(answer))
    assert 100 in seen
    assert schedule.start.min() == 100
    assert (schedule.start >= 0).all()


@pytest.mark.parametrize("deadlines", [{0: 50}, {7: -1}])
def test_deadlines_are_given_to_jobs_that_wait(deadlines: dict[int, int]) -> None:
    with pytest.raises(PolicyError, match="it is not waiting"):
        replay(three(), Says(lambda state: Plan(deadlines=deadlines) if state.now else first_fits(state)))


def test_a_policy_that_only_wakes_is_stuck_in_the_end() -> None:
    schedule = replay(three(), Says(lambda state: Plan(wake=state.now + 1)))
    assert (schedule.start < 0).all()
    assert schedule.passes < 2 * MOST_WAKES
