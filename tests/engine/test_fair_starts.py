"""Fair starts against their definition: replay the workload up to the job, and look when it starts."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.engine.contract import random_workload
from dovetail.engine.fair_starts import fair_starts
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.model.cluster import Cluster
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy
from dovetail.workloads.lublin import lublin


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["easy", "list-reg", "list-laf", "greedy-sjf", "easy-sjbf", "easy:relax=0.5", "conservative", "list-wfp3"]
)
@pytest.mark.parametrize("estimate", ["limit", "runtime"])
def test_equal_to_replaying_without_those_who_come_later(name: str, estimate: str) -> None:
    chosen = policy(name)
    for seed in range(15):
        workload, cluster = random_workload(np.random.Generator(np.random.PCG64(seed)))
        guess = np.array(workload[estimate])
        fair = fair_starts(workload, chosen, cluster, guess)
        for job in range(len(workload)):
            known = workload.take(np.arange(len(workload)) <= job, "comes later")
            wanted = replay(known, chosen, cluster=cluster, estimate=guess[: job + 1]).start[job]
            assert fair[job] == wanted, (name, estimate, seed, job)


def test_periodic_passes_and_samples() -> None:
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64(3)))
    chosen, guess = policy("easy"), np.array(workload.limit)
    whole = fair_starts(workload, chosen, cluster, guess, every_s=7)
    known = workload.take(np.arange(len(workload)) <= 5, "comes later")
    assert whole[5] == replay(known, chosen, cluster=cluster, estimate=guess[:6], every_s=7).start[5]
    some = fair_starts(workload, chosen, cluster, guess, every_s=7, sample=5, seed=1)
    assert (some >= 0).sum() == 5
    assert np.array_equal(some[some >= 0], whole[some >= 0])


def test_a_policy_in_python_is_refused() -> None:
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64(0)))
    with pytest.raises(SettingError, match="forked"):
        fair_starts(workload, ListPolicy(lambda state: state.waiting), cluster, np.array(workload.limit))


def test_a_planner_draws_the_same_numbers() -> None:
    """Nobody comes after the last job: its fair start is its start."""
    workload = lublin(120, 16, seed=2, load=1.1)
    cluster, estimate = Cluster(16), np.asarray(workload.limit)
    chosen = policy("plan-awf:decodes=20")
    fair = fair_starts(workload, chosen, cluster, estimate, seed=3)
    assert fair[-1] == replay(workload, chosen, seed=3).start[-1]
    for refused in ("plan:objective=wait", "offline-af", "plan:ms=1"):
        with pytest.raises(SettingError, match="fair starts"):
            fair_starts(workload, policy(refused), cluster, estimate)
