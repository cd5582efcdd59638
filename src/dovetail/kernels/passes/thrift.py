"""Plans that wait for cheap hours: in each pass every waiting job is placed anew, in order, where its energy and the
wait that it takes cost least together; the jobs behind find the rest of the machine.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import NEVER
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import earliest_fit, open_plan, reserve, start
from dovetail.kernels.passes.rates import Rates, cheapest
from dovetail.kernels.passes.rule import Common, sort_if_moving
from dovetail.kernels.seam import answers
from dovetail.kernels.state import ARRIVE, ESTIMATE, PLACE, STARTED, WAITING, WAKE, Run, wake_at_next

_0: int = np.int64(0)  # type: ignore[assignment]  # see timeline.py


class ThriftRule(NamedTuple):
    """A list with every job reserved, each where it is cheapest."""

    common: Common
    window: int
    """This many jobs, the first in the order, may wait for a cheap hour; those behind go to their earliest fit."""
    hold_s: int
    """No job is held longer than this after its arrival."""
    wait: float
    """What a second of one job's wait costs."""
    rates: Rates


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
            last, floor = run.jobs[ARRIVE, job] + rule.hold_s, rule.rates.watts[job] * rule.rates.lowest * length
            at = cheapest(rule.rates, cap, job, length, at, last, now, rule.wait, 0.0, NEVER, floor)
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
