"""One pass of a rule on a state given from outside: what the event-by-event engine and a live loop call.

The caller fills a Run with the jobs that run, wait, and ended or arrived in this moment, and an idle machine.
"""

from __future__ import annotations

from typing import Any

from dovetail.arrays import Ints
from dovetail.kernels.compile import inner, jit
from dovetail.kernels.machine.capacity import fits_again, fits_now, happen, open_plan, release, reserve_again, start
from dovetail.kernels.passes.rule import decide
from dovetail.kernels.state import (
    CORRECTED,
    END_JOB,
    ENDED,
    ESTIMATE,
    NEWS_LIST,
    PROMISED_LAST,
    QUEUE,
    RUNNING,
    START,
    WAITING,
    Run,
)


@jit
def step(rule: Any, cap: Any, run: Run, now: int) -> int:
    """Build the machine's state and decide. Returns how many jobs start; they are the first in the STARTED list."""
    info = run.info
    happen(cap, now)
    for i in range(info[RUNNING]):
        _occupy(cap, run, run.lists[END_JOB, i], now)
    for i in range(info[ENDED]):
        _occupy(cap, run, run.lists[NEWS_LIST, i], now)
    for i in range(info[ENDED]):  # those past their estimates had given their place in the plan back before
        job = run.lists[NEWS_LIST, i]
        if run.jobs[START, job] + run.jobs[ESTIMATE, job] <= now:
            release(cap, job, now, now)
    open_plan(cap, now)
    for i in range(info[WAITING]):
        job = run.lists[QUEUE, i]
        at = run.jobs[PROMISED_LAST, job]
        if at >= now and fits_again(cap, job, at, run.jobs[ESTIMATE, job]):
            reserve_again(cap, job, at, run.jobs[ESTIMATE, job])
        elif at >= now:  # somebody started later than was planned, or an outage is in the way
            info[CORRECTED] = 1
    for i in range(info[ENDED]):
        job = run.lists[NEWS_LIST, i]
        end = run.jobs[START, job] + run.jobs[ESTIMATE, job]
        if end > now:
            release(cap, job, now, end)
    return decide(rule, cap, run, now)


@jit
def fit_now(cap: Any, run: Run, fits: Ints) -> None:
    """Write of each waiting job whether there is room for it at this instant."""
    for i in range(run.info[WAITING]):
        fits[i] = fits_now(cap, run.lists[QUEUE, i])


@inner
def _occupy(cap: Any, run: Run, job: int, now: int) -> None:
    start(cap, job, now, run.jobs[START, job] + run.jobs[ESTIMATE, job])
