"""The planner beside Table 2 of CP: what is published, what is said of runs, and a page from any part of them."""

from __future__ import annotations

from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.contract import random_workload
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.metrics import af_s, outcomes
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.policies.registry import policy
from dovetail.studies.papers import planner_said as said
from dovetail.studies.papers import planner_table_2
from dovetail.studies.papers.page import Page, Runs
from dovetail.studies.papers.planner_runs import ROWS, Found, Key, best, found, metric_of, printed, verdict
from dovetail.studies.papers.recompute import OURS
from dovetail.studies.papers.registry import find
from dovetail.studies.papers.tables import ESTIMATES, METRICS, P2SF_PLUS, TABLE_2_CP, Place
from dovetail.studies.spec import Match, Study, read_study
from dovetail.studies.store import Store
from dovetail.studies.task import Task
from tests.conftest import ROOT
from tests.studies.small import ran

STUDY = """\
name = "planner-table-2"
estimates = ["runtime", "limit"]
pass_times = true
policies = [
  "list-reg", "list-spf", "list-saf", "list-sjf", "list-laf", "easy", "plan-af:decodes=2", "plan-awf:decodes=2",
  "plan-bsld:decodes=2", "plan-p2sf:decodes=2", "plan:objective=0.1*p2sf+af,decodes=3",
  "offline-af", "offline-awf", "offline-bsld", "offline-p2sf",
]
"""
TITLE = "Cells that are not reached"
TRACE = '[[traces]]\nname = "{}"\ngenerate = {{jobs = 120, processors = 16, load = 0.95}}\n'


def test_the_rows_of_the_solver_are_all_there() -> None:
    cells = {*TABLE_2_CP.percent, *TABLE_2_CP.misread}
    assert len(cells) == 4 * 12
    assert {(place.metric, place.row) for place in cells} == {
        ("bsld", "CP-BSLD"), ("af_s", "CP-AF"), ("awf_s", "CP-AWF"), ("p2sf_s", "CP-P2SF"),
    }  # fmt: skip
    assert {place for place in set(TABLE_2_CP.misread) - set(TABLE_2_CP.percent) if place.trace in OURS} == {
        Place("awf_s", "CP-AWF", "runtime", "KTH-SP2"),
        Place("bsld", "CP-BSLD", "limit", "CTC-SP2"),
    }
    assert printed("awf_s", "CP-AWF", "runtime", "KTH-SP2") == "9?"
    assert printed("p2sf_s", "CP-P2SF", "runtime", "KTH-SP2") == "92"
    assert printed("af_s", "CP-AWF", "runtime", "KTH-SP2") == ""


# The lowest of each column that can be read, taken down apart from the table.
LOWEST = {
    ("af_s", "runtime"): (76, 54, 70, 48, 78),
    ("awf_s", "runtime"): (94, 86, 78, 89, 97),
    ("bsld", "runtime"): (29, 15, 23, 12, 16),
    ("p2sf_s", "runtime"): (90, 100, 97, 99.5, 100),
    ("af_s", "limit"): (74, 49, 88, 52, 71),
    ("awf_s", "limit"): (91, 81, 73, 87, 95),
    ("bsld", "limit"): (38, 43, 45, 25, 6),
    ("p2sf_s", "limit"): (94, 100, 99, 100, 100),
}


def test_the_best_published_values() -> None:
    assert set(LOWEST) == {(metric, estimate) for metric in METRICS for estimate in ESTIMATES}
    for (metric, estimate), lowest in LOWEST.items():
        assert tuple(best(metric, estimate, trace).percent for trace in OURS) == lowest
    assert best("af_s", "limit", "SDSC-SP2").method == "EASY"
    assert best("bsld", "runtime", "SDSC-BLUE").method == "List-SAF"
    assert best("p2sf_s", "limit", "CTC-SP2").method == "List-REG"
    assert best("p2sf_s", "runtime", "KTH-SP2").method == "CP-P2SF+"
    lost = {key: best(*key).lost for key in (("bsld", "limit", "CTC-SP2"), ("awf_s", "runtime", "KTH-SP2"))}
    assert list(lost.values()) == [("CP-BSLD",), ("CP-AWF",)]
    assert best("bsld", "limit", "KTH-SP2").lost == ()
    assert set(P2SF_PLUS) < set(OURS)


@pytest.mark.parametrize(
    ("ours", "told"), [(75.4, "yes"), (75.5, "by rounding"), (75.9, "by rounding"), (76.0, "no"), (80.0, "no")]
)
def test_below_a_printed_whole_number(ours: float, told: str) -> None:
    assert verdict(ours, 76) == told


def test_what_a_policy_plans_for() -> None:
    wanted = {
        "plan-awf": "awf_s", "plan-af:decodes=7": "af_s", "plan:objective=bsld": "bsld",
        "plan:objective=0.2*awf+p2sf": "p2sf_s", "list-reg": None, "easy": None,
    }  # fmt: skip
    assert {text: metric_of(text) for text in wanted} == wanted


