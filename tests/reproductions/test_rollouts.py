"""Rollouts: legal, the same again, and without futures the planner itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.contract import random_workload
from dovetail.engine.replay import replay
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Workload
from dovetail.policies.planner import Planner
from dovetail.referee import check_schedule
from reproductions.rollouts.rollout import Rollout


def days(seed: int) -> tuple[Workload, Cluster]:
    """Some days of jobs of hours."""
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64([3, seed])))
    longer = {name: workload.columns[name] * 900 for name in ("submit", "runtime", "limit")}
    columns = {**workload.columns, **longer, "deadline_s": np.full(len(workload), -1)}
    return replace(workload, columns=columns), cluster


def test_without_futures_it_is_the_planner() -> None:
    for seed in range(8):
        workload, cluster = days(seed)
        own = Planner(decodes=10)
        plain, rolled = (replay(workload, one, cluster=cluster) for one in (own, Rollout(own, 0, known=False)))
        assert plain.start.tolist() == rolled.start.tolist()


@pytest.mark.parametrize("objective", ["af", "awf"])
@pytest.mark.parametrize("known", [False, True])
def test_schedules_are_legal_and_the_same_again(objective: str, known: bool) -> None:
    looked = changed = 0
    for seed in range(12):
        workload, cluster = days(seed)
        own = Planner(objective, decodes=10)
        tried = [Rollout(own, 2, known=known) for _ in range(2)]
        made = [replay(workload, one, cluster=cluster, estimate="runtime" if known else "limit") for one in tried]
        assert made[0].start.tolist() == made[1].start.tolist()
        assert not check_schedule(made[0])
        assert (made[0].start >= 0).all()
        looked += tried[0].looked
        changed += tried[0].changed
    assert looked > 10
    assert changed > 0
