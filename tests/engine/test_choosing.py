"""A planner that chooses its settings on the way: only of the past, and as the trials say."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.engine.choosing import Choosing
from dovetail.engine.compiled import new_replay
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.kernels import state as layout
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Step, Workload
from dovetail.policies.auto import AutoPlanner
from dovetail.policies.base import Asked
from dovetail.referee import check_schedule
from dovetail.workloads.lublin import lublin

DAY = 86400


def busy(jobs: int = 900, seed: int = 3) -> Workload:
    return lublin(jobs, 32, seed=seed, load=0.95)


def of(workload: Workload, **settings: object) -> tuple[Choosing, Ints]:
    """A replay of its own, at its beginning, and the estimates."""
    policy = AutoPlanner(**{"every_s": 6 * 3600, "trial": 20, **settings})  # type: ignore[arg-type]
    estimate = np.array(workload.limit)
    most = max((one.rule() for one in policy.planners), key=lambda rule: rule.common.foresight)
    whole = new_replay(workload, Cluster(workload.processors), most, estimate)
    return Choosing(whole, policy.choices, Asked(), int(workload.submit[0])), estimate


@pytest.mark.parametrize("goal", ["af", "awf", "bsld"])
def test_it_chooses_and_the_schedule_is_legal(goal: str) -> None:
    workload = busy()
    policy = AutoPlanner(goal, every_s=6 * 3600, trial=20)
    schedule = replay(workload, policy)
    assert not check_schedule(schedule)
    assert schedule.start.tolist() == replay(workload, policy).start.tolist()
    chosen, _ = of(workload, goal=goal)
    chosen.advance()
    assert len(set(chosen.chosen)) > 1  # else nothing was chosen between
    assert chosen.replay.start.tolist() == schedule.start.tolist()


def test_it_decides_from_the_past_alone() -> None:
    """Whatever comes after an instant, and however long what runs then goes on: what started by then is the same."""
    workload = busy()
    policy = AutoPlanner("awf", every_s=6 * 3600, trial=20)
    schedule = replay(workload, policy)
    rng = np.random.Generator(np.random.PCG64(1))
    for share in (0.3, 0.8):
        now = int(workload.submit[int(share * len(workload))])
        ended = (schedule.start >= 0) & (schedule.end <= now)
        least = np.where(schedule.start <= now, np.maximum(now - schedule.start + 1, 1), 1)
        other = np.minimum(least + rng.integers(0, DAY, len(workload)), np.maximum(workload.limit, least))
        run_time = np.where(ended, workload.runtime, other)
        changed = workload.with_columns(Step("another future"), runtime=run_time)
        later = changed.submit > now
        changed = changed.with_columns(Step("other jobs"), size=np.where(later, 1 + changed.size // 2, changed.size))
        again = replay(changed, policy)
        before = schedule.start <= now
        assert before.sum() > 50
        assert again.start[before].tolist() == schedule.start[before].tolist(), share


def test_a_trial_goes_as_the_replay_went() -> None:
    """Of the planner that decided, with its whole budget and nothing unknown that matters: the same starts."""
    workload = busy()
    chosen, _ = of(workload, trial=200, every_s=4 * DAY)
    end = chosen.first + chosen.choices.every_s
    chosen.replay.advance(end)
    came = int(chosen.replay.run.info[layout.NEXT])
    known = np.array(workload.runtime[:came])  # nothing is unknown: then the fork is the replay, as far as that went
    before = chosen.replay.start.tolist()
    tried = chosen._trial(chosen._rules[0], came, known)
    alone = workload.take(np.arange(len(workload)) < came, "no more come")
    slow = replay(alone, chosen.choices.among[0])
    assert tried == pytest.approx(float(slow.wait.sum())) != 0
    assert chosen.replay.start.tolist() == before


def test_what_it_cannot_do_is_refused() -> None:
    workload = busy(60)
    with pytest.raises(SettingError, match="tries its choices on copies"):
        replay(workload, "plan-auto", feedback=True)
    with pytest.raises(SettingError, match="goal"):
        AutoPlanner("makespan")
