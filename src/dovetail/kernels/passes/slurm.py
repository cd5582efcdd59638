"""What Slurm does: a main loop at each moment, and from time to time a cycle of its backfill, by node.

The main loop starts jobs in order until one does not fit; nothing behind it in its partition is looked at, and its
nodes are left alone. The backfill gives each job in turn the first start that leaves all earlier plans their nodes: it
asks when the running jobs leave room, their ends taken in batches that get wider, and reserves whole nodes from then
on. The plan is made anew in each cycle.

A job is given nodes as select/cons_tres does: runs of neighbours, the tightest that is enough first, else the largest.
The same rules, slow and obvious, are in tests/slurm/slow.py, where they are compared with what real ones decide.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import start
from dovetail.kernels.machine.node_classes import AT_NODES, KIND, NONE, ONE, ZERO
from dovetail.kernels.machine.node_fit import (
    DEVICES,
    EXCLUSIVE,
    PER_NODE,
    PICKED,
    PLAIN,
    RESOURCES,
    SHARE,
    SHARED,
    UNITS,
    WILL_DO,
    least_free,
    taken,
    whole,
)
from dovetail.kernels.machine.nodes import EVENT_OUT, EVENT_WHAT, EVENT_WHEN, KNOWN, OUT_BUT, OUT_NODE
from dovetail.kernels.passes.rule import Common, sort_if_moving
from dovetail.kernels.seam import answers
from dovetail.kernels.state import (
    ARRIVE,
    END_JOB,
    ESTIMATE,
    NUMBER,
    ORDER,
    PLACE,
    RUNNING,
    START,
    STARTED,
    WAITING,
    WAKE,
    Run,
)

_NEVER: int = np.int64(NEVER)  # type: ignore[assignment]

# Rows of Space.columns, by job of the workload.
PARTITION, USER, ARRAY = range(3)
"""ARRAY: tasks of one array have one number, and stand behind one another; -1: none."""
COLUMNS = 3

# Rows of Space.nodes, by node.
ITS_KIND, HAS, LIST, RUN_FIRST, RUN_LAST, RUN_CORES, FOUND_NODE, FOUND_CORES = range(8)
"""HAS: cores of it that a job could use; 0: it cannot be there. LIST: the nodes of ALLOWED, which HAS is of.
RUN_*: runs of neighbours, in order. FOUND_*: the nodes that a job is given, in the order in which they were taken."""
NODE_ROWS = 8

# Rows of Space.words: sets of nodes as bits.
ALLOWED, BASE, KEPT, ONLY, LEFT, OUT, FREE, SOME = range(8)
"""ALLOWED: where a job may be looked for. BASE: its nodes that are up and not kept from it. KEPT: nodes of reservations
in its way. ONLY: those that were found for it. LEFT: taken from the main loop. OUT: nodes that are down. FREE: with
a core that nobody has. SOME: those of ALLOWED that have something for a job."""
WORD_ROWS = 8

# Rows of Space.spans: the table of the backfill as a list, the first at 0.
BEGIN, END, BEHIND = range(3)
SPAN_ROWS = 3

# Rows of Space.ends: the running jobs by their expected ends.
ENDS_AT, ENDS_JOB, FIRST_PAIR, LAST_PAIR = range(4)
END_ROWS = 4
"""What the job has of each of its nodes: Space.pairs, from FIRST_PAIR to before LAST_PAIR."""

# What ends of running jobs bring to a kind of request, as far as it was asked for since the last start. Each is kept in
# one of SLOTS, which forgets the one before it.
SLOTS = 8
# Rows of Space.seen, by slot.
WHOSE, SO_FAR, CHANGES = range(3)
"""WHOSE: the kind; -1: nothing. SO_FAR: how many ends are known, in order; CHANGES: and changes of nodes."""
SEEN_ROWS = 3
# Columns of Space.changes, which has so many rows for each slot.
CHANGED, BEFORE, AFTERWARDS, BY_END, LAST_CHANGE = range(5)
"""Which node changes, and how many cores of it such a job could use before and afterwards; by which of the ends, and
which change of the node was the one before; -1: none."""
CHANGE_COLUMNS = 5

# Positions in Space.info: how many there are.
SPANS, FOUND_NODES, RUNNERS, PAIRS, MANY, TOTAL, LISTED = range(7)
INFO = 7
"""MANY, TOTAL: nodes that a job could use, and their cores."""

# Rows of Space.outages.
OUT_FROM, OUT_UNTIL, OUT_TOLD, OUT_FOR = range(4)

# Rows of Space.limits: the most of each, what of it is left now, and whether it is asked before nodes are looked for.
LIMIT_MOST, LIMIT_LEFT, LIMIT_BEFORE = range(3)
LIMIT_ROWS = 3

# Rows of Space.claims: what a job takes while it runs, from which limit, and whether that one is asked for it.
CLAIM_LIMIT, CLAIM_TAKES, CLAIM_ASKS = range(3)
CLAIM_ROWS = 3

# Rows of Space.counts, by user or by partition.
OF_USER, OF_PART, RESERVATIONS = range(3)

SHIFT = 6
BITS, MASK = 1 << SHIFT, (1 << SHIFT) - 1
"""Of a word; the sign is one of them."""
DE_BRUIJN: int = np.int64(0x03F79D71B4CB0A89)  # type: ignore[assignment]  # see timeline.py
TOP_BITS = BITS - SHIFT
PLACE_OF_BIT = np.zeros(BITS, np.int64)
PLACE_OF_BIT[[(int(DE_BRUIJN) << bit) % 2**BITS >> TOP_BITS for bit in range(BITS)]] = np.arange(BITS)
BATCH = 30
"""Seconds: the first batch of ends is as wide, and ends at a multiple of it."""
MOST_ENDS = 201
"""A batch takes no more ends."""
TRIES = 11
"""So often a start is moved behind a reservation."""


class Space(NamedTuple):
    """Working space, and what is known of jobs and nodes."""

    info: Ints
    columns: Ints
    sets: Ints
    """Of each set of kinds (Nodes.sets), its nodes as bits."""
    parts: Ints
    """Of each partition, the same."""
    nodes: Ints
    free: Ints
    """Of each node, a vector: what nobody has now; then for each slot what nobody has after the ends that it knows."""
    kinds: Ints
    """Which kind of request each job is: of one kind, any node is as good for all."""
    seen: Ints
    now_has: Ints
    """By slot and node: HAS as it is now."""
    has_bits: Ints
    """By slot: the nodes where that is more than 0, as bits."""
    last_change: Ints
    """By slot and node: its last change that is known; -1: none."""
    first_change: Ints
    """By slot and end: which of the changes is the first that it brings; one more for what is behind the last."""
    changes: Ints
    words: Ints
    spans: Ints
    span_words: Ints
    ends: Ints
    pairs: Ints
    """A node of a running job, and what the job has of it: a vector."""
    outages: Ints
    """Of each outage: when it begins, ends, gets known, and for which resource of leave it leaves room (-1: none)."""
    outage_words: Ints
    """The nodes of each, as bits."""
    counts: Ints
    """Of the users, then of the partitions: jobs looked at in this cycle; reservations of partitions."""
    limits: Ints
    claims: Ints
    first_claim: Ints
    """The first of each job of the workload, and one more; none where nothing is limited."""

    def fitted(self, rule: SlurmRule, cap: Any, room: int) -> Space:
        """Space for such a machine, and so many jobs that run."""
        fleet = cap.free
        nodes, width = int(fleet[0]), cap.capacity.shape[1]
        rows = np.zeros((NODE_ROWS, nodes), np.int64)
        rows[ITS_KIND] = [fleet[fleet[fleet[AT_NODES] + node] + KIND] for node in range(nodes)]
        wide = -(-nodes // BITS)
        sets = bits_of(np.take(cap.sets, rows[ITS_KIND], axis=1))
        spans = rule.table + 4
        most = cap.placed.shape[1]  # a unit that needs a core is one of so many that run
        if bool(
            ((cap.need[: cap.first.shape[0] - 1, 0] > 0) | (cap.rows[EXCLUSIVE, : cap.first.shape[0] - 1] > 0)).all()
        ):
            most = min(most, int(cap.capacity[rows[ITS_KIND], 0].sum()) + nodes)
        return self._replace(
            sets=sets, nodes=rows, free=np.zeros(((1 + SLOTS) * nodes, width), np.int64), kinds=_kinds(cap),
            seen=np.zeros((SEEN_ROWS, SLOTS), np.int64), now_has=np.zeros((SLOTS, nodes), np.int64),
            has_bits=np.zeros((SLOTS, wide), np.int64),
            last_change=np.zeros((SLOTS, nodes), np.int64),
            first_change=np.zeros((SLOTS, 2 * room + 3), np.int64),
            changes=np.zeros((SLOTS * (most + 1), CHANGE_COLUMNS), np.int64),
            words=np.zeros((WORD_ROWS, wide), np.int64), spans=np.zeros((SPAN_ROWS, spans), np.int64),
            span_words=np.zeros((spans, wide), np.int64), ends=np.zeros((END_ROWS, 2 * room + 2), np.int64),
            pairs=np.zeros((1 + width, most + 1), np.int64),
            info=np.zeros(INFO, np.int64), **_outages(cap, nodes),
        )  # fmt: skip


def _kinds(cap: Any) -> Ints:
    """Numbers for the kinds of request, by job."""
    rows = cap.rows
    units, most = rows[UNITS], rows[PER_NODE]
    spread = (rows[EXCLUSIVE] == 1) | (units == 1) | ((most > 0) & (units % np.maximum(most, 1) == 0))
    asked = np.vstack([cap.need.T[:, : rows.shape[1]], rows[[PER_NODE, EXCLUSIVE, SHARE, WILL_DO]], spread, units > 1])
    found: Ints = np.unique(asked, axis=1, return_inverse=True)[1].reshape(-1)
    return np.ascontiguousarray(found)


def _outages(cap: Any, nodes: int) -> dict[str, Ints]:
    """Those of a machine, together again that are of one time."""
    rows = cap.outages
    many = rows.shape[1] // 3
    known = np.zeros(many, np.int64)
    told = rows[EVENT_WHAT] == KNOWN
    known[rows[EVENT_OUT, told]] = rows[EVENT_WHEN, told]
    when = np.stack([*rows[OUT_NODE + 1 : OUT_BUT, :many], known, rows[OUT_BUT, :many]])
    apart, which = np.unique(when, axis=1, return_inverse=True)
    there = np.zeros((apart.shape[1], nodes), bool)
    there[which.reshape(-1), rows[OUT_NODE, :many]] = True
    return {"outages": np.ascontiguousarray(apart), "outage_words": bits_of(there)}


def bits_of(rows: Any) -> Ints:
    """Sets of nodes, a row of truths each, as bits."""
    rows = np.asarray(rows, bool)
    wide = -(-rows.shape[1] // BITS)
    padded = np.zeros((len(rows), wide * BITS), np.int64)
    padded[:, : rows.shape[1]] = rows
    found: Ints = (padded.reshape(len(rows), wide, BITS) << np.arange(BITS)).sum(axis=2)
    return np.ascontiguousarray(found)


_NO = np.zeros((0, 1), np.int64)
NO_SPACE = Space(_NO[:, 0], *(_NO,) * 5, _NO[:, 0], *(_NO,) * 16, _NO[:, 0])


class SlurmRule(NamedTuple):
    """SchedulerParameters, in seconds and counts; 0: no bound."""

    common: Common
    window: int
    resolution: int
    interval: int
    phase: int
    """Cycles are at multiples of `interval`, and this later."""
    full: int
    """At multiples of this the main loop looks at the whole queue; else at `depth` jobs."""
    depth: int
    tested: int
    table: int
    """Records of the table of nodes."""
    of_user: int
    of_partition: int
    started: int
    """Jobs that one cycle starts."""
    reserved: int
    """Reservations of one partition."""
    of_array: int
    """Reservations for tasks of one array."""
    age: int
    """Jobs that have waited for less get no reservation."""
    linear: int
    """By how much the width of a batch of ends grows; 0: it doubles."""
    newer: bool
    """As 24.11 does."""
    memory: int
    """Which resource is memory, given by the core; -1: none."""
    devices: int
    """Which resource is GPUs; -1: none."""
    space: Space = NO_SPACE


# Sets of nodes.


@inner
def _in(words: Ints, row: int, node: int) -> bool:
    return (words[row, node >> SHIFT] >> (node & MASK)) & 1 == 1


@inner
def _put(words: Ints, row: int, node: int) -> None:
    words[row, node >> SHIFT] |= ONE << (node & MASK)


@inner
def _clear(words: Ints, row: int) -> None:
    for w in range(words.shape[1]):
        words[row, w] = 0


@inner
def _has_members(words: Ints, row: int, least: int) -> bool:
    """Whether so many nodes are in a set."""
    for w in range(words.shape[1]):
        word = words[row, w]
        while word != 0 and least > 0:
            word &= word - 1
            least -= 1
    return least <= 0


# What jobs ask for.


@inner
def _spread(cap: Any, job: int) -> bool:
    """Whether it wants just so many nodes, and as much of each."""
    units, most = cap.rows[UNITS, job], cap.rows[PER_NODE, job]
    return cap.rows[EXCLUSIVE, job] == 1 or units == 1 or (most > 0 and units % most == 0)


@inner
def _each(cap: Any, job: int) -> int:
    """Units on each of its nodes, where it wants just so many of these."""
    most = cap.rows[PER_NODE, job]
    return ONE if cap.rows[EXCLUSIVE, job] == 1 or most == 0 else most


@inner
def _least_nodes(cap: Any, job: int) -> int:
    return cap.rows[UNITS, job] // _each(cap, job) if _spread(cap, job) else ONE


@inner
def _room(rule: SlurmRule, cap: Any, job: int, node: int, base: int, by_tasks: bool) -> int:
    """How many cores of a node, with free[base + node] there, the job could use; 0: it cannot be there. `by_tasks`: no
    more than its tasks on a node take, where it wants just so many."""
    space, rows, at = rule.space, cap.rows, base + node
    free, core = space.free, max(cap.need[job, 0], ONE)
    kind, exclusive = space.nodes[ITS_KIND, node], rows[EXCLUSIVE, job] == 1
    for w in range(cap.capacity.shape[1] if exclusive else ZERO):
        leave = cap.info[PLAIN] <= w < cap.info[RESOURCES]
        if not leave and free[at, w] != cap.capacity[kind, w]:
            return ZERO
    spread = _spread(cap, job)
    units = _each(cap, job) if spread else ONE
    tasks, parts = free[at, 0] // core, free[at, 0]
    for r in range(cap.info[PLAIN]):
        need = cap.need[job, r]
        if need == 0:
            continue
        if r == cap.info[SHARED]:
            there = ZERO
            for d in range(cap.info[DEVICES]):
                there += free[at, cap.info[RESOURCES] + d] >= rows[SHARE, job]
        else:
            there = free[at, r]
        if there < units * need:
            return ZERO
        tasks = min(tasks, there // need)
        if r == rule.memory:
            parts = min(parts, there * core // need)
    if exclusive:
        return free[at, 0]
    if not spread:
        most = rows[PER_NODE, job]
        return core * (min(tasks, most) if most > 0 else tasks)
    if (by_tasks and rows[UNITS, job] > 1) or (rule.devices >= 0 and cap.need[job, rule.devices] > 0):
        return units * core
    return parts if units == 1 else parts // core * core


# Which nodes.


@inner
def _lowest(word: int) -> int:
    """Which bit of a word is the lowest that is set: times DE_BRUIJN, each power of 2 has other bits at its top."""
    found: int = PLACE_OF_BIT[((word & -word) * DE_BRUIJN) >> TOP_BITS & MASK]
    return found


@inner
def _list(nodes: Ints, info: Ints, words: Ints, row: int) -> None:
    """Make LIST the nodes of a set, in order."""
    info[LISTED] = ZERO
    for w in range(words.shape[1]):
        word = words[row, w]
        while word != 0:
            nodes[LIST, info[LISTED]] = w * BITS + _lowest(word)
            word &= word - 1
            info[LISTED] += 1


@inner
def _count(rule: SlurmRule, cap: Any, job: int, by_tasks: bool) -> None:
    """What a job could use of each node of ALLOWED, with what is free now: HAS, and in all. These nodes are listed."""
    space = rule.space
    nodes, info = space.nodes, space.info
    _list(nodes, info, space.words, ALLOWED)
    info[MANY] = info[TOTAL] = ZERO
    for i in range(info[LISTED]):
        node = nodes[LIST, i]
        nodes[HAS, node] = _room(rule, cap, job, node, ZERO, by_tasks)
        info[MANY] += nodes[HAS, node] > 0
        info[TOTAL] += nodes[HAS, node]


@inner
def _enough(rule: SlurmRule, cap: Any, job: int) -> bool:
    """Whether the nodes that were counted will do: then `_gather` finds some. A node that counts has room for what the
    job wants of each, or for one unit."""
    info = rule.space.info
    if _spread(cap, job):
        return info[MANY] >= _least_nodes(cap, job)
    return info[TOTAL] >= cap.rows[UNITS, job] * max(cap.need[job, 0], ONE)


@inner
def _choose(rule: SlurmRule, cap: Any, job: int, by_tasks: bool) -> bool:
    """Give a job nodes of ALLOWED, with what is free now: FOUND_*."""
    _count(rule, cap, job, by_tasks)
    if not _enough(rule, cap, job):
        return False
    _gather(rule, cap, job)
    return True


@inner
def _find_runs(space: Space) -> int:
    """Neighbours with something for the job, as RUN_*; how many there are."""
    nodes, runs, last = space.nodes, ZERO, NONE
    for i in range(space.info[LISTED]):
        node = nodes[LIST, i]
        if nodes[HAS, node] == 0:
            continue
        if last < 0 or last + 1 < node:
            nodes[RUN_FIRST, runs], nodes[RUN_CORES, runs] = node, ZERO
            runs += 1
        nodes[RUN_LAST, runs - 1] = node
        nodes[RUN_CORES, runs - 1] += nodes[HAS, node]
        last = node
    return runs


@inner
def _gather(rule: SlurmRule, cap: Any, job: int) -> None:
    """Runs of neighbours, the best first, until there is enough: FOUND_*."""
    space = rule.space
    nodes, info, spread, least = space.nodes, space.info, _spread(cap, job), _least_nodes(cap, job)
    units, core = cap.rows[UNITS, job], max(cap.need[job, 0], ONE)
    exclusive = cap.rows[EXCLUSIVE, job] == 1
    cores, wanted, still = units * core, least, least
    most = least if spread else min(nodes.shape[1], units)
    part = ONE if spread and _each(cap, job) == 1 else core
    runs = _find_runs(space)
    info[FOUND_NODES] = 0
    while most > 0:
        best = _best_run(nodes, runs, cores, wanted)
        if best < 0:
            break
        first, last = nodes[RUN_FIRST, best], nodes[RUN_LAST, best]
        nodes[RUN_CORES, best] = -1  # it is no longer there
        if wanted <= 1:
            tight = NONE
            for node in range(first, last + 1):
                if nodes[HAS, node] >= cores and (tight < 0 or nodes[HAS, node] < nodes[HAS, tight]):
                    tight = node
            if tight >= 0:
                first = last = tight
        for node in range(first, last + 1):
            if most == 0 or (wanted <= 0 and cores <= 0):
                break
            if most == 1 and nodes[HAS, node] < cores:
                continue
            use = nodes[HAS, node]
            if not exclusive:
                use = min(use, max(cores - max(still - 1, ZERO), part))
            at = info[FOUND_NODES]
            nodes[FOUND_NODE, at], nodes[FOUND_CORES, at] = node, use
            info[FOUND_NODES] = at + 1
            cores -= use
            wanted -= 1
            still -= 1
            most -= 1
        if wanted <= 0 and cores <= 0:
            break
    if spread and not exclusive:
        for i in range(info[FOUND_NODES]):
            nodes[FOUND_CORES, i] = _each(cap, job) * core


@inner
def _best_run(nodes: Ints, runs: int, cores: int, wanted: int) -> int:
    """Which run is taken next: the first that has enough, then the tightest; else the largest."""
    best, best_enough = NONE, False
    for run in range(runs):
        has = nodes[RUN_CORES, run]
        if has < 0:
            continue
        enough = has >= cores and nodes[RUN_LAST, run] - nodes[RUN_FIRST, run] + 1 >= wanted
        better = best < 0
        if not better and enough:
            better = not best_enough or has < nodes[RUN_CORES, best]
        elif not better:
            better = has > nodes[RUN_CORES, best]
        if better:
            best, best_enough = run, enough
    return best


# When.


@inner
def _list_pairs(space: Space, cap: Any, job: int, where: Ints, at: int) -> None:
    """Write down what a job has of each of its nodes, for the end at a place of ENDS."""
    pairs, info, width = space.pairs, space.info, cap.capacity.shape[1]
    space.ends[FIRST_PAIR, at] = info[PAIRS]
    unit, last = cap.first[job], cap.first[job + 1]
    while unit < last:
        node, pair = where[0, unit], info[PAIRS]
        pairs[0, pair] = node
        for w in range(width):
            pairs[1 + w, pair] = 0
        while unit < last and where[0, unit] == node:
            for w in range(width):
                if cap.rows[EXCLUSIVE, job] == 1:
                    pairs[1 + w, pair] = whole(cap, job, space.nodes[ITS_KIND, node], w)
                else:
                    pairs[1 + w, pair] += taken(cap, job, w, where[1, unit])
            unit += 1
        info[PAIRS] = pair + 1
    space.ends[LAST_PAIR, at] = info[PAIRS]


@inner
def _forget(space: Space) -> None:
    """Somebody has started: what ends bring is another."""
    for slot in range(SLOTS):
        space.seen[WHOSE, slot] = NONE


@inner
def _row_of(changes: Ints, slot: int) -> int:
    """The first of the changes of a slot."""
    return slot * (changes.shape[0] // SLOTS)


@inner
def _begin(rule: SlurmRule, cap: Any, job: int, slot: int, kind: int, by_tasks: bool) -> None:
    """Keep in a slot what ends bring to such a job."""
    space, nodes = rule.space, rule.space.nodes.shape[1]
    space.seen[WHOSE, slot], space.seen[SO_FAR, slot], space.seen[CHANGES, slot] = kind, ZERO, ZERO
    space.first_change[slot, 0] = 0
    which, base = cap.rows[WILL_DO, job], (1 + slot) * nodes
    _clear(space.has_bits, slot)
    for node in range(nodes):
        has = _room(rule, cap, job, node, ZERO, by_tasks) if _in(space.sets, which, node) else ZERO
        if has > 0:
            _put(space.has_bits, slot, node)
        space.now_has[slot, node], space.last_change[slot, node] = has, NONE
        for w in range(cap.capacity.shape[1]):
            space.free[base + node, w] = space.free[node, w]


@inner
def _see(rule: SlurmRule, cap: Any, job: int, slot: int, by_tasks: bool) -> None:
    """Find out what the next end brings that a slot does not know."""
    space = rule.space
    at, change, rows = space.seen[SO_FAR, slot], space.seen[CHANGES, slot], _row_of(space.changes, slot)
    which, base = cap.rows[WILL_DO, job], (1 + slot) * space.nodes.shape[1]
    for pair in range(space.ends[FIRST_PAIR, at], space.ends[LAST_PAIR, at]):
        node = space.pairs[0, pair]
        if not _in(space.sets, which, node):
            continue
        for w in range(cap.capacity.shape[1]):
            space.free[base + node, w] += space.pairs[1 + w, pair]
        last = space.last_change[slot, node]
        space.changes[rows + change, CHANGED], space.changes[rows + change, BY_END] = node, at
        space.changes[rows + change, BEFORE] = (
            space.changes[rows + last, AFTERWARDS] if last >= 0 else space.now_has[slot, node]
        )
        space.changes[rows + change, AFTERWARDS] = _room(rule, cap, job, node, base, by_tasks)
        space.changes[rows + change, LAST_CHANGE], space.last_change[slot, node] = last, change
        change += 1
    space.seen[SO_FAR, slot], space.seen[CHANGES, slot] = at + 1, change
    space.first_change[slot, at + 1] = change


@inner
def _give_back(info: Ints, words: Ints, changes: Ints, row: int, first: int, last: int) -> bool:
    """Let some changes happen, for a job that looks for a start. Whether one is of a node of ALLOWED. (It is given no
    more than it needs: it is called for each end of each search.)"""
    on = False
    for change in range(first, last):
        if _in(words, ALLOWED, changes[row + change, CHANGED]):
            on = True
            before, has = changes[row + change, BEFORE], changes[row + change, AFTERWARDS]
            info[MANY] += np.int64(has > 0) - np.int64(before > 0)
            info[TOTAL] += has - before
    return on


@inner
def _may_be_enough(
    words: Ints, has_now: Ints, last_change: Ints, changes: Ints, row: int, ended: int, many: int, total: int
) -> bool:
    """Whether so many nodes of ALLOWED, or so many cores of them, are there when so many of those that run have
    ended."""
    for w in range(words.shape[1]):
        word = words[ALLOWED, w]
        while word != 0:
            node = w * BITS + _lowest(word)
            word &= word - 1
            change = last_change[node]
            while change >= 0 and changes[row + change, BY_END] >= ended:
                change = changes[row + change, LAST_CHANGE]
            has = changes[row + change, AFTERWARDS] if change >= 0 else has_now[node]
            many -= has > 0
            total -= has
        if many <= 0 and total <= 0:
            return True
    return many <= 0 and total <= 0


@inner
def _tally(info: Ints, words: Ints, has_bits: Ints, has_now: Ints, slot: int) -> None:
    """What a job could use of ALLOWED now, in all."""
    many, total = ZERO, ZERO
    for w in range(words.shape[1]):
        word = words[ALLOWED, w] & has_bits[slot, w]
        while word != 0:
            total += has_now[slot, w * BITS + _lowest(word)]
            many += ONE
            word &= word - 1
    info[MANY], info[TOTAL] = many, total


@inner
def _gather_then(rule: SlurmRule, cap: Any, job: int, slot: int, ended: int) -> None:
    """Nodes of ALLOWED for a job, with what is free when so many of those that run have ended."""
    space = rule.space
    nodes, words, row = space.nodes, space.words, _row_of(space.changes, slot)
    for w in range(words.shape[1]):
        words[SOME, w] = words[ALLOWED, w] & space.has_bits[slot, w]
    for change in range(space.first_change[slot, ended]):
        node = space.changes[row + change, CHANGED]
        if _in(words, ALLOWED, node):
            _put(words, SOME, node)
    _list(nodes, space.info, words, SOME)
    for i in range(space.info[LISTED]):
        nodes[HAS, nodes[LIST, i]] = space.now_has[slot, nodes[LIST, i]]
    for change in range(space.first_change[slot, ended]):
        nodes[HAS, space.changes[row + change, CHANGED]] = space.changes[row + change, AFTERWARDS]
    _gather(rule, cap, job)


@inner
def _will_run(rule: SlurmRule, cap: Any, job: int, now: int, now_only: bool, begin: int, until: int) -> int:
    """When a job can start on the nodes of ALLOWED; -1: not as far as is known. A newer Slurm counts all free cores of
    nodes first, and if that is not at once, the job's tasks alone."""
    found = _looked_for(rule, cap, job, now, now_only, begin, until, False)
    if rule.newer and (found < 0 or found > now):
        found = _looked_for(rule, cap, job, now, now_only, begin, until, True)
    return found


