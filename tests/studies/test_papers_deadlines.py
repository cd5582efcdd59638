"""Tables 2 and 3 and Figs. 2 to 7 of DBF: what is measured in each run, and a page from any part of them."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import numpy as np
import pytest

from dovetail.io.read import read_workload
from dovetail.model.workload import Step
from dovetail.studies.grid import _prepared
from dovetail.studies.papers import dbf_tables
from dovetail.studies.papers.dbf_figure_1 import PAPERS, SOURCES
from dovetail.studies.papers.dbf_runs import SHARES, THREE, numbers, results
from dovetail.studies.papers.page import Runs
from dovetail.studies.papers.registry import find
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store
from tests.conftest import ROOT, TRACES, needs_traces
from tests.metrics.schedules import schedule_of
from tests.studies.small import ran

STUDY = """\
name = "dbf-tables"
policies = ["conservative", "easy", "dbf:guard=no", "dbf", "plan-deadline"]
scenarios = ["deadlines=0.2", "deadlines=0.4", "deadlines=0.6", "deadlines=0.8"]
seeds = 2
[[exclude]]
policy = "plan-deadline"
seed = 1
"""
TRACE = '[[traces]]\nname = "{}"\ngenerate = {{jobs = 150, processors = 16, load = 0.95}}\n'


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    """All runs of a study like that of the paper, on small workloads with the names of its logs."""
    folder = tmp_path_factory.mktemp("dbf")
    return Runs(TRACES, *ran(folder, STUDY + "".join(TRACE.format(name) for name in PAPERS)))


def test_the_numbers_of_a_run_by_hand() -> None:
    rows = [(0, 0, 2, 10), (0, 10, 2, 20), (0, 5, 2, 15), (0, 0, 2, 40), (0, 80_000, 2, 20_000), (0, 50, 2, 10)]
    made = schedule_of(rows)
    deadline_s = np.array([-1, -1, -1, 86_400, 86_400, 200_000])
    one = made.workload.with_columns(Step("deadlines"), deadline_s=deadline_s)
    schedule = type(made)(**{**vars(made), "workload": one, "accepted": np.array([-1, -1, -1, 1, 0, 1])})
    found = numbers(schedule, np.array([False, True, True, True, True, True]), 2.5)
    assert (found.wait_s, found.every_wait_s, found.max_wait_s) == (7.5, 5.0, 10.0)  # the first waited nowhere
    assert (found.max_stretch, found.every_max_wait_s) == (1.5, 10.0)
    assert (found.late_short, found.late_long, found.refused, found.missed) == (1, 0, 1, 0)
    assert found.driven_at_once == pytest.approx(1 / 3)
    assert found.usage == pytest.approx((100_000 / 86_400 + 60 / 200_000) / 2)
    assert found.above_80 == pytest.approx(1 / 3)
    assert found.cpu_s == 2.5


def test_what_is_there_is_measured(runs: Runs) -> None:
    found = results(runs)
    assert found.missing == 0
    assert len(found.found) == len(runs.tasks) == 3 * 4 * (4 * 2 + 1)
    values = found.values("HPC2N", 0.4, "dbf", lambda n: n.wait_s)
    assert len(values) == 2
    assert found.mean("HPC2N", 0.4, "dbf", lambda n: n.wait_s) == pytest.approx(sum(values) / 2)
    # Student's t for two values is 12.706, and their mean has a standard error of half their distance.
    half = 12.7062 * abs(values[0] - values[1]) / 2
    assert found.half("HPC2N", 0.4, "dbf", lambda n: n.wait_s) == pytest.approx(half, rel=1e-4)
    assert isnan(found.half("HPC2N", 0.4, "plan-deadline", lambda n: n.wait_s))
    assert {key[2] for key in found.waits} == {"conservative", "easy", "dbf:guard=no", "dbf", "plan-deadline"}
    assert all(n.missed == 0 for key, n in found.found.items() if key[3] in ("dbf", "plan-deadline"))


@needs_traces
def test_the_page_of_all_runs(runs: Runs) -> None:
    page = dbf_tables.page(runs)
    assert page.facts["statements"] == 19
    assert page.facts["missing"] == 0
    assert "not run" not in page.text
    assert sorted(page.pictures) == [f"dbf-figure-{n}.svg" for n in range(2, 8)]
    assert all(f"({name})" in page.text for name in page.pictures)
    assert "| SDSC-BLUE | 10,770 | 19,516 | 458 | 23,434 | 8,115 |" in page.text  # Table 1, from the log itself


@needs_traces
def test_the_page_of_some_runs(runs: Runs, tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    store.create()
    for task in runs.tasks:
        store.keep(runs.store.workload(task.workload_sha256))
        if task.cell.policy in THREE and task.cell.trace == "SDSC-DS" and task.cell.scenario != "deadlines=0.6":
            name = f"{task.name}.parquet"
            (store.path / "runs" / name).write_bytes((runs.store.path / "runs" / name).read_bytes())
    page = dbf_tables.page(Runs(runs.traces, store, runs.tasks))
    assert page.facts["statements"] == 0
    assert page.facts["missing"] == len(runs.tasks) - 3 * 2 * 3
    assert "Too few runs are there" in page.text
    assert "not run" in page.text


@needs_traces
def test_the_logs_are_prepared_as_in_the_paper() -> None:
    path = find("dbf-tables").study
    assert path is not None
    study = read_study(path)
    for trace in study.traces:
        if trace.name in PAPERS:
            log = read_workload(trace.path.replace("$DOVETAIL_TRACES", str(TRACES)))
            made = _prepared(log, trace, 0)
            assert len(made) == SOURCES[trace.name].jobs
            assert made.size.max() <= made.processors
            assert bool((made.runtime <= made.limit).all())


def test_the_committed_page_has_every_log_and_share() -> None:
    text = (ROOT / "docs" / "results" / "dbf-tables.md").read_text(encoding="utf-8")
    for log in PAPERS:
        for share in SHARES:
            assert f"| {log} | {100 * share:.0f} | " in text
