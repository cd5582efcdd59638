"""Nodes, slowly: a machine that knows where each unit of a job runs, for the replay of `policies.py`.

What is free is one long row of numbers: node after node, resource after resource, the shared resource device after
device, each in 1000 parts. So the profile of the counted machine serves here too. No code is shared with the kernels,
which must give the same starts, nodes and devices. What the rules leave open is settled and said here:

- Units of a job are numbered as they are placed: those on the first node of rule 4 first.
- The order of a queue knows a job by its `size`: units x cores of a unit, also where units are exclusive.
- A job that fits on no idle cluster takes no part. A unit that needs nothing at all fits anywhere, any number of times.
- An exclusive unit holds all that its node has, but is given by name only as many devices as it needs, by rule 5: on a
  node that is all free, the lowest.
- Parts of devices are summed as integers and then divided by 1000: the amount of a shared resource is
  (sum of m_d) / 1000, its term of A that / total_r. Sums of floats begin with 0.0 and go on in order.
- Totals count every node of the cluster, also of kinds that will not do.
- gradient: after an exclusive unit a node has nothing left. Typical jobs are never exclusive. What is more fragmented
  is summed over typical jobs, each a difference of integers: a difference of two sums would leave ties to rounding.
- A placement is chosen by what is free over the whole window, devices too: m_d is the least of the window.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dovetail.model.cluster import Cluster, Outage
from dovetail.model.requests import Requests
from dovetail.model.state import State
from tests.slow.policies import Block, Place, Profile, Size, SlowJob, _Replay

RULES = ("first", "best", "worst", "consolidate", "scarce", "gradient")
"""How nodes may be chosen."""

Free = list[list[int]]
"""What is free of each resource on one node: a list of one number, or one number per device of the shared one."""


@dataclass(frozen=True)
class NodeJob(SlowJob):
    """A job of so many units. `need`: of each resource for one unit; `share`: parts of each device that it needs;
    `kinds`: bit k is set where nodes of kind k will do."""

    units: int = 1
    need: Size = (1,)
    share: int = 1000
    per_node: int = 0
    exclusive: bool = False
    kinds: int = 1
    reservation: str = ""
    takes: Size = ()
    """Of what is counted for all jobs together."""


@dataclass(frozen=True)
class TypicalJob:
    """A unit that may come, and how probably: what the rule "gradient" keeps devices whole for."""

    probability: float
    need: Size
    share: int
    kinds: int


@dataclass(frozen=True)
class SlowNodes:
    """Nodes of some kinds, each a number of them and what one has, and the rule by which they are chosen.

    `shared` is the position of the resource that is shared in thousandths; -1: none.
    """

    kinds: tuple[tuple[int, Size], ...]
    shared: int = -1
    rule: str = "first"
    types: tuple[TypicalJob, ...] = ()
    outages: tuple[Outage, ...] = ()
    counted: Size = ()
    """What all jobs may take together: power, licences. It stands at the end of a row."""

    def changes(self, now: int) -> list[int]:
        known = [one for one in self.outages if one.told <= now]
        return [at for one in known for at in (one.begin, one.end) if at > now]

    def moments(self) -> list[int]:
        return [at for one in self.outages for at in (one.told, one.begin, one.end)]

    def failing(self, nodes: Iterable[int], after: int, before: int) -> int | None:
        """When the first of these nodes fails between two instants; None: none does."""
        some = set(nodes)
        times = [one.begin for one in self.outages if one.fails and not some.isdisjoint(one.nodes)]
        return min((at for at in times if after < at < before), default=None)

    def is_out(self, x: int, job: NodeJob, now: int, begin: int) -> bool:
        """Is node x known to be out, for this job, before it would have ended?"""
        return any(
            x in one.nodes and begin < one.end and begin + job.estimate > one.begin
            for one in self.outages
            if one.told <= now and not (one.only and one.only == job.reservation)
        )

    def out_of_order(self, run: _Replay, j: int) -> bool:
        job = run.jobs[j]
        assert isinstance(job, NodeJob)
        return any(self.is_out(x, job, run.now, run.promise[j]) for x in run.held[j].nodes)

    # What there is ------------------------------------------------------------------------------------------

    @cached_property
    def kind_of(self) -> list[int]:
        """The kind of each node."""
        return [k for k, (count, _) in enumerate(self.kinds) for _ in range(count)]

    @cached_property
    def whole(self) -> list[Free]:
        """What each node has when it is idle."""
        return [
            [[1000] * have if r == self.shared else [have] for r, have in enumerate(self.kinds[k][1])]
            for k in self.kind_of
        ]

    @cached_property
    def capacity(self) -> Size:
        return (*_in_a_row(self.whole), *self.counted)

    @cached_property
    def total(self) -> list[int]:
        """How much of each resource all nodes have together, the shared one in devices."""
        return [sum(count * have[r] for count, have in self.kinds) for r in range(len(self.kinds[0][1]))]

    def by_node(self, row: Sequence[int]) -> list[Free]:
        """A long row of numbers, node by node."""
        numbers = iter(row)
        return [[[next(numbers) for _ in part] for part in node] for node in self.whole]

    # Rule 2: how many units fit -----------------------------------------------------------------------------

    def units_on(self, x: int, m: Free, job: NodeJob | TypicalJob) -> int | None:
        """How many units could be on node x where m is free, one beside the other; None: any number."""
        if not job.kinds >> self.kind_of[x] & 1:
            return 0
        counts = []
        for r, need in enumerate(job.need):
            if need == 0:
                continue
            if r != self.shared:
                counts.append(m[r][0] // need)
            elif need == 1:
                counts.append(sum(part // job.share for part in m[r]))
            else:
                counts.append(len([part for part in m[r] if part >= job.share]) // need)
        return min(counts, default=None)

    def fit(self, x: int, m: Free, job: NodeJob) -> int:
        """How many units of the job may be on node x."""
        count = self.units_on(x, m, job)
        if job.exclusive:
            return 1 if m == self.whole[x] and count != 0 else 0
        limits = [job.units] + ([count] if count is not None else []) + ([job.per_node] if job.per_node > 0 else [])
        return min(limits)

    # Rule 4: which nodes ------------------------------------------------------------------------------------

    def amount(self, m: Free, r: int) -> float:
        """How much of a resource is free, as a part of all that the cluster has of it."""
        free = sum(m[r]) / 1000 if r == self.shared else m[r][0]
        return free / self.total[r]

    def available(self, m: Free, resources: Iterable[int]) -> float:
        """The sum of such parts."""
        value = 0.0
        for r in resources:
            if self.total[r] > 0:
                value += self.amount(m, r)
        return value

    def score(self, x: int, m: Free, job: NodeJob) -> tuple[float, float]:
        """How much node x is to be avoided for the job."""
        a = self.available(m, range(len(self.total)))
        if self.rule == "first":
            return (0, 0)
        if self.rule == "best":
            return (0, a)
        if self.rule == "worst":
            return (0, -a)
        if self.rule == "consolidate":
            return (0.0 if m != self.whole[x] else 1.0, -self.fit(x, m, job))
        if self.rule == "scarce":
            return (self.available(m, [r for r, need in enumerate(job.need) if need == 0]), a)
        if self.rule == "gradient":
            after = [list(part) for part in m]
            self.take(after, job, [])
            return (self.fragmentation_by(x, m, after), a)
        raise ValueError(f"no rule {self.rule!r}: {', '.join(RULES)}")

    def unusable(self, x: int, m: Free, job: TypicalJob) -> int:
        """Parts of devices that are free on node x and that a typical job could not use."""
        parts = m[self.shared] if self.shared >= 0 else []
        if self.shared >= 0 and job.need[self.shared] > 0 and self.units_on(x, m, job) != 0:
            return sum(part for part in parts if part < job.share)
        return sum(parts)

    def fragmentation(self, x: int, m: Free) -> float:
        """How many devices are free on node x that typical jobs could not use, on average (FGD, ATC'23)."""
        value = 0.0
        for job in self.types:
            value += job.probability * (self.unusable(x, m, job) / 1000)
        return value

    def fragmentation_by(self, x: int, m: Free, after: Free) -> float:
        """How much more that is once only `after` is free."""
        value = 0.0
        for job in self.types:
            value += job.probability * ((self.unusable(x, after, job) - self.unusable(x, m, job)) / 1000)
        return value

    # Rule 5, and all together -------------------------------------------------------------------------------

    def take(self, m: Free, job: NodeJob, used: list[int]) -> list[int]:
        """Take one unit's resources from m; the devices that it gets. `used`: those of the job's units before it."""
        need = job.need[self.shared] if self.shared >= 0 else 0
        parts = m[self.shared] if need else []
        good = [d for d, part in enumerate(parts) if part >= job.share and (need == 1 or d not in used)]
        devices = sorted(good, key=lambda d: (parts[d], d))[:need]
        assert len(devices) == need
        for r, part in enumerate(m):
            if job.exclusive:
                part[:] = [0] * len(part)
            elif r != self.shared:
                part[0] -= job.need[r]
        if not job.exclusive:
            for d in devices:
                parts[d] -= job.share
        return devices

    def place(self, profile: Profile, job: SlowJob, begin: int) -> Place | None:
        """Where the job would run from `begin` on, for its whole estimate; None: it does not fit."""
        assert isinstance(job, NodeJob)
        row = profile.least(begin, begin + job.estimate)
        free = self.by_node(row)
        now = profile.times[0]
        fits = [0 if self.is_out(x, job, now, begin) else self.fit(x, m, job) for x, m in enumerate(free)]
        common = row[len(row) - len(self.counted) :]
        if sum(fits) < job.units or any(have < taken for have, taken in zip(common, job.takes, strict=True)):
            return None
        good = [x for x, count in enumerate(fits) if count > 0]
        scores = {x: self.score(x, free[x], job) for x in good}
        nodes: list[int] = []
        devices: list[int] = []
        for x in sorted(good, key=lambda x: (*scores[x], x)):
            used: list[int] = []
            for _ in range(min(fits[x], job.units - len(nodes))):
                mine = self.take(free[x], job, used)
                used += mine
                nodes.append(x)
                devices.append(sum(1 << d for d in mine))
        after = (*_in_a_row(free), *(have - taken for have, taken in zip(common, job.takes, strict=True)))
        held = tuple(before - left for before, left in zip(row, after, strict=True))
        return Place(held, tuple(nodes), tuple(devices))

    def held(self, job: NodeJob, nodes: Sequence[int], devices: Sequence[int]) -> Size:
        """What a job holds whose units are on these nodes and devices, in a row."""
        rows = [[[0] * len(part) for part in node] for node in self.whole]
        for x, mask in zip(nodes, devices, strict=True):
            if job.exclusive:
                rows[x] = self.whole[x]
                continue
            for r, part in enumerate(rows[x]):
                if r != self.shared:
                    part[0] += job.need[r]
                for d in range(len(part)):
                    if r == self.shared and mask >> d & 1:
                        part[d] += job.share
        return (*_in_a_row(rows), *job.takes)


def _in_a_row(nodes: Sequence[Free]) -> Size:
    return tuple(number for node in nodes for part in node for number in part)


# What a planner decodes -------------------------------------------------------------------------------------


def machine_of(cluster: Cluster, rule: str = "first", types: tuple[TypicalJob, ...] = ()) -> SlowNodes:
    """The nodes of a cluster."""
    kinds = tuple((kind.count, kind.capacity) for kind in cluster.kinds)
    shared = cluster.shared_at
    return SlowNodes(kinds, shared, rule, types, cluster.outages, tuple(cluster.counted.values()))


def job_of(state: State, j: int) -> NodeJob:
    """A job of a state. Its run time is not known: the estimate stands in its place."""
    asked, estimate = state.requests, int(state.estimate[j])
    assert asked is not None
    return NodeJob(
        submit=int(state.submit[j]),
        size=(int(state.size[j]),),
        runtime=estimate,
        estimate=estimate,
        units=int(asked.units[j]),
        need=tuple(asked.need[j].tolist()),
        share=int(asked.share[j]),
        per_node=int(asked.per_node[j]),
        exclusive=bool(asked.exclusive[j]),
        kinds=bits(asked, j),
        takes=tuple(state.takes(np.array([j]))[0].tolist()),
        reservation=("", *state.cluster.reservations)[1 + asked.reservation[j]] if state.cluster else "",
    )


def bits(asked: Requests, job: int) -> int:
    """The kinds that will do for a job, as bits."""
    return sum(1 << k for k, will_do in enumerate(asked.sets[asked.among[job]].tolist()) if will_do)


def decode(
    state: State, order: Sequence[int], rule: str = "first", types: tuple[TypicalJob, ...] = ()
) -> dict[int, tuple[int, Place]]:
    """Each job of an order in turn at its earliest fit, beside what runs and those before it: its start and place."""
    assert state.cluster is not None
    machine = machine_of(state.cluster, rule, types)
    running: list[Block] = []
    for j in state.running.tolist():
        nodes = [int(x) for x in state.nodes[j]]
        masks = [int(mask) for mask in state.devices.get(j, [0] * len(nodes))]
        running.append((state.now, state.expected_end(j), machine.held(job_of(state, j), nodes, masks)))
    profile = Profile(state.now, machine.capacity, running)
    placed: dict[int, tuple[int, Place]] = {}
    for j in order:
        at, place = profile.earliest(machine, job_of(state, j))
        profile.change(at, at + int(state.estimate[j]), place.size, -1)
        placed[j] = (at, place)
    return placed
