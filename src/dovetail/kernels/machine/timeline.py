"""Profile: free capacity as a step function of time, in a tree of three levels.

Entry i of a profile says what is free from its instant until the next entry's; the last one holds for ever.
Entries live in leaves of at most LEAF entries; leaves have an order; FAN neighbouring leaves form a group.
Each leaf and each group knows the least and the most that is free anywhere in it, so a search for the first
instant with enough (or not enough) capacity descends group, leaf, entry and skips the rest. A profile with one
leaf, the common case, is a plain sorted array. Adding to a range touches two leaves and the summaries between.

All of it lies in one array, because each array that a compiled function is given costs time at every call:

    header   LEAVES in use, HOLES and FITS counted, address of the rows, of the groups, number of leaves
    leaves   LEAF instants | LEAF * K free (less the leaf's `add`) | number of entries | K to add to every entry
    rows     one per leaf, in order of time: address of the leaf | its first instant | K least free | K most free
    groups   one per FAN rows: K least free | K most free

K, the number of resources, is `len(profile.width)`: a constant when compiled.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.kernels.compile import inner, jit

LEAF = 64
FAN = 16

# Numbers of NumPy's type: a plain literal argument would make Numba compile the callee once more, just for it.
_0: int = np.int64(0)  # type: ignore[assignment]
GIVE: int = np.int64(1)  # type: ignore[assignment]
TAKE: int = np.int64(-1)  # type: ignore[assignment]

# Positions in the header.
LEAVES, HOLES, FITS, ROWS, GROUPS, LEAVES_MOST = range(6)
"""HOLES: how often a fit met enough free capacity that did not last long enough. FITS: fits asked for."""
HEADER = 8

# Positions in a row.
ADDRESS, FIRST, LOW = range(3)


class Profile(NamedTuple):
    """One array that the caller owns, and K zeros of which only the number matters."""

    mem: Ints
    width: tuple[int, ...]


def new_profile(entries: int, resources: int = 1) -> Profile:
    """Room for at least that many entries, however they come to lie in leaves (see `_squeeze`)."""
    k_n = resources
    leaves = 2 * (max(entries, 1) // LEAF + 3)
    rows = HEADER + leaves * (LEAF * (1 + k_n) + 1 + k_n)
    groups = rows + leaves * (2 + 2 * k_n)
    mem = np.zeros(groups + (leaves // FAN + 1) * 2 * k_n, np.int64)
    mem[ROWS], mem[GROUPS], mem[LEAVES_MOST] = rows, groups, leaves
    for i in range(leaves):
        mem[rows + i * (2 + 2 * k_n)] = HEADER + i * (LEAF * (1 + k_n) + 1 + k_n)
    return Profile(mem, (0,) * k_n)


@jit
def entries_most(p: Profile) -> int:
    """How many entries a profile has room for."""
    return (p.mem[LEAVES_MOST] - 4) * (LEAF // 2)


@inner
def _row(p: Profile, pos: int) -> int:
    """Address of the row of the leaf at a position."""
    return p.mem[ROWS] + pos * (2 + 2 * len(p.width))


@inner
def _count(p: Profile, leaf: int) -> int:
    """Address of a leaf's number of entries; K values to add follow."""
    return leaf + LEAF * (1 + len(p.width))


@jit
def clear(p: Profile, at: int, total: Ints) -> None:
    """Everything free from `at` on: total[:K]."""
    k_n = len(p.width)
    m = p.mem
    m[LEAVES] = 1
    row = _row(p, 0)
    leaf = m[row]
    count = _count(p, leaf)
    m[count] = 1
    m[leaf] = at
    m[row + FIRST] = at
    for k in range(k_n):
        m[leaf + LEAF + k] = total[k]
        m[count + 1 + k] = 0


