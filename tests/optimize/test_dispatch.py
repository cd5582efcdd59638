"""The dispatchers of the paper: never better than the best plan of all, never a plan that nodes cannot carry."""

from __future__ import annotations

import gc
from dataclasses import replace
from random import Random

import pytest

from dovetail.errors import SettingError
from dovetail.model.cluster import NodeKind, by_node
from dovetail.optimize.dispatch.alike import fewer_nodes
from dovetail.optimize.dispatch.greedy import listed
from dovetail.optimize.dispatch.problem import (
    SOLVERS,
    WAYS,
    Dispatched,
    DispatchProblem,
    Limits,
    Queued,
    Running,
    pair_rules,
    pooled,
    running_boxes,
    running_positions,
    total_slowdown,
    units_by_node,
)
from dovetail.optimize.dispatch.solve import MODELS, solve_dispatch
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
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_plans_against_brute_force(seed: int, solver: str) -> None:
    problem = random_dispatch(Random(seed), 3)
    best = best_by_brute_force(problem)
    answers = {model: solve_dispatch(problem, model, Limits(100, 100), solver=solver) for model in MODELS}
    for model, answer in answers.items():
        assert answer.status == ("feasible" if (model, solver) == ("pcp21s", "cp") else "optimal"), model
        if model != "hcp19":
            assert answer.objective == pytest.approx(total_slowdown(problem, answer.starts), abs=0)
            assert not wrong(problem, answer.starts, answer.nodes)
    assert answers["pcp19"].objective == pytest.approx(best, abs=FAR)
    assert answers["pcp21"].objective > best - FAR
    assert answers["pcp21s"].objective > answers["pcp21"].objective - FAR
    if solver == "sat":  # with cp it never looks for other positions, and may miss the best plan
        assert answers["pcp21s"].objective == pytest.approx(answers["pcp21"].objective, abs=FAR)
    for model in ("pcp21", "pcp21s"):
        assert not wrong_positions(problem, answers[model])


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_pools_are_a_relaxation_and_what_starts_now_has_nodes(seed: int, solver: str) -> None:
    problem = random_dispatch(Random(seed), 3)
    answer = solve_dispatch(problem, "hcp19", Limits(100, 100), solver=solver)
    assert answer.status == "optimal"
    assert answer.objective <= best_by_brute_force(problem) + FAR
    now = [i for i, at in enumerate(answer.starts) if at == problem.now]
    assert all((len(answer.nodes[i]) == problem.queue[i].units) == (i in now) for i in range(len(problem.queue)))
    started = replace(problem, queue=tuple(problem.queue[i] for i in now))
    assert not wrong(started, tuple(answer.starts[i] for i in now), [answer.nodes[i] for i in now])
    planned = tuple(max(at, problem.now) for at in answer.starts)  # -1: started in the pool, without nodes
    assert not wrong(pooled(problem), planned, [(0,)] * len(problem.queue))


def test_who_starts_in_the_pool_and_finds_no_nodes_waits() -> None:
    """Two free cores in the pool, one on each node: a unit of two cores fits the pool and no node."""
    cluster = by_node(("cores",), (NodeKind("plain", 2, (2,)),))
    running = (Running(8, 5, (0,), (1,)), Running(9, 7, (1,), (1,)))
    queue = (Queued(0, 0, 10, 1, (2,), 1), Queued(1, 0, 20, 1, (1,), 1), Queued(2, 0, 20, 1, (1,), 1))
    answer = solve_dispatch(DispatchProblem(0, cluster, queue, running), "hcp19")
    assert (answer.starts[0], answer.nodes[0]) == (-1, ())
    assert min(answer.starts[1:]) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_beside_what_runs(seed: int) -> None:
    """Jobs that fit now: PCP'19 puts them where there is room now, and both solvers find the same sum."""
    rng, queue = Random(seed), list[Queued]()
    while not queue:
        whole = random_dispatch(rng, 6)
        queue = [job for job in whole.queue if units_by_node(whole.cluster, whole.free_now, job).sum() >= job.units]
    problem = replace(whole, queue=tuple(queue[:3]), beside=True)
    sat, cp = (solve_dispatch(problem, "pcp19", Limits(100, 100), solver=solver) for solver in SOLVERS)
    assert sat.status == cp.status == "optimal"
    assert sat.objective == pytest.approx(cp.objective, abs=FAR)
    for answer in (sat, cp):
        assert not wrong(problem, answer.starts, answer.nodes)
        for job, where in zip(problem.queue, answer.nodes, strict=True):
            assert all(where.count(node) <= problem.places(job)[node] for node in where)


