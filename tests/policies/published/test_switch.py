"""Switch: who decides depends on the queue."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.published.switch import Switch
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from tests.policies.published.test_dispatch import state_of

CLUSTER = by_node(("cores", "gpus"), (NodeKind("thin", 2, (4, 0)), NodeKind("gpu", 1, (4, 2))))


def workload(gpus: list[int]) -> Workload:
    n = len(gpus)
    columns = {"id": np.arange(n), "submit": np.arange(n), "size": np.full(n, 4), "runtime": np.full(n, 50)}
    columns |= {"limit": np.full(n, 50), "units": np.ones(n), "unit_cores": np.full(n, 4), "unit_gpus": np.array(gpus)}
    return Workload("mixed", columns, CLUSTER.processors, Provenance("test"))


def test_the_queue_decides_who_decides() -> None:
    chooser = policy("switch:plain=easy,mixed=sjf-easy;place=scarce,many=greedy-fcfs,jobs=2")
    assert isinstance(chooser, Switch)
    assert chooser.mixed.name == "sjf-easy:place=scarce"
    seen: set[tuple[bool, bool, str]] = set()

    class Watched(Switch):
        def chosen(self, state: State) -> object:  # type: ignore[override]
            assert state.requests is not None
            one = super().chosen(state)
            needs = bool((state.requests.need[state.waiting][:, 1] > 0).any())
            if len(state.waiting):
                seen.add((len(state.waiting) > 2, needs, one.name))
            return one

    watched = Watched(chooser.plain, chooser.mixed, chooser.many, chooser.jobs)
    made = replay(workload([0, 1, 0, 0, 0, 0, 0, 0, 1, 0]), watched, cluster=CLUSTER)
    assert check_schedule(made) == []
    assert seen == {
        (False, False, "easy"), (False, True, "sjf-easy:place=scarce"),
        (True, True, "greedy-fcfs"), (True, False, "greedy-fcfs"),
    }  # fmt: skip


@pytest.mark.parametrize("inner", ["conservative", "dbf", "plan-deadline", "list;reserve=3;relax=0.5"])
def test_promises_are_refused(inner: str) -> None:
    with pytest.raises(SettingError, match="keeps promises"):
        policy(f"switch:many={inner}")


def test_nobody_knows_the_future() -> None:
    with pytest.raises(SettingError, match="do not know the future"):
        policy("switch:many=offline-af")


def test_what_cannot_run_on_nodes_is_refused_inside_too() -> None:
    with pytest.raises(SettingError, match="cannot place jobs on nodes"):
        replay(workload([0, 1]), policy("switch:many=cp-af"), cluster=CLUSTER)


def test_gradient_inside_is_gradient() -> None:
    """It needs to know the typical jobs, which the cluster is given before the replay."""
    chosen = policy("switch:plain=easy;place=gradient,mixed=easy;place=gradient,many=easy;place=gradient")
    assert replay(workload([0, 1]), chosen, cluster=CLUSTER).cluster.typical


def test_what_one_remembers_is_kept_while_another_decides() -> None:
    state = replace(state_of([{}]), standing=Plan(memory={"another": 2}))
    assert Switch().decide(state).memory == {"another": 2, "hcp19": 100}
    assert Switch(plain=policy("easy")).decide(state).memory == {"another": 2}
