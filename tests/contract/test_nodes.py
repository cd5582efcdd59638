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

CASES = 180
POLICIES = (
    SlowPolicy("fcfs", "strict"), SlowPolicy("sjf", 0), SlowPolicy("fcfs", 1), SlowPolicy("fcfs", 1, "sjf"),
    SlowPolicy("saf", 1, "laf"), SlowPolicy("fcfs", 3, "saf"), SlowPolicy("wfp3", 1), SlowPolicy("fcfs", "all"),
    SlowPolicy("spf", "all"), SlowPolicy("laf", "all", None, 40), SlowPolicy("fcfs", 2, None, 30),
)  # fmt: skip


def disagreement(seed: int) -> list[str]:
    """What is not as in slow code, or not legal, in one case; empty if all is."""
    rule, slow = RULES[seed % len(RULES)], POLICIES[seed // len(RULES) % len(POLICIES)]
    case = random_nodes_case(random.Random(seed))
    found = slow_replay(case.jobs, replace(case.machine, rule=rule), slow)
    types = tuple(Typical(t.probability, tuple(t.need), t.share, t.kinds) for t in case.machine.types)
    cluster = replace(case.cluster, typical=types)
    policy = ListPolicy(slow.order, slow.reserve, slow.backfill, slow.starvation, place=rule)
    made = replay(case.workload, policy, cluster=cluster, estimate=estimates(case), event_by_event=seed % 5 == 0)
    assert made.placement is not None
    jobs = range(len(case.jobs))
    nodes = [made.placement.of(job).tolist() for job in jobs]
    devices = [made.placement.devices_of(job).tolist() if cluster.shared else list(found.devices[job]) for job in jobs]
    pairs = {
        "starts": (made.start.tolist(), found.start),
        "passes": (made.passes, found.passes),
        "nodes": (nodes, [list(where) for where in found.nodes]),
        "devices": (devices, [list(which) for which in found.devices]),
    }
    wrong = [
        f"case {seed}, {rule}: {what}: {got} is {wanted} slowly"
        for what, (got, wanted) in pairs.items()
        if got != wanted
    ]
    return wrong + [f"case {seed}, {rule}: {violation}" for violation in check_schedule(made)]


def estimates(case: NodesCase) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([job.estimate for job in case.jobs], np.int64)


@pytest.mark.parametrize("part", range(4))
def test_lists_on_nodes_equal_slow_code(part: int) -> None:
    assert [text for seed in range(CASES * part, CASES * (part + 1)) for text in disagreement(seed)] == []
