"""Each rule of the referee: the smallest schedule or plan at its limit, which passes, and one beyond, which fails."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.model.cluster import Cluster, NodeKind, PowerCap, by_node
from dovetail.model.plan import Plan
from dovetail.model.requests import Placement, requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.referee import RefereeError, Violation, check_plan, check_schedule

Given = dict[str, Any]


def ints(values: Any) -> Ints:
    return np.array(values, np.int64)


def found(given: Given) -> list[Violation]:
    """What the referee says of a schedule of jobs of one processor and one second, all submitted at 0, on a machine of
    one processor. `given` says what is otherwise: columns of jobs, of the schedule, or what the referee is asked."""
    given = {"start": [0], **given}
    n = given.pop("jobs", len(given["start"]))
    fields: Given = {
        name: given.pop(name) for name in ("start", "arrive", "promised_first", "promised_last") if name in given
    }
    accepted, nodes, devices = given.pop("accepted", []), given.pop("nodes", None), given.pop("devices", [])
    first = given.pop("first", None)
    cluster, everyone = given.pop("cluster", Cluster(1)), given.pop("expect_all_started", True)
    ones = {"id": range(1, n + 1), "submit": [0] * n, "size": [1] * n, "runtime": [1] * n, "limit": [1] * n}
    columns = {name: ints(values) for name, values in {**ones, **given}.items()}
    jobs = Workload("hand", columns, 1, Provenance("hand"), names={"feature": ("fat",)} if "feature" in given else {})
    none = [-1] * n
    plain: Given = {"arrive": jobs.submit, "promised_first": none, "promised_last": none, **fields}
    plain = {name: ints(values) for name, values in plain.items()}
    made = Schedule(jobs, cluster, "hand", "limit", passes=0, accepted=ints(accepted), **plain)
    if nodes is not None:
        begins = requests_of(jobs, cluster).first if first is None else ints(first)
        made = replace(made, placement=Placement(begins, ints(nodes), ints(devices)))
    return check_schedule(made, promises=True, expect_all_started=everyone)


CAPPED = Cluster(2, cap=PowerCap(mw=30, idle_mw=5, busy_mw=15))
"""20 mW beside two idle processors: two jobs of 10."""
THIN_AND_FAT = by_node(("cores", "gpus"), (NodeKind("thin", 1, (2, 0)), NodeKind("fat", 1, (2, 2), ("fat",))), "gpus")
"""Node 0 has two cores, node 1 two GPUs beside them."""
ON_NODES: Given = {"cluster": THIN_AND_FAT, "units": [1], "unit_cores": [1], "unit_gpus": [0], "devices": [0]}
TWO: Given = {"cluster": THIN_AND_FAT, "start": [0, 0], "units": [1, 1], "unit_cores": [1, 1], "unit_gpus": [0, 0],
              "devices": [0, 0]}  # fmt: skip
HALVES: Given = {**TWO, "nodes": [1, 1], "unit_gpus": [1, 1], "devices": [1, 1]}
AFTER: Given = {"cluster": Cluster(2), "start": [0, 3], "after": [-1, 1], "think_s": [-1, 2]}

SCHEDULES: list[tuple[str, int, int, Given, Given]] = [
    ("one start per job", -1, -1, {}, {"start": [0, 1], "jobs": 1}),
    ("one start per job", -1, -1, {}, {"start": [], "jobs": 1}),
    *(("one start per job", -1, -1, {}, {name: [0, 0]}) for name in ("arrive", "promised_first", "promised_last")),
    ("start", 0, -2, {"start": [-1], "expect_all_started": False}, {"start": [-2], "expect_all_started": False}),
    ("every job starts", 0, 0, {"start": [-1], "size": [2]}, {"start": [-1], "size": [1]}),
    ("size", 0, 0, {"size": [0]}, {"size": [-1]}),
    ("run time", 0, 0, {"runtime": [0]}, {"runtime": [-1]}),
    ("arrival", 0, 4, {"start": [5], "submit": [5]}, {"start": [4], "submit": [5]}),
    ("submit", 0, 1, {"start": [1], "arrive": [0]}, {"start": [1], "arrive": [1]}),
    # A job that never arrived and never started was not held back by anybody.
    ("submit", 0, 0, {"start": [-1], "arrive": [-1], "submit": [1], "size": [2]},
     {"start": [-1], "arrive": [0], "submit": [1], "size": [2]}),
    # The second follows the first, which ends at 1, after 2 s; a pause that is not known is none.
    ("submit", 1, 2, {**AFTER, "arrive": [0, 3]}, {**AFTER, "arrive": [0, 2]}),
    ("submit", 1, 2, {**AFTER, "arrive": [0, 1], "think_s": [-1, -1]},
     {**AFTER, "arrive": [0, 2], "think_s": [-1, -1]}),
    # Whoever it followed is not there, or never started: it arrives at its submit.
    ("submit", 1, 3, {**AFTER, "after": [-1, 9], "arrive": [0, 0]}, {**AFTER, "after": [-1, 9], "arrive": [0, 3]}),
    ("submit", 1, 2, {**AFTER, "start": [-1, 3], "arrive": [0, 0], "expect_all_started": False},
     {**AFTER, "start": [-1, 3], "arrive": [0, 2], "expect_all_started": False}),
    # Jobs of one second: one after the other, and at once. The second of no duration takes nothing.
    ("capacity", 1, 0, {"start": [0, 1]}, {"start": [0, 0]}),
    ("capacity", 1, 1, {"start": [0, 2], "runtime": [2, 1]}, {"start": [0, 1], "runtime": [2, 1]}),
    ("capacity", 1, 0, {"start": [0, 0], "runtime": [1, 0]}, {"start": [0, 0], "runtime": [1, 1]}),
    ("power cap", 1, 0, {"cluster": CAPPED, "start": [0, 0]},
     {"cluster": CAPPED, "start": [0, 0], "power_mw": [15, 16]}),
    ("power cap", 1, 0, {"cluster": CAPPED, "start": [0, 0], "power_mw": [15, 16], "runtime": [1, 0]},
     {"cluster": CAPPED, "start": [0, 0], "power_mw": [15, 16]}),
    ("every job starts", 0, 0, {"cluster": CAPPED, "start": [-1], "power_mw": [26]},
     {"cluster": CAPPED, "start": [-1], "power_mw": [25]}),
    ("one node per unit", 0, 0, {**ON_NODES, "nodes": [1]}, {**ON_NODES, "nodes": [2]}),
    ("one node per unit", 0, 0, {**ON_NODES, "nodes": [0]}, {**ON_NODES, "nodes": [-1]}),
    ("one node per unit", -1, -1, {**ON_NODES, "nodes": [0]}, ON_NODES),
    ("one node per unit", -1, -1, {**ON_NODES, "nodes": [0]}, {**ON_NODES, "nodes": [0, 0]}),
    ("one node per unit", -1, -1, {**ON_NODES, "nodes": [0]}, {**ON_NODES, "nodes": [0], "first": [0, 0]}),
    ("one node per unit", 0, -1, {**ON_NODES, "nodes": [-1], "start": [-1], "expect_all_started": False},
     {**ON_NODES, "nodes": [0], "start": [-1], "expect_all_started": False}),
    ("devices", -1, -1, {**ON_NODES, "nodes": [0]}, {**ON_NODES, "nodes": [0], "devices": []}),
    ("devices", 0, 0, {**ON_NODES, "nodes": [1], "unit_gpus": [1], "devices": [2]},
     {**ON_NODES, "nodes": [1], "unit_gpus": [1], "devices": [4]}),
    ("devices", 0, 0, {**ON_NODES, "nodes": [1], "unit_gpus": [2], "devices": [3]},
     {**ON_NODES, "nodes": [1], "unit_gpus": [2], "devices": [2]}),
    ("devices", 0, 0, {**ON_NODES, "nodes": [0]}, {**ON_NODES, "nodes": [1], "devices": [1]}),
    ("node kind", 0, 0, {**ON_NODES, "nodes": [1], "feature": [0]}, {**ON_NODES, "nodes": [0], "feature": [0]}),
    ("units per node", 0, 0, {**ON_NODES, "units": [2], "nodes": [0, 1], "devices": [0, 0], "per_node": [1]},
     {**ON_NODES, "units": [2], "nodes": [0, 0], "devices": [0, 0], "per_node": [1]}),
    ("units per node", 0, 0, {**ON_NODES, "units": [2], "nodes": [0, 0], "devices": [0, 0], "per_node": [0]},
     {**ON_NODES, "units": [2], "nodes": [0, 0], "devices": [0, 0], "per_node": [1]}),
    ("exclusive", 1, 0, {**TWO, "nodes": [0, 1], "exclusive": [1, 0]}, {**TWO, "nodes": [0, 0], "exclusive": [1, 0]}),
    ("exclusive", 1, 0, {**TWO, "nodes": [0, 0], "exclusive": [0, 0]}, {**TWO, "nodes": [0, 0], "exclusive": [0, 1]}),
    ("exclusive", 1, 1, {**TWO, "start": [0, 2], "runtime": [2, 1], "nodes": [0, 0], "exclusive": [1, 0]},
     {**TWO, "start": [0, 1], "runtime": [2, 1], "nodes": [0, 0], "exclusive": [1, 0]}),
    ("node capacity", 1, 0, {**TWO, "nodes": [0, 0]}, {**TWO, "nodes": [0, 0], "unit_cores": [1, 2]}),
    ("node capacity", 1, 0, {**TWO, "nodes": [0, 1], "unit_cores": [2, 2]},
     {**TWO, "nodes": [0, 0], "unit_cores": [2, 1]}),
    ("device capacity", 1, 0, {**HALVES, "gpu_share": [500, 500]}, {**HALVES, "gpu_share": [500, 501]}),
    ("device capacity", 1, 0, {**HALVES, "gpu_share": [999, 2], "devices": [1, 2]}, {**HALVES, "gpu_share": [999, 2]}),
    ("jobs fit the cluster", 0, 0, {**ON_NODES, "nodes": [0], "unit_cores": [2]},
     {**ON_NODES, "nodes": [0], "unit_cores": [3]}),
    ("promise kept", 0, 3, {"start": [3], "promised_first": [3], "promised_last": [3]},
     {"start": [3], "promised_first": [2], "promised_last": [3]}),
    ("last promise", 0, 3, {"start": [3], "promised_first": [4], "promised_last": [3]},
     {"start": [3], "promised_first": [4], "promised_last": [4]}),
    ("last promise", 0, 0, {"promised_first": [-1], "promised_last": [7]},
     {"promised_first": [0], "promised_last": [7]}),
    ("promise after arrival", 0, 1,
     {"submit": [2], "start": [-1], "promised_first": [2], "expect_all_started": False},
     {"submit": [2], "start": [-1], "promised_first": [1], "expect_all_started": False}),
    ("promise after arrival", 0, 0, {"submit": [0], "start": [-1], "promised_first": [0], "expect_all_started": False},
     {"submit": [1], "start": [-1], "promised_first": [0], "expect_all_started": False}),
    ("deadline kept", 0, 3, {"start": [2], "accepted": [1], "deadline_s": [3]},
     {"start": [3], "accepted": [1], "deadline_s": [3]}),
    ("deadline kept", 0, 0, {"accepted": [0], "deadline_s": [0]}, {"accepted": [1], "deadline_s": [0]}),
    ("deadline asked for", 0, 0, {"accepted": [-1], "deadline_s": [-1]}, {"accepted": [0], "deadline_s": [-1]}),
    ("deadline answered", 0, 3, {"accepted": [0], "deadline_s": [3]}, {"accepted": [-1], "deadline_s": [3]}),
    ("deadline answered", 0, 0, {"accepted": [-1], "deadline_s": [0], "start": [-1], "expect_all_started": False},
     {"accepted": [-1], "deadline_s": [0]}),
]  # fmt: skip
"""The rule, the job that breaks it and when; a schedule that does not, and one that does."""


@pytest.mark.parametrize(("rule", "job", "at", "good", "bad"), SCHEDULES)
def test_at_the_limit_and_one_beyond(rule: str, job: int, at: int, good: Given, bad: Given) -> None:
    assert found(good) == []
    broken = found(bad)
    if rule == "jobs fit the cluster":  # whoever does not fit breaks a capacity too
        assert [one.rule for one in broken] == [rule, "node capacity"]
        broken = broken[:1]
    assert [(one.rule, one.job, one.at) for one in broken] == [(rule, job, at)]


def test_more_processors_than_there_are() -> None:
    assert found({"size": [1]}) == []
    assert [one.rule for one in found({"size": [2]})] == ["jobs fit the cluster", "capacity"]
    assert [one.rule for one in found({"cluster": CAPPED, "power_mw": [26]})] == ["jobs fit the cluster", "power cap"]


def test_units_below_none() -> None:
    assert [one.rule for one in found({**ON_NODES, "nodes": [0], "units": [-1]})] == ["units"]
    assert found({**ON_NODES, "nodes": [], "units": [0], "devices": []}) == []
    assert [one.job for one in found({**TWO, "nodes": [0], "units": [0, -1]})] == [1]


def test_every_violation_is_counted_and_five_are_shown() -> None:
    many = [Violation("capacity", job, 0, "is too much") for job in range(6)]
    five, six = str(RefereeError(many[:5])), str(RefereeError(many))
    assert five.splitlines()[0] == "the schedule breaks the rules in 5 places:"
    assert five.splitlines()[1:] == [f"  capacity: job {job}: is too much" for job in range(5)]
    assert six.splitlines()[5:] == ["  capacity: job 4: is too much", "  and 1 more"]
    assert str(Violation("devices", -1, 0, "are missing")) == "devices: are missing"


def state(**other: Any) -> State:
    """At 5, on two processors: job 0 runs and is to end at 6; jobs 1 and 2 wait; each takes one processor for 1 s."""
    plain: Given = {
        "now": 5, "processors": 2, "free": 1, "waiting": ints([1, 2]), "running": ints([0]), "arrived": ints([]),
        "ended": ints([]), "submit": ints([0, 0, 0]), "size": ints([1, 1, 1]), "limit": ints([1, 1, 1]),
        "estimate": ints([1, 1, 1]), "user": ints([0, 0, 0]), "start": ints([5, -1, -1]),
    }  # fmt: skip
    return State(**{**plain, **other})


STANDS = {"standing": Plan(deadlines={1: 9})}
PLANS: list[tuple[str, int, Given, Plan, Plan]] = [
    ("starts wait", 0, {}, Plan(starts=(1,)), Plan(starts=(0,))),
    ("one start per job", 1, {}, Plan(starts=(1,)), Plan(starts=(1, 1))),
    ("promises wait", 0, {}, Plan(promised={1: 6}), Plan(promised={0: 6})),
    ("promise not past", 1, {}, Plan(promised={1: 5}), Plan(promised={1: 4})),
    ("promise planned", 1, {}, Plan(promised={1: 7}, expected={1: 7}), Plan(promised={1: 7}, expected={1: 8})),
    ("deadlines wait", 0, {}, Plan(deadlines={1: 7}, expected={1: 6}), Plan(deadlines={0: 7})),
    ("deadline stays", 1, STANDS, Plan(deadlines={1: 9}, expected={1: 6}), Plan(deadlines={1: 8}, expected={1: 6})),
    ("deadline stays", 1, STANDS, Plan(deadlines={1: 9}, expected={1: 6}), Plan(expected={1: 6})),
    ("deadline stays", 1, {"standing": Plan(deadlines={1: 0})}, Plan(deadlines={1: 0}, starts=()), Plan()),
    ("deadline planned", 1, {}, Plan(deadlines={1: -1}), Plan(deadlines={1: 7})),
    ("deadline kept", 1, {}, Plan(deadlines={1: 7}, expected={1: 6}), Plan(deadlines={1: 6}, expected={1: 6})),
    ("capacity", 2, {}, Plan(starts=(1,), promised={2: 6}), Plan(starts=(1,), promised={2: 5})),
    ("capacity", 2, {}, Plan(starts=(1,), deadlines={2: 9}, expected={2: 6}),
     Plan(starts=(1,), deadlines={2: 9}, expected={2: 5})),
    # The running job is overdue: it is taken to end one second from now.
    ("capacity", 2, {"start": ints([3, -1, -1])}, Plan(starts=(1,), promised={2: 6}), Plan(starts=(1, 2))),
]  # fmt: skip
"""The rule, the job, what is otherwise in the state; a plan that keeps the rule, and one that breaks it."""


@pytest.mark.parametrize(("rule", "job", "other", "good", "bad"), PLANS)
def test_plans_at_the_limit_and_one_beyond(rule: str, job: int, other: Given, good: Plan, bad: Plan) -> None:
    if good.deadlines.get(1) != 0:  # that one is over already
        assert check_plan(state(**other), good, deadlines=True) == []
    assert [(one.rule, one.job) for one in check_plan(state(**other), bad, deadlines=True)] == [(rule, job)]
