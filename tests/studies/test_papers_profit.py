"""The page on the profit paper: its schedulers are what it says, and its numbers come from what was made."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.published.daily import Daily
from dovetail.policies.registry import policy
from dovetail.studies.papers.profit import page_of
from dovetail.studies.papers.profit_cases import CP, DELAY, MULTI, ONE, PLAN, SCENARIOS, cases, of
from dovetail.studies.papers.profit_runs import NODES, RULES, Kept, Result, policy_of, run
from tests.conftest import TRACES, needs_traces

ROOT = Path(__file__).parents[2]


def made(profit: float, used: float = 0.99, days: int = 2) -> Result:
    day = {"jobs": 9, "profit": 100.0, "gained": 1.0, "improved": True, "cpu_s": 2.0, "best_cpu_s": 1.0}
    return Result(33_696, profit, used, 1.426, 9.4, 40.0, 2 * profit, [profit / 2, profit], [day] * days, 3.0)


def test_gains_are_over_the_best_rule_of_the_same_draw() -> None:
    results = {}
    for number, case in enumerate(cases()):
        worth = {MULTI: 1020.0, DELAY: 1030.0, PLAN: 1040.0, CP: 900.0}.get(case.way, 1000.0 - number % 7)
        results[case] = made(worth + 10 * case.seed)
    for scenario in SCENARIOS:
        for seed in range(3):
            results[of("nonstrict-wt", scenario, seed)] = made(1000.0 + 10 * seed)
    found = page_of(results)
    assert found.facts["missing"] == 0
    # 1030 over 1000, 1040 over 1010, 1050 over 1020; the planner's 1040 over 1000, ...
    assert "| air | winter | 7.71 | 2.97 (2.94 to 3.00) | 3.96 (3.92 to 4.00) |" in found.text
    assert "| 7.71 % above the best rule" not in found.text
    assert "| profit 7.71 % above the best rule (air, winter) | 2.97 (2.94 to 3.00) % | **in part** |" in found.text
    assert f"| air | winter | 10.45 | {100 * (1020 / 900 - 1):+.2f} | {100 * (1030 / 900 - 1):+.2f} |" in found.text
    assert "| DelaySearch improves 48.0 % of the days | 100.0 % of 24 days | yes |" in found.text
    assert "not run" not in found.text


def test_what_was_not_made_is_said() -> None:
    like = of(MULTI, ONE)
    results = {replace(like, way=way): made(1000.0) for way in (*RULES, MULTI)}
    found = page_of(results)
    assert found.facts["missing"] == len(cases()) - 7
    assert f"{len(cases()) - 7} of {len(cases())} schedules have not been made" in found.text
    assert "not run" in found.text
    assert page_of({}).facts["missing"] == len(cases())


def test_rules_are_those_of_the_paper() -> None:
    """Four processors. Job 1 does not fit beside job 0: strict rules stop there, the others go on."""
    columns = {
        "id": [0, 1, 2, 3], "submit": [0, 1, 2, 3], "size": [3, 2, 1, 1], "runtime": [100, 20, 30, 10],
        "limit": [100, 20, 30, 10], "power_mw": [9000, 8000, 9500, 8500],
    }  # fmt: skip
    workload = Workload("c", {key: np.array(column) for key, column in columns.items()}, 4, Provenance("made"))
    starts = {way: replay(workload, policy_of(way, workload), estimate="runtime").start.tolist() for way in RULES}
    assert starts["strict-est"] == [0, 100, 100, 100]
    assert starts["nonstrict-est"] == [0, 100, 2, 32]
    assert starts["strict-wt"] == [0, 100, 100, 3]  # at 1 s only job 1 waits, at 3 s job 3 is the shortest
    assert starts["nonstrict-wt"] == [0, 100, 2, 32]
    assert starts["strict-profit"] == [0, 100, 100, 100]
    assert starts["nonstrict-profit"] == [0, 100, 2, 32]


def test_every_way_has_a_policy() -> None:
    for way in {case.way for case in cases()} - {*RULES, *(NODES + rule for rule in RULES)}:
        found = policy(way)
        assert found.name == way
        assert isinstance(found, Daily) == way.startswith("daily")


def test_results_are_kept(tmp_path: Path) -> None:
    kept, case = Kept(tmp_path), of(MULTI, ONE)
    assert kept.found(case) is None
    kept._place(case).write_text(json.dumps(asdict(made(5.0))), encoding="utf-8")
    assert kept.found(case) == made(5.0)
    assert kept.found(replace(case, seed=1)) is None
    kept._place(case).write_text("{}", encoding="utf-8")
    assert kept.found(case) is None


@needs_traces
def test_a_number_of_the_page_is_made_again() -> None:
    found = run(TRACES, of("nonstrict-est", ONE))
    page = (ROOT / "docs" / "results" / "profit.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| nonstrict-est |"))
    assert f"| {found.profit:,.0f} |" in row
    assert found.jobs == 33_696
    assert found.profits[-1] == pytest.approx(found.all_profit)
    assert found.profits == sorted(found.profits)
