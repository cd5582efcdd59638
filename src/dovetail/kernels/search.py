"""Search for a good order of the waiting jobs: orders decoded by list scheduling, annealed.

A candidate is an order; decoded, every job in turn gets its earliest fit. Only what comes after the first changed
position is decoded again, from a snapshot of the plan; it ends early once it must be worse than what would be accepted.

What is minimised is a sum over jobs of a cost that depends on the job's start alone. A ratio (PaSF) is made one by
Dinkelbach's method: over - rho * under, with rho the ratio of the best plan so far, is below 0 just where the ratio is
below rho. Costs are counted from a lower bound of each job, its cost at its earliest fit beside what runs: the sum is
then never negative, a part of it is a lower bound of the whole, and 0 is the optimum.
"""

from __future__ import annotations

from math import exp, log
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dovetail.kernels.capacity import earliest_fit, recall_plan, remember_plan, reserve
from dovetail.kernels.compile import inner
from dovetail.kernels.order import FCFS, LAF, SAF, SJF, SPF, key_of, sort_by_key
from dovetail.kernels.run import ARRIVE, BACK_KEY, ESTIMATE, PLACE, SIZE, Floats, Ints, Run

STRIDE = 8
"""Positions between two snapshots of the plan."""

# Terms of an objective.
AF, AWF, BSLD, PASF = range(4)
TERMS = 4
BOUND_S = 10.0
"""Run times below count as so long in the bounded slowdown."""

# Rows of Space.ints. NOW_ORDER, NOW_AT: the order that the search stands at, and its starts by position. NEW_*: the
# candidate. BEST_*: the best so far. Orders hold positions in JOBS. FROM: earliest start of each of JOBS. SLOT, OTHER:
# which snapshot belongs to a position of the order that it stands at; which to write that of a candidate to.
JOBS, FROM, NOW_ORDER, NOW_AT, NEW_ORDER, NEW_AT, BEST_ORDER, BEST_AT, SLOT, OTHER, SORTED = range(11)
INT_ROWS = 11
# Rows of Space.floats. LOW: the least cost of each of JOBS. NOW_SUM, NEW_SUM: cost of all before a position. UNIT:
# weight of each term over its value in the FCFS plan. SCALE: the same for what a job adds. RHO: the ratio, first. SUMS:
# see _measure.
LOW, NOW_SUM, NEW_SUM, UNIT, SCALE, RHO, SUMS = range(7)
FLOAT_ROWS = 7

LISTS = (FCFS, -1, SJF, SAF, LAF, SPF)
"""Orders that a search begins with, FCFS the first of them; -1: that of the standing plan."""


class Space(NamedTuple):
    """Working space of a search; the caller owns it."""

    ints: Ints
    floats: Floats
    plans: Ints
    """One snapshot of a plan per row."""
    random: npt.NDArray[np.uint64]
    """State of the random numbers."""
    counts: Ints
    """Searches, decodes, and passes in which the search found a better plan than every list."""


@inner
def seeded(space: Space, seed: int, now: int) -> None:
    """Begin the random numbers of one pass: they depend on the seed and the instant only (splitmix64)."""
    x = np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(now) * np.uint64(0xD1342543DE82EF95)
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
def cost(space: Space, size: int, estimate: int, wait: float, level: int) -> float:
    """What a job adds to the objective if it waits so long, in the weights of this pass."""
    d = float(estimate)
    f = wait + d
    area = float(size) * d
    scale = space.floats[SCALE]
    total = scale[AF] * f + scale[AWF] * area * f
    if scale[BSLD] != 0.0:
        total += scale[BSLD] * max(1.0, f / max(d, BOUND_S))
    if scale[PASF] != 0.0:
        over = (level + 1.0) / (level + 2.0) * powers(f, wait, level + 2)
        total += scale[PASF] * area * (over - space.floats[RHO, 0] * powers(f, wait, level + 1))
    return total


@inner
def _least(space: Space, size: int, estimate: int, wait: float, level: int) -> float:
    """The least that `cost` can be from a wait on. All terms grow with the wait, but PaSF falls first where the job is
    young against rho: its least is found by halving."""
    total = cost(space, size, estimate, wait, level)
    if space.floats[SCALE, PASF] == 0.0:
        return total
    d, rho = float(estimate), space.floats[RHO, 0]
    low, high = wait, max(wait, rho)  # beyond rho every unit of the job is older than rho: it only grows
    for _ in range(40):
        mid = 0.5 * (low + high)
        if powers(mid + d, mid, level + 1) < rho * powers(mid + d, mid, level):
            low = mid
        else:
            high = mid
    pasf = cost(space, size, estimate, high, level) - cost(space, size, estimate, wait, level)
    scale = space.floats[SCALE]
    grown = (scale[AF] + scale[AWF] * float(size) * d) * (high - wait)
    if scale[BSLD] != 0.0:
        bound = max(d, BOUND_S)
        grown += scale[BSLD] * (max(1.0, (high + d) / bound) - max(1.0, (wait + d) / bound))
    return total + min(0.0, pasf - grown)


