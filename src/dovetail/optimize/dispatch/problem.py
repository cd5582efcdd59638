"""The problem of one dispatching moment: which jobs wait, which run and where, on which nodes. Free of any solver.

After Galleguillos, Kiziltan and Soto, A Job Dispatcher for Large and Heterogeneous HPC Systems Running Modern
Applications, CP 2021, sections 2 and 3. "The paper" is this one in all files about dispatching.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import fsum
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import SettingError
from dovetail.model.cluster import WHOLE, Cluster, NodeKind, by_node
from dovetail.model.requests import Requests
from dovetail.model.state import State
from dovetail.optimize.window.problem import Status

WINDOW: Final = 100
"""The paper's m: how many jobs of the queue are handed to a dispatcher."""
MOST_SECONDS: Final = 2**40
"""The worst makespan that is taken: beyond it the solver's integers might not do."""

CLOCKS: Final = ("work", "wall")
MOST_LIMIT: Final = 1e6


@dataclass(frozen=True)
class Queued:
    """A job that waits: `units` alike, each with `need` of every resource on a node whose kind is in the bits `kinds`.

    `per_node`: most units on one node; 0: as many as fit.
    """

    job: int
    arrive: int
    duration: int
    units: int
    need: tuple[int, ...]
    kinds: int
    per_node: int = 0

    def most_on(self, kind: int, capacity: tuple[int, ...]) -> int:
        """How many units fit on an empty node of a kind: the paper's p_in."""
        if not self.kinds >> kind & 1:
            return 0
        fits = min(has // need for has, need in zip(capacity, self.need, strict=True) if need)
        return min(fits, self.units, self.per_node or self.units)


@dataclass(frozen=True)
class Running:
    """A job that runs for `remaining` seconds more, with the node of each unit."""

    job: int
    remaining: int
    nodes: tuple[int, ...]
    need: tuple[int, ...]


@dataclass(frozen=True)
class DispatchProblem:
    """One dispatching moment. `queue` is in order of priority, the highest first."""

    now: int
    cluster: Cluster
    queue: tuple[Queued, ...]
    running: tuple[Running, ...] = ()

    def __post_init__(self) -> None:
        width = len(self.cluster.resources)
        if not self.cluster.nodes:
            raise ValueError("dispatching is onto nodes, and those of the cluster are not known")
        for number, need in [(job.job, job.need) for job in self.queue] + [(job.job, job.need) for job in self.running]:
            if len(need) != width or min(need) < 0 or not any(need):
                raise ValueError(f"job {number}: needs {need}; must be {width} numbers, none below 0 and not all 0")
        for job in self.queue:
            if job.duration < 1 or job.units < 1 or job.per_node < 0:
                raise ValueError(f"job {job.job}: a duration of 1 s or more, a unit or more, no negative per_node")
            if job.arrive > self.now:
                raise ValueError(f"job {job.job}: arrives at {job.arrive} s, after now, {self.now} s")
            if self.most_units(job) < job.units:
                raise ValueError(f"job {job.job}: its {job.units} units do not fit on the empty cluster")
        for held in self.running:
            if held.remaining < 1 or not held.nodes or not 0 <= min(held.nodes) <= max(held.nodes) < self.cluster.nodes:
                raise ValueError(f"job {held.job}: runs for 1 s or more on nodes from 0 to {self.cluster.nodes - 1}")
        if bool(np.any(self.free_now < 0)):
            raise ValueError(f"node {int(np.argmax((self.free_now < 0).any(axis=1)))}: more in use than it has")
        if not abs(self.now) + self.horizon < MOST_SECONDS:
            raise ValueError(f"now and all durations are to stay below {MOST_SECONDS} s")

    def most_units(self, job: Queued) -> int:
        """How many units of a job would fit on the empty cluster, up to what it wants."""
        kinds = enumerate(self.cluster.kinds)
        return min(sum(kind.count * job.most_on(k, kind.capacity) for k, kind in kinds), job.units)

    @cached_property
    def horizon(self) -> int:
        """From now to the end of the worst makespan, the paper's eoh: all durations, one after the other."""
        return sum(job.duration for job in self.queue) + sum(job.remaining for job in self.running)

    @cached_property
    def capacity(self) -> Ints:
        """What each node (row) has of each resource."""
        rows: Ints = self.cluster.capacity[self.cluster.kind_of]
        return rows

    @cached_property
    def free_now(self) -> Ints:
        """What of it is free beside what runs."""
        free = self.capacity.copy()
        for job in self.running:
            np.subtract.at(free, list(job.nodes), np.array(job.need, np.int64))
        return free

    @cached_property
    def first_position(self) -> Ints:
        """Where the positions of each node (row) begin in the array of each resource; one more row for the end."""
        return np.concatenate([np.zeros((1, len(self.cluster.resources)), np.int64), np.cumsum(self.capacity, axis=0)])

    @property
    def pcp19_variables(self) -> int:
        """|Q| + the sum of p_in, by the paper's section 2.2."""
        kinds = list(enumerate(self.cluster.kinds))
        return len(self.queue) + sum(
            kind.count * job.most_on(k, kind.capacity) for job in self.queue for k, kind in kinds
        )

    @property
    def pcp21_variables(self) -> int:
        """|Q| + the sum of rn_i |R|, by the paper's section 3."""
        return len(self.queue) + sum(job.units for job in self.queue) * len(self.cluster.resources)


@dataclass(frozen=True)
class Limits:
    """A search gets `delta` seconds, then twice as much and so on, up to `most`; `still` is the paper's k.

    `clock`: "work" counts what CP-SAT does, so that same call is same answer (cpsat_limits.py says how much of it is a
    second); "wall" counts seconds on the clock.
    """

    delta: float = 1.0
    most: float = 16.0
    still: int = 2
    clock: str = "work"
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.delta <= self.most <= MOST_LIMIT:
            raise SettingError(
                f"delta={self.delta}, most={self.most}: must be above 0 s, delta not above most, most at most"
                f" {MOST_LIMIT:,.0f} s"
            )
        if self.still < 1:
            raise SettingError(f"still={self.still}: must be at least 1")
        if self.clock not in CLOCKS:
            raise SettingError(f"clock={self.clock}: choose from {', '.join(CLOCKS)}")


@dataclass(frozen=True)
class Dispatched:
    """What a dispatcher answers, in the order of the queue; all empty where it found nothing.

    `nodes` has the node of each unit, `()` for a job that was given none (HCP'19 allocates only jobs that start now).
    `positions` has for each unit the first position in the array of each resource, -1 where it needs none (PCP'21).
    `status` "optimal" means proved for the model that was solved, as does "infeasible". Times are of the CPU.
    `extensions` counts how often the limit was doubled, `rounds` how often HCP'19 scheduled.
    """

    status: Status
    objective: float
    starts: tuple[int, ...] = ()
    nodes: tuple[tuple[int, ...], ...] = ()
    positions: tuple[tuple[tuple[int, ...], ...], ...] = ()
    variables: int = 0
    constraints: int = 0
    conflicts: int = 0
    branches: int = 0
    modelling_s: float = 0.0
    solving_s: float = 0.0
    extensions: int = 0
    rounds: int = 1


def total_slowdown(problem: DispatchProblem, starts: tuple[int, ...]) -> float:
    """The paper's objective: the sum of (s_i - q_i + d_i) / d_i."""
    pairs = zip(problem.queue, starts, strict=True)
    return fsum((at - job.arrive + job.duration) / job.duration for job, at in pairs)


def dispatch_problem(state: State, window: int = WINDOW) -> DispatchProblem:
    """The problem of an instant: `window` of the waiting jobs, those with the highest slowdown if they started now.

    Ties go to the earlier arrival, then the earlier line. A unit that takes its whole node needs all that the node
    has; so all nodes that will do must be alike. Shares of devices are not in the paper's models.
    """
    cluster, requests = state.cluster, state.requests
    if cluster is None or requests is None or not cluster.kinds:
        raise ValueError("dispatching is onto nodes, and those of the cluster are not known")
    duration = np.maximum(state.estimate, 1)
    waited = (state.now - state.submit[state.waiting]) / duration[state.waiting]
    chosen = state.waiting[np.argsort(-waited, kind="stable")[:window]].tolist()
    queue = []
    for job in chosen:
        kinds = int(requests.kinds[job])
        fits = [k for k in range(len(cluster.kinds)) if kinds >> k & 1]
        need, kinds = _need(cluster, requests, job, fits)
        queue.append(
            Queued(job, int(state.submit[job]), int(duration[job]), int(requests.units[job]), need, kinds,
                   int(requests.per_node[job]))
        )  # fmt: skip
    running = []
    for job in sorted(state.running.tolist(), key=lambda job: (int(state.start[job]), job)):
        nodes = tuple(int(node) for node in state.nodes[job])
        need, _ = _need(cluster, requests, job, sorted(set(cluster.kind_of[list(nodes)].tolist())))
        running.append(Running(job, state.expected_end(job) - state.now, nodes, need))
    return DispatchProblem(state.now, cluster, tuple(queue), tuple(running))


def _need(cluster: Cluster, requests: Requests, job: int, fits: list[int]) -> tuple[tuple[int, ...], int]:
    """What a unit takes, and the kinds, of these, that will do."""
    need = tuple(int(x) for x in requests.need[job])
    if cluster.shared and need[cluster.shared_at] and int(requests.share[job]) != WHOLE:
        raise ValueError(
            f"job {job} takes {int(requests.share[job])} thousandths of {cluster.shared}: the paper's models know whole"
            f" pieces only; take a list policy or a planner"
        )
    if int(requests.exclusive[job]):
        fits = [
            k for k in fits if all(has >= wants for has, wants in zip(cluster.kinds[k].capacity, need, strict=True))
        ]
        whole = {cluster.kinds[k].capacity for k in fits}
        if len(whole) != 1:
            raise ValueError(
                f"job {job} takes whole nodes, and those that will do are of {len(whole)} sizes: the paper's models"
                f" know units of one size only; name one kind of node for it, or take a list policy or a planner"
            )
        (need,) = whole
    return need, sum(1 << k for k in fits)


def pooled(problem: DispatchProblem) -> DispatchProblem:
    """The same with all resources in one pool: what HCP'19 schedules. A job is one unit on the one node."""
    total = tuple(problem.capacity.sum(axis=0).tolist())
    cluster = by_node(problem.cluster.resources, (NodeKind("pool", 1, total),))
    queue = (
        replace(job, units=1, need=tuple(job.units * x for x in job.need), kinds=1, per_node=0) for job in problem.queue
    )
    running = (replace(job, nodes=(0,), need=tuple(len(job.nodes) * x for x in job.need)) for job in problem.running)
    return DispatchProblem(problem.now, cluster, tuple(queue), tuple(running))


def running_positions(problem: DispatchProblem) -> list[list[tuple[int, ...]]]:
    """Where the units of running jobs are: the least free positions of their nodes, in the order of the jobs.

    So what is free on a node now is in one piece, at the end of its positions.
    """
    next_free = problem.first_position.tolist()
    placed = []
    for job in problem.running:
        units = []
        for node in job.nodes:
            units.append(tuple(at if need else -1 for at, need in zip(next_free[node], job.need, strict=True)))
            next_free[node] = [at + need for at, need in zip(next_free[node], job.need, strict=True)]
        placed.append(units)
    return placed
