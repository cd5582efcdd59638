"""Conservative backfilling: every job is promised a start when it arrives, and promises only move earlier.

The plan (what runs and what is promised) is kept from pass to pass; `promised` holds the start of each waiting
job. When capacity comes back early, the plan is compressed by a sweep: each waiting job is taken out and put back
at its earliest fit with all others fixed. Alike jobs, an entry of the queue, stand in the order of their places.

With a depth, only so many of the jobs that cannot start, the first of the queue, are promised a start. The others start
where they fit beside all that is promised.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import (
    advance_plan,
    due,
    earliest_fit,
    fits_again,
    fits_now,
    fits_plan,
    names_nodes,
    next_lack,
    next_room,
    open_plan,
    reserve,
    reserve_again,
    shaken,
    spare,
    start,
    unreserve,
)
from dovetail.kernels.passes.lists import ALL
from dovetail.kernels.passes.order import sort_by_key
from dovetail.kernels.passes.rule import Common
from dovetail.kernels.seam import answers
from dovetail.kernels.state import (
    BACK_KEY,
    CORRECTED,
    END_JOB,
    ENDED,
    ESTIMATE,
    JOINED,
    NEWS_LIST,
    ORDER,
    PROMISED_FIRST,
    PROMISED_LAST,
    QUEUE,
    RUNNING,
    SPARE,
    START,
    STARTED,
    UNTIL,
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
    depth: int
    """This many blocked jobs are promised a start; entries of more than one job want all to be."""


@inner
def sweep(cap: Any, now: int, estimate: Ints, until: Ints, queue: Ints, n: int, promised: Ints, only_now: bool) -> bool:
    """One compression in the order given. Returns whether a promise moved. `only_now`: a job that cannot start at once
    stays where it is."""
    moved = False
    for i in range(n):
        job = queue[i]
        last, length, old = until[job] - 1, estimate[job], promised[job]
        if only_now:
            moved = _start_alike(cap, now, length, job, last, promised) or moved
        elif last > job:
            moved = _sweep_alike(cap, now, length, job, last, promised) or moved
        elif next_room(cap, job, now) < old:  # else there is nowhere to go
            unreserve(cap, job, old, length)
            promised[job] = earliest_fit(cap, job, now, length)
            reserve(cap, job, promised[job], length)
            moved = moved or promised[job] != old
    return moved


@inner
def _sweep_alike(cap: Any, now: int, length: int, first: int, last: int, promised: Ints) -> bool:
    """A sweep over the jobs first..last, which are alike and stand in the order of their places.

    One by one, a job would go to the begin of the first hole that is long enough, or of the hole just before its own
    place; the next one would then go to the place that it has left, and so on. In the end the place of the last of them
    is free, and all the others are taken: so that place alone is moved to the hole. A hole that is too short is of use
    to those that start in it or at its end; one that is long enough, to all behind it.
    """
    moved = False
    at = now
    while True:
        begin = next_room(cap, first, at)
        if begin >= promised[last]:
            return moved
        end = next_lack(cap, first, begin)
        job = last
        if end - begin < length:  # the last of them that starts by its end
            low, high = first - 1, last + 1
            while high - low > 1:
                mid = (low + high) >> 1
                if promised[mid] <= end:
                    low = mid
                else:
                    high = mid
            job = low
        if job < first or promised[job] <= begin:
            at = end
            continue
        unreserve(cap, first, promised[job], length)
        reserve(cap, first, begin, length)
        while job > first and promised[job - 1] > begin:
            promised[job] = promised[job - 1]
            job -= 1
        promised[job] = begin
        moved = True
        at = begin


@inner
def _start_alike(cap: Any, now: int, length: int, first: int, last: int, promised: Ints) -> bool:
    """A sweep over alike jobs that moves a job only if it can start at once: where one cannot, none behind it can."""
    moved = False
    for job in range(first, last + 1):
        old = promised[job]
        if old == now:
            continue
        unreserve(cap, job, old, length)
        if earliest_fit(cap, job, now, length) > now:
            reserve_again(cap, job, old, length)
            break
        reserve(cap, job, now, length)
        promised[job] = now
        moved = True
    return moved


@inner
def compress(
    cap: Any, now: int, estimate: Ints, until: Ints, queue: Ints, n: int, promised: Ints, how: int, key: Floats,
    order: Ints, spare: Ints,
) -> None:  # fmt: skip
    """Sweep as the setting says. `queue` is in submit order; `key` (by job), `order`, `spare` are working space."""
    if how == NONE:
        return
    if how == BY_START:
        _by_promise(queue, n, promised, key, order, spare)
        sweep(cap, now, estimate, until, order, n, promised, False)
        return
    again = sweep(cap, now, estimate, until, queue, n, promised, how == START_NOW)
    while again and how == REPEAT:
        again = sweep(cap, now, estimate, until, queue, n, promised, False)


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
def stand_again(cap: Any, run: Run, now: int) -> bool:
    """If somebody has left the queue: make the plan anew with all others where they stand."""
    if run.info[CORRECTED] != 2:
        return False
    open_plan(cap, now)
    for i in range(run.info[WAITING]):
        job = run.lists[QUEUE, i]
        at = run.jobs[PROMISED_LAST, job]
        if at >= 0:
            reserve_again(cap, job, at, run.jobs[ESTIMATE, job])
    return True


@inner
def promise(cap: Any, at: int, estimate: Ints, job: int, promised: Ints) -> None:
    """Give a job the earliest start, from an instant on, that moves nobody."""
    promised[job] = earliest_fit(cap, job, at, estimate[job])
    reserve(cap, job, promised[job], estimate[job])


@inner
def promise_entry(cap: Any, now: int, estimate: Ints, until: Ints, first: int, promised: Ints, told: Ints) -> None:
    """Give all jobs of an entry their starts, and write down that they were told (`told`)."""
    at = now
    for job in range(first, until[first]):
        promise(cap, at, estimate, job, promised)
        at = told[job] = promised[job]  # the next one, which needs the same, fits no earlier


@inner
def start_due(
    cap: Any, now: int, estimate: Ints, until: Ints, queue: Ints, n: int, promised: Ints, started: Ints
) -> int:
    """Start the jobs that were promised this instant. Returns how many."""
    n_started = 0
    advance_plan(cap, now)
    for i in range(n):
        job = queue[i]
        last = until[job]
        while job < last and promised[job] == now:
            due(cap, job, now)
            start(cap, job, now, now + estimate[job])
            started[n_started] = job
            n_started += 1
            job += 1
    return n_started


@inner
def start_beside(cap: Any, run: Run, now: int, first: int, planned: Ints, n_started: int) -> int:
    """Of the jobs from position `first` of the queue on that are not planned (`planned`, by job, is below 0), start
    what fits beside all that are. Returns how many have started in all."""
    for i in range(first, run.info[WAITING]):
        if spare(cap) == 0:
            break
        job = run.lists[QUEUE, i]
        length = run.jobs[ESTIMATE, job]
        if planned[job] < 0 and fits_now(cap, job) and fits_plan(cap, job, now, length):
            reserve(cap, job, now, length)
            start(cap, job, now, now + length)
            run.lists[STARTED, n_started] = job
            n_started += 1
    return n_started


@inner
def _compress(rule: ConservativeRule, cap: Any, run: Run, now: int, n: int) -> None:
    compress(
        cap, now, run.jobs[ESTIMATE], run.jobs[UNTIL], run.lists[QUEUE], n, run.jobs[PROMISED_LAST], rule.sweep,
        run.keys[BACK_KEY], run.lists[ORDER], run.lists[SPARE],
    )  # fmt: skip


@inner
def outdated(cap: Any, run: Run, now: int, n: int, bounded: bool) -> bool:
    """Whether a running job has outlived its estimate, or a promise could not be kept: an outage may be in its way."""
    if run.info[CORRECTED] == 1:
        return True
    if shaken(cap):
        for i in range(n):
            job = run.lists[QUEUE, i]
            at, length = run.jobs[PROMISED_LAST, job], run.jobs[ESTIMATE, job]
            if at >= now and not _stands(cap, job, at, length):
                return True
    if bounded:
        return False
    for i in range(run.info[RUNNING]):
        job = run.lists[END_JOB, i]
        if run.jobs[START, job] + run.jobs[ESTIMATE, job] <= now:
            return True
    for i in range(n):
        if 0 <= run.jobs[PROMISED_LAST, run.lists[QUEUE, i]] < now:
            return True
    return False


@inner
def _stands(cap: Any, job: int, at: int, length: int) -> bool:
    """Whether a job that has its place in the plan could have it."""
    unreserve(cap, job, at, length)
    fits = fits_again(cap, job, at, length)
    reserve_again(cap, job, at, length)
    return fits


@inner
def _decide_conservative(rule: ConservativeRule, cap: Any, run: Run, now: int) -> int:
    info, estimate, until = run.info, run.jobs[ESTIMATE], run.jobs[UNTIL]
    queue, promised = run.lists[QUEUE], run.jobs[PROMISED_LAST]
    n = info[WAITING] - info[JOINED]  # the queue is in order of arrival: the new ones stand last
    if rule.depth < ALL:
        n = 0
        while n < info[WAITING] and promised[queue[n]] >= 0:
            n += 1
    if outdated(cap, run, now, n, rule.bounded):
        rebuild(cap, now, estimate, queue, n, promised, run.keys[BACK_KEY], run.lists[ORDER], run.lists[SPARE])
    elif stand_again(cap, run, now):
        _compress(rule, cap, run, now, n)
    else:
        for i in range(info[ENDED]):
            job = run.lists[NEWS_LIST, i]
            end = run.jobs[START, job] + estimate[job]
            if end > now:
                unreserve(cap, job, now, end - now)
            if rule.sweep == EACH_END or i == info[ENDED] - 1:
                _compress(rule, cap, run, now, n)
    blocked = 0
    for i in range(n if rule.depth < ALL else 0):
        blocked += promised[queue[i]] > now
    while n < info[WAITING] and blocked < rule.depth:
        promise_entry(cap, now, estimate, until, queue[n], promised, run.jobs[PROMISED_FIRST])
        blocked += promised[queue[n]] > now
        n += 1
    # A promised start may be at an instant at which nobody ends.
    if rule.sweep == START_NOW or rule.sweep == NONE or names_nodes(cap):
        wake_at_next(run, now, promised, rule.bounded)
    n_started = start_due(cap, now, estimate, until, queue, n, promised, run.lists[STARTED])
    return start_beside(cap, run, now, n, promised, n_started)


answers(ConservativeRule, decide=_decide_conservative)
