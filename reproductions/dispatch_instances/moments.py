"""Dispatch problems out of a replay on nodes: its passes at which jobs wait, a sample of them, and what was to be
decided there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.requests import requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.optimize.dispatch.problem import WINDOW, DispatchProblem, dispatch_problem

SEED: Final = 2021


@dataclass(frozen=True)
class Moments:
    """The passes of a replay at which jobs waited: when, and how many."""

    at: Ints
    waiting: Ints


def moments(schedule: Schedule) -> Moments:
    """A pass is whenever a job arrived or ended; a job that starts in it still waits."""
    at = np.unique(np.concatenate([schedule.arrive, schedule.end]))
    came = np.searchsorted(np.sort(schedule.arrive), at, side="right")
    waiting = came - np.searchsorted(np.sort(schedule.start), at, side="left")
    return Moments(at[waiting > 0], waiting[waiting > 0])


@dataclass(frozen=True)
class Chosen:
    """A moment that was drawn: one of `of` in a class of queues that begins with `least` jobs."""

    at: int
    waiting: int
    least: int
    of: int
    place: int
    """Its place among those drawn of its class, from 0."""


def chosen(found: Moments, least: Sequence[int], each: int, seed: int = SEED) -> list[Chosen]:
    """`each` moments of every class of queues, drawn with a seed; the first of all classes, then the second, and so on.

    A class begins with `least` jobs and ends where the next begins; one with fewer moments is taken whole.
    """
    rng, picked = np.random.default_rng(seed), list[Chosen]()
    for first, after in zip(least, [*least[1:], np.inf], strict=True):
        inside = np.flatnonzero((found.waiting >= first) & (found.waiting < after))
        drawn = rng.permutation(inside)[:each].tolist()
        picked += [
            Chosen(int(found.at[i]), int(found.waiting[i]), first, len(inside), place) for place, i in enumerate(drawn)
        ]
    return sorted(picked, key=lambda one: (one.place, one.least))


class Instants:
    """A replay on nodes, as its policy saw it at any of its passes."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._requests = requests_of(schedule.workload, schedule.cluster)
        self._order = np.argsort(schedule.arrive, kind="stable")

    def state(self, now: int) -> State:
        """What was to be decided then. Needs a replay whose estimates stay as they were at first."""
        made, workload, placement = self.schedule, self.schedule.workload, self.schedule.placement
        if placement is None or not len(made.said):
            raise ValueError("a replay on nodes, with its estimates of run times, is needed")
        waits = (made.arrive <= now) & (made.start >= now)
        running = np.flatnonzero((made.start < now) & (made.end > now))
        used = int((self._requests.units * self._requests.need[:, 0])[running].sum())
        none = np.empty(0, np.int64)
        return State(
            now=now, processors=made.cluster.processors, free=made.cluster.processors - used,
            waiting=self._order[waits[self._order]], running=running, arrived=none, ended=none,
            submit=made.arrive, size=workload.size, limit=workload.limit, estimate=made.said,
            user=workload.get("user"), start=np.where(made.start < now, made.start, -1), cluster=made.cluster,
            requests=self._requests, nodes={job: placement.of(job) for job in running.tolist()},
        )  # fmt: skip

    def problem(self, now: int, window: int = WINDOW) -> DispatchProblem:
        """The problem of a pass, as the dispatchers make it."""
        return dispatch_problem(self.state(now), window)