def test_queue_lengths_are_those_that_a_policy_sees() -> None:
    for case in range(20):
        workload, cluster = random_workload(np.random.Generator(np.random.PCG64([11, case])))
        seen: list[int] = []

        def see(state: State, plan: Plan, seen: list[int] = seen) -> None:
            seen.append(len(state.waiting))

        Stepper(workload, cluster, policy("list-saf"), np.array(workload.limit), see=see).advance()
        made = replay(workload, policy("list-saf"), cluster=cluster)
        assert said.queue_lengths(made).tolist() == seen


def test_quarters_are_means_over_seconds() -> None:
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64([12, 5])))
    made = replay(workload, policy("strict-fcfs"), cluster=cluster)
    first, last = int(made.arrive.min()), int(made.arrive.max())
    edges = [first + (last - first) * i // 4 for i in range(5)]
    pairs = list(zip(made.arrive.tolist(), made.start.tolist(), strict=True))
    queue = [sum(arrive <= t < start for arrive, start in pairs) for t in range(first, last)]
    wanted = [np.mean(queue[a - first : b - first]) for a, b in pairwise(edges)]
    assert max(wanted) > 0
    assert said.quarters(made).tolist() == pytest.approx(wanted, rel=1e-12)


def test_statements_say_how_much_they_rest_on() -> None:
    shown = Found((Key("a", "easy", "limit"), Key("b", "easy", "limit")), {}, lambda key: None)
    assert said.held(shown, {}, bool) == "not run"
    assert said.held(shown, {"a": 1.0}, bool) == "yes, so far"
    assert said.held(shown, {"a": 1.0, "b": 0.0}, bool) == "in part"
    assert said.held(shown, {"a": 0.0, "b": 0.0}, bool) == "no"
    assert said.held(shown, {"a": 0.0, "b": 1.0}, bool, ["b"]) == "yes"
    assert said.over({"a": 3.0, "b": 1.0}, {"a": 4.0}) == {"a": 75.0}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """All runs of a study like that of the paper, on small workloads with the names of its traces."""
    folder = tmp_path_factory.mktemp("planner")
    return Runs(folder, *ran(folder, STUDY + "".join(TRACE.format(name) for name in OURS)))


def without(runs: Runs, keep: list[Task], folder: Path) -> Runs:
    """The same study with a store that has some of the runs only."""
    store = Store(folder / "store")
    store.create()
    for task in runs.tasks:
        store.keep(runs.store.workload(task.workload_sha256))
    for task in keep:
        name = f"{task.name}.parquet"
        (store.path / "runs" / name).write_bytes((runs.store.path / "runs" / name).read_bytes())
    return replace(runs, store=store)


def rows_of(page: Page, title: str) -> list[list[str]]:
    """The rows of the first table below a heading."""
    lines = page.text[page.text.index(f"### {title}\n") :].splitlines()
    begin = next(i for i, line in enumerate(lines) if line.startswith("| ---")) + 1
    table = lines[begin : next(i for i in range(begin, len(lines)) if not lines[i].startswith("|"))]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table]


def test_the_page_of_all_runs(runs: Runs) -> None:
    page = planner_table_2.page(runs)
    assert (page.facts["runs"], page.facts["not_run"], page.facts["compared"]) == (15 * 2 * 5, 0, 40)
    assert "not run" not in page.text.replace("| not run |", "", 1)  # but for the head of the summary
    task = next(t for t in runs.tasks if t.cell.policy == "plan-af:decodes=2" and t.cell.estimate == "limit")
    workload = runs.store.workload(task.workload_sha256)
    made = [replay(workload, policy(name)) for name in ("plan-af:decodes=2", "list-reg")]
    percent = 100 * af_s(outcomes(made[0])) / af_s(outcomes(made[1]))
    longest = made[0].wait.max() / made[1].wait.max()
    row = rows_of(page, "AF, limit as the estimate")[0]
    assert row[:5] == ["KTH-SP2", "`plan-af:decodes=2`", "74 (CP-AF)", "74", f"{percent:.1f}"]
    assert row[7].strip("*") == f"{longest:.2f}"
    assert row[7].startswith("**") == (longest > 2)
    second = rows_of(page, "AF, limit as the estimate")[1]
    assert second[1] == "`plan:objective=0.1*p2sf+af,decodes=3`"
    matrix = {row[0]: row for row in rows_of(page, "KTH-SP2, limit as the estimate")}
    assert matrix["`plan-af:decodes=2`"][1].startswith(f"{percent:.1f} · ")
    assert matrix["`list-saf` (List-SAF)"][1].startswith("*94* · ")
    assert len(matrix) == 14
    assert sorted(page.pictures) == [f"planner-figure-{n}.svg" for n in range(2, 8)]
    assert all(f"({name})" in page.text for name in page.pictures)


