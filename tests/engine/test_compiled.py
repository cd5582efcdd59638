"""The whole-run engine: what can be seen of a replay in progress, and links between jobs."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.engine import compiled
from dovetail.engine.compiled import Replay, feedback_links, new_replay, read_only
from dovetail.kernels import state as layout
from dovetail.kernels.state import AFTER, CHILD, SIBLING, THINK
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import Asked
from dovetail.policies.conservative import Conservative
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy as policy_named


def jobs(**columns: list[int]) -> Workload:
    n = len(next(iter(columns.values())))
    plain = {
        "id": list(range(1, n + 1)),
        "submit": [0] * n,
        "size": [1] * n,
        "runtime": [5] * n,
        "limit": [5] * n,
    }
    return Workload("few", {k: np.array(v, np.int64) for k, v in {**plain, **columns}.items()}, 4, Provenance("here"))


def begun(workload: Workload, policy: ListPolicy | Conservative, feedback: bool = False) -> Replay:
    return new_replay(
        workload, Cluster(4), policy.rule(Asked(bounded=True)), np.array(workload.limit), feedback=feedback
    )


def test_a_replay_in_progress() -> None:
    """0 takes all 4 processors until 5, then 1 and 2 half each, 3 waits for both."""
    this = begun(jobs(size=[4, 2, 2, 4], submit=[0, 0, 1, 2]), ListPolicy("fcfs", 1))
    assert (this.now, this.passes, this.started, this.waiting.tolist()) == (0, 0, 0, [])
    assert not this.advance(0)
    assert (this.now, this.passes, this.started, this.waiting.tolist()) == (0, 1, 1, [1])
    assert not this.advance(4)
    assert (this.now, this.passes, this.started, this.waiting.tolist()) == (2, 3, 1, [1, 2, 3])
    assert not this.advance(5)
    assert (this.now, this.passes, this.started, this.waiting.tolist()) == (5, 4, 3, [3])
    assert this.start.tolist() == [0, 5, 5, -1]
    assert this.advance()
    assert (this.start.tolist(), this.passes) == ([0, 5, 5, 10], 6)
    assert this.advance()  # nothing is left: nothing happens
    assert (this.start.tolist(), this.passes) == ([0, 5, 5, 10], 6)


def test_jobs_behind_the_last_never_arrive() -> None:
    """LAST cuts a replay short: what follows is left out, also where feedback would have brought it."""
    chain = jobs(after=[-1, 1, 2], think_s=[0, 10, 10])
    for feedback in (False, True):
        this = begun(chain, ListPolicy(), feedback=feedback)
        this.run.info[layout.LAST] = 2
        assert this.advance()
        assert this.start.tolist() == ([0, 15, -1] if feedback else [0, 0, -1])


def test_arrays_that_grow_change_nothing() -> None:
    """A planner with room for one job at first, where 13 wait."""
    queue = jobs(size=[3, 1, 4] * 4 + [2], runtime=[5, 7] * 6 + [1], limit=[9] * 13)
    rule = policy_named("plan-af:decodes=1").rule(Asked(bounded=True))
    starts = []
    for room in (1, 32):
        this = new_replay(queue, Cluster(4), rule, np.array(queue.limit), room=room)
        assert this.advance()
        starts.append(this.start.tolist())
    assert starts[0] == starts[1]
    assert min(starts[0]) == 0


def test_a_long_queue_is_told_once_with_the_jobs_that_are_unlike(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three kinds of jobs in a row come at once, and one more later: never do more than three kinds wait."""
    told: list[int] = []
    several = jobs(size=[4, 1, 1, 2, 2, 2, 3], submit=[0] * 6 + [1])
    for longest in (2, 3):
        monkeypatch.setattr(compiled, "LONG", longest)
        this = new_replay(several, Cluster(4), Conservative().rule(Asked(bounded=True)), np.array(several.limit))
        this.on_long = told.append
        assert this.advance()
    assert told == [3]


@pytest.mark.parametrize("policy", [ListPolicy("fcfs", "all"), Conservative()])
def test_promises_at_an_instant(policy: ListPolicy | Conservative) -> None:
    """0 ends after 10 s of 20, so 1 starts then, and what is promised to 2 moves from 40 to 30."""
    queue = jobs(size=[4] * 3, runtime=[10, 20, 5], limit=[20, 20, 5])
    this = new_replay(queue, Cluster(4), policy.rule(Asked(bounded=True, keep=True)), np.array(queue.limit))
    for at, last in ((0, [20, 40]), (10, [10, 30]), (30, [10, 30])):
        this.advance(at)
        assert this.run.jobs[layout.PROMISED_FIRST, 1:].tolist() == [20, 40]
        assert this.run.jobs[layout.PROMISED_LAST, 1:].tolist() == last


def test_links() -> None:
    """Only to an earlier job that is there; a pause that is not known is none."""
    linked = jobs(after=[-1, 1, 1, 99, 5, 6, 2, 0], think_s=[-1, 30, -1, 5, 5, 5, 7, 1])
    links = feedback_links(linked)
    assert links[AFTER].tolist() == [-1, 0, 0, -1, -1, -1, 1, -1]
    assert links[THINK].tolist() == [0, 30, 0, 5, 5, 5, 7, 1]
    assert links[CHILD].tolist() == [1, 6, -1, -1, -1, -1, -1, -1]
    assert links[SIBLING].tolist() == [-1, 2, -1, -1, -1, -1, -1, -1]


def test_links_by_id_not_by_position() -> None:
    linked = jobs(id=[30, 10, 20], after=[-1, 30, 10])
    assert feedback_links(linked)[AFTER].tolist() == [-1, 0, 1]


def test_feedback_waits_for_the_end_and_the_pause() -> None:
    """1 comes 30 s after the end of 0 (at 5), 2 right then; 3 names an unknown job and at its submit."""
    linked = jobs(submit=[0, 1, 2, 90], after=[-1, 1, 1, 77], think_s=[0, 30, 0, 500])
    for policy in (ListPolicy("fcfs", 1), Conservative()):
        this = begun(linked, policy, feedback=True)
        assert this.advance()
        assert this.run.jobs[layout.ARRIVE].tolist() == [0, 35, 5, 90]
        assert this.start.tolist() == [0, 35, 5, 90]


def test_read_only() -> None:
    values = np.arange(3)
    view = read_only(values)
    assert not view.flags.writeable
    assert values.flags.writeable
    assert np.shares_memory(view, values)
