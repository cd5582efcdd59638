"""The page on the profit paper: its schedulers are what it says, and gains are over the best rule."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail.energy.site import Site
from dovetail.engine.replay import replay
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.published.daily import Daily
from dovetail.policies.registry import policy
from reproductions.folders import find
from reproductions.profit.page import BEST, CHEAP, CP, DELAY, HELD, MULTI, ONE, PLAN, RELAX, cells, values
from reproductions.profit.schedules import MAIN, NODES, RULES
from reproductions.runs import Run, Runs
from reproductions.values import read_printed

CELLS = cells(None)  # type: ignore[arg-type]
PRINTED = read_printed(find("profit").path)


def test_gains_are_over_the_best_rule_of_the_same_draw() -> None:
    worth = {MULTI: 1020.0, DELAY: 1030.0, PLAN: 1040.0, CP: 900.0, RELAX: 1010.0, "nonstrict-wt": 1000.0}
    day = {"days": 2, "searched": 1, "improved": 2, "gained": 2.0, "day_profit": 200.0, "search_s": 4.0, "best_s": 2.0}
    runs = []
    for cell in CELLS:
        profit = worth.get(cell.policy.removeprefix(NODES), 990.0) + 10 * cell.seed
        numbers = {
            "profit": profit,
            "profit_a_day": profit,
            "work_d": 39,
            "used": 0.99,
            "pue": 1.426,
            "watts": 9.4,
            "jobs": 9,
        }
        curves = {"profits": [(1, profit / 2), (2, profit)]}
        runs.append(Run(cell, {**numbers, "makespan_d": 40.0, "search_most_s": 3.0, **day}, 1.0, "", "", curves))
    found = values(Runs(runs), PRINTED)
    # 1030 over 1000, 1040 over 1010, 1050 over 1020; the planner's 1040 over 1000, ...
    gains = [100 * (1030 / 1000 - 1), 100 * (1040 / 1010 - 1), 100 * (1050 / 1020 - 1)]
    wanted = {"search": sum(gains) / 3, "search low": gains[2], "search high": gains[0], "ours high": 4.0}
    assert {key: found[CHEAP, "air, winter", key] for key in wanted} == pytest.approx(wanted)
    assert found["CP", "air, winter", "how"] == "DelaySearch; CP-SAT has a plan on 1 of 2 days"
    assert found["Figs. 5 to 8", "DelaySearch", "air, winter"] == pytest.approx(100 * (1030 / 900 - 1))
    assert [found["Time", "DelaySearch", key] for key in ("days", "improved", "gained")] == pytest.approx([12, 100, 1])
    assert found["Nodes", "300 nodes", "rule"] == "nonstrict-wt"
    assert found["figure: air, winter", "ours", "2"] == pytest.approx(40)
    one = [run for run in runs if run.cell.policy != "nonstrict-wt"]
    assert (CHEAP, "air, winter", "search") not in values(Runs(one), PRINTED)


def test_gains_by_width_are_over_the_best_strict_and_the_best_other_rule() -> None:
    """On each machine over the rules on that machine; and a table without its runs is not there."""
    worth = {
        BEST: 1100.0,
        "strict-wt": 1000.0,
        "nonstrict-est": 1050.0,
        NODES + BEST: 990.0,
        NODES + "strict-est": 900.0,
    }
    day = {"work_d": 39.0, "used": 0.9, "makespan_d": 40.0, "jobs": 9, "pue": 1.4, "profit_a_day": 1.0}
    runs = [
        Run(cell, {"profit": worth.get(cell.policy, 800.0), **day}, 1.0, "", "")
        for cell in CELLS
        if cell.scenario == f"{ONE}; {MAIN}" and cell.policy != HELD
    ]
    found = values(Runs(runs), PRINTED)
    assert found["Widths", "9,600, pool", "over strict"] == pytest.approx(10)
    assert found["Widths", "9,600, pool", "over other"] == pytest.approx(100 * (1100 / 1050 - 1))
    assert found["Widths", "2,400, nodes", "over strict"] == pytest.approx(10)
    assert found["Widths", "2,400, nodes", "strict"] == "strict-est"
    assert found["Widths", "1,200, pool", "work"] == 39.0
    assert ("Widths", "1,200, pool", "held") not in found
    assert found["Table 1", ONE, "search"] == pytest.approx(100 * (1100 / 1050 - 1))
    assert ("Table 1", "air, winter", "search") not in found


def test_rules_are_those_of_the_paper() -> None:
    """Four processors. Job 1 does not fit beside job 0: strict rules stop there, the others go on."""
    columns = {
        "id": [0, 1, 2, 3], "submit": [0, 1, 2, 3], "size": [3, 2, 1, 1], "runtime": [100, 20, 30, 10],
        "limit": [100, 20, 30, 10], "power_mw": [9000, 8000, 9500, 8500],
    }  # fmt: skip
    workload = Workload("c", {key: np.array(column) for key, column in columns.items()}, 4, Provenance("made"))
    site = Site("s", 9000)
    starts = {way: replay(workload, way, estimate="runtime", site=site).start.tolist() for way in RULES}
    assert starts["strict-est"] == [0, 100, 100, 100]
    assert starts["nonstrict-est"] == [0, 100, 2, 32]
    assert starts["strict-wt"] == [0, 100, 100, 3]  # at 1 s only job 1 waits, at 3 s job 3 is the shortest
    assert starts["nonstrict-wt"] == [0, 100, 2, 32]
    assert starts["strict-profit"] == [0, 100, 100, 100]
    assert starts["nonstrict-profit"] == [0, 100, 2, 32]


def test_every_way_has_a_policy() -> None:
    for way in {cell.policy.removeprefix(NODES) for cell in CELLS} - {*RULES}:
        found = policy(way)
        assert found.name == way
        assert isinstance(found, Daily) == way.startswith(("daily", "multisearch", "delaysearch"))
