"""What fits on a node, whether a job fits on a fleet, and when it first will.

A vector is what is free on a node: one number per resource, then one per device of the shared resource (whose own
number is 0). A job's row may also be that of a typical job (`Nodes.types`), of which fragmentation is measured.

Where there are outages, the last resources are leave to be on a node (`PLAIN` and on): each unit needs 1 of one of
them, and an outage takes them away.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.heap import pop, push
from dovetail.kernels.machine.node_classes import (
    AFTER,
    AT,
    AT_NODES,
    AT_SEGMENTS,
    CHILD,
    COUNT,
    FIRST,
    HEADS,
    KIND,
    NEXT,
    NODES,
    NONE,
    ONE,
    ROOT,
    SIBLING,
    VALUES,
    WIDTH,
    ZERO,
    current,
)

_NEVER: int = np.int64(NEVER)  # type: ignore[assignment]

# Positions in Nodes.info.
RULE, RESOURCES, DEVICES, SHARED, KINDS, TYPES, RUNNING_FIRST, DUE, EPOCH, SHADOW_AT, PLAN_NOW, SHADOW = range(12)
PLAIN, EVENT_NEXT, TO_COME, SHAKEN, SHADOWS, TAKEN = range(12, 18)
"""SHARED: which resource is shared; -1: none. TYPES: how many typical jobs stand behind the jobs. RUNNING_FIRST: the
first of the jobs that run; DUE: none of them is expected to end before. EPOCH: how often something was given back.
SHADOW_AT: when the first in the queue was last given a reservation. SHADOW: when it would start. PLAN_NOW: when the
plan begins. PLAIN: how many resources are not leave. EVENT_NEXT: the first event of the outages that has not happened.
TO_COME: outages that are known and have not begun. SHAKEN: 1 if one has got known since a plan was looked at.
SHADOWS: how often a job was given a reservation as the first in the queue. TAKEN: how often something was taken."""
INFO = 18

# Rows of Nodes.rows, by job.
UNITS, PER_NODE, EXCLUSIVE, WILL_DO, SHARE, REQUEST, UNTIL, RUNS_AFTER, RUNS_BEFORE, PICKED = range(10)
"""WILL_DO: a row of Nodes.sets. REQUEST: a number for all that it asks for; jobs with the same are alike. UNTIL: when a
running job is expected to end; -1: it does not run. PICKED: the instant of the pass in which nodes were picked."""
ROWS = 10

WHOLE = 1000
"""Parts of a shared device."""

# Rows of Nodes.scratch. SEG_UNITS: by segment, how many units fit. CANDIDATE: classes; FITS: how many units fit;
# LEFT_AT, RIGHT_AT, HAS: see earliest_fit. EVENT_AT, EVENT: a heap. VECTOR, DELTA, LEFT, OLD_DELTA: vectors.
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
    while seg >= 0 and fleet[seg + AT] < end:
        for w in range(width):
            out[w] = min(out[w], fleet[seg + VALUES + w])
        seg = fleet[seg + NEXT]


@inner
def fit(cap: Any, job: int, kind: int, vector: Ints, base: int) -> int:
    """How many units of a job fit on a node of that kind where vector[base:] is free; no more than it has."""
    rows, info = cap.rows, cap.info
    if not cap.sets[rows[WILL_DO, job], kind]:
        return ZERO
    resources, shared = info[RESOURCES], info[SHARED]
    if rows[EXCLUSIVE, job] == 1 and not idle(cap, kind, vector, base):
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
def idle(cap: Any, kind: int, vector: Ints, base: int) -> bool:
    """Whether all is free on a node of that kind where vector[base:] is."""
    for w in range(cap.info[RESOURCES] + cap.info[DEVICES]):
        if vector[base + w] != cap.capacity[kind, w] and not cap.info[PLAIN] <= w < cap.info[RESOURCES]:
            return False
    return True


@inner
def whole(cap: Any, job: int, kind: int, w: int) -> int:
    """What an exclusive unit takes of component w of a node of that kind: all, and leave as it needs it."""
    return cap.need[job, w] if cap.info[PLAIN] <= w < cap.info[RESOURCES] else cap.capacity[kind, w]


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
def taken(cap: Any, job: int, w: int, devices: int) -> int:
    """What a unit with these devices takes of component w of its node's vector, if the job shares its nodes."""
    resources = cap.info[RESOURCES]
    if w >= resources:
        return cap.rows[SHARE, job] * ((devices >> (w - resources)) & 1)
    return cap.need[job, w] if w != cap.info[SHARED] else ZERO


