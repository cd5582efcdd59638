"""A binary heap of (instant, job) in two arrays and a length that the caller owns. Least instant, then job, first."""

from __future__ import annotations

from dovetail.arrays import Ints
from dovetail.kernels.compile import inner


@inner
def push(at: Ints, job: Ints, n: int, new_at: int, new_job: int) -> int:
    """Add a pair; returns the new length."""
    i = n
    while i > 0:
        up = (i - 1) >> 1
        if at[up] < new_at or (at[up] == new_at and job[up] < new_job):
            break
        at[i] = at[up]
        job[i] = job[up]
        i = up
    at[i] = new_at
    job[i] = new_job
    return n + 1


@inner
def soonest(at: Ints, n: int) -> int:
    """How many pairs have the least instant: they stand together at the top."""
    i = many = 0
    while True:
        if i < n and at[i] == at[0]:
            many += 1
            i = 2 * i + 1
            continue
        while i > 0 and i % 2 == 0:  # from the right of two up
            i = (i - 1) >> 1
        if i == 0:
            return many
        i += 1


@inner
def pop(at: Ints, job: Ints, n: int) -> int:
    """Remove the least pair (read it at index 0 before); returns the new length."""
    n -= 1
    last_at = at[n]
    last_job = job[n]
    i = 0
    while True:
        down = 2 * i + 1
        if down >= n:
            break
        right = down + 1
        if right < n and (at[right] < at[down] or (at[right] == at[down] and job[right] < job[down])):
            down = right
        if last_at < at[down] or (last_at == at[down] and last_job < job[down]):
            break
        at[i] = at[down]
        job[i] = job[down]
        i = down
    if n > 0:
        at[i] = last_at
        job[i] = last_job
    return n
