"""Every policy of the list family and conservative backfilling, written to be read, not to be fast.

Plain Python on lists and dicts, after the rules of the design page; no code is shared with the kernels, which
must give the same start second for every job. What the rules leave open is settled and said here:

- A job larger than the cluster takes no part: it never arrives, and neither does a job that follows it.
- With feedback, a job that follows another arrives exactly at that one's end + think, whatever its submit.
- A moment is a second in which a job arrived or ended, and each has one pass, also when nothing waits. With
  `every`, decisions are taken only at multiples of it, and a tick counts as a pass when somebody waits.
- Conservative backfilling rebuilds a plan that has come undone: see `Conservative`.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Size = tuple[int, ...]
"""One number per resource; the first is processors."""

Block = tuple[int, int, Size]
"""So much of each resource, held from the first second until just before the second."""


@dataclass(frozen=True)
class SlowJob:
    """One job. `after` is the position of the job that it follows under feedback, -1 for none."""

    submit: int
    size: Size
    runtime: int
    estimate: int
    after: int = -1
    think: int = 0
    deadline: int = -1
    """Seconds from arrival by which it is to have ended; -1: none."""
    not_before: int = field(default=0, kw_only=True)
    """Seconds from its submit, or from when feedback brings it, before which it may not start."""
    leaves: int = field(default=-1, kw_only=True)
    """Seconds from its submit at which it leaves the queue, if it has not started; -1: it stays."""


@dataclass(frozen=True)
class Place:
    """What a job holds while it runs; where nodes are known, also the node and the devices of each of its units."""

    size: Size
    nodes: tuple[int, ...] = ()
    devices: tuple[int, ...] = ()


@dataclass(frozen=True)
class ListPolicy:
    """List scheduling: an order, and how many blocked jobs get a reservation ("strict", a number, "all").

    `backfill` orders what is left of the queue once the last reservation is made (with 0 reservations: the
    whole queue). Jobs that have waited `starvation` seconds come first, by arrival, in both orders.
    `relax` or `slack` turns on relaxed backfilling: see `_Pass.may_start`.
    """

    order: str = "fcfs"
    reserve: int | str = 1
    backfill: str | None = None
    starvation: int | None = None
    relax: float | None = None
    slack: float | None = None

    @property
    def depth(self) -> float:
        """How many jobs get a reservation; strict makes none."""
        if self.reserve == "all":
            return math.inf
        return 0 if self.reserve == "strict" else int(self.reserve)


@dataclass(frozen=True)
class Conservative:
    """Conservative backfilling. In a moment: ends, a sweep if any job ended, arrivals, then the due starts.

    `sweep` is "submit", "each-end", "repeat", "start", "now" (a job moves only if it can start at once) or "none".
    In an "each-end" sweep the jobs whose end is yet to be handled in this moment (in order of index) still hold
    their processors until their estimate is over.

    When, after the ends, a running job is past its estimate or a promised start has passed, the plan has come
    undone: it is rebuilt in place of the sweep, in order of promised start, then arrival. This takes estimates
    that are too small. While they are upper bounds every promised start falls into a moment in which a job
    ends, for what holds a job back is a block that ends just then, and each earlier end brings a sweep. With "now" and
    "none" that is not so, and a pass also happens at each promised start.

    With `every`, promises are made for ticks only, so that they can be kept; ends between two ticks are
    handled in order of end, then index.

    `depth`: only so many jobs that cannot start at once are promised a start, the first in order of arrival. The rest
    start, in that order, where they fit beside all that is promised.
    """

    sweep: str = "submit"
    depth: float = math.inf


@dataclass(frozen=True)
class Deadline:
    """Deadline-based backfilling, Algorithm 1 of DBF; with `guard`, tentative jobs stay where they were if it would
    break an accepted deadline. After ends, one sweep over the firm jobs, then the tentative ones. A pass also happens
    at each planned start. `depth` counts the jobs without a deadline."""

    guard: bool = True
    sweep: str = "submit"
    depth: float = math.inf


@dataclass
class SlowResult:
    """One value per job, -1 for none: arrival, start, first and last promised start, accepted deadline (1, or 0)."""

    arrive: list[int]
    start: list[int]
    promised_first: list[int]
    promised_last: list[int]
    passes: int = 0
    accepted: list[int] = field(default_factory=list)
    nodes: list[tuple[int, ...]] = field(default_factory=list)
    """Where nodes are known: the node of each unit of each job that ran."""
    devices: list[tuple[int, ...]] = field(default_factory=list)


class Profile:
    """Free capacity from `now` on: `free[i]` holds from `times[i]` to `times[i + 1]`, the last for ever."""

    def __init__(self, now: int, capacity: Size, blocks: Iterable[Block]) -> None:
        change: dict[int, list[int]] = {now: list(capacity)}
        for begin, end, size in blocks:
            if end > now:
                _add(change, max(begin, now), size, -1)
                _add(change, end, size, +1)
        self.times = sorted(change)
        self.free: list[list[int]] = []
        level = [0] * len(capacity)
        for time in self.times:
            level = [a + b for a, b in zip(level, change[time], strict=True)]
            self.free.append(level)

    def fits(self, begin: int, end: int, size: Size) -> bool:
        """Is so much free all the way from begin to end?"""
        for i, time in enumerate(self.times):
            if time >= end:
                break
            over = i + 1 == len(self.times) or self.times[i + 1] > begin
            if over and any(f < s for f, s in zip(self.free[i], size, strict=True)):
                return False
        return True

    def least(self, begin: int, end: int) -> list[int]:
        """How much of each is free all the way from begin to end."""
        rows = [
            free
            for i, free in enumerate(self.free)
            if self.times[i] < end and (i + 1 == len(self.times) or self.times[i + 1] > begin)
        ]
        return [min(column) for column in zip(*rows, strict=True)]

    def earliest(self, machine: Machine, job: SlowJob, tick: int = 1) -> tuple[int, Place]:
        """The first time that fits, among now and the breakpoints, each rounded up to a tick, and the place there."""
        for time in sorted({*self.times, *machine.changes(self.times[0])}):
            begin = -(-time // tick) * tick
            place = machine.place(self, job, begin)
            if place is not None:
                return begin, place
        raise AssertionError(f"{job} never fits")

    def change(self, begin: int, end: int, size: Size, sign: int) -> None:
        """Take (-1) or give back (+1) so much from begin to end."""
        for time in (begin, end):
            if time not in self.times:
                before = max(i for i, t in enumerate(self.times) if t < time)
                self.times.insert(before + 1, time)
                self.free.insert(before + 1, list(self.free[before]))
        for i, time in enumerate(self.times):
            if begin <= time < end:
                self.free[i] = [f + sign * s for f, s in zip(self.free[i], size, strict=True)]


def _add(change: dict[int, list[int]], time: int, size: Size, sign: int) -> None:
    old = change.get(time, [0] * len(size))
    change[time] = [c + sign * s for c, s in zip(old, size, strict=True)]


class Machine(Protocol):
    """What jobs run on: how much there is in all, and what a job would hold if it ran from `begin` on."""

    @property
    def capacity(self) -> Size: ...

    def place(self, profile: Profile, job: SlowJob, begin: int) -> Place | None:
        """None: it does not fit there for its whole estimate."""

    def changes(self, now: int) -> list[int]:
        """When the machine itself changes after now, as far as is known now."""

    def moments(self) -> list[int]:
        """When it does, or gets known to."""

    def out_of_order(self, run: _Replay, j: int) -> bool:
        """Is an outage in the way of where a job stands?"""

    def failing(self, nodes: Iterable[int], after: int, before: int) -> int | None:
        """When the first of some nodes fails between two instants; None: none does."""


@dataclass(frozen=True)
class Counted:
    """A machine that only counts."""

    capacity: Size

    def place(self, profile: Profile, job: SlowJob, begin: int) -> Place | None:
        return Place(job.size) if profile.fits(begin, begin + job.estimate, job.size) else None

    def changes(self, now: int) -> list[int]:
        return []

    def moments(self) -> list[int]:
        return []

    def out_of_order(self, run: _Replay, j: int) -> bool:
        return False

    def failing(self, nodes: Iterable[int], after: int, before: int) -> int | None:
        return None


def order_key(order: str, job: SlowJob, wait: int) -> float:
    """The key of one job: lower comes first. `size` is the first resource."""
    size, estimate = job.size[0], job.estimate
    if order == "wfp3":
        q = wait / estimate
        return -(q * q * q * size)
    if order == "unicef":
        return -(wait / (max(math.log2(size), 1.0) * estimate))
    if order == "xfactor":
        return -((wait + estimate) / estimate)
    return {
        "fcfs": 0,
        "sjf": estimate,
        "ljf": -estimate,
        "saf": size * estimate,
        "laf": -size * estimate,
        "spf": size * estimate * estimate,
        "small": size,
        "large": -size,
    }[order]


@dataclass
class _Replay:
    """The cluster, the queue and the clock of one replay."""

    jobs: Sequence[SlowJob]
    machine: Machine
    result: SlowResult
    now: int = 0
    waiting: list[int] = field(default_factory=list)
    running: list[int] = field(default_factory=list)
    arrived: list[int] = field(default_factory=list)
    """Waiting jobs that the policy has not seen yet."""
    ended: list[int] = field(default_factory=list)
    """Jobs that ended since the last pass, in order of end, then index."""
    lost: list[int] = field(default_factory=list)
    """Jobs that were lost since the last pass."""
    left: list[int] = field(default_factory=list)
    """Jobs that have left the queue since the last pass."""
    came: dict[int, int] = field(default_factory=dict)
    """When each job that was lost came first."""
    first_at: dict[int, int] = field(default_factory=dict)
    """Lists: the first reservation that each job ever got."""
    promise: dict[int, int] = field(default_factory=dict)
    """Conservative: where each waiting job stands in the plan."""
    tentative: set[int] = field(default_factory=set)
    """Deadline: those in the plan that may be moved."""
    held: dict[int, Place] = field(default_factory=dict)
    """What each running job holds, and each one in `promise` is to hold."""

    def by_arrival(self, jobs: Iterable[int]) -> list[int]:
        return sorted(jobs, key=lambda j: (self.result.arrive[j], j))

    def leaves(self, j: int) -> int:
        """When a job leaves the queue, if it waits then and has never run; -1: never."""
        job = self.jobs[j]
        return job.submit + job.leaves if job.leaves >= 0 and j not in self.came else -1

    def end(self, j: int) -> int:
        return self.result.start[j] + self.jobs[j].runtime

    def lost_at(self, j: int) -> int | None:
        """When a running job is lost, as a node of it fails before it has ended."""
        return self.machine.failing(self.held[j].nodes, self.result.start[j], self.end(j))

    def estimated_end(self, j: int) -> int:
        return self.result.start[j] + self.jobs[j].estimate

    def running_blocks(self) -> list[Block]:
        """What the running jobs are taken to hold: until their estimate, or until now + 1 once it is over."""
        return [(self.now, max(self.estimated_end(j), self.now + 1), self.held[j].size) for j in self.running]

    def profile(self, blocks: Iterable[Block]) -> Profile:
        return Profile(self.now, self.machine.capacity, blocks)

    def overrun(self) -> bool:
        """Is a running job past its estimate?"""
        return any(self.estimated_end(j) <= self.now for j in self.running)

    def undone(self) -> bool:
        """Has the plan come undone: is a running job past its estimate, has a promise passed, or is an outage in the
        way of one?"""
        late = any(at < self.now for at in self.promise.values())
        out = any(self.machine.out_of_order(self, j) for j in self.promise)
        return bool(self.lost) or self.overrun() or late or out

    def start(self, j: int) -> None:
        self.result.start[j] = self.now
        self.result.nodes[j], self.result.devices[j] = self.held[j].nodes, self.held[j].devices
        if self.result.promised_first[j] >= 0:
            self.result.promised_last[j] = self.now
        self.waiting.remove(j)
        self.running.append(j)

    def promised(self, j: int, at: int) -> None:
        if self.result.promised_first[j] < 0:
            self.result.promised_first[j] = at
        self.result.promised_last[j] = at


# Lists ------------------------------------------------------------------------------------------------------


@dataclass
class _Pass:
    """One pass of list scheduling: the blocks held so far, and the reservations in the order of making."""

    policy: ListPolicy
    run: _Replay
    held: list[Block]
    reserved: dict[int, tuple[int, Place]] = field(default_factory=dict)
    profile: Profile | None = None

    def block(self, j: int, at: int, place: Place) -> Block:
        return (at, at + self.run.jobs[j].estimate, place.size)

    def view(self) -> Profile:
        """Free capacity with everything started and reserved so far; made anew after a relaxed start."""
        if self.profile is None:
            blocks = self.held + [self.block(j, at, place) for j, (at, place) in self.reserved.items()]
            self.profile = self.run.profile(blocks)
        return self.profile

    def may_start(self, j: int) -> Place | None:
        """Does the job fit now, for its whole estimate, beside all that is started and reserved? Where?

        Relaxed: where it does not, does it fit beside what runs, and do the reserved jobs, put again at their earliest
        fit in the same turn, still start no later than their latest start or their present reservation?
        With a slack of 0 it still lets more start than
        the plain rule: a reservation that has come forward since it was first made may be pushed back there.
        """
        now, job, machine = self.run.now, self.run.jobs[j], self.run.machine
        if self.policy.relax is None and self.policy.slack is None:
            return machine.place(self.view(), job, now)
        plain = machine.place(self.view(), job, now)
        if plain is not None:
            return plain
        bare = self.run.profile(self.held)
        place = machine.place(bare, job, now)
        if place is None:
            return None
        bare.change(*self.block(j, now, place), -1)
        moved: dict[int, tuple[int, Place]] = {}
        for r, (at, _) in self.reserved.items():
            moved[r] = bare.earliest(machine, self.run.jobs[r])
            if moved[r][0] > max(self.latest(r), at):
                return None
            bare.change(*self.block(r, *moved[r]), -1)
        self.reserved = moved
        self.profile = None
        return place

    def latest(self, r: int) -> int:
        """How late a reserved job may be pushed."""
        first = self.run.first_at[r]
        if self.policy.relax is not None:
            return first + math.floor(self.policy.relax * (first - self.run.result.arrive[r]))
        assert self.policy.slack is not None
        return first + math.floor(self.policy.slack * self.run.jobs[r].estimate)

    def start(self, j: int, place: Place) -> None:
        block = self.block(j, self.run.now, place)
        self.held.append(block)
        if self.profile is not None:
            self.profile.change(*block, -1)
        self.run.held[j] = place
        self.run.start(j)

    def reserve(self, j: int) -> None:
        at, place = self.view().earliest(self.run.machine, self.run.jobs[j])
        self.reserved[j] = (at, place)
        self.view().change(*self.block(j, at, place), -1)
        self.run.first_at.setdefault(j, at)
        if self.run.result.promised_first[j] < 0:
            self.run.result.promised_first[j] = at


def _in_order(policy: ListPolicy, order: str, run: _Replay, queue: Iterable[int]) -> list[int]:
    def key(j: int) -> tuple[int, float, int, int]:
        arrive = run.result.arrive[j]
        wait = run.now - arrive
        if policy.starvation is not None and wait >= policy.starvation:
            return (0, 0, arrive, j)
        return (1, order_key(order, run.jobs[j], wait), arrive, j)

    return sorted(queue, key=key)


def _list_pass(policy: ListPolicy, run: _Replay) -> None:
    this = _Pass(policy, run, run.running_blocks())
    backfill = policy.backfill or policy.order
    first = backfill if policy.reserve == 0 else policy.order
    queue = _in_order(policy, first, run, run.waiting)
    while queue:
        j = queue.pop(0)
        place = this.may_start(j)
        if place is not None:
            this.start(j, place)
        elif policy.reserve == "strict":
            break
        elif len(this.reserved) < policy.depth:
            this.reserve(j)
            if len(this.reserved) == policy.depth:
                queue = _in_order(policy, backfill, run, queue)
    for j, (at, _) in this.reserved.items():
        run.promised(j, at)


# Conservative -----------------------------------------------------------------------------------------------


def _block(run: _Replay, j: int) -> Block:
    return (run.promise[j], run.promise[j] + run.jobs[j].estimate, run.held[j].size)


def _place(run: _Replay, profile: Profile, j: int, tick: int) -> None:
    run.promise[j], run.held[j] = profile.earliest(run.machine, run.jobs[j], tick)
    profile.change(*_block(run, j), -1)


def _sweep(run: _Replay, still_held: list[Block], order: Iterable[int], tick: int, only_now: bool = False) -> bool:
    """Take each job out and put it back at its earliest fit, all others fixed. Did any move? `only_now`: put it back
    where it was unless that is now."""
    plan = [_block(run, j) for j in run.promise]
    profile = run.profile(run.running_blocks() + still_held + plan)
    before = dict(run.promise)
    for j in order:
        if only_now and run.promise[j] == run.now:
            continue
        profile.change(*_block(run, j), +1)
        was = run.promise[j], run.held[j]
        run.promise[j], run.held[j] = profile.earliest(run.machine, run.jobs[j], tick)
        if only_now and run.promise[j] != run.now:
            run.promise[j], run.held[j] = was
        profile.change(*_block(run, j), -1)
    return run.promise != before


def _compress(run: _Replay, sweep: str, tick: int) -> None:
    old = run.by_arrival(run.promise)
    if sweep == "submit":
        _sweep(run, [], old, tick)
    elif sweep == "start":
        _sweep(run, [], sorted(old, key=lambda j: run.promise[j]), tick)
    elif sweep == "now":
        _sweep(run, [], old, tick, only_now=True)
    elif sweep == "repeat":
        while _sweep(run, [], old, tick):
            pass
    elif sweep == "each-end":
        for i in range(len(run.ended)):
            later = run.ended[i + 1 :]
            held = [(run.now, run.estimated_end(j), run.held[j].size) for j in later]
            _sweep(run, held, old, tick)
    elif sweep != "none":
        raise ValueError(f"no sweep {sweep!r}: submit, each-end, repeat, start, now, none")


def _conservative_pass(policy: Conservative, run: _Replay, tick: int) -> None:
    if run.undone():
        order = sorted(run.by_arrival(run.promise), key=lambda j: run.promise[j])
        profile = run.profile(run.running_blocks())
        for j in order:
            _place(run, profile, j, tick)
    elif run.left:
        _compress(run, "submit" if policy.sweep == "each-end" else policy.sweep, tick)
    elif run.ended:
        _compress(run, policy.sweep, tick)
    plan = [_block(run, j) for j in run.promise]
    profile = run.profile(run.running_blocks() + plan)
    blocked = sum(at > run.now for at in run.promise.values())
    for j in run.by_arrival(set(run.waiting) - set(run.promise)):
        if blocked < policy.depth:
            _place(run, profile, j, tick)
            blocked += run.promise[j] > run.now
    for j, at in run.promise.items():
        run.promised(j, at)
    for j in run.by_arrival(j for j, at in run.promise.items() if at == run.now):
        del run.promise[j]
        run.start(j)
    _start_beside(run)


def _start_beside(run: _Replay) -> None:
    """Start those without a promise that fit beside all that is promised."""
    for j in run.by_arrival(set(run.waiting) - set(run.promise)):
        profile = run.profile(run.running_blocks() + [_block(run, k) for k in run.promise])
        place = run.machine.place(profile, run.jobs[j], run.now)
        if place is not None:
            run.held[j] = place
            run.start(j)


# Deadline ---------------------------------------------------------------------------------------------------


def _late(run: _Replay, j: int) -> bool:
    """Would this job, which has a deadline, end after it?"""
    return run.promise[j] + run.jobs[j].estimate > run.came.get(j, run.result.arrive[j]) + run.jobs[j].deadline


def _plan_without(run: _Replay, out: Iterable[int]) -> Profile:
    gone = set(out)
    plan = [_block(run, j) for j in run.promise if j not in gone]
    return run.profile(run.running_blocks() + plan)


def _allocate(run: _Replay, first: list[int], second: list[int]) -> None:
    """Cancel the allocations of all these, then get new ones, in order."""
    profile = _plan_without(run, first + second)
    for j in first + second:
        _place(run, profile, j, 1)


def _algorithm_1(policy: Deadline, run: _Replay, regular: int) -> None:
    l1 = run.by_arrival(run.tentative)
    before = {j: (run.promise[j], run.held[j]) for j in l1}
    tmp: list[int] = []
    _allocate(run, [regular], l1)
    while late := [j for j in l1 if _late(run, j)]:
        tmp = run.by_arrival([*tmp, late[0]])
        l1.remove(late[0])
        _allocate(run, [*tmp, regular], l1)
    late = [j for j in tmp if _late(run, j)]
    if late:
        s_max = max(run.result.arrive[j] for j in late)
        moved = [j for j in l1 if run.result.arrive[j] < s_max]
        tmp = run.by_arrival([*tmp, *moved])
        l1 = [j for j in l1 if j not in moved]
        _allocate(run, [*tmp, regular], l1)
        if policy.guard and any(_late(run, j) for j in before):
            for j, (at, place) in before.items():
                run.promise[j], run.held[j] = at, place
            profile = _plan_without(run, [regular])
            _place(run, profile, regular, 1)
            return
    run.tentative -= set(tmp)


def _deadline_pass(policy: Deadline, run: _Replay) -> None:
    old = run.by_arrival(run.promise)
    if run.undone():
        profile = run.profile(run.running_blocks())
        for j in sorted(old, key=lambda j: run.promise[j]):
            _place(run, profile, j, 1)
    elif (run.ended or run.left) and policy.sweep != "none":
        _sweep(run, [], sorted(old, key=lambda j: j in run.tentative), 1, policy.sweep == "now")
    for j in run.by_arrival(set(run.waiting) - set(run.promise)):
        if run.jobs[j].deadline >= 0:
            _place(run, _plan_without(run, []), j, 1)
            run.result.accepted[j] = int(not _late(run, j))
            if run.result.accepted[j]:
                run.tentative.add(j)
                continue
        elif sum(at > run.now and run.jobs[k].deadline < 0 for k, at in run.promise.items()) >= policy.depth:
            continue
        _algorithm_1(policy, run, j)
    for j, at in run.promise.items():
        if j not in run.tentative:
            run.promised(j, at)
    for j in run.by_arrival(j for j, at in run.promise.items() if at == run.now):
        del run.promise[j]
        run.tentative.discard(j)
        run.start(j)
    _start_beside(run)


# The replay -------------------------------------------------------------------------------------------------


def slow_replay(
    jobs: Sequence[SlowJob],
    machine: int | Size | Machine,
    policy: ListPolicy | Conservative | Deadline,
    *,
    feedback: bool = False,
    every: int | None = None,
) -> SlowResult:
    """Run all jobs through the policy, moment by moment. `machine`: processors, or so much of each resource, or any."""
    if isinstance(machine, int | tuple):
        machine = Counted((machine,) if isinstance(machine, int) else machine)
    n = len(jobs)
    result = SlowResult([-1] * n, [-1] * n, [-1] * n, [-1] * n, accepted=[-1] * n, nodes=[()] * n, devices=[()] * n)
    run = _Replay(jobs, machine, result)
    coming: list[tuple[int, int]] = []
    followers: dict[int, list[int]] = {}
    for j, job in enumerate(jobs):
        if machine.place(run.profile([]), job, 10**12) is None:  # when all outages are over
            continue
        if feedback and job.after >= 0:
            followers.setdefault(job.after, []).append(j)
        elif job.leaves < 0 or job.leaves > job.not_before:
            heapq.heappush(coming, (job.submit + job.not_before, j))
    while coming or run.running or run.waiting:
        woken = isinstance(policy, Deadline) or (
            isinstance(policy, Conservative) and (policy.sweep in ("now", "none") or not isinstance(machine, Counted))
        )
        run.now = _next_time(run, coming, every, run.promise.values() if woken else ())
        _ends_and_arrivals(run, coming, followers)
        if run.waiting or not every:
            result.passes += 1
        if isinstance(policy, ListPolicy):
            _list_pass(policy, run)
        elif isinstance(policy, Deadline):
            _deadline_pass(policy, run)
        else:
            _conservative_pass(policy, run, every or 1)
        run.arrived, run.ended, run.lost, run.left = [], [], [], []
    for j, at in run.came.items():
        result.arrive[j] = at
    return result


def _next_time(run: _Replay, coming: list[tuple[int, int]], every: int | None, planned: Iterable[int]) -> int:
    """The next second in which something is to be done."""
    times = [run.end(j) for j in run.running]
    times += [at for j in run.running if (at := run.lost_at(j)) is not None]
    if not run.overrun():
        times += [at for at in planned if at > run.now]
    if coming:
        times.append(coming[0][0])
    times += [at for j in run.waiting if (at := run.leaves(j)) > run.now]
    if run.waiting:
        times += [at for at in run.machine.moments() if at > run.now]
    if every:
        if run.waiting:
            return run.now + every
        return -(-min(times) // every) * every
    return min(times)


def _ends_and_arrivals(run: _Replay, coming: list[tuple[int, int]], followers: dict[int, list[int]]) -> None:
    """Let everything happen that is due by now: the ends first, then the arrivals."""
    run.ended = sorted((j for j in run.running if run.end(j) <= run.now), key=lambda j: (run.end(j), j))
    for j in run.ended:
        run.running.remove(j)
        for follower in followers.get(j, []):
            job = run.jobs[follower]
            heapq.heappush(coming, (run.end(j) + job.think + job.not_before, follower))
    for j in [j for j in run.running if (at := run.lost_at(j)) is not None and at <= run.now]:
        run.running.remove(j)
        run.lost.append(j)
        run.came.setdefault(j, run.result.arrive[j])
        run.first_at.pop(j, None)
        run.result.start[j] = run.result.promised_first[j] = run.result.promised_last[j] = run.result.accepted[j] = -1
        heapq.heappush(coming, (run.now, j))
    while coming and coming[0][0] <= run.now:
        at, j = heapq.heappop(coming)
        run.result.arrive[j] = at
        run.waiting.append(j)
        run.arrived.append(j)
    run.left = [j for j in run.waiting if run.result.arrive[j] < run.leaves(j) <= run.now]
    for j in run.left:
        run.waiting.remove(j)
        run.promise.pop(j, None)
        run.tentative.discard(j)
        run.result.promised_first[j] = run.result.promised_last[j] = -1
    run.arrived = [j for j in run.arrived if j not in run.left]
