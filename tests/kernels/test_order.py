"""Priority keys against their formulas in exact arithmetic, and the two ways to put a queue in order."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from dovetail.arrays import Floats, Ints
from dovetail.kernels.compile import jit
from dovetail.kernels.passes.order import CODES, insert, key_of, moves, sort_by_key


@jit
def keys(code: int, jobs: Ints, now: int, given: Floats, out: Floats) -> bool:
    """The keys of all jobs (rows: arrival, size, estimate), and whether they move with time."""
    for i in range(len(out)):
        out[i] = key_of(code, jobs[0, i], jobs[1, i], jobs[2, i], now, given[i])
    return moves(code)


@jit
def arrange(queue: Ints, first: int, last: int, key: Floats, spare: Ints, how: int) -> int:
    """Sort a part of the queue (how 0), or insert all of its jobs anew, one after the other, into `spare`."""
    if how == 0:
        sort_by_key(queue, first, last, key, spare)
        return last
    n = 0
    for i in range(first, last):
        n = insert(spare, n, queue[i], key)
    return n


Formula = Callable[[int, int, int, int], Fraction]
EXACT: dict[str, Formula] = {
    "fcfs": lambda a, s, e, now: Fraction(a),
    "sjf": lambda a, s, e, now: Fraction(e),
    "ljf": lambda a, s, e, now: Fraction(-e),
    "saf": lambda a, s, e, now: Fraction(s * e),
    "laf": lambda a, s, e, now: Fraction(-s * e),
    "spf": lambda a, s, e, now: Fraction(s * e * e),
    "small": lambda a, s, e, now: Fraction(s),
    "large": lambda a, s, e, now: Fraction(-s),
    "wfp3": lambda a, s, e, now: -(Fraction(now - a, e) ** 3) * s,
    "unicef": lambda a, s, e, now: -(now - a) / (Fraction(max(math.log2(s), 1.0)) * e),
    "xfactor": lambda a, s, e, now: -Fraction(now - a + e, e),
}
STILL = ("fcfs", "sjf", "ljf", "saf", "laf", "spf", "small", "large")


def some_jobs(rng: random.Random, n: int, size: int, estimate: int) -> Ints:
    rows = [[rng.randint(0, 1000), rng.randint(1, size), rng.randint(1, estimate)] for _ in range(n)]
    return np.array(rows, np.int64).T.copy()


def keys_of(order: str, jobs: Ints, now: int = 1000) -> Floats:
    out = np.zeros(jobs.shape[1])
    keys(CODES[order], jobs, now, np.arange(len(out)).astype(np.float64) / 2, out)
    return out


@pytest.mark.parametrize("order", EXACT)
def test_keys_follow_their_formulas(order: str) -> None:
    jobs = some_jobs(random.Random(1), 2000, 10**4, 10**5)
    exact = [EXACT[order](a, s, e, 1000) for a, s, e in jobs.T.tolist()]
    got = keys_of(order, jobs)
    if order in STILL and order != "spf":
        assert got.tolist() == exact  # integers that a double holds
    else:
        assert (
            max(abs(Fraction(g) - e) / max(abs(e), Fraction(1)) for g, e in zip(got.tolist(), exact, strict=True))
            < 1e-15
        )


def test_which_orders_move_with_time() -> None:
    jobs = some_jobs(random.Random(2), 50, 64, 100)
    for order, code in CODES.items():
        told = keys(code, jobs, 1000, np.zeros(50), np.zeros(50))
        assert told == (order not in (*STILL, "given"))
        if order in EXACT:
            assert (keys_of(order, jobs, 1000) != keys_of(order, jobs, 5000)).any() == told


def test_given_keys_are_the_callers() -> None:
    jobs = some_jobs(random.Random(3), 20, 4, 4)
    for order in ("given", "given-per-pass"):
        assert keys_of(order, jobs).tolist() == (np.arange(20) * 0.5).tolist()


@pytest.mark.parametrize("order", ["saf", "laf", "spf"])
def test_beyond_2_to_53_keys_are_still_monotone(order: str) -> None:
    """Pairs of jobs whose keys nearly tie: they may become equal, but never change places."""
    rng = random.Random(4)
    power, most = (2, 1 << 25) if order == "spf" else (1, 1 << 30)
    rows: list[tuple[int, int, int]] = []
    while len(rows) < 4000:
        e, f, s = (
            rng.randint(most // 2, most),
            rng.randint(most // 2, most),
            rng.randint(most // 4, most // 2),
        )
        rows += [(0, s, e), (0, round(Fraction(s * e**power, f**power)), f)]
    jobs = np.array(rows, np.int64).T.copy()
    exact = [EXACT[order](a, s, e, 0) for a, s, e in jobs.T.tolist()]
    assert min(abs(e) for e in exact) > 1 << 53
    got = keys_of(order, jobs)
    assert (np.diff(got[np.array(sorted(range(len(exact)), key=exact.__getitem__))]) >= 0).all()
    assert len(set(got.tolist())) > len(exact) // 2
    assert got.tolist() == [float(e) for e in exact], "each is the double nearest to the integer"


@pytest.mark.parametrize("how", [0, 1], ids=["sort", "insert"])
def test_equal_keys_keep_their_places(how: int) -> None:
    """Sorting a part of a queue, or inserting job by job, both equal Python's stable sort."""
    for seed in range(400):
        rng = random.Random(seed)
        n = rng.choice((0, 1, 2, 3, 5, 8, 9, 31, 64, 100, 333))
        first = rng.randint(0, n)
        last = rng.randint(first, n)
        key = np.array([rng.choice((0.0, 1.5, -2.0, rng.random())) for _ in range(n)])
        queue = np.array(rng.sample(range(n), n), np.int64)
        spare = np.full(n, -1, np.int64)
        wanted = sorted(queue[first:last].tolist(), key=lambda job: key[job])
        before = queue.tolist()
        done = arrange(queue, first, last, key, spare, how)
        if how == 0:
            assert queue.tolist() == before[:first] + wanted + before[last:]
        else:
            assert spare[:done].tolist() == wanted
