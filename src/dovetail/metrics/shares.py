"""Who received what: the processor time that accounts, groups or users had, beside what was due to them."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.metrics.groups import by_group
from dovetail.metrics.jobs import counted, outcomes
from dovetail.model.schedule import Schedule
from dovetail.model.turns import UNKNOWN, Turns, need_owners
from dovetail.units import WEEK_S


@dataclass(frozen=True)
class Received:
    """What each owner had in each week."""

    names: tuple[str, ...]
    due: Floats
    """The part of all that is due to each; nan where no shares are known."""
    begins: Ints
    """When each week begins."""
    had: Floats
    """Processor-seconds, a row for each week, a column for each owner."""

    @property
    def share(self) -> Floats:
        """The part that each had of what all had, by weeks; nan in weeks in which nothing ran."""
        total = self.had.sum(axis=1, keepdims=True)
        share: Floats = np.divide(self.had, total, out=np.full_like(self.had, nan), where=total > 0)
        return share

    @property
    def gap(self) -> float:
        """The part of what ran that would have had to go to other owners for each to have its due, averaged over weeks.
        It is above 0 also where an owner asked for less than its due."""
        away = np.abs(self.share - self.due).sum(axis=1) / 2
        return float(away[np.isfinite(away)].mean()) if np.isfinite(away).any() else nan


def owners(schedule: Schedule, by: str | Turns) -> tuple[Ints, tuple[str, ...], Floats]:
    """Whose each job is, their names, and the part of all that is due to each. `by`: a column of the workload, or what
    says shares."""
    if isinstance(by, Turns):
        owner, named = by.owners(schedule.workload)
        shares = np.array(list(named.values()), np.float64)
        return owner, tuple(named), shares / shares.sum() if by.shares else np.full(len(named), nan)
    need_owners(schedule.workload, by, "by ")
    numbers, owner = np.unique(schedule.workload.get(by), return_inverse=True)
    names = tuple(schedule.workload.called(by, number) or UNKNOWN for number in numbers.tolist())
    return owner.reshape(-1), names, np.full(len(names), nan)


def received(schedule: Schedule, by: str | Turns, every_s: int = WEEK_S) -> Received:
    """What each owner had in each week, or other span, from the first submit to the last: later the machine runs
    empty."""
    return _had(schedule, *owners(schedule, by), every_s)


def _had(schedule: Schedule, owner: Ints, names: tuple[str, ...], due: Floats, every_s: int) -> Received:
    submit, start = schedule.workload.submit, schedule.start
    if not len(submit):
        return Received(names, due, submit, np.empty((0, len(names))))
    weeks = max(1, (int(submit[-1] - submit[0]) + every_s // 2) // every_s)  # as in groups.weeks
    edges = np.append(submit[0] + every_s * np.arange(weeks), submit[-1])
    ran = np.flatnonzero(start >= 0)
    lost = np.array([(one.job, one.start, one.end) for one in schedule.lost], np.int64).reshape(-1, 3).T
    jobs = np.concatenate([ran, lost[0]])
    begin = np.concatenate([start[ran], lost[1]])
    lasted = np.concatenate([schedule.workload.runtime[ran], lost[2] - lost[1]])
    owner, size = owner[jobs], schedule.workload.size[jobs].astype(np.float64)
    until = [np.bincount(owner, size * np.clip(edge - begin, 0, lasted), len(names)) for edge in edges]
    return Received(names, due, edges[:-1], np.diff(np.array(until), axis=0))


def by_owner(schedule: Schedule, by: str | Turns, counting: str = "all") -> list[dict[str, float | str]]:
    """What happened to each owner's jobs: how many there are, what was due to it and what it received while jobs came,
    and metrics of its jobs by the keys of `summarize`. Who waited longest, on average, comes first."""
    owner, names, due = owners(schedule, by)
    had = _had(schedule, owner, names, due, WEEK_S).had.sum(axis=0)
    jobs = outcomes(schedule, counting)
    groups = by_group(jobs, owner[counted(schedule, counting)], len(names))
    rows: list[dict[str, float | str]] = [
        {
            "name": name,
            "due_share": float(due[i]),
            "received_share": float(had[i] / had.sum()) if had.sum() else nan,
            **{key: float(values[i]) for key, values in groups.items()},
        }
        for i, name in enumerate(names)
    ]
    return sorted(rows, key=lambda row: (-np.nan_to_num(float(row["mean_wait_s"]), nan=-1.0), str(row["name"])))
