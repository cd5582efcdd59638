"""The dispatcher paper's models on the same instances: moments of a morning of Eurora, the sample, and the page."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.estimates import said_by
from dovetail.engine.stepped import Stepper
from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.optimize.dispatch.problem import DispatchProblem, Limits, Queued, dispatch_problem
from dovetail.policies.registry import policy
from dovetail.studies.papers import dispatch_moments
from dovetail.studies.papers.dispatch_compared import (
    HCP19,
    LARGE,
    ONCE,
    PCP19,
    PCP21,
    PCP21S,
    Instance,
    Sample,
    by_clock,
    lists_of,
    neither_more,
    pairs_of,
    share,
    size_of,
    taken,
)
from dovetail.studies.papers.dispatch_instances import page_of
from dovetail.studies.papers.dispatch_moments import Answer, Chosen, Instants, Kept, Moments, Way, chosen, moments
from dovetail.studies.papers.page import Runs
from tests.conftest import TRACES, needs_traces
from tests.studies.small import ran

STUDY = f"""\
name = "dispatch-instances"
policies = ["sjf-easy:place=scarce"]
estimates = ["runtime", "limit"]
[[traces]]
name = "Eurora"
path = "{TRACES}/heterogeneous/eurora_jobs_merged.csv.gz"
cluster = "eurora"
scenarios = ["span=54000..61200"]
[[traces]]
name = "KIT"
path = "{TRACES}/heterogeneous/eurora_jobs_merged.csv.gz"
cluster = "eurora"
scenarios = ["span=36000..43200"]
[[exclude]]
trace = "KIT"
estimate = "limit"
"""
SHORT = Limits(0.1, 0.2)
SAMPLES = {
    "Eurora": Sample(
        (1, 2, 6),
        {
            PCP19: (Way("pcp19", SHORT), 2), PCP21: (Way("pcp21", SHORT), 2),
            ONCE: (Way("pcp21", Limits(0.1, 0.1)), 2), HCP19: (Way("hcp19", SHORT), 1),
        },
    ),
    LARGE: Sample(
        (1, 2),
        {PCP19: (Way("pcp19", Limits(1e-9, 1e-9)), 2),
         **{name: (Way(model, SHORT), 1) for name, model in ((PCP21, "pcp21"), (PCP21S, "pcp21s"), (HCP19, "hcp19"))}},
        again=(2,),
    ),
}  # fmt: skip


@needs_traces
def test_the_page_from_a_few_instances_goes_on_and_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, tasks = ran(tmp_path, STUDY)
    runs = Runs(TRACES, store, tasks)
    before = page_of(runs, SAMPLES)
    assert before.facts["missing"] > 0
    said: list[str] = []
    instances = taken(runs, SAMPLES, said.append)
    again = sum(by_clock(2)[0] in one.answers for one in instances)
    assert again > 0  # PCP'19 had no time for a plan
    assert len(said) == sum(len(one.answers) for one in instances) == before.facts["missing"] + again
    monkeypatch.setattr(dispatch_moments, "solve_dispatch", None)  # all is there: nothing is solved again
    assert repr(taken(runs, SAMPLES, said.append)) == repr(instances)  # nan is not equal to itself
    page = page_of(runs, SAMPLES)
    assert page.facts["missing"] == 0
    assert page.facts["statements"] == 14
    for part in (
        "## Variables (Fig. 6)",
        "## Time and fails",
        "## Do contiguous positions matter?",
        "| 6 or more | ",
        "by the clock",
    ):
        assert part in page.text
    assert list(page.pictures) == ["dispatch-instances.svg"]
    assert page_of(runs, SAMPLES) == page


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
    said = said_by(workload, schedule.estimate)
    stepper = Stepper(workload, schedule.cluster, policy(schedule.policy), said, see=see)
    stepper.advance()
    assert np.array_equal(stepper.start, schedule.start)
    found, instants = moments(schedule), Instants(schedule)
    assert found.at.tolist() == list(seen)
    assert max(found.waiting) > 5
    for at, waiting in zip(found.at.tolist(), found.waiting.tolist(), strict=True):
        assert instants.problem(at) == seen[at]
        assert waiting == len(seen[at].queue)
    with pytest.raises(ValueError, match="on nodes"):
        Instants(replace(schedule, placement=None)).state(0)


def test_the_choice_of_moments_is_drawn_by_class_and_by_seed() -> None:
    found = Moments(np.arange(1000), np.arange(1000) % 30 + 1)
    one = chosen(found, (1, 2, 11), 5)
    assert one == chosen(found, (1, 2, 11), 5)
    assert one != chosen(found, (1, 2, 11), 5, seed=1)
    assert [(c.place, c.least) for c in one] == [(place, least) for place in range(5) for least in (1, 2, 11)]
    for c in one:
        assert c.waiting == c.at % 30 + 1
        assert {1: c.waiting == 1, 2: 2 <= c.waiting <= 10, 11: c.waiting >= 11}[c.least]
        assert c.of == sum({1: w == 1, 2: 2 <= w <= 10, 11: w >= 11}[c.least] for w in found.waiting.tolist())
    assert len({c.at for c in one}) == 15
    assert [c.at for c in chosen(found, (1, 2, 11), 2)] == [c.at for c in one[:6]]  # more of them: the first stay
    assert len(chosen(Moments(np.arange(3), np.ones(3, np.int64)), (1, 2), 5)) == 3


def test_variables_by_the_formulas_counted_by_hand() -> None:
    cluster = by_node(("cores", "memory", "gpus"), (NodeKind("plain", 2, (4, 8, 0)), NodeKind("gpu", 1, (4, 8, 2))))
    queue = (
        Queued(0, 0, 10, 1, (1, 1, 0), 3),  # once on each of three nodes
        Queued(1, 0, 10, 3, (2, 2, 0), 3),  # twice on each: 6
        Queued(2, 0, 10, 1, (1, 1, 1), 3),  # on the one with GPUs
    )
    size = size_of(DispatchProblem(5, cluster, queue))
    assert (size.pcp19, size.pcp21, size.nodes_times_units) == (3 + 3 + 6 + 1, 3 + (1 + 3 + 1) * 3, 3 + 5 * 3)
    assert size.ratio == 18 / 13


def test_positions_change_what_a_list_plans_for_later() -> None:
    """Three cores: jobs 0, 1 and 2 have one each; when 0 and 2 have ended, two are free, but not side by side."""
    cluster = by_node(("cores",), (NodeKind("plain", 1, (3,)),))
    ones = tuple(Queued(i, 0, 10 if i != 1 else 20, 1, (1,), 1) for i in range(3))
    problem = DispatchProblem(0, cluster, (*ones, Queued(3, 0, 10, 1, (2,), 1)))
    found = lists_of(problem)
    assert found.same_now
    assert found.quality == (3 + 3) / (3 + 2)  # it waits for 20 s in place of 10
    assert lists_of(DispatchProblem(0, cluster, ones)).quality == 1


def test_a_damaged_answer_is_made_again(tmp_path: Path) -> None:
    cluster = by_node(("cores",), (NodeKind("plain", 1, (2,)),))
    kept, way = Kept(tmp_path), Way("pcp19", SHORT)
    path = kept.save(DispatchProblem(0, cluster, (Queued(0, 0, 10, 1, (1,), 1),)), "one")
    assert kept.answer(path, way) is None
    made = kept.solve(path, way)
    assert (made.status, made.objective) == ("optimal", 1.0)
    assert kept.answer(path, way) == made
    (file,) = tmp_path.glob("pcp19-*.json")
    file.write_text("{", encoding="utf-8")
    assert kept.answer(path, way) is None
    assert kept.answer(path, Way("pcp19", Limits(0.2, 0.2))) is None
    assert kept.solve(path, way).objective == 1.0


def instance(least: int, of: int, old: tuple[float, int], new: tuple[float, int]) -> Instance:
    """An instance with these times and fails of PCP'19 and of PCP'21."""
    answers = [Answer("feasible", 10.0, 1, 1, fails, 1, 0.0, s, 0, 1, 0) for s, fails in (old, new)]
    by_name = {PCP19: answers[0], PCP21: answers[1], ONCE: answers[1]}
    return Instance("Eurora", "limit", Chosen(0, least, least, of, 0), Path(), by_name, 3)


def test_instances_count_for_the_passes_of_their_class() -> None:
    pairs = pairs_of([
        instance(1, 90, (1.0, 0), (0.5, 0)),
        instance(2, 10, (1.0, 10), (2.0, 5)), instance(2, 10, (1.0, 0), (0.5, 3)),
        replace(instance(2, 10, (1.0, 0), (0.5, 3)), answers={}),
    ])  # fmt: skip
    assert [pair.weight for pair in pairs] == [90, 5, 5]
    assert [pair.time() for pair in pairs] == [0.5, 2, 0.5]
    assert np.isnan(pairs[0].fails())
    assert [pair.fails() for pair in pairs[1:]] == [0.5, np.inf]
    assert [neither_more(pair) for pair in pairs] == [True, False, False]
    assert share(pairs, neither_more) == 0.9
