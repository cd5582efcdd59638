"""States with no replay behind them: what waits and why, what can never run, and what is refused."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.api import generate
from dovetail.arrays import NEVER, Ints
from dovetail.engine.node_occupancy import NodeUse
from dovetail.engine.onward import begin_at
from dovetail.engine.replay import replay
from dovetail.errors import SettingError, StateError
from dovetail.model.cluster import NodeKind, Outage, by_node
from dovetail.model.plan import Plan
from dovetail.model.requests import Requests
from dovetail.model.state import State
from dovetail.policies.registry import policy

NONE = np.empty(0, np.int64)
CLUSTER = by_node(("cores", "gpus"), (NodeKind("thin", 2, (4, 0)), NodeKind("fat", 2, (4, 2))))


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def counted(**changes: Any) -> State:
    """Job 0 has 3 of 4 processors until 10; job 1 wants all, job 2 one for 9 s, job 3 more than there are."""
    state = State(
        now=5, processors=4, free=1, waiting=ints(1, 2, 3), running=ints(0), arrived=NONE, ended=NONE,
        submit=ints(0, 0, 0, 0), size=ints(3, 4, 1, 9), limit=ints(10, 5, 9, 3), estimate=ints(10, 5, 9, 3),
        user=ints(0, 0, 0, 0), start=ints(0, -1, -1, -1),
    )  # fmt: skip
    return replace(state, **changes)


def on_nodes(**changes: Any) -> State:
    """Job 0 fills the thin nodes until 10. Job 1 wants three nodes; job 2 nine; job 3 a GPU; job 4 three on a node; job
    5 a kind that is not there."""
    requests = Requests(
        units=ints(2, 3, 9, 1, 1, 1), need=np.array([[4, 0], [4, 0], [4, 0], [2, 1], [2, 3], [1, 0]], np.int64),
        share=ints(*[1000] * 6), per_node=ints(*[0] * 6), exclusive=ints(*[0] * 6), among=ints(1, 1, 1, 1, 1, 0),
        sets=np.array([[False, False], [True, True]]), reservation=ints(*[-1] * 6),
    )  # fmt: skip
    state = State(
        now=5, processors=16, free=8, waiting=ints(1, 2, 3, 4, 5), running=ints(0), arrived=NONE, ended=NONE,
        submit=ints(*[0] * 6), size=ints(8, 12, 36, 2, 2, 1), limit=ints(*[10] * 6), estimate=ints(*[10] * 6),
        user=ints(*[0] * 6), start=ints(0, -1, -1, -1, -1, -1), cluster=CLUSTER, requests=requests,
        nodes={0: ints(0, 1)}, devices={0: ints(0, 0)},
    )  # fmt: skip
    return replace(state, **changes)


def asked(**changes: Any) -> State:
    """The same, with other requests."""
    state = on_nodes()
    assert state.requests is not None
    return replace(state, requests=replace(state.requests, **changes))


def test_each_job_that_waits_is_told_why() -> None:
    plan = policy("list-reg").decide(counted())
    assert plan.promised == {1: 10, 2: 15}
    assert plan.reasons == {
        1: "needs 4 processors; 1 are free",
        2: "there is room for it now, which is kept for jobs before it",
        3: "needs 9 processors; the machine has 4",
    }


def test_what_never_fits_on_nodes_does_no_harm() -> None:
    for name in ("easy", "list-reg", "greedy-fcfs", "strict-fcfs", "plan-af"):
        plan = policy(name).decide(on_nodes())
        assert plan.starts == ([] if name == "strict-fcfs" else [3])
        assert {**plan.promised, **plan.expected}.get(1, 10) in (10, 15)
        assert plan.reasons[1] == "needs 3 units; nodes have no room for as many now"
        assert plan.reasons[2] == "needs 9 units of 4 cores; the nodes that will do hold 4"
        assert plan.reasons[4] == "needs 1 unit of 2 cores, 3 gpus; the nodes that will do hold 0"
        assert plan.reasons[5] == "needs 1 unit of 1 cores; the nodes that will do hold 0"


def test_nodes_that_are_out() -> None:
    """Until 10 job 0 fills nodes 0 and 1; nodes 2 and 3 have GPUs. Job 1 wants three nodes, job 3 a GPU."""
    for name in ("easy", "list-reg", "plan-af", "conservative", "plan-deadline"):
        chosen = policy(name)
        # Node 3 is down, and nobody knows for how long: job 1 waits for the other three, a planner lets job 3 go
        # first.
        down = chosen.decide(with_out(Outage((3,), 0, NEVER)))
        at = 15 if name == "plan-af" else 10
        assert {**down.promised, **down.expected}.get(1, at) == at
        assert down.starts == ([3] if name == "plan-af" else [])
        assert all(3 not in nodes for nodes in down.nodes.values())
        # Two nodes are: it never starts, as far as is known.
        two = chosen.decide(with_out(Outage((1, 3), 0, NEVER)))
        assert two.reasons[1] == "needs 3 units of 4 cores; the nodes that will do hold 2"
        # Maintenance from 12 on would catch it; and it would catch job 3 on all nodes, which needs 10 s.
        later = chosen.decide(with_out(Outage((0, 1, 2, 3), 12, 40)))
        assert later.starts == []
        assert {**later.promised, **later.expected}.get(1, 40) == 40
        # Job 3 may run then, and until then.
        named = with_out(Outage((0, 1, 2, 3), 12, 40, "ours"), reservation=ints(-1, -1, -1, 0, -1, -1))
        assert chosen.decide(named).starts == [3]


@pytest.mark.parametrize("name", ["pcp21", "hcp19", "switch"])
def test_dispatchers_refuse_a_state_with_outages(name: str) -> None:
    with pytest.raises(SettingError, match="does not look at outages"):
        policy(name).decide(with_out(Outage((2, 3), 0, 40)))


def with_out(*outages: Outage, **changes: Any) -> State:
    """The state with outages that are known."""
    return replace(asked(**changes), cluster=replace(CLUSTER, outages=outages))


def test_a_deadline_of_a_job_that_never_fits_is_refused() -> None:
    plan = policy("dbf").decide(counted(arrived=ints(1, 2, 3), deadline_s=ints(-1, -1, 99, 99)))
    assert plan.deadlines == {2: 99, 3: -1}


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (lambda: counted(now=1 << 60), "now=.*: an instant"),
        (lambda: counted(processors=0), "at least 1"),
        (lambda: counted(size=ints(3)), "size has 1 numbers, and submit 4"),
        (lambda: counted(size=np.ones(4)), "size: must be an array of whole numbers"),
        (lambda: counted(submit=None), "submit: must be an array"),
        (lambda: counted(waiting=ints(1, 7)), "job 7 is in waiting, and the columns have 4 jobs"),
        (lambda: counted(waiting=ints(1, 1)), "job 1 is named twice"),
        (lambda: counted(waiting=ints(0, 1)), "job 0 is named twice"),
        (lambda: counted(submit=ints(0, 3, 2, 4)), "job 2 waits behind one that came later"),
        (lambda: counted(submit=ints(0, 0, 0, 6)), "job 3 has no submit from 0 to now"),
        (lambda: counted(arrived=ints(0)), "job 0 has arrived, and does not wait"),
        (lambda: counted(corrected=ints(1)), "job 1 was corrected, and does not run"),
        (lambda: counted(size=ints(3, 0, 1, 1)), "job 1 has no size"),
        (lambda: counted(estimate=ints(10, 0, 1, 1)), "job 1 has no estimate"),
        (lambda: counted(estimate=ints(10, 1 << 62, 1, 1)), "job 1 has no estimate"),
        (lambda: counted(estimate=ints(1 << 59, 1 << 59, 1 << 59, 1)), "come to more than"),
        (lambda: counted(standing=Plan(promised={1: 1 << 62})), "of the last plan: must be a whole number"),
        (lambda: counted(standing=Plan(expected={1: -(1 << 63) - 1})), "of the last plan: must be a whole number"),
        (lambda: counted(standing=Plan(deadlines={1: None})), "of the last plan: must be a whole number"),  # type: ignore[dict-item]
        (lambda: counted(standing=None), "standing: must be a Plan"),
        (lambda: counted(now=5.5), "now: must be a whole number"),
        (lambda: counted(room_mw=1 << 70), "room_mw: must be a whole number"),
        (lambda: counted(arrived=ints(1, 1)), "job 1 is named twice among arrived"),
        (lambda: counted(future=ints(3, 3), waiting=ints(1, 2)), "job 3 is named twice among future"),
        (lambda: counted(future=ints(1)), "job 1 is to come, and is among"),
        (lambda: counted(requests=on_nodes().requests), "the cluster has none"),
        (lambda: counted(standing=Plan(deadlines={1: 50})), "job 1 was to end by 50, which is not its deadline"),
        (lambda: counted(start=ints(6, -1, -1, -1)), "job 0 has no start from 0 to now"),
        (lambda: counted(deadline_s=ints(-1, -2, -1, -1)), "job 1 has no deadline"),
        (lambda: counted(size=ints(5, 1, 1, 1)), "running jobs have 5 processors, and the machine 4"),
        (lambda: counted(free=2), "free=2: what runs leaves 1"),
        (lambda: counted(draws_mw=ints(5, 1, 1, 1), room_mw=4), "running jobs take more than the 4 mW of power"),
        (lambda: counted(draws_mw=ints(1, -1, 1, 1), room_mw=4), "job 1 takes no number of mW of power from 0 on"),
        (lambda: on_nodes(requests=None), "`requests` must say"),
        (lambda: with_out(Outage((0,), 6, NEVER)), "only one that has begun may have no known end"),
        (lambda: with_out(Outage((0,), 6, 1 << 60)), "only one that has begun"),
        (lambda: asked(reservation=ints(-1, 0, -1, -1, -1, -1)), "reservation: must be from -1"),
        (lambda: on_nodes(standing=Plan(nodes={1: [0, 1, 9]})), "job 1 is on a node that is not there"),
        (lambda: on_nodes(standing=Plan(nodes={1: [0]})), "nodes has 1 entries for job 1"),
        (lambda: on_nodes(standing=Plan(nodes=None)), "nodes and devices must be mappings"),  # type: ignore[arg-type]
        (lambda: on_nodes(standing=Plan(nodes={3: 2.5})), "nodes of job 3: must be whole numbers"),  # type: ignore[dict-item]
        (lambda: on_nodes(standing=Plan(nodes={3: [2]}, devices={3: [7]})), "job 3 was planned"),
        (lambda: on_nodes(nodes={}), "nodes has 0 entries for job 0, which has 2 units"),
        (lambda: on_nodes(nodes={0: ints(0, 4)}), "job 0 is on a node that is not there: they go from 0 to 3"),
        (lambda: on_nodes(nodes={0: ints(0, 0)}), "job 0 runs at 5 on node 0, which brings 8 cores into use where"),
        (lambda: on_nodes(free=9), "free=9: what runs leaves 8"),
        (lambda: on_nodes(running=ints(), waiting=ints(1), free=9), "free=9: what runs leaves 16"),
        (lambda: on_nodes(processors=17), "processors=17: the cluster has 16"),
        (lambda: on_nodes(nodes={0: [0.0, 1.0]}), "nodes of job 0: must be whole numbers"),
        (lambda: on_nodes(nodes=None), "nodes has 0 entries for job 0"),
        (lambda: asked(need=np.ones((6, 2))), "requests.need: must be whole numbers"),
        (lambda: asked(among=ints(1, 1, 1, 1, 1, 2)), "job 5 asks for nodes of a set that is not there"),
        (lambda: asked(need=np.array([[1 << 62, 0], *[[1, 0]] * 5], np.int64)), "job 0 needs less than 0 or more than"),
        (lambda: asked(units=ints(2, 3)), "requests.units: must be whole numbers in 64 bits, of the shape"),
        (
            lambda: asked(need=np.ones((6, 1), np.int64)),
            "requests.need: must be whole numbers in 64 bits, of the shape",
        ),
        (lambda: asked(units=ints(2, 0, 1, 1, 1, 1)), "job 1 asks for no unit"),
        (lambda: asked(share=ints(*[1000] * 5, 0)), "job 5 has no share of devices"),
        (lambda: asked(exclusive=ints(0, 2, 0, 0, 0, 0)), "job 1 is neither exclusive"),
        (lambda: asked(per_node=ints(0, -1, 0, 0, 0, 0)), "job 1 allows less than no unit"),
        (lambda: asked(need=np.array([[4, 0], [0, 0], *[[1, 0]] * 4], np.int64)), "job 1 needs nothing"),
        (lambda: asked(need=np.array([[4, 0], [1, -1], *[[1, 0]] * 4], np.int64)), "job 1 needs less than 0"),
    ],
)
def test_a_state_that_cannot_be_is_refused(state: Any, says: str) -> None:
    with pytest.raises(StateError, match=says):
        policy("easy").decide(state())


def test_jobs_that_may_come_are_like_those_that_fit() -> None:
    """A planner that keeps room for jobs like the last that came leaves out those that never fit, and those who are
    gone and ask for what cannot be."""
    state = on_nodes(submit=ints(0, 0, 1, 2, 3, 4))
    assert policy("plan-af:foresight=3").decide(state).reasons.keys() >= {2, 4, 5}
    for column, value in (("exclusive", 2), ("units", -5), ("among", 99), ("share", 0), ("per_node", -7)):
        values = getattr(state.requests, column).copy()
        values[5] = value
        assert state.requests is not None
        gone = replace(state, waiting=ints(1, 3), requests=replace(state.requests, **{column: values}))
        assert policy("plan-af:foresight=6").decide(gone).starts == [3]
        starts = begin_at(gone, policy("plan-af:foresight=6")).starts(ints(10, 10, 10))
        assert set(starts) == {1, 3}


@pytest.mark.parametrize("name", ["conservative", "dbf", "conservative:depth=5", "dbf:depth=1", "plan-deadline"])
def test_whom_no_plan_knows_is_new(name: str) -> None:
    """Promises are made though nobody is said to have arrived, and whoever it was."""
    idle = counted(running=NONE, free=4, size=ints(3, 4, 1, 2), start=ints(-1, -1, -1, -1))
    for arrived in (NONE, ints(1), ints(1, 2, 3)):
        plan = policy(name).decide(replace(idle, arrived=arrived))
        assert plan.starts == [1]
        assert {**plan.promised, **plan.expected}.get(2, 10) == 10


def test_who_promises_nothing_keeps_no_promise_of_others() -> None:
    plan = policy("plan-af").decide(counted(standing=Plan(promised={1: 0})))
    assert plan.promised == {}
    assert plan.expected.keys() | set(plan.starts) == {1, 2}


def test_estimates_may_be_corrected_of_jobs_that_have_ended_since() -> None:
    """Between two passes a job may outlive its estimate and end."""
    workload = generate(150, 16, load=1.1)
    for name in ("easy", "plan-af:decodes=3"):
        whole, asked = (
            replay(workload, name, estimate="last2:correct=double", every_s=300, event_by_event=each)
            for each in (False, True)
        )
        assert whole.start.tolist() == asked.start.tolist()


def test_a_job_that_wants_a_node_for_itself_needs_one_that_has_enough() -> None:
    """Also where a policy in Python names the node."""
    requests = asked(exclusive=ints(*[1] * 6)).requests
    assert requests is not None
    use = NodeUse(CLUSTER, requests)
    assert use.start(3, Plan(nodes={3: [0]}), 5, 15) == "on a node that has less than a unit needs"
    assert use.start(3, Plan(nodes={3: [2]}), 5, 15) == ""


def test_random_and_hostile_states_in_processes_of_their_own() -> None:
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore"}
    command = [sys.executable, "-m", "tests.states", "--random", "60", "--hostile", "150", "--seconds", "60"]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "wrong" not in done.stdout
