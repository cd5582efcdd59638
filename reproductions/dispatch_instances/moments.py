"""Dispatch problems out of a replay on nodes: its passes at which jobs wait, a sample of them, and what was to be
decided there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.requests import requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.optimize.dispatch.problem import DispatchProblem, dispatch_problem
from reproductions.passes import passes_of

SEED: Final = 2021


def moments(schedule: Schedule) -> tuple[Ints, Ints]:
    """The passes of a replay at which jobs waited: when, and how many."""
    at, waiting = passes_of(schedule)
    return at[waiting > 0], waiting[waiting > 0]


@dataclass(frozen=True)
class Chosen:
    """A moment that was drawn: one of `of` in a class of queues that begins with `least` jobs."""

    at: int
    waiting: int
    least: int
    of: int
    place: int
    """Its place among those drawn of its class, from 0."""


def chosen(at: Ints, waiting: Ints, least: Sequence[int], each: int, seed: int = SEED) -> list[Chosen]:
    """`each` moments of every class of queues, drawn with a seed; the first of all classes, then the second, and so on.

    A class begins with `least` jobs and ends where the next begins; one with fewer moments is taken whole.
    """
    rng, picked = np.random.default_rng(seed), list[Chosen]()
    for first, after in zip(least, [*least[1:], np.inf], strict=True):
        inside = np.flatnonzero((waiting >= first) & (waiting < after))
        for place, i in enumerate(rng.permutation(inside)[:each].tolist()):
            picked.append(Chosen(int(at[i]), int(waiting[i]), first, len(inside), place))
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

    def problem(self, now: int) -> DispatchProblem:
        """The problem of a pass, as the dispatchers make it."""
        return dispatch_problem(self.state(now))


def written(problem: DispatchProblem) -> str:
    """A problem as JSON, for other solvers."""
    cluster = problem.cluster
    whole = {"now": problem.now, "resources": cluster.resources, "shared": cluster.shared}
    parts: dict[str, tuple[Any, ...]] = {"kinds": cluster.kinds, "queue": problem.queue, "running": problem.running}
    return json.dumps(whole | {name: [asdict(one) for one in some] for name, some in parts.items()}) + "\n"
