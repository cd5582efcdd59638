"""A replay that begins at a state goes on as the one did that the state was taken from."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.api import generate
from dovetail.engine.onward import begin_at
from dovetail.engine.stepped import Stepper
from dovetail.errors import SettingError
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.policies.base import Policy
from dovetail.policies.registry import policy
from tests.slow.node_cases import random_nodes_case
from tests.slow.workloads import random_jobs, workload_of

POLICIES = (
    "easy", "list-reg", "greedy-saf", "strict-fcfs", "easy-sjbf", "list:order=wfp3,reserve=2", "easy:starve=20s",
    "list-ljf", "plan-af:decodes=8", "plan-bsld:decodes=5,foresight=3", "plan-p2sf:decodes=5,depth=2",
)  # fmt: skip


def states(workload: Workload, cluster: Cluster, chosen: Policy) -> tuple[Stepper, list[State]]:
    """A replay event by event, and all states on its way."""
    seen: list[State] = []
    stepper = Stepper(
        workload, cluster, chosen, np.array(workload.limit), see=lambda state, plan: seen.append(copied(state))
    )
    stepper.advance()
    return stepper, seen


def copied(state: State) -> State:
    """As it is now: its columns are those of the replay, which goes on."""
    columns: dict[str, Any] = {name: np.array(getattr(state, name)) for name in ("submit", "start", "estimate")}
    return replace(state, **columns)


def goes_on(workload: Workload, cluster: Cluster, name: str, seed: int) -> int:
    """Begin anew at a state of a replay; returns how many starts were compared."""
    chosen = policy(name)
    stepper, seen = states(workload, cluster, chosen)
    state = random.Random(f"{name} {seed}").choice(seen)
    later = np.flatnonzero(workload.submit > state.now)
    coming = workload.take(workload.submit > state.now, "has come") if len(later) else None
    begun = begin_at(state, chosen, coming, bounded=bool((workload.runtime <= workload.limit).all()))
    made = begun.fork(np.concatenate([workload.runtime[begun.rows[begun.rows >= 0]], workload.runtime[later]]))
    made.advance()
    jobs = np.concatenate([begun.rows[begun.rows >= 0], later])
    asked = np.isin(jobs, state.waiting) | np.isin(jobs, later)
    assert made.start[asked].tolist() == stepper.start[jobs[asked]].tolist(), (name, seed, state.now)
    return int(asked.sum())


@pytest.mark.parametrize("name", POLICIES)
def test_on_processors(name: str) -> None:
    compared = 0
    for seed in range(25):
        jobs, capacity = random_jobs(random.Random(f"onward {seed}"))
        compared += goes_on(workload_of(jobs, capacity[:1]), Cluster(capacity[0]), name, seed)
    assert compared > 150


@pytest.mark.parametrize("name", POLICIES)
def test_on_nodes(name: str) -> None:
    compared = 0
    for seed in range(25):
        case = random_nodes_case(random.Random(f"onward {seed}"))
        compared += goes_on(case.workload, case.cluster, name, seed)
    assert compared > 50


def test_forks_are_on_their_own() -> None:
    workload = generate(60, 8, seed=1, load=2.0)
    _, seen = states(workload, Cluster(8), policy("easy"))
    state = max(seen, key=lambda state: len(state.waiting))
    assert len(state.running) > 0
    begun = begin_at(state, policy("easy"))
    runtime = np.array(workload.runtime[begun.rows])
    first = begun.starts(runtime)
    assert set(first) == set(state.waiting.tolist())
    assert begun.starts(10 * runtime) != first
    assert begun.starts(runtime) == first


def test_what_cannot_go_on_is_refused() -> None:
    jobs, capacity = random_jobs(random.Random(7))
    workload = workload_of(jobs, capacity[:1])
    _, seen = states(workload, Cluster(capacity[0]), policy("easy"))
    with pytest.raises(SettingError, match="conservative cannot go on from a state"):
        begin_at(seen[0], policy("conservative"))
    with pytest.raises(SettingError, match="not after now"):
        begin_at(seen[-1], policy("easy"), workload)
    state = seen[-1]
    wide = Workload("wide", {**workload.columns, "size": workload.size + 10**6}, 10**7, workload.provenance)
    with pytest.raises(SettingError, match="need more than the cluster's"):
        begin_at(state, policy("easy"), wide)
    begun = begin_at(state, policy("easy"), bounded=True)
    limit = state.estimate[begun.rows]
    for runtime in (limit[:-1], limit * 0, limit + 1):
        with pytest.raises(SettingError, match="run times must be"):
            begun.fork(runtime)
    strange = replace(state, standing=Plan(expected={10**6: 3}))
    assert begin_at(strange, policy("plan-af:decodes=2")).starts(limit).keys() == set(state.waiting.tolist())
