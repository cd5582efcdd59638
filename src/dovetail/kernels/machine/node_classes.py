"""A fleet: nodes in classes of what is free on them over time.

Nodes of one kind on which the same is free from now on are one class, with one timeline: so a machine of 160,000 nodes
is as many classes as there are different timelines. A change takes nodes out of their class and puts them into that of
the new timeline, which is found by its hash. A class hands out its lowest node first (a pairing heap). With timelines
of one segment a fleet is an index by what is free now.

All is in one array, so that a copy of it is a plain copy: header, nodes, table of hashes, classes, segments.
"""

from __future__ import annotations

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.kernels.compile import inner, jit

# Numbers with NumPy's type: see timeline.py.
ZERO: int = np.int64(0)  # type: ignore[assignment]
ONE: int = np.int64(1)  # type: ignore[assignment]
NONE: int = np.int64(-1)  # type: ignore[assignment]

# The header. AT_*: where the nodes, the table, the classes and the segments begin. *_HIGH: first never used. *_FREE:
# first that is free again. HEADS: from here on, the first class of each kind.
NODES, WIDTH, TABLE, SEGMENTS, CLASS_HIGH, CLASS_FREE, SEG_HIGH, SEG_FREE = range(8)
AT_NODES, AT_TABLE, AT_CLASSES, AT_SEGMENTS, HEADS = range(8, 13)

# Of each node, NODES apart: its class, and its place in the heap of that: first child, next sibling, parent or sibling
# before.
CLASS, CHILD, SIBLING, BEFORE_NODE = range(4)

# Of each class, one after the other: its first node, first segment, and neighbours: in the table, and of its kind.
KIND, COUNT, ROOT, FIRST, HASH, CHAIN, BEFORE, AFTER = range(8)
CLASS_SIZE = 8

# Of each segment: its begin, the next one, then WIDTH numbers: what is free.
AT, NEXT, VALUES = range(3)


def new_fleet(kind_of: Ints, capacity: Ints, segments: int) -> Ints:
    """An idle fleet; `capacity` has a row per kind. With room for so many segments."""
    nodes, (kinds, width) = len(kind_of), capacity.shape
    classes = nodes + kinds + 2
    table = 1 << (2 * classes).bit_length()
    at_nodes = HEADS + kinds
    at_table = at_nodes + 4 * nodes
    at_classes = at_table + table
    at_segments = at_classes + CLASS_SIZE * classes
    fleet = np.zeros(at_segments + segments * (VALUES + width), np.int64)
    fleet[:HEADS] = [nodes, width, table, segments, 0, -1, 0, -1, at_nodes, at_table, at_classes, at_segments]
    fleet[HEADS:at_nodes] = -1
    fleet[at_nodes:at_classes] = -1
    _fill(fleet, kind_of, np.ascontiguousarray(capacity))
    return fleet


def larger_fleet(fleet: Ints) -> Ints:
    """The same with room for twice as many segments."""
    new = np.concatenate([fleet, np.zeros(len(fleet) - int(fleet[AT_SEGMENTS]), np.int64)])
    new[SEGMENTS] *= 2
    return new


@jit
def _fill(fleet: Ints, kind_of: Ints, capacity: Ints) -> None:
    """Put all nodes into the classes of idle ones, the last first: the heap is then a list."""
    for node in range(fleet[NODES] - 1, -1, -1):
        kind = kind_of[node]
        home = fleet[HEADS + kind]
        if home < 0:
            home = class_with(fleet, kind, capacity[kind])
        insert_node(fleet, home, node)


@inner
def copy_fleet(source: Ints, target: Ints) -> None:
    """Make `target`, of the same size, equal; only what is in use is copied."""
    for i in range(source[AT_CLASSES] + CLASS_SIZE * source[CLASS_HIGH]):
        target[i] = source[i]
    begin = source[AT_SEGMENTS]
    for i in range(begin, begin + source[SEG_HIGH] * (VALUES + source[WIDTH])):
        target[i] = source[i]


# Classes and segments are named by where they begin in the array.


@inner
def _new_segment(fleet: Ints, at: int) -> int:
    seg = fleet[SEG_FREE]
    if seg >= 0:
        fleet[SEG_FREE] = fleet[seg + NEXT]
    else:
        seg = fleet[AT_SEGMENTS] + fleet[SEG_HIGH] * (VALUES + fleet[WIDTH])
        fleet[SEG_HIGH] += 1
    fleet[seg + AT] = at
    fleet[seg + NEXT] = -1
    return seg


@inner
def _drop_segments(fleet: Ints, seg: int) -> None:
    while seg >= 0:
        after = fleet[seg + NEXT]
        fleet[seg + NEXT] = fleet[SEG_FREE]
        fleet[SEG_FREE] = seg
        seg = after


@inner
def current(fleet: Ints, seg: int, now: int) -> int:
    """The segment of a timeline that an instant is in."""
    after = fleet[seg + NEXT]
    while after >= 0 and fleet[after + AT] <= now:
        seg = after
        after = fleet[seg + NEXT]
    return seg


