"""The profile tree against a plain array of seconds, and, where it has many leaves, a plain sorted list."""

from __future__ import annotations

import random
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.arrays import Ints
from dovetail.kernels.compile import jit
from dovetail.kernels.machine.timeline import (
    FAN,
    FIRST,
    FITS,
    GROUPS,
    HOLES,
    LEAF,
    LEAVES,
    LEAVES_MOST,
    LOW,
    ROWS,
    Profile,
    advance,
    change,
    clear,
    copy,
    earliest,
    entries_most,
    free_at,
    give_back,
    holds,
    new_profile,
)

pytestmark = pytest.mark.slow  # it compiles kernels of its own

TAKE, GIVE_BACK, ADVANCE, HOLDS, EARLIEST, FREE = range(6)


@jit
def call(p: Profile, what: int, begin: int, end: int, need: Ints) -> int:
    """An entrance from Python to the kernels; one function, because each takes seconds to compile."""
    if what == TAKE:
        change(p, begin, end, need, 1, -1)
    elif what == GIVE_BACK:
        give_back(p, begin, end, need, 1)
    elif what == ADVANCE:
        advance(p, begin)
    elif what == HOLDS:
        return int(holds(p, begin, end, need, 1))
    elif what == EARLIEST:
        return earliest(p, begin, end, need, 1)
    else:
        return free_at(p, begin, end)
    return 0


def fresh(entries: int, total: Ints, at: int = 0) -> Profile:
    p = new_profile(entries, len(total))
    clear(p, at, total)
    return p


def behind(need: Ints) -> Ints:
    """What a job needs, at offset 1, behind something that must not be read."""
    return np.concatenate([np.array([1 << 40], np.int64), need])


def steps_of(p: Profile) -> tuple[Ints, Ints]:
    """All instants and what is free from each on; fails where the summaries above the leaves are wrong."""
    k, m = len(p.width), p.mem
    times, free = [], []
    lows, highs = [], []
    assert 1 <= m[LEAVES] <= m[LEAVES_MOST]
    for pos in range(int(m[LEAVES])):
        row = int(m[ROWS]) + pos * (2 + 2 * k)
        leaf = int(m[row])
        count = leaf + LEAF * (1 + k)
        n = int(m[count])
        assert 1 <= n <= LEAF
        here = m[leaf + LEAF : leaf + LEAF + n * k].reshape(n, k) + m[count + 1 : count + 1 + k]
        times.append(m[leaf : leaf + n])
        free.append(here)
        assert m[row + FIRST] == m[leaf]
        lows.append(here.min(axis=0))
        highs.append(here.max(axis=0))
        if m[LEAVES] > 1:  # a single leaf is searched without a summary
            assert m[row + LOW : row + LOW + k].tolist() == lows[-1].tolist()
            assert m[row + LOW + k : row + LOW + 2 * k].tolist() == highs[-1].tolist()
    for first in range(0, len(lows) if len(lows) > 1 else 0, FAN):
        group = int(m[GROUPS]) + first // FAN * 2 * k
        assert m[group : group + k].tolist() == np.min(lows[first : first + FAN], axis=0).tolist()
        assert m[group + k : group + 2 * k].tolist() == np.max(highs[first : first + FAN], axis=0).tolist()
    return np.concatenate(times), np.concatenate(free)


# Small: one leaf, against an array with a value for every second --------------------------------------------


def first_fit(free: Ints, begin: int, length: int, need: Ints) -> tuple[int, int]:
    """The first second that fits, and how many stretches of enough, but too short, lie before it."""
    enough: npt.NDArray[np.bool_] = np.all(free >= need, axis=1)
    at, holes = begin, 0
    while not enough[at : at + length].all():
        holes += bool(enough[at] and (at == begin or not enough[at - 1]))
        at += 1
    return at, holes


@pytest.mark.parametrize("resources", [1, 2])
@pytest.mark.parametrize("part", range(10))
def test_small_profiles_equal_an_array_of_seconds(resources: int, part: int) -> None:
    for seed in range(10):
        _small(random.Random(1000 * part + seed), resources, operations=80, span=200, most=8)


