"""CP-SAT as a policy: plans that the referee accepts, never worse than the lists they begin with, and no foresight."""

from __future__ import annotations

import random
import sys
from dataclasses import replace

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.engine.contract import check_policy
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import PolicyError, SettingError
from dovetail.metrics import awf_s
from dovetail.metrics.jobs import Outcomes
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.optimize.window.problem import Solution
from dovetail.policies.base import Policy
from dovetail.policies.published import solver
from dovetail.policies.published.solver import LISTS, NAMES, Solver
from dovetail.policies.registry import names, policy
from dovetail.referee import check_plan, check_schedule
from tests.conftest import TRACES, needs_traces
from tests.slow import planning as slow
from tests.slow.planning import KEYS
from tests.slow.workloads import random_jobs, workload_of


def drawn(seed: int) -> tuple[Workload, int, Ints]:
    rng = random.Random(seed)
    jobs, capacity = random_jobs(rng, too_small=rng.random() < 0.4)
    return workload_of(jobs, capacity), capacity[0], np.array([job.estimate for job in jobs], np.int64)


def jobs_of(submit: list[int], size: list[int], runtime: list[int], processors: int) -> Workload:
    columns = {"id": np.arange(1, len(submit) + 1), "submit": submit, "size": size, "runtime": runtime}
    arrays = {name: np.array(values, np.int64) for name, values in {**columns, "limit": runtime}.items()}
    return Workload("made", arrays, processors, Provenance("made here"))


Seen = list[tuple[State, Plan]]


def watched(seed: int, chosen: Policy) -> tuple[Schedule, Seen]:
    """A whole replay of a random workload: what came of it, and every state (as it was) with its plan."""
    workload, processors, estimate = drawn(seed)
    seen: Seen = []

    def see(state: State, plan: Plan) -> None:
        seen.append((replace(state, start=state.start.copy()), plan))

    this = Stepper(workload, Cluster(processors), chosen, estimate, seed=seed, see=see)
    this.advance()
    promises = (this.promised_first, this.promised_last)
    return Schedule(workload, this.cluster, chosen.name, "given", this.start, this.arrive, *promises, this.passes), seen


def chosen_by(seed: int) -> Solver:
    rng = random.Random(-seed)
    made = policy(rng.choice(list(NAMES)))
    assert isinstance(made, Solver)
    window, idle, extend = rng.choice([1, 3, 100]), rng.random() < 0.5, rng.choice([1.0, 2.0])
    return replace(made, deterministic=0.001, window=window, idle=idle, extend=extend)


@pytest.mark.slow
def test_the_referee_has_nothing_to_say() -> None:
    idle = 0
    for seed in range(24):
        chosen = chosen_by(seed)
        schedule, seen = watched(seed, chosen)
        assert check_schedule(schedule) == [], (seed, chosen)
        for state, plan in seen:
            # What is expected fits too, beside what runs and what starts; every waiting job has its place.
            assert check_plan(state, Plan(starts=plan.starts, promised=plan.expected)) == []
            assert sorted([*plan.starts, *plan.expected]) == sorted(state.waiting.tolist())
            assert len(state.running) or len(plan.starts) or not len(state.waiting)
            idle += chosen.idle and not plan.starts and any(state.size[job] <= state.free for job in state.waiting)
    assert idle > 0  # plans that start nobody, though somebody fits, are among them


@pytest.mark.slow
@pytest.mark.parametrize("name", ["cp-af", "cp-p2sf:idle=yes", "cp:objective=af+0.5*p2sf,window=2", "cp-bsld+"])
def test_the_contract(name: str) -> None:
    made = policy(name)
    assert isinstance(made, Solver)
    findings = check_policy(replace(made, deterministic=0.001), cases=4)
    assert [finding for finding in findings if finding.broken] == []


@pytest.mark.slow
@pytest.mark.parametrize("objective", ["af", "awf", "bsld", "p2sf"])
def test_in_each_pass_no_list_plan_is_better(objective: str) -> None:
    """Against plans made second by second; P2SF both with and without idling."""
    passes = better = 0
    for seed in range(8):
        for state, plan in watched(seed, Solver(objective, deterministic=0.002, idle=seed % 2 == 0))[1]:
            waiting = state.waiting.tolist()
            if not waiting or min(state.size[waiting]) > state.free:
                continue
            if not (len(plan.starts) or len(state.running)):
                continue
            got = slow.value(objective, state, {**dict.fromkeys(plan.starts, state.now), **plan.expected})
            orders = slow.list_orders(state)
            best = min(slow.value(objective, state, slow.placed(state, order)) for order in orders)
            assert got <= best * (1 + 1e-12), (seed, state.now)
            passes += 1
            better += got < best * (1 - 1e-9)
    assert passes > 60
    assert better > 0


