"""A dispatch plan by a list: instant by instant, in order of priority, each job that fits starts, on the first nodes.

That is the first dive of the search of the paper (schedule or postpone: the job that can start first, of these the one
with the highest priority, at its earliest start, in the least positions). CP-SAT gets it as a hint.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from heapq import heappop, heappush

import numpy as np

from dovetail.arrays import Ints
from dovetail.optimize.dispatch.contiguous import gaps
from dovetail.optimize.dispatch.problem import DispatchProblem, Queued, running_positions

Places = list[tuple[int, tuple[int, ...]]]
"""The node of each unit and its first positions (-1: none)."""


@dataclass(frozen=True)
class Listed:
    """A plan, in the order of the queue: the start of each job, and its units' nodes and positions."""

    starts: tuple[int, ...]
    places: tuple[Places, ...]


def listed(problem: DispatchProblem, *, contiguous: bool = False, later: Collection[int] = ()) -> Listed:
    """The plan. `contiguous`: units take neighbouring positions; else positions are all -1. The jobs at the places
    `later` of the queue do not start now."""
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
            held_back = now == problem.now and i in later
            found = None if held_back or like in refused else floor.place(job)
            if found is None:
                left.append(i)
                if not held_back:
                    refused.add(like)
                continue
            floor.take(found, job.need, now + job.duration)
            starts[i], places[i] = now, found
        waiting = left
        if waiting:
            soon = now + 1 if now == problem.now and later else floor.next_end
            now = min(soon, floor.next_end) if floor.ends else soon
    return Listed(tuple(starts), tuple(places))


class _Floor:
    """What is free on each node while time goes on."""

    def __init__(self, problem: DispatchProblem, contiguous: bool) -> None:
        self.problem, self.contiguous = problem, contiguous
        self.free = problem.capacity.copy()
        self.total: Ints = self.free.sum(axis=0)
        self.ends: list[tuple[int, int, Places, tuple[int, ...]]] = []
        self.taken: dict[int, list[tuple[tuple[int, ...], tuple[int, ...]]]] = {}
        self.will_do: dict[int, Ints] = {}
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
        fits = np.min([self.free[:, r] // job.need[r] for r in wanted], axis=0)
        fits = np.minimum(fits, job.per_node or job.units) * self._suitable(job.kinds)
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

    def _suitable(self, kinds: int) -> Ints:
        """1 for each node whose kind is in the bits, else 0."""
        if kinds not in self.will_do:
            known = range(len(self.problem.cluster.kinds))
            self.will_do[kinds] = np.array([kinds >> k & 1 for k in known], np.int64)[self.problem.cluster.kind_of]
        return self.will_do[kinds]

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
