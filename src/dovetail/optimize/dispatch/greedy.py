"""A dispatch plan by a list: instant by instant, in order of priority, each job that fits starts, on the first nodes.

That is the first dive of the search of the paper (schedule or postpone: the job that can start first, of these the one
with the highest priority, at its earliest start, in the least positions). CP-SAT gets it as a hint.
"""

from __future__ import annotations

from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from dovetail.arrays import Ints
from dovetail.optimize.dispatch.problem import DispatchProblem, Queued, running_positions, units_by_node

Places = list[tuple[int, tuple[int, ...]]]
"""The node of each unit and its first positions (-1: none)."""


@dataclass(frozen=True)
class Listed:
    """A plan, in the order of the queue: the start of each job, and its units' nodes and positions."""

    starts: tuple[int, ...]
    places: tuple[Places, ...]


def listed(problem: DispatchProblem, *, contiguous: bool = False) -> Listed:
    """The plan. `contiguous`: units take neighbouring positions, on any node; else positions are all -1, and units are
    where PCP'19 may have them."""
    floor = _Floor(problem, contiguous)
    starts, places = [-1] * len(problem.queue), [Places() for _ in problem.queue]
    waiting = list(range(len(problem.queue)))
    now = problem.now
    while waiting:
        floor.release(now)
        left, refused = [], set()
        for i in waiting:
            job = problem.queue[i]
            like = (job.need, job.units, job.kinds, job.per_node)
            found = None if like in refused else floor.place(job)
            if found is None:
                left.append(i)
                refused.add(like)
                continue
            floor.take(found, job.need, now + job.duration)
            starts[i], places[i] = now, found
        waiting = left
        if waiting:
            now = floor.next_end
    return Listed(tuple(starts), tuple(places))


class _Floor:
    """What is free on each node while time goes on."""

    def __init__(self, problem: DispatchProblem, contiguous: bool) -> None:
        self.problem, self.contiguous = problem, contiguous
        self.free = problem.capacity.copy()
        self.total: Ints = self.free.sum(axis=0)
        self.ends: list[tuple[int, int, Places, tuple[int, ...]]] = []
        self.taken: dict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
        self.count = 0
        for held, at in zip(problem.running, running_positions(problem), strict=True):
            self.take(list(zip(held.nodes, at, strict=True)), held.need, problem.now + held.remaining)

    @property
    def next_end(self) -> int:
        return self.ends[0][0]

    def take(self, places: Places, need: tuple[int, ...], until: int) -> None:
        """A job has these places until then."""
        self._add(places, need, -1)
        for node, at in places if self.contiguous else ():
            self.taken.setdefault(node, []).append((at, need))
        heappush(self.ends, (until, self.count, places, need))
        self.count += 1  # no two entries are alike, so the heap never compares places

    def release(self, now: int) -> None:
        """Give back what ends by now."""
        while self.ends and self.ends[0][0] <= now:
            _, _, places, need = heappop(self.ends)
            self._add(places, need, 1)
            for node, at in places if self.contiguous else ():
                self.taken[node].remove((at, need))

    def _add(self, places: Places, need: tuple[int, ...], sign: int) -> None:
        amount = sign * np.array(need, np.int64)
        np.add.at(self.free, [node for node, _ in places], amount)
        self.total = self.total + len(places) * amount

    def place(self, job: Queued) -> Places | None:
        """Where the units of a job go now: on the first nodes that do, in the least positions. None: nowhere."""
        wanted = [r for r, need in enumerate(job.need) if need]
        if any(self.total[r] < job.units * job.need[r] for r in wanted):
            return None
        fits = units_by_node(self.problem.cluster, self.free, job)
        if self.problem.beside and not self.contiguous:
            fits = np.minimum(fits, self.problem.places(job))
        if fits.sum() < job.units:
            return None
        places: Places = []
        nowhere = tuple([-1] * len(job.need))
        for node in np.flatnonzero(fits).tolist():
            most = min(int(fits[node]), job.units - len(places))
            spots = self._spots(node, job.need, most) if self.contiguous else [nowhere] * most
            places.extend((node, at) for at in spots)
            if len(places) == job.units:
                return places
        return None

    def _spots(self, node: int, need: tuple[int, ...], most: int) -> list[tuple[int, ...]]:
        """The least positions of at most `most` units on a node."""
        columns = []
        for r, size in enumerate(need):
            if not size:
                columns.append([-1] * most)
                continue
            first = int(self.problem.first_position[node, r])
            last = first + int(self.problem.capacity[node, r])
            taken = sorted((at[r], at[r] + has[r]) for at, has in self.taken.get(node, ()) if has[r])
            columns.append([p for begin, end in gaps(first, last, taken) for p in range(begin, end - size + 1, size)])
        return list(zip(*columns, strict=False))[:most]


def gaps(first: int, end: int, taken: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The stretches between `first` and `end` that none of the sorted stretches in `taken` touches."""
    free = []
    for begin, until in taken:
        if begin > first:
            free.append((first, begin))
        first = max(first, until)
    if end > first:
        free.append((first, end))
    return free
