"""Plans that wait for cheap hours: in each pass every waiting job is placed anew, in order, where its energy and the
wait that it takes cost least together; the jobs behind find the rest of the machine.

What a job costs is linear between the instants at which its start or its end meets a change of the rate. These are
tried, and the last instant until which it may be held: of each the earliest fit from there on.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.kernels.capacity import earliest_fit, open_plan, reserve, start
from dovetail.kernels.compile import inner
from dovetail.kernels.rates import energy_cost, next_change
from dovetail.kernels.rules import ThriftRule, sort_if_moving
from dovetail.kernels.run import (
    ARRIVE,
    ESTIMATE,
    NEVER,
    PLACE,
    STARTED,
    WAITING,
    WAKE,
    Run,
    wake_at_next,
)
from dovetail.kernels.seam import answers

_0: int = np.int64(0)  # type: ignore[assignment]  # see profile.py


@inner
def _cost(rule: ThriftRule, job: int, now: int, at: int, length: int) -> float:
    return energy_cost(rule.rates, job, at, length) + rule.wait * (at - now)


@inner
def _cheapest(rule: ThriftRule, cap: Any, run: Run, job: int, now: int, first: int, length: int) -> int:
    """Where a job that fits first at `first` costs least. Nobody waits for less than a millionth of what it costs."""
    best, least = first, _cost(rule, job, now, first, length)
    little = 1e-6 * abs(least)
    energy = rule.rates.watts[job] * rule.rates.lowest * length  # no start costs less
    last = run.jobs[ARRIVE, job] + rule.hold_s
    change = next_change(rule.rates, now)
    ends = False
    while not ends:
        ends = change - length > last
        for at in (change - length if not ends else last, change):
            if at <= first or at > last or energy + rule.wait * (at - now) >= least - little:
                continue
            fits = earliest_fit(cap, job, at, length)
            cost = _cost(rule, job, now, fits, length)
            if fits <= last and cost < least - little:
                best, least = fits, cost
        change += rule.rates.step_s
    return best


@inner
def _decide_thrift(rule: ThriftRule, cap: Any, run: Run, now: int) -> int:
    n = run.info[WAITING]
    run.info[WAKE] = NEVER
    if n == 0:
        return _0
    queue, _ = sort_if_moving(run, rule, now)
    open_plan(cap, now)
    place, started = run.jobs[PLACE], _0
    for i in range(n):
        job = queue[i]
        length = run.jobs[ESTIMATE, job]
        at = earliest_fit(cap, job, now, length)
        if i < rule.window:
            at = _cheapest(rule, cap, run, job, now, at, length)
        reserve(cap, job, at, length)
        place[job] = at
        if at == now:
            run.lists[STARTED, started] = job
            started += 1
    for i in range(started):
        job = run.lists[STARTED, i]
        start(cap, job, now, now + run.jobs[ESTIMATE, job])
    wake_at_next(run, now, place, False)
    return started


answers(ThriftRule, decide=_decide_thrift)
