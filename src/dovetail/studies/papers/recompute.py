"""The list-scheduling rows of two published tables, recomputed under several rules for ties and counting.

`lists` writes the page that puts them beside the printed numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.engine.replay import replay
from dovetail.engine.whole import new_replay
from dovetail.kernels import run as layout
from dovetail.kernels.order import GIVEN
from dovetail.metrics import Outcomes, af_s, awf_s, bsld, counted, pasf_s
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Ints, Step, Workload
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy
from dovetail.predict.known import estimates
from dovetail.studies.papers.tables import ESTIMATES, TABLE_2, TABLE_II, TRACES, UNAVAILABLE, Place, Table
from dovetail.workloads.clean import (
    cut_at_limit,
    fits_machine,
    known_size,
    known_submit,
    limit_from_runtime,
    standard,
)
from dovetail.workloads.source import read_workload

Mask = npt.NDArray[np.bool_]
Say = Callable[[str], None]

OURS: Final = tuple(name for name in TRACES if name != UNAVAILABLE)
"""The traces that can be replayed."""
TABLES: Final = (TABLE_2, TABLE_II)

ARCHIVE: Final = {
    "KTH-SP2": "KTH-SP2-1996-2",
    "CTC-SP2": "CTC-SP2-1996-3.1-cln",
    "SDSC-SP2": "SDSC-SP2-1998-4.2-cln",
    "SDSC-BLUE": "SDSC-BLUE-2000-4.2-cln",
    "CEA-Curie": "CEA-Curie-2011-2.1-cln",
}
"""The archive's log behind each trace."""

TIES: Final = ("submit", "authors")
"""How equal keys of an order are told apart. `submit`: earlier submit, then earlier line, for all orders.
`authors`: SJF by size, SPF by area, and then the same."""
COUNTS: Final = ("all", "ended", "but last", "middle")
"""Which jobs a metric counts. `all` and `ended` are Dovetail's rules. `but last` leaves out the job that ends
last, `middle` the first 1 % to end and those that do not end before the last submission: both are in the
authors' script."""

Rule = tuple[str, str]
"""Ties and counting."""
OWN: Final[Rule] = ("submit", "all")
ENDED: Final[Rule] = ("submit", "ended")
AUTHORS: Final[Rule] = ("authors", "but last")


