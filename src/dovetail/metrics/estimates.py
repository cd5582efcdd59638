"""How good estimates of run times are. `said` and `runtime` hold one number of seconds per job."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, nan
from typing import Final

import numpy as np

from dovetail.model.workload import Ints


def r2(said: Ints, runtime: Ints) -> float:
    """Coefficient of determination: 1 for estimates that are all right, 0 for the mean run time, below for worse."""
    if not len(runtime):
        return nan
    mean = fsum(runtime) / len(runtime)
    around = fsum((runtime - mean) ** 2)
    return 1 - fsum((runtime - said).astype(np.float64) ** 2) / around if around else nan


def mean_error_s(said: Ints, runtime: Ints) -> float:
    """Mean distance between estimate and run time."""
    return fsum(np.abs(said - runtime)) / len(runtime) if len(runtime) else nan


def outlived(said: Ints, runtime: Ints) -> float:
    """Share of jobs that run longer than was said."""
    return float(np.mean(runtime > said)) if len(runtime) else nan


def ended_within(said: Ints, runtime: Ints) -> tuple[float, float]:
    """Shares of jobs that end before, and no later than, what was said. A quantile is calibrated if its level is
    between them: many jobs run exactly to their limits."""
    return (float(np.mean(runtime < said)), float(np.mean(runtime <= said))) if len(runtime) else (nan, nan)


LEVELS: Final = (0.5, 0.8, 0.95, 0.99)
"""Quantiles whose calibration and losses are shown."""
LEARNING: Final = 10
"""One in so many jobs, the first ones, is not counted where calibration is shown."""


@dataclass(frozen=True)
class Calibration:
    """How a quantile fared, when the first jobs had been learned from."""

    level: float
    jobs: int
    ended_before: float
    ended_by: float
    """Shares of jobs that ended before, and by, what was said."""
    pinball_s: float
    pinball_limit_s: float
    pinball_recent_s: float
    """The losses of what was said, of the limits, and of what `recent` said."""


def calibration(level: float, said: Ints, limit: Ints, recent: Ints, runtime: Ints) -> Calibration:
    """Of a quantile of that level, beside the limits and `recent`."""
    counted = slice(len(runtime) // LEARNING, None)
    ran = runtime[counted]
    losses = (pinball_s(one[counted], ran, level) for one in (said, limit, recent))
    return Calibration(level, len(ran), *ended_within(said[counted], ran), *losses)


def pinball_s(said: Ints, runtime: Ints, level: float) -> float:
    """Mean loss of estimates taken as a quantile: `level` times what is missing, 1 - level times what is too much."""
    short = (runtime - said).astype(np.float64)
    return fsum(np.maximum(level * short, (level - 1) * short)) / len(runtime) if len(runtime) else nan
