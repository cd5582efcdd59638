"""The problem of one dispatching moment: which jobs wait, which run and where, on which nodes. Free of any solver.

After Galleguillos, Kiziltan and Soto, A Job Dispatcher for Large and Heterogeneous HPC Systems Running Modern
Applications, CP 2021, sections 2 and 3. "The paper" is this one in all files about dispatching.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice
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
SUBSETS: Final = ("now", "all")
"""Which waiting jobs are in a problem: those that fit beside what runs now, as in the authors' program, or all."""
WAYS: Final = ("code", "text")
"""Whose limits a search has: those of the authors' program, or those of the paper's text as we read it."""
SOLVERS: Final = ("sat", "cp")
"""CP-SAT; or the original CP solver of OR-Tools, which the authors took."""
MOST_LIMIT: Final = 1e6
MOST_STEPS: Final = 10_000
"""How many times a search's first limit its last may be."""


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


@dataclass(frozen=True)
class Running:
    """A job that runs for `remaining` seconds more, with the node of each unit."""

    job: int
    remaining: int
    nodes: tuple[int, ...]
    need: tuple[int, ...]


@dataclass(frozen=True)
class DispatchProblem:
    """One dispatching moment. `queue` is in order of priority, the highest first. `beside`: all of it fits, one job at
    a time, beside what runs; PCP'19 then counts where units could be on what is free now."""

    now: int
    cluster: Cluster
    queue: tuple[Queued, ...]
    running: tuple[Running, ...] = ()
    beside: bool = False

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
            if units_by_node(self.cluster, self.capacity, job).sum() < job.units:
                raise ValueError(f"job {job.job}: its {job.units} units do not fit on the empty cluster")
        for held in self.running:
            if held.remaining < 1 or not held.nodes or not 0 <= min(held.nodes) <= max(held.nodes) < self.cluster.nodes:
                raise ValueError(f"job {held.job}: runs for 1 s or more on nodes from 0 to {self.cluster.nodes - 1}")
        if bool(np.any(self.free_now < 0)):
            raise ValueError(f"node {int(np.argmax((self.free_now < 0).any(axis=1)))}: more in use than it has")
        if not abs(self.now) + self.horizon < MOST_SECONDS:
            raise ValueError(f"now and all durations are to stay below {MOST_SECONDS} s")

    def places(self, job: Queued) -> Ints:
        """How many units of a job each node could hold: the paper's p_in."""
        return units_by_node(self.cluster, self.free_now if self.beside else self.capacity, job)

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
    def scarcest_first(self) -> list[int]:
        """The resources, that of which the least share is free now first."""
        total = np.maximum(self.capacity.sum(axis=0), 1)
        return [int(r) for r in np.argsort(self.free_now.sum(axis=0) / total, kind="stable")]

    @cached_property
    def first_position(self) -> Ints:
        """Where the positions of each node (row) begin in the array of each resource; one more row for the end."""
        return np.concatenate([np.zeros((1, len(self.cluster.resources)), np.int64), np.cumsum(self.capacity, axis=0)])

    @property
    def pcp19_variables(self) -> int:
        """|Q| + the sum of p_in, by the paper's section 2.2."""
        return len(self.queue) + sum(int(self.places(job).sum()) for job in self.queue)

    @property
    def pcp21_variables(self) -> int:
        """|Q| + the sum of rn_i |R|, by the paper's section 3."""
        return len(self.queue) + sum(job.units for job in self.queue) * len(self.cluster.resources)


def has_boxes(model: str) -> bool:
    """Whether units are boxes in a model: PCP'21 and PCP'21s."""
    return model.startswith("pcp21")


