"""By node, the kernels equal slow obvious code: every start, every node and every device; and the referee agrees."""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.compiled import Replay, new_replay
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.kernels.machine.node_classes import AT_SEGMENTS, SEG_HIGH, VALUES, WIDTH
from dovetail.kernels.machine.nodes import Nodes
from dovetail.kernels.passes.lists import ListRule
from dovetail.model.cluster import NodeKind, Typical, by_node
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import Asked, Policy
from dovetail.policies.conservative import Conservative
from dovetail.policies.deadline import DeadlineBackfilling
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy
from dovetail.referee import check_plan, check_schedule
from tests.conftest import CASES
from tests.slow.node_cases import (
    NodesCase,
    coming_and_going,
    random_nodes_case,
    with_counted,
    with_deadlines,
    with_outages,
)
from tests.slow.nodes import RULES
from tests.slow.policies import Conservative as SlowConservative
from tests.slow.policies import Deadline as SlowDeadline
from tests.slow.policies import ListPolicy as SlowPolicy
from tests.slow.policies import slow_replay

ROOT = Path(__file__).parents[2]
UNCOMPILED = bool(os.environ.get("NUMBA_DISABLE_JIT"))
EACH = CASES * 18 // 100
POLICIES = (
    SlowPolicy("fcfs", "strict"), SlowPolicy("sjf", 0), SlowPolicy("fcfs", 1), SlowPolicy("fcfs", 1, "sjf"),
    SlowPolicy("saf", 1, "laf"), SlowPolicy("fcfs", 3, "saf"), SlowPolicy("wfp3", 1), SlowPolicy("fcfs", "all"),
    SlowPolicy("spf", "all"), SlowPolicy("laf", "all", None, 40), SlowPolicy("fcfs", 2, None, 30),
    SlowPolicy("fcfs", 1, relax=0.5), SlowPolicy("sjf", 3, slack=0.3), SlowConservative(), SlowConservative("each-end"),
    SlowConservative("repeat"), SlowConservative("start"), SlowConservative("now"), SlowConservative("none"),
    SlowConservative(depth=2), SlowDeadline(), SlowDeadline(guard=False), SlowDeadline(sweep="now", depth=1),
)  # fmt: skip
SWEEPS = {"submit": "once", "start": "by-start", "now": "start-now"}


