"""Where the units of a job go: which nodes a rule of placement takes first, and which devices."""

from __future__ import annotations

from typing import Any

from dovetail.arrays import Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.node_classes import AFTER, HEADS, NONE, ONE, ROOT, ZERO, pop_node
from dovetail.kernels.machine.node_fit import (
    CANDIDATE,
    DEVICES,
    EXCLUSIVE,
    FITS,
    KINDS,
    LEFT,
    PLAIN,
    RESOURCES,
    RULE,
    SHARE,
    SHARED,
    TYPES,
    VECTOR,
    WHOLE,
    WILL_DO,
    fit,
    idle,
    least_free,
)

# Rules of placement.
FIRST_FIT, BEST_FIT, WORST_FIT, CONSOLIDATE, SCARCE, GRADIENT = range(6)


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
    if need == 0 or enough < need or not cap.sets[cap.rows[WILL_DO, t], kind]:
        return parts
    for r in range(cap.info[PLAIN]):
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
        return 1.0 if idle(cap, kind, vector, base) else 0.0, -float(units)
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
        if not cap.sets[cap.rows[WILL_DO, job], kind]:
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
