"""What happened to each job, and the means over jobs: slowdown, response and wait.

Formulas, sources and what each number is good for: docs/metrics.md. Q is the wait, D the run time, F = Q + D
the response, r the size, r D the area of a job.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Floats, Ints, Mask
from dovetail.errors import SettingError
from dovetail.metrics.exact import exact_dot, exact_mean, exact_sum, products
from dovetail.model.schedule import Schedule

COUNTING: Final = ("all", "ended")
"""Which jobs count: all that started, or those of them that ended by the last submission."""

PERCENTILES: Final = (50, 90, 95, 99)


def counted(schedule: Schedule, rule: str = "all") -> Mask:
    """Which jobs count under a rule. A job that never started counts under none.

    `all` is every started job. `ended` leaves out the jobs that end after the last arrival: they run, in
    part, on a cluster that no new job competes for.
    """
    started: Mask = schedule.start >= 0
    if rule == "all":
        return started
    if rule == "ended":
        ended: Mask = schedule.end <= schedule.arrive.max(initial=-1)
        return started & ended
    raise SettingError(f"unknown counting rule {rule!r}; choose one of {', '.join(COUNTING)}")


@dataclass(frozen=True)
class Outcomes:
    """Size, run time and wait of the jobs that count: all that a metric over jobs needs to know."""

    size: Ints
    runtime: Ints
    wait: Ints

    def __post_init__(self) -> None:
        for name, values in (("size", self.size), ("run time", self.runtime), ("wait", self.wait)):
            if len(values) and int(values.min()) < 0:
                at = int(values.argmin())
                raise ValueError(f"the {name} of counted job {at} is {values[at]}; it cannot be negative")
        if len(self) and int(self.runtime.max()) + int(self.wait.max()) >= 2**63:
            raise ValueError("the response of a job must stay below 2^63 s")

    def __len__(self) -> int:
        return len(self.size)

    @property
    def response(self) -> Ints:
        """F: seconds from arrival to end."""
        return self.wait + self.runtime

    @property
    def area(self) -> Ints:
        """r D: processor seconds that each job used; Python integers where one might pass 2^63."""
        return products(self.size, self.runtime)

    def where(self, mask: Mask) -> Outcomes:
        """Only the jobs where `mask` is true."""
        if bool(mask.all()):
            return self
        return Outcomes(self.size[mask], self.runtime[mask], self.wait[mask])


def outcomes(schedule: Schedule, counting: str = "all") -> Outcomes:
    """The jobs of a schedule that count, ready to be measured."""
    mask = counted(schedule, counting)
    size, runtime, wait = schedule.workload.size, schedule.workload.runtime, schedule.wait
    if bool(mask.all()):
        return Outcomes(size, runtime, wait)
    return Outcomes(size[mask], runtime[mask], wait[mask])


def slowdowns(jobs: Outcomes, bound_s: float = 10) -> Floats:
    """max(1, F / max(D, bound)) of each job. A run time of 0 counts as 1 s, the resolution of the clock."""
    if not bound_s >= 0:
        raise ValueError(f"the bound of the bounded slowdown is at least 0 s, got {bound_s}")
    ratio: Floats = jobs.response / np.maximum(jobs.runtime, max(bound_s, 1))
    return np.maximum(ratio, 1.0, out=ratio)


def bsld(jobs: Outcomes, bound_s: float = 10) -> float:
    """Average bounded slowdown."""
    return mean(slowdowns(jobs, bound_s))


def slowdown(jobs: Outcomes) -> float:
    """Average slowdown F / D without a bound (a run time of 0 counts as 1 s)."""
    return mean(slowdowns(jobs, 0))


def af_s(jobs: Outcomes) -> float:
    """AF: average response."""
    return exact_mean(jobs.response)


def mean_wait_s(jobs: Outcomes) -> float:
    """Average wait."""
    return exact_mean(jobs.wait)


def awf_s(jobs: Outcomes) -> float:
    """AWF: response averaged by area. Packing, Section III."""
    area = jobs.area
    total = exact_sum(area)
    return exact_dot(area, jobs.response) / total if total else nan


def awq_s(jobs: Outcomes) -> float:
    """AWQ: wait averaged by area. Packing, Section III."""
    area = jobs.area
    total = exact_sum(area)
    return exact_dot(area, jobs.wait) / total if total else nan


def weighted_wait_s(jobs: Outcomes, weight: npt.NDArray[Any]) -> float:
    """Wait averaged by any weight, one number per counted job, none negative."""
    if weight.shape != jobs.wait.shape:
        raise ValueError(f"{len(jobs)} jobs count, but the weights have the shape {weight.shape}: give one per job")
    by = weight.astype(np.float64)
    if not bool(np.all((by >= 0) & np.isfinite(by))):
        raise ValueError("weights must be numbers of at least 0")
    by = np.ldexp(by, -np.frexp(by.max(initial=0))[1])  # by a power of two, which is exact: no sum overflows
    total = float(by.sum())
    by *= jobs.wait
    return float(by.sum()) / total if total else nan


def mean(values: Floats) -> float:
    """The mean, nan for no values."""
    return float(values.mean()) if len(values) else nan


def spread(values: Ints | Floats, name: str, unit: str = "") -> dict[str, float]:
    """Percentiles (between neighbours by linear interpolation, NumPy's default) and the maximum, by key."""
    keys = [f"{name}_p{p}{unit}" for p in PERCENTILES]
    if not len(values):
        return dict.fromkeys([*keys, f"max_{name}{unit}"], nan)
    found = np.percentile(values, PERCENTILES)
    return {key: float(value) for key, value in zip(keys, found, strict=True)} | {
        f"max_{name}{unit}": float(values.max())
    }