@inner
def _measure(space: Space, run: Run, n: int, level: int, order: Ints, at: Ints) -> None:
    """The sums behind each term of a plan, in SUMS; what PaSF divides by in its own place, what it divides last."""
    sums = space.floats[SUMS]
    for t in range(TERMS + 1):
        sums[t] = 0.0
    for i in range(n):
        job = space.ints[JOBS, order[i]]
        d = float(run.jobs[ESTIMATE, job])
        q = float(at[i] - run.jobs[ARRIVE, job])
        area = float(run.jobs[SIZE, job]) * d
        sums[AF] += q + d
        sums[AWF] += area * (q + d)
        sums[BSLD] += max(1.0, (q + d) / max(d, BOUND_S))
        sums[PASF] += area * powers(q + d, q, level + 1)
        sums[TERMS] += area * (level + 1.0) / (level + 2.0) * powers(q + d, q, level + 2)


@inner
def _value(space: Space, run: Run, n: int, level: int, order: Ints, at: Ints) -> float:
    """The objective of a plan, each term relative to its value in the FCFS plan."""
    _measure(space, run, n, level, order, at)
    sums, unit = space.floats[SUMS], space.floats[UNIT]
    return unit[AF] * sums[AF] + unit[AWF] * sums[AWF] + unit[BSLD] * sums[BSLD] + unit[PASF] * sums[TERMS] / sums[PASF]


@inner
def _bound(space: Space, run: Run, n: int, level: int) -> None:
    """The least cost of every job, under the weights of this pass."""
    for i in range(n):
        job = space.ints[JOBS, i]
        wait = float(space.ints[FROM, i] - run.jobs[ARRIVE, job])
        space.floats[LOW, i] = _least(space, run.jobs[SIZE, job], run.jobs[ESTIMATE, job], wait, level)


@inner
def _excess(space: Space, run: Run, i: int, at: int, level: int) -> float:
    """What job i of the window costs above its least when it starts at an instant; rounding never makes it negative."""
    job = space.ints[JOBS, i]
    wait = float(at - run.jobs[ARRIVE, job])
    here = cost(space, run.jobs[SIZE, job], run.jobs[ESTIMATE, job], wait, level)
    return max(0.0, here - space.floats[LOW, i])


