"""Last2 by the rules of the authors' program, each of which can be switched on alone.

The rules were read in github.com/algo74/predictsim at the commit of Packing (63daabb): predictors/predictor_tsafrir.py,
schedulers/easy_prediction_backfill_scheduler.py, easy_backfill_scheduler.py and pure_b_f_scheduler.py, and
base/prototype.py. `recent` is what the text of the paper says; with no rule this is `recent`. It is a replay of its
own, as the package estimates a job once, when it arrives.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

import numba
import numpy as np
import numpy.typing as npt

from dovetail.arrays import NEVER, Ints
from dovetail.engine.replay import replay
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload

Flags = npt.NDArray[np.bool_]

RULES: Final = {
    "anew": "all waiting jobs are estimated anew before each pass",
    "two": "the limit until two jobs of the user have ended; ours takes one",
    "cut": "a mean is cut to whole seconds; ours is rounded",
    "by-start": "jobs that end in the same second are learned in the order of their starts; ours in that of the log",
    "arrivals-first": "a job does not know what ends in the second of its arrival; ours does",
    "fits": "EASY-SJBF: no pass where jobs only arrive and none of them fits into what is free",
}
ANEW, TWO, CUT, BY_START, ARRIVALS_FIRST, FITS = range(6)
ORDERS: Final = {"easy-sjbf": 0, "list-reg": 1, "list-saf": 2, "list-laf": 3}
EASY, REG, SAF, LAF = range(4)


@dataclass(frozen=True)
class Apart:
    """The first pass that starts other jobs than `recent` does: all before it is the same but for estimates."""

    now: int
    free: int
    """Processors before the pass."""
    waiting: Ints
    running: Ints
    starts: Ints
    """What it starts; `recent` starts `others`."""
    others: Ints
    told: Ints
    """By job: what is expected of it."""


@dataclass(frozen=True)
class Told:
    """Estimates of a replay, by job."""

    first: Ints
    """When it arrived."""
    at_start: Ints
    beside: Schedule
    """The same with `recent`."""
    apart: Apart | None


def replayed(workload: Workload, policy: str, rules: Collection[str]) -> tuple[Schedule, Told]:
    """A whole log, and what was told; `said` of the schedule has the estimates at arrival."""
    beside = replay(workload, policy, estimate="recent")
    on = np.array([rule in rules for rule in RULES])
    users = np.unique(workload.get("user"), return_inverse=True)[1].ravel()
    columns = (workload.submit, workload.size, workload.runtime, workload.limit, users)
    submit, size, runtime, limit, user = (np.ascontiguousarray(column, np.int64) for column in columns)
    start, first, at_start, where, waiting, running, starts, told = _replay(
        submit, size, runtime, limit, user, workload.processors, ORDERS[policy], on, beside.start
    )
    now, free = where.tolist()
    apart = None
    if now >= 0:
        others = waiting[beside.start[waiting] == now]
        apart = Apart(now, free, waiting, running, starts, others, told)
    made = replace(beside, estimate="last2", start=start, said=first)
    return made, Told(first, at_start, beside, apart)


@numba.njit(cache=True)
def _replay(
    submit: Ints, size: Ints, runtime: Ints, limit: Ints, user: Ints, processors: int, order: int, on: Flags,
    ours: Ints,
) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints, Ints, Ints]:  # fmt: skip
    n = len(submit)
    start, first, at_start, told = np.full(n, -1), np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    place = np.zeros(n, np.int64)
    ran = np.zeros((n, 3), np.int64)
    """By user: how many have ended, two at most; the last; the one before."""
    queue, running, ended = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    waiting, runs, placed, coming, free = 0, 0, 0, 0, processors
    where = np.full(2, -1)
    apart = (queue[:0].copy(), queue[:0].copy(), queue[:0].copy(), queue[:0].copy())
    while coming < n or runs > 0:
        now: int = NEVER
        if coming < n:
            now = submit[coming]
        for i in range(runs):
            now = min(now, start[running[i]] + runtime[running[i]])
        ends, left = 0, 0
        for i in range(runs):
            job = running[i]
            if start[job] + runtime[job] == now:
                ended[ends] = job
                ends += 1
                free += size[job]
            else:
                running[left] = job
                left += 1
        runs = left
        ended[:ends] = ended[:ends][np.argsort(place[ended[:ends]] if on[BY_START] else ended[:ends])]
        arrived = waiting
        while coming < n and submit[coming] == now:
            queue[waiting] = coming
            waiting += 1
            coming += 1
        if not on[ARRIVALS_FIRST]:
            _learn(ended[:ends], user, runtime, ran)
        for job in queue[arrived:waiting]:
            first[job] = told[job] = _estimate(user[job], limit[job], ran, on)
        if on[ARRIVALS_FIRST]:
            _learn(ended[:ends], user, runtime, ran)
        for job in running[:runs]:
            if start[job] + told[job] <= now:
                told[job] = limit[job]
        fits = ends > 0 or not on[FITS]
        for job in queue[arrived:waiting]:
            fits = fits or size[job] <= free
        before, had = free, placed
        if fits and waiting > 0 and size[queue[:waiting]].min() <= free:
            if on[ANEW]:
                for job in queue[:waiting]:
                    told[job] = _estimate(user[job], limit[job], ran, on)
            held = start[running[:runs]] + told[running[:runs]]
            if order == EASY:
                begin = _easy(now, free, queue[:waiting], size, told, held, size[running[:runs]])
            else:
                begin = _list(now, free, queue[:waiting], size, told, held, size[running[:runs]], order)
        else:
            begin = queue[:0].copy()
        if where[0] < 0:
            same = 0
            for job in begin:
                same += ours[job] == now
            if same < len(begin) or same < (ours[queue[:waiting]] == now).sum():
                where[0], where[1] = now, before
                apart = (queue[:waiting].copy(), np.sort(running[:runs]), begin.copy(), told.copy())
        for job in begin:
            start[job], at_start[job], place[job] = now, told[job], placed
            placed += 1
            running[runs] = job
            runs += 1
            free -= size[job]
        if placed > had:
            left = 0
            for job in queue[:waiting]:
                if start[job] < 0:
                    queue[left] = job
                    left += 1
            waiting = left
    return start, first, at_start, where, apart[0], apart[1], apart[2], apart[3]


@numba.njit(cache=True)
def _learn(ended: Ints, user: Ints, runtime: Ints, ran: Ints) -> None:
    for job in ended:
        of = ran[user[job]]
        of[0], of[2], of[1] = min(of[0] + 1, 2), of[1], runtime[job]


@numba.njit(cache=True)
def _estimate(user: int, limit: int, ran: Ints, on: Flags) -> int:
    count = ran[user, 0]
    if count < (2 if on[TWO] else 1):
        return limit
    total = ran[user, 1] + (ran[user, 2] if count == 2 else 0)
    mean = total // count if on[CUT] else (2 * total + count) // (2 * count)
    seconds: int = max(1, min(limit, mean))
    return seconds


@numba.njit(cache=True)
def _easy(now: int, free: int, queue: Ints, size: Ints, told: Ints, held: Ints, sizes: Ints) -> Ints:
    """EASY, backfilled by the shortest first. `held`: when running jobs are expected to end."""
    begin = np.empty(len(queue), np.int64)
    n = 0
    while n < len(queue) and size[queue[n]] <= free:
        begin[n] = queue[n]
        free -= size[queue[n]]
        n += 1
    heads = n
    if n == len(queue):
        return begin[:n]
    ends = np.concatenate((held, now + told[begin[:n]]))
    leave = np.concatenate((sizes, size[begin[:n]]))
    at, spare = np.int64(-1), free - size[queue[n]]
    for i in np.argsort(ends, kind="mergesort"):
        if at >= 0 and ends[i] > at:
            break
        spare += leave[i]
        if spare >= 0:
            at = ends[i]
    tail = queue[heads + 1 :]
    for i in np.argsort(told[tail], kind="mergesort"):
        job = tail[i]
        late = now + told[job] > at
        if size[job] <= free and not (late and size[job] > spare):
            begin[n] = job
            n += 1
            free -= size[job]
            spare -= size[job] if late else 0
    return begin[:n]


@numba.njit(cache=True)
def _list(now: int, free: int, queue: Ints, size: Ints, told: Ints, held: Ints, sizes: Ints, order: int) -> Ints:
    """Every job at its earliest fit beside those before it, in order; those that begin now."""
    begin = np.empty(len(queue), np.int64)
    n = 0
    by = queue
    if order != REG:
        by = queue[np.argsort(size[queue] * told[queue] * (1 if order == SAF else -1), kind="mergesort")]
    most = len(held) + 2 * len(queue) + 2
    times, level = np.empty(most, np.int64), np.empty(most, np.int64)
    """What is free from each of these instants on."""
    times[0], level[0], steps = now, free, 1
    for i in np.argsort(held, kind="mergesort"):
        if held[i] > times[steps - 1]:
            times[steps], level[steps] = held[i], level[steps - 1]
            steps += 1
        level[steps - 1] += sizes[i]
    least = np.empty(len(by), np.int64)
    """The smallest size from each place in the order on."""
    for i in range(len(by) - 1, -1, -1):
        least[i] = min(size[by[i]], least[i + 1]) if i + 1 < len(by) else size[by[i]]
    for i in range(len(by)):
        if least[i] > free:
            break
        job = by[i]
        a = 0
        b = 0
        while b < steps and (b == a or times[b] < times[a] + told[job]):
            if level[b] < size[job]:
                a = b + 1
            b += 1
        at, until = times[a], times[a] + told[job]
        if at == now:
            begin[n] = job
            n += 1
            free -= size[job]
        b = a
        while b < steps and times[b] < until:
            b += 1
        if b == steps or times[b] > until:
            times[b + 1 : steps + 1] = times[b:steps].copy()
            level[b + 1 : steps + 1] = level[b:steps].copy()
            times[b], level[b] = until, level[b - 1]
            steps += 1
        level[a:b] -= size[job]
    return begin[:n]
