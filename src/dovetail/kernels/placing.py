"""Where the units of a job go: what fits on a node, and which nodes a rule of placement takes first.

A vector is what is free on a node: one number per resource, then one per device of the shared resource (whose own
number is 0). A job's row may also be that of a typical job (`Nodes.types`), of which fragmentation is measured.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dovetail.kernels.compile import inner
from dovetail.kernels.fleet import (
    AFTER,
    COUNT,
    FIRST,
    HEADS,
    NEXT,
    NONE,
    ONE,
    ROOT,
    VALUES,
    WIDTH,
    ZERO,
    current,
    pop_node,
)
from dovetail.kernels.fleet import AT as SEG_AT

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# Rules of placement.
FIRST_FIT, BEST_FIT, WORST_FIT, CONSOLIDATE, SCARCE, GRADIENT = range(6)

# Positions in Nodes.info.
RULE, RESOURCES, DEVICES, SHARED, KINDS, TYPES, RUNNING_FIRST, DUE, EPOCH, SHADOW_AT, PLAN_NOW, SHADOW = range(12)
"""SHARED: which resource is shared; -1: none. TYPES: how many typical jobs stand behind the jobs. RUNNING_FIRST: the
first of the jobs that run; DUE: none of them is expected to end before. EPOCH: how often something was given back.
SHADOW_AT: when the first in the queue was last given a reservation. SHADOW: when it would start. PLAN_NOW: when the
plan begins."""
INFO = 12

# Rows of Nodes.rows, by job.
UNITS, PER_NODE, EXCLUSIVE, WILL_DO, SHARE, REQUEST, UNTIL, RUNS_AFTER, RUNS_BEFORE, PICKED = range(10)
"""WILL_DO: bits of the kinds. REQUEST: a number for all that it asks for; jobs with the same are alike. UNTIL: when a
running job is expected to end; -1: it does not run. PICKED: the instant of the pass in which nodes were picked."""
ROWS = 10

WHOLE = 1000
"""Parts of a shared device."""

# Rows of Nodes.scratch. SEG_UNITS: by segment, how many units fit. CANDIDATE: classes; FITS: how many units fit;
# LEFT_AT, RIGHT_AT, HAS: see _earliest_fit. EVENT_AT, EVENT: a heap. VECTOR, DELTA, LEFT, OLD_DELTA: vectors.
SEG_UNITS, CANDIDATE, FITS, LEFT_AT, RIGHT_AT, HAS, EVENT_AT, EVENT, VECTOR, DELTA, LEFT, OLD_DELTA = range(12)
SCRATCH = 12


@inner
def least_free(fleet: Ints, home: int, at: int, end: int, out: Ints) -> None:
    """What is free on a node of a class all the way from `at` to `end`."""
    seg = current(fleet, fleet[home + FIRST], at)
    width = fleet[WIDTH]
    for w in range(width):
        out[w] = fleet[seg + VALUES + w]
    seg = fleet[seg + NEXT]
    while seg >= 0 and fleet[seg + SEG_AT] < end:
        for w in range(width):
            out[w] = min(out[w], fleet[seg + VALUES + w])
        seg = fleet[seg + NEXT]


@inner
def fit(cap: Any, job: int, kind: int, vector: Ints, base: int) -> int:
    """How many units of a job fit on a node of that kind where vector[base:] is free; no more than it has."""
    rows, info = cap.rows, cap.info
    if (rows[WILL_DO, job] >> kind) & 1 == 0:
        return ZERO
    resources, shared = info[RESOURCES], info[SHARED]
    if rows[EXCLUSIVE, job] == 1:
        for w in range(resources + info[DEVICES]):
            if vector[base + w] != cap.capacity[kind, w]:
                return ZERO
    units = rows[UNITS, job]
    if units > rows[PER_NODE, job] > 0:
        units = rows[PER_NODE, job]
    if rows[EXCLUSIVE, job] == 1:
        units = ONE
    for r in range(resources):
        need = cap.need[job, r]
        if need == 0:
            continue
        if r == shared:
            units = min(units, _on_devices(cap, job, need, vector, base + resources))
        elif units == 1 or vector[base + r] < need:
            units = min(units, np.int64(vector[base + r] >= need))
        else:
            units = min(units, vector[base + r] // need)
        if units == 0:
            return units
    return units


@inner
def _on_devices(cap: Any, job: int, need: int, vector: Ints, base: int) -> int:
    """How many units the devices from `base` on would take."""
    share = cap.rows[SHARE, job]
    total = ZERO
    for d in range(cap.info[DEVICES]):
        if need == 1:
            total += vector[base + d] // share
        elif vector[base + d] >= share:
            total += 1
    return total if need == 1 else total // need


@inner
def take_devices(cap: Any, job: int, left: Ints, used: int) -> int:
    """Choose the devices of one more unit on a node where `left` is free, and take them: those with the least that is
    enough. `used`: those that the job has there. Returns them as bits."""
    shared = cap.info[SHARED]
    need = cap.need[job, shared] if shared >= 0 else ZERO
    base, share = cap.info[RESOURCES], cap.rows[SHARE, job]
    mask = ZERO
    for _ in range(need):
        best = NONE
        for d in range(cap.info[DEVICES]):
            taken = mask if need == 1 else mask | used
            if left[base + d] >= share and (taken >> d) & 1 == 0 and (best < 0 or left[base + d] < left[base + best]):
                best = d + ZERO
        mask |= ONE << best
        left[base + best] -= share
    return mask


@inner
def amount(cap: Any, vector: Ints, base: int, skip_job: int) -> float:
    """How much is free, each resource as a part of what the cluster has. With a job: only of what it does not need."""
    total = 0.0
    for r in range(cap.info[RESOURCES]):
        if cap.total[r] == 0.0 or (skip_job >= 0 and cap.need[skip_job, r] > 0):
            continue
        if r == cap.info[SHARED]:
            total += _shared_free(cap, vector, base) / cap.total[r]
        else:
            total += vector[base + r] / cap.total[r]
    return total


@inner
def _shared_free(cap: Any, vector: Ints, base: int) -> float:
    """How much is free of the shared resource, in devices."""
    parts = ZERO
    for d in range(cap.info[RESOURCES], cap.info[RESOURCES] + cap.info[DEVICES]):
        parts += vector[base + d]
    return parts / WHOLE


@inner
def _unusable(cap: Any, t: int, kind: int, vector: Ints) -> int:
    """Parts of shared devices that are free on a node and of no use to a typical job: all of them if it needs none or
    does not fit, else those of devices with less than its share. Row t is that of the typical job."""
    resources, shared, share = cap.info[RESOURCES], cap.info[SHARED], cap.rows[SHARE, t]
    parts = small = enough = ZERO
    for d in range(resources, resources + cap.info[DEVICES]):
        parts += vector[d]
        if vector[d] < share:
            small += vector[d]
        else:
            enough += 1
    need = cap.need[t, shared]
    if need == 0 or enough < need or (cap.rows[WILL_DO, t] >> kind) & 1 == 0:
        return parts
    for r in range(resources):
        if r != shared and vector[r] < cap.need[t, r]:
            return parts
    return small


@inner
def fragmented(cap: Any, kind: int, vector: Ints) -> float:
    """The shared resource that is free on a node and of no use to typical jobs, in devices: the mean over them."""
    total = 0.0
    jobs = cap.need.shape[0] - cap.info[TYPES]
    for t in range(cap.info[TYPES]):
        total += cap.types[t] * (_unusable(cap, jobs + t, kind, vector) / WHOLE)
    return total


@inner
def _more_fragmented(cap: Any, kind: int, vector: Ints, left: Ints) -> float:
    """How much more that is once only `left` is free. Differences are taken of whole numbers, so that nodes on which a
    job does the same harm are equal: of two sums the rounding would decide."""
    total = 0.0
    jobs = cap.need.shape[0] - cap.info[TYPES]
    for t in range(cap.info[TYPES]):
        more = _unusable(cap, jobs + t, kind, left) - _unusable(cap, jobs + t, kind, vector)
        total += cap.types[t] * (more / WHOLE)
    return total


@inner
def _scores(cap: Any, job: int, kind: int, units: int, vector: Ints) -> tuple[float, float]:
    """The two keys by which a node is chosen, the least first."""
    rule = cap.info[RULE]
    base, everything = ZERO, NONE
    if rule == FIRST_FIT:
        return 0.0, 0.0
    if rule == CONSOLIDATE:
        idle = 1.0
        for w in range(cap.info[RESOURCES] + cap.info[DEVICES]):
            if vector[w] != cap.capacity[kind, w]:
                idle = 0.0
        return idle, -float(units)
    free = amount(cap, vector, base, everything)
    if rule == BEST_FIT:
        return 0.0, free
    if rule == WORST_FIT:
        return 0.0, -free
    if rule == SCARCE:
        return amount(cap, vector, base, job), free
    if cap.info[SHARED] < 0:
        return 0.0, free
    left = cap.scratch[LEFT]
    exclusive = cap.rows[EXCLUSIVE, job] == 1
    for w in range(cap.info[RESOURCES] + cap.info[DEVICES]):
        left[w] = 0 if exclusive else vector[w]
    if not exclusive:
        for r in range(cap.info[RESOURCES]):
            if r != cap.info[SHARED]:
                left[r] -= cap.need[job, r]
        take_devices(cap, job, left, ZERO)
    return _more_fragmented(cap, kind, vector, left), free


@inner
def _sooner(cap: Any, fleet: Ints, one: int, other: int) -> bool:
    """Whether the next node of a candidate comes before that of another."""
    a, b = cap.keys[0], cap.keys[1]
    if a[one] != a[other]:
        return a[one] < a[other]
    if b[one] != b[other]:
        return b[one] < b[other]
    return fleet[cap.scratch[CANDIDATE, one] + ROOT] < fleet[cap.scratch[CANDIDATE, other] + ROOT]


@inner
def _sift(cap: Any, fleet: Ints, i: int, n: int) -> None:
    """Put candidate i of a heap of n where it belongs below."""
    while True:
        down = 2 * i + 1
        if down >= n:
            return
        if down + 1 < n and _sooner(cap, fleet, down + 1, down):
            down += 1
        if not _sooner(cap, fleet, down, i):
            return
        for row in (CANDIDATE, FITS):
            value = cap.scratch[row, i]
            cap.scratch[row, i] = cap.scratch[row, down]
            cap.scratch[row, down] = value
        for key in range(2):
            number = cap.keys[key, i]
            cap.keys[key, i] = cap.keys[key, down]
            cap.keys[key, down] = number
        i = down


@inner
def pick(cap: Any, fleet: Ints, job: int, at: int, end: int) -> None:
    """Choose the nodes of a job that fits from `at` to `end`, and take them out of the heaps of their classes."""
    scratch, n = cap.scratch, ZERO
    for kind in range(cap.info[KINDS]):
        if (cap.rows[WILL_DO, job] >> kind) & 1 == 0:
            continue
        home = fleet[HEADS + kind]
        while home >= 0:
            least_free(fleet, home, at, end, scratch[VECTOR])
            units = fit(cap, job, kind, scratch[VECTOR], ZERO)
            if units > 0:
                scratch[CANDIDATE, n], scratch[FITS, n] = home, units
                cap.keys[0, n], cap.keys[1, n] = _scores(cap, job, kind, units, scratch[VECTOR])
                n += 1
            home = fleet[home + AFTER]
    for i in range(n // 2 - 1, -1, -1):
        _sift(cap, fleet, i + ZERO, n)
    unit, last = cap.first[job], cap.first[job + 1]
    while unit < last:
        home = scratch[CANDIDATE, 0]
        node = pop_node(fleet, home)
        take = min(scratch[FITS, 0], last - unit)
        devices = cap.info[DEVICES] > 0 and cap.need[job, cap.info[SHARED]] > 0
        if devices:
            least_free(fleet, home, at, end, scratch[LEFT])
        used = ZERO
        for i in range(unit, unit + take):
            cap.pick[0, i], cap.pick[1, i] = node, 0
            if devices:
                cap.pick[1, i] = take_devices(cap, job, scratch[LEFT], used)
                used |= cap.pick[1, i]
        unit += take
        if fleet[home + ROOT] < 0:
            n -= 1
            scratch[CANDIDATE, 0], scratch[FITS, 0] = scratch[CANDIDATE, n], scratch[FITS, n]
            cap.keys[0, 0], cap.keys[1, 0] = cap.keys[0, n], cap.keys[1, n]
        _sift(cap, fleet, ZERO, n)


@inner
def count(cap: Any, fleet: Ints, job: int, at: int, end: int) -> bool:
    """Whether the job fits from `at` to `end`."""
    units = ZERO
    for kind in range(cap.info[KINDS]):
        if (cap.rows[WILL_DO, job] >> kind) & 1 == 0:
            continue
        home = fleet[HEADS + kind]
        while home >= 0:
            least_free(fleet, home, at, end, cap.scratch[VECTOR])
            units += fleet[home + COUNT] * fit(cap, job, kind, cap.scratch[VECTOR], ZERO)
            if units >= cap.rows[UNITS, job]:
                return True
            home = fleet[home + AFTER]
    return False
