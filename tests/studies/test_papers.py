"""The published numbers have the right shape, and the committed page still says what the code computes."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.lists import ListPolicy
from dovetail.studies.papers import lists
from dovetail.studies.papers.recompute import (
    AUTHORS,
    COUNTS,
    OURS,
    TABLES,
    Results,
    authors_rank,
    counts,
    every_line,
    fit,
    places,
    replay_with_ties,
    tables_on,
)
from dovetail.studies.papers.tables import ESTIMATES, METRICS, TABLE_2, TABLE_II, Place, Table
from dovetail.workloads.source import read_workload
from tests.conftest import ROOT, TRACES, needs_traces

PAGE = ROOT / "docs" / "results" / "list-scheduling.md"


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


@pytest.mark.parametrize("table", TABLES)
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


def test_ranks_of_the_authors_orders() -> None:
    size, guess = np.array([4, 1, 2, 1, 1]), np.array([10, 20, 10, 30, 20])
    # SJF: by estimate, then size. SPF: by size x estimate^2, here 400, 400, 200, 900, 400; then by area.
    assert authors_rank("list-sjf", size, guess).tolist() == [1, 2, 0, 3, 2]
    assert authors_rank("list-spf", size, guess).tolist() == [2, 1, 0, 3, 1]


@needs_traces
@pytest.mark.parametrize("name", ["list-sjf", "greedy-sjf", "list-spf"])
def test_ties_are_those_of_a_user_order_with_the_same_ranks(name: str) -> None:
    whole = read_workload(TRACES / "papers" / "KTH-SP2.swf.gz")
    early = whole.take(np.arange(len(whole)) < 3000, "the first 3,000 jobs")
    rank = authors_rank(name, early.size, early.limit)
    reserve: int | str = "all" if name.startswith("list-") else 0
    by_user = ListPolicy(order=lambda state: rank[state.waiting], reserve=reserve)
    expected = replay(early, by_user, estimate="limit").start
    assert replay_with_ties(early, name, "limit").start.tolist() == expected.tolist()


@pytest.fixture(scope="module")
def kth() -> Results:
    """Both tables on KTH-SP2."""
    assert OURS[0] == "KTH-SP2"
    return tables_on(TRACES, OURS[:1], lambda line: None)


@needs_traces
def test_kth_equals_the_printed_numbers_under_the_authors_rules(kth: Results) -> None:
    for table, cells in ((TABLE_2, 20), (TABLE_II, 72)):
        found = fit(table, places(table, OURS[:1]), kth, AUTHORS)
        assert (found.cells, found.equal) == (cells, cells)


def rows_of(markdown: str, columns: int) -> list[str]:
    """Headings and rows of the published tables, with the first columns only."""
    text = markdown[markdown.index("### Table 2") :]
    lines = [line for line in text.splitlines() if line]
    return [line if line.startswith("#") else "|".join(line.split("|")[: columns + 1]) for line in lines]


@needs_traces
def test_the_committed_page_has_the_numbers_of_kth(kth: Results) -> None:
    now = rows_of("\n".join(lists.tables(kth, OURS[:1])), 2)
    committed = rows_of(PAGE.read_text(encoding="utf-8"), 2)
    assert len(now) == 2 * len(METRICS) * len(ESTIMATES) * 3 + (10 + 9 * 4) * len(ESTIMATES)
    assert now == committed


@needs_traces
def test_every_line_of_a_log_can_be_kept() -> None:
    log = read_workload(TRACES / "archive" / "SDSC-SP2-1998-4.2-cln.swf.gz")
    kept = every_line(log)
    assert len(kept) == log.provenance.lines == 59715
    assert kept.runtime.min() == kept.limit.min() == 1