@inner
def _same_values(fleet: Ints, one: int, other: int) -> bool:
    for w in range(VALUES, VALUES + fleet[WIDTH]):
        if fleet[one + w] != fleet[other + w]:
            return False
    return True


@inner
def _hash(fleet: Ints, seg: int) -> int:
    x = np.uint64(1469598103934665603)
    first = True
    while seg >= 0:
        if not first:
            x = (x ^ np.uint64(fleet[seg + AT])) * np.uint64(1099511628211)
        for w in range(VALUES, VALUES + fleet[WIDTH]):
            x = (x ^ np.uint64(fleet[seg + w])) * np.uint64(1099511628211)
        first = False
        seg = fleet[seg + NEXT]
    x ^= x >> np.uint64(29)
    return np.int64(x & np.uint64(0x7FFFFFFFFFFFFFFF))  # type: ignore[return-value]


@inner
def _same_timeline(fleet: Ints, one: int, other: int) -> bool:
    """Whether two timelines are equal; where their first segments begin does not matter."""
    while _same_values(fleet, one, other):
        one, other = fleet[one + NEXT], fleet[other + NEXT]
        if one < 0 or other < 0:
            return one == other
        if fleet[one + AT] != fleet[other + AT]:
            return False
    return False


@inner
def class_of(fleet: Ints, kind: int, seg: int, now: int) -> int:
    """The class of this kind with this timeline, which begins now; made if there is none. The timeline is its own."""
    code = _hash(fleet, seg)
    slot = fleet[AT_TABLE] + (code + kind) % fleet[TABLE]
    home = fleet[slot]
    while home >= 0:
        if fleet[home + HASH] == code and fleet[home + KIND] == kind:
            # What has passed is not taken off timelines: the hash may be that of the past.
            if _same_timeline(fleet, current(fleet, fleet[home + FIRST], now), seg):
                _drop_segments(fleet, seg)
                return home
        home = fleet[home + CHAIN]
    home = fleet[CLASS_FREE]
    if home >= 0:
        fleet[CLASS_FREE] = fleet[home + CHAIN]
    else:
        home = fleet[AT_CLASSES] + CLASS_SIZE * fleet[CLASS_HIGH]
        fleet[CLASS_HIGH] += 1
    first = fleet[HEADS + kind]
    fleet[home + KIND], fleet[home + COUNT], fleet[home + ROOT], fleet[home + FIRST] = kind, 0, -1, seg
    fleet[home + HASH], fleet[home + CHAIN] = code, fleet[slot]
    fleet[slot] = home
    # Behind the first, which is that of the idle nodes as long as there are any: whoever looks for room finds it soon.
    if first < 0:
        fleet[home + BEFORE], fleet[home + AFTER] = -1, -1
        fleet[HEADS + kind] = home
        return home
    second = fleet[first + AFTER]
    fleet[home + BEFORE], fleet[home + AFTER] = first, second
    fleet[first + AFTER] = home
    if second >= 0:
        fleet[second + BEFORE] = home
    return home


@inner
def forget_past(fleet: Ints, now: int) -> None:
    """Take what has passed off all timelines, so that those on which nothing changes stay short too."""
    for kind in range(fleet[AT_NODES] - HEADS):
        home = fleet[HEADS + kind]
        while home >= 0:
            first = fleet[home + FIRST]
            seg = current(fleet, first, now)
            if seg != first:
                last = first
                while fleet[last + NEXT] != seg:
                    last = fleet[last + NEXT]
                fleet[last + NEXT] = -1
                _drop_segments(fleet, first)
                _out_of_table(fleet, home)
                code = _hash(fleet, seg)
                slot = fleet[AT_TABLE] + (code + kind) % fleet[TABLE]
                fleet[home + FIRST], fleet[home + HASH], fleet[home + CHAIN] = seg, code, fleet[slot]
                fleet[slot] = home
            home = fleet[home + AFTER]


@inner
def class_with(fleet: Ints, kind: int, vector: Ints) -> int:
    """The class of this kind on whose nodes just so much is free, now and for ever."""
    seg = _new_segment(fleet, ZERO)
    for w in range(fleet[WIDTH]):
        fleet[seg + VALUES + w] = vector[w]
    return class_of(fleet, kind, seg, ZERO)


@inner
def _out_of_table(fleet: Ints, home: int) -> None:
    slot = fleet[AT_TABLE] + (fleet[home + HASH] + fleet[home + KIND]) % fleet[TABLE]
    if fleet[slot] == home:
        fleet[slot] = fleet[home + CHAIN]
        return
    other = fleet[slot]
    while fleet[other + CHAIN] != home:
        other = fleet[other + CHAIN]
    fleet[other + CHAIN] = fleet[home + CHAIN]


@inner
def _drop_class(fleet: Ints, home: int) -> None:
    """Take an empty class away."""
    kind = fleet[home + KIND]
    before, after = fleet[home + BEFORE], fleet[home + AFTER]
    if before >= 0:
        fleet[before + AFTER] = after
    else:
        fleet[HEADS + kind] = after
    if after >= 0:
        fleet[after + BEFORE] = before
    _out_of_table(fleet, home)
    _drop_segments(fleet, fleet[home + FIRST])
    fleet[home + CHAIN] = fleet[CLASS_FREE]
    fleet[CLASS_FREE] = home


