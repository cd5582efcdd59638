"""The dispatchers of the paper: never better than the best plan of all, never a plan that nodes cannot carry."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest

from dovetail.errors import SettingError
from dovetail.model.cluster import NodeKind, by_node
from dovetail.optimize.dispatch.contiguous import positions_lost
from dovetail.optimize.dispatch.cpsat import MODELS, solve_dispatch
from dovetail.optimize.dispatch.greedy import listed
from dovetail.optimize.dispatch.problem import (
    Dispatched,
    DispatchProblem,
    Limits,
    Queued,
    Running,
    pooled,
    running_positions,
    total_slowdown,
)
from tests.optimize.dispatching import best_by_brute_force, random_dispatch, wrong, wrong_positions

SEEDS = range(60)
FAR = 1e-9  # total slowdowns are sums of a few fractions with small denominators: unequal ones differ by more


def paper_example() -> DispatchProblem:
    """Figure 2: four nodes of 4 cores and 4 memory, two with 2 GPUs, two with 2 MICs; J1 runs, J2 to J4 wait."""
    kinds = (NodeKind("gpu", 2, (4, 4, 2, 0)), NodeKind("mic", 2, (4, 4, 0, 2)))
    cluster = by_node(("cores", "memory", "gpus", "mics"), kinds)
    queue = (
        Queued(2, 0, 10, 1, (2, 4, 2, 0), 3),
        Queued(3, 0, 10, 2, (4, 1, 0, 0), 3),
        Queued(4, 0, 10, 1, (1, 1, 0, 1), 3),
    )
    return DispatchProblem(0, cluster, queue, (Running(1, 5, (0,), (1, 3, 1, 0)),))


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_plans_against_brute_force(seed: int) -> None:
    problem = random_dispatch(Random(seed), 3)
    best = best_by_brute_force(problem)
    answers = {model: solve_dispatch(problem, model, Limits(100, 100)) for model in MODELS}
    for model, answer in answers.items():
        assert answer.status == "optimal", model
        assert answer.objective == pytest.approx(total_slowdown(problem, answer.starts), abs=0)
        if model != "hcp19":
            assert not wrong(problem, answer.starts, answer.nodes)
    assert answers["pcp19"].objective == pytest.approx(best, abs=FAR)
    assert answers["pcp21"].objective > best - FAR
    assert answers["pcp21s"].objective == pytest.approx(answers["pcp21"].objective, abs=FAR)
    for model in ("pcp21", "pcp21s"):
        assert not wrong_positions(problem, answers[model])


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_pools_are_a_relaxation_and_what_starts_now_has_nodes(seed: int) -> None:
    from dovetail.optimize.dispatch.cpsat_hcp19 import on_pools

    problem = random_dispatch(Random(seed), 3)
    relaxed = on_pools(problem, Limits(100, 100))
    assert relaxed.ran.status == "optimal"
    assert total_slowdown(problem, relaxed.starts) <= best_by_brute_force(problem) + FAR
    answer = solve_dispatch(problem, "hcp19", Limits(100, 100))
    now = [i for i, at in enumerate(answer.starts) if at == problem.now]
    assert all((len(answer.nodes[i]) == problem.queue[i].units) == (i in now) for i in range(len(problem.queue)))
    started = replace(problem, queue=tuple(problem.queue[i] for i in now))
    assert not wrong(started, tuple(answer.starts[i] for i in now), [answer.nodes[i] for i in now])
    pool = pooled(problem)
    assert not wrong(pool, answer.starts, [(0,)] * len(problem.queue))


def test_pools_go_in_rounds() -> None:
    """Two free cores in the pool, one on each node: a unit of two cores fits the pool and no node."""
    cluster = by_node(("cores",), (NodeKind("plain", 2, (2,)),))
    running = (Running(8, 5, (0,), (1,)), Running(9, 7, (1,), (1,)))
    queue = (Queued(0, 0, 10, 1, (2,), 1), Queued(1, 0, 20, 1, (1,), 1), Queued(2, 0, 20, 1, (1,), 1))
    answer = solve_dispatch(DispatchProblem(0, cluster, queue, running), "hcp19")
    assert answer.rounds == 2
    assert answer.starts[0] > 0
    assert answer.starts[1:] == (0, 0)
    assert sorted(answer.nodes[1] + answer.nodes[2]) == [0, 1]
    assert answer.nodes[0] == ()


@pytest.mark.parametrize("contiguous", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_list_plans(seed: int, contiguous: bool) -> None:
    problem = random_dispatch(Random(seed), 6)
    plan = listed(problem, contiguous=contiguous)
    nodes = tuple(tuple(node for node, _ in places) for places in plan.places)
    assert not wrong(problem, plan.starts, nodes)
    if contiguous:
        positions = tuple(tuple(at for _, at in places) for places in plan.places)
        assert not wrong_positions(problem, Dispatched("feasible", 0.0, plan.starts, nodes, positions))
    held = listed(problem, contiguous=contiguous, later={0, 1})
    assert min(held.starts[:2]) > problem.now


@pytest.mark.parametrize("model", MODELS)
def test_the_papers_example(model: str) -> None:
    """J2 and J3 start now; J4 needs a core of the last two nodes if J3 is there. Ours may do better: J3's second unit
    does not fit beside J2 on node 1, so it is on nodes 2 and 3, and J4 waits, or J4 first and J3 waits."""
    problem = paper_example()
    assert problem.pcp19_variables == 3 + 2 + (4 + 4) // 2 * 1 + 2
    assert problem.pcp21_variables == 3 + 4 * 4
    answer = solve_dispatch(problem, model)
    assert answer.status == "optimal"
    assert answer.starts[0] == 0
    assert answer.nodes[0] == (1,)
    assert answer.objective == pytest.approx(3.5 if model != "hcp19" else answer.objective)
    assert answer.variables > 0
    assert answer.constraints > 0


def test_same_call_same_answer_but_for_times() -> None:
    problem = random_dispatch(Random(5), 8)
    for model in MODELS:
        first, again = (
            replace(solve_dispatch(problem, model, Limits(0.2, 0.4)), modelling_s=0.0, solving_s=0.0) for _ in range(2)
        )
        assert repr(first) == repr(again)


@pytest.mark.parametrize("model", MODELS)
def test_a_search_that_is_given_nothing_finds_nothing(model: str) -> None:
    problem = random_dispatch(Random(5), 8)
    answer = solve_dispatch(problem, model, Limits(1e-9, 4e-9))
    assert answer.status == "unknown"
    assert not answer.starts
    assert not answer.nodes
    assert answer.extensions == 2
    assert answer.objective != answer.objective


def test_limits_are_extended_until_nothing_changes() -> None:
    """PCP'19 takes what it has; PCP'21 goes on, and gives up when two extensions in a row brought nothing."""
    problem = replace(random_dispatch(Random(3), 40), running=())
    first = solve_dispatch(problem, "pcp19", Limits(0.2, 1.6))
    assert (first.status, first.extensions) == ("feasible", 0)
    begun = total_slowdown(problem, listed(problem, contiguous=True).starts)
    still = solve_dispatch(problem, "pcp21", Limits(0.002, 1000, still=2))
    assert still.status == "feasible"
    assert still.extensions >= 2
    assert still.objective <= begun + FAR
    assert solve_dispatch(problem, "pcp21", Limits(0.002, 1000, still=1)).extensions < still.extensions
    assert solve_dispatch(problem, "pcp21", Limits(0.002, 0.005)).extensions == 1


def test_wall_clock() -> None:
    answer = solve_dispatch(random_dispatch(Random(1), 3), "pcp21", Limits(5, 5, clock="wall"))
    assert answer.status == "optimal"


def test_running_jobs_have_the_least_positions_of_their_nodes() -> None:
    cluster = by_node(("cores", "memory"), (NodeKind("plain", 2, (4, 8)),))
    running = (Running(1, 5, (1, 1), (1, 2)), Running(2, 5, (0,), (2, 0)), Running(3, 5, (1,), (2, 3)))
    problem = DispatchProblem(0, cluster, (), running)
    assert running_positions(problem) == [[(4, 8), (5, 10)], [(0, -1)], [(6, 12)]]


def lost_problem() -> tuple[DispatchProblem, Dispatched]:
    """One node of 4 cores. Later a job has core 0 and another cores 2 and 3... so core 1 and nothing beside it."""
    cluster = by_node(("cores",), (NodeKind("plain", 1, (4,)),))
    queue = (
        Queued(1, 0, 10, 1, (1,), 1),
        Queued(2, 0, 10, 1, (1,), 1),
        Queued(3, 0, 5, 1, (2,), 1),
    )
    problem = DispatchProblem(0, cluster, queue)
    return problem, Dispatched("feasible", 0.0, (0, 0, 10), ((0,), (0,), (0,)), (((0,),), ((2,),), ((0,),)))


def test_positions_lost() -> None:
    problem, answer = lost_problem()
    assert positions_lost(problem, answer) == [3]  # cores 1 and 3 are free: two, but not side by side
    beside = replace(answer, positions=(((0,),), ((1,),), ((0,),)))
    assert positions_lost(problem, beside) == []  # cores 2 and 3 are: it waits for another reason
    narrow = replace(problem, queue=(*problem.queue[:2], replace(problem.queue[2], need=(3,))))
    assert positions_lost(narrow, answer) == []  # three do not fit on the node either
    assert positions_lost(problem, replace(answer, positions=())) == []


def test_positions_are_not_lost_to_who_comes_after_or_to_itself() -> None:
    cluster = by_node(("cores",), (NodeKind("plain", 1, (5,)),))
    queue = (Queued(1, 0, 20, 1, (1,), 1), Queued(2, 0, 10, 1, (1,), 1), Queued(3, 0, 5, 1, (2,), 1))
    problem, where = DispatchProblem(0, cluster, queue), ((0,), (0,), (0,))
    # From 10 s on job 2 splits what is free, but job 3 would have ended; from 4 s on job 3 itself does, where it is.
    after = Dispatched("feasible", 0.0, (0, 10, 20), where, (((1,),), ((3,),), ((0,),)))
    itself = Dispatched("feasible", 0.0, (0, 20, 4), where, (((0,),), ((0,),), ((2,),)))
    assert positions_lost(problem, after) == []
    assert positions_lost(problem, itself) == []


def test_an_extension_adds_what_is_missing_and_a_restart_gets_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail.optimize.dispatch import cpsat_limits as search

    given: list[float] = []
    real = search._solver

    def watched(limits: Limits, limit: float, work_per_s: float) -> object:
        given.append(limit)
        return real(limits, 1e-9, work_per_s)  # which finds nothing

    monkeypatch.setattr(search, "_solver", watched)
    problem = random_dispatch(Random(5), 8)
    for model, shares in (("pcp19", [1, 2, 4, 8]), ("hcp19", [1, 2, 4, 8]), ("pcp21", [1, 1, 2, 4])):
        given.clear()
        assert solve_dispatch(problem, model, Limits(1, 8)).extensions == 3
        assert given == shares


def test_positions_cost_something_now_and_then() -> None:
    """PCP'21 is stricter than nodes are: some problem shows it."""
    problem = DispatchProblem(
        0,
        by_node(("cores",), (NodeKind("plain", 1, (4,)),)),
        (Queued(0, 0, 1, 1, (3,), 1), Queued(1, 0, 4, 1, (2,), 1)),
        (Running(8, 1, (0,), (1,)), Running(9, 3, (0,), (1,)), Running(10, 1, (0,), (1,))),
    )
    free, strict = (solve_dispatch(problem, model) for model in ("pcp19", "pcp21"))
    assert free.status == strict.status == "optimal"
    assert strict.objective > free.objective
    assert best_by_brute_force(problem) == pytest.approx(free.objective)


def test_messages() -> None:
    with pytest.raises(SettingError, match="no model 'pcp20': choose from pcp19, hcp19, pcp21, pcp21s"):
        solve_dispatch(paper_example(), "pcp20")
    for broken in ({"delta": 0.0}, {"delta": 2.0, "most": 1.0}, {"clock": "cpu"}, {"still": 0}):
        with pytest.raises(SettingError):
            Limits(**broken)
