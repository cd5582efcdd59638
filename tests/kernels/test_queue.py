"""The queue of a replay: many entries sorted in at once, and a tree in place of a look at all, against plain lists."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dovetail.arrays import Floats, Ints
from dovetail.kernels import state as layout
from dovetail.kernels.compile import jit
from dovetail.kernels.passes.lists import ListRule
from dovetail.kernels.queue import INSERT, _insert_all, first_below, new_tree, put, take
from dovetail.policies.lists import ListPolicy

pytestmark = pytest.mark.slow  # it compiles kernels of its own

PUT, TAKE, FIRST = range(3)


@jit
def insert_all(queue: Ints, n: int, new: Ints, m: int, key: Floats, spare: Ints) -> None:
    _insert_all(queue, n, new, m, key, spare)


@jit
def call(rule: ListRule, run: layout.Run, what: int, job: int, size: int, estimate: int) -> int:
    if what == PUT:
        put(rule, run, job)
    elif what == TAKE:
        take(rule, run, job)
    else:
        return first_below(run, layout.BACK_KEY if rule.common.backfill >= 0 else layout.KEY, size, estimate, job)
    return 0


def test_many_entries_are_put_where_one_by_one_they_would_be() -> None:
    for seed in range(60):
        rng = random.Random(seed)
        n, m = rng.choice((0, 1, 5)), rng.choice((1, INSERT, INSERT + 1, INSERT + 9))
        most = [9] * n + [rng.choice((9, 200))] * m
        key = np.array([float(rng.randint(0, one)) for one in most])
        order = [lambda job: 0.0, key.__getitem__][rng.random() < 0.7]
        there, new = sorted(range(n), key=key.__getitem__), sorted(range(n, n + m), key=order)
        queue, spare = np.zeros((2, n + m), np.int64)
        queue[:n] = there
        insert_all(queue, n, np.array(new), m, key, spare)
        assert queue.tolist() == sorted([*there, *new], key=key.__getitem__), seed


@pytest.mark.parametrize("backfill", [None, "sjf"])
def test_the_tree_finds_the_first_that_is_no_larger_and_no_longer(backfill: str | None) -> None:
    rule = ListPolicy("saf", 1, backfill).rule()
    assert isinstance(rule, ListRule)
    for seed in range(40):
        rng = random.Random(seed)
        n = rng.randint(1, 17)
        jobs = np.zeros((layout.JOB_ROWS, n), np.int64)
        for row in (layout.SIZE, layout.ESTIMATE, layout.ARRIVE):
            jobs[row] = [rng.randint(1, 6) for _ in range(n)]
        keys = np.array([[float(rng.randint(0, 3)) for _ in range(n)] for _ in range(2)])
        none = np.empty((4, 0), np.int64)
        lists = np.zeros((layout.LIST_ROWS, 64), np.int64)
        run = layout.Run(
            np.zeros(layout.INFO, np.int64), jobs, keys, none, none[:2], lists, new_tree(jobs[layout.SIZE])
        )
        place = list(zip(keys[int(backfill is not None)].tolist(), jobs[layout.ARRIVE].tolist(), range(n), strict=True))
        waiting = set[int]()
        for _ in range(20):
            job = rng.randrange(n)
            call(rule, run, TAKE if job in waiting else PUT, job, 0, 0)
            waiting ^= {job}
            size, estimate, best = rng.randint(0, 7), rng.randint(0, 7), rng.choice((-1, job))
            fit = [one for one in waiting if jobs[layout.SIZE, one] <= size and jobs[layout.ESTIMATE, one] <= estimate]
            wanted = min([*fit, *([best] if best >= 0 else [])], key=place.__getitem__, default=-1)
            assert call(rule, run, FIRST, best, size, estimate) == wanted, seed
