"""Jobs with deadlines and the others beside them. DBF, Section 6.1; docs/metrics.md has the formulas."""

from __future__ import annotations

import numpy as np

from dovetail.arrays import Floats
from dovetail.metrics import jobs
from dovetail.metrics.exact import exact_mean
from dovetail.model.schedule import Schedule


def stretches(schedule: Schedule) -> Floats:
    """(wait + limit) / limit of each job: the stretch of DBF, whose run times are the limits."""
    return 1.0 + schedule.wait / np.maximum(schedule.workload.limit, 1)


def usages(schedule: Schedule) -> Floats:
    """What part of the time until its deadline each job took, from arrival to end; nan where it has none."""
    allowed = schedule.workload.get("deadline_s").astype(np.float64)
    allowed[allowed < 0] = np.nan
    return (schedule.end - schedule.arrive) / np.maximum(allowed, 1.0)


def of_deadlines(schedule: Schedule, counting: str = "all") -> dict[str, float]:
    """The numbers of a workload in which some jobs have deadlines; regular jobs are those that have none."""
    counts = jobs.counted(schedule, counting)
    driven = schedule.workload.get("deadline_s") >= 0
    regular, driven = counts & ~driven, counts & driven
    wait, stretch, usage = schedule.wait, stretches(schedule), usages(schedule)
    late = driven & (schedule.end > schedule.deadline_at)
    asked = len(schedule.accepted) > 0
    accepted = schedule.accepted == 1 if asked else np.zeros(len(wait), bool)
    found: dict[str, float] = {
        "regular_jobs": int(regular.sum()),
        "regular_mean_wait_s": exact_mean(wait[regular]),
        "regular_max_wait_s": float(wait[regular].max(initial=0)),
        "regular_stretch": jobs.mean(stretch[regular]),
        "regular_max_stretch": float(stretch[regular].max(initial=1)),
        "regular_at_once": jobs.mean((wait[regular] == 0).astype(np.float64)),
        "stretch": jobs.mean(stretch[counts]),
        "max_stretch": float(stretch[counts].max(initial=1)),
        "deadline_jobs": int(driven.sum()),
        "deadline_at_once": jobs.mean((wait[driven] == 0).astype(np.float64)),
        "deadline_usage": jobs.mean(usage[driven & (wait > 0)]),
        "deadline_usage_above_80": jobs.mean((usage[driven] > 0.8).astype(np.float64)),
        "deadlines_late": int(late.sum()),
        "deadlines_refused": float((driven & ~accepted).sum()) if asked else np.nan,
        "deadlines_missed": float((late & accepted).sum()) if asked else np.nan,
    }
    return found