def counts(schedule: Schedule, rule: str) -> Mask:
    """Which jobs count under one of COUNTS."""
    end = schedule.end
    if rule == "but last":
        kept: Mask = end < end.max()
        return kept
    if rule == "middle":
        first = np.sort(end)[len(end) // 100]
        inside: Mask = (end > first) & (end < schedule.arrive.max())
        return inside
    return counted(schedule, rule)


_FORMULAS: Final[Mapping[str, Callable[[Outcomes], float]]] = {
    "bsld": bsld,
    "af_s": af_s,
    "awf_s": awf_s,
    "p2sf_s": pasf_s,
}


def measured(schedule: Schedule) -> dict[str, dict[str, float]]:
    """The four metrics of the papers, by counting rule and key."""
    found = {}
    for rule in COUNTS:
        mask = counts(schedule, rule)
        jobs = Outcomes(schedule.workload.size[mask], schedule.workload.runtime[mask], schedule.wait[mask])
        found[rule] = {metric: formula(jobs) for metric, formula in _FORMULAS.items()}
    return found


def replay_with_ties(workload: Workload, name: str, estimate: str) -> Schedule:
    """A replay under SJF or SPF with the authors' ties.

    The key of a job is its rank, which never changes: the compiled replay gets it once, where the order of a
    user's policy is asked for at each pass (ten times as slow).
    """
    chosen = ListPolicy(reserve="all" if name.startswith("list-") else 0, name=f"{name} with ties")
    cluster, guess = Cluster(workload.processors), estimates(workload, estimate)
    run = new_replay(workload, cluster, chosen.rule()._replace(order=GIVEN), guess)
    run.run.keys[layout.KEY] = authors_rank(name, workload.size, guess)
    run.advance()
    rows = (layout.START, layout.ARRIVE, layout.PROMISED_FIRST, layout.PROMISED_LAST)
    start, arrive, first, last = (run.run.jobs[row] for row in rows)
    return Schedule(workload, cluster, chosen.name, estimate, start, arrive, first, last, run.passes)


def authors_rank(name: str, size: Ints, guess: Ints) -> Ints:
    """The place of each job in the authors' order; equal only where the submit decides."""
    area = size * guess.astype(np.float64)
    first, second = (guess, size) if name.endswith("-sjf") else (area * guess, area)
    order = np.lexsort((second, first))
    new = (np.diff(first[order]) != 0) | (np.diff(second[order]) != 0)
    rank = np.zeros(len(size), np.int64)
    rank[order[1:]] = np.cumsum(new)
    return rank


@dataclass(frozen=True)
class Results:
    """Metrics of replays by trace, policy, estimate, ties, counting rule and metric."""

    values: Mapping[tuple[str, str, str, str], Mapping[str, Mapping[str, float]]]

    def percent(self, table: Table, place: Place, rule: Rule) -> float:
        """Our number for a cell of a table."""
        ties, counting = rule
        ours, base = (
            self.values[place.trace, table.policies[row], place.estimate, ties][counting][place.metric]
            for row in (place.row, table.base)
        )
        return 100 * ours / base


def compute(
    inputs: Iterable[Workload], names: Sequence[str], known: Sequence[str], ties: Sequence[str], say: Say
) -> Results:
    """Replay each workload (its name is the trace's) under each policy, estimate and rule for ties."""
    values: dict[tuple[str, str, str, str], dict[str, dict[str, float]]] = {}
    for workload in inputs:
        for name, estimate, tie in product(names, known, ties):
            key = (workload.name, name, estimate)
            own = tie == "authors" and name.endswith(("-sjf", "-spf"))
            if not own and (*key, TIES[0]) in values:
                values[*key, tie] = values[*key, TIES[0]]  # the rule for ties makes no difference here
                continue
            say(f"{workload.name} ({len(workload)} jobs), {name}, estimate {estimate}, ties {tie}")
            if own:
                schedule = replay_with_ties(workload, name, estimate)
            else:
                schedule = replay(workload, policy(name), estimate=estimate)
            values[*key, tie] = measured(schedule)
    return Results(values)


def names_of(tables: Iterable[Table]) -> list[str]:
    """Every policy that the tables need, once."""
    return list(dict.fromkeys(name for table in tables for name in table.policies.values()))


def tables_on(traces: Path, names: Sequence[str], say: Say) -> Results:
    """All that both tables need, on some of the papers' traces."""
    inputs = (read_workload(traces / "papers" / f"{name}.swf.gz") for name in names)
    return compute(inputs, names_of(TABLES), ESTIMATES, TIES, say)


def places(table: Table, names: Sequence[str] = OURS, known: Sequence[str] = ESTIMATES) -> list[Place]:
    """The cells that can be compared: printed legibly, on these traces, not 100 % by definition."""
    return [p for p in table.percent if p.trace in names and p.estimate in known and p.row != table.base]


@dataclass(frozen=True)
class Fit:
    """How well a set of rules meets a table."""

    cells: int
    near: int
    """Cells at most one point off."""
    equal: int
    """Cells that round to the printed number."""
    mean_off: float
    """Mean absolute difference, in points."""


def fit(table: Table, at: Iterable[Place], results: Results, rule: Rule) -> Fit:
    """Compare cells of a table with ours."""
    pairs = [(results.percent(table, place, rule), table.percent[place]) for place in at]
    off = [abs(ours - printed) for ours, printed in pairs]
    equal = sum(np.floor(ours + 0.5) == printed for ours, printed in pairs)
    return Fit(len(off), sum(o <= 1 for o in off), int(equal), float(np.mean(off)))


def every_line(log: Workload) -> Workload:
    """An archive log with no job dropped for want of a run time or a limit (made 1 s, and the run time)."""
    lost = log.runtime <= 0
    step = Step("run time 0 or less made 1 s", changed=int(lost.sum()))
    log = log.with_columns(step, runtime=np.where(lost, 1, log.runtime))
    for apply in (known_size, fits_machine, limit_from_runtime, known_submit, cut_at_limit):
        log = apply(log)
    return log


@dataclass(frozen=True)
class Log:
    """What became of an archive log: lines, jobs after `standard`, and whether those are the papers' jobs."""

    trace: str
    acknowledge: str
    lines: int
    jobs: int
    papers: int
    same: bool


INPUTS: Final = ("the authors' files", "archive log, `standard`", "archive log, every line kept")
REFILTERED: Final = ("SDSC-SP2", "SDSC-BLUE", "CEA-Curie")
"""The traces whose printed number of jobs is not that of the authors' file."""


def inputs_compared(traces: Path, base: Results, say: Say) -> tuple[list[Log], dict[str, Results]]:
    """The archive's logs, and Table II with known run times from each of INPUTS on the REFILTERED traces.

    `base` has the replays of the authors' files; only other jobs are replayed.
    """
    logs = []
    found = {title: dict(base.values) for title in INPUTS}
    for trace in OURS:
        mine = read_workload(traces / "papers" / f"{trace}.swf.gz")
        log = read_workload(traces / "archive" / f"{ARCHIVE[trace]}.swf.gz")
        cleaned = standard(log)
        same = cleaned.digest() == mine.digest()
        past = log.provenance
        logs.append(Log(trace, past.acknowledge, past.lines, len(cleaned), len(mine), same))
        for title, jobs in ((INPUTS[1], cleaned), (INPUTS[2], every_line(log))):
            if trace in REFILTERED and jobs.digest() != mine.digest():
                named = replace(jobs, name=trace)
                found[title] |= compute([named], names_of([TABLE_II]), ["runtime"], ["authors"], say).values
    return logs, {title: Results(values) for title, values in found.items()}
