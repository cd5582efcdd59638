"""The page of the dispatcher paper, from a small study on a morning of Eurora."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dovetail.studies.papers import dispatch_tables
from dovetail.studies.papers.dispatch_tables import Ran, compared, difference
from dovetail.studies.papers.page import Runs
from tests.conftest import TRACES, needs_traces
from tests.studies.small import ran

STUDY = f"""\
name = "dispatch-tables"
baseline = "pcp21"
policies = ["pcp21", "pcp19", "hcp19", "sjf-easy:place=scarce"]
estimates = ["runtime"]
[[traces]]
name = "Eurora"
path = "{TRACES}/heterogeneous/eurora_jobs_merged.csv.gz"
cluster = "eurora"
scenarios = ["span=57600..59400"]
"""


@needs_traces
def test_the_page(tmp_path: Path) -> None:
    store, tasks = ran(tmp_path, STUDY)
    whole = dispatch_tables.page(Runs(TRACES, store, tasks))
    assert whole.facts["missing"] == 0
    assert whole.facts["statements"] == 2
    jobs = len(store.schedule(tasks[0].name).workload)  # type: ignore[union-attr]
    assert f"## Eurora: {jobs} jobs" in whole.text
    assert "| as recorded |" in whole.text
    for name in ("PCP'21", "PCP'19", "HCP'19", "`sjf-easy:place=scarce`"):
        assert f"\n| {name} | runtime |" in whole.text


def made(wait: list[int], decision_ms: float) -> Ran:
    waits = np.array(wait)
    return Ran(waits, (waits + 10) / 10, waits, 100, decision_ms / 10)


@pytest.mark.parametrize(("ours", "ms", "holds"), [(5, 0.5, True), (5, 2.0, False), (60, 0.5, False), (0, 1.0, True)])
def test_no_worse_and_faster(ours: int, ms: float, holds: bool) -> None:
    runs = {("x", "limit", "pcp21"): made([5] * 50, 100.0), ("x", "limit", "easy"): made([ours] * 50, ms)}
    (said,) = compared(runs, ["x"], "limit", ["pcp21", "easy"])
    assert said.holds is holds


def test_intervals_are_over_blocks() -> None:
    """A difference that is one lucky block is no difference."""
    theirs = np.zeros(100)
    ours = theirs.copy()
    ours[:10] = 50
    mean, low, high = difference(ours, theirs)
    assert mean == 5
    assert low < 0 < high
