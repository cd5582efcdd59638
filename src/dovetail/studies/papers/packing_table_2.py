"""The page on Table II of Packing: ten list policies, five traces, and the question of which jobs they were."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dovetail.io.read import read_workload
from dovetail.model.workload import Step, Workload
from dovetail.studies.papers.list_tables import counted, facts, fits, groups, legend, rules, sources, tables, told
from dovetail.studies.papers.page import Page, Runs, filled, grid
from dovetail.studies.papers.recompute import AUTHORS, ENDED, OURS, OWN, Results, fit, places, results
from dovetail.studies.papers.tables import TABLE_II, Place
from dovetail.studies.task import Task
from dovetail.workloads.filters import (
    cut_at_limit,
    fits_machine,
    known_size,
    known_submit,
    limit_from_runtime,
    standard,
)

NAME: Final = "packing-table-2"

ARCHIVE: Final = {
    "KTH-SP2": "KTH-SP2-1996-2",
    "CTC-SP2": "CTC-SP2-1996-3.1-cln",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln",
    "SDSC-BLUE": "SDSC-BLUE-2000-4.2-cln",
    "CEA-Curie": "CEA-Curie-2011-2.1-cln",
}
"""The archive's log behind each trace."""
REFILTERED: Final = ("SDSC-SP2", "SDSC-BLUE", "CEA-Curie")
"""The traces whose printed number of jobs is not that of the authors' file."""
EVERY_LINE: Final = "every line"
STANDARD: Final = "standard"
"""Behind a trace's name: the archive's log in its place, all of it, or through that filter."""
_PRINTED_JOBS: Final = {
    "KTH-SP2": "28k",
    "CTC-SP2": "77k",
    "SDSC-SP2": "60k",
    "SDSC-BLUE": "234k",
    "CEA-Curie": "313k",
}
"""Table I of Packing."""


def every_line(log: Workload) -> Workload:
    """An archive log with no job dropped for want of a run time or a limit (made 1 s, and the run time)."""
    lost = log.runtime <= 0
    step = Step("run time 0 or less made 1 s", changed=int(lost.sum()))
    log = log.with_columns(step, runtime=np.where(lost, 1, log.runtime))
    for apply in (known_size, fits_machine, limit_from_runtime, known_submit, cut_at_limit):
        log = apply(log)
    return log


def more_tasks(runs: Runs) -> list[Task]:
    """The study's tasks with known run times once more, on every line of three logs: no filter of a study keeps them.

    Only under the authors' rules, so without the orders that these replace.
    """
    more = []
    for trace in REFILTERED:
        log = every_line(read_workload(runs.log(f"archive/{ARCHIVE[trace]}.swf.gz")))
        runs.store.keep(log)
        more += [
            replace(
                task, cell=replace(task.cell, trace=f"{trace} {EVERY_LINE}"), workload_sha256=log.digest(),
                processors=log.processors, jobs=len(log),
            )
            for task in runs.tasks
            if (task.cell.trace, task.cell.estimate) == (trace, "runtime") and not task.cell.policy.endswith("-sjf")
        ]  # fmt: skip
    return more


@dataclass(frozen=True)
class Log:
    """What became of an archive log: lines, jobs after `standard`, and whether those are the papers' jobs."""

    trace: str
    lines: int
    jobs: int
    papers: int
    same: bool


def logs(runs: Runs) -> list[Log]:
    """The archive's logs beside the authors' files."""
    found = []
    theirs = {task.cell.trace: (task.workload_sha256, task.jobs) for task in runs.tasks}
    for trace, file in ARCHIVE.items():
        log = read_workload(runs.log(f"archive/{file}.swf.gz"))
        cleaned = standard(log)
        sha256, jobs = theirs[trace]
        found.append(Log(trace, log.provenance.lines, len(cleaned), jobs, cleaned.digest() == sha256))
    return found


def page(runs: Runs) -> Page:
    """The page. It holds nothing that changes from run to run."""
    found = results(runs.store, runs.tasks)
    parts = [
        _summary(found),
        sources(NAME, runs),
        rules(),
        fits(TABLE_II, found),
        _evidence(found),
        groups(TABLE_II, found),
        _left_over(found),
        _jobs(logs(runs), found),
        legend("JustBF", " The printed changes have become 100 plus the change."),
        *tables(TABLE_II, found, OURS),
    ]
    met = facts(TABLE_II, found)
    return Page(filled(parts), told(met), met)


