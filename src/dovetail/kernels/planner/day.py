"""A day's jobs, placed in an order: each at its earliest fit, if that is still today."""

from __future__ import annotations

from typing import Any

from dovetail.arrays import Ints
from dovetail.kernels.compile import jit
from dovetail.kernels.machine.capacity import earliest_fit, open_plan, reserve, start


@jit
def begin_day(cap: Any, now: int, running: Ints, ends: Ints) -> None:
    """What already runs, to its ends."""
    for i in range(len(running)):
        start(cap, running[i], now, ends[i])


@jit
def place_day(cap: Any, now: int, until: int, order: Ints, earliest: Ints, length: Ints, fixed: Ints, at: Ints) -> None:
    """Write the start of every job to `at`, -1 where it does not start before `until`. Jobs with a start in `fixed`
    (not -1) are placed there, before all others."""
    open_plan(cap, now)
    for i in range(len(order)):
        job = order[i]
        at[job] = fixed[job]
        if fixed[job] >= 0:
            reserve(cap, job, fixed[job], length[job])
    for i in range(len(order)):
        job = order[i]
        if fixed[job] < 0 and earliest[job] < until:
            found = earliest_fit(cap, job, earliest[job], length[job])
            if found < until:
                reserve(cap, job, found, length[job])
                at[job] = found
