"""The dispatcher paper's models on the same instances: moments of a morning of Eurora, and answers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isnan
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.estimates import estimator_of
from dovetail.engine.stepped import Stepper
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.optimize.dispatch.problem import DispatchProblem, dispatch_problem
from dovetail.policies.registry import policy
from dovetail.studies.store import Store
from dovetail.studies.task import Cell
from reproductions.dispatch_instances.moments import Instants, moments
from reproductions.dispatch_instances.page import SMALL, UNDER, WAYS, measure, pairs_of, solve, values
from reproductions.runs import Run, Runs
from tests.conftest import TRACES, needs_traces
from tests.studies.small import ran

STUDY = f"""\
name = "dispatch-instances"
policies = ["{UNDER}"]
estimates = ["runtime", "limit"]
[[traces]]
name = "Eurora"
path = "{TRACES}/heterogeneous/eurora_jobs_merged.csv.gz"
cluster = "eurora"
scenarios = ["span=54000..61200"]
"""


@needs_traces
def test_a_kept_replay_gives_the_states_that_its_policy_saw(tmp_path: Path) -> None:
    store, tasks = ran(tmp_path, STUDY)
    schedule = store.schedule(tasks[1].name)
    assert schedule is not None
    seen: dict[int, DispatchProblem] = {}

    def see(state: State, plan: Plan) -> None:
        if len(state.waiting):
            seen[state.now] = dispatch_problem(state, subset="all")

    workload = schedule.workload
    estimator = estimator_of(workload, schedule.estimate)
    stepper = Stepper(workload, schedule.cluster, policy(schedule.policy), estimator, see=see)
    stepper.advance()
    assert np.array_equal(stepper.start, schedule.start)
    times, instants = moments(schedule).tolist(), Instants(schedule)
    assert times == list(seen)
    assert max(len(problem.queue) for problem in seen.values()) > 5
    for at in times:
        assert dispatch_problem(instants.state(at), subset="all") == seen[at]
    with pytest.raises(ValueError, match="on nodes"):
        Instants(replace(schedule, placement=None)).state(0)


@dataclass(frozen=True)
class Kept:
    """What `solve` needs of Work."""

    store: Store
    made: Schedule

    def schedule(self, _: Cell) -> Schedule:
        return self.made


@needs_traces
def test_an_instance_is_solved_in_every_way(tmp_path: Path) -> None:
    store, tasks = ran(tmp_path, STUDY)
    schedule = store.schedule(tasks[0].name)
    assert schedule is not None
    instants = Instants(schedule)
    at = next(at for at in moments(schedule).tolist() if len(dispatch_problem(instants.state(at)).queue) > 1)
    found = {}
    for name in {one for way in WAYS.values() for one in way}:
        cell = Cell(SMALL, "", f"pass at {at} s", name, "runtime", 0)
        found[name] = solve(cell, Kept(store, schedule))  # type: ignore[arg-type]
        assert found[name]["proved"] == 1
        assert found[name]["jobs"] <= found[name]["waiting"]
    assert found["pcp21"]["objective"] >= found["pcp21:limits=text,pairs=no"]["objective"] - 1e-9
    assert found["pcp19"]["objective"] == pytest.approx(found["pcp19:solver=cp"]["objective"])
    sizes = measure(schedule, lambda _: schedule)
    assert sizes["looked_at"] == pytest.approx(sizes["fits"] / 100 * -(-len(moments(schedule)) // 2))
    assert 0 < sizes["fits"] <= 100


def answer(at: int, name: str, seconds: float, fails: int, objective: float = 10.0) -> Run:
    numbers = {"seconds": seconds, "conflicts": fails, "objective": objective, "proved": 1.0, "variables": 5.0}
    numbers |= {"jobs": 10 * at, "branches": 100 * seconds}
    return Run(Cell(SMALL, "", f"pass at {at} s", name, "limit", 0), numbers, 0.0, "", "")


def test_pairs_are_of_the_same_instance() -> None:
    old, new = WAYS["CP"]
    runs = Runs([
        answer(1, old, 1.0, 0), answer(1, new, 0.5, 0), answer(2, old, 1.0, 10), answer(2, new, 2.0, 1, 11.0),
        answer(3, old, 1.0, 0), answer(3, new, 0.5, 3), answer(4, new, 0.5, 3),
    ])  # fmt: skip
    pairs = pairs_of(runs, "CP", "limit")
    assert [pair.ratio("seconds") for pair in pairs] == [0.5, 2, 0.5]
    assert isnan(pairs[0].ratio("conflicts"))
    assert [pair.ratio("conflicts") for pair in pairs[1:]] == [0.1, inf]
    assert [pair.neither_more for pair in pairs] == [True, False, False]
    found = values(runs, {})
    for column, thirds in {"time": 2, "fails": 2, "region": 1, "quality": 2}.items():
        assert found["pairs", "limit, CP", column] == pytest.approx(100 * thirds / 3)
    assert not pairs_of(runs, "CP", "runtime")
    sizes = {size: found["sizes", f"limit, {size}, CP", "instances"] for size in ("2 to 20 jobs", "21 to 60 jobs")}
    assert sizes == {"2 to 20 jobs": 2, "21 to 60 jobs": 1}
    assert found["sizes", "limit, 2 to 20 jobs, CP", "branches, median"] == 1.25