@inner
def _sum_leaf(p: Profile, pos: int) -> None:
    """Recompute the row of the leaf at a position."""
    k_n = len(p.width)
    m = p.mem
    row = _row(p, pos)
    leaf = m[row]
    count = _count(p, leaf)
    m[row + FIRST] = m[leaf]
    for k in range(k_n):
        low = m[leaf + LEAF + k]
        high = low
        for i in range(1, m[count]):
            value = m[leaf + LEAF + i * k_n + k]
            low = min(low, value)
            high = max(high, value)
        m[row + LOW + k] = low + m[count + 1 + k]
        m[row + LOW + k_n + k] = high + m[count + 1 + k]


@inner
def _sum_groups(p: Profile, first: int, last: int) -> None:
    """Recompute the groups first..last (inclusive) from their rows."""
    k_n = len(p.width)
    m = p.mem
    for g in range(first, last + 1):
        end = min((g + 1) * FAN, m[LEAVES])
        for k in range(k_n):
            low, high = 1 << 62, -1 << 62
            for pos in range(g * FAN, end):
                row = _row(p, pos)
                low = min(low, m[row + LOW + k])
                high = max(high, m[row + LOW + k_n + k])
            m[m[GROUPS] + g * 2 * k_n + k] = low
            m[m[GROUPS] + g * 2 * k_n + k_n + k] = high


@inner
def _find_row(p: Profile, at: int) -> int:
    """Position of the leaf in force at an instant: the last whose first instant is not later."""
    low, high = 0, p.mem[LEAVES]
    while high - low > 1:
        mid = (low + high) >> 1
        if p.mem[_row(p, mid) + FIRST] <= at:
            low = mid
        else:
            high = mid
    return low


@inner
def _find_entry(p: Profile, leaf: int, at: int) -> int:
    """Index within the leaf of the entry in force at an instant."""
    low, high = 0, p.mem[_count(p, leaf)]
    while high - low > 1:
        mid = (low + high) >> 1
        if p.mem[leaf + mid] <= at:
            low = mid
        else:
            high = mid
    return low


