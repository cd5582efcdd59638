"""Conservative backfilling: every job is promised a start when it arrives, and promises only move earlier.

The plan (what runs and what is promised) is kept from pass to pass; `promised` holds the start of each waiting
job. When capacity comes back early, the plan is compressed by a sweep: each waiting job is taken out and put back
at its earliest fit with all others fixed.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import advance_plan, earliest_fit, open_plan, reserve, start, unreserve
from dovetail.kernels.passes.order import sort_by_key
from dovetail.kernels.passes.rule import Common
from dovetail.kernels.seam import answers
from dovetail.kernels.state import (
    ARRIVED,
    BACK_KEY,
    CORRECTED,
    END_JOB,
    ENDED,
    ESTIMATE,
    NEWS_LIST,
    ORDER,
    PROMISED_FIRST,
    PROMISED_LAST,
    QUEUE,
    RUNNING,
    SPARE,
    START,
    STARTED,
    WAITING,
    Run,
    wake_at_next,
)

_0: int = np.int64(0)  # type: ignore[assignment]  # see timeline.py

# When a sweep happens and in which order it goes.
ONCE, EACH_END, REPEAT, BY_START, START_NOW, NONE = range(6)
SWEEPS = {
    "once": ONCE, "each-end": EACH_END, "repeat": REPEAT, "by-start": BY_START, "start-now": START_NOW, "none": NONE,
}  # fmt: skip


class ConservativeRule(NamedTuple):
    """Conservative backfilling: FCFS, every job promised a start, promises kept."""

    common: Common
    sweep: int
    bounded: bool
    """Estimates are upper bounds of the run times: no running job can outlive one."""


@inner
def sweep(cap: Any, now: int, estimate: Ints, queue: Ints, n: int, promised: Ints, only_now: bool) -> bool:
    """One compression in the order given. Returns whether a promise moved. `only_now`: a job that cannot start at once
    stays where it is."""
    moved = False
    for i in range(n):
        job = queue[i]
        old = promised[job]
        unreserve(cap, job, old, estimate[job])
        at = earliest_fit(cap, job, now, estimate[job])
        if only_now and at > now:
            at = old
        reserve(cap, job, at, estimate[job])
        if at != old:
            promised[job] = at
            moved = True
    return moved


@inner
def compress(
    cap: Any, now: int, estimate: Ints, queue: Ints, n: int, promised: Ints, how: int, key: Floats, order: Ints,
    spare: Ints,
) -> None:  # fmt: skip
    """Sweep as the setting says. `queue` is in submit order; `key` (by job), `order`, `spare` are working space."""
    if how == NONE:
        return
    if how == BY_START:
        _by_promise(queue, n, promised, key, order, spare)
        sweep(cap, now, estimate, order, n, promised, False)
        return
    again = sweep(cap, now, estimate, queue, n, promised, how == START_NOW)
    while again and how == REPEAT:
        again = sweep(cap, now, estimate, queue, n, promised, False)


@inner
def _by_promise(queue: Ints, n: int, promised: Ints, key: Floats, order: Ints, spare: Ints) -> None:
    for i in range(n):
        order[i] = queue[i]
        key[queue[i]] = float(promised[queue[i]])
    sort_by_key(order, _0, n, key, spare)


@inner
def rebuild(
    cap: Any,
    now: int,
    estimate: Ints,
    queue: Ints,
    n: int,
    promised: Ints,
    key: Floats,
    order: Ints,
    spare: Ints,
) -> None:
    """Make the plan anew, in order of the promised starts: some running job has outlived its estimate."""
    _by_promise(queue, n, promised, key, order, spare)
    open_plan(cap, now)
    for i in range(n):
        job = order[i]
        promised[job] = earliest_fit(cap, job, now, estimate[job])
        reserve(cap, job, promised[job], estimate[job])


@inner
def promise(cap: Any, now: int, estimate: Ints, job: int, promised: Ints) -> None:
    """Give a job that arrives the earliest start that moves nobody."""
    promised[job] = earliest_fit(cap, job, now, estimate[job])
    reserve(cap, job, promised[job], estimate[job])


@inner
def start_due(cap: Any, now: int, estimate: Ints, queue: Ints, n: int, promised: Ints, started: Ints) -> int:
    """Start the jobs that were promised this instant. Returns how many."""
    n_started = 0
    advance_plan(cap, now)
    for i in range(n):
        job = queue[i]
        if promised[job] == now:
            start(cap, job, now, now + estimate[job])
            started[n_started] = job
            n_started += 1
    return n_started


@inner
def _compress(rule: ConservativeRule, cap: Any, run: Run, now: int, n: int) -> None:
    compress(
        cap, now, run.jobs[ESTIMATE], run.lists[QUEUE], n, run.jobs[PROMISED_LAST], rule.sweep, run.keys[BACK_KEY],
        run.lists[ORDER], run.lists[SPARE],
    )  # fmt: skip


@inner
def outdated(run: Run, now: int, n: int) -> bool:
    """Whether a running job has outlived its estimate, or a promise could not be kept."""
    if run.info[CORRECTED] == 1:
        return True
    for i in range(run.info[RUNNING]):
        job = run.lists[END_JOB, i]
        if run.jobs[START, job] + run.jobs[ESTIMATE, job] <= now:
            return True
    for i in range(n):
        if run.jobs[PROMISED_LAST, run.lists[QUEUE, i]] < now:
            return True
    return False


@inner
def _decide_conservative(rule: ConservativeRule, cap: Any, run: Run, now: int) -> int:
    info = run.info
    n = info[WAITING] - info[ARRIVED]  # the queue is in order of arrival: the new ones stand last
    if not rule.bounded and outdated(run, now, n):
        rebuild(
            cap, now, run.jobs[ESTIMATE], run.lists[QUEUE], n, run.jobs[PROMISED_LAST], run.keys[BACK_KEY],
            run.lists[ORDER], run.lists[SPARE],
        )  # fmt: skip
    else:
        for i in range(info[ENDED]):
            job = run.lists[NEWS_LIST, i]
            end = run.jobs[START, job] + run.jobs[ESTIMATE, job]
            if end > now:
                unreserve(cap, job, now, end - now)
            if rule.sweep == EACH_END or i == info[ENDED] - 1:
                _compress(rule, cap, run, now, n)
    for i in range(n, info[WAITING]):
        job = run.lists[QUEUE, i]
        promise(cap, now, run.jobs[ESTIMATE], job, run.jobs[PROMISED_LAST])
        run.jobs[PROMISED_FIRST, job] = run.jobs[PROMISED_LAST, job]
    if rule.sweep == START_NOW or rule.sweep == NONE:  # a promised start may be at an instant at which nobody ends
        wake_at_next(run, now, run.jobs[PROMISED_LAST], rule.bounded)
    return start_due(
        cap,
        now,
        run.jobs[ESTIMATE],
        run.lists[QUEUE],
        info[WAITING],
        run.jobs[PROMISED_LAST],
        run.lists[STARTED],
    )


answers(ConservativeRule, decide=_decide_conservative)
