"""The referee by node: every rule broken once by hand, and found, and only it."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.model.cluster import Cluster, NodeKind, Outage, by_node
from dovetail.model.plan import Plan
from dovetail.model.requests import Placement, requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.referee import Violation, check_plan, check_schedule


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


NODES = by_node(
    ("cores", "memory", "gpus"),
    (NodeKind("thin", 2, (4, 10, 0)), NodeKind("fat", 2, (8, 20, 2), ("fat",))),
    shared="gpus",
)
"""Nodes 0 and 1 are thin, 2 and 3 fat with two GPUs each."""

JOBS = {
    "id": ints(1, 2, 3, 4, 5),
    "submit": ints(0, 0, 0, 0, 0),
    "size": ints(6, 2, 2, 2, 1),
    "runtime": ints(10, 10, 5, 10, 10),
    "limit": ints(10, 10, 5, 10, 10),
    "units": ints(3, 2, 1, 1, 1),
    "unit_cores": ints(2, 1, 2, 2, 1),
    "unit_memory": ints(4, 0, 0, 1, 1),
    "unit_gpus": ints(0, 1, 0, 2, 0),
    "gpu_share": ints(-1, 500, -1, 500, -1),
    "per_node": ints(2, 0, 0, 0, 0),
    "exclusive": ints(0, 0, 1, 0, 0),
    "feature": ints(-1, -1, -1, 0, -1),
}
"""
Job 0: three units of 2 cores and 4 memory, two to a node at most. Job 1: two units of half a GPU. Job 2: one unit alone
on its node. Job 3: two halves of GPUs on a fat node. Job 4: a core.
"""
START = ints(0, 0, 10, 0, 0)
NODE = ints(0, 0, 1, 2, 2, 0, 2, 1)
DEVICES = ints(0, 0, 0, 1, 2, 0, 3, 0)
"""0 is on nodes 0, 0, 1; 1 on GPUs 0 and 1 of node 2; 2 on node 0 when 0 has ended; 3 beside 1; 4 beside 0."""


def schedule(
    start: Ints = START, node: Ints = NODE, devices: Ints = DEVICES, cluster: Cluster = NODES, **columns: Ints
) -> Schedule:
    workload = Workload("hand", {**JOBS, **columns}, 24, Provenance("hand"), names={"feature": ("fat",)})
    none = np.full(5, -1, np.int64)
    placement = Placement(requests_of(workload, cluster).first, node, devices)
    return Schedule(
        workload, cluster, "hand", "limit", start, workload.submit, none, none, 0, placement=placement
    )  # fmt: skip


def with_one(values: Ints, place: int, value: int) -> Ints:
    """A copy with another value in one place."""
    copy = values.copy()
    copy[place] = value
    return copy


def rules(found: list[Violation]) -> list[tuple[str, int]]:
    return [(v.rule, v.job) for v in found]


def test_a_valid_schedule_has_no_violation() -> None:
    assert check_schedule(schedule()) == []


@pytest.mark.parametrize(
    ("broken", "found"),
    [
        # A unit without a node, on a node that is not there, or a node for a job that never ran.
        (schedule(node=with_one(NODE, 1, -1)), [("one node per unit", 0)]),
        (schedule(node=with_one(NODE, 7, 4)), [("one node per unit", 4)]),
        (schedule(node=NODE[:-1]), [("one node per unit", -1)]),
        (replace(schedule(), placement=None), [("one node per unit", -1)]),
        (schedule(start=with_one(START, 4, -1)), [("every job starts", 4), ("one node per unit", 4)]),
        # Job 4 wants a fat node and is on a thin one.
        (schedule(feature=ints(-1, -1, -1, 0, 0)), [("node kind", 4)]),
        # All units of job 0 on node 3: three where two are allowed.
        (schedule(node=ints(3, 3, 3, 2, 2, 0, 2, 1)), [("units per node", 0)]),
        # Job 2 begins on node 1 while job 4 is there, or with it; or job 4 comes while job 2 is there, or after it.
        (schedule(start=ints(0, 0, 10, 0, 5), node=with_one(NODE, 5, 1)), [("exclusive", 2)]),
        (schedule(start=ints(0, 0, 10, 0, 10), node=with_one(NODE, 5, 1)), [("exclusive", 4)]),
        (schedule(start=ints(0, 0, 10, 0, 14), node=with_one(NODE, 5, 1)), [("exclusive", 4)]),
        (schedule(start=ints(0, 0, 10, 0, 15), node=with_one(NODE, 5, 1)), []),
        # Two exclusive units on one node.
        (schedule(start=ints(0, 10, 10, 0, 0), node=ints(0, 0, 1, 2, 2, 0, 2, 1), exclusive=ints(0, 1, 1, 0, 0)),
         [("exclusive", 1)]),
        # 4 + 4 + 3 memory on node 0, which has 10; 4 + 1 cores on it, which has 4.
        (schedule(node=with_one(NODE, 7, 0), unit_memory=ints(4, 0, 0, 1, 3), unit_cores=ints(1, 1, 2, 2, 1)),
         [("node capacity", 4)]),
        (schedule(node=with_one(NODE, 7, 0)), [("node capacity", 4)]),
        # Three halves of a GPU.
        (schedule(devices=with_one(DEVICES, 4, 1)), [("device capacity", 3)]),
        # A unit with no device, with another's, with two for one, with one that is not there, and a strange mask.
        (schedule(devices=with_one(DEVICES, 3, 0)), [("devices", 1)]),
        (schedule(devices=with_one(DEVICES, 0, 1)), [("devices", 0)]),
        (schedule(devices=with_one(DEVICES, 3, 4)), [("devices", 1)]),
        (schedule(devices=with_one(DEVICES, 6, 1)), [("devices", 3)]),
        (schedule(devices=with_one(DEVICES, 7, -1)), [("devices", 4)]),
        (schedule(devices=DEVICES[:-1]), [("devices", -1)]),
        # Job 2 asks for more cores than any node has, or only for as many as a fat one has, and never starts.
        (schedule(start=with_one(START, 2, -1), node=with_one(NODE, 5, -1), unit_cores=ints(2, 1, 9, 2, 1)), []),
        (schedule(start=with_one(START, 2, -1), node=with_one(NODE, 5, -1), unit_cores=ints(2, 1, 8, 2, 1)),
         [("every job starts", 2)]),
    ],
)  # fmt: skip
def test_each_rule(broken: Schedule, found: list[tuple[str, int]]) -> None:
    assert sorted(rules(check_schedule(broken))) == sorted(found)


@pytest.mark.parametrize(
    ("outage", "found"),
    [
        # Job 2 is on node 0 from 10 to 15, by its limit; it starts in the outage, before it, in its end, after it.
        (Outage((0,), 8, 11), [("outage", 0), ("outage", 2)]),
        (Outage((0,), 14, 20), [("outage", 2)]),
        (Outage((0, 3), 15, 20), []),
        (Outage((1,), 10, 15), []),
        # Job 0 is on nodes 0 and 1, and job 4 on node 1, from 0 to 10.
        (Outage((1,), 9, 12), [("outage", 0), ("outage", 4)]),
        # Nobody could know before 9, when they ran.
        (Outage((1,), 9, 12, known=9), []),
        (Outage((0,), 12, 16, known=11), []),
        (Outage((0,), 12, 16, known=10), [("outage", 2)]),
        # It is kept for job 2, or for others.
        (Outage((0,), 8, 20, only="ours"), [("outage", 0)]),
        (Outage((0,), 12, 20, only="ours"), []),
        (Outage((0,), 12, 20, only="theirs"), [("outage", 2)]),
    ],
)
def test_outages(outage: Outage, found: list[tuple[str, int]]) -> None:
    made = schedule(cluster=replace(NODES, outages=(outage,)), reservation=ints(-1, -1, 0, -1, -1))
    names = {"feature": ("fat",), "reservation": ("ours",)}
    made = replace(made, workload=replace(made.workload, names=names))
    assert sorted(rules(check_schedule(made))) == found


def test_who_outlives_its_estimate_may_end_in_an_outage() -> None:
    cluster = replace(NODES, outages=(Outage((0,), 15, 20),))
    made = schedule(cluster=cluster, runtime=ints(10, 10, 8, 10, 10))
    assert rules(check_schedule(made)) == []
    assert rules(check_schedule(replace(made, said=ints(10, 10, 6, 10, 10)))) == [("outage", 2)]


def test_negative_units() -> None:
    made = schedule()
    for units in (ints(3, 2, -1, 1, 1), ints(3, 2, -1, 0, 1)):  # none at all are not negative
        bad = replace(made, workload=replace(made.workload, columns={**JOBS, "units": units}))
        assert rules(check_schedule(bad)) == [("units", 2)]


@pytest.mark.parametrize(
    ("asked", "starts"),
    [
        ({"units": 24}, True),
        ({"units": 25}, False),
        ({"units": 4, "unit_gpus": 1, "gpu_share": 1000}, True),
        ({"units": 5, "unit_gpus": 1, "gpu_share": 1000}, False),
        ({"units": 8, "unit_gpus": 1, "gpu_share": 500}, True),
        ({"units": 9, "unit_gpus": 1, "gpu_share": 500}, False),
        ({"units": 2, "unit_gpus": 2, "gpu_share": 100}, True),
        ({"units": 3, "unit_gpus": 2, "gpu_share": 100}, False),
        ({"units": 1, "unit_gpus": 1, "gpu_share": 1001}, False),
        ({"units": 4, "exclusive": 1}, True),
        ({"units": 5, "exclusive": 1}, False),
        ({"units": 4, "per_node": 1}, True),
        ({"units": 5, "per_node": 1}, False),
        ({"units": 4, "per_node": 2, "feature": 0}, True),
        ({"units": 5, "per_node": 2, "feature": 0}, False),
        ({"units": 6, "unit_cores": 4}, True),
        ({"units": 7, "unit_cores": 4}, False),
    ],
)
def test_who_must_start(asked: dict[str, int], starts: bool) -> None:
    """Does a job of one core per unit, changed so, fit on the idle cluster?"""
    columns = {name: ints(1) for name in JOBS} | {"submit": ints(0), "unit_memory": ints(0), "unit_gpus": ints(0)}
    columns |= {"per_node": ints(0), "exclusive": ints(0), "feature": ints(-1), "gpu_share": ints(-1)}
    columns |= {name: ints(value) for name, value in asked.items()}
    workload = Workload("one", columns, 24, Provenance("hand"), names={"feature": ("fat",)})
    never, units = ints(-1), asked["units"]
    placement = Placement(ints(0, units), np.full(units, -1), np.zeros(units, np.int64))
    made = Schedule(workload, NODES, "hand", "limit", never, ints(0), never, never, 0, placement=placement)
    assert rules(check_schedule(made)) == ([("every job starts", 0)] if starts else [])


def test_without_columns_of_units_every_processor_is_one() -> None:
    columns = {name: JOBS[name] for name in ("id", "submit", "size", "runtime", "limit")}
    workload = Workload("plain", columns, 8, Provenance("hand"))
    nodes, none = by_node(("cores",), (NodeKind("node", 2, (4,)),)), np.full(5, -1, np.int64)
    node = ints(0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 1, 1, 1)
    placement = Placement(requests_of(workload, nodes).first, node, ints())
    start = ints(0, 0, 10, 10, 15)
    made = Schedule(workload, nodes, "hand", "limit", start, workload.submit, none, none, 0, placement=placement)
    assert check_schedule(made) == []
    assert rules(check_schedule(replace(made, start=ints(0, 0, 10, 9, 15)))) == [("node capacity", 3)]
    masks = replace(placement, devices=with_one(np.zeros(13, np.int64), 0, 1))
    assert rules(check_schedule(replace(made, placement=masks))) == [("devices", 0)]


# Plans ------------------------------------------------------------------------------------------------------


def state(now: int = 5) -> State:
    """Jobs 0 and 1 run since 0 as above; 2, 3 and 4 wait."""
    workload = schedule().workload
    return State(
        now=now,
        processors=24,
        free=16,
        waiting=ints(2, 3, 4),
        running=ints(0, 1),
        arrived=ints(),
        ended=ints(),
        submit=workload.submit,
        size=workload.size,
        limit=workload.limit,
        estimate=workload.limit,
        user=ints(0, 0, 0, 0, 0),
        start=ints(0, 0, -1, -1, -1),
        cluster=NODES,
        requests=requests_of(workload, NODES),
        nodes={0: ints(0, 0, 1), 1: ints(2, 2)},
        devices={0: ints(0, 0, 0), 1: ints(1, 2)},
    )


GOOD = Plan(starts=(3, 4, 2), nodes={2: (3,), 3: (2,), 4: (1,)}, devices={2: (0,), 3: (3,), 4: (0,)})


def plan(
    starts: tuple[int, ...] = (3, 4, 2), *, nodes: dict[int, tuple[int, ...]] | None = None, **more: object
) -> Plan:
    """The good plan with other nodes for some jobs."""
    return replace(GOOD, starts=starts, nodes={**GOOD.nodes, **(nodes or {})}, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("made", "broken"),
    [
        (Plan(), []),
        (GOOD, []),
        (plan((3,), devices={3: (3,)}), []),
        (plan(nodes={4: (4,)}), [("one node per unit", 4)]),
        (plan(nodes={4: (-1,)}), [("one node per unit", 4)]),
        (plan(nodes={4: (1, 1)}), [("one node per unit", 4)]),
        (plan(nodes={4: ()}), [("one node per unit", 4)]),
        (plan((2,), nodes={2: (4,)}), [("one node per unit", 2)]),
        (plan((4,), devices={4: (0, 0)}), [("devices", 4)]),
        (plan((3,), devices={3: (1,)}), [("devices", 3)]),
        (plan((3,), devices={}), [("devices", 3)]),
        (plan((3,), nodes={3: (1,)}), [("node kind", 3), ("devices", 3)]),
        (plan((4, 4)), [("one start per job", 4)]),
        (plan((0,)), [("starts wait", 0)]),
        (plan((4,), nodes={4: (0,)}), [("node capacity", 4)]),
        (plan(nodes={4: (3,)}), [("exclusive", 2)]),
        (plan((2, 3, 4), nodes={4: (3,)}), [("exclusive", 4)]),
        # 8 cores run, and job 2 alone holds 8: 8 are left until 10. Promises are only counted.
        (plan((2,), promised={3: 5, 4: 5}), []),
    ],
)
def test_plans(made: Plan, broken: list[tuple[str, int]]) -> None:
    assert rules(check_plan(state(), made)) == broken


def test_an_overdue_job_still_has_its_node_for_a_second() -> None:
    late = plan((4,), nodes={4: (0,)})
    assert rules(check_plan(state(12), late)) == [("node capacity", 4)]
    ended = replace(state(12), running=ints(1), nodes={1: ints(2, 2)}, devices={1: ints(1, 2)})
    assert check_plan(ended, late) == []


def test_promises_are_within_all_cores() -> None:
    """Jobs 0 and 1 hold 8 cores until 10; job 4 has units of one core."""

    def with_units(n: int) -> State:
        many = replace(schedule().workload, columns={**JOBS, "units": ints(3, 2, 1, 1, n)})
        return replace(state(), requests=requests_of(many, NODES))

    assert check_plan(with_units(17), Plan(promised={4: 10})) == []
    assert rules(check_plan(with_units(17), Plan(promised={4: 9}))) == [("capacity", 4)]
    assert check_plan(with_units(16), Plan(promised={4: 9})) == []
    alone = replace(GOOD, starts=(2,), nodes={2: (3,)}, promised={4: 9})  # job 2 alone on node 3 holds its 8 until 10
    assert check_plan(with_units(8), alone) == []
    assert rules(check_plan(with_units(9), alone)) == [("capacity", 4)]
    of_one: dict[str, Any] = {"running": ints(1), "nodes": {1: ints(2, 2)}, "devices": {1: ints(1, 2)}}
    first = replace(GOOD, starts=(2,), nodes={2: (0,)}, promised={4: 9})  # the 4 cores of node 0; job 1 holds 2
    assert check_plan(replace(with_units(18), **of_one), first) == []
    assert rules(check_plan(replace(with_units(19), **of_one), first)) == [("capacity", 4)]


def test_many_units_take_little_time() -> None:
    """400,000 units on 64 nodes with shared GPUs, all of them full, are checked in under 4 s of CPU."""
    n = 100_000
    nodes = by_node(("cores", "memory", "gpus"), (NodeKind("node", 64, (16, 64, 2)),), shared="gpus")
    columns = {"id": np.arange(n) + 1, "submit": np.zeros(n), "size": np.full(n, 4), "runtime": np.full(n, 10)}
    columns |= {"limit": np.full(n, 10), "units": np.full(n, 4), "unit_cores": np.full(n, 4)}
    columns |= {"unit_memory": np.full(n, 16), "unit_gpus": np.full(n, 1), "gpu_share": np.full(n, 500)}
    workload = Workload("many", columns, 1024, Provenance("made here"))
    start, none = np.arange(n) // 64 * 10, np.full(n, -1, np.int64)
    node, devices = np.repeat(np.arange(n) % 64, 4), np.tile(ints(1, 1, 2, 2), n)
    placement = Placement(requests_of(workload, nodes).first, node, devices)
    made = Schedule(workload, nodes, "hand", "limit", start, workload.submit, none, none, 0, placement=placement)
    before = time.process_time()
    assert check_schedule(made) == []
    assert time.process_time() - before < 4.0
    early = replace(made, start=with_one(start, 64, 9))
    found = check_schedule(early)
    assert sorted(set(rules(found))) == [("device capacity", 64), ("node capacity", 64)]
    assert len(found) == 4  # cores, memory and both GPUs
