"""One scheduling pass of the list family, written against the capacity seam.

A pass goes through the waiting jobs in the order given and appends the jobs to start now to `started`.
Everything is rebuilt at each pass: it remembers nothing. The queue has entries of alike jobs (queue.py); where one of
them does not fit, none of those behind it does.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import (
    advance_plan,
    ahead,
    alike,
    beside,
    earliest_fit,
    fits_now,
    fits_plan,
    open_plan,
    reserve,
    shadow,
    spare,
    spare_beside,
    start,
    take_beside,
    unreserve,
)
from dovetail.kernels.passes.rule import Common, sort_if_moving
from dovetail.kernels.queue import AHEAD, first_below, put, take
from dovetail.kernels.seam import answers
from dovetail.kernels.state import (
    BACK_KEY,
    BACK_ORDER,
    ENDED,
    ESTIMATE,
    IN_TREE,
    KEY,
    NEWS_LIST,
    PLACE,
    QUEUE,
    SEEN,
    SIZE,
    SPARE,
    STANDS,
    START,
    STARTED,
    UNTIL,
    WAITING,
    Run,
)

STRICT = -1
"""Reservation depth of strict list scheduling: stop at the first job that does not fit."""
ALL = 1 << 60
"""Reservation depth that reserves every job."""
MOST_PUSH = 2.0**60
"""No reservation is pushed back by more, in seconds: its latest start stays an integer of 64 bits."""
CHECK = 8
"""After this many reservations it is looked again whether anybody behind could start now."""
RECENT = 128
"""Kinds of job (size and estimate) whose last place is remembered within a pass, at least."""


_0: int = np.int64(0)  # type: ignore[assignment]  # see timeline.py


class ListRule(NamedTuple):
    """List scheduling: an order and a reservation depth."""

    common: Common
    depth: int
    reuse: bool
    """Keep the plan from pass to pass while a new one would be the same: all are reserved, the keys do not move, and
    no job has ended before its expected end. Estimates must be upper bounds that do not change."""


@inner
def list_pass(
    cap: Any,
    now: int,
    estimate: Ints,
    size: Ints,
    until: Ints,
    queue: Ints,
    n: int,
    backfill: Ints,
    other: bool,
    depth: int,
    complete: bool,
    place: Ints,
    seen: Ints,
    recent: Ints,
    started: Ints,
) -> tuple[int, int]:
    """Algorithm 1 (and 2) of the papers. Returns how many jobs start; they are the first in `started`; and how many got
    a reservation.

    `queue[:n]` are the entries of the queue in order; `backfill[:n]` the same in the backfill order, if that is an
    `other` one. `depth` blocked jobs get a reservation; it is written to `place`, by job (-1: none). Unless the plan
    is to be `complete`, reservations that cannot keep anybody from starting now are left out. `seen` (by job, all
    0) and `recent` (as long as the queue) are working space.
    """
    for i in range(n if complete or depth > 1 else 0):  # else nobody has been placed
        job = queue[i]
        last = until[job]
        while job < last and place[job] >= 0:  # the first of an entry are placed first
            place[job] = -1
            job += 1
    i, job, n_started, planned = _0, queue[0], _0, ahead(cap)
    if planned:
        open_plan(cap, now)
    while i < n and fits_now(cap, job) and (not planned or fits_plan(cap, job, now, estimate[job])):
        if planned:
            reserve(cap, job, now, estimate[job])
        start(cap, job, now, now + estimate[job])
        started[n_started] = job
        n_started += 1
        i, job = _next(queue, until, n, i, job)
    if i >= n or depth == STRICT:
        return n_started, _0
    if not planned and depth <= 1:
        at = ALL if depth == 0 else -1
        if depth == 1 and complete:
            at = place[job] = shadow(cap, job, now)
        return _easy(cap, now, estimate, until, queue, i, job, n, backfill, other, at, seen, started, n_started), _0
    last = n - 1
    while last > i and not fits_now(cap, queue[last]):
        last -= 1
    if last == i and not complete:
        return n_started, _0
    if not planned:
        open_plan(cap, now)
    n_started, i, job, blocked = place_rest(
        cap, now, estimate, size, until, queue, i, job, n, last, depth, complete, place, recent, started, n_started
    )
    if i < n and depth < ALL:
        n_started = _fill(cap, now, estimate, until, queue, i, job, n, backfill, other, seen, started, n_started)
    return n_started, blocked


@inner
def _next(queue: Ints, until: Ints, n: int, i: int, job: int) -> tuple[int, int]:
    """The job behind one of entry i, and its entry; n if there is none."""
    job += 1
    if job == until[queue[i]]:
        i += 1
        if i < n:
            job = queue[i]
    return i, job


@inner
def _easy(
    cap: Any, now: int, estimate: Ints, until: Ints, queue: Ints, i: int, head: int, n: int, backfill: Ints,
    other: bool, at: int, seen: Ints, started: Ints, n_started: int,
) -> int:  # fmt: skip
    """Algorithm 2: the first blocked job has its place, at an instant (-1: not known yet); others start if they end by
    then or fit beside it. Where it has none (ALL), whatever fits starts."""
    first = i + 1
    rest = queue
    if other:
        first, rest = 0, backfill
        for j in range(n_started):
            seen[started[j]] = 1
    for j in range(first, n):
        job = rest[j]
        if not fits_now(cap, job):
            continue
        last = until[job]
        while job < last and seen[job] != 0:
            job += 1
        while job < last and fits_now(cap, job):
            if at < 0:  # looked up only when somebody could use it
                at = shadow(cap, head, now)
            end = now + estimate[job]
            if not beside(cap, job, end, at):
                break
            start(cap, job, now, end)
            if end > at:
                take_beside(cap, job)
            started[n_started] = job
            n_started += 1
            job += 1
    for j in range(n_started if other else 0):
        seen[started[j]] = 0
    return n_started


@inner
def place_rest(
    cap: Any, now: int, estimate: Ints, size: Ints, until: Ints, queue: Ints, i: int, job: int, n: int, last: int,
    depth: int, complete: bool, place: Ints, recent: Ints, started: Ints, n_started: int,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Put the jobs from `job` of entry i on into the plan in turn, until `depth` of them are blocked or, unless it is
    to be `complete`, none of the rest could start now: none behind entry `last` can. Returns how many have started, the
    entry and the job not looked at, and how many were blocked."""
    table = min(max(RECENT, n // 4), len(recent))
    for j in range(table):
        recent[j] = -1
    blocked, checked = _0, False
    while i < n and blocked < depth:
        if not (complete or checked):
            last = _last_to_start(cap, now, estimate, queue, i, last)
            if last < i:
                break
        length = estimate[job]
        # Within a pass a plan only fills up: no job fits earlier than one of its kind that came before.
        kind = (size[job] * 1_000_003 + length) % table
        at = now
        if recent[kind] >= 0 and estimate[recent[kind]] == length and alike(cap, recent[kind], job):
            at = place[recent[kind]]
        at = earliest_fit(cap, job, at, length)
        reserve(cap, job, at, length)
        place[job] = at
        recent[kind] = job
        if at == now:
            start(cap, job, now, now + length)
            started[n_started] = job
            n_started += 1
        else:
            blocked += 1
        checked = at > now and blocked % CHECK != 0
        i, job = _next(queue, until, n, i, job)
    return n_started, i, job, blocked


@inner
def _last_to_start(cap: Any, now: int, estimate: Ints, queue: Ints, first: int, last: int) -> int:
    """The last of the entries first..last that fits into the plan now; below `first` if none does. Who does not fit
    will not in this pass: a plan only fills up."""
    failed = -1
    while last >= first:
        job = queue[last]
        if fits_now(cap, job) and not (failed >= 0 and estimate[job] >= estimate[failed] and alike(cap, failed, job)):
            if fits_plan(cap, job, now, estimate[job]):
                return last
            failed = job
        last -= 1
    return last


@inner
def _mark(seen: Ints, until: Ints, queue: Ints, i: int, job: int, value: int) -> None:
    """Mark the jobs before `job` of entry i."""
    for j in range(i):
        for one in range(queue[j], until[queue[j]]):
            seen[one] = value
    for one in range(queue[i], job):
        seen[one] = value


@inner
def _fill(
    cap: Any, now: int, estimate: Ints, until: Ints, queue: Ints, i: int, job: int, n: int, backfill: Ints,
    other: bool, seen: Ints, started: Ints, n_started: int,
) -> int:  # fmt: skip
    """All reservations are made: of the jobs from `job` of entry i on, in the backfill order, start what fits beside
    them."""
    first, rest = i, queue
    _mark(seen, until, queue, i, job, np.int64(1))  # type: ignore[arg-type]
    if other:
        first, rest = 0, backfill
    for j in range(first, n):
        one = rest[j]
        if not fits_now(cap, one):
            continue
        last = until[one]
        while one < last and seen[one] != 0:
            one += 1
        while one < last and fits_now(cap, one) and fits_plan(cap, one, now, estimate[one]):
            reserve(cap, one, now, estimate[one])
            start(cap, one, now, now + estimate[one])
            started[n_started] = one
            n_started += 1
            one += 1
    _mark(seen, until, queue, i, job, _0)
    return n_started


@inner
def _standing(cap: Any, run: Run, now: int) -> tuple[int, int]:
    """If the plan still stands: the first entry of the queue with a job that is not in it, and that job; all behind it
    are taken out. Else -1.

    A new plan would put the jobs before just where they are: what started since took its place around them, all that
    ended did so when expected, so there is nowhere more room than when they were placed.
    """
    info = run.info
    n = info[WAITING]
    for i in range(info[ENDED]):
        job = run.lists[NEWS_LIST, i]
        if run.jobs[START, job] + run.jobs[ESTIMATE, job] != now:
            info[STANDS] = 0
    if info[STANDS] == 0:
        return -1, 0
    queue, place, until = run.lists[QUEUE], run.jobs[PLACE], run.jobs[UNTIL]
    kept, first, job = 0, _0, queue[0]
    while first < n and place[job] >= 0:
        kept += 1
        first, job = _next(queue, until, n, first, job)
    behind = 0
    for i in range(first + 1, n):
        one = queue[i]
        while one < until[queue[i]] and place[one] >= 0:
            behind += 1
            one += 1
    if behind > kept:  # cheaper to begin anew than to take so many out
        info[STANDS] = 0
        return -1, 0
    advance_plan(cap, now)
    for i in range(first + 1, n):
        one = queue[i]
        while one < until[queue[i]] and place[one] >= 0:
            unreserve(cap, one, place[one], run.jobs[ESTIMATE, one])
            place[one] = -1
            one += 1
    return first, job


@inner
def _start_placed(cap: Any, run: Run, now: int, n: int) -> int:
    """Start the jobs, in the first n entries of the queue, whose place in the standing plan is now."""
    n_started = 0
    for i in range(n):
        job = run.lists[QUEUE, i]
        last = run.jobs[UNTIL, job]
        while job < last and run.jobs[PLACE, job] == now:
            start(cap, job, now, now + run.jobs[ESTIMATE, job])
            run.lists[STARTED, n_started] = job
            n_started += 1
            job += 1
    return n_started


@inner
def _easy_in_tree(rule: ListRule, cap: Any, run: Run, now: int) -> int:
    """As list_pass with one reservation or none, where the queue is in the tree."""
    tree, estimate, started = run.tree, run.jobs[ESTIMATE], run.lists[STARTED]
    row = BACK_KEY if rule.common.backfill >= 0 else KEY
    n_started = 0
    head = tree[1, AHEAD]
    while head >= 0 and fits_now(cap, head):
        take(rule, run, head)
        start(cap, head, now, now + estimate[head])
        started[n_started] = head
        n_started += 1
        head = tree[1, AHEAD]
    if head < 0 or spare(cap) == 0:
        return n_started
    at = shadow(cap, head, now) if rule.depth > 0 else ALL
    aside, n_aside = run.lists[BACK_ORDER], 0
    while True:
        job = first_below(run, row, spare(cap), at - now, np.int64(-1))  # type: ignore[arg-type]
        job = first_below(run, row, min(spare(cap), spare_beside(cap)), NEVER - 1, job)
        if job < 0:
            break
        take(rule, run, job)
        end = now + estimate[job]
        if fits_now(cap, job) and beside(cap, job, end, at):
            start(cap, job, now, end)
            if end > at:
                take_beside(cap, job)
            started[n_started] = job
            n_started += 1
        else:  # there is too little of another resource; within a pass there is never more
            aside[n_aside] = job
            n_aside += 1
    for i in range(n_aside):
        put(rule, run, aside[i])
    return n_started


@inner
def _decide_list(rule: ListRule, cap: Any, run: Run, now: int) -> int:
    info = run.info
    n = info[WAITING]
    if n == 0:
        info[STANDS] = 0
        return 0
    if info[IN_TREE] == 1:
        return _easy_in_tree(rule, cap, run, now)
    place, until = run.jobs[PLACE], run.jobs[UNTIL]
    if rule.reuse:
        first, job = _standing(cap, run, now)
        if first >= 0:
            n_started = _start_placed(cap, run, now, min(first + 1, n))
            if first == n:
                return n_started
            return place_rest(
                cap, now, run.jobs[ESTIMATE], run.jobs[SIZE], until, run.lists[QUEUE], first, job, n, n - 1, rule.depth,
                rule.common.keep_expected, place, run.lists[SPARE], run.lists[STARTED], n_started,
            )[0]  # fmt: skip
    queue, back = sort_if_moving(run, rule, now)
    n_started, blocked = list_pass(
        cap, now, run.jobs[ESTIMATE], run.jobs[SIZE], until, queue, n, back, rule.common.backfill >= 0, rule.depth,
        rule.common.keep_expected, place, run.jobs[SEEN], run.lists[SPARE], run.lists[STARTED],
    )  # fmt: skip
    if rule.reuse and blocked > 0:
        info[STANDS] = 1
    return n_started


answers(ListRule, decide=_decide_list)