def _small(rng: random.Random, resources: int, operations: int, span: int, most: int) -> None:
    p = fresh(2 * operations + 10, np.full(resources, most))
    free = np.full((3 * span, resources), most)
    held: list[tuple[int, int, Ints]] = []
    now = 0
    for _ in range(operations):
        need = np.array([rng.randint(0 if k else 1, most) for k in range(resources)])
        what = rng.random()
        if what < 0.5:
            begin, length = now + rng.randint(0, 3), rng.randint(1, span // 4)
            at, holes = first_fit(free, begin, length, need)
            before = int(p.mem[HOLES])
            assert call(p, EARLIEST, begin, length, behind(need)) == at
            assert int(p.mem[HOLES]) - before == holes
            if at + length < 2 * span:
                call(p, TAKE, at, at + length, behind(need))
                free[at : at + length] -= need
                held.append((at, at + length, need))
        elif what < 0.75 and held:
            begin, end, need = held.pop(rng.randrange(len(held)))
            call(p, GIVE_BACK, max(begin, now), end, behind(need))
            free[max(begin, now) : end] += need
        elif what < 0.85:
            begin = now + rng.randint(0, span)
            end = begin + rng.randint(1, 50)
            assert call(p, HOLDS, begin, end, behind(need)) == (free[begin:end] >= need).all()
        elif what < 0.9:
            p, old = new_profile(entries_most(p), resources), p
            copy(old, p)
        else:
            now = min(now + rng.randint(0, 5), span // 2)
            call(p, ADVANCE, now, 0, behind(need))
            held = [block for block in held if block[1] > now]
        at = now + rng.randint(0, span)
        assert [call(p, FREE, at, k, behind(need)) for k in range(resources)] == free[at].tolist()
    times, steps = steps_of(p)
    assert times[0] == now
    assert (np.diff(times) > 0).all()
    index = np.searchsorted(times, np.arange(now, len(free)), side="right") - 1
    assert (steps[index] == free[now:]).all()
    for begin, end, need in held:
        call(p, GIVE_BACK, max(begin, now), end, behind(need))
    assert steps_of(p)[0].tolist() == [now]


# Large: many leaves in several groups, against sorted instants ----------------------------------------------


@dataclass
class Steps:
    """A profile as sorted instants and what is free from each; every question looks at all of it."""

    times: Ints
    free: Ints

    def cut(self, at: int) -> int:
        i = int(np.searchsorted(self.times, at, side="right")) - 1
        if self.times[i] == at:
            return i
        self.times = np.insert(self.times, i + 1, at)
        self.free = np.insert(self.free, i + 1, self.free[i], axis=0)
        return i + 1

    def change(self, begin: int, end: int, need: Ints) -> None:
        first, last = self.cut(begin), self.cut(end)
        self.free[first:last] += need

    def advance(self, now: int) -> None:
        i = int(np.searchsorted(self.times, now, side="right")) - 1
        self.times, self.free = self.times[i:].copy(), self.free[i:]
        self.times[0] = max(now, self.times[0])

    def forget(self, at: int) -> None:
        """Take an instant out if nothing changes there."""
        i = int(np.searchsorted(self.times, at))
        if 0 < i < len(self.times) and self.times[i] == at and (self.free[i] == self.free[i - 1]).all():
            self.times, self.free = np.delete(self.times, i), np.delete(self.free, i, axis=0)

    def holds(self, begin: int, end: int, need: Ints) -> bool:
        first = int(np.searchsorted(self.times, begin, side="right")) - 1
        last = int(np.searchsorted(self.times, end))
        return bool((self.free[first:last] >= need).all())

    def earliest(self, begin: int, length: int, need: Ints) -> tuple[int, int]:
        """The first fit (-1: none), and how many stretches of enough that are too short lie before it."""
        first = int(np.searchsorted(self.times, begin, side="right")) - 1
        enough = (self.free[first:] >= need).all(axis=1)
        edges = np.flatnonzero(np.diff(np.concatenate([[False], enough, [False]])))
        instants = np.append(np.maximum(self.times[first:], begin), np.int64(1) << 60)
        for hole, (opens, closes) in enumerate(instants[edges.reshape(-1, 2)].tolist()):
            if closes - opens >= length:
                return opens, hole
        return -1, len(edges) // 2


SPAN = 10**9


def _range(rng: random.Random, now: int) -> tuple[int, int]:
    """Mostly short, sometimes over a good part of everything: whole leaves and groups get something added."""
    begin = now + rng.randrange(SPAN)
    return begin, begin + rng.choice((rng.randint(1, 10**5), rng.randint(1, 10**7), rng.randint(1, SPAN)))


def _filled(rng: random.Random, resources: int, blocks: int) -> tuple[Profile, Steps, list[tuple[int, int, Ints]]]:
    total = np.full(resources, 1000)
    p, slow = fresh(2 * blocks + 4000, total), Steps(np.zeros(1, np.int64), total[None].copy())
    held = []
    for i in range(blocks):
        begin, end = _range(rng, 0)
        need = np.array([rng.randint(0, 3) if i % 50 else rng.randint(100, 400) for _ in range(resources)])
        call(p, TAKE, begin, end, behind(need))
        slow.change(begin, end, -need)
        held.append((begin, end, need))
    return p, slow, held


@pytest.mark.parametrize(("resources", "blocks"), [(1, 6000), (2, 3500)])
def test_large_profiles_equal_sorted_instants(resources: int, blocks: int) -> None:
    rng = random.Random(resources)
    p, slow, held = _filled(rng, resources, blocks)
    assert p.mem[LEAVES] > 2 * FAN
    _compare(p, slow)
    now, found, never, all_holes = 0, 0, 0, 0
    for i in range(1500):
        what = rng.random()
        need = np.array([int(np.quantile(slow.free[:, k], rng.random())) for k in range(resources)])
        if what < 0.5:
            begin = now + rng.randrange(SPAN)
            length = rng.choice((1, rng.randint(1, 10**5), rng.randint(1, 10**8), rng.randint(1, SPAN)))
            if rng.random() < 0.1:
                need += 10**6
            fits, holes = int(p.mem[FITS]), int(p.mem[HOLES])
            at = call(p, EARLIEST, begin, length, behind(need))
            counted = int(p.mem[HOLES]) - holes
            assert (at, counted) == slow.earliest(begin, length, need)
            assert int(p.mem[FITS]) - fits == 1
            found, never, all_holes = found + (at > begin), never + (at < 0), all_holes + counted
        elif what < 0.7:
            begin, end = _range(rng, now)
            assert call(p, HOLDS, begin, end, behind(need)) == slow.holds(begin, end, need)
        elif what < 0.8:
            begin, end = _range(rng, now)
            call(p, TAKE, begin, end, behind(need))
            slow.change(begin, end, -need)
            held.append((begin, end, need))
        elif what < 0.98 and held:
            begin, end, need = held.pop(rng.randrange(len(held)))
            _give_back(p, slow, max(begin, now), end, need)
        else:
            now += rng.choice((0, 1, 10**3, 10**7))
            call(p, ADVANCE, now, 0, behind(need))
            slow.advance(now)
            held = [block for block in held if block[1] > now]
        if i % 250 == 0:
            _compare(p, slow)
    assert (found > 100, never > 10, all_holes > 1000) == (True, True, True)
    _compare(p, slow)
    _copies(p, slow, resources)
    # Everything given back: one instant is left, in one leaf.
    for begin, end, need in held:
        _give_back(p, slow, max(begin, now), end, need)
    _compare(p, slow)
    assert slow.times.tolist() == [now]
    assert p.mem[LEAVES] == 1


@pytest.mark.parametrize("resources", [1, 2])
@pytest.mark.parametrize("seed", range(4))
def test_profiles_of_two_leaves_equal_sorted_instants(resources: int, seed: int) -> None:
    """The smallest that are no plain arrays, with amounts that are much larger than the instants."""
    rng, many = random.Random(10 * resources + seed), 10**6
    total = np.full(resources, 10 * many)
    p, slow = fresh(LEAF, total), Steps(np.zeros(1, np.int64), total[None].copy())
    blocks = [(10 * i, 10 * i + 5) for i in range(LEAF // 2 + 1)]
    last = blocks[-1][1]
    for begin, end in [*blocks, (0, last - 30), (20, last), (0, last)]:
        need = np.array([rng.randint(1, many) for _ in range(resources)])
        call(p, TAKE, begin, end, behind(need))
        slow.change(begin, end, -need)
    assert p.mem[LEAVES] == 2
    _compare(p, slow)
    for _ in range(12):
        begin, length = rng.randrange(last // 2), rng.choice((1, 6, last // 2, 2 * last))
        need = np.array([int(np.quantile(slow.free[:, k], rng.choice((0, 0.9, 1)))) for k in range(resources)])
        holes = int(p.mem[HOLES])
        at = call(p, EARLIEST, begin, length, behind(need))
        assert (at, int(p.mem[HOLES]) - holes) == slow.earliest(begin, length, need)
        assert call(p, HOLDS, begin, begin + length, behind(need)) == slow.holds(begin, begin + length, need)


@pytest.mark.parametrize("resources", [1, 2])
@pytest.mark.parametrize("seed", range(3))
def test_profiles_of_two_groups_equal_sorted_instants(resources: int, seed: int) -> None:
    """As above in little time: few instants, and amounts that are much larger than they are."""
    rng, many = random.Random(100 * resources + seed), 10**6
    total = np.full(resources, 10 * many)
    p, slow = fresh(2000, total), Steps(np.zeros(1, np.int64), total[None].copy())
    held: list[tuple[int, int, Ints]] = []

    def take(begin: int, end: int) -> None:
        need = np.array([rng.randint(1, many) for _ in range(resources)])
        call(p, TAKE, begin, end, behind(need))
        slow.change(begin, end, -need)
        held.append((begin, end, need))

    for i in range(FAN * LEAF // 4 + LEAF):  # in rising order leaves are left half full
        take(100 * i, 100 * i + rng.choice((1, 50)))
    _compare(p, slow)
    last, leaves = int(slow.times[-1]), int(p.mem[LEAVES])
    assert leaves > FAN
    for i in range(LEAF):  # one in the middle becomes full, and those behind it move on
        take(last // 2 + 4 * i, last // 2 + 4 * i + 1)
    _compare(p, slow)
    assert p.mem[LEAVES] > leaves
    for i in range(40):
        begin = rng.randrange(last)
        take(begin, begin + rng.choice((1, rng.randint(1, last // 8), rng.randint(1, last))))
        if rng.random() < 0.3:
            begin, end, need = held.pop(rng.randrange(len(held)))
            _give_back(p, slow, begin, end, need)
        for _ in range(2):
            begin, length = rng.randrange(last), rng.choice((1, 2, rng.randint(1, last)))
            need = np.array([int(np.quantile(slow.free[:, k], rng.random())) for k in range(resources)])
            holes = int(p.mem[HOLES])
            at = call(p, EARLIEST, begin, length, behind(need))
            assert (at, int(p.mem[HOLES]) - holes) == slow.earliest(begin, length, need)
            assert call(p, HOLDS, begin, begin + length, behind(need)) == slow.holds(begin, begin + length, need)
        if i % 10 == 0:
            _compare(p, slow)
    _compare(p, slow)


@pytest.mark.parametrize("resources", [1, 2])
def test_sparse_leaves_are_put_together_before_they_run_out(resources: int) -> None:
    """As many leaves as there is room for, then few instants in each, something added to some of them as a whole, and
    many more instants in one."""
    p, rng = fresh(2 * LEAF, np.full(resources, 100)), random.Random(resources)
    slow = Steps(np.zeros(1, np.int64), np.full((1, resources), 100))
    blocks: list[tuple[int, int, int]] = []

    def change(what: int, begin: int, end: int, many: int) -> None:
        need = np.full(resources, many) + np.arange(resources)
        if what == TAKE:
            call(p, TAKE, begin, end, behind(need))
            slow.change(begin, end, -need)
        else:
            _give_back(p, slow, begin, end, need)

    while p.mem[LEAVES] < p.mem[LEAVES_MOST]:
        begin = 100 * len(blocks)
        blocks.append((begin, begin + 50, rng.randint(1, 9)))
        change(TAKE, *blocks[-1])
    for i, block in enumerate(blocks):
        if i % (LEAF // 8):
            change(GIVE_BACK, *block)
    assert p.mem[LEAVES] == p.mem[LEAVES_MOST]
    change(TAKE, blocks[len(blocks) // 3][0], blocks[len(blocks) // 2][0], 7)
    begin = blocks[len(blocks) // 2][0] + 1
    while p.mem[LEAVES] == p.mem[LEAVES_MOST]:
        change(TAKE, begin, begin + 1, 3)
        begin += 2
        assert len(slow.times) <= entries_most(p)
    _compare(p, slow)


def _give_back(p: Profile, slow: Steps, begin: int, end: int, need: Ints) -> None:
    call(p, GIVE_BACK, begin, end, behind(need))
    slow.change(begin, end, need)
    slow.forget(end)
    slow.forget(begin)


def _compare(p: Profile, slow: Steps) -> None:
    times, free = steps_of(p)
    assert np.array_equal(times, slow.times)
    assert np.array_equal(free, slow.free)
    sample = slow.times[:: max(1, len(slow.times) // 50)]
    for at in (*sample.tolist(), int(slow.times[-1]) + 7):
        i = int(np.searchsorted(slow.times, at, side="right")) - 1
        here = [call(p, FREE, at, k, slow.free[0]) for k in range(len(p.width))]
        assert here == slow.free[i].tolist()


def _copies(p: Profile, slow: Steps, resources: int) -> None:
    """A copy is equal, over whatever was there before, has no more leaves, and is independent."""
    other = new_profile(entries_most(p), resources)
    clear(other, 5, np.full(resources, 3))
    for i in range(300):
        call(other, TAKE, 10 * i + 5, 10 * i + 8, behind(np.full(resources, 2)))
    call(other, TAKE, 5, 10_000, behind(np.full(resources, 1)))  # something is added to whole leaves
    copy(p, other)
    assert other.mem[LEAVES] <= p.mem[LEAVES]
    _compare(other, slow)
    first = int(slow.times[0])
    call(other, TAKE, first, first + SPAN, behind(np.full(resources, 1)))
    _compare(p, slow)


def test_a_copy_puts_sparse_leaves_together() -> None:
    """300 blocks make several leaves; most are given back, so few instants are left in each."""
    p = fresh(2000, np.array([5]))
    need = np.array([0, 1])
    for i in range(300):
        call(p, TAKE, 10 * i, 10 * i + 5, need)
    for i in range(300):
        if i % 40:
            call(p, GIVE_BACK, 10 * i, 10 * i + 5, need)
    assert p.mem[LEAVES] > 4
    other = new_profile(2000)
    copy(p, other)
    assert other.mem[LEAVES] == 1
    assert np.array_equal(steps_of(other)[0], steps_of(p)[0])


def test_the_last_second_counts_and_the_end_does_not() -> None:
    """2 of 3 are taken in [10, 20)."""
    p = fresh(10, np.array([3]))
    call(p, TAKE, 10, 20, np.array([0, 2]))
    two = np.array([0, 2])
    assert [call(p, FREE, at, 0, two) for at in (9, 10, 19, 20)] == [3, 1, 1, 3]
    assert [call(p, HOLDS, 0, end, two) for end in (10, 11)] == [1, 0]
    assert [call(p, HOLDS, begin, 30, two) for begin in (19, 20)] == [0, 1]
    assert [call(p, EARLIEST, 0, length, two) for length in (10, 11)] == [0, 20]
    assert call(p, EARLIEST, 25, 100, two) == 25
    assert call(p, EARLIEST, 0, 1, np.array([0, 4])) == -1


def test_nothing_happens_in_an_empty_range() -> None:
    p = fresh(10, np.array([3]))
    for begin, end in ((5, 5), (6, 5)):
        call(p, TAKE, begin, end, np.array([0, 1]))
        call(p, GIVE_BACK, begin, end, np.array([0, 1]))
    assert steps_of(p)[0].tolist() == [0]
