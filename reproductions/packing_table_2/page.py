"""Table II of Packing from the runs, and the question of which jobs they were."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Step, Workload
from dovetail.policies.registry import policy
from dovetail.studies.spec import placed
from dovetail.studies.task import Cell
from dovetail.workloads import filters
from reproductions.list_tables import AUTHORS, WITH_TIES, beside, causes, fit, fits, measure, pairs, percents
from reproductions.running import Work
from reproductions.runs import Runs
from reproductions.values import Content, Key

__all__ = ["beside", "cells", "measure", "solve", "values"]

POLICIES: Final = {
    "LAF-JustBF": "list-laf", "LAF-Aggressive": "greedy-laf", "JustBF": "list-reg", "EASY": "easy",
    "EASY-SJBF": "easy-sjbf", "SJF-Aggressive": "greedy-sjf", "SAF-Aggressive": "greedy-saf", "SJF-JustBF": "list-sjf",
    "SAF-JustBF": "list-saf", "SAF-EASY": "saf-easy",
}  # fmt: skip
ARCHIVE: Final = {
    "KTH-SP2": "KTH-SP2-1996-2", "CTC-SP2": "CTC-SP2-1996-3.1-cln", "SDSC-SP2": "SDSC-SP2-1998-4.2-cln",
    "SDSC-BLUE": "SDSC-BLUE-2000-4.2-cln", "CEA-Curie": "CEA-Curie-2011-2.1-cln",
}  # fmt: skip
"""The archive's log behind each trace."""
REFILTERED: Final = ("SDSC-SP2", "SDSC-BLUE", "CEA-Curie")
"""The traces whose printed number of jobs is not that of the authors' file."""
EVERY_LINE, STANDARD = " every line", " standard"
"""Behind a trace's name: the archive's log in its place, all of it, or through that filter."""
READ: Final = "read"
"""The policy of the cells that only count the lines of a log."""


def every_line(log: Workload) -> Workload:
    """An archive log with no job dropped for want of a run time or a limit (made 1 s, and the run time)."""
    lost = log.runtime <= 0
    step = Step("run time 0 or less made 1 s", changed=int(lost.sum()))
    log = log.with_columns(step, runtime=np.where(lost, 1, log.runtime))
    steps = (filters.known_size, filters.fits_machine, filters.limit_from_runtime, filters.known_submit)
    for apply in (*steps, filters.cut_at_limit):
        log = apply(log)
    return log


def cells(work: Work) -> list[Cell]:
    """The archive's logs beside the authors' files; and runs on every line of three of them, which no filter of a study
    keeps, only under the authors' rules."""
    chosen = [WITH_TIES.get(name, name) for name in POLICIES.values()]
    logs = [Cell(trace, "", "all", READ, "", 0) for trace in ARCHIVE]
    return logs + [Cell(one + EVERY_LINE, "", "all", name, "runtime", 0) for one in REFILTERED for name in chosen]


def solve(cell: Cell, work: Work) -> Schedule | dict[str, float]:
    """Read a log, or replay every line of it."""
    trace = cell.trace.removesuffix(EVERY_LINE)
    log = read_workload(work.log(f"archive/{ARCHIVE[trace]}.swf.gz"))
    if cell.policy != READ:
        return replay(every_line(log), policy(placed(cell.policy, work.folder.path)), estimate=cell.estimate)
    ours, theirs = filters.standard(log), filters.standard(read_workload(work.log(f"papers/{trace}.swf.gz")))
    same = ours.digest() == theirs.digest()
    return {"lines": log.provenance.lines, "standard_jobs": len(ours), "paper_jobs": len(theirs), "same": same}


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """The table under all rules, how well each fits, and the same with other jobs."""
    found = percents(runs, printed, POLICIES, "JustBF")
    known = {key: number for key, number in printed.items() if key[0].endswith("runtime")}
    read = {trace: runs.get(trace, READ, "") for trace in ARCHIVE}
    made = {**found, **fits(found, printed), **causes(found, printed)}
    for name, other in (("the authors' files", ""), ("standard", STANDARD), ("every line", EVERY_LINE)):
        # Where `standard` gives the authors' jobs, their runs are its runs.
        changed = percents(runs, known, POLICIES, "JustBF", other) if other else {}
        every = pairs({**found, **changed}, known, AUTHORS, REFILTERED)
        made |= {("inputs", name, key): number for key, number in fit(every).items()}
        for trace in REFILTERED:
            made["inputs", name, trace] = fit([one for one in every if one.key[2] == trace])["off"]
    for trace, one in read.items():
        if one:
            counts = {name: f"{one.numbers[name]:,.0f}" for name in ("lines", "standard_jobs", "paper_jobs")}
            made |= {("logs", trace, name): text for name, text in counts.items()}
            made["logs", trace, "same"] = "yes" if one.numbers["same"] else "no"
    return made