@inner
def count(cap: Any, fleet: Ints, job: int, at: int, end: int) -> bool:
    """Whether the job fits from `at` to `end`."""
    units = ZERO
    for kind in range(cap.info[KINDS]):
        if not cap.sets[cap.rows[WILL_DO, job], kind]:
            continue
        home = fleet[HEADS + kind]
        while home >= 0:
            least_free(fleet, home, at, end, cap.scratch[VECTOR])
            units += fleet[home + COUNT] * fit(cap, job, kind, cap.scratch[VECTOR], ZERO)
            if units >= cap.rows[UNITS, job]:
                return True
            home = fleet[home + AFTER]
    return False


@inner
def _into(cap: Any, job: int, kind: int, seg: int) -> int:
    """How many units fit into a segment of the plan; noted by segment."""
    fleet = cap.plan
    units = fit(cap, job, kind, fleet, seg + VALUES)
    cap.scratch[SEG_UNITS, (seg - fleet[AT_SEGMENTS]) // (VALUES + fleet[WIDTH])] = units
    return units


@inner
def _least_units(cap: Any, job: int, kind: int, left: int, right: int) -> int:
    """How many units fit into all of the segments from `left` to `right`; each has been noted."""
    fleet, vector = cap.plan, cap.scratch[VECTOR]
    shared = cap.info[SHARED]
    devices = shared >= 0 and left != right and cap.need[job, shared] > 0
    least = cap.rows[UNITS, job]
    seg = left
    while least > 0:
        least = min(least, cap.scratch[SEG_UNITS, (seg - fleet[AT_SEGMENTS]) // (VALUES + fleet[WIDTH])])
        for w in range(fleet[WIDTH] if devices else 0):
            vector[w] = fleet[seg + VALUES + w] if seg == left else min(vector[w], fleet[seg + VALUES + w])
        if seg == right:
            # Now this device is free and now that: it must be the same all the way.
            return fit(cap, job, kind, vector, ZERO) if devices else least
        seg = fleet[seg + NEXT]
    return least


@inner
def _next_change(fleet: Ints, left: int, right: int, length: int) -> int:
    """When the time that a job would run, now from segment `left` to `right`, leaves the first or comes to another."""
    when = _NEVER
    if fleet[left + NEXT] >= 0:
        when = fleet[fleet[left + NEXT] + AT]
    if fleet[right + NEXT] >= 0:
        when = min(when, fleet[fleet[right + NEXT] + AT] - length + 1)
    return when


@inner
def _opens(cap: Any, job: int, kind: int, left: int, at: int, length: int, until: int) -> tuple[int, int, int]:
    """The first instant from `at`, in segment `left`, on from which each segment that the job would run in has room for
    a unit: the first and the last of these segments, each noted, and the instant; NEVER if it is not before `until`."""
    fleet = cap.plan
    seg, when = left, at
    while when < until:
        after = fleet[seg + NEXT]
        if _into(cap, job, kind, seg) == 0:
            if after < 0:
                break
            left, when = after, fleet[after + AT]
        elif after < 0 or fleet[after + AT] >= when + length:
            return left, seg, when
        seg = after
    return left, left, _NEVER


@inner
def earliest_before(cap: Any, job: int, at: int, length: int, until: int) -> int:
    # Each class has a window on its timeline, from segment LEFT_AT to RIGHT_AT, that moves on to later starts; HAS is
    # how many units fit into it on one node, -1 if the window is still to come. A heap says whose window changes next.
    fleet, scratch, units = cap.plan, cap.scratch, cap.rows[UNITS, job]
    n = events = there = ZERO
    for kind in range(cap.info[KINDS]):
        if not cap.sets[cap.rows[WILL_DO, job], kind]:
            continue
        home = fleet[HEADS + kind]
        while home >= 0:
            left, right, when = _opens(cap, job, kind, current(fleet, fleet[home + FIRST], at), at, length, until)
            has = NONE
            if when == at:
                has = _least_units(cap, job, kind, left, right)
                there += has * fleet[home + COUNT]
                if there >= units:
                    return at
                when = _next_change(fleet, left, right, length)
            if when < until:
                scratch[CANDIDATE, n], scratch[LEFT_AT, n], scratch[RIGHT_AT, n] = home, left, right
                scratch[HAS, n] = has
                events = push(scratch[EVENT_AT], scratch[EVENT], events, when, n)
                n += 1
            home = fleet[home + AFTER]
    while events > 0:
        when = scratch[EVENT_AT, 0]
        while events > 0 and scratch[EVENT_AT, 0] == when:
            i = scratch[EVENT, 0]
            events = pop(scratch[EVENT_AT], scratch[EVENT], events)
            home, left, right, had = scratch[CANDIDATE, i], scratch[LEFT_AT, i], scratch[RIGHT_AT, i], scratch[HAS, i]
            kind = fleet[home + KIND]
            has, after = ZERO, when
            if had >= 0:
                there -= had * fleet[home + COUNT]
                if fleet[left + NEXT] >= 0 and fleet[fleet[left + NEXT] + AT] == when:
                    left = fleet[left + NEXT]
                if fleet[right + NEXT] >= 0 and fleet[fleet[right + NEXT] + AT] - length + 1 == when:
                    right = fleet[right + NEXT]
                    if _into(cap, job, kind, right) == 0:  # from here on nothing fits before this segment is over
                        left, right, after = _opens(cap, job, kind, right, fleet[right + AT], length, until)
            if after == when:
                has = _least_units(cap, job, kind, left, right)
                there += has * fleet[home + COUNT]
                after = _next_change(fleet, left, right, length)
            else:
                has = NONE
            scratch[LEFT_AT, i], scratch[RIGHT_AT, i], scratch[HAS, i] = left, right, has
            if after < until:
                events = push(scratch[EVENT_AT], scratch[EVENT], events, after, i)
        if there >= units:
            return when
    return _NEVER  # it would not fit into the idle machine, or not before


@inner
def earliest_fit(cap: Any, job: int, at: int, length: int) -> int:
    return earliest_before(cap, job, at, length, _NEVER)


@inner
def fits_plan(cap: Any, job: int, at: int, length: int) -> bool:
    if at != cap.info[PLAN_NOW]:
        return count(cap, cap.plan, job, at, at + length)
    # On a full machine few nodes have room now, and their futures are all different: look at those nodes only.
    free, plan, stack, vector = cap.free, cap.plan, cap.scratch[EVENT], cap.scratch[VECTOR]
    nodes, n = free[AT_NODES], free[NODES]
    units = ZERO
    for kind in range(cap.info[KINDS]):
        home = free[HEADS + kind] if cap.sets[cap.rows[WILL_DO, job], kind] else NONE
        while home >= 0:
            m = ZERO
            if fit(cap, job, kind, free, free[home + FIRST] + VALUES) > 0:
                stack[0], m = free[home + ROOT], ONE
            while m > 0:  # all nodes in the heap of the class
                m -= 1
                node = stack[m]
                for row in (CHILD, SIBLING):
                    other = free[nodes + row * n + node]
                    if other >= 0:
                        stack[m] = other
                        m += 1
                least_free(plan, plan[plan[AT_NODES] + node], at, at + length, vector)
                units += fit(cap, job, kind, vector, ZERO)
                if units >= cap.rows[UNITS, job]:
                    return True
            home = free[home + AFTER]
    return False
