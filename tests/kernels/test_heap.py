"""The heap of (instant, job) against Python's own."""

from __future__ import annotations

import heapq
import random

import numpy as np

from dovetail.arrays import Ints
from dovetail.kernels.compile import jit
from dovetail.kernels.heap import pop, push


@jit
def work(at: Ints, job: Ints, n: int, new_at: Ints, new_job: Ints, out: Ints) -> int:
    """Push the new pairs (those with job -1 mean: pop, and write down what was least); returns the length."""
    done = 0
    for i in range(len(new_at)):
        if new_job[i] >= 0:
            n = push(at, job, n, new_at[i], new_job[i])
        else:
            out[done, 0], out[done, 1] = at[0], job[0]
            n = pop(at, job, n)
            done += 1
    return n


def test_least_instant_then_least_job_first() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        span = rng.choice((1, 3, 1000, 1 << 61))
        pushes = rng.randint(1, 200)
        jobs = rng.sample(range(10**6), pushes)
        heap: list[tuple[int, int]] = []
        work_list, wanted = [], []
        for job in jobs:
            pair = (rng.randint(0, span), job)
            heapq.heappush(heap, pair)
            work_list.append(pair)
            while heap and rng.random() < 0.4:
                wanted.append(heapq.heappop(heap))
                work_list.append((0, -1))
        left = len(heap)
        while heap:
            wanted.append(heapq.heappop(heap))
        pairs = np.array(work_list + [(0, -1)] * left, np.int64)
        at, job_of, out = (
            np.zeros(pushes, np.int64),
            np.zeros(pushes, np.int64),
            np.zeros((pushes, 2), np.int64),
        )
        first = len(work_list)
        args = pairs[:, 0].copy(), pairs[:, 1].copy()
        assert work(at, job_of, 0, args[0][:first], args[1][:first], out) == left
        assert work(at, job_of, left, args[0][first:], args[1][first:], out[pushes - left :]) == 0
        assert [tuple(pair) for pair in out.tolist()] == wanted
