"""Tables 2 and 3 and Figs. 2 to 7 of DBF: what is measured in each run, and how it is averaged."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from dovetail.io.read import read_workload
from dovetail.model.workload import Step
from dovetail.studies.grid import _prepared
from dovetail.studies.spec import read_study
from dovetail.studies.task import Cell
from reproductions.dbf_figure_1.page import PAPERS
from reproductions.dbf_tables.page import measured, values
from reproductions.folders import find
from reproductions.runs import Run, Runs
from reproductions.values import read_printed
from tests.conftest import TRACES, needs_traces
from tests.metrics.schedules import schedule_of


def test_the_numbers_of_a_run_by_hand() -> None:
    rows = [(0, 0, 2, 10), (0, 10, 2, 20), (0, 5, 2, 15), (0, 0, 2, 40), (0, 80_000, 2, 20_000), (0, 50, 2, 10)]
    made = schedule_of(rows)
    deadline_s = np.array([-1, -1, -1, 86_400, 86_400, 200_000])
    one = made.workload.with_columns(Step("deadlines"), deadline_s=deadline_s)
    schedule = type(made)(**{**vars(made), "workload": one})
    found = measured(schedule, np.array([False, True, True, False, False, False]))  # the first waited nowhere
    assert (found["wait_s"], found["max_wait_s"], found["max_stretch_waited"]) == (7.5, 10.0, 1.5)
    assert (found["first_quartile_s"], found["third_quartile_s"], found["at_once"]) == (6.25, 8.75, 0)
    assert (found["late_short"], found["late_long"]) == (1, 0)
    waits = found["waits"]
    assert not isinstance(waits, float)
    assert (waits[0], waits[-1]) == ((5.0, 0), (10.0, 100))


def test_means_and_intervals_are_over_the_seeds_that_were_run() -> None:
    numbers = dict.fromkeys(find("dbf-tables").about.metrics, 1.0)
    runs = [
        Run(Cell("HPC2N", "deadlines=0.4", "all", "dbf", "limit", seed), {**numbers, "wait_s": wait}, 2.0, "", "")
        for seed, wait in enumerate((10.0, 14.0))
    ]
    found = values(Runs(runs), {})
    assert found["wait_s: HPC2N", "dbf", "40 %"] == 12
    # Student's t for two values is 12.706, and their mean has a standard error of half their distance.
    assert found["wait_s, ±: HPC2N", "dbf", "40 %"] == pytest.approx(12.7062 * 2, rel=1e-4)
    assert found["first seed: dbf", "HPC2N, 40 %", "wait_s"] == 10
    half = values(Runs(runs[:1]), {})["wait_s, ±: HPC2N", "dbf", "40 %"]
    assert isinstance(half, float)
    assert isnan(half)
    assert ("planner", "HPC2N, 40 %", "change, %") not in found
    plan = Run(Cell("HPC2N", "deadlines=0.4", "all", "plan-deadline", "limit", 0), numbers, 2.0, "", "")
    assert values(Runs([*runs, plan]), {})["planner", "HPC2N, 40 %", "change, %"] == 0


@needs_traces
def test_the_logs_are_prepared_as_in_the_paper() -> None:
    folder = find("dbf-tables")
    printed = read_printed(folder.path)
    for trace in read_study(folder.path / "study.toml").traces:
        if trace.name in PAPERS:
            log = read_workload(trace.path.replace("$DOVETAIL_TRACES", str(TRACES)))
            made = _prepared(log, trace, 0)
            assert len(made) == printed["Table 2", trace.name, "jobs"]
            assert made.size.max() <= made.processors
            assert bool((made.runtime <= made.limit).all())