@dataclass(frozen=True)
class Limits:
    """How long a search may take, in seconds of the `clock`: "work" counts what the solver does, so that same call is
    same answer (WORK_PER_S says how much of it is a second); "wall" is the clock on the wall. `still` is the paper's k.

    `way` is one of WAYS. In the authors' program PCP'21 takes what it has after `delta`, and without anything goes on
    for half of `delta` more, again and again, up to `most` (30 times from its command line; 4 in the class). PCP'19
    and HCP'19 begin anew with twice the limit, up to `most`, until the search is complete or `still` searches in a row
    ended with the same value. The paper's text says that it is PCP'21 that ends when nothing changes; so read, it goes
    on until it has proved its plan, has gained nothing in `still` extensions or has reached `most`, and PCP'19 and
    HCP'19 take the first plan that they have.
    """

    delta: float = 1.0
    most: float = 16.0
    still: int = 2
    clock: str = "work"
    way: str = "code"
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 < self.delta <= self.most <= MOST_LIMIT:
            raise SettingError(
                f"delta={self.delta}, most={self.most}: must be above 0 s, delta not above most, most at most"
                f" {MOST_LIMIT:,.0f} s"
            )
        if self.most > MOST_STEPS * self.delta:
            raise SettingError(f"delta={self.delta}, most={self.most}: most at most {MOST_STEPS:,} times delta")
        if self.still < 1:
            raise SettingError(f"still={self.still}: must be at least 1")
        if self.clock not in CLOCKS:
            raise SettingError(f"clock={self.clock}: choose from {', '.join(CLOCKS)}")
        if self.way not in WAYS:
            raise SettingError(f"way={self.way}: choose from {', '.join(WAYS)}")

    def steps(self, model: str) -> list[float]:
        """How long a search of a model may have taken in all, while it has found nothing."""
        if self.takes_what_it_has(model) and has_boxes(model):
            return [self.delta * (1 + more / 2) for more in range(int(2 * self.most / self.delta) - 1)]
        found = [self.delta]
        while 2 * found[-1] <= self.most:
            found.append(2 * found[-1])
        return found

    def enough(self, model: str, found: Sequence[float | None], proved: bool) -> bool:
        """Whether a search ends, given the best values by the end of each limit so far (None: nothing found)."""
        if proved or found[-1] is None:
            return proved
        many = self.still if self.way == "code" else self.still + 1
        return self.takes_what_it_has(model) or list(found[-many:]) == [found[-1]] * many

    def takes_what_it_has(self, model: str) -> bool:
        """Whether a search ends with its first limit, if it has a plan by then."""
        return has_boxes(model) == (self.way == "code")


@dataclass(frozen=True)
class Dispatched:
    """What a dispatcher answers, in the order of the queue; all empty where it found nothing.

    `nodes` has the node of each unit, `()` for a job that was given none (HCP'19 allocates only jobs that start now).
    `positions` has for each unit the first position in the array of each resource, -1 where it needs none (PCP'21).
    `status` "optimal" means proved for the model that was solved, as does "infeasible". Times are of the CPU.
    `extensions` counts how often the limit was raised (by CP-SAT, for PCP'21 of the program, at most once: to the
    last). `settled`: the search ended by itself, not at the last limit.
    `conflicts` of the CP solver are its fails up to the best plan, as the authors count them; of CP-SAT, all.
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
    settled: bool = True


def total_slowdown(problem: DispatchProblem, starts: tuple[int, ...]) -> float:
    """The paper's objective: the sum of (s_i - q_i + d_i) / d_i."""
    pairs = zip(problem.queue, starts, strict=True)
    return fsum((at - job.arrive + job.duration) / job.duration for job, at in pairs)


def slopes(problem: DispatchProblem) -> list[int]:
    """What a second of wait adds to the sum of slowdowns, by job, in the integers of a model: such that the sum is
    below 2^56. The authors round slowdowns to five digits or more; this is finer."""
    scale = max(int(2**56 / ((problem.horizon + 1) * sum(1 / job.duration for job in problem.queue))), 1)
    return [round(scale / job.duration) for job in problem.queue]