@inner
def _ended_by(ends: Ints, many: int, at: int) -> int:
    """How many of those that run will have ended by an instant."""
    low, high = ZERO, many
    while low < high:
        mid = (low + high) >> 1
        if ends[ENDS_AT, mid] <= at:
            low = mid + 1
        else:
            high = mid
    return low


@inner
def _looked_for(
    rule: SlurmRule, cap: Any, job: int, now: int, now_only: bool, begin: int, until: int, by_tasks: bool
) -> int:
    """When a job can start as those that run end by their estimates, in batches that get wider. `begin`: from when on
    it is looked for, `until` up to when; 0: without an end. For an older Slurm that is where nobody asks any more: what
    starts later is looked for again."""
    space = rule.space
    info, words, changes, ends, many = space.info, space.words, space.changes, space.ends, space.info[RUNNERS]
    kind = 2 * space.kinds[job] + np.int64(by_tasks)
    slot: int = kind % SLOTS
    seen, first, row = space.seen, space.first_change, _row_of(space.changes, slot)
    if seen[WHOSE, slot] != kind:
        _begin(rule, cap, job, slot, kind, by_tasks)
    if 0 < until and begin <= until:  # most searches find nothing: they need not be made
        ended = _ended_by(ends, many, until)
        while seen[SO_FAR, slot] < ended:
            _see(rule, cap, job, slot, by_tasks)
        spread = _spread(cap, job)
        nodes = _least_nodes(cap, job) if spread else ZERO
        cores = ZERO if spread else cap.rows[UNITS, job] * max(cap.need[job, 0], ONE)
        if 2 * first[slot, ended] < space.nodes.shape[1]:  # few changes: fewer steps than all nodes
            _tally(info, words, space.has_bits, space.now_has, slot)
            _give_back(info, words, changes, row, ZERO, first[slot, ended])
            enough = info[MANY] >= nodes and info[TOTAL] >= cores
        else:
            has_now, last_change = space.now_has[slot], space.last_change[slot]
            enough = _may_be_enough(words, has_now, last_change, changes, row, ended, nodes, cores)
        if not enough:
            return NONE
    _tally(info, words, space.has_bits, space.now_has, slot)
    if begin <= now and _enough(rule, cap, job):
        _gather_then(rule, cap, job, slot, ZERO)
        return now
    if now_only:
        return NONE
    at = ZERO
    if begin > 0:
        while at < many and ends[ENDS_AT, at] < begin:
            if at == seen[SO_FAR, slot]:
                _see(rule, cap, job, slot, by_tasks)
            _give_back(info, words, changes, row, first[slot, at], first[slot, at + 1])
            at += 1
        if _enough(rule, cap, job):
            _gather_then(rule, cap, job, slot, at)
            return now
    last_of_all = many
    while rule.newer and until > 0 and last_of_all > at and ends[ENDS_AT, last_of_all - 1] > until:
        last_of_all -= 1
    width, barrier = BATCH, ZERO
    while at < last_of_all and (until == 0 or ends[ENDS_AT, at] <= until):
        last, after, count = NONE, NONE, ZERO
        while at < last_of_all:
            if at == seen[SO_FAR, slot]:
                _see(rule, cap, job, slot, by_tasks)
            end = ends[ENDS_AT, at]
            at += 1
            if not _give_back(info, words, changes, row, first[slot, at - 1], first[slot, at]):
                continue
            if barrier == 0:
                barrier = end + (BATCH - end % BATCH)
            last = end
            after = ends[ENDS_AT, at] if at < last_of_all else NONE
            count += 1
            if after < 0 or after > barrier + width or count > MOST_ENDS:
                break
        if count == 0:
            break
        if count > MOST_ENDS:
            continue
        width = width + rule.linear if rule.linear > 0 else width * 2
        while after > barrier + width:
            width = width + rule.linear if rule.linear > 0 else width * 2
        if _enough(rule, cap, job):
            _gather_then(rule, cap, job, slot, at)
            return last if last > now else now + 1
    return NONE


