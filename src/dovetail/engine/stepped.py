"""The event-by-event engine: for policies written in Python. One State per moment, one Plan back."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Generator
from dataclasses import dataclass, field, replace
from itertools import takewhile
from typing import Any, Final

import numpy as np

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.engine.accounts import Accounts
from dovetail.engine.compiled import arrivals, departures, read_only
from dovetail.engine.estimates import Estimator, estimator_of
from dovetail.engine.node_occupancy import NodeUse
from dovetail.errors import PolicyError
from dovetail.kernels.learners.learner import AT_ONCE, GIVEN, observe, outlived, predicted
from dovetail.kernels.state import AFTER, CHILD, SIBLING, THINK
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.requests import Placement, requests_of
from dovetail.model.schedule import Lost
from dovetail.model.state import State, counted_of
from dovetail.model.workload import Workload
from dovetail.names import of_user
from dovetail.policies.base import Policy

MOST_WAKES: Final = 10_000
"""How often a policy that starts no job on an idle machine may ask to be woken, until it is taken to be stuck."""


@dataclass
class Stepper:
    """A replay that asks a policy at each moment. `said`: an estimator, or one estimate per job. `see`, when given,
    is shown every state and plan. With `clock`, which counts nanoseconds, decisions take time: what a pass
    decides happens later by that time, in whole seconds; what is left of a second counts for the next pass.
    """

    workload: Workload
    cluster: Cluster
    policy: Policy
    said: Estimator | Ints
    seed: int = 0
    feedback: bool = False
    every_s: int = 0
    see: Callable[[State, Plan], None] | None = None
    clock: Callable[[], int] | None = None
    charged_s: float = 0.0
    """Seconds that decisions took in all."""
    now: int = 0
    passes: int = 0
    started: int = 0
    _waiting: list[int] = field(default_factory=list)
    _running: set[int] = field(default_factory=set)
    _ends: list[tuple[int, int]] = field(default_factory=list)
    _coming: list[tuple[int, int]] = field(default_factory=list)
    _ended: list[int] = field(default_factory=list)
    """Since the last pass; so are _arrived and _corrected."""
    _arrived: list[int] = field(default_factory=list)
    _corrected: list[int] = field(default_factory=list)
    _gone: list[int] = field(default_factory=list)
    """Lost since then."""
    _left: list[int] = field(default_factory=list)
    """Left the queue since then."""
    lost: list[Lost] = field(default_factory=list)
    first_arrive: dict[int, int] = field(default_factory=dict)
    """When each job that was lost came first."""
    _asked_last: bool = False
    """The last moment had a pass."""
    _over: bool = False
    """Nothing is left to happen."""
    _wakes: int = 0
    """Moments in a row with an idle machine and no job to come."""
    _standing: Plan = field(default_factory=Plan)

    def __post_init__(self) -> None:
        n = len(self.workload)
        unknown = [np.full(n, -1, np.int64) for _ in range(5)]
        self.start, self.arrive, self.promised_first, self.promised_last, self.accepted = unknown
        self._said = self.said if isinstance(self.said, Estimator) else estimator_of(self.workload, self.said)
        self.estimate = self._said.learner.first.copy()
        self._free = self.cluster.processors
        self._takes = self.cluster.takes(self.workload)
        self._spare = np.array(list(self.cluster.counted.values()), np.int64)
        self._counted = counted_of(self.cluster, self.workload)
        self._nodes = NodeUse(self.cluster, requests_of(self.workload, self.cluster)) if self.cluster.kinds else None
        self._user, self._deadline_s = self.workload.get("user"), self.workload.get("deadline_s").copy()
        self._told = {name: read_only(values) for name, values in self.workload.told.items()}
        self._accounts = Accounts(self.policy.turns, self.workload) if self.policy.turns else None
        links, held = arrivals(self.workload, self.feedback)
        self._links = links if links.shape[1] else None
        self._leaving = departures(self.workload)
        self._failures = self.cluster.failures
        self._known, self._changes = replace(self.cluster, outages=()), self._outage_moments()
        by_submit = np.flatnonzero(links[AFTER] < 0) if links.shape[1] else np.arange(n)
        plain = np.stack([self.workload.submit[by_submit], by_submit])
        self._coming = list(map(tuple, np.concatenate([plain, held], axis=1).T.tolist()))
        heapq.heapify(self._coming)

    def advance(self, until: int | None = None) -> bool:
        """Go on up to and including `until`, asking the policy. Returns True when nothing is left to happen."""
        moments = self.moments(until)
        state = next(moments, None)
        while state is not None:
            plan = self._decided(state)
            try:
                state = moments.send(plan)
            except StopIteration:
                state = None
        return self._over

    def moments(self, until: int | None = None) -> Generator[State, Plan, None]:
        """Each state in which a plan is asked for; it is sent back, and carried out."""
        while True:
            now = self._next()
            self._over = now is None
            if now is None:
                return
            if self._failures and self._failures[-1].begin <= min(now, now if until is None else until):
                self._fail(self._failures[-1].begin)
                continue
            if until is not None and now > until:
                return
            self.now = now
            self._leave()
            ended, arrived = self._end_jobs(), self._arrivals()
            self._learn(ended, arrived)
            self._ended += ended
            self._arrived += arrived
            self._asked_last = not self.every_s or (now % self.every_s == 0 and bool(self._waiting))
            if self._asked_last:
                plan = yield self._seen()
                self._carry_out(plan)

    def _next(self) -> int | None:
        if self.clock is not None and self._asked_last and (self._ended or self._arrived):
            return self.now  # they came while the last decision was made
        times = [heap[0][0] for heap in (self._ends, self._coming) if heap]
        self._wakes = self._wakes + 1 if not times else 0
        times += self._departure(min(times, default=NEVER))
        if self._standing.wake is not None and self._standing.wake > self.now and self._wakes < MOST_WAKES:
            times.append(self._standing.wake)
        while self._changes and self._changes[-1] <= self.now:
            self._changes.pop()
        if self._changes and self._waiting:
            times.append(self._changes[-1])
        # On an idle machine, with no job to come, a policy that has just started nothing is taken to be stuck.
        hope = times or not self._asked_last
        if self.every_s and self._waiting and hope:
            times.append((self.now // self.every_s + 1) * self.every_s)
        return min(times) if times else None

    def _fail(self, at: int) -> None:
        """Nodes fail: who runs there and does not end in this second is lost, and waits again."""
        out = set[int]()
        while self._failures and self._failures[-1].begin == at:
            out |= set(self._failures.pop().nodes)
        if self._nodes is None:
            return
        for end, job in sorted(self._ends, key=lambda one: one[1]):
            nodes = self._nodes.of(job)
            if end > at and not out.isdisjoint(nodes.tolist()):
                devices, estimate = self._nodes.devices_of(job).copy(), int(self._said.learner.first[job])
                self.lost.append(Lost(job, int(self.start[job]), at, nodes.copy(), devices, estimate))
                self._ends.remove((end, job))
                self._running.remove(job)
                self._nodes.end(job)
                self._free += self._cores(job)
                self._spare += self._takes[job]
                nodes[:] = -1
                if self.cluster.shared:
                    self._nodes.placement.devices_of(job)[:] = -1
                self.start[job] = self.promised_first[job] = self.promised_last[job] = self.accepted[job] = -1
                self.first_arrive.setdefault(job, int(self.arrive[job]))
                if self._deadline_s[job] >= 0:  # counted from when it comes again
                    self._deadline_s[job] = max(self._deadline_s[job] - (at - self.arrive[job]), 0)
                self._coming.append((max(at, self.now), job))
                self._gone.append(job)
                self.started -= 1
        heapq.heapify(self._ends)
        heapq.heapify(self._coming)
        self._standing = self._standing.without(self._gone)

    def _departure(self, before: int) -> list[int]:
        """When the next of those who wait now leaves, if that is before an instant."""
        waiting = set(self._waiting if self._leaving else ())
        soon = takewhile(lambda one: one[0] < before, reversed(self._leaving))
        return [at for at, job in soon if job in waiting and job not in self.first_arrive][:1]

    def _leave(self) -> None:
        """Jobs leave the queue."""
        waiting, out = set(self._waiting if self._leaving else ()), list[int]()
        while self._leaving and self._leaving[-1][0] <= self.now:
            job = self._leaving.pop()[1]
            out += [job] * (job in waiting and job not in self.first_arrive)  # who has run stays
        if out:
            self._waiting = [job for job in self._waiting if job not in out]
            self._arrived = [job for job in self._arrived if job not in out]
            self._left += out
            self.promised_first[out] = self.promised_last[out] = -1
            self._standing = self._standing.without(out)

    def _outage_moments(self) -> list[int]:
        """When outages get known, begin and end, the first last."""
        return sorted({at for one in self.cluster.outages for at in (one.told, one.begin, one.end)})[::-1]

    def _end_jobs(self) -> list[int]:
        ended = []
        while self._ends and self._ends[0][0] == self.now:
            job = heapq.heappop(self._ends)[1]
            ended.append(job)
            self._running.remove(job)
            if self._nodes is not None:
                self._nodes.end(job)
            self._free += self._cores(job)
            self._spare += self._takes[job]
            child = int(self._links[CHILD, job]) if self._links is not None else -1
            while child >= 0 and self._links is not None:
                heapq.heappush(self._coming, (self.now + int(self._links[THINK, child]), child))
                child = int(self._links[SIBLING, child])
        return ended

    def _cores(self, job: int) -> int:
        return self._nodes.cores(job) if self._nodes is not None else int(self.workload.size[job])

    @property
    def coming(self) -> int:
        """How many jobs are still to come, as far as it is known."""
        return len(self._coming)

    @property
    def placement(self) -> Placement | None:
        """Where each job ran, if nodes are known."""
        return self._nodes.placement if self._nodes is not None else None

    def _on_nodes(self, ended: list[int]) -> dict[str, Any]:
        """What a state says of nodes."""
        if self._nodes is None:
            return {}
        here = [*self._running, *ended]
        nodes, devices = ({job: of(job) for job in here} for of in (self._nodes.of, self._nodes.devices_of))
        return {"cluster": self._cluster_now(), "requests": self._nodes.requests, "nodes": nodes, "devices": devices}

    def _cluster_now(self) -> Cluster:
        """The cluster with the outages that are known now and not over."""
        if not self.cluster.outages:
            return self.cluster
        known = self.cluster.known(self.now)
        if known != self._known.outages:
            self._known = replace(self.cluster, outages=known)
        return self._known

    def _arrivals(self) -> list[int]:
        arrived = []
        while self._coming and self._coming[0][0] == self.now:
            arrived.append(heapq.heappop(self._coming)[1])
        for job in arrived:
            self.arrive[job] = self.now
        self._waiting += arrived
        return arrived

    def _learn(self, ended: list[int], arrived: list[int]) -> None:
        """What is now known of run times, as the compiled replay would have it."""
        learner, runtime = self._said.learner, self.workload.runtime
        if learner.kind != GIVEN:
            for job in ended:
                observe(learner, job, int(runtime[job]))
            for job in arrived:
                learner.first[job] = predicted(learner, runtime, job)
        self._said.ask(np.array(ended, np.int64), np.array(arrived, np.int64))
        self.estimate[arrived] = learner.first[arrived]
        if learner.correction != AT_ONCE:
            for job in self._running:
                ran = self.now - int(self.start[job])
                if self.estimate[job] <= ran:
                    self.estimate[job] = outlived(learner, runtime, job, ran)
                    self._corrected.append(job)

    def _seen(self) -> State:
        """What is to be seen in this pass."""
        ended, arrived, self._ended, self._arrived = self._ended, self._arrived, [], []
        corrected, self._corrected = sorted(self._corrected), []
        gone, self._gone = sorted(set(self._gone)), []
        left, self._left = sorted(self._left), []
        self.passes += 1
        submit, future = self.arrive, np.arange(0)
        if self.policy.clairvoyant:  # jobs arrive in their order, so those to come are the last rows
            submit = np.where(self.arrive >= 0, self.arrive, self.workload.submit)
            future = np.arange(self.started + len(self._waiting), len(self.workload))
        return State(
            now=self.now, processors=self.cluster.processors, free=self._free,
            waiting=np.array(self._waiting, np.int64), running=np.array(sorted(self._running), np.int64),
            arrived=np.array(arrived, np.int64), ended=np.array(ended, np.int64),
            submit=read_only(submit), size=self.workload.size, limit=self.workload.limit,
            estimate=read_only(self.estimate), user=self._user, start=read_only(self.start), seed=self.seed,
            standing=self._standing, future=future, corrected=np.array(corrected, np.int64),
            lost=np.array(gone, np.int64), left=np.array(left, np.int64), columns=self._told,
            deadline_s=read_only(self._deadline_s), turn=self._turn(), **self._counted, **self._on_nodes(ended),
        )  # fmt: skip

    def _decided(self, state: State) -> Plan:
        """What the policy answers; where decisions take time, that has passed."""
        began = self.clock() if self.clock is not None else 0
        with of_user(f"{self.policy.name}.decide"):
            plan = self.policy.decide(state)
        spent = self.clock() - began if self.clock is not None else 0
        if not isinstance(plan, Plan):
            raise PolicyError(f"{self.policy.name}.decide returned {type(plan).__name__}: it must return a Plan")
        if self.clock is not None:
            self._charge(spent / 1e9)
            if plan.wake is not None and plan.wake <= self.now:
                plan = replace(plan, wake=self.now + 1)
        if self.see is not None:
            self.see(state, plan)
        return plan

    def _turn(self) -> Floats:
        """Whose turn it is, if the policy wants to know."""
        if self._accounts is None:
            return np.empty(0)
        came = (self.arrive, self.first_arrive)
        return read_only(self._accounts.turn(self.now, self.start, len(self.workload), came, self.lost))

    def _charge(self, seconds: float) -> None:
        """Let the time that a decision took pass. Jobs that end or arrive meanwhile are known to the next pass."""
        until = self.now + int(self.charged_s + seconds) - int(self.charged_s)
        self.charged_s += seconds
        while (times := [heap[0][0] for heap in (self._ends, self._coming) if heap]) and min(times) <= until:
            self.now = min(times)
            ended, arrived = self._end_jobs(), self._arrivals()
            self._learn(ended, arrived)
            self._ended += ended
            self._arrived += arrived
        self.now = until

    def _carry_out(self, plan: Plan) -> None:
        waiting = set(self._waiting)
        for job, at in plan.promised.items():
            if job not in waiting:
                raise PolicyError(f"{self.policy.name} at {self.now} s promises job {job}, which is not waiting")
            if self.promised_first[job] < 0:
                self.promised_first[job] = at
            self.promised_last[job] = at
        for job, at in plan.deadlines.items():
            if job not in waiting:
                raise PolicyError(f"{self.policy.name} at {self.now} s gives job {job} a deadline: it is not waiting")
            if self.accepted[job] < 0:
                self.accepted[job] = at >= 0
        for job in plan.starts:
            if job not in waiting:
                raise PolicyError(f"{self.policy.name} at {self.now} s starts job {job}, which is not waiting")
            until = self.now + int(self.estimate[job])
            if self._nodes is not None and (wrong := self._nodes.start(job, plan, self.now, until)):
                raise PolicyError(f"{self.policy.name} at {self.now} s starts job {job} {wrong}")
            size = self._cores(job)  # of one that takes whole nodes, once it is known which
            if size > self._free:
                raise PolicyError(
                    f"{self.policy.name} at {self.now} s starts job {job}, which needs {size} processors;"
                    f" {self._free} are free"
                )
            for what, taken, left in zip(self.cluster.counted, self._takes[job], self._spare, strict=True):
                if taken > left:
                    words = f"starts job {job}, which takes {taken:,} {what}; {left:,} are left"
                    raise PolicyError(f"{self.policy.name} at {self.now} s {words}")
            waiting.remove(job)
            self._free -= size
            self._spare -= self._takes[job]
            self.start[job] = self.now
            if self.promised_first[job] >= 0:
                self.promised_last[job] = self.now
            self._running.add(job)
            heapq.heappush(self._ends, (self.now + int(self.workload.runtime[job]), job))
        if len(plan.starts):
            self._waiting = [job for job in self._waiting if job in waiting]
        self.started += len(plan.starts)
        self._standing = plan
