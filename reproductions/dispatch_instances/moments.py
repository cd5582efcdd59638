"""The passes of a replay on nodes as its policy saw them, for others to decide."""

from __future__ import annotations

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.requests import requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from reproductions.passes import passes_of


def moments(schedule: Schedule) -> Ints:
    """When a pass of a replay was at which jobs waited."""
    at, waiting = passes_of(schedule)
    return at[waiting > 0]


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
