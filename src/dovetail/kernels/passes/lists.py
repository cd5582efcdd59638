"""One scheduling pass of the list family, written against the capacity seam.

A pass goes through the waiting jobs in the order given and appends the jobs to start now to `started`.
Everything is rebuilt at each pass: it remembers nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import (
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

Ints = npt.NDArray[np.int64]

STRICT = -1
"""Reservation depth of strict list scheduling: stop at the first job that does not fit."""
ALL = 1 << 60
"""Reservation depth that reserves every job."""
MOST_PUSH = 2.0**60
"""No reservation is pushed back by more, in seconds: its latest start stays an integer of 64 bits."""
RECENT = 128
"""Kinds of job (size and estimate) whose last place is remembered within a pass, at least."""


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
def slack_pass(
    cap: Any,
    now: int,
    estimate: Ints,
    arrive: Ints,
    queue: Ints,
    n: int,
    backfill: Ints,
    other: bool,
    depth: int,
    relax: float,
    slack: float,
    first_at: Ints,
    place: Ints,
    held: Ints,
    at_now: Ints,
    trial: Ints,
    seen: Ints,
    started: Ints,
) -> int:
    """Relaxed backfilling: a start may push the reserved jobs back, each up to its own latest start.

    The latest start is the first reservation that the job ever had (`first_at`, by job, -1: none yet) plus
    relax * (that - arrival) + slack * estimate. The reservations are written to `place`, by job. `held`,
    `at_now` and `trial` are working space.
    """
    n_started = 0
    for i in range(n):
        place[queue[i]] = -1
    open_plan(cap, now)
    blocked = 0
    j = 0
    phase = 0  # 0: in queue order while reservations are left; 1: the rest in backfill order
    while True:
        if phase == 0 and blocked >= depth:
            phase = 1
            if other:
                _mark(seen, queue, j, 1)
                j = 0
        if j >= n:
            break
        job = backfill[j] if phase == 1 and other else queue[j]
        j += 1
        if phase == 1 and other and seen[job] != 0:
            continue
        if fits_now(cap, job) and _moves_over(
            cap, now, job, estimate, arrive, relax, slack, first_at, held, at_now, trial, blocked
        ):
            start(cap, job, now, now + estimate[job])
            started[n_started] = job
            n_started += 1
        elif phase == 0:
            at = earliest_fit(cap, job, now, estimate[job])
            reserve(cap, job, at, estimate[job])
            held[blocked] = job
            at_now[blocked] = at
            blocked += 1
            if first_at[job] < 0:
                first_at[job] = at
    for b in range(blocked):
        place[held[b]] = at_now[b]
    if other:
        _mark(seen, queue, n, 0)
    return n_started


@inner
def _moves_over(
    cap: Any, now: int, job: int, estimate: Ints, arrive: Ints, relax: float, slack: float, first_at: Ints,
    held: Ints, at_now: Ints, trial: Ints, blocked: int,
) -> bool:  # fmt: skip
    """Try to start `job` now with the reserved jobs placed anew after it; undone if one of them gets too late."""
    if fits_plan(cap, job, now, estimate[job]):
        reserve(cap, job, now, estimate[job])
        return True
    for b in range(blocked):
        unreserve(cap, held[b], at_now[b], estimate[held[b]])
    good = fits_plan(cap, job, now, estimate[job])
    if good:
        reserve(cap, job, now, estimate[job])
        done = 0
        for b in range(blocked):
            other = held[b]
            at = earliest_fit(cap, other, now, estimate[other])
            latest = first_at[other]
            latest += int(min(relax * (first_at[other] - arrive[other]), MOST_PUSH))
            latest += int(min(slack * estimate[other], MOST_PUSH))
            if at > max(latest, at_now[b]):
                good = False
                break
            reserve(cap, other, at, estimate[other])
            trial[b] = at
            done += 1
        if good:
            for b in range(blocked):
                at_now[b] = trial[b]
            return True
        for b in range(done):
            unreserve(cap, held[b], trial[b], estimate[held[b]])
        unreserve(cap, job, now, estimate[job])
    for b in range(blocked):
        reserve(cap, held[b], at_now[b], estimate[held[b]])
    return False
