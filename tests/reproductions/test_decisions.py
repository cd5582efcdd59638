"""What decisions cost: a week of KTH-SP2 whose decisions are charged, and what is claimed of waits."""

from __future__ import annotations

from pathlib import Path

import pytest

from dovetail.studies.store import Store
from dovetail.studies.task import Cell
from reproductions.decisions.page import KTH, LISTS, PLANNERS, no_matter, solve, still_less, values
from reproductions.folders import find
from reproductions.running import Work
from reproductions.runs import Run, Runs
from reproductions.values import Value, Values
from tests.conftest import TRACES, needs_traces


def made(policy: str, times: int, wait_s: float, charged_s: float = 0.0) -> Run:
    numbers = {"jobs": 10.0, "passes": 20.0, "charged_s": charged_s, "wait_s": wait_s, "bsld": 1.0, "waited": 0.5}
    return Run(Cell(KTH, f"charged {times} times", "all", policy, "runtime", 0), numbers, 1.0, "", "")


def shown(runs: list[Run]) -> Values:
    return Values({key: Value(one, "", "run") for key, one in values(Runs(runs), {}).items()}, {})


@needs_traces
def test_charged_a_thousand_times_a_list_waits_longer(tmp_path: Path) -> None:
    work = Work(find("decisions"), TRACES, Store(tmp_path))
    free, charged = (
        solve(Cell(KTH, f"charged {times} times", "all", "easy", "runtime", 0), work) for times in (0, 1000)
    )
    assert free["charged_s"] == 0
    assert free["waited"] > 0.2  # jobs wait in this week
    assert charged["charged_s"] > 10
    assert charged["wait_s"] > free["wait_s"]
    assert free["jobs"] == charged["jobs"]


@pytest.mark.parametrize(("more", "holds"), [(0.5, "yes"), (2.0, "no")])
def test_whether_decisions_matter(more: float, holds: str) -> None:
    names = [*LISTS[KTH], *PLANNERS[KTH]]
    runs = [made(name, times, 100.0) for name in names for times in (0, 1)]
    judged = no_matter(shown([*runs, made("easy", 1, 100.0 + more, 0.4)]), KTH, 1.0)
    assert (judged.ours, judged.holds) == (f"+0.00 to +{more:.2f} %", holds)


def test_the_time_of_a_decision_and_who_waits_less() -> None:
    found = shown([made("plan-af", 1, 90.0, 0.4), made("plan-af", 100, 95.0, 44.0), made("sjf-easy", 0, 95.0)])
    assert found.need(KTH, "plan-af", "decision (ms)") == pytest.approx(20)
    assert found.number(f"figure: {KTH}", "plan-af", "2.2") == 95
    assert still_less(found, KTH, "plan-af", "sjf-easy", "1").holds == "yes"
    assert still_less(found, KTH, "plan-af", "sjf-easy", "100").holds == "no"
