"""By node, the kernels equal slow obvious code: every start, every node and every device; and the referee agrees."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.compiled import Replay, new_replay
from dovetail.engine.replay import replay
from dovetail.kernels.machine.node_classes import AT_SEGMENTS, SEG_HIGH, VALUES, WIDTH
from dovetail.model.cluster import NodeKind, Typical, by_node
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import Asked
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from tests.conftest import CASES
from tests.slow.node_cases import NodesCase, random_nodes_case
from tests.slow.nodes import RULES
from tests.slow.policies import ListPolicy as SlowPolicy
from tests.slow.policies import slow_replay

EACH = CASES * 18 // 100
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
    chosen = ListPolicy(slow.order, slow.reserve, slow.backfill, slow.starvation, place=rule)
    made = replay(case.workload, chosen, cluster=cluster, estimate=estimates(case), event_by_event=seed % 5 == 0)
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
    assert [text for seed in range(EACH * part, EACH * (part + 1)) for text in disagreement(seed)] == []


@pytest.mark.parametrize(
    "name", ["plan-af:decodes=12", "plan-bsld:decodes=12,foresight=3,window=6", "plan-p2sf:decodes=8"]
)
def test_planners_on_nodes(name: str) -> None:
    """Whole and event by event the same, and legal, whatever the rule of placement."""
    for seed in range(24):
        case = random_nodes_case(random.Random(seed))
        chosen = policy(f"{name},place={RULES[seed % len(RULES)]}")
        whole, stepped = (
            replay(case.workload, chosen, cluster=case.cluster, estimate=estimates(case), event_by_event=by_event)
            for by_event in (False, True)
        )
        assert whole.start.tolist() == stepped.start.tolist(), seed
        assert whole.placement is not None
        assert stepped.placement is not None
        assert whole.placement.node.tolist() == stepped.placement.node.tolist(), seed
        assert check_schedule(whole) == [], seed


def test_long_queues_on_one_node_have_room() -> None:
    """All reservations are on one timeline, which is there twice while it is changed: arrays must grow for that."""
    n = 400
    columns = {name: np.ones(n, np.int64) for name in ("size", "units", "unit_cores")}
    columns |= {"id": np.arange(n), "submit": np.zeros(n, np.int64)}
    columns |= {name: np.arange(n) % 7 + 1 for name in ("runtime", "limit")}
    workload = Workload("long", columns, 2, Provenance("test"))
    cluster = by_node(("cores",), (NodeKind("one", 1, (2,)),))
    rule = policy("list-sjf").rule(Asked(bounded=True, keep=True))
    small = new_replay(workload, cluster, rule, np.array(workload.limit), room=2)
    small.advance()
    wide = replay(workload, policy("list-sjf"), cluster=cluster)
    assert small.start.tolist() == wide.start.tolist()
    assert check_schedule(wide) == []


def within(going: Replay) -> None:
    """No fleet has more segments than it has room for."""
    for fleet in (going.cap.running, going.cap.plan):
        assert isinstance(fleet, np.ndarray)
        assert fleet[AT_SEGMENTS] + fleet[SEG_HIGH] * (VALUES + fleet[WIDTH]) <= len(fleet)


def test_what_has_passed_takes_no_room() -> None:
    """Waves of jobs that end just when they should, each on a node of its own: their instants must go."""
    nodes, jobs = 12, 20
    n = nodes * jobs
    columns = {name: np.ones(n, np.int64) for name in ("size", "units", "unit_cores")}
    columns |= {"id": np.arange(n), "submit": 1000 * (np.arange(n) // jobs), "feature": np.arange(n) // jobs}
    columns |= {name: np.arange(n) % jobs + 1 for name in ("runtime", "limit")}
    names = {"feature": tuple(f"node{k}" for k in range(nodes))}
    workload = Workload("waves", columns, nodes * jobs, Provenance("test"), names=names)
    cluster = by_node(("cores",), tuple(NodeKind(f"kind{k}", 1, (jobs,), (f"node{k}",)) for k in range(nodes)))
    rule = policy("easy").rule(Asked(bounded=True))
    going = new_replay(workload, cluster, rule, np.array(workload.limit), room=jobs)
    for wave in range(nodes + 1):
        going.advance(1000 * wave + 500)
        within(going)
    assert going.started == n