@pytest.mark.parametrize("name", ["cp-af", "cp-p2sf:idle=yes", "cp-bsld+"])
def test_without_a_limit_list_reg_takes_over(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = policy(name)
    assert isinstance(made, Solver)
    monkeypatch.setitem(solver.SOLVERS, "sat", None)  # nobody may search
    for seed in range(30):
        workload, processors, estimate = drawn(seed)
        got = replay(workload, replace(made, deterministic=0.0), cluster=Cluster(processors), estimate=estimate)
        wanted = replay(workload, policy("list-reg"), cluster=Cluster(processors), estimate=estimate)
        assert got.start.tolist() == wanted.start.tolist(), seed


def test_the_limit_is_extended_once_if_nothing_was_found(monkeypatch: pytest.MonkeyPatch) -> None:
    limits: list[float] = []

    def found_nothing(problem, objective, *, deterministic_s, hint, **rest):  # type: ignore[no-untyped-def]
        limits.append(deterministic_s)
        return Solution(hint, objective.value(problem, hint), np.nan, "feasible", 0.0)

    monkeypatch.setitem(solver.SOLVERS, "sat", found_nothing)
    # At 1 s job 0 has ended. One of two processors is busy; of the three that wait, one of size 1 fits.
    workload = jobs_of([0, 0, 0, 0, 0], [1, 1, 2, 1, 1], [100, 1, 5, 7, 9], 2)
    for extend, wanted in ((1.0, [0.5]), (2.0, [0.5, 1.0])):
        limits.clear()
        Stepper(workload, Cluster(2), Solver(deterministic=0.5, extend=extend), workload.runtime).advance(0)
        assert limits == wanted
    limits.clear()
    refining = Solver("bsld", deterministic=0.5, refine=("laf", "fcfs"))
    Stepper(workload, Cluster(2), refining, workload.runtime).advance(0)
    assert limits == [0.5 / 3] * 3  # three different plans to begin with share the limit


def test_no_search_where_nothing_can_be_won(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(solver.SOLVERS, "sat", None)
    # Job 0 fills the machine; the others come while it runs, and fit beside each other when it ends.
    workload = jobs_of([0, 1, 2], [4, 2, 2], [10, 5, 7], 4)
    schedule = replay(workload, Solver("p2sf"), estimate="runtime")
    assert schedule.start.tolist() == [0, 10, 10]
    with pytest.raises(PolicyError, match="TypeError"):  # with idling a search is needed even then
        replay(workload, Solver("p2sf", idle=True), estimate="runtime")


def test_what_waits_beyond_the_window_comes_behind() -> None:
    # One of three processors is busy until 100. First come, first served: job 1 has the window for itself, and gets the
    # place at 100. Job 2 would end after that, job 3 fits before: it may start, for it delays nobody in the window.
    workload = jobs_of([0, 0, 0, 0], [1, 3, 1, 1], [100, 50, 200, 90], 3)
    stepper = Stepper(workload, Cluster(3), Solver("awf", window=1), workload.runtime)
    plans: list[Plan] = []
    stepper.see = lambda state, plan: plans.append(plan)
    stepper.start[0], stepper._free = 0, 2
    stepper._running, stepper._coming = {0}, stepper._coming[1:]
    stepper._ends = [(100, 0)]
    stepper.advance(0)
    assert plans[0].starts == [3]
    assert plans[0].expected == {1: 100, 2: 150}


def late(problem, objective, *, hint, **rest):  # type: ignore[no-untyped-def]
    """A solver whose plans begin 7 s later than they could."""
    return Solution(hint + 7, objective.value(problem, hint + 7), np.nan, "feasible", 0.0)


def test_who_idles_on_purpose_keeps_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(solver.SOLVERS, "sat", late)
    # Job 0 runs when the others come. Job 1 is the window, and is to start 7 s late; job 2 cannot end before that, and
    # comes behind it.
    workload = jobs_of([0, 1, 1], [1, 1, 1], [100, 20, 30], 2)
    plans: list[Plan] = []
    idling = Solver("p2sf", window=1, idle=True)
    stepper = Stepper(workload, Cluster(2), idling, workload.runtime, see=lambda state, plan: plans.append(plan))
    stepper.advance(1)
    assert plans[-1] == Plan(starts=[], expected={1: 8, 2: 28})


def test_on_an_empty_machine_somebody_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(solver.SOLVERS, "sat", late)
    schedule = replay(jobs_of([0, 0], [1, 2], [5, 5], 2), Solver("p2sf", idle=True))
    assert sorted(schedule.start.tolist()) == [0, 5]


@pytest.mark.slow
def test_same_seed_same_starts() -> None:
    from dovetail.workloads.lublin import lublin

    workload = lublin(60, 16, seed=4, load=1.2)
    chosen = policy("cp-bsld+:deterministic=0.02")
    starts = [replay(workload, chosen, estimate="runtime", seed=seed).start.tobytes() for seed in (3, 3, 2**40)]
    assert starts[0] == starts[1]


def test_searching_beats_the_lists_where_it_can() -> None:
    """Four processors. 2 + 2 for 3 s, then 3 + 1: no list order pairs them so. Area x end is 2 x 1 + 4 x 3 + 9 x 6
    + 6 x 3 + 4 x 7 = 114, over an area of 25."""
    workload = jobs_of([0] * 5, [2, 2, 3, 2, 1], [1, 2, 3, 3, 4], 4)

    def awf(name: str) -> float:
        return awf_s(Outcomes(workload.size, workload.runtime, replay(workload, policy(name)).start))

    assert awf("cp-awf") == pytest.approx(114 / 25, rel=1e-12)
    assert min(awf(f"list-{order}") for order in LISTS) > 114 / 25


# Names, a real log, what is missing -------------------------------------------------------------------------


def test_names_and_settings() -> None:
    made = policy("cp:objective=af+0.5*p2sf,deterministic=0.3,extend=2,window=20,idle=yes,refine=spf+saf")
    assert made == Solver("af+0.5*p2sf", 0.3, 2.0, 20, True, ("spf", "saf"), name=made.name)
    assert policy("cp:objective=pasf:3").objective == "pasf:3"  # type: ignore[attr-defined]
    assert policy("cp-bsld+") == Solver("bsld", refine=("spf", "saf", "sjf"), name="cp-bsld+")
    assert policy("cp-p2sf+") == Solver("p2sf", refine=("fcfs",), name="cp-p2sf+")
    assert set(NAMES) <= set(names())
    assert set(KEYS) == set(LISTS)
    for text, says in {
        "cp:objective=speed": "no objective 'speed'; choose from af, awf",
        "cp:deterministic=-1": "deterministic=-1: must be from 0 to",
        "cp:deterministic=nan": "deterministic=nan: must be from 0 to",
        "cp:extend=0.5": "extend=0.5: must be from 1 to 1,000,000",
        "cp:window=0": "must be from 1 to 10,000 jobs",
        "cp:idle=perhaps": "idle=perhaps: must be yes or no",
        "cp:refine=spf+xyz": "refine=spf+xyz: choose list plans from fcfs, sjf, saf, laf, spf",
        "cp:ahead=3": "no setting 'ahead'",
        "cp-wait": "no policy 'cp-wait'",
        "cp-af+": "no policy",
    }.items():
        with pytest.raises(SettingError) as caught:
            policy(text)
        assert says in str(caught.value)


def test_seconds_that_no_problem_can_hold() -> None:
    workload = jobs_of([0, 0], [1, 1], [2**40, 5], 1)
    with pytest.raises(PolicyError, match=r"cp-af at 0 s: .* must stay below 2\^40 s"):
        replay(workload, policy("cp-af"))


def test_without_or_tools_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ortools.sat.python.cp_model", None)
    workload = jobs_of([0] * 3, [1, 1, 1], [3, 2, 1], 1)
    with pytest.raises(SettingError, match="OR-Tools, which is not installed: pip install"):
        replay(workload, policy("cp-af"))


@needs_traces
def test_a_real_week() -> None:
    from dovetail.io.read import read_workload
    from dovetail.workloads.filters import clean
    from dovetail.workloads.scenarios import apply

    week = apply(clean(read_workload(TRACES / "papers" / "KTH-SP2.swf.gz"), ["standard"]), "span=14d..21d")
    assert check_schedule(replay(week, policy("cp-af:deterministic=0.001"), estimate="runtime")) == []
