"""What decisions cost: replays in which the CPU time of each pass is added to the waits."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from dovetail.engine.replay import replay
from dovetail.io.clusters import cluster_named
from dovetail.io.read import read_workload
from dovetail.metrics import summarize
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.studies.task import Cell
from dovetail.units import WEEK_S
from dovetail.workloads.filters import clean
from reproductions.claims import Judged, verdict
from reproductions.running import Work
from reproductions.runs import Runs
from reproductions.values import Content, Key, Values

EURORA: Final = "Eurora"
KTH: Final = "KTH-SP2, busiest week"
LISTS: Final = {
    EURORA: ("easy:place=scarce", "sjf-easy:place=scarce", "list-saf:place=scarce"),
    KTH: ("easy", "sjf-easy", "list-saf", "conservative"),
}
PLANNERS: Final = {
    EURORA: tuple(f"plan-bsld:decodes={many},place=scarce" for many in (10, 100, 1000)),
    KTH: tuple(f"plan-af:decodes={many}" for many in (100, 1000, 10000)),
}
SOLVERS: Final = {
    EURORA: ("hcp19", "pcp21"),
    KTH: ("cp-af:deterministic=0.02", "cp-af:deterministic=0.05"),
}
TIMES: Final = (0, 1, 10, 100, 1000)
"""How often decisions are charged; on the Eurora days, those of solvers once and a hundred times alone."""
WARM: Final = 50
"""Jobs of a replay before the one that counts: a first decision loads kernels and solvers."""


def cells(_: Work) -> list[Cell]:
    """All schedulers on each stretch, those that take longest last."""
    return [
        Cell(trace, f"charged {times} times", "all", name, "runtime", 0)
        for of in (LISTS, PLANNERS, SOLVERS) for trace, names in of.items() for name in names for times in TIMES
        if of is not SOLVERS or trace != EURORA or times in (1, 100)
    ]  # fmt: skip


def names(trace: str) -> list[str]:
    """The schedulers on a stretch."""
    return [name for of in (LISTS, PLANNERS, SOLVERS) for name in of[trace]]


@cache
def _stretch(trace: str, traces: Path) -> tuple[Workload, Cluster | None]:
    """The jobs and the machine; of KTH-SP2 the jobs of the week in which, under list-reg on the whole log, the most
    time was waited."""
    if trace == EURORA:
        return read_workload(traces / "heterogeneous/eurora_jobs_merged.csv.gz"), cluster_named("eurora")
    log = clean(read_workload(traces / "papers/KTH-SP2.swf.gz"), ["standard"])
    week = (log.submit - log.submit[0]) // WEEK_S
    waited = np.bincount(week, replay(log, "list-reg", estimate="runtime").wait)
    return log.take(week == int(np.argmax(waited)), f"week {int(np.argmax(waited))}"), None


def solve(cell: Cell, work: Work) -> dict[str, float]:
    """A replay in which decisions take time."""
    jobs, cluster = _stretch(cell.trace, work.traces)
    chosen, times = policy(cell.policy), int(cell.scenario.split()[1])
    for some in (jobs.take(np.arange(len(jobs)) < WARM, "the first jobs"), jobs):
        made = replay(
            some, chosen, cluster=cluster, estimate=cell.estimate, charge_decisions=times, event_by_event=True
        )
    found = summarize(made)
    return {
        "jobs": len(jobs), "passes": made.passes, "charged_s": made.charged_s, "wait_s": found["mean_wait_s"],
        "bsld": found["bsld"], "waited": float((made.wait > 0).mean()),
    }  # fmt: skip


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """By stretch and scheduler: the decision time, and the wait by how often it is charged."""
    found: dict[Key, Content] = {}
    for run in runs:
        trace, name, numbers = run.cell.trace, run.cell.policy, run.numbers
        times = int(run.cell.scenario.split()[1])
        if name == LISTS[trace][0] and not times:
            found |= {("stretches", trace, key): numbers[key] for key in ("jobs", "passes")}
            found["stretches", trace, "jobs that wait (%)"] = 100 * numbers["waited"]
        found[trace, name, f"wait x{times} (s)"] = numbers["wait_s"]
        if times:
            decision_s = numbers["charged_s"] / numbers["passes"]
            found[f"figure: {trace}", name, repr(decision_s)] = numbers["wait_s"]
            if times == 1:
                found[trace, name, "decision (ms)"] = 1000 * decision_s
    return found


def shown(values: Values, table: str, row: str, column: str) -> str:
    """A cell."""
    return values.text(table, row, column, ",.2f" if column.startswith("decision") else ",.0f", "not run")


# Claims ------------------------------------------------------------------------------------------------------


def no_matter(values: Values, where: str, most: float) -> Judged:
    """Whether decisions of lists and planners, charged once, change no mean wait by more than `most` per cent."""
    waits = [
        [values.need(where, name, f"wait x{times} (s)") for times in (1, 0)]
        for name in (*LISTS[where], *PLANNERS[where])
    ]
    changes = [100 * (charged / free - 1) for charged, free in waits]
    return Judged(f"{min(changes):+.2f} to {max(changes):+.2f} %", verdict([max(map(abs, changes)) <= most]))


def still_less(values: Values, where: str, name: str, than: str, times: str) -> Judged:
    """Whether a scheduler charged so many times has a lower mean wait than another that is not charged."""
    mine, other = values.need(where, name, f"wait x{times} (s)"), values.need(where, than, "wait x0 (s)")
    return Judged(f"{mine:,.0f} s against {other:,.0f} s", verdict([mine < other]))