@inner
def _split_leaf(p: Profile, pos: int) -> None:
    """Move the upper half of a full leaf into a spare one behind it."""
    k_n = len(p.width)
    m = p.mem
    n = m[LEAVES]
    width = 2 + 2 * k_n
    new = m[_row(p, n)]
    behind = _row(p, pos + 1)
    for i in range(_row(p, n) + width - 1, behind + width - 1, -1):
        m[i] = m[i - width]
    m[behind] = new
    m[LEAVES] = n + 1
    old = m[_row(p, pos)]
    old_count, new_count = _count(p, old), _count(p, new)
    half = m[old_count] // 2
    moved = m[old_count] - half
    for i in range(moved):
        m[new + i] = m[old + half + i]
    for i in range(moved * k_n):
        m[new + LEAF + i] = m[old + LEAF + half * k_n + i]
    for k in range(k_n):
        m[new_count + 1 + k] = m[old_count + 1 + k]
    m[old_count] = half
    m[new_count] = moved
    _sum_leaf(p, pos)
    _sum_leaf(p, pos + 1)
    _sum_groups(p, pos // FAN, n // FAN)


@inner
def _squeeze(p: Profile) -> None:
    """Put neighbouring leaves together that fit into one. Any two then hold more than LEAF entries, so that leaves are
    left to spare as long as there are no more than `entries_most` entries."""
    k_n = len(p.width)
    m = p.mem
    out = 0
    for pos in range(1, m[LEAVES]):
        here, next_one = m[_row(p, out)], m[_row(p, pos)]
        count, more = _count(p, here), _count(p, next_one)
        if m[count] + m[more] <= LEAF:
            for e in range(m[more]):
                m[here + m[count] + e] = m[next_one + e]
                for k in range(k_n):
                    value = m[next_one + LEAF + e * k_n + k] + m[more + 1 + k] - m[count + 1 + k]
                    m[here + LEAF + (m[count] + e) * k_n + k] = value
            m[count] += m[more]
        else:
            out += 1
            m[_row(p, pos)] = m[_row(p, out)]  # the address of a leaf that was emptied, or its own
            m[_row(p, out)] = next_one
    m[LEAVES] = out + 1
    for pos in range(out + 1):
        _sum_leaf(p, pos)
    _sum_groups(p, _0, out // FAN)


@inner
def _cut(p: Profile, at: int) -> None:
    """Make `at` an instant of the profile, so that ranges can begin or end there."""
    k_n = len(p.width)
    m = p.mem
    pos = _find_row(p, at)
    leaf = m[_row(p, pos)]
    i = _find_entry(p, leaf, at)
    if m[leaf + i] == at:
        return
    if m[_count(p, leaf)] == LEAF:
        if m[LEAVES] == m[LEAVES_MOST]:
            _squeeze(p)
            pos = _find_row(p, at)
        _split_leaf(p, pos)
        if m[_row(p, pos + 1) + FIRST] <= at:
            pos += 1
        leaf = m[_row(p, pos)]
        i = _find_entry(p, leaf, at)
    count = _count(p, leaf)
    for e in range(leaf + m[count], leaf + i + 1, -1):
        m[e] = m[e - 1]
    for e in range(leaf + LEAF + m[count] * k_n + k_n - 1, leaf + LEAF + (i + 1) * k_n - 1, -1):
        m[e] = m[e - k_n]
    m[leaf + i + 1] = at
    m[count] += 1


@inner
def _drop_leaf(p: Profile, pos: int) -> None:
    """Take an empty leaf out of the order; it becomes the first spare one."""
    m = p.mem
    width = 2 + 2 * len(p.width)
    n = m[LEAVES] - 1
    gone = m[_row(p, pos)]
    for i in range(_row(p, pos), _row(p, n)):
        m[i] = m[i + width]
    m[_row(p, n)] = gone
    m[LEAVES] = n
    _sum_groups(p, pos // FAN, n // FAN)


@inner
def _join(p: Profile, at: int) -> None:
    """Remove the instant `at` if nothing changes there and it is not the profile's first."""
    k_n = len(p.width)
    m = p.mem
    pos = _find_row(p, at)
    leaf = m[_row(p, pos)]
    i = _find_entry(p, leaf, at)
    if m[leaf + i] != at or (pos == 0 and i == 0):
        return
    count = _count(p, leaf)
    before, j = leaf, i - 1
    if i == 0:
        before = m[_row(p, pos - 1)]
        j = m[_count(p, before)] - 1
    for k in range(k_n):
        here = m[leaf + LEAF + i * k_n + k] + m[count + 1 + k]
        if here != m[before + LEAF + j * k_n + k] + m[_count(p, before) + 1 + k]:
            return
    m[count] -= 1
    if m[count] == 0:
        _drop_leaf(p, pos)
        return
    for e in range(leaf + i, leaf + m[count]):
        m[e] = m[e + 1]
    for e in range(leaf + LEAF + i * k_n, leaf + LEAF + m[count] * k_n):
        m[e] = m[e + k_n]
    if m[LEAVES] > 1:
        _sum_leaf(p, pos)
        _sum_groups(p, pos // FAN, pos // FAN)


@inner
def _change_leaf(p: Profile, leaf: int, i: int, end: int, need: Ints, offset: int, sign: int) -> None:
    """Add to the entries of one leaf from index i on that lie before `end`."""
    k_n = len(p.width)
    m = p.mem
    last = m[_count(p, leaf)]
    while i < last and m[leaf + i] < end:
        for k in range(k_n):
            m[leaf + LEAF + i * k_n + k] += sign * need[offset + k]
        i += 1


@inner
def change(p: Profile, begin: int, end: int, need: Ints, offset: int, sign: int) -> None:
    """Add sign * need[offset:offset+K] to what is free in [begin, end)."""
    k_n = len(p.width)
    m = p.mem
    if begin >= end:
        return
    _cut(p, begin)
    _cut(p, end)
    pos = _find_row(p, begin)
    leaf = m[_row(p, pos)]
    i = _find_entry(p, leaf, begin)
    n = m[LEAVES]
    if n == 1:
        _change_leaf(p, leaf, i, end, need, offset, sign)
        return
    first_pos = pos
    while pos < n and m[_row(p, pos) + FIRST] < end:
        row = _row(p, pos)
        leaf = m[row]
        if i == 0 and pos + 1 < n and m[_row(p, pos + 1) + FIRST] <= end:  # all of the leaf
            for k in range(k_n):
                m[_count(p, leaf) + 1 + k] += sign * need[offset + k]
                m[row + LOW + k] += sign * need[offset + k]
                m[row + LOW + k_n + k] += sign * need[offset + k]
        else:
            _change_leaf(p, leaf, i, end, need, offset, sign)
            _sum_leaf(p, pos)
        i = 0
        pos += 1
    _sum_groups(p, first_pos // FAN, (pos - 1) // FAN)


@inner
def give_back(p: Profile, begin: int, end: int, need: Ints, offset: int) -> None:
    """Undo a reservation over [begin, end) and forget the instants at which nothing changes any more."""
    if begin >= end:
        return
    change(p, begin, end, need, offset, GIVE)
    _join(p, end)
    _join(p, begin)


@inner
def advance(p: Profile, now: int) -> None:
    """Forget all that lies before `now`: the profile begins there."""
    k_n = len(p.width)
    m = p.mem
    for _ in range(_find_row(p, now)):
        _drop_leaf(p, _0)
    leaf = m[_row(p, 0)]
    if m[leaf] >= now:
        return
    i = _find_entry(p, leaf, now)
    count = _count(p, leaf)
    if i > 0:
        m[count] -= i
        for e in range(leaf, leaf + m[count]):
            m[e] = m[e + i]
        for e in range(leaf + LEAF, leaf + LEAF + m[count] * k_n):
            m[e] = m[e + i * k_n]
    m[leaf] = now
    m[_row(p, 0) + FIRST] = now
    if m[LEAVES] > 1:
        _sum_leaf(p, _0)
        _sum_groups(p, _0, _0)


@jit
def copy(source: Profile, target: Profile) -> None:
    """Make `target` equal to `source`, with sparse leaves put together. It must have as many leaves."""
    k_n = len(source.width)
    m, w = source.mem, target.mem
    out = -1
    filled = LEAF
    for pos in range(m[LEAVES]):
        s = m[_row(source, pos)]
        s_count = _count(source, s)
        count = m[s_count]
        if filled + count > LEAF * 3 // 4:
            out += 1
            filled = 0
        t = w[_row(target, out)]
        for e in range(count):
            w[t + filled + e] = m[s + e]
        for e in range(count):
            for k in range(k_n):
                w[t + LEAF + (filled + e) * k_n + k] = m[s + LEAF + e * k_n + k] + m[s_count + 1 + k]
        filled += count
        w[_count(target, t)] = filled
    w[LEAVES] = out + 1
    for pos in range(out + 1):
        row = _row(target, pos)
        w[row + FIRST] = w[w[row]]
        for k in range(k_n):
            w[_count(target, w[row]) + 1 + k] = 0
        if out > 0:
            _sum_leaf(target, pos)
    if out > 0:
        _sum_groups(target, _0, out // FAN)


@inner
def free_at(p: Profile, at: int, k: int) -> int:
    """What is free of resource k at an instant."""
    leaf = p.mem[_row(p, _find_row(p, at))]
    i = _find_entry(p, leaf, at)
    return p.mem[leaf + LEAF + i * len(p.width) + k] + p.mem[_count(p, leaf) + 1 + k]


@inner
def _next_enough(p: Profile, pos: int, i: int, need: Ints, offset: int) -> tuple[int, int]:
    """The first entry from (pos, i) on where enough is free; position -1 if there is none."""
    k_n = len(p.width)
    m = p.mem
    n = m[LEAVES]
    while True:
        leaf = m[_row(p, pos)]
        count = _count(p, leaf)
        while i < m[count]:
            enough = True
            for k in range(k_n):
                enough = enough and m[leaf + LEAF + i * k_n + k] + m[count + 1 + k] >= need[offset + k]
            if enough:
                return pos, i
            i += 1
        i = 0
        pos += 1
        # Invariant: no entry before leaf `pos` will do. Skip leaves and groups whose most is too little.
        while pos < n:
            skip = 0
            for k in range(k_n):
                if m[_row(p, pos) + LOW + k_n + k] < need[offset + k]:
                    skip = 1
                if pos % FAN == 0 and m[m[GROUPS] + (pos // FAN * 2 + 1) * k_n + k] < need[offset + k]:
                    skip = FAN
                    break
            if skip == 0:
                break
            pos += skip
        if pos >= n:
            return -1, 0


@inner
def _next_short(p: Profile, pos: int, i: int, need: Ints, offset: int, end: int) -> tuple[int, int]:
    """The first entry from (pos, i) on, before `end`, where too little is free; position -1 if there is none."""
    k_n = len(p.width)
    m = p.mem
    n = m[LEAVES]
    while True:
        leaf = m[_row(p, pos)]
        count = _count(p, leaf)
        while i < m[count]:
            if m[leaf + i] >= end:
                return -1, 0
            for k in range(k_n):
                if m[leaf + LEAF + i * k_n + k] + m[count + 1 + k] < need[offset + k]:
                    return pos, i
            i += 1
        i = 0
        pos += 1
        # Invariant: all entries before leaf `pos` hold. Skip leaves and groups whose least is enough.
        while pos < n and m[_row(p, pos) + FIRST] < end:
            skip = FAN if pos % FAN == 0 else 1
            for k in range(k_n):
                if m[_row(p, pos) + LOW + k] < need[offset + k]:
                    skip = 0
                    break
                if pos % FAN == 0 and m[m[GROUPS] + pos // FAN * 2 * k_n + k] < need[offset + k]:
                    skip = 1
            if skip == 0:
                break
            pos += skip
        if pos >= n or m[_row(p, pos) + FIRST] >= end:
            return -1, 0


@inner
def first_enough(p: Profile, at: int, need: Ints, offset: int) -> int:
    """The first instant from `at` on when need[offset:offset+K] is free; -1 if never."""
    pos = _find_row(p, at)
    pos, i = _next_enough(p, pos, _find_entry(p, p.mem[_row(p, pos)], at), need, offset)
    return max(at, p.mem[p.mem[_row(p, pos)] + i]) if pos >= 0 else -1


@inner
def first_short(p: Profile, at: int, need: Ints, offset: int) -> int:
    """The first instant from `at` on when it is not; NEVER if it always is."""
    pos = _find_row(p, at)
    pos, i = _next_short(p, pos, _find_entry(p, p.mem[_row(p, pos)], at), need, offset, NEVER)
    return max(at, p.mem[p.mem[_row(p, pos)] + i]) if pos >= 0 else NEVER


@inner
def holds(p: Profile, begin: int, end: int, need: Ints, offset: int) -> bool:
    """Whether need[offset:offset+K] is free throughout [begin, end)."""
    pos = _find_row(p, begin)
    i = _find_entry(p, p.mem[_row(p, pos)], begin)
    return _next_short(p, pos, i, need, offset, end)[0] < 0


@inner
def earliest(p: Profile, begin: int, length: int, need: Ints, offset: int) -> int:
    """The first instant from `begin` on at which need[offset:offset+K] is free for `length`; -1 if never."""
    m = p.mem
    pos = _find_row(p, begin)
    i = _find_entry(p, m[_row(p, pos)], begin)
    m[FITS] += 1
    while True:
        pos, i = _next_enough(p, pos, i, need, offset)
        if pos < 0:
            return -1
        at = max(begin, m[m[_row(p, pos)] + i])
        pos, i = _next_short(p, pos, i, need, offset, at + length)
        if pos < 0:
            return at
        m[HOLES] += 1