@inner
def decode(space: Space, cap: Any, run: Run, n: int, first: int, level: int, limit: float) -> float:
    """Place the candidate, which is the order that the search stands at up to position `first`. Returns its cost, or
    infinity as soon as that is above `limit`."""
    ints, floats = space.ints, space.floats
    slot = first // STRIDE
    recall_plan(cap, space.plans[ints[SLOT, slot]])
    for i in range(slot * STRIDE, first):
        job = ints[JOBS, ints[NEW_ORDER, i]]
        reserve(cap, job, ints[NOW_AT, i], run.jobs[ESTIMATE, job])
    total = floats[NOW_SUM, first]
    for i in range(first, n):
        if i % STRIDE == 0 and i > first:
            remember_plan(cap, space.plans[ints[OTHER, i // STRIDE]])
        local = ints[NEW_ORDER, i]
        job = ints[JOBS, local]
        at = earliest_fit(cap, job, ints[FROM, local], run.jobs[ESTIMATE, job])
        reserve(cap, job, at, run.jobs[ESTIMATE, job])
        ints[NEW_AT, i] = at
        floats[NEW_SUM, i] = total
        total += _excess(space, run, local, at, level)
        if total > limit:
            return np.inf
    floats[NEW_SUM, n] = total
    return total


@inner
def _accept(space: Space, n: int, first: int) -> None:
    """The candidate becomes the order that the search stands at."""
    ints, floats = space.ints, space.floats
    for i in range(first, n):
        ints[NOW_ORDER, i] = ints[NEW_ORDER, i]
        ints[NOW_AT, i] = ints[NEW_AT, i]
        floats[NOW_SUM, i] = floats[NEW_SUM, i]
        if i % STRIDE == 0 and i > first:
            k = i // STRIDE
            ints[SLOT, k], ints[OTHER, k] = ints[OTHER, k], ints[SLOT, k]
    floats[NOW_SUM, n] = floats[NEW_SUM, n]


@inner
def list_order(space: Space, run: Run, now: int, code: int, starve_s: int, n: int) -> int:
    """Write the window in a list order to NEW_ORDER; -1 is the order of the standing plan. Jobs that starve come first,
    in order of arrival. Returns how many they are."""
    key, order = run.keys[BACK_KEY], space.ints[NEW_ORDER]  # KEY keeps the queue sorted
    m = 0
    for i in range(n):
        arrive = run.jobs[ARRIVE, space.ints[JOBS, i]]
        if now - arrive >= starve_s:
            key[i] = float(arrive)
            order[m] = i
            m += 1
    starving: int = np.int64(m)  # type: ignore[assignment]  # a literal would compile the sort once more
    for i in range(n):
        job = space.ints[JOBS, i]
        if now - run.jobs[ARRIVE, job] < starve_s:
            if code < 0:
                key[i] = float(run.jobs[PLACE, job]) if run.jobs[PLACE, job] >= 0 else 1e300
            else:
                key[i] = key_of(code, run.jobs[ARRIVE, job], run.jobs[SIZE, job], run.jobs[ESTIMATE, job], now, 0.0)
            order[m] = i
            m += 1
    sort_by_key(order, np.int64(0), starving, key, space.ints[SORTED])  # type: ignore[arg-type]
    sort_by_key(order, starving, n, key, space.ints[SORTED])
    return starving


@inner
def _best_list(space: Space, cap: Any, run: Run, now: int, n: int, weights: Floats, level: int, starve_s: int) -> float:
    """Put the best of the list plans and the standing plan into BEST_*, stand at it, and count costs from it on.
    Returns its value."""
    ints, floats = space.ints, space.floats
    remember_plan(cap, space.plans[ints[SLOT, 0]])
    floats[NOW_SUM, 0] = 0.0
    for i in range(n):
        job = ints[JOBS, i]
        ints[FROM, i] = earliest_fit(cap, job, now, run.jobs[ESTIMATE, job])
        floats[LOW, i] = 0.0
    for t in range(TERMS):
        floats[SCALE, t] = 0.0
    best = np.inf
    for code in LISTS:
        list_order(space, run, now, np.int64(code), starve_s, n)  # type: ignore[arg-type]
        decode(space, cap, run, n, np.int64(0), level, np.inf)  # type: ignore[arg-type]
        if code == FCFS:  # the first
            _measure(space, run, n, level, ints[NEW_ORDER], ints[NEW_AT])
            for t in range(TERMS):
                floats[UNIT, t] = weights[t] / floats[SUMS, t]
            floats[UNIT, PASF] = weights[PASF] * floats[SUMS, PASF] / floats[SUMS, TERMS]
        found = _value(space, run, n, level, ints[NEW_ORDER], ints[NEW_AT])
        if found < best:
            best = found
            for i in range(n):
                ints[BEST_ORDER, i] = ints[NEW_ORDER, i]
                ints[BEST_AT, i] = ints[NEW_AT, i]
    _measure(space, run, n, level, ints[BEST_ORDER], ints[BEST_AT])
    floats[RHO, 0] = floats[SUMS, TERMS] / floats[SUMS, PASF]
    for t in range(TERMS):
        floats[SCALE, t] = floats[UNIT, t]
    floats[SCALE, PASF] = floats[UNIT, PASF] / floats[SUMS, PASF]
    _bound(space, run, n, level)
    for i in range(n):
        ints[NEW_ORDER, i] = ints[BEST_ORDER, i]
    decode(space, cap, run, n, np.int64(0), level, np.inf)  # type: ignore[arg-type]
    _accept(space, n, np.int64(0))  # type: ignore[arg-type]
    return best


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
def search(
    space: Space, cap: Any, run: Run, now: int, n: int, weights: Floats, level: int, starve_s: int, decodes: int,
    hot: float, cold: float,
) -> None:  # fmt: skip
    """Arrange the jobs JOBS[:n] of the window: BEST_ORDER and BEST_AT. The plan must be open, with nothing in it but
    what runs and what is not to be moved.

    Annealing with a budget of decodes: a candidate is accepted if it costs no more than where the search stands plus
    a share of the temperature, which falls from `hot` to `cold` times the mean cost of a job above its least.
    """
    ints = space.ints
    best = lists = _best_list(space, cap, run, now, n, weights, level, starve_s)
    here = space.floats[NOW_SUM, n]
    space.counts[0] += 1
    space.counts[1] += len(LISTS) + 1
    starving = 0
    for i in range(n):
        starving += now - run.jobs[ARRIVE, ints[JOBS, i]] >= starve_s
    if here <= 0.0 or n - starving < 2:
        return
    least = here
    heat = hot * here / n
    cooling = exp(log(cold / hot) / max(decodes, 1))
    for _ in range(decodes):
        for i in range(n):
            ints[NEW_ORDER, i] = ints[NOW_ORDER, i]
        first = _move(space, starving, n)
        while first < n and ints[NEW_ORDER, first] == ints[NOW_ORDER, first]:
            first += 1
        heat *= cooling
        if first >= n:
            continue
        limit = here - heat * log(_share(space))
        found = decode(space, cap, run, n, first, level, limit)
        space.counts[1] += 1
        if found > limit:
            continue
        here = found
        _accept(space, n, first)
        if here < least:
            least = here
            # Costs are those of the ratio as it was. What counts is the objective itself.
            value = _value(space, run, n, level, ints[NOW_ORDER], ints[NOW_AT])
            if value < best:
                best = value
                for i in range(n):
                    ints[BEST_ORDER, i] = ints[NOW_ORDER, i]
                    ints[BEST_AT, i] = ints[NOW_AT, i]
            if least <= 0.0:
                break
    space.counts[2] += best < lists