def disagreement(seed: int) -> list[str]:
    """What is not as in slow code, or not legal, in one case; empty if all is. Every second case has outages."""
    rule, slow = RULES[seed % len(RULES)], POLICIES[seed // len(RULES) % len(POLICIES)]
    rng = random.Random(seed)
    case = random_nodes_case(rng)
    case = with_outages(case, rng) if seed % 2 else case
    case = with_deadlines(case, rng) if isinstance(slow, SlowDeadline) else case
    if seed % 7 == 3 and (UNCOMPILED or type(fast(slow, rule).rule()) is ListRule):  # others take minutes to compile
        case = with_counted(case, rng)
    case = coming_and_going(case, rng) if seed % 3 == 2 else case
    found = slow_replay(case.jobs, replace(case.machine, rule=rule), slow)
    types = tuple(Typical(t.probability, tuple(t.need), t.share, t.kinds) for t in case.machine.types)
    cluster = replace(case.cluster, typical=types)
    chosen = fast(slow, rule)
    made = replay(case.workload, chosen, cluster=cluster, estimate=estimates(case), event_by_event=seed % 5 == 0)
    assert made.placement is not None
    jobs = np.flatnonzero(made.start >= 0).tolist()  # others have left the queue
    nodes = [made.placement.of(job).tolist() for job in jobs]
    devices = [made.placement.devices_of(job).tolist() if cluster.shared else list(found.devices[job]) for job in jobs]
    pairs = {
        "starts": (made.start.tolist(), found.start),
        "passes": (made.passes, found.passes),
        "promises": (made.promised_first.tolist(), found.promised_first) if chosen.keeps_promises else ([], []),
        "accepted": (made.accepted.tolist(), found.accepted) if len(made.accepted) else ([], []),
        "nodes": (nodes, [list(found.nodes[job]) for job in jobs]),
        "devices": (devices, [list(found.devices[job]) for job in jobs]),
    }
    wrong = [
        f"case {seed}, {rule}: {what}: {got} is {wanted} slowly"
        for what, (got, wanted) in pairs.items()
        if got != wanted
    ]
    return wrong + [f"case {seed}, {rule}: {violation}" for violation in check_schedule(made)]


def fast(slow: SlowPolicy | SlowConservative | SlowDeadline, rule: str) -> Policy:
    """The policy that slow code is of."""
    if isinstance(slow, SlowPolicy):
        relax, slack = slow.relax or 0.0, slow.slack or 0.0
        return ListPolicy(slow.order, slow.reserve, slow.backfill, slow.starvation, relax, slack, place=rule)
    sweep, depth = SWEEPS.get(slow.sweep, slow.sweep), "all" if slow.depth == math.inf else int(slow.depth)
    if isinstance(slow, SlowConservative):
        return Conservative(sweep, depth, rule)
    return DeadlineBackfilling(slow.guard, sweep, depth, rule)


def estimates(case: NodesCase) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array([job.estimate for job in case.jobs], np.int64)


@pytest.mark.parametrize("part", range(4))
def test_lists_on_nodes_equal_slow_code(part: int) -> None:
    assert [text for seed in range(EACH * part, EACH * (part + 1)) for text in disagreement(seed)] == []


@pytest.mark.slow
def test_what_is_counted_beside_nodes() -> None:
    """Power and licences under every rule, in plain Python."""
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "src")))}
    script = "from tests.contract.test_nodes import disagreement; print(sum(map(disagreement, range(3, 1053, 7)), []))"
    command = [sys.executable, "-W", "ignore::RuntimeWarning", "-c", script]
    assert subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout == "[]\n"


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


@pytest.mark.parametrize("name", ["conservative", "conservative:depth=3", "dbf", "plan-deadline:decodes=12"])
def test_promises_on_nodes_are_kept(name: str) -> None:
    """Estimates are upper bounds and outages known in time: whole and event by event the same, every plan can be
    carried out on the nodes that it names, nobody starts later than promised and accepted deadlines are kept."""
    kept: Counter[str] = Counter()
    for seed in range(60):
        rng = random.Random(seed)
        case = with_deadlines(random_nodes_case(rng), rng)
        if seed % 3:
            case = with_outages(case, rng)
        planned = tuple(replace(one, known=0, fails=False) for one in case.cluster.outages)
        cluster = replace(case.cluster, outages=planned)
        workload = replace(
            case.workload,
            columns={**case.workload.columns, "runtime": np.minimum(case.workload.runtime, case.workload.limit)},
        )
        chosen = policy(f"{name}{',' if ':' in name else ':'}place={RULES[seed % len(RULES)]}")
        whole = replay(workload, chosen, cluster=cluster)
        assert check_schedule(whole, promises=True) == [], seed

        def see(state: State, plan: Plan) -> None:
            assert check_plan(state, plan, deadlines=True) == [], seed  # noqa: B023
            kept["plans"] += 1
            kept["later"] += len(set(plan.nodes) - set(plan.starts))

        stepper = Stepper(workload, whole.cluster, chosen, np.array(workload.limit), see=see)
        stepper.advance()
        assert whole.start.tolist() == stepper.start.tolist(), seed
        assert whole.placement is not None
        assert stepper.placement is not None
        assert whole.placement.node.tolist() == stepper.placement.node.tolist(), seed
        kept["promised"] += int((whole.promised_first > whole.arrive).sum())
        kept["accepted"] += int((whole.accepted == 1).sum())
    assert kept["plans"] > 1000
    assert kept["later"] > 1000
    assert kept["promised"] > 100
    assert (kept["accepted"] > 50) == (name not in ("conservative", "conservative:depth=3"))


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
    assert isinstance(going.cap, Nodes)
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
