"""The published numbers have the right shape, and the committed pages still say what the code computes."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy
from dovetail.studies.executors import engine
from dovetail.studies.grid import tasks_of
from dovetail.studies.papers import list_tables, ties
from dovetail.studies.papers.packing_table_2 import every_line, more_tasks
from dovetail.studies.papers.page import Runs
from dovetail.studies.papers.recompute import (
    AUTHORS,
    COUNTS,
    OURS,
    OWN,
    WITH_TIES,
    Results,
    counts,
    fit,
    places,
    results,
)
from dovetail.studies.papers.registry import find
from dovetail.studies.papers.reproduce import run_tasks
from dovetail.studies.papers.tables import ESTIMATES, METRICS, TABLE_2, TABLE_II, Place, Table
from dovetail.studies.spec import placed, read_study
from dovetail.studies.store import Store
from dovetail.studies.task import Task
from tests.conftest import ROOT, TRACES, needs_traces

TABLES = {"cp-table-2": TABLE_2, "packing-table-2": TABLE_II}
TIES = Path(ties.__file__)

pytestmark = pytest.mark.xdist_group("papers")  # its runs are made once


def test_table_ii_has_every_cell() -> None:
    assert len(TABLE_II.percent) == 10 * 4 * 6 * 2
    assert {place.row for place in TABLE_II.percent} == set(TABLE_II.policies)
    assert not TABLE_II.misread
    assert len(places(TABLE_II)) == 9 * 4 * 5 * 2


def test_table_2_has_every_legible_cell() -> None:
    rows = Counter((place.metric, place.row) for place in TABLE_2.percent)
    assert sum(rows.values()) == 11 * 12 - 1
    assert {row for row, cells in rows.items() if cells != 12} == {("bsld", "List-SPF")}
    assert set(TABLE_2.misread) - set(TABLE_2.percent) == {Place("bsld", "List-SPF", "runtime", "SDSC-SP2")}
    assert len(places(TABLE_2)) == 10 * 5 * 2 - 1


@pytest.mark.parametrize("table", TABLES.values(), ids=list(TABLES))
def test_the_base_row_is_100_per_cent(table: Table) -> None:
    base = [percent for place, percent in table.percent.items() if place.row == table.base]
    assert base
    assert set(base) == {100}


def test_the_two_tables_agree_where_both_have_a_cell() -> None:
    # Rounding in two ways makes a point of difference; more would be an error of transcription.
    row_of = {policy: row for row, policy in TABLE_II.policies.items()}
    pairs = [
        (percent, TABLE_II.percent[Place(place.metric, row, place.estimate, place.trace)])
        for place, percent in TABLE_2.percent.items()
        if (row := row_of.get(TABLE_2.policies[place.row])) is not None
    ]
    assert len(pairs) == 10 * 12
    assert max(abs(one - other) for one, other in pairs) == 1


def small_schedule() -> Schedule:
    """Four jobs of one processor on one processor, submitted at 0, 0, 0, 25 and ending at 10, 20, 30, 40."""
    submit, runtime, start = (np.array(a) for a in ([0, 0, 0, 25], [10] * 4, [0, 10, 20, 30]))
    one = np.ones(4, np.int64)
    columns = {"id": np.arange(4), "submit": submit, "size": one, "runtime": runtime, "limit": runtime}
    workload = Workload("four", columns, 1, Provenance("by hand"))
    return Schedule(workload, Cluster(1), "fcfs", "runtime", start, submit, -one, -one, passes=0)


@pytest.mark.parametrize(
    ("rule", "kept"),
    [("all", [0, 1, 2, 3]), ("ended", [0, 1]), ("but last", [0, 1, 2]), ("middle", [1])],
)
def test_counting_rules(rule: str, kept: list[int]) -> None:
    assert rule in COUNTS
    assert np.flatnonzero(counts(small_schedule(), rule)).tolist() == kept


def state_of(size: Ints, estimate: Ints, waiting: Ints) -> State:
    """Some jobs wait, and nothing else is known of them."""
    none, zero = np.empty(0, np.int64), np.zeros(len(size), np.int64)
    return State(0, 8, 8, waiting, none, none, none, zero, size, estimate, estimate, zero, zero)


def test_ranks_of_the_authors_orders() -> None:
    size, estimate = np.array([4, 1, 2, 1, 1]), np.array([10, 20, 10, 30, 20])
    state = state_of(size, estimate, np.arange(5))
    # SJF: by estimate, then size. SPF: by size x estimate^2, here 400, 400, 200, 900, 400; then by area.
    assert ties.sjf(state).tolist() == [1, 2, 0, 3, 2]
    assert ties.spf(state).tolist() == [2, 1, 0, 3, 1]
    assert ties.sjf(state_of(size, estimate, np.array([3, 0]))).tolist() == [1, 0]


def in_python(name: str) -> ListPolicy:
    """The same orders as sorted tuples, asked for at each pass, of those who wait then."""

    def keys(state: State) -> list[int]:
        jobs = [(int(state.size[job]), int(state.estimate[job])) for job in state.waiting]
        pairs = [(e, s) if name.endswith("sjf") else (s * e * e, s * e) for s, e in jobs]
        places = {pair: place for place, pair in enumerate(sorted(set(pairs)))}
        return [places[pair] for pair in pairs]

    return ListPolicy(order=keys, reserve=0 if name.startswith("greedy-") else "all")


@pytest.mark.parametrize("name", WITH_TIES)
def test_ties_are_those_of_sorted_tuples(name: str) -> None:
    draw, n = np.random.default_rng(7), 600
    size, limit = draw.choice([1, 2, 4, 8], n), draw.choice([60, 120, 240], n)  # many keys are equal
    submit, runtime = np.sort(draw.integers(0, 20_000, n)), draw.integers(1, limit + 1)
    columns = {"id": np.arange(n), "submit": submit, "size": size, "runtime": runtime, "limit": limit}
    busy = Workload("busy", columns, 10, Provenance("drawn"))
    chosen = policy(placed(WITH_TIES[name], TIES.parent))
    starts = replay(busy, chosen, estimate="limit").start.tolist()
    assert starts == replay(busy, in_python(name), estimate="limit").start.tolist()
    assert starts != replay(busy, policy(name), estimate="limit").start.tolist()


@pytest.fixture(scope="module")
def kth(tmp_path_factory: pytest.TempPathFactory) -> Results:
    """Both studies on KTH-SP2 alone, in one store."""
    store = Store(tmp_path_factory.mktemp("papers"))
    store.create()
    tasks: dict[str, Task] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DOVETAIL_TRACES", str(TRACES))
        for name in TABLES:
            path = find(name).study
            assert path is not None
            study = read_study(path)
            assert [trace.label for trace in study.traces][: len(OURS)] == list(OURS)
            small = study.model_copy(update={"traces": study.traces[:1], "exclude": []})
            tasks |= {task.name: task for task in tasks_of(small, path, store.keep)}
    assert len(tasks) == 2 * (12 + 8 - 6)  # six policies are in both
    runs = Runs(TRACES, store, tuple(tasks.values()))
    assert run_tasks(runs, engine("local", 2, store.path), print) == len(tasks)
    assert run_tasks(runs, engine("local", 2, store.path), print) == 0
    return results(store, runs.tasks)


@needs_traces
def test_kth_equals_the_printed_numbers_under_the_authors_rules(kth: Results) -> None:
    for table, cells in ((TABLE_2, 20), (TABLE_II, 72)):
        found = fit(table, places(table, OURS[:1]), kth, AUTHORS)
        assert (found.cells, found.equal) == (cells, cells)


@needs_traces
def test_ties_matter_on_kth(kth: Results) -> None:
    place = Place("bsld", "SJF-Aggressive", "limit", "KTH-SP2")
    assert kth.percent(TABLE_II, place, AUTHORS) == pytest.approx(TABLE_II.percent[place], abs=0.5)
    assert abs(kth.percent(TABLE_II, place, OWN) - TABLE_II.percent[place]) > 1


def rows_of(markdown: str, columns: int) -> list[str]:
    """Headings and rows of the published tables, with the first columns only."""
    text = markdown[markdown.index("### Table") :]
    lines = [line for line in text.splitlines() if line]
    return [line if line.startswith("#") else "|".join(line.split("|")[: columns + 1]) for line in lines]


@needs_traces
@pytest.mark.parametrize(("name", "rows"), [("cp-table-2", 10), ("packing-table-2", 9 * 4)])
def test_the_committed_pages_have_the_numbers_of_kth(kth: Results, name: str, rows: int) -> None:
    now = rows_of("\n".join(list_tables.tables(TABLES[name], kth, OURS[:1])), 2)
    page = ROOT / "docs" / "results" / find(name).page
    assert len(now) == len(METRICS) * len(ESTIMATES) * 3 + rows * len(ESTIMATES)
    assert now == rows_of(page.read_text(encoding="utf-8"), 2)


def test_other_inputs_stand_for_their_traces() -> None:
    found = Results({(trace, "easy", "limit"): {"all": {"bsld": value}} for trace, value in (("a", 1.0), ("b", 2.0))})
    assert found.on({"a": "b"}).values["a", "easy", "limit"] == {"all": {"bsld": 2.0}}
    assert found.on({}).values == found.values


@needs_traces
def test_every_line_of_a_log_can_be_kept() -> None:
    log = read_workload(TRACES / "archive" / "SDSC-SP2-1998-4.2-cln.swf.gz")
    kept = every_line(log)
    assert len(kept) == log.provenance.lines == 59715
    assert kept.runtime.min() == kept.limit.min() == 1


@needs_traces
def test_more_tasks_are_the_papers_on_every_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.studies.papers.packing_table_2.REFILTERED", ("SDSC-SP2",))
    monkeypatch.setenv("DOVETAIL_TRACES", str(TRACES))
    path, store = find("packing-table-2").study, Store(tmp_path)
    assert path is not None
    study = read_study(path)
    store.create()
    sp2 = study.model_copy(update={"traces": [t for t in study.traces if t.label.startswith("SDSC-SP2")]})
    runs = Runs(TRACES, store, tasks_of(sp2, path, store.keep))
    more = more_tasks(runs)
    standard = [task for task in runs.tasks if task.cell.trace == "SDSC-SP2 standard"]
    cells = [replace(task.cell, trace="SDSC-SP2 every line") for task in standard]
    assert [task.cell for task in more] == cells
    assert len(cells) == 10
    assert {task.jobs for task in standard} == {53_999}
    assert {task.jobs for task in more} == {len(store.workload(more[0].workload_sha256))} == {59_715}
    assert not {task.name for task in more} & {task.name for task in runs.tasks}
