"""Search for a good order of the waiting jobs: orders decoded by list scheduling, annealed.

A candidate is an order; decoded, every job in turn gets its earliest fit. Only what comes after the first changed
position is decoded again, from a snapshot of the plan; it ends early once it must be worse than what would be accepted.

What is asked of the rule is a seam, so that other objectives can be searched for with other decoders (money.py):

    spot(rule, cap, run, local)         where a job goes in the plan that is open
    excess(rule, run, local, at)        what it costs above its least if it starts at an instant
    value(rule, run, n, order, at)      the objective of a plan
    count_costs(rule, run, n)           set the least cost of each job; costs are counted from the best plan on
    price(rule, cap, run, now, n, first, order, at)    what a plan costs as a whole, beside its jobs

What is minimised is a sum over jobs of a cost that depends on the job's start alone (and, for the makespan, on the last
end so far). A ratio (PaSF) is made one by Dinkelbach's method: over - rho * under, with rho the ratio of the best plan
so far, is below 0 just where the ratio is below rho. Costs are counted from a lower bound of each job, its cost at its
earliest fit beside what runs: the sum is then never negative, a part of it is a lower bound of the whole, and 0 is the
optimum.
"""

from __future__ import annotations

from math import exp, log
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import earliest_fit, recall_plan, remember_plan, reserve, spare
from dovetail.kernels.passes.order import FCFS, LAF, SAF, SJF, SPF, key_of, sort_by_key
from dovetail.kernels.seam import seam
from dovetail.kernels.state import (
    AGREED,
    ARRIVE,
    BACK_QUEUE,
    END_JOB,
    ESTIMATE,
    NEXT,
    RECENT,
    RUNNING,
    SIZE,
    START,
    TENTATIVE,
    Run,
)

spot = seam("spot")
excess = seam("excess")
value = seam("value")
count_costs = seam("count_costs")
price = seam("price")

STRIDE = 8
"""Positions between two snapshots of the plan."""

# Terms of an objective.
AF, AWF, BSLD, PASF, WAIT, SPAN = range(6)
TERMS = 6
BOUND_S = 10.0
"""Run times below count as so long in the bounded slowdown."""

# Rows of Space.ints, by position in JOBS: JOBS: the jobs to arrange. CAME, FROM: when each came, and could start.
# STOOD: its start in the plan that stands; -1: none. By position in an order, which holds positions in JOBS: NOW_ORDER,
# NOW_AT: the order that the search stands at, and its starts. NEW_*: the candidate. BEST_*: the best so far. LIST_*:
# the best of the lists. By snapshot: SLOT, OTHER: which belongs to a position of the order that it stands at; which to
# write that of a candidate to. SORTED: for sorting. Where deadlines are looked at (rule.patient), by position in JOBS:
# DUE_AT: by when a job is to have ended; NEVER: no matter. URGENT: 1 for those that a list order puts first. ENTRY: the
# first job of its entry in the queue. For the price of commitment: RUN_END, RUN_SIZE: what runs, by its expected end.
# END_AT, END_SIZE: the same with what a plan starts.
JOBS, CAME, FROM, NOW_ORDER, NOW_AT, NEW_ORDER, NEW_AT, BEST_ORDER, BEST_AT, LIST_ORDER, LIST_AT = range(11)
STOOD, SLOT, OTHER, SORTED, DUE_AT, URGENT, ENTRY, RUN_END, RUN_SIZE, END_AT, END_SIZE, SORTED_2 = range(11, 23)
INT_ROWS = 23
# Rows of Space.floats, by position in JOBS: WEIGHT: what a second of its wait counts. LOW: its least cost. KEYS: for
# sorting. By position in an order: NOW_SUM, NEW_SUM: cost of all before it. NOW_END, NEW_END: the last end before it.
# By term: UNIT: its weight over its value in the FCFS plan. SCALE: the same for what a job adds. RHO: the ratio, first.
# SUMS: see _measure. By position in JOBS, where promises are kept (rule.patient) or some are favoured (rule.favours):
# PART: what a job counts. WIDE: what its area is multiplied by in AWF. By class of sizes: CLASS: what a second of wait
# of those that may come counts.
WEIGHT, LOW, KEYS, NOW_SUM, NEW_SUM, NOW_END, NEW_END, UNIT, SCALE, RHO, SUMS, PART, WIDE, CLASS = range(14)
FLOAT_ROWS = 14
CLASSES = 64
"""Sizes of half an octave each."""
LARGEST = np.ceil(2.0 ** (0.5 * np.arange(1, CLASSES + 1)) - 1e-9).astype(np.int64) - 1
"""The largest size of each class."""
RECENT_JOBS = 256
"""The last jobs that came stand for those that may come."""
REPAIRS = 6
"""How often a list order is made again with those first that it made late."""

