"""Sums of integers that are right to the last digit, however large they grow.

NumPy wraps an int64 silently and adds floats with rounding. Areas times waits pass 2^63 on a busy year, so
the sums here are taken in parts that cannot wrap and put together as Python integers. The area of a single job passes
2^63 only near the caps of a log (10^9 processors for 10^10 s): such products are Python integers, in arrays of objects.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import nan
from operator import mul
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Ints

BLOCK: Final = 1 << 20
"""Elements taken at once: few enough that a block of products of limbs stays below 2^63."""

_BITS: Final = 21
_LIMB: Final = (1 << _BITS) - 1


def blocks(n: int, size: int = BLOCK) -> Iterator[slice]:
    """Slices that cover 0 .. n in order."""
    for first in range(0, n, size):
        yield slice(first, min(first + size, n))


def exact_sum(values: Ints) -> int:
    """The sum of fewer than 2^31 values."""
    if values.dtype == object:
        return sum(values.tolist())
    total = 0
    for part in blocks(len(values)):
        piece = values[part]
        total += (int((piece >> 32).sum()) << 32) + int((piece & 0xFFFFFFFF).sum())
    return total


def exact_mean(values: Ints) -> float:
    """The mean, rounded once; nan for no values."""
    return exact_sum(values) / len(values) if len(values) else nan


def products(a: Ints, b: Ints | int) -> Ints:
    """a[i] * b[i] for values that are not negative; as Python integers if the largest might not fit in 64 bits."""
    if int(np.max(a, initial=0)) * int(np.max(b, initial=0)) >= 2**63:
        a = a.astype(object)
    return a * b


def exact_dot(a: Ints, b: Ints) -> int:
    """The sum of a[i] * b[i] for values that are not negative; no product needs to fit in 64 bits."""
    if object in (a.dtype, b.dtype):
        return sum(map(mul, a.tolist(), b.tolist()))
    total = 0
    for part in blocks(len(a)):
        right = list(_limbs(b[part]))
        for shift_a, limb_a in _limbs(a[part]):
            for shift_b, limb_b in right:
                # Both limbs are below 2^21 and the block has at most 2^20 of them: the sum is below 2^62.
                total += int(np.dot(limb_a, limb_b)) << (shift_a + shift_b)
    return total


def _limbs(values: Ints) -> Iterator[tuple[int, Ints]]:
    top, shift = int(values.max()), 0
    if top <= _LIMB:
        yield 0, values
        return
    while top >> shift:
        yield shift, (values >> shift) & _LIMB
        shift += _BITS


def running_sum(values: Ints) -> Floats:
    """The running sums of values that are not negative, each rounded only once or twice, never summed up."""
    if values.dtype == object:
        return np.cumsum(values).astype(np.float64)
    high = np.cumsum(values >> 32).astype(np.float64)
    high *= 2.0**32
    high += np.cumsum(values & 0xFFFFFFFF)
    return high