@inner
def _kept_for(space: Space, one: int, now: int) -> bool:
    """Whether an outage that is known is a reservation. Others are nodes that are down."""
    return not _is_down(space, one) and space.outages[OUT_TOLD, one] <= now < space.outages[OUT_UNTIL, one]


@inner
def _is_down(space: Space, one: int) -> bool:
    """Whether an outage is of nobody and was not known before it began."""
    return space.outages[OUT_FOR, one] < 0 and space.outages[OUT_TOLD, one] >= space.outages[OUT_FROM, one]


@inner
def _beside_outages(
    rule: SlurmRule, cap: Any, job: int, part: int, now: int, start: int, length: int, move: bool
) -> int:
    """When a job of a partition that would start then may, with what is kept from it in KEPT. Where all of its
    partition is kept, it waits for the end of that."""
    space = rule.space
    for _ in range(TRIES):
        moved = False
        _clear(space.words, KEPT)
        for one in range(space.outages.shape[1]):
            begin, end = space.outages[OUT_FROM, one], space.outages[OUT_UNTIL, one]
            if not _kept_for(space, one, now) or begin >= start + length or end <= start:
                continue
            if space.outages[OUT_FOR, one] >= 0 and cap.need[job, space.outages[OUT_FOR, one]] == 1:
                continue
            all_of_it = True
            for w in range(space.words.shape[1]):
                mine = space.parts[part, w] & space.outage_words[one, w]
                all_of_it = all_of_it and mine == space.parts[part, w]
                space.words[KEPT, w] |= mine
            if all_of_it and move:
                start, moved = end, True
                break
        if not moved:
            return start
    for w in range(space.words.shape[1]):
        space.words[KEPT, w] = space.parts[part, w]
    return start