FAVOURED, FAVOURED_SMALL = -2, -3
LISTS = (FCFS, -1, SJF, SAF, LAF, SPF, FAVOURED, FAVOURED_SMALL)
"""Orders that a search begins with, FCFS the first of them; -1: that of the standing plan. Where some are favoured,
those first who count most, and those of the least area for what they count."""


class Space(NamedTuple):
    """Working space of a search; the caller owns it."""

    ints: Ints
    floats: Floats
    plans: Ints
    """One snapshot of a plan per row."""
    random: npt.NDArray[np.uint64]
    """State of the random numbers."""
    counts: Ints
    """Plans that were decoded: one number."""

    def fitted(self, rule: Any, cap: Any, room: int) -> Space:
        """Space for plans of such a machine and this many waiting jobs."""
        most = max(room + rule.common.foresight, CLASSES) + 1
        slots = min(most, rule.window) // STRIDE + 1
        ints = np.zeros((INT_ROWS, max(most, 2 * slots)), np.int64)
        ints[SLOT, :slots] = np.arange(slots)
        ints[OTHER, :slots] = np.arange(slots, 2 * slots)
        plans = np.repeat(cap.memory()[np.newaxis], 2 * slots, axis=0)
        return self._replace(ints=ints, floats=np.zeros((FLOAT_ROWS, most)), plans=plans)


def no_space() -> Space:
    """Working space for nothing; `Space.fitted` makes that of a replay."""
    none = np.zeros((0, 0), np.int64)
    return Space(none, np.zeros((0, 0)), none, np.zeros(1, np.uint64), np.zeros(1, np.int64))


