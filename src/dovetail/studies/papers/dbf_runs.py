"""What the runs of dbf-tables say: the numbers of DBF, Section 6, for each log, share of deadlines, seed and policy."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np

from dovetail.arrays import Ints, Mask
from dovetail.metrics import of_deadlines, stretches
from dovetail.metrics.comparison import mean_interval
from dovetail.metrics.jobs import mean
from dovetail.model.schedule import Schedule
from dovetail.studies.papers.page import Runs
from dovetail.units import DAY_S

SHARES: Final = (0.2, 0.4, 0.6, 0.8)
CBF, EASY, DBF, GUARDED, PLANNED = "conservative", "easy", "dbf:guard=no", "dbf", "plan-deadline"
CALLED: Final = {CBF: "CBF", EASY: "EASY", DBF: "DBF", GUARDED: "dbf", PLANNED: "plan-deadline"}
"""What the policies are called on the page; those in capitals are the paper's."""
THREE: Final = (CBF, EASY, DBF)
"""The policies of the paper."""


@dataclass(frozen=True)
class Numbers:
    """One run. Regular jobs are those without a deadline; `waited`: only those that waited under one of the THREE."""

    wait_s: float
    """Mean wait of the regular jobs that waited."""
    max_stretch: float
    max_wait_s: float
    every_max_wait_s: float
    """Longest wait of all regular jobs."""
    quartiles_s: tuple[float, float]
    """Of the waits of the regular jobs that waited: the first and the third."""
    at_once: float
    """Share of these that did not wait under this policy."""
    every_wait_s: float
    """Mean wait of all regular jobs."""
    all_wait_s: float
    """Mean wait of all jobs."""
    late_short: int
    """Jobs that ended after their deadlines: those to end within 24 hours, and those within 10 limits."""
    late_long: int
    refused: int
    missed: int
    """Accepted deadlines that were not kept."""
    driven_at_once: float
    """Share of the jobs with a deadline that did not wait."""
    usage: float
    """Mean share of the time until the deadline that a job used, of those that waited."""
    above_80: float
    """Share of the jobs with a deadline that used more than 80 % of it."""
    cpu_s: float


Key = tuple[str, float, int, str]
"""Log, share, seed, policy."""


@dataclass(frozen=True)
class Results:
    """All runs that are there."""

    found: Mapping[Key, Numbers]
    regular: Mapping[tuple[str, float], int]
    """How many jobs have no deadline."""
    jobs: Mapping[str, int]
    waits: Mapping[tuple[str, float, str], Ints]
    """Waits of the regular jobs that waited, sorted, with the first seed."""
    missing: int

    def values(self, log: str, share: float, policy: str, of: Callable[[Numbers], float]) -> list[float]:
        """A number for each seed that was run."""
        keys = [(log, share, seed, policy) for seed in sorted({key[2] for key in self.found})]
        return [float(of(self.found[key])) for key in keys if key in self.found]

    def mean(self, log: str, share: float, policy: str, of: Callable[[Numbers], float]) -> float:
        """The mean over seeds; nan where nothing was run."""
        values = self.values(log, share, policy, of)
        return float(np.mean(values)) if values else nan

    def half(self, log: str, share: float, policy: str, of: Callable[[Numbers], float]) -> float:
        """Half the width of its 95 % interval; nan for a single seed."""
        mean, _, high = mean_interval(self.values(log, share, policy, of))
        return high - mean

    def complete(self, logs: Sequence[str]) -> bool:
        """Whether the paper's policies were run on these logs with all shares, with the first seed at least."""
        return all((log, share, 0, policy) in self.found for log in logs for share in SHARES for policy in THREE)

    def has(self, policy: str) -> bool:
        return any(key[3] == policy for key in self.found)


def results(runs: Runs) -> Results:
    """Measure what is in the store. Whether a job waited anywhere takes three schedules: they are read together."""
    there = runs.store.names()
    cpu = dict(runs.store.frame().select("run", "cpu_s").iter_rows())
    groups: dict[tuple[str, float, int], dict[str, str]] = {}
    missing = 0
    for task in runs.tasks:
        cell = task.cell
        if task.name in there:
            share = float(cell.scenario.partition("=")[2])
            groups.setdefault((cell.trace, share, cell.seed), {})[cell.policy] = task.name
        else:
            missing += 1
    found: dict[Key, Numbers] = {}
    regular: dict[tuple[str, float], int] = {}
    waits: dict[tuple[str, float, str], Ints] = {}
    jobs: dict[str, int] = {}
    for (log, share, seed), names in sorted(groups.items()):
        made = {policy: runs.store.schedule(name) for policy, name in names.items()}
        schedules = {policy: one for policy, one in made.items() if one is not None}
        if any(policy not in schedules for policy in THREE):
            continue
        waited = np.any([schedules[policy].wait > 0 for policy in THREE], axis=0)
        for policy, one in schedules.items():
            found[log, share, seed, policy] = numbers(one, waited, cpu[names[policy]])
            if seed == 0:
                counts = waited & (one.workload["deadline_s"] < 0)
                waits[log, share, policy] = np.sort(one.wait[counts])
                regular[log, share] = int((one.workload["deadline_s"] < 0).sum())
                jobs[log] = len(one.workload)
    return Results(found, regular, jobs, waits, missing)


def numbers(one: Schedule, waited: Mask, cpu_s: float) -> Numbers:
    """The numbers of one run."""
    deadline_s, known = one.workload["deadline_s"], of_deadlines(one)
    counts = waited & (deadline_s < 0)
    wait, late = one.wait[counts].astype(np.float64), (deadline_s >= 0) & (one.end > one.deadline_at)
    asked = len(one.accepted) > 0
    return Numbers(
        wait_s=mean(wait),
        max_stretch=float(stretches(one)[counts].max(initial=1)),
        max_wait_s=float(wait.max(initial=0)),
        every_max_wait_s=known["regular_max_wait_s"],
        quartiles_s=tuple(np.percentile(wait, (25, 75)).tolist()) if len(wait) else (nan, nan),
        at_once=mean((wait == 0).astype(np.float64)),
        every_wait_s=known["regular_mean_wait_s"],
        all_wait_s=mean(one.wait.astype(np.float64)),
        late_short=int((late & (deadline_s == DAY_S)).sum()),
        late_long=int((late & (deadline_s > DAY_S)).sum()),
        refused=int(known["deadlines_refused"]) if asked else 0,
        missed=int(known["deadlines_missed"]) if asked else 0,
        driven_at_once=known["deadline_at_once"],
        usage=known["deadline_usage"],
        above_80=known["deadline_usage_above_80"],
        cpu_s=cpu_s,
    )
