"""Metrics by group of jobs, all groups at once: the weeks of a replay, the users of a cluster.

A week or a user under one policy and under another make a pair for `comparison.py`. So the groups come from what no
policy changes, the workload: group i holds the same jobs whichever policy ran them.
"""

from __future__ import annotations

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.metrics.jobs import Outcomes, counted, slowdowns
from dovetail.model.schedule import Schedule
from dovetail.units import WEEK_S


def weeks(schedule: Schedule, counting: str = "all") -> tuple[Ints, Ints]:
    """The week of each counted job, and the instant at which each week begins."""
    week, begins = weeks_of(schedule.workload.submit)
    return week[counted(schedule, counting)], begins


def weeks_of(submit: Ints) -> tuple[Ints, Ints]:
    """The week of each job, and the instant at which each week begins.

    Weeks are counted from the first submit, and a job belongs to the week of its submit. What is left at the end
    is a week of its own if it is half a week or longer, else it is part of the week before. A week may be empty.
    """
    if not len(submit):
        return submit, submit
    since = submit - submit[0]
    number = max(1, (int(since[-1]) + WEEK_S // 2) // WEEK_S)
    week = np.minimum(since // WEEK_S, number - 1)
    return week, submit[0] + WEEK_S * np.arange(number)


def users(schedule: Schedule, counting: str = "all") -> tuple[Ints, Ints]:
    """The group of each counted job by its user, and the user of each group, rising; all unknown users are one, -1."""
    user, group = np.unique(np.maximum(schedule.workload.get("user"), -1), return_inverse=True)
    members: Ints = group[counted(schedule, counting)].astype(np.int64, copy=False)
    return members, user


def by_group(jobs: Outcomes, group: Ints, groups: int, bound_s: float = 10) -> dict[str, Floats]:
    """Metrics of each group of jobs, by the keys of `summarize`; nan where a group has nothing to measure.

    `group` has one number from 0 to `groups` - 1 for each job of `jobs`: take both under the same counting rule.
    """
    if group.shape != jobs.size.shape:
        raise ValueError(f"{len(jobs)} jobs count, but the groups have the shape {group.shape}: give one per job")
    if len(group) and not 0 <= int(group.min()) <= int(group.max()) < groups:
        raise ValueError(f"groups are numbers from 0 to {groups - 1}, got {group.min()} to {group.max()}")

    def total(values: Floats) -> Floats:
        # Whole numbers add up exactly below 2^53; all else loses less than 10^-12 over ten million jobs.
        return np.bincount(group, weights=values, minlength=groups).astype(np.float64, copy=False)

    members = np.bincount(group, minlength=groups).astype(np.float64)
    f, q, area = jobs.response.astype(np.float64), jobs.wait.astype(np.float64), jobs.area.astype(np.float64)
    # r (F^m - Q^m) is never taken as a difference, see fairness.py. As floats, no power up to the fourth overflows.
    over, under = total(area * (f + q) * (f * f + q * q)), total(area * (f * f + f * q + q * q))
    return {
        "jobs": members,
        "bsld": _ratio(total(slowdowns(jobs, bound_s)), members),
        "af_s": _ratio(total(f), members),
        "awf_s": _ratio(total(area * f), total(area)),
        "p2sf_s": 0.75 * _ratio(over, under),
        "mean_wait_s": _ratio(total(q), members),
    }


def _ratio(over: Floats, under: Floats) -> Floats:
    """over / under, nan where there is nothing to divide by."""
    ratio: Floats = np.divide(over, under, out=np.full(len(under), np.nan), where=under > 0)
    return ratio
