"""State: all that a policy may see at one instant. Estimates, never run times."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from dovetail.arrays import Floats, Ints, Mask
from dovetail.model.cluster import POWER, Cluster, PowerCap
from dovetail.model.plan import Plan
from dovetail.model.requests import Requests, room_idle
from dovetail.model.workload import Workload
from dovetail.units import MOST_SECONDS


def takes_too_much(what: str, taken: int, room: int) -> str:
    """Of something that is counted for all jobs (`Cluster.counted`), a job takes more than there is."""
    if what == POWER:
        return f"draws {taken / 1000:,.0f} W; the power cap leaves {room / 1000:,.0f} W to all jobs"
    return f"holds {taken:,} {what}; there are {room:,}"


def counted_of(cluster: Cluster, workload: Workload) -> dict[str, Any]:
    """What a state of these jobs says of what is counted for all together, by the names of its parts."""
    takes, licences = cluster.takes(workload), len(cluster.licences)
    held = dict(zip(dict(cluster.licences), takes.T[len(cluster.counted) - licences :], strict=True))
    found: dict[str, Any] = {"licences": held, "licences_total": dict(cluster.licences)}
    return found if cluster.cap is None else found | {"draws_mw": takes[:, 0], "room_mw": cluster.counted[POWER]}


@dataclass(frozen=True)
class State:
    """One instant of a cluster.

    `waiting`, `running`, `arrived` and `ended` hold job numbers: positions in the columns `submit`, `size`,
    `limit`, `estimate`, `user` (one value per job; only jobs that have arrived may be looked at).
    `waiting` is in order of arrival, then line; so is `arrived`, the part of it that is new in this moment.
    `deadline_s`: by how long after its submit a job must have ended; -1: no matter when. Empty: not known.
    Where nodes are known, `cluster` has them, `requests` says what each job asks of them, and `nodes` and `devices`
    what each running or just ended job has, as in Plan; `free` is then the number of cores that no job uses.
    `standing` is the plan that the policy gave in the last pass.
    `future` is empty, unless the policy is declared clairvoyant (`clairvoyant = True` in its class): then it holds the
    jobs still to come, in order of submit, whose columns may be looked at too, and the estimates are the run times.
    """

    now: int
    processors: int
    free: int
    waiting: Ints
    running: Ints
    arrived: Ints
    ended: Ints
    submit: Ints
    size: Ints
    limit: Ints
    estimate: Ints
    user: Ints
    start: Ints
    """When each running job started; -1 for jobs that wait."""
    seed: int = 0
    standing: Plan = field(default_factory=Plan)
    future: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    corrected: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Running jobs that have outlived their estimates and been given others since the last pass."""
    lost: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Jobs that ran until a node failed since the last pass: they wait again."""
    left: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Jobs that have left the queue since the last pass without having run."""
    deadline_s: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    draws_mw: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    """Where there is a power cap: what each job draws beyond what its processors draw when idle. Empty: no cap."""
    room_mw: int = 0
    """What all running jobs together may draw so."""
    licences: Mapping[str, Ints] = field(default_factory=dict)
    """How many of each licence each job holds while it runs, by name."""
    licences_total: Mapping[str, int] = field(default_factory=dict)
    """How many of each licence there are for all jobs together."""
    turn: Floats = field(default_factory=lambda: np.empty(0))
    """Where each job stands by whose turn it is: the larger, the sooner; at least 0. Empty: not known."""
    columns: Mapping[str, Ints] = field(default_factory=dict)
    """What else is known of each job, by name: queue, partition, priority, qos, account, as far as it is known."""
    cluster: Cluster | None = None
    requests: Requests | None = None
    nodes: Mapping[int, Ints] = field(default_factory=dict)
    devices: Mapping[int, Ints] = field(default_factory=dict)

    def __repr__(self) -> str:
        free = f"{self.free:,} of {self.processors:,} processors free"
        return f"State at {self.now:,} s: {free}, {len(self.waiting):,} waiting, {len(self.running):,} running"

    @cached_property
    def machine(self) -> Cluster:
        """The cluster; one that is only counted is made of what the state says of it."""
        cap, licences = PowerCap(self.room_mw) if len(self.draws_mw) else None, tuple(self.licences_total.items())
        if self.cluster is None or not self.cluster.kinds:
            return Cluster(self.processors, cap=cap, licences=licences)
        plain = cap is None and self.cluster.cap is None and licences == self.cluster.licences
        return self.cluster if plain else replace(self.cluster, cap=cap, licences=licences)

    @property
    def counted(self) -> dict[str, int]:
        """What is counted for all jobs together, as `Cluster.counted`."""
        return self.machine.counted if len(self.draws_mw) or self.licences_total else {}

    def takes(self, jobs: Ints) -> Ints:
        """What each of these jobs (rows) takes of what is counted for all together (`Cluster.counted`)."""
        power = [self.draws_mw[jobs]] if len(self.draws_mw) else []
        held = [self.licences[name][jobs] for name in self.licences_total]
        return np.array([*power, *held], np.int64).reshape(len(power) + len(held), len(jobs)).T

    def expected_end(self, job: int) -> int:
        """When a running job is taken to end: at start + estimate, or one second from now once that has passed."""
        return max(int(self.start[job] + self.estimate[job]), self.now + 1)

    def never(self) -> dict[int, str]:
        """Which waiting jobs do not fit on the idle machine, and why: they can never start."""
        lacks = self._lacks(self.waiting)
        return {
            job: self._too_large(job, lack)
            for job, lack in zip(self.waiting.tolist(), lacks.tolist(), strict=True)
            if lack
        }

    def possible(self, jobs: Ints) -> Mask:
        """Which of these jobs, wherever they are, can be planned for: their numbers can be, and they fit on the idle
        machine."""
        fine = (self.size[jobs] > 0) & (self.estimate[jobs] > 0) & (self.estimate[jobs] <= MOST_SECONDS)
        fine &= (self.takes(jobs) >= 0).all(axis=1)
        if self.requests is not None:
            fine &= ~np.any(list(self.requests.wrong(jobs).values()), axis=0)
        fine[fine] = self._lacks(jobs[fine]) == 0
        return fine

    def _lacks(self, jobs: Ints) -> Ints:
        """How many units, or processors, of each job have no room on the idle machine; below 0: what it takes of what
        is counted for all has none, -1 for the first in `Cluster.counted`."""
        if self.requests is not None and self.cluster is not None:
            asked = self.requests.of(jobs)
            lacks: Ints = np.maximum(asked.units - room_idle(self.cluster, asked), 0)
        else:
            lacks = np.maximum(self.size[jobs] - self.processors, 0)
        takes = self.takes(jobs)
        for k, room in enumerate(self.counted.values()):
            lacks[(lacks == 0) & (takes[:, k] > room)] = -1 - k
        return lacks

    def _too_large(self, job: int, lack: int) -> str:
        if lack > 0 and self.requests is not None and self.cluster is not None:
            need = zip(self.requests.need[job].tolist(), self.cluster.resources, strict=True)
            unit, units = ", ".join(f"{n:,} {name}" for n, name in need if n), int(self.requests.units[job])
            words = f"{units:,} unit{'s' * (units > 1)} of {unit or 'a whole node'}"
            return f"needs {words}; the nodes that will do hold {units - lack:,}"
        if lack > 0:
            return f"needs {self.size[job]:,} processors; the machine has {self.processors:,}"
        what, room = list(self.counted.items())[-1 - lack]
        return takes_too_much(what, int(self.takes(np.array([job]))[0, -1 - lack]), room)
