"""The least that energy could cost if less stood in the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.energy.series import HOUR_S
from dovetail.errors import DovetailError
from dovetail.model.schedule import Schedule
from dovetail.units import DAY_S, WEEK_S

HOLD_S: Final = DAY_S
STEP_S: Final = 1800
"""Between starts that are tried where no policy decides."""


def bounds(base: Schedule, paid: Callable[[Ints], Floats], first: int) -> dict[str, float]:
    """What could be saved of the bill of `base`, in per cent, at the PUE of full load. `paid` is what a watt has cost
    by an instant; within each hour from `first` on the price is the same."""
    jobs, size = base.workload, base.workload.size.astype(np.float64)
    last, week = (np.maximum(base.start, base.arrive + hold) for hold in (HOLD_S, WEEK_S))
    costs = float(size @ (paid(base.end) - paid(base.start)))
    found = {
        "whole_free": whole_jobs(paid, size, base, last, None),
        **{f"whole_{most}": whole_jobs(paid, size, base, last, most / 100) for most in (100, 20, 5)},
        "split_free": split_jobs(paid, size, base, last, first, np.inf),
        "split": split_jobs(paid, size, base, last, first, jobs.processors),
        "split_week": split_jobs(paid, size, base, week, first, jobs.processors),
    }
    length = (base.end - base.start).astype(np.float64)
    shortest_first = np.argsort(length)
    done = np.cumsum((size * length)[shortest_first])
    return {
        **{key: 100 - 100 * cost / costs for key, cost in found.items()}, "jobs": len(jobs),
        "base_wait_h": float((base.start - base.arrive).mean()) / HOUR_S,
        "utilization": float(size @ jobs.runtime) / jobs.processors / (int(base.end.max()) - int(base.arrive[0])),
        "half_h": float(length[shortest_first][np.searchsorted(done, done[-1] / 2)]) / HOUR_S,
    }  # fmt: skip


def whole_jobs(paid: Callable[[Ints], Floats], size: Floats, base: Schedule, last: Ints, most: float | None) -> float:
    """The cost if each job may start later than under list-reg, until `last`, with no other job in its way and its run
    time known; `most`: the mean wait grows by no more than that part of itself. Starts are 30 min apart."""
    length = base.end - base.start
    steps = int((last - base.start).max()) // STEP_S + 1
    delay = STEP_S * np.arange(steps, dtype=np.int64)
    cost = np.stack([
        np.where(base.start + d <= last, size * (paid(base.start + d + length) - paid(base.start + d)), np.inf)
        for d in delay
    ])  # fmt: skip

    def chosen(wait: float) -> tuple[float, float]:
        best = np.argmin(cost + wait * delay[:, None], axis=0)
        return float(cost[best, np.arange(len(size))].sum()), float(delay[best].mean())

    if most is None:
        return chosen(0.0)[0]
    allowed = most * float((base.start - base.arrive).mean())
    dear, cheap = float(np.ptp(cost[np.isfinite(cost)])), 0.0  # no job waits; all do
    for _ in range(30):
        middle = (dear + cheap) / 2
        dear, cheap = (middle, cheap) if chosen(middle)[1] <= allowed else (dear, middle)
    return chosen(dear)[0]


def split_jobs(
    paid: Callable[[Ints], Floats], size: Floats, base: Schedule, last: Ints, first: int, processors: float
) -> float:
    """No less can be paid if jobs start by `last`: work may be split and moved at will, once it has come and before it
    would be late, on these processors. A linear program over the work done by the end of each hour from `first` on,
    within which the price is the same."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, vstack

    length = base.end - base.start
    end = int((last + length).max())
    hours = np.arange(first, end + HOUR_S, HOUR_S)

    def done(start: Ints) -> Floats:
        return _ramp(hours, start, size) - _ramp(hours, start + length, size)

    rate = np.diff(paid(hours)) / HOUR_S
    n, unit, scale = len(rate), float(np.abs(rate).mean()), float(size @ length)  # the solver likes numbers near 1
    steps: Any = eye_array(n, format="csr") - eye_array(n, k=-1, format="csr")
    low, high = (done(start)[1:] / scale for start in (last, base.arrive))
    room = np.full(n, min(processors * HOUR_S / scale, 1.0))
    found: Any = linprog(
        steps.T @ rate / unit,
        A_ub=vstack([steps, -steps]),
        b_ub=np.concatenate([room, np.zeros(n)]),
        bounds=list(zip(low.tolist(), np.maximum(low, high).tolist(), strict=True)),
    )
    if found.status != 0:
        raise DovetailError(f"no least cost was found: {found.message}")
    return float(found.fun) * scale * unit


def _ramp(at: Ints, start: Ints, size: Floats) -> Floats:
    """The sum of size times what has passed since start, at each instant."""
    order = np.argsort(start)
    before = np.searchsorted(start[order], at, side="right")
    sizes, moments = (np.concatenate([[0.0], np.cumsum(x[order])]) for x in (size, size * start))
    found: Floats = at * sizes[before] - moments[before]
    return found
