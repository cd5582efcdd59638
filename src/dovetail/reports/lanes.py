"""Lanes: which processors a job is drawn on. A counted cluster has none, so this is for drawing only."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass

import numpy as np

from dovetail.model.workload import Ints


@dataclass(frozen=True)
class Rectangles:
    """What is drawn: one rectangle per unbroken run of lanes of a job, in the order of the jobs."""

    job: Ints
    """Whose it is: a position in the arrays that were given."""
    lane: Ints
    """Its lowest lane."""
    lanes: Ints
    """How many lanes it has. Those of a job add up to its size."""


def lay_out(start: Ints, end: Ints, size: Ints, processors: int, most: int) -> Rectangles | None:
    """Give each job lanes of its own while it runs; None if that takes more than `most` rectangles.

    A job gets the lowest run of free lanes that holds it. Where none does, it is split over the largest runs,
    which makes the fewest rectangles. Within a second, jobs end before others start.
    """
    free = _Free(processors)
    held: list[list[tuple[int, int]]] = [[] for _ in range(len(start))]
    sizes, used = size.tolist(), 0
    # Ends stand before starts, and the sort is stable: so they come first within a second.
    for event in np.argsort(np.concatenate([end, start]), kind="stable").tolist():
        job = event - len(start)
        if job < 0:
            for low, high in held[event]:
                free.give_back(low, high)
        else:
            held[job] = free.take(sizes[job])
            used += len(held[job])
            if used > most:
                return None
    pieces = np.array([piece for runs in held for piece in runs], np.int64).reshape(-1, 2)
    job_of = np.repeat(np.arange(len(start)), [len(runs) for runs in held])
    return Rectangles(job_of, pieces[:, 0], pieces[:, 1] - pieces[:, 0])


class _Free:
    """Free lanes as runs [low, high), lowest first, with a used lane between any two."""

    def __init__(self, processors: int) -> None:
        self._low, self._high = [0], [processors]

    def take(self, size: int) -> list[tuple[int, int]]:
        """Take so many lanes: the lowest run that holds them, else parts of the largest."""
        low, high = self._low, self._high
        for i, (a, b) in enumerate(zip(low, high, strict=True)):
            if b - a >= size:
                return [self._cut(i, size)]
        taken, left = [], size
        for i in sorted(range(len(low)), key=lambda i: low[i] - high[i]):
            part = min(left, high[i] - low[i])
            taken.append((i, part))
            left -= part
            if not left:
                # From the highest on: a run that vanishes moves those above it.
                return [self._cut(i, part) for i, part in sorted(taken, reverse=True)]
        raise ValueError(f"a job of {size} processors started while only {size - left} were free")

    def _cut(self, i: int, size: int) -> tuple[int, int]:
        """Take the lowest lanes of a run."""
        a = self._low[i]
        if self._high[i] - a == size:
            del self._low[i], self._high[i]
        else:
            self._low[i] = a + size
        return a, a + size

    def give_back(self, a: int, b: int) -> None:
        """Free the lanes a to b; the run joins its neighbours."""
        low, high = self._low, self._high
        i = bisect_left(low, a)
        joins_below, joins_above = i > 0 and high[i - 1] == a, i < len(low) and low[i] == b
        if joins_below and joins_above:
            high[i - 1] = high[i]
            del low[i], high[i]
        elif joins_below:
            high[i - 1] = b
        elif joins_above:
            low[i] = a
        else:
            low.insert(i, a)
            high.insert(i, b)
