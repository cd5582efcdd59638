"""Which jobs waited, and was it right: PaSF, norms of the response, fair start times, wait by job area."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, nan
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.metrics.exact import blocks, exact_mean, exact_sum, products, running_sum
from dovetail.metrics.jobs import Outcomes, counted
from dovetail.model.schedule import Schedule

_BLOCK: Final = 1 << 15  # a block's dozen arrays stay in the processor's cache


def pasf_s(jobs: Outcomes, level: float = 2) -> float:
    """PaSF: priority-weighted specific response at a level of 0 or more, whole or not. Packing, Section IV.

    The response of each unit of computation, averaged by its own power `level`.
    """
    if not 0 <= level <= 100:
        raise ValueError(f"the level of PaSF is from 0 to 100 (the papers use 2), got {level}")
    jobs = jobs.where((jobs.runtime > 0) & (jobs.size > 0))  # the others have no unit of computation
    top = int(jobs.response.max(initial=0))
    # Times are scaled by a power of two, which is exact, so that no power of them overflows at any level.
    scale = 2.0 ** -top.bit_length()
    over, under = _power_gap(jobs, level + 2, scale), _power_gap(jobs, level + 1, scale)
    return (level + 1) / (level + 2) * (over / under) / scale if under else nan


def _power_gap(jobs: Outcomes, m: float, scale: float) -> float:
    """The sum of r (F^m - Q^m), in scaled time, never as a difference of two large numbers."""
    parts = []
    for part in blocks(len(jobs), _BLOCK):
        wait, runtime = jobs.wait[part], jobs.runtime[part]
        f, q, d = _scaled(wait + runtime, scale), _scaled(wait, scale), _scaled(runtime, scale)
        gap = _factored(f, q, d, int(m)) if m == int(m) and m <= 16 else _by_logarithm(f, d, m)
        parts.append(float((jobs.size[part] * gap).sum()))
    return fsum(parts)


def _scaled(seconds: Ints, scale: float) -> Floats:
    times: Floats = seconds.astype(np.float64)
    times *= scale
    return times


def _factored(f: Floats, q: Floats, d: Floats, m: int) -> Floats:
    """F^m - Q^m = D (F^(m-1) + F^(m-2) Q + ... + Q^(m-1)): all terms positive, nothing cancels."""
    total, power = np.ones_like(f), np.ones_like(f)
    for _ in range(m - 1):
        power *= q
        total *= f
        total += power
    total *= d
    return total


def _by_logarithm(f: Floats, d: Floats, m: float) -> Floats:
    """F^m - Q^m = F^m (1 - (1 - D/F)^m), by log1p and expm1: a small D against a large Q keeps its digits."""
    share = np.divide(d, f, out=np.zeros_like(f), where=f > 0)
    with np.errstate(divide="ignore"):  # a job that did not wait: log(0) = -inf, and exp(-inf) = 0 is right
        left = np.expm1(m * np.log1p(-share))
    gap: Floats = -(f**m) * left
    return gap


def lp_response_s(jobs: Outcomes, p: float = 2, *, normalized: bool = False) -> float:
    """The l_p norm of the response, (sum F^p)^(1/p). Packing, Section VII.

    It grows with the number of jobs; `normalized` takes the mean in place of the sum, to compare spans of
    unlike length.
    """
    if not 1 <= p <= 1000:  # above, the power of the longest response may be too small for a float
        raise ValueError(f"the p of an l_p norm is a number from 1 to 1000, got {p}")
    if not len(jobs):
        return nan
    response = jobs.response
    scale = 2.0 ** -int(response.max()).bit_length()
    parts = (_scaled(response[part], scale) ** p for part in blocks(len(jobs), _BLOCK))
    total = fsum(float(part.sum()) for part in parts)
    return float((total / len(jobs) if normalized else total) ** (1 / p) / scale)


def unfairness(schedule: Schedule, fair_start: Ints, counting: str = "all") -> dict[str, float]:
    """How much later than their fair start times jobs began. Packing, Section VII.

    `fair_start` has one instant per job of the schedule, in its order; -1 where none is known: such jobs are
    left out. A job that began early makes up for nothing.
    """
    if fair_start.shape != schedule.start.shape:
        raise ValueError(f"the schedule has {len(schedule.start)} jobs, the fair starts the shape {fair_start.shape}")
    mask = counted(schedule, counting) & (fair_start >= 0)
    late = np.maximum(schedule.start[mask] - fair_start[mask], 0)
    n = len(late)
    return {
        "fair_start_jobs": n,
        "fair_start_miss_total_s": float(exact_sum(late)) if n else nan,
        "fair_start_miss_mean_s": exact_mean(late),
        "fair_start_miss_max_s": float(late.max()) if n else nan,
        "fair_start_missed_share": int(np.count_nonzero(late)) / n if n else nan,
    }


@dataclass(frozen=True)
class WaitAreaCurve:
    """Which jobs carry the waiting, by job area (Packing, Fig. 3). One value per distinct area, rising."""

    area: Ints
    """x: processor seconds; Python integers where one might pass 2^63."""
    job_fraction: Floats
    """Share of the jobs with an area up to x."""
    area_fraction: Floats
    """Share of all area that belongs to jobs with an area up to x; nan where no job has any."""
    wait_area: Floats
    """CWA(x): sum of Q r over the jobs with an area up to x, in processor seconds."""


def wait_area_curve(jobs: Outcomes) -> WaitAreaCurve:
    """Cumulative wait area, number of jobs and job area as functions of job area. Packing, Fig. 3."""
    area = jobs.area
    order = np.argsort(area, kind="stable")
    area = area[order]
    last = np.ones(len(area), np.bool_)  # the last job of each distinct area: its running sum has them all
    np.not_equal(area[1:], area[:-1], out=last[:-1])
    below = running_sum(area)[last]
    total = below[-1] if len(below) else 0.0
    return WaitAreaCurve(
        area=area[last],
        job_fraction=(np.flatnonzero(last) + 1) / max(len(area), 1),
        area_fraction=below / total if total else np.full(len(below), nan),
        wait_area=running_sum(products(jobs.size, jobs.wait)[order])[last],
    )