def test_nodes_that_are_alike_by_hand() -> None:
    """Nodes 0 and 5 run something. Of 1, 2 and 3, which are alike, only job 0 can use one; of 4, 6 and 7 each job."""
    cluster = by_node(("cores",), (NodeKind("plain", 4, (4,)), NodeKind("wide", 4, (8,))))
    queue = (Queued(0, 0, 10, 1, (3,), 3), Queued(1, 0, 10, 1, (6,), 3))
    few, kept = fewer_nodes(DispatchProblem(0, cluster, queue, (Running(9, 7, (0, 5), (1,)),)))
    assert kept.tolist() == [0, 1, 4, 5, 6]
    assert few.free_now.tolist() == [[3], [4], [8], [7], [8]]


@pytest.mark.parametrize("solver", SOLVERS)
def test_nodes_on_which_the_same_runs_elsewhere_are_not_alike(solver: str) -> None:
    """One core of each node is in use for 5 s and one for 10 s; on the second node the longer one is in the middle."""
    cluster = by_node(("cores",), (NodeKind("plain", 2, (4,)),))
    running = (Running(1, 5, (0,), (1,)), Running(2, 10, (0, 1), (1,)), Running(3, 5, (1,), (1,)))
    problem = DispatchProblem(0, cluster, (Queued(0, 0, 10, 1, (3,), 1),), running)
    for alike in (False, True):
        assert solve_dispatch(problem, "pcp21", solver=solver, alike=alike).starts == (5,)


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("seed", SEEDS)
def test_nodes_that_are_alike(seed: int, solver: str) -> None:
    """As good a plan, on nodes and at positions of the whole cluster, with no more variables."""
    problem = random_dispatch(Random(seed), 3)
    for model in ("pcp19", "pcp21"):
        whole, few = (
            solve_dispatch(problem, model, Limits(100, 100), solver=solver, alike=alike) for alike in (False, True)
        )
        assert few.objective == pytest.approx(whole.objective, abs=FAR)
        assert few.variables <= whole.variables
        assert not wrong(problem, few.starts, few.nodes)
        assert model == "pcp19" or not wrong_positions(problem, few)