# The heap of a class: a node's children are larger than it.


@inner
def _meld(fleet: Ints, one: int, other: int) -> int:
    """Two heaps become one. Returns its root; a root has no sibling and nobody before it."""
    if one < 0:
        return other
    if other < 0:
        return one
    if other < one:
        one, other = other, one
    n = fleet[NODES]
    nodes = fleet[AT_NODES]
    child = fleet[nodes + CHILD * n + one]
    fleet[nodes + SIBLING * n + other] = child
    fleet[nodes + BEFORE_NODE * n + other] = one
    if child >= 0:
        fleet[nodes + BEFORE_NODE * n + child] = other
    fleet[nodes + CHILD * n + one] = other
    return one


@inner
def _children(fleet: Ints, node: int) -> int:
    """Make the children of a node a heap of their own: in pairs from the first, then from the last pair back."""
    n = fleet[NODES]
    nodes = fleet[AT_NODES]
    child = fleet[nodes + CHILD * n + node]
    fleet[nodes + CHILD * n + node] = -1
    pairs = NONE
    while child >= 0:
        other = fleet[nodes + SIBLING * n + child]
        after = fleet[nodes + SIBLING * n + other] if other >= 0 else NONE
        fleet[nodes + SIBLING * n + child] = -1
        fleet[nodes + BEFORE_NODE * n + child] = -1
        if other >= 0:
            fleet[nodes + SIBLING * n + other] = -1
            fleet[nodes + BEFORE_NODE * n + other] = -1
        pair = _meld(fleet, child, other)
        fleet[nodes + SIBLING * n + pair] = pairs  # a list of pairs, the last first
        pairs = pair
        child = after
    root = NONE
    while pairs >= 0:
        after = fleet[nodes + SIBLING * n + pairs]
        fleet[nodes + SIBLING * n + pairs] = -1
        root = _meld(fleet, root, pairs)
        pairs = after
    return root


@inner
def insert_node(fleet: Ints, home: int, node: int) -> None:
    """Put a node, that is in no class, into one."""
    fleet[fleet[AT_NODES] + node] = home  # CLASS
    fleet[home + COUNT] += 1
    fleet[home + ROOT] = _meld(fleet, fleet[home + ROOT], node)


@inner
def pop_node(fleet: Ints, home: int) -> int:
    """Take the lowest node out of the heap of its class. It still counts there until it is moved."""
    node = fleet[home + ROOT]
    fleet[home + ROOT] = _children(fleet, node)
    return node


@inner
def _cut_node(fleet: Ints, home: int, node: int) -> None:
    """Take any node out of the heap of its class."""
    if fleet[home + ROOT] == node:
        pop_node(fleet, home)
        return
    n = fleet[NODES]
    nodes = fleet[AT_NODES]
    before, after = fleet[nodes + BEFORE_NODE * n + node], fleet[nodes + SIBLING * n + node]
    if fleet[nodes + CHILD * n + before] == node:
        fleet[nodes + CHILD * n + before] = after
    else:
        fleet[nodes + SIBLING * n + before] = after
    if after >= 0:
        fleet[nodes + BEFORE_NODE * n + after] = before
    fleet[nodes + SIBLING * n + node] = -1
    fleet[nodes + BEFORE_NODE * n + node] = -1
    fleet[home + ROOT] = _meld(fleet, fleet[home + ROOT], _children(fleet, node))


@inner
def changed(fleet: Ints, home: int, now: int, begin: int, end: int, delta: Ints) -> int:
    """The class of this kind in which from `begin` to `end` so much more is free than in this one."""
    width = fleet[WIDTH]
    seg = current(fleet, fleet[home + FIRST], now)
    first = last = NONE
    at = now
    while seg >= 0:
        after = fleet[seg + NEXT]
        until = fleet[after + AT] if after >= 0 else NEVER
        # Up to three pieces of each segment: before, between and behind begin and end.
        while at < until:
            inside = begin <= at < end
            stop = until
            if at < begin:
                stop = min(until, begin)
            elif at < end:
                stop = min(until, end)
            new = _new_segment(fleet, at)
            for w in range(width):
                fleet[new + VALUES + w] = fleet[seg + VALUES + w] + (delta[w] if inside else 0)
            if last >= 0 and _same_values(fleet, last, new):
                _drop_segments(fleet, new)
            else:
                if last >= 0:
                    fleet[last + NEXT] = new
                else:
                    first = new
                last = new
            at = stop
        seg = after
    return class_of(fleet, fleet[home + KIND], first, now)


@inner
def move_node(fleet: Ints, node: int, target: int, popped: bool) -> None:
    """Put a node into another class; `popped`: it is out of its heap already. A class that it leaves empty is gone."""
    home = fleet[fleet[AT_NODES] + node]
    if not popped:
        _cut_node(fleet, home, node)
    fleet[home + COUNT] -= 1
    insert_node(fleet, target, node)
    if fleet[home + COUNT] == 0:
        _drop_class(fleet, home)
