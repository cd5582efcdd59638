"""One scheduling pass of the list family, written against the capacity seam.

A pass goes through the waiting jobs in the order given and appends the jobs to start now to `started`.
Everything is rebuilt at each pass: it remembers nothing.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from dovetail.arrays import Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import (
    advance_plan,
    alike,
    beside,
    earliest_fit,
    fits_now,
    fits_plan,
    open_plan,
    reserve,
    shadow,
    spare,
    start,
    take_beside,
    unreserve,
)
from dovetail.kernels.passes.rule import Common, sort_if_moving
from dovetail.kernels.seam import answers
from dovetail.kernels.state import (
    ENDED,
    ESTIMATE,
    NEWS_LIST,
    PLACE,
    QUEUE,
    SEEN,
    SIZE,
    SPARE,
    SPARE_2,
    STANDS,
    START,
    STARTED,
    WAITING,
    Run,
)

STRICT = -1
"""Reservation depth of strict list scheduling: stop at the first job that does not fit."""
ALL = 1 << 60
"""Reservation depth that reserves every job."""
MOST_PUSH = 2.0**60
"""No reservation is pushed back by more, in seconds: its latest start stays an integer of 64 bits."""
RECENT = 128
"""Kinds of job (size and estimate) whose last place is remembered within a pass, at least."""


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
    queue: Ints,
    n: int,
    backfill: Ints,
    other: bool,
    depth: int,
    complete: bool,
    place: Ints,
    seen: Ints,
    least: Ints,
    recent: Ints,
    started: Ints,
) -> int:
    """Algorithm 1 (and 2) of the papers. Returns how many jobs start; they are the first in `started`.

    `queue[:n]` are the waiting jobs in order; `backfill[:n]` the same jobs in the backfill order, if that is an
    `other` one. `depth` blocked jobs get a reservation; it is written to `place`, by job (-1: none). Unless the plan
    is to be `complete`, reservations that cannot keep anybody from starting now are left out. `seen` (by job, all
    0), `least` and `recent` (as long as the queue) are working space.
    """
    for i in range(n):
        place[queue[i]] = -1
    i = 0
    while i < n and fits_now(cap, queue[i]):
        job = queue[i]
        start(cap, job, now, now + estimate[job])
        started[i] = job
        i += 1
    if i >= n or depth == STRICT:
        return i
    if depth == 0 or (depth == 1 and not complete):
        return _easy(cap, now, estimate, queue, i, n, backfill, other, depth, seen, started)
    small = size[queue[n - 1]]
    for j in range(i + 1, n):
        small = min(small, size[queue[j]])
    if spare(cap) < small and not complete:
        return i
    open_plan(cap, now)
    n_started, j = place_rest(cap, now, estimate, size, queue, i, n, depth, complete, place, least, recent, started, i)
    if j == n or depth == ALL:
        return n_started
    return _fill(cap, now, estimate, queue, j, n, backfill, other, seen, started, n_started)


@inner
def _mark(seen: Ints, jobs: Ints, n: int, value: int) -> None:
    for i in range(n):
        seen[jobs[i]] = value


@inner
def _easy(
    cap: Any, now: int, estimate: Ints, queue: Ints, i: int, n: int, backfill: Ints, other: bool, depth: int,
    seen: Ints, started: Ints,
) -> int:  # fmt: skip
    """Algorithm 2: the first blocked job has its place; others start if they end by then or fit beside it. At depth 0
    it has none, and whatever fits starts."""
    n_started = i
    at = -1 if depth > 0 else ALL
    head = queue[i]
    first = i + 1
    if other:
        _mark(seen, queue, first, 1)
        first = 0
    rest = backfill if other else queue
    for j in range(first, n):
        job = rest[j]
        if (other and seen[job] != 0) or not fits_now(cap, job):
            continue
        if at < 0:  # looked up only when somebody could use it
            at = shadow(cap, head, now)
        end = now + estimate[job]
        if beside(cap, job, end, at):
            start(cap, job, now, end)
            if end > at:
                take_beside(cap, job)
            started[n_started] = job
            n_started += 1
    if other:
        _mark(seen, queue, n, 0)
    return n_started


@inner
def place_rest(
    cap: Any, now: int, estimate: Ints, size: Ints, queue: Ints, first: int, n: int, depth: int, complete: bool,
    place: Ints, least: Ints, recent: Ints, started: Ints, n_started: int,
) -> tuple[int, int]:  # fmt: skip
    """Put the jobs queue[first:n] into the plan in turn, until `depth` of them are blocked or, unless it is to be
    `complete`, none of the rest could start now. Returns how many have started, and the first job not looked at.
    """
    # least[j] is the smallest first resource among queue[j:]: once less is free, nobody else can start.
    small = size[queue[n - 1]]
    for j in range(n - 1, first - 1, -1):
        small = min(small, size[queue[j]])
        least[j] = small
    table = min(max(RECENT, n // 4), len(recent))
    for i in range(table):
        recent[i] = -1
    j = first
    while j < n and depth > 0 and (complete or spare(cap) >= least[j]):
        job = queue[j]
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
            depth -= 1
        j += 1
    return n_started, j


@inner
def _fill(
    cap: Any, now: int, estimate: Ints, queue: Ints, j: int, n: int, backfill: Ints, other: bool, seen: Ints,
    started: Ints, n_started: int,
) -> int:  # fmt: skip
    """All reservations are made: of queue[j:], in the backfill order, start what fits beside them."""
    if other:
        _mark(seen, queue, j, 1)
        j = 0
    rest = backfill if other else queue
    for i in range(j, n):
        job = rest[i]
        if (other and seen[job] != 0) or not fits_now(cap, job):
            continue
        if fits_plan(cap, job, now, estimate[job]):
            reserve(cap, job, now, estimate[job])
            start(cap, job, now, now + estimate[job])
            started[n_started] = job
            n_started += 1
    if other:
        _mark(seen, queue, n, 0)
    return n_started


@inner
def _standing(cap: Any, run: Run, now: int) -> int:
    """If the plan still stands: how many jobs at the head of the queue keep their places in it; those behind them are
    taken out. Else -1.

    A new plan would put these jobs just where they are: what started since took its place around them, all that ended
    did so when expected, so there is nowhere more room than when they were placed.
    """
    info = run.info
    n = info[WAITING]
    for i in range(info[ENDED]):
        job = run.lists[NEWS_LIST, i]
        if run.jobs[START, job] + run.jobs[ESTIMATE, job] != now:
            info[STANDS] = 0
    if info[STANDS] == 0:
        return -1
    queue, place = run.lists[QUEUE], run.jobs[PLACE]
    first = 0
    while first < n and place[queue[first]] >= 0:
        first += 1
    behind = 0
    for i in range(first, n):
        behind += place[queue[i]] >= 0
    if behind > first:  # cheaper to begin anew than to take so many out
        info[STANDS] = 0
        return -1
    advance_plan(cap, now)
    for i in range(first, n):
        job = queue[i]
        if place[job] >= 0:
            unreserve(cap, job, place[job], run.jobs[ESTIMATE, job])
            place[job] = -1
    return first


@inner
def _start_placed(cap: Any, run: Run, now: int, first: int) -> int:
    """Start the jobs, among the first of the queue, whose place in the standing plan is now."""
    n_started = 0
    for i in range(first):
        job = run.lists[QUEUE, i]
        if run.jobs[PLACE, job] == now:
            start(cap, job, now, now + run.jobs[ESTIMATE, job])
            run.lists[STARTED, n_started] = job
            n_started += 1
    return n_started


@inner
def _decide_list(rule: ListRule, cap: Any, run: Run, now: int) -> int:
    info = run.info
    n = info[WAITING]
    if n == 0:
        info[STANDS] = 0
        return 0
    place = run.jobs[PLACE]
    if rule.reuse:
        first = _standing(cap, run, now)
        if first >= 0:
            n_started = _start_placed(cap, run, now, first)
            if first == n:
                return n_started
            return place_rest(
                cap, now, run.jobs[ESTIMATE], run.jobs[SIZE], run.lists[QUEUE], first, n, rule.depth,
                rule.common.keep_expected, place, run.lists[SPARE], run.lists[SPARE_2], run.lists[STARTED], n_started,
            )[0]  # fmt: skip
    queue, back = sort_if_moving(run, rule, now)
    n_started = list_pass(
        cap, now, run.jobs[ESTIMATE], run.jobs[SIZE], queue, n, back, rule.common.backfill >= 0, rule.depth,
        rule.common.keep_expected, place, run.jobs[SEEN], run.lists[SPARE], run.lists[SPARE_2], run.lists[STARTED],
    )  # fmt: skip
    if rule.reuse:
        for i in range(n):
            info[STANDS] |= place[queue[i]] > now
    return n_started


answers(ListRule, decide=_decide_list)