def test_pairs_by_hand() -> None:
    """Ten cores. What runs has 6 of them for 10 s; job 0 wants 5 for 10 s, so the two cannot overlap, nor can 0 and 1.
    Job 2 takes less than job 3, job 3 more than job 2; neither has a resource in common with job 4."""
    cluster = by_node(("cores", "memory"), (NodeKind("plain", 1, (10, 10)),))
    queue = (
        Queued(0, 0, 10, 1, (5, 0), 1), Queued(1, 0, 9, 1, (8, 0), 1), Queued(2, 0, 2, 1, (1, 0), 1),
        Queued(3, 0, 3, 1, (1, 0), 1), Queued(4, 0, 3, 1, (0, 1), 1),
    )  # fmt: skip
    problem = DispatchProblem(0, cluster, queue, (Running(9, 10, (0,), (6, 0)),))
    apart, in_order = pair_rules(problem)
    assert apart == [(0, 1), (0, 2), (1, 2)]
    assert in_order == [(2, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_pairs(seed: int) -> None:
    """Who cannot overlap by what both take does not in any plan; the order may cost something, and both solvers keep
    it."""
    problem = random_dispatch(Random(seed), 4)
    apart, in_order = pair_rules(problem)
    free, held = solve_dispatch(problem, "pcp21", Limits(100, 100)), len(problem.running)
    begins = [problem.now] * held + list(free.starts)
    lasts = [one.remaining for one in problem.running] + [job.duration for job in problem.queue]
    for i, j in apart:
        assert begins[i] + lasts[i] <= begins[j] or begins[j] + lasts[j] <= begins[i]
    sat, cp = (solve_dispatch(problem, "pcp21", Limits(100, 100), solver=solver, pairs=True) for solver in SOLVERS)
    assert sat.objective == pytest.approx(cp.objective, abs=FAR)
    assert sat.objective > free.objective - FAR
    assert solve_dispatch(problem, "pcp21", Limits(100, 100), solver="cp").objective == pytest.approx(free.objective)
    for answer in (sat, cp):
        assert not wrong_positions(problem, answer)
        assert all(answer.starts[i] <= answer.starts[j] for i, j in in_order)


@pytest.mark.parametrize("model", ["pcp21", "pcp21s"])
@pytest.mark.parametrize("seed", SEEDS)
def test_looking_for_room_finds_the_same_plan(seed: int, model: str) -> None:
    problem = random_dispatch(Random(seed), 4)
    for pairs in (False, True):
        blind, seen = (
            solve_dispatch(problem, model, Limits(100, 100), solver="cp", pairs=pairs, look=look)
            for look in (False, True)
        )
        plans = [(one.status, one.starts, one.nodes, one.positions) for one in (blind, seen)]
        assert plans[0] == plans[1]


def test_who_waits_for_room_costs_no_fail() -> None:
    """Of four cores two are free on each node, and a unit needs three: blind, it is tried now."""
    cluster = by_node(("cores",), (NodeKind("node", 2, (4,)),))
    running = (Running(1, 10, (0,), (2,)), Running(2, 20, (1,), (2,)))
    problem = DispatchProblem(0, cluster, (Queued(3, 0, 5, 1, (3,), 1),), running)
    blind, seen = (solve_dispatch(problem, "pcp21", solver="cp", look=look) for look in (False, True))
    assert seen.starts == blind.starts == (10,)
    assert seen.conflicts == 0 < blind.conflicts


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
    assert answer.objective == pytest.approx(3.5 if model != "hcp19" else 3)  # in the pool all start now
    assert answer.variables > 0
    assert answer.constraints > 0


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("model", MODELS)
def test_same_call_same_answer_but_for_times(model: str, solver: str) -> None:
    problem = random_dispatch(Random(5), 8)
    first, again = (
        replace(solve_dispatch(problem, model, Limits(0.2, 0.4), solver=solver), modelling_s=0.0, solving_s=0.0)
        for _ in range(2)
    )
    assert repr(first) == repr(again)


@pytest.mark.parametrize("model", MODELS)
def test_the_cp_solver_is_freed(model: str) -> None:
    """It holds what asks it for its limit, which held it: a replay would keep the models of all passes."""
    solve_dispatch(random_dispatch(Random(5), 8), model, Limits(0.2, 0.4), solver="cp")
    gc.collect()
    left = [one for one in gc.get_objects() if type(one).__module__ == "ortools.constraint_solver.pywrapcp"]
    assert not [one for one in left if type(one).__name__ == "Solver"]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("model", MODELS)
def test_a_search_that_is_given_nothing_finds_nothing(model: str, solver: str, way: str) -> None:
    problem = random_dispatch(Random(5), 8)
    answer = solve_dispatch(problem, model, Limits(1e-9, 4e-9, way=way), solver=solver)
    assert answer.status == "unknown"
    assert not answer.starts
    assert not answer.nodes
    assert not answer.settled
    often = (1 if solver == "sat" else 6) if way == "code" and model.startswith("pcp21") else 2
    assert answer.extensions == often
    assert answer.objective != answer.objective


def test_limits() -> None:
    """How long a search may take while it has nothing, and when what it has will do."""
    code, text = Limits(1, 8), Limits(1, 8, way="text")
    assert [one.steps(model) for one in (code, text) for model in ("pcp21", "hcp19")] == [
        [1 + more / 2 for more in range(15)], [1, 2, 4, 8], [1, 2, 4, 8], [1, 2, 4, 8],
    ]  # fmt: skip
    for limits, model, values, enough in (
        (code, "pcp21", [7.0], True),
        (code, "pcp19", [7.0], False),
        (code, "pcp19", [7.0, 6.0], False),
        (code, "pcp19", [7.0, 6.0, 6.0], True),
        (text, "pcp19", [7.0], True),
        (text, "pcp21s", [7.0, 7.0], False),
        (text, "pcp21s", [7.0, 7.0, 7.0], True),
        (text, "pcp21s", [8.0, 7.0, 7.0], False),
    ):
        assert limits.enough(model, values, proved=False) is enough
        assert limits.enough(model, values, proved=True)
    for limits in (code, text):
        assert not limits.enough("pcp21", [None], proved=False)
        assert not limits.enough("hcp19", [None, None, None], proved=False)


@pytest.mark.parametrize(("solver", "delta"), [("sat", 0.02), ("cp", 0.5)])
def test_searches_end_by_their_limits(solver: str, delta: float) -> None:
    """PCP'21 goes on or takes what it has; PCP'19 begins anew or takes what it has."""
    problem = replace(random_dispatch(Random(3), 40 if solver == "sat" else 12), running=())
    begun = total_slowdown(problem, listed(problem, contiguous=True).starts)
    for way in WAYS:
        found = {
            model: solve_dispatch(problem, model, Limits(delta, 8 * delta, way=way), solver=solver)
            for model in ("pcp19", "pcp21")
        }
        waits = "pcp21" if way == "text" else "pcp19"
        assert found[waits].extensions >= (2 if way == "text" else 1)
        assert found["pcp21" if way == "code" else "pcp19"].extensions == 0
        for answer in found.values():
            assert answer.status == "feasible"
            assert not wrong(problem, answer.starts, answer.nodes)
        assert solver == "cp" or found["pcp21"].objective <= begun + FAR


def test_wall_clock() -> None:
    answer = solve_dispatch(random_dispatch(Random(1), 3), "pcp21", Limits(5, 5, clock="wall"))
    assert answer.status == "optimal"


def test_running_jobs_have_the_least_positions_of_their_nodes() -> None:
    cluster = by_node(("cores", "memory"), (NodeKind("plain", 2, (4, 8)),))
    running = (Running(1, 5, (1, 1), (1, 2)), Running(2, 5, (0,), (2, 0)), Running(3, 5, (1,), (2, 3)))
    problem = DispatchProblem(0, cluster, (), running)
    assert running_positions(problem) == [[(4, 8), (5, 10)], [(0, -1)], [(6, 12)]]
    assert running_boxes(problem) == [[(5, 0, 2), (5, 4, 4)], [(5, 8, 7)]]


def test_what_runs_next_to_each_other_and_as_long_is_one_box() -> None:
    """Two nodes that one job fills, and beside it one that runs for longer."""
    cluster = by_node(("cores",), (NodeKind("plain", 3, (4,)),))
    running = (Running(1, 5, (0, 0, 1, 1), (2,)), Running(2, 6, (2,), (2,)))
    assert running_boxes(DispatchProblem(0, cluster, (), running)) == [[(5, 0, 8), (6, 8, 2)]]


def test_pcp21_is_continued_and_the_others_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    from dovetail.optimize.dispatch import cpsat_search as search

    given: list[float] = []
    real = search._solver

    def watched(limits: Limits, limit: float, work_per_s: float) -> object:
        given.append(limit)
        return real(limits, limit, work_per_s)

    monkeypatch.setattr(search, "_solver", watched)
    problem = replace(random_dispatch(Random(3), 40), running=())
    for model, way, shares in (("pcp19", "code", [0.02, 0.04]), ("pcp21", "text", [0.02, 0.02, 0.04])):
        given.clear()
        solve_dispatch(problem, model, Limits(0.02, 0.16, way=way))
        assert given[: len(shares)] == pytest.approx(shares)


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
    with pytest.raises(SettingError, match="no model 'pcp20'; did you mean"):
        solve_dispatch(paper_example(), "pcp20")
    for broken in ({"delta": 0.0}, {"delta": 2.0, "most": 1.0}, {"clock": "cpu"}, {"still": 0}, {"way": "mine"}):
        with pytest.raises(SettingError):
            Limits(**broken)
