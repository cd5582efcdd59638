"""The page on generated jobs of Eurora, from a small study of two thousand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dovetail.studies.papers import dispatch_generated
from dovetail.studies.papers.dispatch_generated import statements
from dovetail.studies.papers.dispatch_tables import Key, Ran
from dovetail.studies.papers.page import Runs
from tests.conftest import TRACES, needs_traces
from tests.studies.small import ran

TRACE = f"""\
[[traces]]
path = "{TRACES}/heterogeneous/eurora_jobs_merged.csv.gz"
cluster = "eurora"
"""
STUDY = f"""\
name = "dispatch-generated"
policies = ["pcp21", "sjf-easy:place=scarce"]
estimates = ["runtime", "similar", "recent", "limit"]
{TRACE}
name = "whole"
scenarios = ["lengthen=2000,mix=reported"]
{TRACE}
name = "span"
scenarios = ["lengthen=2000,mix=reported", "span=57600..59400"]
[[exclude]]
trace = "whole"
policy = "pcp21"
[[exclude]]
trace = "span"
estimate = "limit"
"""


@needs_traces
def test_the_page(tmp_path: Path) -> None:
    store, tasks = ran(tmp_path, STUDY)
    made = dispatch_generated.page(Runs(TRACES, store, tasks))
    assert (made.facts["missing"], made.facts["statements"]) == (0, 2)  # of the whole: similar jobs, and time
    for estimate in ("runtime", "similar", "recent"):
        assert f"\n| span | {estimate} | `sjf-easy:place=scarce` | slowdown " in made.text
    assert "## whole: 2,000 jobs" in made.text
    for estimate in ("similar", "recent", "limit"):
        assert f"\n| `sjf-easy:place=scarce` | {estimate} |" in made.text
        assert f"\n| whole | {estimate} |" in made.text
    assert "\n| whole | limit | 100 |" in made.text
    assert "PBS" not in made.text  # nobody recorded waits of jobs that were drawn


def runs(slowdown: dict[str, float], ms: float) -> dict[Key, Ran]:
    none = np.zeros(40_000, np.int64)
    return {
        ("x", estimate, "easy"): Ran(none, np.full(len(none), value), none, 1000, ms)
        for estimate, value in slowdown.items()
    }


@pytest.mark.parametrize(
    ("similar", "ms", "holds"), [(2.0, 1.0, [True, True]), (3.5, 1.0, [False, True]), (2.0, 3.0, [True, False])]
)
def test_similar_jobs_and_time(similar: float, ms: float, holds: list[bool]) -> None:
    said = statements(runs({"similar": similar, "recent": 3.0, "limit": 4.0}, ms), "x", ["easy"])
    assert [one.holds for one in said] == holds
    assert "209 ms" in said[1].text
