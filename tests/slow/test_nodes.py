"""The slow program by node against placements worked out by hand, the referee, and what must hold in any case."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dovetail.model.plan import Plan
from dovetail.model.requests import requests_of
from dovetail.model.state import State
from dovetail.referee import check_plan, check_schedule
from tests.slow.node_cases import NodesCase, random_nodes_case, schedule_on_nodes
from tests.slow.nodes import RULES, NodeJob, SlowNodes, TypicalJob, bits, decode, job_of
from tests.slow.policies import Conservative, ListPolicy, Place, Profile, slow_replay

SEEDS = range(200)
LISTS = [
    ListPolicy("fcfs", "strict"),
    ListPolicy("fcfs", 0),
    ListPolicy("saf", 0, backfill="laf"),
    ListPolicy("fcfs", 1),
    ListPolicy("fcfs", 1, backfill="sjf"),
    ListPolicy("sjf", 2, backfill="large", starvation=10),
    ListPolicy("wfp3", 3),
    ListPolicy("saf", "all"),
    ListPolicy("fcfs", 1, relax=0.5),
    ListPolicy("fcfs", 2, slack=0.3),
]


def unit(*need: int, units: int = 1, share: int = 1000, kinds: int = 7, **more: int) -> NodeJob:
    return NodeJob(0, (units * need[0],), 10, 10, units=units, need=need, share=share, kinds=kinds, **more)  # type: ignore[arg-type]


def placed(machine: SlowNodes, job: NodeJob, *before: tuple[NodeJob, Sequence[int], Sequence[int]]) -> Place | None:
    """Where the job goes at 0, beside others that are on some nodes and devices until 10."""
    blocks = [(0, 10, machine.held(*one)) for one in before]
    return machine.place(Profile(0, machine.capacity, blocks), job, 0)


def nodes(place: Place | None) -> list[int]:
    assert place is not None
    return list(place.nodes)


def masks(place: Place | None) -> list[int]:
    assert place is not None
    return list(place.devices)


# By hand ----------------------------------------------------------------------------------------------------

MIXED = SlowNodes(((2, (4, 8, 0)), (1, (8, 8, 0)), (2, (4, 8, 2))), shared=2)
"""Nodes 0 and 1: 4 cores; node 2: 8 cores; nodes 3 and 4: 4 cores and two GPUs. In all 24 cores, 40 memory, 4 GPUs."""
ONE = (unit(1, 1, 0), [1], [0])
"""A unit of one core on node 1."""


@pytest.mark.parametrize(
    ("rule", "wanted"),
    [
        ("first", [0, 0, 0, 0, 1, 1, 1, 2, 2]),
        # A: node 0 has 4/24 + 8/40 = 0.37, 1: 0.3, 2: 0.53, 3 and 4: 4/24 + 8/40 + 2/4 = 0.87
        ("best", [1, 1, 1, 0, 0, 0, 0, 2, 2]),
        ("worst", [3, 3, 3, 3, 4, 4, 4, 4, 2]),
        # Node 1 is in use; then whoever takes the most.
        ("consolidate", [1, 1, 1, 2, 2, 2, 2, 2, 2]),
        # The GPUs, which it does not need, count first.
        ("scarce", [1, 1, 1, 0, 0, 0, 0, 2, 2]),
    ],
)
def test_which_nodes(rule: str, wanted: list[int]) -> None:
    assert nodes(placed(replace(MIXED, rule=rule), unit(1, 1, 0, units=9), ONE)) == wanted


def test_scarce_is_not_best() -> None:
    """A unit of cores alone: node 0 has 4 cores and 64 memory, node 1 has 16 cores and 1 memory."""
    machine = SlowNodes(((1, (4, 64)), (1, (16, 1))))
    assert nodes(placed(replace(machine, rule="best"), unit(1, 0))) == [1]  # 16/20 + 1/65 < 4/20 + 64/65
    assert nodes(placed(replace(machine, rule="scarce"), unit(1, 0))) == [1]  # 1/65 < 64/65
    assert nodes(placed(replace(machine, rule="worst"), unit(1, 0))) == [0]
    taken = (unit(1, 1), [1], [0])
    assert nodes(placed(replace(machine, rule="scarce"), unit(0, 1), taken)) == [0]
    gpus = SlowNodes(((1, (4, 1)), (1, (8, 0))), shared=1)
    assert nodes(placed(replace(gpus, rule="best"), unit(1, 0))) == [1]  # 8/12 < 4/12 + 1
    half = (unit(3, 1), [0], [1])
    assert nodes(placed(replace(gpus, rule="best"), unit(1, 0), half)) == [0]
    assert nodes(placed(replace(gpus, rule="scarce"), unit(1, 0), (unit(1, 1, share=500), [0], [1]))) == [1]


def test_how_many_fit() -> None:
    assert placed(MIXED, unit(1, 0, 0, units=24)) is not None
    assert placed(MIXED, unit(1, 0, 0, units=25)) is None
    assert nodes(placed(MIXED, unit(1, 0, 0, units=5, per_node=1))) == [0, 1, 2, 3, 4]
    assert placed(MIXED, unit(1, 0, 0, units=6, per_node=1)) is None
    assert nodes(placed(MIXED, unit(1, 0, 0, units=9, kinds=0b110))) == [2] * 8 + [3]
    assert placed(MIXED, unit(1, 0, 0, kinds=0)) is None
    assert placed(MIXED, unit(9, 0, 0)) is None


def test_exclusive_units_want_idle_nodes_and_take_all() -> None:
    place = placed(MIXED, unit(1, 0, 0, units=3, exclusive=True), ONE)
    assert nodes(place) == [0, 2, 3]
    assert place is not None
    assert place.size == MIXED.held(unit(1, 0, 0, exclusive=True), [0, 2, 3], [0, 0, 0])
    assert sum(place.size) == 4 + 8 + 8 + 8 + 4 + 8 + 2000
    assert placed(MIXED, unit(1, 0, 0, units=5, exclusive=True), ONE) is None
    with_gpu = placed(MIXED, unit(1, 0, 1, units=2, exclusive=True, share=300))
    assert (nodes(with_gpu), masks(with_gpu)) == ([3, 4], [1, 1])


FOUR = SlowNodes(((1, (16, 4)),), shared=1)
"""One node with four GPUs."""


def test_devices() -> None:
    """GPUs 0 to 3 have 1000, 700, 400, 700 parts left."""
    before = [(unit(1, 1, share=300), [0, 0], [2, 8]), (unit(1, 1, share=600), [0], [4])]
    assert masks(placed(FOUR, unit(1, 1, share=400), *before)) == [4]
    assert masks(placed(FOUR, unit(1, 1, share=500), *before)) == [2]
    assert masks(placed(FOUR, unit(1, 1, share=800), *before)) == [1]
    assert masks(placed(FOUR, unit(1, 1, units=5, share=350), *before)) == [4, 2, 2, 8, 8]
    assert masks(placed(FOUR, unit(1, 2, share=400), *before)) == [4 + 2]
    assert masks(placed(FOUR, unit(1, 2, units=2, share=100), *before)) == [4 + 2, 8 + 1]
    assert masks(placed(FOUR, unit(1, 3, share=500), *before)) == [2 + 8 + 1]
    assert placed(FOUR, unit(1, 2, units=2, share=500), *before) is None
    assert placed(FOUR, unit(1, 4, share=500), *before) is None
    assert masks(placed(FOUR, unit(1, 0), *before)) == [0]


def test_fragmentation() -> None:
    """One node of 16 cores with GPUs of 1000, 700, 400 and 700 parts, and what each type cannot use of them."""
    m = [[16], [1000, 700, 400, 700]]
    for need, share, kinds, unusable in (
        ((1, 0), 1000, 1, 2.8),  # needs none
        ((1, 1), 500, 1, 0.4),
        ((1, 1), 1000, 1, 1.8),
        ((1, 2), 700, 1, 0.4),
        ((1, 2), 1000, 1, 2.8),  # only one is whole
        ((17, 1), 100, 1, 2.8),  # no cores
        ((1, 1), 100, 2, 2.8),  # another kind
        ((1, 1), 100, 1, 0.0),
    ):
        machine = replace(FOUR, types=(TypicalJob(1.0, need, share, kinds),))
        assert machine.fragmentation(0, m) == unusable
    both = replace(FOUR, types=(TypicalJob(0.25, (1, 1), 500, 1), TypicalJob(0.75, (1, 1), 1000, 1)))
    assert both.fragmentation(0, m) == 0.25 * 0.4 + 0.75 * 1.8


def test_gradient_fills_devices_that_are_begun() -> None:
    """Half a GPU goes to the second node, where a half is free, though the first has less in all."""
    machine = SlowNodes(((1, (4, 1)), (1, (16, 2))), shared=1, types=(TypicalJob(1.0, (1, 1), 1000, 3),))
    half, begun = unit(1, 1, share=500), (unit(1, 1, share=500), [1], [2])
    assert nodes(placed(replace(machine, rule="best"), half, begun)) == [0]
    place = placed(replace(machine, rule="gradient"), half, begun)
    assert (nodes(place), masks(place)) == ([1], [2])


def test_a_reservation_holds_its_nodes() -> None:
    """Two nodes of 4 cores. Job 1 wants both and is reserved at 10. Job 2 is too long, job 3 ends just in time."""

    def job(units: int, cores: int, length: int) -> NodeJob:
        return NodeJob(0, (units * cores,), length, length, units=units, need=(cores,))

    two = SlowNodes(((2, (4,)),))
    jobs = [job(1, 4, 10), job(2, 4, 5), job(1, 1, 11), job(1, 4, 10)]
    easy = slow_replay(jobs, two, ListPolicy("fcfs", 1))
    assert (easy.start, easy.promised_first[1]) == ([0, 10, 15, 0], 10)
    assert easy.nodes == [(0,), (0, 1), (0,), (1,)]
    assert slow_replay(jobs, two, ListPolicy("fcfs", 0)).start == [0, 20, 0, 10]
    assert slow_replay(jobs, two, ListPolicy("fcfs", "strict")).start == [0, 10, 15, 15]


# In any case ------------------------------------------------------------------------------------------------


def test_the_model_reads_the_same_requests() -> None:
    seen: Counter[str] = Counter()
    for seed in SEEDS:
        case = random_nodes_case(random.Random(seed))
        asked = requests_of(case.workload, case.cluster)
        for i, job in enumerate(case.jobs):
            row = (asked.units[i], asked.need[i].tolist(), asked.share[i], asked.per_node[i], asked.exclusive[i])
            assert row == (job.units, list(job.need), job.share, job.per_node, job.exclusive)
            assert bits(asked, i) == job.kinds
            seen["several units"] += job.units > 1
            seen["per node"] += job.per_node > 0
            seen["exclusive"] += job.exclusive
            seen["some kinds"] += job.kinds != (1 << len(case.cluster.kinds)) - 1
            seen["shares"] += case.machine.shared >= 0 and job.need[-1] > 0 and job.share < 1000
            seen["several devices"] += case.machine.shared >= 0 and job.need[-1] > 1
            seen["outlives its estimate"] += job.runtime > job.estimate
    assert min(seen.values()) > 100
    assert len(seen) == 7


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULES)
def test_the_referee_finds_nothing(rule: str) -> None:
    waited = 0
    for seed in SEEDS:
        case = random_nodes_case(random.Random(seed))
        policy = LISTS[seed % len(LISTS)]
        result = slow_replay(case.jobs, replace(case.machine, rule=rule), policy)
        assert check_schedule(schedule_on_nodes(case, result)) == [], seed
        waited += sum(a < b for a, b in zip(result.arrive, result.start, strict=True))
    assert waited > 1000


@pytest.mark.slow
@pytest.mark.parametrize("policy", LISTS, ids=repr)
def test_the_referee_finds_nothing_under_any_policy(policy: ListPolicy) -> None:
    for seed in SEEDS[:80]:
        case = random_nodes_case(random.Random(seed))
        machine = replace(case.machine, rule=RULES[seed % len(RULES)])
        result = slow_replay(case.jobs, machine, policy, every=7 if seed % 5 == 0 else None)
        assert check_schedule(schedule_on_nodes(case, result)) == [], seed


@pytest.mark.slow
@pytest.mark.parametrize(
    "policy", [ListPolicy("fcfs", 1), ListPolicy("fcfs", 1, backfill="sjf"), Conservative()], ids=repr
)
def test_promises_hold_when_estimates_are_upper_bounds(policy: ListPolicy | Conservative) -> None:
    promised = 0
    for seed in SEEDS:
        case = random_nodes_case(random.Random(seed))
        if any(job.runtime > job.estimate for job in case.jobs):
            continue
        machine = replace(case.machine, rule=RULES[seed % len(RULES)])
        result = slow_replay(case.jobs, machine, policy)
        assert check_schedule(schedule_on_nodes(case, result), promises=True) == [], seed
        promised += sum(first >= 0 for first in result.promised_first)
    assert promised > 100


@pytest.mark.slow
def test_the_rules_differ() -> None:
    differ: Counter[str] = Counter()
    for seed in SEEDS[:80]:
        case = random_nodes_case(random.Random(seed))
        first = slow_replay(case.jobs, case.machine, ListPolicy("fcfs", 1))
        for rule in RULES[1:]:
            other = slow_replay(case.jobs, replace(case.machine, rule=rule), ListPolicy("fcfs", 1))
            differ[rule] += (other.nodes, other.devices) != (first.nodes, first.devices)
    assert all(differ[rule] > 20 for rule in RULES[1:])


@pytest.mark.slow
def test_one_node_is_a_count() -> None:
    """On one node without devices, with jobs that are not exclusive, the nodes change nothing."""
    seen = 0
    for seed in range(2000):
        case = random_nodes_case(random.Random(seed))
        if case.cluster.nodes > 1 or case.machine.shared >= 0:
            continue
        jobs = [replace(job, per_node=0, exclusive=False) for job in case.jobs]
        counted = [replace(job, size=tuple(job.units * need for need in job.need)) for job in jobs]
        policy = LISTS[seed % len(LISTS)]
        mine = slow_replay(jobs, case.machine, policy)
        assert mine.start == slow_replay(counted, case.machine.kinds[0][1], policy).start
        seen += 1
    assert seen > 20


# What a planner decodes -------------------------------------------------------------------------------------


def state_at(case: NodesCase, machine: SlowNodes, now: int) -> State:
    """What the first come first served replay has come to at that instant."""
    result = slow_replay(case.jobs, machine, ListPolicy("fcfs", 0))
    end = [start + job.runtime for start, job in zip(result.start, case.jobs, strict=True)]
    running = [j for j, start in enumerate(result.start) if start < now < end[j]]
    waiting = [j for j, job in enumerate(case.jobs) if job.submit <= now <= result.start[j]]
    held = [sum(machine.whole[x][0][0] if job.exclusive else job.need[0] for x in result.nodes[j])
            for j, job in enumerate(case.jobs) if j in running]  # fmt: skip
    start = np.full(len(case.jobs), -1, np.int64)
    start[running] = np.array(result.start)[running]
    jobs, asked = case.workload, requests_of(case.workload, case.cluster)
    return State(
        now=now,
        processors=case.cluster.processors,
        free=case.cluster.processors - sum(held),
        waiting=np.array(waiting, np.int64),
        running=np.array(running, np.int64),
        arrived=np.empty(0, np.int64),
        ended=np.empty(0, np.int64),
        submit=jobs.submit,
        size=jobs.size,
        limit=jobs.limit,
        estimate=jobs.limit,
        user=jobs.get("user"),
        start=start,
        cluster=case.cluster,
        requests=asked,
        nodes={j: np.array(result.nodes[j]) for j in running},
        devices={j: np.array(result.devices[j]) for j in running},
    )


@pytest.mark.slow
def test_decode() -> None:
    """Plans made of random orders pass the referee, and nobody fits in any second before the planned one."""
    later, looked = 0, 0
    for seed in SEEDS:
        rng = random.Random(seed)
        case, rule = random_nodes_case(rng), RULES[seed % len(RULES)]
        state = state_at(case, case.machine, case.jobs[-1].submit + 1)
        order = rng.sample(state.waiting.tolist(), len(state.waiting))
        plan = decode(state, order, rule, case.machine.types)
        assert list(plan) == order
        now = [j for j, (at, _) in plan.items() if at == state.now]
        made = Plan(
            starts=now,
            promised={j: at for j, (at, _) in plan.items() if at > state.now},
            nodes={j: plan[j][1].nodes for j in now},
            devices={j: plan[j][1].devices for j in now},
        )
        assert check_plan(state, made) == [], seed
        later += len(made.promised)
        if max((at for at, _ in plan.values()), default=state.now) < state.now + 50:
            looked += _nobody_fits_earlier(state, replace(case.machine, rule=rule), plan)
    assert later > 300
    assert looked > 300


def _nobody_fits_earlier(state: State, machine: SlowNodes, plan: dict[int, tuple[int, Place]]) -> int:
    """How many seconds were looked at."""
    blocks = []
    for j in state.running.tolist():
        size = machine.held(job_of(state, j), state.nodes[j].tolist(), state.devices[j].tolist())
        blocks.append((state.now, state.expected_end(j), size))
    looked = 0
    for j, (at, place) in plan.items():
        job, profile = job_of(state, j), Profile(state.now, machine.capacity, blocks)
        assert all(machine.place(profile, job, second) is None for second in range(state.now, at))
        assert machine.place(profile, job, at) == place
        assert place.size == machine.held(job, place.nodes, place.devices)
        blocks.append((at, at + job.estimate, place.size))
        looked += at - state.now
    return looked


def test_same_seed_same_case() -> None:
    one, other = random_nodes_case(random.Random(5)), random_nodes_case(random.Random(5))
    assert (one.jobs, one.machine, one.workload.digest()) == (other.jobs, other.machine, other.workload.digest())
    assert random_nodes_case(random.Random(6)).jobs != one.jobs
