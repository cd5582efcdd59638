"""The capacity model by node: every unit of a job is on a node, which has so much of each resource.

Three fleets: `free` is what is free now, the truth of this instant; `running` is what runs, to its expected ends, kept
from pass to pass; `plan` is that and the reservations of a pass. A running job past its expected end has given its
share back in `running`; a plan counts it as ending one second from now.

A reservation names its nodes, so the jobs behind it find the others. A job that starts where it was reserved takes just
those nodes (`pick`); what it has is in `placed`.

An outage takes the leave to be on a node: in `running` and `plan` from when it is known, in `free` while it lasts. What
runs there may end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Floats, Ints, Mask
from dovetail.kernels.compile import inner, jit
from dovetail.kernels.machine.node_classes import (
    AT_NODES,
    KIND,
    NODES,
    NONE,
    ONE,
    SEGMENTS,
    ZERO,
    changed,
    class_with,
    copy_fleet,
    forget_past,
    larger_fleet,
    move_node,
    new_fleet,
)
from dovetail.kernels.machine.node_fit import (
    DELTA,
    DEVICES,
    DUE,
    EPOCH,
    EVENT_NEXT,
    EXCLUSIVE,
    INFO,
    KINDS,
    OLD_DELTA,
    PICKED,
    PLAIN,
    PLAN_NOW,
    REQUEST,
    RESOURCES,
    ROWS,
    RULE,
    RUNNING_FIRST,
    RUNS_AFTER,
    RUNS_BEFORE,
    SCRATCH,
    SHADOW,
    SHADOW_AT,
    SHADOWS,
    SHAKEN,
    SHARE,
    SHARED,
    TAKEN,
    TO_COME,
    TYPES,
    UNITS,
    UNTIL,
    VECTOR,
    WHOLE,
    count,
    earliest_before,
    earliest_fit,
    fits_plan,
    idle,
    least_free,
    taken,
    whole,
)
from dovetail.kernels.machine.placement import pick
from dovetail.kernels.seam import answers

_NEVER: int = np.int64(NEVER)  # type: ignore[assignment]
_GIVE, _TAKE = ONE, NONE


# Rows of Nodes.outages. Of each outage: its node, when it begins and ends, for which resource of leave it leaves room
# (-1: none). Of each event, three for an outage and in order: when, what happens, to which outage.
OUT_NODE, OUT_BEGIN, OUT_END, OUT_BUT, EVENT_WHEN, EVENT_WHAT, EVENT_OUT = range(7)
OUTAGE_ROWS = 7
KNOWN, BEGINS, ENDS = range(3)
LEAVE = 1 << 30
"""Leave to be on a node: more than there can be units."""


class Nodes(NamedTuple):
    """Arrays of a machine of nodes; the caller owns them."""

    info: Ints
    capacity: Ints
    """A vector per kind (node_fit.py)."""
    total: Floats
    """What the cluster has of each resource."""
    rows: Ints
    """ROWS rows, by job; then the typical jobs."""
    need: Ints
    """Of each job, what a unit needs of each resource."""
    sets: Mask
    """Which kinds are in which set: a row per set."""
    types: Floats
    """How common each typical job is."""
    first: Ints
    """Where the units of each job begin."""
    placed: Ints
    """Of each unit: the node, and its devices as bits."""
    pick: Ints
    """The same of units that are not there yet; then once more, as noted by keep_place."""
    pool: Ints
    """What is free now in all, of each resource; of the shared one in parts."""
    unfit: Ints
    """By REQUEST: the EPOCH in which it was found not to fit now, the shadow (SHADOWS) beside which it does not, and
    the EPOCH + TAKEN in which it was found to fit now."""
    most: Ints
    """How many units the largest k jobs have."""
    free: Ints
    running: Ints
    plan: Ints
    aside: Ints
    """What is free for a job that outlives the shadow: as `free`, less what the job in the shadow will need."""
    left: Ints
    """By node of the job in the shadow: what is free when that starts, less what it needs; then when this was so."""
    scratch: Ints
    keys: Floats
    outages: Ints
    """OUTAGE_ROWS rows."""

    def copied(self) -> Nodes:
        """The same machine in the same state, on its own; what jobs need is shared."""
        own = ("info", "rows", "placed", "pick", "pool", "unfit", "free", "running", "plan", "aside", "left")
        return self._replace(**{name: getattr(self, name).copy() for name in own})

    def larger(self) -> Nodes:
        """The same with room for twice as many jobs."""
        wide = np.zeros((SCRATCH, 2 * self.scratch.shape[1]), np.int64)
        return self._replace(running=larger_fleet(self.running), plan=larger_fleet(self.plan), scratch=wide)

    def memory(self) -> Ints:
        """Memory for a plan (remember_plan)."""
        return np.zeros_like(self.plan)

    def hold(self, job: int, now: int, nodes: Ints, devices: Ints) -> None:
        """Give these nodes and devices to a job that is to be started next, at `now`."""
        self.stand(job, nodes, devices)
        self.rows[PICKED, job] = now

    def stand(self, job: int, nodes: Sequence[int] | Ints, devices: Sequence[int] | Ints) -> None:
        """Say where a waiting job stands in a plan that is kept."""
        units = slice(self.first[job], self.first[job + 1])
        self.pick[0, units], self.pick[1, units] = nodes, devices

    def picked(self) -> Ints:
        """Which node each unit of each job was last picked, and which devices."""
        return self.pick[:2].copy()

    def pick_again(self, where: Ints) -> None:
        """Pick what `picked` said."""
        self.pick[:2] = where


NO_OUTAGES = np.zeros((5, 0), np.int64)


def new_nodes(
    kind_of: Ints, capacity: Ints, shared: int, requests: tuple[Ints, ...], sets: Mask, types: Floats, rule: int,
    jobs: int, foresight: int = 0, leave: int = 0, outages: Ints = NO_OUTAGES,
) -> Nodes:  # fmt: skip
    """An idle machine. `capacity` is a vector per kind (node_fit.py). `requests` are the columns of the jobs, then of
    the typical jobs: units, per_node, exclusive, which of the `sets` of kinds will do, share, need (a row per job).
    There is room for so many jobs that run and wait, and in plans for so many more that are foreseen. The last `leave`
    resources are leave; `outages` has five rows: node, begin, end, the resource for which there is room, and when it
    gets known."""
    units, per_node, exclusive, will_do, share, need = requests
    known = len(units) - len(types)
    resources, width = need.shape[1], capacity.shape[1]
    asked = np.column_stack([units, per_node, exclusive, will_do, share, need])
    _, request = np.unique(asked, axis=0, return_inverse=True)
    rows = np.zeros((ROWS, len(units)), np.int64)
    rows[:REQUEST] = asked[:, :REQUEST].T
    rows[REQUEST] = request.reshape(-1)
    rows[[UNTIL, RUNS_AFTER, RUNS_BEFORE, PICKED]] = -1
    first = np.concatenate([[0], np.cumsum(units[:known])])
    most = np.concatenate([[0], np.cumsum(np.sort(np.minimum(units[:known], len(kind_of)))[::-1])])
    everything = np.bincount(kind_of, minlength=len(capacity)) @ capacity
    pool = everything[:resources]
    total = pool.astype(np.float64)
    total[resources - leave :] = 0.0
    if shared >= 0:
        pool[shared] = everything[resources:].sum()
        total[shared] = pool[shared] / WHOLE
    info = np.zeros(INFO, np.int64)
    shape = [rule, resources, width - resources, shared, len(capacity), len(types)]
    info[[RULE, RESOURCES, DEVICES, SHARED, KINDS, TYPES]] = shape
    info[[RUNNING_FIRST, DUE, EPOCH, SHADOW_AT, PLAN_NOW]] = [-1, NEVER, 1, -1, -1]
    info[PLAIN] = resources - leave
    segments = int(segments_for(len(kind_of), most, jobs, outages.shape[1]))
    more = segments + 4 * foresight * int(most[min(1, known)])  # they may all be copies of the largest
    free, running, plan = (new_fleet(kind_of, capacity, n) for n in (2 * len(kind_of) + 16, segments, more))
    left = np.full((len(kind_of), width + 1), -1)
    classes = len(kind_of) + len(capacity) + 2
    scratch = np.zeros((SCRATCH, max(more, classes, width)), np.int64)
    placed = np.full((2, int(first[-1])), -1, np.int64)
    return Nodes(
        info, capacity, total, rows, np.ascontiguousarray(need), sets, types, first, placed, np.tile(placed, (2, 1)),
        pool, np.zeros((3, int(request.max(initial=0)) + 1), np.int64), most, free, running, plan, free.copy(), left,
        scratch, np.zeros((2, classes)), _with_events(outages),
    )  # fmt: skip


def _with_events(outages: Ints) -> Ints:
    """The outages as kernels have them."""
    node, begin, end, room_for, known = outages
    when = np.concatenate([known, begin, end])
    what, which = np.repeat([KNOWN, BEGINS, ENDS], len(node)), np.tile(np.arange(len(node)), 3)
    order = np.lexsort((which, what, when))
    rows = np.zeros((OUTAGE_ROWS, len(when)), np.int64)
    rows[: OUT_BUT + 1, : len(node)] = node, begin, end, room_for
    rows[EVENT_WHEN], rows[EVENT_WHAT], rows[EVENT_OUT] = when[order], what[order], which[order]
    return rows


@jit
def segments_for(nodes: int, most: Ints, jobs: int, outages: int) -> int:
    """Segments for so many jobs that run or are in a plan. A unit that runs is one instant of its node's timeline, its
    end; one that is reserved is two, and so is an outage. A timeline is there twice while a node goes from one class to
    another."""
    return 2 * (nodes + 2 * most[min(jobs, len(most) - 1)] + 2 * outages) + 16


@inner
def _apply(
    cap: Nodes, fleet: Ints, job: int, where: Ints, now: int, begin: int, end: int, sign: int, out: bool
) -> None:
    """Give (+1) or take (-1) what the units of a job need, on the nodes in `where`, from `begin` to `end`. `out`: the
    nodes have been taken out of the heaps of their classes."""
    width = cap.capacity.shape[1]
    delta, old = cap.scratch[DELTA], cap.scratch[OLD_DELTA]
    home = target = NONE
    unit, last = cap.first[job], cap.first[job + 1]
    while unit < last:
        node = where[0, unit]
        source = fleet[fleet[AT_NODES] + node]
        for w in range(width):
            delta[w] = 0
        if cap.rows[EXCLUSIVE, job] == 1:
            for w in range(width):
                delta[w] = sign * whole(cap, job, fleet[source + KIND], w)
            unit += 1
        while unit < last and where[0, unit] == node and cap.rows[EXCLUSIVE, job] == 0:
            for w in range(width):
                delta[w] += sign * taken(cap, job, w, where[1, unit])
            unit += 1
        same = source == home
        for w in range(width):
            same = same and delta[w] == old[w]
            old[w] = delta[w]
        if not same:  # nodes that come from the same class go to the same class
            home = source
            target = changed(fleet, source, now, begin, end, delta)
        move_node(fleet, node, target, out)


@inner
def _fits_now(cap: Nodes, job: int) -> bool:
    request = cap.rows[REQUEST, job]
    if cap.unfit[0, request] == cap.info[EPOCH]:  # it did not fit, and nothing has been given back since
        return False
    if cap.unfit[2, request] == cap.info[EPOCH] + cap.info[TAKEN]:  # it did fit, and nothing has happened since
        return True
    if _in_pool(cap, job) and count(cap, cap.free, job, ZERO, _NEVER):
        cap.unfit[2, request] = cap.info[EPOCH] + cap.info[TAKEN]
        return True
    cap.unfit[0, request] = cap.info[EPOCH]
    return False


@inner
def _in_pool(cap: Nodes, job: int) -> bool:
    """Whether as much as a job needs is free in all, wherever it is."""
    for r in range(cap.info[PLAIN]):
        need = cap.need[job, r] * cap.rows[UNITS, job]
        if r == cap.info[SHARED]:
            need *= cap.rows[SHARE, job]
        if need > cap.pool[r]:
            return False
    return True


@inner
def _alike(cap: Nodes, job: int, other: int) -> bool:
    return cap.rows[REQUEST, job] == cap.rows[REQUEST, other]


@inner
def _spare(cap: Nodes) -> int:
    return cap.pool[0]


@inner
def _count_in_pool(cap: Nodes, job: int, sign: int) -> None:
    """Take from or give to what is free in all."""
    if cap.rows[EXCLUSIVE, job] == 0:
        for r in range(cap.info[PLAIN]):
            parts = cap.rows[SHARE, job] if r == cap.info[SHARED] else ONE
            cap.pool[r] += sign * cap.need[job, r] * cap.rows[UNITS, job] * parts
        return
    for unit in range(cap.first[job], cap.first[job + 1]):
        fleet = cap.free
        kind = fleet[fleet[fleet[AT_NODES] + cap.placed[0, unit]] + KIND]
        for w in range(cap.capacity.shape[1]):
            r = w if w < cap.info[RESOURCES] else cap.info[SHARED]
            cap.pool[r] += sign * (cap.capacity[kind, w] if r < cap.info[PLAIN] else ZERO)


@inner
def _runs(cap: Nodes, job: int, end: int) -> None:
    """Note that a job runs, until `end` as far as anyone knows."""
    rows, info = cap.rows, cap.info
    if rows[UNTIL, job] < 0:
        rows[RUNS_BEFORE, job], rows[RUNS_AFTER, job] = -1, info[RUNNING_FIRST]
        if info[RUNNING_FIRST] >= 0:
            rows[RUNS_BEFORE, info[RUNNING_FIRST]] = job
        info[RUNNING_FIRST] = job
    rows[UNTIL, job] = end
    info[DUE] = min(info[DUE], end)


@inner
def _start(cap: Nodes, job: int, now: int, end: int) -> None:
    picked = cap.rows[PICKED, job] == now
    shadow = not picked and cap.info[SHADOW_AT] == now
    outlives = shadow and end > cap.info[SHADOW]
    if not picked:
        pick(cap, cap.aside if outlives else cap.free, job, ZERO, _NEVER)
    for unit in range(cap.first[job], cap.first[job + 1]):
        cap.placed[0, unit], cap.placed[1, unit] = cap.pick[0, unit], cap.pick[1, unit]
    _apply(cap, cap.free, job, cap.placed, ZERO, ZERO, _NEVER, _TAKE, not picked and not outlives)
    if shadow:
        _put_aside(cap, job, outlives)
    if end > now:
        _apply(cap, cap.running, job, cap.placed, now, now, end, _TAKE, False)
    _count_in_pool(cap, job, _TAKE)
    cap.info[TAKEN] += 1
    _runs(cap, job, end)


@inner
def _release(cap: Nodes, job: int, now: int, end: int) -> None:
    rows, info = cap.rows, cap.info
    _count_in_pool(cap, job, _GIVE)
    _apply(cap, cap.free, job, cap.placed, ZERO, ZERO, _NEVER, _GIVE, False)
    # Even if it has nothing to give back: what has passed goes from the timelines of its nodes, and they stay short.
    _apply(cap, cap.running, job, cap.placed, now, now, max(end, now), _GIVE, False)
    before, after = rows[RUNS_BEFORE, job], rows[RUNS_AFTER, job]
    if before >= 0:
        rows[RUNS_AFTER, before] = after
    else:
        info[RUNNING_FIRST] = after
    if after >= 0:
        rows[RUNS_BEFORE, after] = before
    rows[UNTIL, job] = -1
    info[EPOCH] += 1


@inner
def _prolong(cap: Nodes, job: int, now: int, end: int) -> None:
    _apply(cap, cap.running, job, cap.placed, now, now, end, _TAKE, False)
    _runs(cap, job, end)


@inner
def _open_plan(cap: Nodes, now: int) -> None:
    copy_fleet(cap.running, cap.plan)
    cap.info[PLAN_NOW] = now
    if cap.info[DUE] > now:
        return
    due = _NEVER
    job = cap.info[RUNNING_FIRST]
    while job >= 0:
        until = cap.rows[UNTIL, job]
        if until <= now:
            _apply(cap, cap.plan, job, cap.placed, now, now, now + 1, _TAKE, False)
        due = min(due, until)
        job = cap.rows[RUNS_AFTER, job]
    cap.info[DUE] = due


@inner
def _reserve(cap: Nodes, job: int, at: int, length: int) -> None:
    now = cap.info[PLAN_NOW]
    pick(cap, cap.plan, job, at, at + length)
    _apply(cap, cap.plan, job, cap.pick, now, at, at + length, _TAKE, True)
    cap.rows[PICKED, job] = now if at == now else NONE


@inner
def _reserve_again(cap: Nodes, job: int, at: int, length: int) -> None:
    now = cap.info[PLAN_NOW]
    _apply(cap, cap.plan, job, cap.pick, now, at, at + length, _TAKE, False)
    cap.rows[PICKED, job] = now if at == now else NONE


@inner
def _fits_again(cap: Nodes, job: int, at: int, length: int) -> bool:
    width, plan = cap.capacity.shape[1], cap.plan
    vector, total = cap.scratch[VECTOR], cap.scratch[DELTA]
    unit, last = cap.first[job], cap.first[job + 1]
    while unit < last:
        node = cap.pick[0, unit]
        if node < 0:
            return False  # it has no place
        home = plan[plan[AT_NODES] + node]
        least_free(plan, home, at, at + length, vector)
        if cap.rows[EXCLUSIVE, job] == 1 and not idle(cap, plan[home + KIND], vector, ZERO):
            return False
        for w in range(width):
            total[w] = 0
        while unit < last and cap.pick[0, unit] == node:
            for w in range(width):
                total[w] += taken(cap, job, w, cap.pick[1, unit])
            unit += 1
        for w in range(width):
            if total[w] > max(vector[w], ZERO):
                return False
    return True


@inner
def _keep_place(cap: Nodes, job: int) -> None:
    for unit in range(cap.first[job], cap.first[job + 1]):
        cap.pick[2, unit], cap.pick[3, unit] = cap.pick[0, unit], cap.pick[1, unit]


@inner
def _back_to_kept(cap: Nodes, job: int) -> None:
    for unit in range(cap.first[job], cap.first[job + 1]):
        cap.pick[0, unit], cap.pick[1, unit] = cap.pick[2, unit], cap.pick[3, unit]


@inner
def _due(cap: Nodes, job: int, now: int) -> None:
    cap.rows[PICKED, job] = now


@inner
def _shaken(cap: Nodes) -> bool:
    shaken = cap.info[SHAKEN] == 1
    cap.info[SHAKEN] = 0
    return shaken


@inner
def _next_room(cap: Nodes, job: int, at: int) -> int:
    return NONE


@inner
def _next_lack(cap: Nodes, job: int, at: int) -> int:
    return _NEVER  # it is not asked: alike jobs stand one by one


@inner
def _advance_plan(cap: Nodes, now: int) -> None:
    cap.info[PLAN_NOW] = now
    forget_past(cap.plan, now)


@inner
def _unreserve(cap: Nodes, job: int, at: int, length: int) -> None:
    _apply(cap, cap.plan, job, cap.pick, cap.info[PLAN_NOW], at, at + length, _GIVE, False)
    cap.rows[PICKED, job] = NONE


@inner
def _shadow(cap: Nodes, job: int, now: int) -> int:
    # What the first in the queue leaves is not a number here: it gets its nodes. What runs only ever ends, so from
    # now + 1 on the first fit is a fit for ever, and on the other nodes never less is free than now.
    _open_plan(cap, now)
    at = earliest_fit(cap, job, now + 1, ONE)
    _reserve(cap, job, at, _NEVER - at)
    cap.info[SHADOW_AT], cap.info[SHADOW] = now, at
    cap.info[SHADOWS] += 1
    copy_fleet(cap.free, cap.aside)
    for unit in range(cap.first[job], cap.first[job + 1]):
        node = cap.pick[0, unit]
        least_free(cap.plan, cap.plan[cap.plan[AT_NODES] + node], at, at + 1, cap.left[node])
        cap.left[node, cap.capacity.shape[1]] = now
    _put_nodes_aside(cap, job, cap.pick, False)
    return at


@inner
def _put_aside(cap: Nodes, job: int, outlives: bool) -> None:
    """A job that has just started takes its part of what is aside; if it outlives the shadow, of what is left then."""
    width = cap.capacity.shape[1]
    for unit in range(cap.first[job], cap.first[job + 1] if outlives else cap.first[job]):
        node = cap.placed[0, unit]
        if cap.left[node, width] != cap.info[SHADOW_AT]:
            continue
        for w in range(width):
            part = taken(cap, job, w, cap.placed[1, unit])
            cap.left[node, w] = 0 if cap.rows[EXCLUSIVE, job] == 1 else cap.left[node, w] - part
    _put_nodes_aside(cap, job, cap.placed, outlives)


@inner
def _put_nodes_aside(cap: Nodes, job: int, where: Ints, out: bool) -> None:
    """Say anew what is aside on the nodes of a job: what is free now, and no more than what is left in the shadow."""
    unit, last = cap.first[job], cap.first[job + 1]
    width, vector = cap.capacity.shape[1], cap.scratch[VECTOR]
    while unit < last:
        node = where[0, unit]
        home = cap.free[cap.free[AT_NODES] + node]
        least_free(cap.free, home, ZERO, ONE, vector)
        for w in range(width if cap.left[node, width] == cap.info[SHADOW_AT] else 0):
            vector[w] = min(vector[w], cap.left[node, w])
        move_node(cap.aside, node, class_with(cap.aside, cap.free[home + KIND], vector), out)
        while unit < last and where[0, unit] == node:
            unit += 1


@inner
def _beside(cap: Nodes, job: int, end: int, shadow: int) -> bool:
    if end <= shadow:
        return True
    request = cap.rows[REQUEST, job]
    if cap.unfit[1, request] == cap.info[SHADOWS]:  # what is aside only gets less
        return False
    if count(cap, cap.aside, job, ZERO, _NEVER):
        return True
    cap.unfit[1, request] = cap.info[SHADOWS]
    return False


@inner
def _take_beside(cap: Nodes, job: int) -> None:
    """It has been taken when it started."""


@inner
def _names_nodes(cap: Nodes) -> bool:
    return True


@inner
def _remember_plan(cap: Nodes, memory: Ints) -> None:
    copy_fleet(cap.plan, memory)


@inner
def _recall_plan(cap: Nodes, memory: Ints) -> None:
    copy_fleet(memory, cap.plan)


@inner
def _room(cap: Nodes, running: int, jobs: int) -> bool:
    outages = cap.outages.shape[1] // 3
    return segments_for(cap.running[NODES], cap.most, running + jobs, outages) <= cap.running[SEGMENTS]


@inner
def _next_event(cap: Nodes) -> int:
    i = cap.info[EVENT_NEXT]
    return cap.outages[EVENT_WHEN, i] if i < cap.outages.shape[1] else _NEVER


@inner
def _ahead(cap: Nodes) -> bool:
    return cap.info[TO_COME] > 0


@inner
def _happen(cap: Nodes, now: int) -> None:
    info, outages = cap.info, cap.outages
    while _next_event(cap) <= now:
        what, which = outages[EVENT_WHAT, info[EVENT_NEXT]], outages[EVENT_OUT, info[EVENT_NEXT]]
        info[EVENT_NEXT] += 1
        if what == KNOWN:
            info[TO_COME] += 1
            if outages[OUT_END, which] > now:
                begin = max(outages[OUT_BEGIN, which], now)
                _take_leave(cap, cap.running, which, now, begin, outages[OUT_END, which], _TAKE)
                _take_leave(cap, cap.plan, which, now, begin, outages[OUT_END, which], _TAKE)
                info[SHAKEN] = 1
        elif what == BEGINS:
            info[TO_COME] -= 1
            _take_leave(cap, cap.free, which, ZERO, ZERO, _NEVER, _TAKE)
            info[TAKEN] += 1
        else:
            _take_leave(cap, cap.free, which, ZERO, ZERO, _NEVER, _GIVE)
            info[EPOCH] += 1


@inner
def _take_leave(cap: Nodes, fleet: Ints, which: int, now: int, begin: int, end: int, sign: int) -> None:
    """Take the leave to be on the node of an outage away from a fleet, or give it back."""
    node, delta = cap.outages[OUT_NODE, which], cap.scratch[DELTA]
    for w in range(cap.capacity.shape[1]):
        leave = cap.info[PLAIN] <= w < cap.info[RESOURCES] and w != cap.outages[OUT_BUT, which]
        delta[w] = sign * LEAVE if leave else ZERO
    move_node(fleet, node, changed(fleet, fleet[fleet[AT_NODES] + node], now, begin, end, delta), False)


answers(
    Nodes,
    fits_now=_fits_now,
    alike=_alike,
    spare=_spare,
    start=_start,
    release=_release,
    prolong=_prolong,
    shadow=_shadow,
    beside=_beside,
    spare_beside=_spare,
    take_beside=_take_beside,
    open_plan=_open_plan,
    earliest_fit=earliest_fit,
    earliest_before=earliest_before,
    fits_plan=fits_plan,
    reserve=_reserve,
    reserve_again=_reserve_again,
    unreserve=_unreserve,
    advance_plan=_advance_plan,
    fits_again=_fits_again,
    keep_place=_keep_place,
    back_to_kept=_back_to_kept,
    due=_due,
    shaken=_shaken,
    next_room=_next_room,
    next_lack=_next_lack,
    remember_plan=_remember_plan,
    recall_plan=_recall_plan,
    room=_room,
    names_nodes=_names_nodes,
    next_event=_next_event,
    happen=_happen,
    ahead=_ahead,
)