def units_by_node(cluster: Cluster, free: Ints, job: Queued) -> Ints:
    """How many units of a job each node could hold, of what is free."""
    suitable = np.array([job.kinds >> k & 1 for k in range(len(cluster.kinds))], np.int64)
    fits = np.min([free[:, r] // need for r, need in enumerate(job.need) if need], axis=0)
    found: Ints = np.minimum(fits, min(job.units, job.per_node or job.units)) * suitable[cluster.kind_of]
    return found


def dispatch_problem(
    state: State, window: int = WINDOW, subset: str = "now", *, shorter: bool = True
) -> DispatchProblem:
    """The problem of an instant: `window` of the waiting jobs in the subset, those with the highest slowdown if they
    started now.

    Ties go to the one that takes less of all resources together for its duration; in PCP'21, and so with `shorter`, to
    the shorter before; then to the earlier arrival. A unit that takes its whole node needs all that the node has; so
    all nodes that will do must be alike. Shares of devices are not in the paper's models.
    """
    cluster, requests = state.cluster, state.requests
    if cluster is None or requests is None or not cluster.kinds:
        raise ValueError("dispatching is onto nodes, and those of the cluster are not known")
    duration = np.maximum(state.estimate, 1)
    queue = []
    for job in state.waiting.tolist():
        fits = np.flatnonzero(requests.sets[requests.among[job]]).tolist()
        need, kinds = _need(cluster, requests, job, fits)
        if not any(need):
            raise ValueError(f"job {job} needs nothing: of some resource it must need 1 or more")
        queue.append(
            Queued(job, int(state.submit[job]), int(duration[job]), int(requests.units[job]), need, kinds,
                   int(requests.per_node[job]))
        )  # fmt: skip
    running = []
    for job in sorted(state.running.tolist(), key=lambda job: (int(state.start[job]), job)):
        nodes = tuple(int(node) for node in state.nodes[job])
        need, _ = _need(cluster, requests, job, sorted(set(cluster.kind_of[list(nodes)].tolist())))
        running.append(Running(job, state.expected_end(job) - state.now, nodes, need))
    # The order first: so it is only asked of as many jobs as fill the window whether they fit.
    queue.sort(
        key=lambda job: (
            (job.arrive - state.now) / job.duration, shorter * job.duration, job.duration * job.units * sum(job.need),
        )
    )  # fmt: skip
    bare = DispatchProblem(state.now, cluster, (), tuple(running))
    if subset == "all":
        return replace(bare, queue=tuple(queue[:window]))
    room: dict[tuple[object, ...], bool] = {}  # by what a job asks for
    return replace(bare, queue=tuple(islice((job for job in queue if _fits(bare, job, room)), window)), beside=True)


def _fits(problem: DispatchProblem, job: Queued, room: dict[tuple[object, ...], bool]) -> bool:
    """Whether a job fits beside what runs; `room` keeps what was found for jobs that ask for the same."""
    like = (job.units, job.need, job.kinds, job.per_node)
    if like not in room:
        room[like] = bool(units_by_node(problem.cluster, problem.free_now, job).sum() >= job.units)
    return room[like]


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


def pair_rules(problem: DispatchProblem) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The authors' rules for pairs. First the pairs that cannot overlap: together they take more than all nodes have in
    the time of the longer one; places count from the jobs that run on, then the queue. Then, of the other pairs in the
    queue, those of which the first is to start no later: it takes no more, for its duration, of each resource that both
    need."""
    sizes = [(held.remaining, len(held.nodes), held.need) for held in problem.running]
    sizes += [(job.duration, job.units, job.need) for job in problem.queue]
    taken = np.array([[lasts * units * need for need in needs] for lasts, units, needs in sizes], np.float64)
    total, first = problem.capacity.sum(axis=0).astype(np.float64), len(problem.running)
    lasts = np.array([size[0] for size in sizes], np.float64)
    apart, in_order = [], []
    for j in range(first, len(sizes)):
        both = (taken[:j] > 0) & (taken[j] > 0)
        most = total * np.maximum(lasts[:j], lasts[j])[:, None]
        over = (both & (taken[:j] + taken[j] > most)).any(axis=1)
        less = both.any(axis=1) & (~both | (taken[:j] <= taken[j])).all(axis=1) & ~over
        apart += [(i, j) for i in np.flatnonzero(over).tolist()]
        in_order += [(i, j - first) for i in np.flatnonzero(less[first:]).tolist()]
    return apart, in_order


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


def running_boxes(problem: DispatchProblem) -> list[list[tuple[int, int, int]]]:
    """What runs, as boxes in each resource: for how long, from which position, and how many positions. Neighbours that
    run as long are one box, so that a solver has fewer of them."""
    placed = list(zip(problem.running, running_positions(problem), strict=True))
    return [
        _joined(sorted((at[r], one.remaining, one.need[r]) for one, places in placed if one.need[r] for at in places))
        for r in range(len(problem.cluster.resources))
    ]


def _joined(units: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    boxes: list[tuple[int, int, int]] = []
    for at, remaining, need in units:
        if boxes and boxes[-1][0] == remaining and boxes[-1][1] + boxes[-1][2] == at:
            remaining, at, before = boxes.pop()
            need += before
        boxes.append((remaining, at, need))
    return boxes
