"""By node, the kernels equal slow obvious code: every start, every node and every device; and the referee agrees."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.model.cluster import Typical
from dovetail.policies.lists import ListPolicy
from dovetail.referee import check_schedule
from tests.slow.node_cases import NodesCase, random_nodes_case
from tests.slow.nodes import RULES
from tests.slow.policies import ListPolicy as SlowPolicy
from tests.slow.policies import slow_replay

CASES = 120
POLICIES = (
    SlowPolicy("fcfs", "strict"), SlowPolicy("sjf", 0), SlowPolicy("fcfs", 1), SlowPolicy("fcfs", 1, "sjf"),
    SlowPolicy("saf", 1, "laf"), SlowPolicy("fcfs", 3, "saf"), SlowPolicy("wfp3", 1), SlowPolicy("fcfs", "all"),
    SlowPolicy("spf", "all"), SlowPolicy("laf", "all", None, 40), SlowPolicy("fcfs", 2, None, 30),
)  # fmt: skip


def compared(case: NodesCase, slow: SlowPolicy, rule: str, *, event_by_event: bool = False) -> None:
    found = slow_replay(case.jobs, replace(case.machine, rule=rule), slow)
    types = tuple(Typical(t.probability, tuple(t.need), t.share, t.kinds) for t in case.machine.types)
    cluster = replace(case.cluster, typical=types)
    policy = ListPolicy(slow.order, slow.reserve, slow.backfill, slow.starvation, place=rule)
    made = replay(case.workload, policy, cluster=cluster, estimate=limits(case), event_by_event=event_by_event)
    assert made.start.tolist() == found.start
    assert made.passes == found.passes
    assert made.placement is not None
    for job, nodes in enumerate(found.nodes):
        assert made.placement.of(job).tolist() == list(nodes), job
        if cluster.shared:
            assert made.placement.devices_of(job).tolist() == list(found.devices[job]), job
    assert check_schedule(made) == []


def limits(case: NodesCase) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([job.estimate for job in case.jobs], np.int64)


@pytest.mark.parametrize("rule", RULES)
def test_lists_on_nodes_equal_slow_code(rule: str) -> None:
    for seed in range(CASES):
        rng = random.Random(f"{rule} {seed}")
        case = random_nodes_case(rng)
        compared(case, POLICIES[seed % len(POLICIES)], rule, event_by_event=seed % 5 == 0)
