"""How good estimates of run times are. `said` (the estimates) and `runtime` hold one number of seconds per job."""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.metrics.exact import exact_dot, exact_mean, exact_sum
from dovetail.model.workload import Workload


def r2(said: Ints, runtime: Ints) -> float:
    """Coefficient of determination: 1 for estimates that are all right, 0 for the mean run time, below for worse."""
    if not len(runtime):
        return nan
    # In integers to the last step: run times that are nearly alike keep all digits of their variance.
    above, off = runtime - runtime.min(), np.abs(runtime - said)
    around = len(runtime) * exact_dot(above, above) - exact_sum(above) ** 2
    return (around - len(runtime) * exact_dot(off, off)) / around if around else nan


def mean_error_s(said: Ints, runtime: Ints) -> float:
    """Mean distance between estimate and run time."""
    return exact_mean(np.abs(said - runtime))


def outlived(said: Ints, runtime: Ints) -> float:
    """Share of jobs that run longer than estimated."""
    return float(np.mean(runtime > said)) if len(runtime) else nan


def ended_within(said: Ints, runtime: Ints) -> tuple[float, float]:
    """Shares of jobs that end before, and no later than, estimated. A quantile is calibrated if its level is
    between them: many jobs run exactly to their limits."""
    return (float(np.mean(runtime < said)), float(np.mean(runtime <= said))) if len(runtime) else (nan, nan)


LEVELS: Final = (0.5, 0.8, 0.95, 0.99)
"""Quantiles whose calibration and losses are shown."""
LEARNING: Final = 10
"""One job in this many, the first ones, is not counted where calibration is shown."""
FEWEST_JOBS: Final = 100
"""Users of fewer jobs are left out where calibration is shown by user."""


@dataclass(frozen=True)
class Calibration:
    """How a quantile fared, when the first jobs had been learned from."""

    level: float
    jobs: int
    off_by_user: float
    """How far the shares of one user's jobs are from the level; the mean by jobs, over users of FEWEST_JOBS on."""
    ended_before: float
    ended_by: float
    """Shares of jobs that ended before, and no later than, estimated."""
    pinball_s: float
    pinball_limit_s: float
    pinball_recent_s: float
    """The losses of the quantile, of the limits, and of the estimates of `recent`."""


def calibration(level: float, said: Ints, limit: Ints, recent: Ints, workload: Workload) -> Calibration:
    """Of a quantile of that level, beside the limits and `recent`."""
    counted = slice(len(workload) // LEARNING, None)
    ran, ours = workload.runtime[counted], said[counted]
    losses = [pinball_s(one[counted], ran, level) for one in (said, limit, recent)]
    _, who, jobs = np.unique(workload.get("user")[counted], return_inverse=True, return_counts=True)
    before, by = (np.bincount(who, weights=ended) / jobs for ended in (ran < ours, ran <= ours))
    many = jobs >= FEWEST_JOBS
    by_user = float(np.average(off(level, before, by)[many], weights=jobs[many])) if many.any() else nan
    return Calibration(level, len(ran), by_user, *ended_within(ours, ran), *losses)


def off(level: float, ended_before: Any, ended_by: Any) -> Any:
    """How far a quantile is from being calibrated, by the shares of jobs; of one group, or of many."""
    return np.maximum(0.0, np.maximum(ended_before - level, level - ended_by))


def pinball_s(said: Ints, runtime: Ints, level: float) -> float:
    """Mean loss of estimates taken as a quantile: `level` times what is missing, 1 - level times what is too much."""
    missing, too_much = (exact_mean(np.maximum(off, 0)) for off in (runtime - said, said - runtime))
    return level * missing + (1 - level) * too_much
