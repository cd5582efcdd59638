"""The statements of DBF under each sweep: which jobs count, and that each statement is judged with its own numbers."""

from __future__ import annotations

import numpy as np

from dovetail.model.schedule import Schedule
from dovetail.model.workload import Step
from dovetail.studies.task import Cell
from reproductions.claims import NOT_RUN, spread
from reproductions.dbf_figure_1.page import PAPERS
from reproductions.dbf_sweeps.page import NO_REPLAY, SECTION_2, SWEEPS, measure, values
from reproductions.dbf_tables.page import SHARES
from reproductions.folders import find
from reproductions.pages import content
from reproductions.runs import Run, Runs
from tests.metrics.schedules import schedule_of

BELOW = "EASY consistently has a smaller mean wait than CBF"


def schedule(policy: str, starts: list[int]) -> Schedule:
    """Four jobs that arrive at 0; the last has a deadline."""
    made = schedule_of([(0, start, 1, 10) for start in starts])
    one = made.workload.with_columns(Step("deadlines"), deadline_s=np.array([-1, -1, -1, 86_400]))
    return type(made)(**{**vars(made), "workload": one, "policy": policy})


def test_a_regular_job_counts_if_it_waited_under_one_of_the_three() -> None:
    cbf, dbf = SWEEPS["start-now"]
    made = {cbf: [0, 6, 0, 9], "easy": [0, 0, 3, 9], dbf: [0, 3, 0, 9], "dbf:guard=no": [7, 7, 7, 7]}
    ran = {policy: schedule(policy, starts) for policy, starts in made.items()}
    found = measure(ran[cbf], ran.__getitem__)
    assert (found["counted"], found["cbf_wait_s"], found["easy_wait_s"], found["dbf_wait_s"]) == (2, 3, 1.5, 1.5)
    assert set(measure(ran["easy"], ran.__getitem__)) == {"late_short", "late_long"}


def runs_with(counted: float) -> Runs:
    """EASY is above CBF under `start-now` and below it under `none`."""
    numbers = dict.fromkeys(find("dbf-sweeps").about.metrics, 1.0) | {
        "counted": counted,
        "easy_wait_s": 5.0,
        "jobs": 9.0,
    }
    waits = {SWEEPS["start-now"][0]: 4.0, SWEEPS["none"][0]: 50.0}
    policies = ["easy", *(one for sweep in ("start-now", "none") for one in SWEEPS[sweep])]
    found = []
    for log in PAPERS:
        for place, share in enumerate(SHARES.values()):
            for policy in policies:
                own = {"cbf_wait_s": waits.get(policy, 0.0), "dbf_wait_s": 3.0 - place / 2}
                found.append(Run(Cell(log, share, "all", policy, "limit", 0), numbers | own, 1.0, "", ""))
    return Runs(found)


def test_each_sweep_is_judged_by_its_own_waits() -> None:
    found = values(runs_with(9), {})
    assert (found["holds", BELOW, "start-now"], found["holds", BELOW, "none"]) == ("no", "yes")
    assert found["ours", BELOW, "none"] == "in 12 of 12 configurations"
    assert ("holds", BELOW, "once") not in found
    assert found["start-now, wait_s: HPC2N", "CBF", "20 %"] == 4


def test_nothing_is_said_where_no_job_waited() -> None:
    assert values(runs_with(0), {}) == {}


def test_the_page_judges_all_statements_of_dbf_tables_but_that_on_cpu_times() -> None:
    theirs = [claim.says for claim in find("dbf-tables").claims if claim.function != NO_REPLAY]
    folder = find("dbf-sweeps")
    assert [one.says for claim in folder.claims for one in spread(claim) if one.whose == "paper"] == theirs
    made = content(folder)
    assert len(theirs) == 18
    assert NOT_RUN not in {one.holds for one in made.said}
    for sweep in (SECTION_2, "none", "once"):
        assert len(made.values.numbers(f"{sweep}, wait_s: *")) == 3 * 3 * 4
        assert all(made.values.text("holds", says, sweep) for says in theirs)