@inner
def seeded(space: Space, seed: int, now: int, n: int) -> None:
    """Begin the random numbers of one pass: they depend on the seed and on how many wait and for how long, not on the
    calendar (splitmix64)."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(n)
    for i in range(n):
        x = x * np.uint64(0xD1342543DE82EF95) + np.uint64(now - space.ints[CAME, i])
    x += np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    space.random[0] = x ^ (x >> np.uint64(31)) | np.uint64(1)


@inner
def _random(space: Space) -> np.uint64:
    """The next 64 bits (xorshift)."""
    x = space.random[0]
    x ^= x << np.uint64(13)
    x ^= x >> np.uint64(7)
    x ^= x << np.uint64(17)
    space.random[0] = x
    return x


@inner
def _below(space: Space, n: int) -> int:
    return np.int64((_random(space) >> np.uint64(33)) % np.uint64(n))  # type: ignore[return-value]


@inner
def _share(space: Space) -> float:
    """A number between 0 and 1, never one of them."""
    return (float(np.int64(_random(space) >> np.uint64(12))) + 0.5) / 4503599627370496.0


@inner
def powers(f: float, q: float, m: int) -> float:
    """(F^m - Q^m) / (F - Q), all terms positive: nothing cancels."""
    total, power = 1.0, 1.0
    for _ in range(m - 1):
        power *= q
        total = total * f + power
    return total


@inner
def strained(rule: Any, wait: float) -> float:
    """What a wait counts: a long one more than its seconds."""
    share = wait / rule.long_s
    return wait * (1.0 + share * share * share)


@inner
def cost(rule: Any, size: int, estimate: int, wait: float, weight: float, wide: float) -> float:
    """What a job adds to the objective if it waits so long, in the weights of this pass."""
    d, counts = float(estimate), strained(rule, wait)
    f = counts + d
    area = float(size) * d
    scale = rule.space.floats[SCALE]
    total = scale[AF] * f + scale[AWF] * wide * area * f + scale[WAIT] * weight * counts
    if scale[BSLD] != 0.0:
        total += scale[BSLD] * max(1.0, f / max(d, BOUND_S))
    if scale[PASF] != 0.0:
        f, level = wait + d, rule.level
        over = (level + 1.0) / (level + 2.0) * powers(f, wait, level + 2)
        total += scale[PASF] * area * (over - rule.space.floats[RHO, 0] * powers(f, wait, level + 1))
    return total


@inner
def _least(rule: Any, size: int, estimate: int, wait: float, weight: float, wide: float) -> float:
    """The least that `cost` can be from a wait on. All terms grow with the wait, but PaSF falls first where the job is
    young against rho: its least is found by halving, and the others are at their least at the wait itself."""
    total = cost(rule, size, estimate, wait, weight, wide)
    scale, level = rule.space.floats[SCALE], rule.level
    if scale[PASF] == 0.0:
        return total
    d, rho = float(estimate), rule.space.floats[RHO, 0]
    low, high = wait, max(wait, rho)  # beyond rho every unit of the job is older than rho: it only grows
    for _ in range(40):
        mid = 0.5 * (low + high)
        if powers(mid + d, mid, level + 1) < rho * powers(mid + d, mid, level):
            low = mid
        else:
            high = mid
    share, area = (level + 1.0) / (level + 2.0), float(size) * d
    here = share * powers(wait + d, wait, level + 2) - rho * powers(wait + d, wait, level + 1)
    there = share * powers(high + d, high, level + 2) - rho * powers(high + d, high, level + 1)
    return total + scale[PASF] * area * min(0.0, there - here)


@inner
def _part(rule: Any, local: int) -> float:
    """What a job counts in the objective: all, or what it is favoured by, or what an accepted deadline leaves."""
    if rule.favours or rule.patient >= 0.0:
        return rule.space.floats[PART, local]
    return 1.0


@inner
def _late_at(rule: Any, run: Run, local: int, at: int) -> bool:
    """Whether a job that starts at an instant would end after what it was promised."""
    ints = rule.space.ints
    return rule.patient >= 0.0 and at + run.jobs[ESTIMATE, ints[JOBS, local]] > ints[DUE_AT, local]


@inner
def _measure(rule: Any, run: Run, n: int, order: Ints, at: Ints) -> None:
    """The sums behind each term of a plan, in SUMS; what PaSF divides by in its own place, what it divides last."""
    space = rule.space
    sums = space.floats[SUMS]
    for t in range(TERMS + 1):
        sums[t] = 0.0
    first = at[0]
    for i in range(n):
        local = order[i]
        job = space.ints[JOBS, local]
        d = float(run.jobs[ESTIMATE, job])
        q = float(at[i] - space.ints[CAME, local])
        part = _part(rule, local)
        area, counts = part * float(run.jobs[SIZE, job]) * d, strained(rule, q)
        sums[AF] += part * (counts + d)
        sums[AWF] += space.floats[WIDE, local] * area * (counts + d)
        sums[BSLD] += part * max(1.0, (counts + d) / max(d, BOUND_S))
        sums[WAIT] += part * space.floats[WEIGHT, local] * counts
        sums[SPAN] = max(sums[SPAN], float(at[i]) + d)
        first = min(first, space.ints[CAME, local])
        if rule.weights[PASF] != 0.0:
            sums[PASF] += area * powers(q + d, q, rule.level + 1)
            sums[TERMS] += area * (rule.level + 1.0) / (rule.level + 2.0) * powers(q + d, q, rule.level + 2)
    sums[SPAN] -= float(first)


@inner
def _class_of(size: int) -> int:
    """The class of a size: two to an octave."""
    return min(np.int64(2.0 * log(float(size)) / log(2.0) + 1e-9), CLASSES - 1)  # type: ignore[return-value]


@inner
def least_part(rule: Any, n: int) -> float:
    """What who may come counts: as all do, but where some are favoured no more than any who waits."""
    least = 1.0
    for i in range(n if rule.favours else 0):
        least = min(least, rule.space.floats[PART, i])
    return least


@inner
def widened(rule: Any, size: int) -> float:
    """What the area of a job of a size is multiplied by in AWF."""
    return float(size) ** rule.wide if rule.wide != 0.0 else 1.0


@inner
def _commitments(rule: Any, cap: Any, run: Run, now: int, n: int) -> None:
    """Write what runs, by its end, and what jobs like the last that came would count: each at a rate of one in the time
    that they cover together, and no more than any who waits."""
    ints, floats, jobs = rule.space.ints, rule.space.floats, run.jobs
    running, key = run.info[RUNNING], floats[KEYS]
    for i in range(running):
        job = run.lists[END_JOB, i]
        ints[SORTED, i] = i
        key[i] = float(max(jobs[START, job] + jobs[ESTIMATE, job], now + 1))
    sort_by_key(ints[SORTED], np.int64(0), running, key, ints[SORTED_2])  # type: ignore[arg-type]
    for i in range(running):
        ints[RUN_END, i] = np.int64(key[ints[SORTED, i]])
        ints[RUN_SIZE, i] = jobs[SIZE, run.lists[END_JOB, ints[SORTED, i]]]
    for c in range(CLASSES):
        floats[CLASS, c] = 0.0
    unit, found, looked, oldest, listed = floats[UNIT], 0, 0, now, run.info[RECENT]
    job = run.jobs.shape[1] if run.links.shape[1] > 0 else min(run.info[NEXT], run.jobs.shape[1])
    while found < RECENT_JOBS and (looked < listed if listed > 0 else job > 0):
        job = run.lists[BACK_QUEUE, looked] if listed > 0 else job - 1
        looked += 1
        if jobs[ARRIVE, job] < 0:
            continue
        d, size = float(jobs[ESTIMATE, job]), float(jobs[SIZE, job])
        counts = unit[AF] + unit[AWF] * widened(rule, jobs[SIZE, job]) * size * d + unit[BSLD] / max(d, BOUND_S)
        floats[CLASS, _class_of(jobs[SIZE, job])] += counts
        oldest = min(oldest, jobs[ARRIVE, job])
        found += 1
    least = least_part(rule, n)
    for c in range(CLASSES):
        floats[CLASS, c] *= least * rule.commit / (2.0 * max(float(now - oldest), 1.0))


@inner
def commitment(rule: Any, cap: Any, run: Run, now: int, n: int, first: int, order: Ints, at: Ints) -> float:
    """What a plan costs those who may come: what has started stays, while what is only planned can give way. From each
    start in the plan to the next, who comes waits until what has started by then leaves it enough. Up to position
    `first` it is the plan that the search stands at."""
    if rule.commit == 0.0:
        return 0.0
    for i in range(first):
        at[i] = rule.space.ints[NOW_AT, i]
    ints, key = rule.space.ints, rule.space.floats[KEYS]
    ends, sizes, held = ints[END_AT], ints[END_SIZE], run.info[RUNNING]
    for i in range(held):
        ends[i], sizes[i] = ints[RUN_END, i], ints[RUN_SIZE, i]
    for i in range(n):
        ints[SORTED, i] = i
        key[i] = float(at[i])
    sort_by_key(ints[SORTED], np.int64(0), n, key, ints[SORTED_2])  # type: ignore[arg-type]
    free, done, total, k, t = spare(cap), 0, 0.0, 0, now
    while True:
        while k < n and at[ints[SORTED, k]] == t:  # it starts: it holds its place from now on
            local = order[ints[SORTED, k]]
            job = ints[JOBS, local]
            end, i = t + run.jobs[ESTIMATE, job], held
            while i > done and ends[i - 1] > end:
                ends[i], sizes[i] = ends[i - 1], sizes[i - 1]
                i -= 1
            ends[i], sizes[i] = end, run.jobs[SIZE, job]
            free -= run.jobs[SIZE, job]
            held += 1
            k += 1
        until = at[ints[SORTED, k]] if k < n else NEVER
        total += _displaced(rule, ends, sizes, done, held, free, t, until)
        if k == n:
            return total
        t = until
        while done < held and ends[done] <= t:
            free += sizes[done]
            done += 1


@inner
def _displaced(rule: Any, ends: Ints, sizes: Ints, done: int, held: int, free: int, t: int, until: int) -> float:
    """What those who come between two instants wait, in all, for what has started by the first of them."""
    counts, total, i, last = rule.space.floats[CLASS], 0.0, done, t
    for c in range(CLASSES):
        if counts[c] == 0.0:
            continue
        while free < LARGEST[c] and i < held:
            free += sizes[i]
            last = ends[i]
            i += 1
        wait, rest = float(last - t), max(float(last - until), 0.0)
        total += counts[c] * (wait * wait - rest * rest)
    return total


@inner
def _ratio(over: float, under: float) -> float:
    """PaSF of a plan; 0 where nobody counts."""
    return over / under if under > 0.0 else 0.0


@inner
def wait_value(rule: Any, run: Run, n: int, order: Ints, at: Ints) -> float:
    """The objective of a plan, each term relative to its value in the FCFS plan; infinite if a deadline is broken."""
    for i in range(n if rule.patient >= 0.0 else 0):
        if _late_at(rule, run, order[i], at[i]):
            return np.inf
    _measure(rule, run, n, order, at)
    sums, unit = rule.space.floats[SUMS], rule.space.floats[UNIT]
    total = 0.0
    for t in range(TERMS):
        if unit[t] != 0.0:
            total += unit[t] * (_ratio(sums[TERMS], sums[PASF]) if t == PASF else sums[t])
    return total


@inner
def _bound(rule: Any, run: Run, n: int) -> None:
    """The least cost of every job of the order that the search begins with, under the weights of this pass; the
    last end from which the makespan is counted."""
    ints, floats = rule.space.ints, rule.space.floats
    end = 0.0
    for i in range(n):
        local = ints[BEST_ORDER, i]
        job = ints[JOBS, local]
        wait = float(ints[FROM, local] - ints[CAME, local])
        size, length, weight = run.jobs[SIZE, job], run.jobs[ESTIMATE, job], floats[WEIGHT, local]
        least = _least(rule, size, length, wait, weight, floats[WIDE, local])
        floats[LOW, local] = _part(rule, local) * least
        end = max(end, float(ints[FROM, local] + run.jobs[ESTIMATE, job]))
    floats[NOW_SUM, 0], floats[NOW_END, 0] = 0.0, end


@inner
def excess_wait(rule: Any, run: Run, local: int, at: int) -> float:
    """What a job of the window costs above its least when it starts at an instant; rounding never makes it negative."""
    if _late_at(rule, run, local, at):
        return np.inf
    job = rule.space.ints[JOBS, local]
    wait, floats = float(at - rule.space.ints[CAME, local]), rule.space.floats
    size, length = run.jobs[SIZE, job], run.jobs[ESTIMATE, job]
    here = cost(rule, size, length, wait, floats[WEIGHT, local], floats[WIDE, local])
    return max(0.0, _part(rule, local) * here - floats[LOW, local])


@inner
def earliest_spot(rule: Any, cap: Any, run: Run, local: int) -> int:
    """The earliest fit."""
    job = rule.space.ints[JOBS, local]
    return earliest_fit(cap, job, rule.space.ints[FROM, local], run.jobs[ESTIMATE, job])


@inner
def place(rule: Any, cap: Any, run: Run, first: int, n: int) -> None:
    """Place the candidate from position `first` on in the plan that is open."""
    ints = rule.space.ints
    for i in range(first, n):
        local = ints[NEW_ORDER, i]
        job = ints[JOBS, local]
        ints[NEW_AT, i] = spot(rule, cap, run, local)
        reserve(cap, job, ints[NEW_AT, i], run.jobs[ESTIMATE, job])


@inner
def decode(rule: Any, cap: Any, run: Run, n: int, first: int, limit: float) -> float:
    """Place the candidate, which is the order that the search stands at up to position `first`. Returns its cost, or
    infinity as soon as that is above `limit`."""
    space = rule.space
    ints, floats = space.ints, space.floats
    slot = first // STRIDE
    recall_plan(cap, space.plans[ints[SLOT, slot]])
    for i in range(slot * STRIDE, first):
        job = ints[JOBS, ints[NEW_ORDER, i]]
        reserve(cap, job, ints[NOW_AT, i], run.jobs[ESTIMATE, job])
    total, end = floats[NOW_SUM, first], floats[NOW_END, first]
    for i in range(first, n):
        if i % STRIDE == 0 and i > first:
            remember_plan(cap, space.plans[ints[OTHER, i // STRIDE]])
        local = ints[NEW_ORDER, i]
        job = ints[JOBS, local]
        at = spot(rule, cap, run, local)
        reserve(cap, job, at, run.jobs[ESTIMATE, job])
        ints[NEW_AT, i] = at
        floats[NEW_SUM, i], floats[NEW_END, i] = total, end
        total += excess(rule, run, local, at)
        if floats[SCALE, SPAN] != 0.0:
            ends = max(end, float(at + run.jobs[ESTIMATE, job]))
            total += floats[SCALE, SPAN] * (ends - end)
            end = ends
        if total > limit:
            return np.inf
    floats[NEW_SUM, n], floats[NEW_END, n] = total, end
    return total


@inner
def _accept(space: Space, n: int, first: int) -> None:
    """The candidate becomes the order that the search stands at."""
    ints, floats = space.ints, space.floats
    for i in range(first, n):
        ints[NOW_ORDER, i] = ints[NEW_ORDER, i]
        ints[NOW_AT, i] = ints[NEW_AT, i]
        floats[NOW_SUM, i], floats[NOW_END, i] = floats[NEW_SUM, i], floats[NEW_END, i]
        if i % STRIDE == 0 and i > first:
            k = i // STRIDE
            ints[SLOT, k], ints[OTHER, k] = ints[OTHER, k], ints[SLOT, k]
    floats[NOW_SUM, n], floats[NOW_END, n] = floats[NEW_SUM, n], floats[NEW_END, n]


@inner
def _starves(rule: Any, now: int, local: int) -> bool:
    """Whether a job is to come first for its wait. Where deadlines are promised nobody is: it could break them."""
    return rule.patient < 0.0 and now - rule.space.ints[CAME, local] >= rule.common.starve_s


@inner
def list_order(rule: Any, run: Run, now: int, code: int, n: int) -> None:
    """Write all jobs in a list order to NEW_ORDER; -1 is the order of the standing plan. Jobs that starve come first,
    in order of arrival; where deadlines are looked at, only those that are urgent do, and in a list order those that
    have one otherwise come last: the first due first."""
    ints, key = rule.space.ints, rule.space.floats[KEYS]
    order = ints[NEW_ORDER]
    m = 0
    for i in range(n):
        if _starves(rule, now, i):
            key[i] = float(ints[CAME, i])
            order[m] = i
            m += 1
    starving: int = np.int64(m)  # type: ignore[assignment]  # a literal would compile the sort once more
    for i in range(n):
        job, came = ints[JOBS, i], ints[CAME, i]
        if not _starves(rule, now, i):
            if code == -1:
                key[i] = float(ints[STOOD, i]) if ints[STOOD, i] >= 0 else 1e300
            elif code == FAVOURED:
                key[i] = -_part(rule, i)
            elif code == FAVOURED_SMALL:
                area = float(run.jobs[SIZE, job]) * float(run.jobs[ESTIMATE, job])
                key[i] = area / max(_part(rule, i), 1e-200)
            else:
                key[i] = key_of(code, came, run.jobs[SIZE, job], run.jobs[ESTIMATE, job], now, 0.0)
                if rule.patient >= 0.0 and ints[DUE_AT, i] < NEVER:
                    soon = float(ints[DUE_AT, i]) / 1e12  # times are below 1e10 s: distinct seconds, distinct keys
                    if ints[URGENT, i] == 1:
                        key[i] = -1e100 * (2.0 - soon)
                    elif rule.patient < 1.0 and run.jobs[AGREED, job] == TENTATIVE:
                        key[i] = 1e100 * (1.0 + soon)
            order[m] = i
            m += 1
    sort_by_key(order, np.int64(0), starving, key, ints[SORTED])  # type: ignore[arg-type]
    sort_by_key(order, starving, n, key, ints[SORTED])


@inner
def keep_best(space: Space, n: int, order: Ints, at: Ints) -> None:
    for i in range(n):
        space.ints[BEST_ORDER, i] = order[i]
        space.ints[BEST_AT, i] = at[i]


@inner
def _repair(rule: Any, cap: Any, run: Run, now: int, code: int, n: int) -> None:
    """Place the candidate, a list order, again with those first that are late in it; a few times."""
    ints = rule.space.ints
    for i in range(n):
        ints[URGENT, i] = 0
    for _ in range(REPAIRS):
        more = False
        for i in range(n):
            local = ints[NEW_ORDER, i]
            if ints[URGENT, local] == 0 and _late_at(rule, run, local, ints[NEW_AT, i]):
                ints[URGENT, local] = 1
                more = True
        if not more:
            break
        list_order(rule, run, now, code, n)
        recall_plan(cap, rule.space.plans[ints[SLOT, 0]])
        place(rule, cap, run, np.int64(0), n)  # type: ignore[arg-type]
    for i in range(n):
        ints[URGENT, i] = 0


@inner
def _whole(rule: Any, cap: Any, run: Run, now: int, n: int, order: Ints, at: Ints) -> float:
    """The objective of a plan, with what it costs as a whole."""
    return value(rule, run, n, order, at) + price(rule, cap, run, now, n, np.int64(0), order, at)


@inner
def _best_list(rule: Any, cap: Any, run: Run, now: int, n: int) -> float:
    """Put the best of the list plans and the standing plan, each of all jobs, into BEST_*. Returns its value."""
    ints, floats = rule.space.ints, rule.space.floats
    base = rule.space.plans[ints[SLOT, 0]]
    remember_plan(cap, base)
    for i in range(n):
        ints[FROM, i] = earliest_fit(cap, ints[JOBS, i], max(now, ints[CAME, i]), run.jobs[ESTIMATE, ints[JOBS, i]])
    best = np.inf
    for code in LISTS:
        if code < -1 and not rule.favours:
            continue
        list_order(rule, run, now, np.int64(code), n)  # type: ignore[arg-type]
        recall_plan(cap, base)
        place(rule, cap, run, np.int64(0), n)  # type: ignore[arg-type]
        if rule.patient >= 0.0 and code >= 0:
            _repair(rule, cap, run, now, np.int64(code), n)  # type: ignore[arg-type]
        if code == FCFS:  # the first
            _measure(rule, run, n, ints[NEW_ORDER], ints[NEW_AT])
            for t in range(TERMS):
                floats[UNIT, t] = rule.weights[t] / floats[SUMS, t] if floats[SUMS, t] > 0.0 else 0.0
            if rule.weights[PASF] != 0.0:
                floats[UNIT, PASF] = rule.weights[PASF] * _ratio(floats[SUMS, PASF], floats[SUMS, TERMS])
            if rule.commit > 0.0:
                _commitments(rule, cap, run, now, n)
        found = _whole(rule, cap, run, now, n, ints[NEW_ORDER], ints[NEW_AT])
        if code == FCFS or found < best:
            best = found
            keep_best(rule.space, n, ints[NEW_ORDER], ints[NEW_AT])
    return best


@inner
def count_waits(rule: Any, run: Run, n: int) -> None:
    """The scales of the terms, the ratio of PaSF, and the least costs."""
    ints, floats = rule.space.ints, rule.space.floats
    for t in range(TERMS):
        floats[SCALE, t] = floats[UNIT, t]
    if floats[UNIT, PASF] != 0.0:
        _measure(rule, run, n, ints[BEST_ORDER], ints[BEST_AT])
        floats[RHO, 0] = _ratio(floats[SUMS, TERMS], floats[SUMS, PASF])
        floats[SCALE, PASF] = _ratio(floats[UNIT, PASF], floats[SUMS, PASF])
    _bound(rule, run, n)


@inner
def _stand_at_best(rule: Any, cap: Any, run: Run, n: int) -> None:
    """Begin the search at the order of the first n positions of the best plan, and count costs from it on."""
    ints = rule.space.ints
    count_costs(rule, run, n)
    for i in range(n):
        ints[NEW_ORDER, i] = ints[BEST_ORDER, i]
    decode(rule, cap, run, n, np.int64(0), np.inf)  # type: ignore[arg-type]
    _accept(rule.space, n, np.int64(0))  # type: ignore[arg-type]


@inner
def _move(space: Space, first: int, n: int) -> int:
    """Change the candidate, a copy of the order that the search stands at, behind the first `first` positions: one job
    elsewhere, two exchanged, or a stretch turned round. Returns the first changed position; n if nothing changed."""
    order = space.ints[NEW_ORDER]
    i, j = first + _below(space, n - first), first + _below(space, n - first)
    kind = _below(space, np.int64(8))  # type: ignore[arg-type]
    low, high = min(i, j), max(i, j)
    if i == j:
        return n
    if kind < 4:
        moved = order[i]
        if i < j:
            for k in range(i, j):
                order[k] = order[k + 1]
        else:
            for k in range(i, j, -1):
                order[k] = order[k - 1]
        order[j] = moved
    elif kind < 7:
        order[i], order[j] = order[j], order[i]
    else:
        length = high - low + 1
        by = 1 + _below(space, length - 1)
        for k in range(length):
            order[low + k] = space.ints[NOW_ORDER, low + (k + by) % length]
    return low


@inner
def anneal(rule: Any, cap: Any, run: Run, now: int, first_free: int, n: int, decodes: int) -> bool:
    """Annealing over the first n positions of the best plan with a budget of decodes; the first `first_free` stay. A
    candidate is accepted if it costs no more than where the search stands plus a share of the temperature, which falls
    from `hot` to `cold` times the mean cost of a job above its least. Returns whether something better was found."""
    space = rule.space
    ints, floats = space.ints, space.floats
    _stand_at_best(rule, cap, run, n)
    best = lists = _whole(rule, cap, run, now, n, ints[BEST_ORDER], ints[BEST_AT])
    here = least = floats[NOW_SUM, n] + price(rule, cap, run, now, n, np.int64(0), ints[NOW_ORDER], ints[NOW_AT])
    if here <= 0.0 or here == np.inf or n - first_free < 2:
        return False
    heat = rule.hot * here / n
    cooling = exp(log(rule.cold / rule.hot) / max(decodes, 1))
    for _ in range(decodes):
        for i in range(n):
            ints[NEW_ORDER, i] = ints[NOW_ORDER, i]
        first = _move(space, first_free, n)
        while first < n and ints[NEW_ORDER, first] == ints[NOW_ORDER, first]:
            first += 1
        heat *= cooling
        if first >= n:
            continue
        limit = here - heat * log(_share(space))
        found = decode(rule, cap, run, n, first, limit)
        space.counts[0] += 1
        if found <= limit:
            found += price(rule, cap, run, now, n, first, ints[NEW_ORDER], ints[NEW_AT])
        if found > limit:
            continue
        here = found
        _accept(space, n, first)
        if here < least:
            least = here
            # Costs are those of the ratio as it was. What counts is the objective itself.
            found = _whole(rule, cap, run, now, n, ints[NOW_ORDER], ints[NOW_AT])
            if found < best:
                best = found
                keep_best(space, n, ints[NOW_ORDER], ints[NOW_AT])
            if least <= 0.0:
                break
    return best < lists


@inner
def search(rule: Any, cap: Any, run: Run, now: int, n: int) -> None:
    """Arrange the jobs JOBS[:n]: BEST_ORDER and BEST_AT. The plan must be open, with nothing in it but what runs and
    what is not to be moved.

    The planning window are the jobs that the best list plan puts first. The others keep their order behind them. A
    window that does well at the cost of those behind it is given up for the list plan.
    """
    space = rule.space
    ints = space.ints
    lists = _best_list(rule, cap, run, now, n)
    starving = 0
    for i in range(n):
        starving += _starves(rule, now, i)
    window = min(n, rule.window)
    space.counts[0] += len(LISTS) + 1 - (0 if rule.favours else 2)
    for i in range(n if n > window else 0):
        ints[LIST_ORDER, i], ints[LIST_AT, i] = ints[BEST_ORDER, i], ints[BEST_AT, i]
    # A ratio is linearised at the best plan so far: a second round does it again at what the first has found.
    rounds = 2 if rule.weights[PASF] != 0.0 and rule.level > 0 else 1
    better = False
    for _ in range(rounds):
        better = anneal(rule, cap, run, now, min(starving, window), window, rule.decodes // rounds) or better
    if better and n > window:
        recall_plan(cap, space.plans[ints[SLOT, 0]])
        for i in range(n):
            ints[NEW_ORDER, i] = ints[BEST_ORDER, i]
        place(rule, cap, run, np.int64(0), n)  # type: ignore[arg-type]
        if _whole(rule, cap, run, now, n, ints[NEW_ORDER], ints[NEW_AT]) < lists:
            keep_best(space, n, ints[NEW_ORDER], ints[NEW_AT])
        else:
            keep_best(space, n, ints[LIST_ORDER], ints[LIST_AT])
