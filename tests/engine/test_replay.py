"""The one door of the engine: what it refuses, what it says of itself, and the smallest workloads."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail import __version__
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import Policy
from dovetail.policies.registry import policy
from dovetail.workloads.lublin import lublin
from tests.contract.cases import case

NAMES = ["easy", "list-saf", "strict-sjf", "greedy-fcfs", "conservative", "list:slack=0.5", "xfactor-easy"]
BOTH = pytest.mark.parametrize("by_event", [False, True], ids=["whole", "by event"])


def workload(**columns: list[int]) -> Workload:
    n = len(columns["size"])
    plain = {"id": list(range(1, n + 1)), "submit": [0] * n, "runtime": [5] * n, "limit": [5] * n}
    return Workload("few", {k: np.array(v, np.int64) for k, v in {**plain, **columns}.items()}, 8, Provenance("here"))


@BOTH
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"size": [1, 1], "submit": [-2, 0]}, "few: 1 jobs have no submit of at least 0 (first: job 1)"),
        ({"size": [1, 1], "runtime": [4, 0]}, "few: 1 jobs have no runtime of at least 1 (first: job 2)"),
        ({"size": [1, 0]}, "few: 1 jobs have no size of at least 1 (first: job 2)"),
        ({"size": [1, 1], "limit": [-1, -1]}, "few: 2 jobs have no limit of at least 1 (first: job 1)"),
        ({"size": [8, 9]}, "few: 1 jobs need more than the cluster's 8 processors (first: job 2 needs 9)"),
    ],
)
def test_impossible_jobs_are_refused(columns: dict[str, list[int]], words: str, by_event: bool) -> None:
    with pytest.raises(SettingError) as caught:
        replay(workload(**columns), policy("easy"), event_by_event=by_event)
    assert words in str(caught.value)
    assert "clean the workload" in str(caught.value)


@BOTH
def test_what_is_left_beside_a_reservation_is_given_once(by_event: bool) -> None:
    """Job 2 is to start at 100 and leaves one processor then: job 3 takes it until 202, so job 4 waits for job 2."""
    run = [100, 10, 200, 300]
    four = workload(size=[5, 7, 1, 1], submit=[0, 1, 2, 2], runtime=run, limit=run)
    assert replay(four, policy("easy"), event_by_event=by_event).start.tolist() == [0, 100, 2, 110]


@BOTH
def test_who_starts_behind_the_reservations_is_known_to_run(by_event: bool) -> None:
    """Job 4 starts beside two reservations and runs until 52: job 5 would be in the way of the first."""
    run = [10, 5, 5, 50, 8]
    five = workload(size=[5, 7, 7, 1, 1], submit=[0, 1, 1, 2, 3], runtime=run, limit=run)
    assert replay(five, policy("list:reserve=2"), event_by_event=by_event).start.tolist() == [0, 10, 15, 2, 20]


@BOTH
def test_impossible_settings_are_refused(by_event: bool) -> None:
    two = workload(size=[1, 2])
    with pytest.raises(SettingError, match="every=-1"):
        replay(two, policy("easy"), every_s=-1, event_by_event=by_event)
    with pytest.raises(SettingError, match="cannot run with --every"):
        replay(two, policy("conservative"), every_s=10, event_by_event=by_event)
    with pytest.raises(SettingError, match=r"choose from runtime, limit, runtime\*FACTOR"):
        replay(two, policy("easy"), estimate="guess", event_by_event=by_event)
    for wrong in ([5], [5, 0], [5, 5, 5], [[5, 5]]):
        with pytest.raises(SettingError, match=r"one number per job \(2\), each at least 1 s"):
            replay(two, policy("easy"), estimate=np.array(wrong), event_by_event=by_event)


def test_the_cluster_may_be_another_one() -> None:
    both = workload(size=[6, 6])
    assert replay(both, policy("easy")).start.tolist() == [0, 5]
    assert replay(both, policy("easy"), cluster=Cluster(12)).start.tolist() == [0, 0]
    with pytest.raises(SettingError, match="cluster's 4 processors"):
        replay(both, policy("easy"), cluster=Cluster(4))


@BOTH
@pytest.mark.parametrize("name", NAMES)
def test_no_jobs_and_one_job(name: str, by_event: bool) -> None:
    empty = replay(workload(size=[]), policy(name), event_by_event=by_event)
    assert (empty.start.tolist(), empty.arrive.tolist(), empty.passes) == ([], [], 0)
    alone = replay(workload(size=[8], submit=[7]), policy(name), event_by_event=by_event)
    assert (alone.start.tolist(), alone.arrive.tolist(), alone.end.tolist()) == ([7], [7], [12])
    assert alone.passes == 2  # its arrival and its end


@BOTH
@pytest.mark.parametrize("feedback", [False, True])
def test_progress_rises_to_the_number_of_jobs(by_event: bool, feedback: bool) -> None:
    told: list[int] = []
    n = 300
    drawn = lublin(n, 32, seed=2, load=1.0)
    links = {"after": np.where(np.arange(n) % 3 == 2, drawn["id"] - 1, -1), "think_s": np.full(n, 100)}
    jobs = Workload("linked", {**drawn.columns, **links}, 32, Provenance("here"))
    schedule = replay(jobs, policy("easy"), feedback=feedback, event_by_event=by_event, progress=told.append)
    quiet = replay(jobs, policy("easy"), feedback=feedback, event_by_event=by_event)
    assert schedule.start.tolist() == quiet.start.tolist()
    assert told == sorted(told)
    assert told[-1] == n
    assert told[0] < n // 4 < told[len(told) // 2] < n
    submits = np.linspace(drawn.submit[0], drawn.submit[-1], 201)[1:].astype(np.int64)
    assert told[:-1] == [int((schedule.start <= at).sum()) for at in submits]


@BOTH
def test_progress_is_told_200_times_from_the_first_submit_to_the_last_and_at_the_end(by_event: bool) -> None:
    told: list[int] = []
    three = workload(size=[1, 1, 1], submit=[1000, 1100, 1200])
    replay(three, policy("easy"), event_by_event=by_event, progress=told.append)
    assert told == [1] * 99 + [2] * 100 + [3, 3]


def test_progress_of_nothing() -> None:
    told: list[int] = []
    replay(workload(size=[]), policy("easy"), progress=told.append)
    assert told == [0]


def test_a_schedule_knows_what_made_it() -> None:
    some = workload(size=[1, 2])
    made = replay(some, policy("list:order=saf,reserve=2"), seed=9)
    assert (made.policy, made.estimate, made.seed) == ("list:order=saf,reserve=2", "limit", 9)
    assert made.workload is some
    assert made.versions["dovetail"] == __version__
    assert {"numba", "numpy", "python"} < set(made.versions)
    assert replay(some, policy("easy"), estimate="runtime*2").estimate == "runtime*2"
    assert replay(some, policy("easy"), estimate=np.array([5, 5])).estimate == "given"


def test_promises_are_kept_only_on_request() -> None:
    queue = workload(size=[8, 8, 1], runtime=[5, 5, 5])
    assert replay(queue, policy("easy")).promised_first.tolist() == [-1, -1, -1]
    assert replay(queue, policy("easy"), keep_promises=True).promised_first.tolist() == [-1, 5, 10]
    assert replay(queue, policy("conservative")).promised_first.tolist() == [0, 5, 10]


def test_a_replay_leaves_its_input_alone() -> None:
    for seed in range(20):
        this = case(seed)
        jobs, estimate = this.workload, this.estimate
        before = {name: column.copy() for name, column in jobs.columns.items()}
        for by_event in (False, True):
            replay(
                jobs,
                this.policy,
                cluster=Cluster(this.processors),
                estimate=estimate,
                event_by_event=by_event,
            )
        assert estimate.tolist() == this.estimate.tolist()
        assert all((before[name] == jobs[name]).all() for name in before)


def test_the_seed_reaches_the_policy() -> None:
    class Seeded(Policy):
        name = "seeded"
        seen: list[int] = []  # noqa: RUF012

        def decide(self, state: State) -> Plan:
            self.seen.append(state.seed)
            return Plan(starts=state.waiting.tolist())

    replay(workload(size=[1]), Seeded(), seed=41)
    assert Seeded.seen == [41, 41]


@BOTH
def test_estimates_that_no_plan_could_add_up_are_refused(by_event: bool) -> None:
    few = workload(size=[8, 8, 8])
    for each, good in ((1 << 58, True), (1 << 59, False)):
        estimate = np.full(3, each, np.int64)
        if good:
            starts = replay(few, policy("list-fcfs"), estimate=estimate, event_by_event=by_event).start
            assert starts.tolist() == [0, 5, 10]
        else:
            with pytest.raises(SettingError, match="add up to more than"):
                replay(few, policy("list-fcfs"), estimate=estimate, event_by_event=by_event)
