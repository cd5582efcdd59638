"""Priority orders: a key per job, smaller first; equal keys go to the earlier arrival, then the earlier line.

Keys are float64. Products of integers are exact below 2^53, so keys compare as integers there; above, they are rounded.
"""

from __future__ import annotations

from math import log2

from dovetail.arrays import Floats, Ints
from dovetail.kernels.compile import inner

# Codes of the built-in orders. Up to LARGE a key is fixed when the job arrives; from WFP3 on it moves with time.
FCFS, SJF, LJF, SAF, LAF, SPF, SMALL, LARGE, WFP3, UNICEF, XFACTOR, GIVEN, GIVEN_PER_PASS = range(13)
CODES = {
    "fcfs": FCFS, "sjf": SJF, "ljf": LJF, "saf": SAF, "laf": LAF, "spf": SPF, "small": SMALL, "large": LARGE,
    "wfp3": WFP3, "unicef": UNICEF, "xfactor": XFACTOR, "given": GIVEN, "given-per-pass": GIVEN_PER_PASS,
}  # fmt: skip
"""GIVEN keys are the caller's, one per job; GIVEN_PER_PASS keys are asked for before each pass in
which they may have changed."""


MOVING = (WFP3, UNICEF, XFACTOR, GIVEN_PER_PASS)


@inner
def moves(code: int) -> bool:
    """Whether keys of this order change while a job waits."""
    return code == WFP3 or code == UNICEF or code == XFACTOR or code == GIVEN_PER_PASS


@inner
def key_of(code: int, arrive: int, size: int, estimate: int, now: int, given: float) -> float:
    """The key of one job. `given` is used by the orders whose keys the caller gives."""
    if code == FCFS:
        return float(arrive)
    if code == SJF:
        return float(estimate)
    if code == LJF:
        return -float(estimate)
    if code == SAF:
        return float(size) * float(estimate)
    if code == LAF:
        return -(float(size) * float(estimate))
    if code == SPF:
        return float(size) * float(estimate) * float(estimate)
    if code == SMALL:
        return float(size)
    if code == LARGE:
        return -float(size)
    wait = float(now - arrive)
    if code == WFP3:
        q = wait / float(estimate)
        return -(q * q * q * float(size))
    if code == UNICEF:
        return -(wait / (max(log2(float(size)), 1.0) * float(estimate)))
    if code == XFACTOR:
        return -((wait + float(estimate)) / float(estimate))
    return given


@inner
def insert(queue: Ints, n: int, job: int, key: Floats) -> int:
    """Put a job that arrives now behind all with a key not larger; returns the new length."""
    mine = key[job]
    if n > 0 and key[queue[n - 1]] <= mine:
        queue[n] = job
        return n + 1
    low, high = 0, n
    while low < high:
        mid = (low + high) >> 1
        if key[queue[mid]] <= mine:
            low = mid + 1
        else:
            high = mid
    for i in range(n, low, -1):
        queue[i] = queue[i - 1]
    queue[low] = job
    return n + 1


@inner
def sort_by_key(queue: Ints, first: int, last: int, key: Floats, spare: Ints) -> None:
    """Stable bottom-up merge sort of queue[first:last] by key[job]; `spare` is as long as the queue."""
    width = 1
    in_spare = False
    source, target = queue, spare
    while width < last - first:
        for begin in range(first, last, 2 * width):
            mid = min(begin + width, last)
            end = min(begin + 2 * width, last)
            left, right = begin, mid
            for i in range(begin, end):
                if left < mid and (right >= end or key[source[left]] <= key[source[right]]):
                    target[i] = source[left]
                    left += 1
                else:
                    target[i] = source[right]
                    right += 1
        source, target = target, source
        in_spare = not in_spare
        width *= 2
    if in_spare:
        for i in range(first, last):
            queue[i] = spare[i]
