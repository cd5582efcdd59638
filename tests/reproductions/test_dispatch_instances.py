"""The dispatcher paper's models on the same instances: moments of a morning of Eurora, files of problems, answers."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.estimates import estimator_of
from dovetail.engine.stepped import Stepper
from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.optimize.dispatch.problem import DispatchProblem, Queued, dispatch_problem
from dovetail.policies.registry import policy
from dovetail.studies.store import Store
from dovetail.studies.task import Cell
from reproductions.dispatch_instances.compared import (
    HCP19,
    ONCE,
    PCP19,
    PCP21,
    SAMPLES,
    SMALL,
    UNDER,
    Pair,
    pairs_of,
    share,
    solved,
)
from reproductions.dispatch_instances.moments import Instants, chosen, moments
from reproductions.dispatch_instances.page import lists_of, measure, sizes_of, solve
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
            seen[state.now] = dispatch_problem(state)

    workload = schedule.workload
    estimator = estimator_of(workload, schedule.estimate)
    stepper = Stepper(workload, schedule.cluster, policy(schedule.policy), estimator, see=see)
    stepper.advance()
    assert np.array_equal(stepper.start, schedule.start)
    (times, counts), instants = moments(schedule), Instants(schedule)
    assert times.tolist() == list(seen)
    assert max(counts) > 5
    for at, waiting in zip(times.tolist(), counts.tolist(), strict=True):
        assert instants.problem(at) == seen[at]
        assert waiting == len(seen[at].queue)
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
def test_an_instance_is_written_and_solved(tmp_path: Path) -> None:
    store, tasks = ran(tmp_path, STUDY)
    schedule = store.schedule(tasks[0].name)
    assert schedule is not None
    first = chosen(*moments(schedule), SAMPLES[SMALL].least, 4)[0]
    cell = Cell(SMALL, "", f"pass at {first.at} s", PCP19, "runtime", 0)
    work = Kept(store, schedule)
    found = solve(cell, work)  # type: ignore[arg-type]
    assert (found["waiting"], found["class"], found["of_class"]) == (first.waiting, first.least, first.of)
    assert found["proved"] == 1
    assert found["objective"] <= found["list_free"]
    (path,) = (store.path / "dispatch").glob("*.json")
    kept = json.loads(path.read_text())
    assert kept["now"] == first.at
    assert len(kept["queue"]) == first.waiting
    assert sum(kind["count"] for kind in kept["kinds"]) == schedule.cluster.nodes
    again = solve(replace(cell, policy=HCP19), work)  # type: ignore[arg-type]
    assert again["pcp19_variables"] == found["pcp19_variables"]
    sizes = measure(schedule, lambda _: schedule)
    assert sizes["looked_at"] == -(-len(moments(schedule)[0]) // 10)
    assert sizes["every_below"] == 100


def test_the_choice_of_moments_is_drawn_by_class_and_by_seed() -> None:
    at, waiting = np.arange(1000), np.arange(1000) % 30 + 1
    one = chosen(at, waiting, (1, 2, 11), 5)
    assert one == chosen(at, waiting, (1, 2, 11), 5)
    assert one != chosen(at, waiting, (1, 2, 11), 5, seed=1)
    assert [(c.place, c.least) for c in one] == [(place, least) for place in range(5) for least in (1, 2, 11)]
    for c in one:
        assert c.waiting == c.at % 30 + 1
        assert {1: c.waiting == 1, 2: 2 <= c.waiting <= 10, 11: c.waiting >= 11}[c.least]
        assert c.of == sum({1: w == 1, 2: 2 <= w <= 10, 11: w >= 11}[c.least] for w in waiting.tolist())
    assert len({c.at for c in one}) == 15
    assert [c.at for c in chosen(at, waiting, (1, 2, 11), 2)] == [c.at for c in one[:6]]  # more of them: the first stay
    assert len(chosen(np.arange(3), np.ones(3, np.int64), (1, 2), 5)) == 3


def test_variables_by_the_formulas_counted_by_hand() -> None:
    cluster = by_node(("cores", "memory", "gpus"), (NodeKind("plain", 2, (4, 8, 0)), NodeKind("gpu", 1, (4, 8, 2))))
    queue = (
        Queued(0, 0, 10, 1, (1, 1, 0), 3),  # once on each of three nodes
        Queued(1, 0, 10, 3, (2, 2, 0), 3),  # twice on each: 6
        Queued(2, 0, 10, 1, (1, 1, 1), 3),  # on the one with GPUs
    )
    assert sizes_of(DispatchProblem(5, cluster, queue)) == (3 + 3 + 6 + 1, 3 + (1 + 3 + 1) * 3, 3 + 5 * 3)


def test_positions_change_what_a_list_plans_for_later() -> None:
    """Three cores: jobs 0, 1 and 2 have one each; when 0 and 2 have ended, two are free, but not side by side."""
    cluster = by_node(("cores",), (NodeKind("plain", 1, (3,)),))
    ones = tuple(Queued(i, 0, 10 if i != 1 else 20, 1, (1,), 1) for i in range(3))
    problem = DispatchProblem(0, cluster, (*ones, Queued(3, 0, 10, 1, (2,), 1)))
    assert lists_of(problem) == ((3 + 3) / (3 + 2), True)  # it waits for 20 s in place of 10
    assert lists_of(DispatchProblem(0, cluster, ones)) == (1, True)


def answers(least: int, of: int, old: tuple[float, int], new: tuple[float, int], place: int = 0) -> dict[str, Run]:
    """An instance with these times and fails of PCP'19 and of PCP'21."""
    facts = {"class": least, "of_class": of, "objective": 10.0, "proved": 0.0}
    made = {}
    for name, (seconds, fails) in ((PCP19, old), (PCP21, new), (ONCE, new), (HCP19, new)):
        cell = Cell(SMALL, "", f"pass at {least}.{place} s", name, "limit", place)
        made[name] = Run(cell, {**facts, "seconds": seconds, "conflicts": fails}, 0.0, "", "")
    return made


def test_instances_count_for_the_passes_of_their_class() -> None:
    pairs = pairs_of([
        answers(1, 90, (1.0, 0), (0.5, 0)),
        answers(2, 10, (1.0, 10), (2.0, 5)), answers(2, 10, (1.0, 0), (0.5, 3)),
    ])  # fmt: skip
    assert [pair.weight for pair in pairs] == [90, 5, 5]
    assert [pair.ratio("seconds") for pair in pairs] == [0.5, 2, 0.5]
    assert np.isnan(pairs[0].ratio("conflicts"))
    assert [pair.ratio("conflicts") for pair in pairs[1:]] == [0.5, np.inf]
    assert [pair.neither_more() for pair in pairs] == [True, False, False]
    assert share(pairs, Pair.neither_more) == 90


def test_a_machine_is_compared_when_all_its_answers_are_there() -> None:
    every = [
        replace(run, cell=replace(run.cell, estimate=estimate))
        for least in SAMPLES[SMALL].least
        for place in range(4)
        for estimate in ("runtime", "limit")
        for run in answers(least, 9, (1.0, 1), (2.0, 3), place).values()
        if run.cell.policy != HCP19 or place == 0
    ]
    assert len(solved(Runs(every), SMALL)) == 2 * 4 * len(SAMPLES[SMALL].least)
    assert solved(Runs(every[:-1]), SMALL) == []
    assert solved(Runs([]), SMALL) == []
