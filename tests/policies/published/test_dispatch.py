"""The dispatchers of the paper as policies: who is in the window, what a plan says, what cannot be dispatched."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.errors import PolicyError, SettingError
from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.plan import Plan
from dovetail.model.requests import Requests
from dovetail.model.state import State
from dovetail.optimize.dispatch.problem import SOLVERS, Dispatched, dispatch_problem
from dovetail.optimize.dispatch.solve import MODELS
from dovetail.policies.published.dispatch import Dispatch
from dovetail.policies.registry import names, policy
from tests.optimize.dispatching import wrong

CLUSTER = by_node(
    ("cores", "memory", "gpus"), (NodeKind("plain", 3, (4, 8, 0)), NodeKind("gpu", 1, (4, 8, 2))), shared="gpus"
)


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def state_of(
    jobs: list[dict[str, Any]], *, now: int = 100, running: dict[int, tuple[int, ...]] | None = None,
    devices: dict[int, tuple[int, ...]] | None = None, cluster: Cluster = CLUSTER,
) -> State:  # fmt: skip
    """Jobs by number; those in `running` run on the nodes given, since their `start`."""
    held = running or {}

    def column(name: str, default: int) -> Ints:
        return ints(*(job.get(name, default) for job in jobs))

    kinds = np.arange(len(cluster.kinds))
    will_do = column("kinds", (1 << len(kinds)) - 1)[:, np.newaxis] >> kinds & 1 > 0
    requests = Requests(
        column("units", 1), np.array([job.get("need", (1, 1, 0)) for job in jobs], np.int64), column("share", 1000),
        column("per_node", 0), column("exclusive", 0), ints(*range(len(jobs))), will_do,
        column("reservation", -1),
    )  # fmt: skip
    waiting = ints(*(i for i in range(len(jobs)) if i not in held))
    taken = int(sum(requests.taken(job, cluster, at, [0] * len(at))[:, 0].sum() for job, at in held.items()))
    return State(
        now=now, processors=cluster.processors, free=cluster.processors - taken, waiting=waiting,
        running=ints(*held), arrived=ints(), ended=ints(), submit=column("submit", 0), size=column("units", 1),
        limit=column("estimate", 10),
        estimate=column("estimate", 10), user=column("user", 0), start=column("start", -1), cluster=cluster,
        requests=requests, nodes={job: ints(*at) for job, at in held.items()},
        devices={job: ints(*bits) for job, bits in (devices or {}).items()},
    )  # fmt: skip


def random_state(rng: Random) -> State:
    jobs: list[dict[str, Any]] = [
        {
            "submit": rng.randint(0, 100), "estimate": rng.randint(1, 30), "units": rng.choice((1, 1, 2, 3)),
            "need": (rng.randint(1, 4), rng.randint(0, 8), int(rng.random() < 0.2)), "per_node": rng.choice((0, 0, 1)),
        }
        for _ in range(8)
    ]  # fmt: skip
    for job in jobs:
        if job["need"][2]:
            job["units"] = 1
    jobs.sort(key=lambda job: job["submit"])
    jobs[0] |= {"start": 100 - rng.randint(0, 40), "units": 2, "need": (2, 2, 0)}
    jobs[1] |= {"start": 90, "units": 1, "need": (1, 1, 1)}
    return state_of(jobs, running={0: (0, 2), 1: (3,)}, devices={0: (0, 0), 1: (2,)})


def test_the_window_is_the_highest_slowdowns() -> None:
    jobs = [
        {"submit": 0, "estimate": 100},  # 2
        {"submit": 20, "estimate": 10, "units": 2},  # 9, of two units
        {"submit": 20, "estimate": 10},  # 9
        {"submit": 90, "estimate": 1},  # 11
        {"submit": 60, "estimate": 5},  # 9, and the shortest with that
        {"submit": 20, "estimate": 10},  # 9, later in line
    ]
    assert [job.job for job in dispatch_problem(state_of(jobs), 100).queue] == [3, 4, 2, 5, 1, 0]
    assert [job.job for job in dispatch_problem(state_of(jobs), 3).queue] == [3, 4, 2]
    long = [{"submit": 0, "estimate": 100}, {"submit": 50, "estimate": 50, "units": 3}]  # as slow; more, though shorter
    assert [job.job for job in dispatch_problem(state_of(long)).queue] == [1, 0]
    assert [job.job for job in dispatch_problem(state_of(long), shorter=False).queue] == [0, 1]


def test_only_jobs_that_fit_now_are_in_the_problem() -> None:
    """Three plain nodes and one with GPUs, of 4 cores each; job 0 has two cores of each plain one."""
    jobs: list[dict[str, Any]] = [
        {"units": 3, "need": (2, 1, 0), "start": 95},
        {"units": 2, "need": (4, 1, 0)},  # one node is empty, and it wants two
        {"units": 5, "need": (2, 1, 0)},  # 2 on the empty one and 3 beside job 0
        {"units": 6, "need": (2, 1, 0)},
        {"need": (1, 1, 1)},
    ]
    state = state_of(jobs, running={0: (0, 1, 2)})
    problem = dispatch_problem(state)
    assert [job.job for job in problem.queue] == [4, 2]
    assert problem.beside
    assert problem.places(problem.queue[1]).tolist() == [1, 1, 1, 2]
    whole = dispatch_problem(state, subset="all")
    assert [job.job for job in whole.queue] == [4, 1, 2, 3]
    assert whole.places(whole.queue[2]).tolist() == [2, 2, 2, 2]


def test_what_runs_lasts_at_least_a_second_more() -> None:
    jobs = [{"start": 50, "estimate": 60}, {"start": 40, "estimate": 10}, {"submit": 1, "estimate": 0}]
    problem = dispatch_problem(state_of(jobs, running={0: (1,), 1: (0,)}), 100)
    assert [(held.job, held.remaining, held.nodes) for held in problem.running] == [(1, 1, (0,)), (0, 10, (1,))]
    assert problem.queue[0].duration == 1


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", range(6))
def test_plans_fit_on_the_nodes(model: str, seed: int, solver: str) -> None:
    state = random_state(Random(seed))
    dispatcher = Dispatch(model=model, delta=0.5, most=0.5, solver=solver)
    plan = dispatcher.decide(state)
    problem = dispatch_problem(state, 100)
    assert set(plan.starts) | set(plan.expected) <= {job.job for job in problem.queue}
    assert not set(plan.starts) & set(plan.expected)
    assert set(plan.nodes) == set(plan.starts) == set(plan.devices)
    assert all(at > state.now for at in plan.expected.values())
    starts = tuple(plan.expected.get(job.job, state.now) for job in problem.queue)
    nodes = [tuple(plan.nodes.get(job.job, ())) for job in problem.queue]
    assert not wrong(problem, starts, nodes)
    held = {3: 2}  # device 1 of node 3, by job 1
    for job in plan.starts:
        for node, bits in zip(plan.nodes[job], plan.devices[job], strict=True):
            assert not held.get(node, 0) & bits
            assert bits.bit_count() == {one.job: one.need[2] for one in problem.queue}[job]
            assert bits < 4
            held[node] = held.get(node, 0) | bits
    again = dispatcher.decide(state)
    assert again == plan


def test_devices_are_the_lowest_that_nobody_has() -> None:
    jobs = [{"need": (1, 1, 1), "start": 95}, {"need": (1, 1, 1), "submit": 1}]
    state = state_of(jobs, running={0: (3,)}, devices={0: (1,)})
    plan = Dispatch().decide(state)
    assert plan.starts == [1]
    assert plan.nodes == {1: (3,)}
    assert plan.devices == {1: [2]}


def test_nobody_waits() -> None:
    assert Dispatch().decide(state_of([])) == Plan()


def test_where_nobody_fits_nothing_is_solved() -> None:
    """With subset=all it is, and then it says when it expects whom."""
    jobs = [{"units": 4, "need": (4, 1, 0), "start": 95, "estimate": 30}, {"need": (1, 1, 0), "submit": 1}]
    state = state_of(jobs, running={0: (0, 1, 2, 3)})
    assert Dispatch().decide(state) == Plan()
    plan = Dispatch(subset="all").decide(state)
    assert (plan.starts, plan.expected, plan.wake) == ([], {1: 125}, None)


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("model", MODELS)
def test_a_search_that_finds_nothing_starts_nobody_and_halves_the_window(model: str, solver: str) -> None:
    nothing = Dispatch(model=model, delta=1e-9, most=2e-9, solver=solver)
    state = state_of([{"estimate": 20}, {}, {}, {}, {}])
    plan = nothing.decide(state)
    assert (plan.starts, plan.nodes, plan.expected, plan.wake) == ([], {}, {}, 101)
    assert plan.memory == {"pcp21": 2 if model.startswith("pcp21") else 50}
    state = replace(state, standing=Plan(memory={"pcp21": 2}))
    assert [job.job for job in nothing.solve(state)[0].queue] == [1, 2]
    if solver == "sat":  # the other one looks at its limit when it branches, and may not have to
        again = nothing.decide(state)
        assert again.memory == nothing.decide(replace(state, standing=again)).memory == {"pcp21": 1}
    found = Dispatch(model=model, solver=solver).decide(state)
    assert found.starts == [1, 2]
    assert found.memory == {"pcp21": 100}
    assert nothing.decide(replace(state, waiting=ints())).memory == {"pcp21": 2}


def test_a_search_that_ended_at_its_last_limit_halves_the_window_too() -> None:
    """Of PCP'19 and HCP'19, though there is a plan."""
    for settled, window in {True: 100, False: 50}.items():
        state = state_of([{}])
        found = Dispatched("feasible", 1.0, (100,), ((0,),), settled=settled)
        assert Dispatch("pcp19")._next_window(state, dispatch_problem(state), found) == window
        assert Dispatch("pcp21")._next_window(state, dispatch_problem(state), found) == 100


def test_whole_nodes() -> None:
    """A unit that takes its node needs all of it; nodes of unlike size are refused, unless one kind is named."""
    alike = by_node(("cores", "memory"), (NodeKind("a", 1, (4, 8)), NodeKind("b", 2, (4, 8))))
    jobs: list[dict[str, Any]] = [
        {"need": (1, 0), "start": 95}, {"need": (1, 0), "exclusive": 1, "units": 2}, {"need": (0, 1)},
    ]  # fmt: skip
    state = state_of(jobs, running={0: (0,)}, cluster=alike)
    assert next(job.need for job in dispatch_problem(state, 9).queue if job.job == 1) == (4, 8)
    plan = Dispatch().decide(state)
    assert plan.nodes[1] == (1, 2)
    assert plan.nodes[2] == (0,)
    jobs = [{"need": (1, 0, 0), "exclusive": 1}]
    with pytest.raises(PolicyError, match="whole nodes, and those that will do are of 2 sizes"):
        Dispatch().decide(state_of(jobs))
    jobs[0]["kinds"] = 1
    assert Dispatch().decide(state_of(jobs)).starts == [0]


def test_what_cannot_be_dispatched() -> None:
    with pytest.raises(PolicyError, match="pcp21 at 100 s: job 0 takes 500 thousandths of gpus"):
        Dispatch().decide(state_of([{"need": (1, 1, 1), "share": 500}]))
    with pytest.raises(PolicyError, match="job 0: its 5 units do not fit"):
        Dispatch(subset="all").decide(state_of([{"units": 5, "need": (4, 1, 0)}]))
    with pytest.raises(PolicyError, match="job 0 needs nothing"):
        Dispatch().decide(state_of([{"need": (0, 0, 0)}]))
    with pytest.raises(PolicyError, match="those of the cluster are not known"):
        Dispatch().decide(state_of([{"need": ()}], cluster=Cluster(8)))


def test_names_and_settings() -> None:
    assert set(MODELS) <= set(names())
    for model in MODELS:
        assert policy(model) == Dispatch(model=model, name=model)
    text = "pcp21:window=20,delta=0.5,most=2,clock=wall,subset=all,limits=text,solver=cp,pairs=no,alike=yes,look=no"
    made = policy(text)
    assert made == Dispatch("pcp21", 20, 0.5, 2.0, "wall", "all", "text", "cp", False, True, False, text)
    for wrong_text in (
        "pcp19:window=0",
        "pcp19:delta=0",
        "pcp21:delta=3,most=2",
        "pcp21:clock=sun",
        "pcp21:subset=some",
        "pcp21:limits=none",
        "pcp21:solver=mip",
        "pcp21:pairs=1",
        "pcp21:model=pcp19",
    ):
        with pytest.raises(SettingError):
            policy(wrong_text)
