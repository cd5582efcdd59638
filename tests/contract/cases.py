"""Random cases that every engine must agree on: a workload, a policy in both spellings, and the options.

The same seed gives the same case everywhere: in tests and in benchmarks/many_cases.py.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import inf

import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.replay import replay
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.policies.base import Policy, RulePolicy
from dovetail.policies.conservative import Conservative
from dovetail.policies.deadline import DeadlineBackfilling
from dovetail.policies.lists import ORDERS, ListPolicy
from dovetail.referee import check_schedule
from tests.slow import policies as slow
from tests.slow.workloads import random_jobs, with_comings, with_deadlines, workload_of

SWEEPS = {
    "once": "submit", "each-end": "each-end", "repeat": "repeat", "by-start": "start", "start-now": "now",
    "none": "none",
}  # fmt: skip
"""Our names of the sweeps, and those of the slow policies."""


@dataclass(frozen=True)
class Case:
    """One replay, ready to be run by each engine."""

    seed: int
    jobs: Sequence[slow.SlowJob]
    processors: int
    policy: ListPolicy | Conservative | DeadlineBackfilling
    slow_policy: slow.ListPolicy | slow.Conservative | slow.Deadline
    feedback: bool
    every_s: int

    @property
    def workload(self) -> Workload:
        return workload_of(self.jobs, (self.processors,))

    @property
    def estimate(self) -> Ints:
        return np.array([job.estimate for job in self.jobs], np.int64)

    @property
    def bounded(self) -> bool:
        """Estimates are upper bounds of the run times."""
        return all(job.estimate >= job.runtime for job in self.jobs)

    @property
    def protects(self) -> bool:
        """Promises must hold: conservative, or EASY in FCFS order, with estimates that are upper bounds."""
        return self.bounded and not self.every_s and protects(self.policy)

    def replay(self, policy: RulePolicy | None = None, *, keep: bool = True, event_by_event: bool = False) -> Schedule:
        """What an engine makes of it."""
        return replay(
            self.workload,
            policy or self.policy,
            cluster=Cluster(self.processors),
            estimate=self.estimate,
            feedback=self.feedback,
            every_s=self.every_s,
            keep_promises=keep,
            event_by_event=event_by_event,
        )


def case(seed: int) -> Case:
    """The case of that number: all policies, orders and options come up."""
    rng = random.Random(seed)
    feedback, too_small = rng.random() < 0.3, rng.random() < 0.4
    jobs, capacity = random_jobs(rng, too_small=too_small, feedback=feedback)
    if seed % 3 == 2:
        jobs = with_comings(random.Random(f"comings {seed}"), jobs, leave=not feedback)
    if seed % 5 == 4:
        guard, sweep = rng.random() < 0.7, rng.choice(("once", "once", "start-now", "none"))
        jobs = with_deadlines(rng, jobs)
        dbf = DeadlineBackfilling(guard, sweep, _depth(rng))
        return Case(seed, jobs, capacity[0], dbf, _slow(dbf), feedback, 0)
    policy = _policy(rng)
    every_s = 0 if isinstance(policy, Conservative) else rng.choice((0, 0, 0, 3, 10))
    return Case(seed, jobs, capacity[0], policy, _slow(policy), feedback, every_s)


def _slow(policy: Policy) -> slow.ListPolicy | slow.Conservative | slow.Deadline:
    found = slow_of(policy)
    assert found is not None, policy
    return found


def _depth(rng: random.Random) -> int | str:
    """How many blocked jobs are planned."""
    return rng.choice(("all", "all", "all", 1, 2, 5))


def _policy(rng: random.Random) -> ListPolicy | Conservative:
    if rng.random() < 0.35:
        depth, sweep = _depth(rng), rng.choice(tuple(SWEEPS))
        return Conservative(sweep, depth)
    order = rng.choice((*ORDERS, "fcfs", "fcfs"))
    backfill = rng.choice((None, None, *ORDERS))
    reserve = rng.choice(("strict", 0, 1, 1, 1, 2, 3, 5, "all", "all"))
    starve = rng.choice((None, None, None, 0, 5, 20))
    relax = slack = 0.0
    if reserve not in ("strict", 0) and rng.random() < 0.4:
        if rng.random() < 0.5:
            relax = rng.choice((0.1, 0.5, 1.0, 2.0))
        else:
            slack = rng.choice((0.1, 0.5, 1.0))
    return ListPolicy(order, reserve, backfill, starve, relax, slack)


def protects(policy: Policy) -> bool:
    """Whether a policy keeps its promises while estimates are upper bounds: conservative, or EASY in FCFS order."""
    if isinstance(policy, DeadlineBackfilling):
        return policy.guard
    if isinstance(policy, ListPolicy):
        return policy.order == "fcfs" and policy.reserve == 1 and not policy.keeps_promises
    return policy.keeps_promises


def slow_of(policy: Policy) -> slow.ListPolicy | slow.Conservative | slow.Deadline | None:
    """The same policy in slow code; None where that does not know all of its settings."""
    if isinstance(policy, DeadlineBackfilling):
        known = DeadlineBackfilling(policy.guard, policy.sweep, policy.depth)
        depth = inf if policy.depth == "all" else int(policy.depth)
        return slow.Deadline(policy.guard, SWEEPS[policy.sweep], depth) if _alike(known, policy) else None
    if isinstance(policy, Conservative):
        depth = inf if policy.depth == "all" else int(policy.depth)
        known_one = Conservative(policy.sweep, policy.depth)
        return slow.Conservative(SWEEPS[policy.sweep], depth) if _alike(known_one, policy) else None
    if type(policy) is not ListPolicy or callable(policy.order) or (policy.relax and policy.slack):
        return None
    settings = (policy.order, policy.reserve, policy.backfill, policy.starve_s, policy.relax, policy.slack)
    if not _alike(ListPolicy(*settings, place=policy.place), policy):
        return None
    return slow.ListPolicy(*settings[:4], policy.relax or None, policy.slack or None)


def _alike(known: Policy, policy: Policy) -> bool:
    """The same but for the name."""
    return replace(known, name=policy.name) == policy  # type: ignore[type-var]


def disagreements(this: Case) -> list[str]:
    """All that differs between slow replay, whole run and event-by-event run; all broken rules."""
    wanted = slow.slow_replay(
        this.jobs, this.processors, this.slow_policy, feedback=this.feedback, every=this.every_s or None
    )
    found = []
    for name, by_event in (("whole run", False), ("event by event", True)):
        got = this.replay(event_by_event=by_event)
        for column in ("start", "arrive", "promised_first", "promised_last", "accepted"):
            have, want = getattr(got, column).tolist(), getattr(wanted, column)
            if have != want and (column != "accepted" or max(want) >= 0):
                found.append(f"seed {this.seed}, {name}: {column} {have}, slow replay {want}")
        if got.passes != wanted.passes:
            found.append(f"seed {this.seed}, {name}: {got.passes} passes, slow replay {wanted.passes}")
        broken = check_schedule(got, promises=this.protects)
        found += [f"seed {this.seed}, {name}: {violation}" for violation in broken]
    # Where nobody wants to know the reservations, passes take shorter ways: to the same starts.
    bare = this.replay(keep=False).start.tolist()
    if bare != wanted.start:
        found.append(f"seed {this.seed}, without promises: start {bare}, slow replay {wanted.start}")
    return found