def test_cells_that_are_not_reached_are_listed_with_all_that_was_tried(runs: Runs) -> None:
    text = planner_table_2.page(runs).text
    shown = found(runs)
    listed = {
        tuple(row[:3]): row for row in rows_of(Page(text.replace("## Cells that", "### Cells that"), "", {}), TITLE)
    }
    for metric in planner_table_2.ORDER:
        for estimate, words in (("runtime", "run time known"), ("limit", "limit as the estimate")):
            for trace in shown.traces:
                keys = [Key(trace, name, estimate) for name in shown.planners(metric)]
                reached = any(
                    (shown.percent(key, metric) or 0) < best(metric, estimate, trace).percent - 0.5
                    and (shown.longest(key) or 0) <= 2
                    for key in keys
                )
                row = listed.get((METRICS[metric], words, trace))
                assert (row is None) == reached
                assert row is None or all(
                    f"`{key.policy}` {shown.percent(key, metric):.1f} (" in row[4] for key in keys
                )
    assert 0 < len(listed) < 40


def test_times_of_passes_stand_on_the_page(runs: Runs) -> None:
    page = planner_table_2.page(runs)
    row = rows_of(page, "P2SF, run time known")[0]
    frame = runs.store.frame()
    task = next(t for t in runs.tasks if t.cell.policy == "plan-p2sf:decodes=2" and t.cell.estimate == "runtime")
    kept = frame.row(index=frame["run"].to_list().index(task.name), named=True)
    for cell, kind in ((row[9], "pass"), (row[10], "search")):
        assert cell == " / ".join(planner_table_2._ms(kept[f"{kind}_{at}_ms"]) for at in ("p50", "p99"))
    assert row[8] == f"{kept['cpu_s']:.1f}"
    assert [planner_table_2._ms(value) for value in (None, 0.01234, 1.26, 23.4)] == ["-", "0.012", "1.3", "23"]


def test_the_page_of_no_run_at_all(runs: Runs, tmp_path: Path) -> None:
    page = planner_table_2.page(without(runs, [], tmp_path))
    assert (page.facts["not_run"], page.facts["compared"]) == (150, 0)
    assert "**150 of 150 runs are not in the store**" in page.text
    assert {row[4] for row in rows_of(page, "BSLD, run time known")} == {"not run"}
    assert len(page.pictures) == 6


def test_the_page_of_some_runs(runs: Runs, tmp_path: Path) -> None:
    kept = [t for t in runs.tasks if t.cell.trace == "CTC-SP2" and t.cell.policy in ("list-reg", "plan-awf:decodes=2")]
    base_missing = [t for t in runs.tasks if t.cell.trace == "CEA-Curie" and t.cell.policy == "easy"]
    page = planner_table_2.page(without(runs, [*kept, *base_missing], tmp_path))
    assert page.facts["not_run"] == 150 - 6
    rows = {row[0]: row for row in rows_of(page, "AWF, run time known")}
    whole = {row[0]: row for row in rows_of(planner_table_2.page(runs), "AWF, run time known")}
    assert rows["CTC-SP2"] == whole["CTC-SP2"]
    assert {rows[trace][4] for trace in OURS if trace != "CTC-SP2"} == {"not run"}
    curie = {row[0]: row for row in rows_of(page, "CEA-Curie, limit as the estimate")}
    assert curie["`easy` (EASY)"][1] == "80 · not run"


def asked(study: Study) -> Found:
    """What a study asks for, with nothing run."""
    assert study.include == []
    keys = [Key(t.label, p, e) for t in study.traces for e in study.estimates for p in study.policies]
    asked_for = [key for key in keys if not any(left_out(rule, key) for rule in study.exclude)]
    assert len(asked_for) < len(keys)
    return Found(tuple(asked_for), {}, lambda key: None)


def left_out(rule: Match, key: Key) -> bool:
    pairs = ((rule.trace, key.trace), (rule.policy, key.policy), (rule.estimate, key.estimate))
    return all(any(fnmatchcase(value, pattern) for pattern in patterns) for patterns, value in pairs)


def test_the_committed_page_is_of_the_study() -> None:
    path = find("planner-table-2").study
    assert path is not None
    study = read_study(path)
    assert study.pass_times
    assert study.base == "list-reg"
    assert [trace.label for trace in study.traces] == list(OURS)
    assert set(ROWS) <= set(study.policies)  # every row of Table 2, CP's with the default settings
    committed = Page((ROOT / "docs" / "results" / "planner.md").read_text(encoding="utf-8"), "", {})
    for metric in planner_table_2.ORDER:
        for estimate, words in (("runtime", "run time known"), ("limit", "limit as the estimate")):
            now = planner_table_2._diagonal(asked(study), metric, estimate)
            title = f"{METRICS[metric]}, {words}"
            wanted = [row[:4] for row in rows_of(Page(f"{now}\n\n", "", {}), title)]
            assert [row[:4] for row in rows_of(committed, title)] == wanted
            assert len(wanted) >= len(OURS)


def test_found_measures_what_is_there(runs: Runs) -> None:
    shown = found(runs)
    key = Key("SDSC-SP2", "list-saf", "runtime")
    made = shown.read(key)
    assert made is not None
    base = shown.read(key._replace(policy="list-reg"))
    assert base is not None
    assert shown.percent(key, "af_s") == pytest.approx(100 * af_s(outcomes(made)) / af_s(outcomes(base)), rel=1e-12)
    assert shown.longest(key) == made.wait.max() / base.wait.max()
    assert shown.read(key._replace(policy="other")) is None
    assert shown.percent(key._replace(policy="other"), "af_s") is None
