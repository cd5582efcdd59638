"""Tables of list scheduling: the printed numbers are whole, and rules of ties and counting are those of slow code."""

from __future__ import annotations

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
from dovetail.studies.spec import placed
from dovetail.studies.task import Cell
from reproductions import ties
from reproductions.folders import find
from reproductions.list_tables import COUNTS, WITH_TIES, causes, counts, fit, fits, measure, pairs, percents
from reproductions.packing_table_2.page import POLICIES, every_line
from reproductions.runs import Run, Runs
from reproductions.values import Content, Key, read_printed
from tests.conftest import TRACES, needs_traces

HERE = Path(ties.__file__).parent / "cp_table_2"


def printed(name: str) -> dict[Key, Content]:
    return read_printed(find(name).path)


def test_the_printed_tables_have_every_cell() -> None:
    table, other = printed("packing-table-2"), printed("cp-table-2")
    assert len(table) == 10 * 4 * 6 * 2
    assert {key[1] for key in table} == set(POLICIES)
    assert len(other) == 11 * 12
    assert {key: text for key, text in other.items() if isinstance(text, str)} == {
        ("BSLD, runtime", "List-SPF", "SDSC-SP2"): "2?"
    }
    for one, base in ((table, "JustBF"), (other, "List-REG")):
        assert {number for key, number in one.items() if key[1] == base} == {100}
    changes = printed("packing-table-3")
    assert len(changes) == 2 * (4 + 4 + 7 + 7) * 6
    assert changes["Table III: JustBF", "CVH", "SDSC-SP2"] == 1837.6
    assert changes["Table IV: LAF-JustBF", "SP-4%", "CEA-Curie"] == -1.73


def test_the_two_tables_agree_where_both_have_a_cell() -> None:
    # Rounding in two ways makes a point of difference; more would be an error of transcription.
    names = {"List-SAF": "SAF-JustBF", "List-SJF": "SJF-JustBF", "List-LAF": "LAF-JustBF", "EASY": "EASY"}
    table = printed("packing-table-2")
    both = [
        (number, table[key[0], names[key[1]], key[2]])
        for key, number in printed("cp-table-2").items()
        if key[1] in names
    ]
    assert len(both) == 9 * 12
    assert max(abs(float(one) - float(other)) for one, other in both) == 1


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
    found = measure(small_schedule(), lambda _: small_schedule())
    waits = [[0, 10, 20, 5][job] for job in kept]
    assert found["bsld" + COUNTS[rule]] == pytest.approx(sum(1 + wait / 10 for wait in waits) / len(waits))


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
        both = [(e, s) if name.endswith("sjf") else (s * e * e, s * e) for s, e in jobs]
        places = {pair: place for place, pair in enumerate(sorted(set(both)))}
        return [places[pair] for pair in both]

    return ListPolicy(order=keys, reserve=0 if name.startswith("greedy-") else "all")


@pytest.mark.parametrize("name", WITH_TIES)
def test_ties_are_those_of_sorted_tuples(name: str) -> None:
    draw, n = np.random.default_rng(7), 600
    size, limit = draw.choice([1, 2, 4, 8], n), draw.choice([60, 120, 240], n)  # many keys are equal
    submit, runtime = np.sort(draw.integers(0, 20_000, n)), draw.integers(1, limit + 1)
    columns = {"id": np.arange(n), "submit": submit, "size": size, "runtime": runtime, "limit": limit}
    busy = Workload("busy", columns, 10, Provenance("drawn"))
    chosen = policy(placed(WITH_TIES[name], HERE))
    starts = replay(busy, chosen, estimate="limit").start.tolist()
    assert starts == replay(busy, in_python(name), estimate="limit").start.tolist()
    assert starts != replay(busy, policy(name), estimate="limit").start.tolist()


def test_cells_are_per_cent_of_the_base_under_each_rule() -> None:
    def run(policy: str, bsld: float, last: float) -> Run:
        numbers = {"bsld": bsld, "bsld_ended": bsld, "bsld_but_last": last, "bsld_middle": bsld}
        return Run(Cell("KTH-SP2", "", "all", policy, "limit", 0), numbers, 0.0, "", "")

    table: dict[Key, Content] = {("BSLD, limit", "SJF", "KTH-SP2"): 80.0, ("BSLD, limit", "REG", "KTH-SP2"): 100.0}
    runs = Runs([run("list-sjf", 5, 4), run(WITH_TIES["list-sjf"], 9, 8), run("list-reg", 10, 10)])
    found = percents(runs, table, {"SJF": "list-sjf", "REG": "list-reg"}, "REG")
    assert found["submit, all: BSLD, limit", "SJF", "KTH-SP2"] == 50
    assert found["authors, but last: BSLD, limit", "SJF", "KTH-SP2"] == 80
    assert fit(pairs(found, table, "authors, but last")) == {
        "cells": 1, "near": 1, "far": 0, "equal": 1, "unequal": 0, "off": 0
    }  # fmt: skip
    assert fits(found, table)["fits", "submit, but last", "off"] == 40
    why = causes(found, table)
    assert why["causes", "both together", "list"] == "- BSLD, SJF: KTH-SP2 (limit)"
    assert why["causes", "ties alone", "cells"] == 0


@needs_traces
def test_every_line_of_a_log_can_be_kept() -> None:
    log = read_workload(TRACES / "archive" / "SDSC-SP2-1998-4.2-cln.swf.gz")
    kept = every_line(log)
    assert len(kept) == log.provenance.lines == 59715
    assert kept.runtime.min() == kept.limit.min() == 1