@inner
def _soonest_end(rule: SlurmRule, now: int, start: int) -> int:
    """When the first outage ends that does not before `start`, at a step of the table; 0: none does."""
    found = ZERO
    for one in range(rule.space.outages.shape[1]):
        end = rule.space.outages[OUT_UNTIL, one]
        if _kept_for(rule.space, one, now) and end >= start and (found == 0 or end < found):
            found = end
    return -(-found // rule.resolution) * rule.resolution


# The table of nodes: from instant to instant, those that are not reserved.


@inner
def _split(space: Space, span: int, at: int) -> None:
    """Make a span two, the second from `at` on."""
    new = space.info[SPANS]
    space.info[SPANS] += 1
    space.spans[BEGIN, new], space.spans[END, new] = at, space.spans[END, span]
    space.spans[BEHIND, new] = space.spans[BEHIND, span]
    space.spans[END, span], space.spans[BEHIND, span] = at, new
    for w in range(space.words.shape[1]):
        space.span_words[new, w] = space.span_words[span, w]


@inner
def _alike(space: Space, one: int, other: int) -> bool:
    for w in range(space.words.shape[1]):
        if space.span_words[one, w] != space.span_words[other, w]:
            return False
    return True


@inner
def _mark_found(space: Space) -> None:
    """Make ONLY the nodes that were found."""
    _clear(space.words, ONLY)
    for i in range(space.info[FOUND_NODES]):
        _put(space.words, ONLY, space.nodes[FOUND_NODE, i])


@inner
def _reserve(rule: SlurmRule, begin: int, end: int) -> None:
    """Take the nodes that were found away for a time; then one pair of alike neighbours becomes one."""
    space, spans = rule.space, rule.space.spans
    begin = max(begin, spans[BEGIN, 0])
    end = max(end, begin + rule.resolution)
    _mark_found(space)
    at, before = ZERO, ZERO
    while spans[END, at] < begin:
        before, at = at, spans[BEHIND, at]
        if at == 0:
            return
    if spans[END, at] > begin:
        _split(space, at, begin)
    last, span = NONE, spans[BEHIND, at]
    while span != 0:
        if end < spans[END, span]:
            _split(space, span, end)
        for w in range(space.words.shape[1]):
            space.span_words[span, w] &= ~space.words[ONLY, w]
        span, now = spans[BEHIND, span], span
        if spans[END, now] == end:
            last = span if span != 0 else NONE
            break
    one = before
    while one != last and spans[BEHIND, one] != 0:
        other = spans[BEHIND, one]
        if _alike(space, one, other):
            spans[END, one], spans[BEHIND, one] = spans[END, other], spans[BEHIND, other]
            break
        one = other


@inner
def _is_reserved(space: Space, begin: int, end: int) -> bool:
    """Whether any of the nodes that were found is reserved at any time between two instants."""
    _mark_found(space)
    span = ZERO
    while True:
        if space.spans[END, span] > begin and space.spans[BEGIN, span] < end:
            for w in range(space.words.shape[1]):
                if space.words[ONLY, w] & ~space.span_words[span, w] != 0:
                    return True
        span = space.spans[BEHIND, span]
        if span == 0:
            return False


@inner
def _slot_end(rule: SlurmRule, start: int, length: int) -> int:
    """Where the steps of the table end that a job takes."""
    more = rule.resolution - 1 if rule.newer else ZERO
    return (start + length + more) // rule.resolution * rule.resolution


# Limits.


@inner
def _let(limits: Ints, claims: Ints, first: Ints, job: int, before: bool) -> bool:
    """Whether the limits that a job takes from have enough left. `before`: those that need no nodes to be asked."""
    if first.shape[0] == 0:
        return True
    for claim in range(first[job], first[job + 1]):
        limit = claims[CLAIM_LIMIT, claim]
        if claims[CLAIM_ASKS, claim] == 0 or (before and limits[LIMIT_BEFORE, limit] == 0):
            continue
        if claims[CLAIM_TAKES, claim] > limits[LIMIT_LEFT, limit]:
            return False
    return True


@inner
def _claim(limits: Ints, claims: Ints, first: Ints, job: int) -> None:
    if first.shape[0] > 0:
        for claim in range(first[job], first[job + 1]):
            limits[LIMIT_LEFT, claims[CLAIM_LIMIT, claim]] -= claims[CLAIM_TAKES, claim]


# A cycle.

NOTHING, STARTS, PLANNED, RESERVED = range(4)
"""What becomes of a job in a cycle."""


@inner
def _give(rule: SlurmRule, cap: Any, run: Run, job: int, now: int, n_started: int) -> int:
    """Start a job on the nodes that were found; how many have started."""
    space, core, unit = rule.space, max(cap.need[job, 0], ONE), cap.first[job]
    nodes, shared = space.nodes, cap.info[SHARED]
    for i in range(space.info[FOUND_NODES]):
        node = nodes[FOUND_NODE, i]
        units = ONE if cap.rows[EXCLUSIVE, job] == 1 else nodes[FOUND_CORES, i] // core
        used = ZERO
        for _ in range(units):
            devices, want = ZERO, cap.need[job, shared] if shared >= 0 else ZERO
            for d in range(cap.info[DEVICES]):
                if (
                    want > 0
                    and used >> d & 1 == 0
                    and space.free[node, cap.info[RESOURCES] + d] >= cap.rows[SHARE, job]
                ):
                    devices |= ONE << d
                    want -= 1
            used |= devices
            cap.pick[0, unit], cap.pick[1, unit] = node, devices
            unit += 1
    cap.rows[PICKED, job] = now
    end = now + run.jobs[ESTIMATE, job]
    start(cap, job, now, end)
    at, ends = space.info[RUNNERS], space.ends
    while at > 0 and (
        ends[ENDS_AT, at - 1] > end or (ends[ENDS_AT, at - 1] == end and _after(run, ends[ENDS_JOB, at - 1], job))
    ):
        for row in range(END_ROWS):
            ends[row, at] = ends[row, at - 1]
        at -= 1
    ends[ENDS_AT, at], ends[ENDS_JOB, at] = end, job
    _list_pairs(space, cap, job, cap.placed, at)
    for pair in range(ends[FIRST_PAIR, at], ends[LAST_PAIR, at]):
        for w in range(cap.capacity.shape[1]):
            space.free[space.pairs[0, pair], w] -= space.pairs[1 + w, pair]
    space.info[RUNNERS] += 1
    _forget(space)
    _claim(space.limits, space.claims, space.first_claim, run.jobs[NUMBER, job])
    run.lists[STARTED, n_started] = job
    return n_started + 1


@inner
def _after(run: Run, one: int, other: int) -> bool:
    return run.jobs[NUMBER, one] > run.jobs[NUMBER, other]


@inner
def _allowed(rule: SlurmRule, cap: Any, job: int) -> None:
    """ALLOWED: the nodes of a job that are up and not kept from it."""
    words, which = rule.space.words, cap.rows[WILL_DO, job]
    for w in range(words.shape[1]):
        words[ALLOWED, w] = rule.space.sets[which, w] & ~words[OUT, w] & ~words[KEPT, w]


@inner
def _planned(
    rule: SlurmRule, cap: Any, run: Run, job: int, part: int, now: int, now_only: bool
) -> tuple[int, int, bool]:
    """What becomes of one job, when it is to start, and whether it was tried at all: from one boundary of the table to
    the next."""
    space, spans, words = rule.space, rule.space.spans, rule.space.words
    length, least = run.jobs[ESTIMATE, job], _least_nodes(cap, job)
    later, tried, outages = now, False, space.outages.shape[1] > 0
    _clear(words, KEPT)
    _allowed(rule, cap, job)
    for w in range(words.shape[1]):
        words[BASE, w] = words[ALLOWED, w]
    while True:
        earliest, none_kept = later, True
        if outages:
            earliest = _beside_outages(rule, cap, job, part, now, later, length, True)
            none_kept = not _has_members(words, KEPT, ONE)
            _allowed(rule, cap, job)
            for w in range(words.shape[1]):
                words[BASE, w] = words[ALLOWED, w]
        else:
            for w in range(words.shape[1]):
                words[ALLOWED, w] = words[BASE, w]
        end, later, at = earliest + length, ZERO, ZERO
        while True:
            behind = spans[BEHIND, at]
            if spans[END, at] > earliest:
                if behind != 0 and later == 0:
                    more = False  # nodes that are free behind it, and not so far
                    for w in range(words.shape[1]):
                        there = words[ALLOWED, w] & space.span_words[at, w]
                        more = more or words[BASE, w] & space.span_words[behind, w] & ~there != 0
                    if more:
                        later = spans[END, at]
                if spans[BEGIN, at] > end:
                    if rule.newer and later == 0 and behind != 0 and spans[BEHIND, behind] != 0:
                        later = spans[END, behind]
                    break
                left = ZERO
                for w in range(words.shape[1]):
                    words[ALLOWED, w] &= space.span_words[at, w]
                    left |= words[ALLOWED, w]
                if left == 0 and later != 0:  # it will not be here
                    break
            at = behind
            if at == 0:
                break
        if not none_kept:
            again = _soonest_end(rule, now, earliest)
            if again > 0 and again + 1 < (now + rule.window) // rule.resolution * rule.resolution:
                later = again + 1 if later == 0 else min(later, again + 1)
        begins = NONE
        if _has_members(words, ALLOWED, least):
            tried = True
            begins = _will_run(rule, cap, job, now, now_only, earliest if rule.newer else ZERO, later)
        if begins < 0:
            if later > 0 and not now_only:
                continue
            return NOTHING, NONE, tried
        begins = max(begins, earliest)
        slot, slot_end = begins // rule.resolution * rule.resolution, _slot_end(rule, begins, length)
        if rule.newer and begins > now and _is_reserved(space, slot, slot_end):
            later = begins
            continue
        if begins <= now:
            if _choose(rule, cap, job, rule.newer):
                return STARTS, now, tried
            later = ZERO
        if now_only:
            return NOTHING, NONE, tried
        if later > 0 and begins > later:
            continue
        if begins > now + rule.window:
            return PLANNED, begins, tried
        if _is_reserved(space, slot, slot_end):
            later = begins
            continue
        return RESERVED, begins, tried


@inner
def _could_start(rule: SlurmRule, cap: Any, run: Run, job: int, now: int) -> bool:
    """Whether there is room now for a job beside what is planned: then perhaps it starts in this cycle. It will not if
    there is none, as plans come to it and what is free goes."""
    space, spans, words, which = rule.space, rule.space.spans, rule.space.words, cap.rows[WILL_DO, job]
    if not _let(space.limits, space.claims, space.first_claim, run.jobs[NUMBER, job], False):
        return False
    for w in range(words.shape[1]):
        words[ALLOWED, w] = space.sets[which, w] & words[FREE, w]
    end, at = now + run.jobs[ESTIMATE, job], ZERO
    while True:
        if spans[END, at] > now:
            if spans[BEGIN, at] > end:
                break
            for w in range(words.shape[1]):
                words[ALLOWED, w] &= space.span_words[at, w]
        at = spans[BEHIND, at]
        if at == 0:
            break
    spread = _spread(cap, job)
    lacks = _least_nodes(cap, job) if spread else cap.rows[UNITS, job] * max(cap.need[job, 0], ONE)
    for w in range(words.shape[1]):
        word = words[ALLOWED, w]
        while word != 0:
            has = _room(rule, cap, job, w * BITS + _lowest(word), ZERO, False)
            word &= word - 1
            lacks -= np.int64(has > 0) if spread else has
            if lacks <= 0:
                return True
    return False


@inner
def _cycle(rule: SlurmRule, cap: Any, run: Run, now: int, waiting: int, n_started: int) -> int:
    """One of the backfill, over the jobs in ORDER; how many have started in all. Unless its plan is to be kept, it ends
    where nobody behind could start in it: the next one plans anew."""
    space, info, count, columns = rule.space, rule.space.info, rule.space.counts, rule.space.columns
    spans = space.spans
    _forget(space)
    info[SPANS] = 1
    spans[BEGIN, 0], spans[BEHIND, 0] = now // rule.resolution * rule.resolution, ZERO
    spans[END, 0] = (now + rule.window) // rule.resolution * rule.resolution
    for w in range(space.words.shape[1]):
        space.span_words[0, w] = ~space.words[OUT, w]
    for i in range(count.shape[1]):
        count[OF_USER, i] = count[OF_PART, i] = count[RESERVATIONS, i] = ZERO
    _clear(space.words, FREE)
    for node in range(space.nodes.shape[1]):
        if space.free[node, 0] > 0:
            _put(space.words, FREE, node)
    tested, started, array, of_array, rejected = ZERO, ZERO, NONE, ZERO, NONE
    last: int = waiting - 1
    for i in range(waiting):
        while (
            not rule.common.keep_expected
            and last >= i
            and not _could_start(rule, cap, run, run.lists[ORDER, last], now)
        ):
            last -= 1
        if last < i:
            break
        if i == 0:
            _line_up(rule, cap, run)
        job = run.lists[ORDER, i]
        number = run.jobs[NUMBER, job]
        its = columns[ARRAY, number]
        if tested >= rule.tested and not (its >= 0 and its == array):
            break
        if not _let(space.limits, space.claims, space.first_claim, number, True):
            continue
        if its >= 0 and its == rejected:
            continue
        if its != array:
            array, of_array = its, ZERO
        elif its >= 0 and of_array >= rule.of_array:
            continue
        rejected = its  # until it is not
        part, user = columns[PARTITION, number], columns[USER, number]
        if 0 < rule.of_user <= count[OF_USER, user] or 0 < rule.of_partition <= count[OF_PART, part]:
            continue
        count[OF_USER, user] += 1
        count[OF_PART, part] += 1
        now_only = now - run.jobs[ARRIVE, job] < rule.age or 0 < rule.reserved <= count[RESERVATIONS, part]
        made, at, tried = _planned(rule, cap, run, job, part, now, now_only)
        tested += tried
        if made == NOTHING:
            continue
        if made != PLANNED and not _let(space.limits, space.claims, space.first_claim, number, False):
            continue
        length = run.jobs[ESTIMATE, job]
        run.jobs[PLACE, job] = at
        if made == STARTS:
            started += 1
            rejected = NONE
            n_started = _give(rule, cap, run, job, now, n_started)
            if cap.rows[EXCLUSIVE, job] == 1 and info[SPANS] < rule.table:
                _reserve(rule, ZERO, _slot_end(rule, now, length))
            if 0 < rule.started <= started:
                break
        elif made == RESERVED:
            count[RESERVATIONS, part] += 1
            rejected = NONE
            of_array += 1
            if info[SPANS] >= rule.table:
                break
            _reserve(rule, at // rule.resolution * rule.resolution, _slot_end(rule, at, length))
    return n_started


@inner
def _main_loop(rule: SlurmRule, cap: Any, run: Run, queue: Ints, now: int, depth: int) -> int:
    """One pass of it; how many jobs start. Those that still wait are then in ORDER."""
    space, words, n_started, left = rule.space, rule.space.words, ZERO, ZERO
    blocked = space.counts[OF_PART]
    _clear(words, LEFT)
    for i in range(space.counts.shape[1]):
        blocked[i] = 0
    for i in range(run.info[WAITING]):
        job = queue[i]
        run.jobs[PLACE, job] = NONE
        number = run.jobs[NUMBER, job]
        part = space.columns[PARTITION, number]
        begins = False
        if i <= depth and blocked[part] == 0 and _let(space.limits, space.claims, space.first_claim, number, False):
            _beside_outages(rule, cap, job, part, now, now, run.jobs[ESTIMATE, job], False)
            _allowed(rule, cap, job)
            for w in range(words.shape[1]):
                words[ALLOWED, w] &= ~words[LEFT, w]
            begins = _has_members(words, ALLOWED, _least_nodes(cap, job)) and _choose(rule, cap, job, rule.newer)
            if begins:
                n_started = _give(rule, cap, run, job, now, n_started)
            else:
                blocked[part] = 1
                for w in range(words.shape[1]):
                    words[LEFT, w] |= space.parts[part, w]
        if not begins:
            run.lists[ORDER, left] = job
            left += 1
    return n_started


@inner
def _look(rule: SlurmRule, cap: Any, run: Run, now: int) -> None:
    """What is free on each node, which are down, and who runs, by their expected ends."""
    space, fleet, words = rule.space, cap.free, rule.space.words
    for node in range(space.nodes.shape[1]):
        least_free(fleet, fleet[fleet[AT_NODES] + node], ZERO, ONE, space.free[node])
    _clear(words, OUT)
    for one in range(space.outages.shape[1]):
        begin, end = space.outages[OUT_FROM, one], space.outages[OUT_UNTIL, one]
        if _is_down(space, one) and begin <= now < end:
            for w in range(words.shape[1]):
                words[OUT, w] |= space.outage_words[one, w]
    if space.first_claim.shape[0] > 0:
        limits = space.limits
        for limit in range(limits.shape[1]):
            limits[LIMIT_LEFT, limit] = limits[LIMIT_MOST, limit]
        for i in range(run.info[RUNNING]):
            _claim(limits, space.claims, space.first_claim, run.jobs[NUMBER, run.lists[END_JOB, i]])


@inner
def _line_up(rule: SlurmRule, cap: Any, run: Run) -> None:
    """The running jobs by their expected ends, with what they have of each node; those that have just started stand
    there."""
    space, at = rule.space, rule.space.info[RUNNERS]
    many = at + run.info[RUNNING]
    for i in range(at, many):
        job = run.lists[END_JOB, i - at]
        space.ends[ENDS_JOB, i], space.ends[ENDS_AT, i] = job, run.jobs[START, job] + run.jobs[ESTIMATE, job]
        _list_pairs(space, cap, job, cap.placed, i)
    # A heap sort: the running jobs are thousands.
    for root in range(many // 2 - 1, -1, -1):
        _sink(space.ends, run, root, many)
    for last in range(many - 1, 0, -1):
        _swap(space.ends, ZERO, last)
        _sink(space.ends, run, ZERO, last)
    space.info[RUNNERS] = many


@inner
def _swap(ends: Ints, one: int, other: int) -> None:
    for row in range(END_ROWS):
        ends[row, one], ends[row, other] = ends[row, other], ends[row, one]


@inner
def _sink(ends: Ints, run: Run, root: int, many: int) -> None:
    while 2 * root + 1 < many:
        child = 2 * root + 1
        if child + 1 < many and _is_later(ends, run, child + 1, child):
            child += 1
        if not _is_later(ends, run, child, root):
            return
        _swap(ends, root, child)
        root = child


@inner
def _is_later(ends: Ints, run: Run, one: int, other: int) -> bool:
    if ends[ENDS_AT, one] != ends[ENDS_AT, other]:
        return ends[ENDS_AT, one] > ends[ENDS_AT, other]
    return _after(run, ends[ENDS_JOB, one], ends[ENDS_JOB, other])


@inner
def _decide_slurm(rule: SlurmRule, cap: Any, run: Run, now: int) -> int:
    waiting = run.info[WAITING]
    run.info[WAKE] = _NEVER
    if waiting == 0:
        return ZERO
    _look(rule, cap, run, now)
    rule.space.info[RUNNERS] = rule.space.info[PAIRS] = ZERO
    everything = now % rule.full == 0
    queue, _ = sort_if_moving(run, rule, now)
    n_started = _main_loop(rule, cap, run, queue, now, _NEVER if everything else rule.depth)
    if (now - rule.phase) % rule.interval == 0:
        n_started = _cycle(rule, cap, run, now, waiting - n_started, n_started)
    if n_started < waiting:
        next_cycle = now + rule.interval - (now - rule.phase) % rule.interval
        run.info[WAKE] = min(next_cycle, now + rule.full - now % rule.full)
    return n_started


answers(SlurmRule, decide=_decide_slurm)