def _summary(found: Results) -> str:
    whole = fit(TABLE_II, places(TABLE_II), found, AUTHORS)
    return f"""
# Table II of Packing, recomputed

Table II of "Packing" (Goponenko, Lamar, Peterson, Allan, Brandt and Dechev, Metrics for Packing Efficiency
and Fairness of HPC Cluster Batch Job Scheduling, SBAC-PAD 2022), replayed with Dovetail on five of its six
traces. The sixth, BW201911, could not be had: its printed numbers are kept as data and not compared.

{counted(TABLE_II, found)}

With two conventions of the authors, {whole.equal} of the {whole.cells} cells round to the printed number.
The conventions look small and matter where a queue is overloaded: equal keys of SJF go to the smaller job,
and the one job that ends last is not counted. Dovetail's own rules are the ones that it documents: equal keys
go to the earlier submit, and all jobs count. The rule `ended`, which leaves out the jobs that end after the
last submission, is not how this table was made.
"""


def _evidence(found: Results) -> str:
    """The two conventions at the cells where they show most."""
    sjf = Place("bsld", "SJF-JustBF", "limit", "CTC-SP2")
    saf = Place("awf_s", "SAF-JustBF", "runtime", "SDSC-SP2")
    early, small = (f"{found.percent(TABLE_II, sjf, rule):.0f} %" for rule in (OWN, AUTHORS))
    every, but_last, ended = (f"{found.percent(TABLE_II, saf, rule):.0f} %" for rule in (OWN, AUTHORS, ENDED))
    printed_sjf, printed_saf = (f"{TABLE_II.percent[place]} %" for place in (sjf, saf))
    return f"""
**Ties.** Limits are round numbers, so under SJF many waiting jobs share their key with others, and the
rule for ties orders the queue as much as the order does. BSLD of SJF-JustBF on CTC-SP2 with the limit is
{early} of JustBF with ties to the earlier submit and {small} with ties to the smaller size (printed:
{printed_sjf}).

**One job.** SAF and SJF leave the largest jobs to the end, after waits of months, and one of them weighs:
without the last, AWF of SAF-JustBF on SDSC-SP2 goes from {every} to {but_last} (printed: {printed_saf}).
Without all jobs that end after the last submission it would be {ended}. This is why the column of `ended`
differs wherever jobs still waited when the last one came: it leaves out just those that the order left behind.
"""


def _left_over(found: Results) -> str:
    whole = fit(TABLE_II, places(TABLE_II), found, AUTHORS)
    return f"""
**Left over under the authors' rules:** {whole.cells - whole.equal} cells. Nothing else was needed. One pass
per second, textbook EASY, SJBF with ties to the earlier submit, and the requested size give the printed
numbers: no cell tells the two engines apart.
"""


def _inputs(known: Sequence[Log], found: Results) -> Mapping[str, Results]:
    """The table's runs from three inputs. Where `standard` gives the authors' jobs, their runs are its runs."""
    other = {log.trace: f"{log.trace} {STANDARD}" for log in known if log.trace in REFILTERED and not log.same}
    return {
        "the authors' files": found,
        "archive log, `standard`": found.on(other),
        "archive log, every line kept": found.on({trace: f"{trace} {EVERY_LINE}" for trace in REFILTERED}),
    }


def _jobs(known: Sequence[Log], found: Results) -> str:
    rows = []
    for log in known:
        numbers = (f"{n:,}" for n in (log.lines, log.jobs, log.papers))
        rows.append([log.trace, _PRINTED_JOBS[log.trace], *numbers, "yes" if log.same else "no"])
    head = ["trace", "Packing", "lines of the archive log", "after `standard`", "authors' file", "same jobs"]
    met = []
    for title, values in _inputs(known, found).items():
        at = places(TABLE_II, REFILTERED, ("runtime",))
        f = fit(TABLE_II, at, values, AUTHORS)
        by_trace = [
            f"{fit(TABLE_II, [p for p in at if p.trace == trace], values, AUTHORS).mean_off:.2f}"
            for trace in REFILTERED
        ]
        met.append([title, f"{f.near} of {f.cells}", str(f.equal), f"{f.mean_off:.2f}", *by_trace])
    columns = ["input", "within one point", "equal when rounded", "mean absolute difference, points"]
    return f"""
## Which jobs

Packing prints larger job counts for three traces than the authors' files have. They are the lines of the
archive's logs before any filter, rounded; 234k looks like 243k with two digits changed places (no filter by
run time, allocation, status, wait, processor time or limit, alone or in pairs, leaves 234k of them).

{grid(head, rows)}

`standard` drops jobs without a run time or a limit and cuts run times at the limit. It turns the
archive's logs into the authors' files, but for SDSC-SP2, where theirs has seven jobs more (ids 4 to 10).
The table with the run time known, on the three traces, under the authors' rules, from three inputs (every
line kept: a run time of 0 or less made 1 s, a missing limit the run time; only 19 jobs of CEA-Curie
without any size are dropped):

{grid([*columns, *REFILTERED], met)}

Rounding alone leaves 0.25 points. So the authors' files are the input of this table, not the logs that its
job counts suggest.
"""
