"""How long one pass takes: a replay that stops at every moment, with a clock around the pass alone.

Kernels have no clock, but the compiled replay can stop when jobs have ended or arrived, just before the pass; asked to
go on no further than that moment, it makes the pass and comes back. The clock counts the CPU time of this thread, so
other work on the machine is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.arrays import NEVER, Ints
from dovetail.energy.site import Site
from dovetail.engine.compiled import Replay, new_replay
from dovetail.engine.estimates import Estimator
from dovetail.engine.replay import checked, finished, made_ready, replay
from dovetail.errors import SettingError
from dovetail.kernels import replay as kernel
from dovetail.kernels import state as layout
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.policies.base import Asked, Policy
from dovetail.policies.registry import policy as policy_named

_EMPTY = 1001
"""Empty steps that the overhead is the median of."""


@dataclass(frozen=True)
class PassTimes:
    """CPU seconds of every pass of a replay, in turn."""

    seconds: npt.NDArray[np.float64]
    searched: npt.NDArray[np.bool_]
    """Whether some waiting job fitted: else nothing can start, and a planner does not search."""
    overhead_s: float
    """CPU seconds of a step in which nothing happens: what the stepping itself adds to each pass."""


def timed_replay(
    workload: Workload,
    policy: Policy | str,
    *,
    cluster: Cluster | None = None,
    estimate: str = "limit",
    feedback: bool = False,
    seed: int = 0,
    site: Site | None = None,
) -> tuple[Schedule, PassTimes]:
    """The same schedule as that of `replay`, and how long each of its passes took.

    A pass is timed from the moment at which the news is known to the jobs chosen and started. Policies in Python are
    asked event by event: their passes are calls of `decide`.
    """
    if cluster is None:
        cluster = Cluster(workload.processors)
    policy = policy_named(policy).at(site, workload, cluster)
    if not policy.compiled or policy.timed:
        watch = _Watched(policy)
        schedule = replay(workload, watch, cluster=cluster, estimate=estimate, feedback=feedback, seed=seed)
        return schedule, _times(watch.ns, watch.searched, lambda: None)
    if policy.choices:
        raise SettingError(f"{policy.name}: passes are timed of one planner, not of one that chooses among several")
    if policy.user_keys:
        raise SettingError(f"{policy.name}: passes are not timed where an order or weights are asked for on the way")
    estimator = checked(workload, cluster, policy, estimate, feedback=feedback)
    cluster = made_ready(cluster, workload, policy)
    rule = policy.rule(Asked(0, estimator.bounded, True, False, seed, bool(cluster.kinds)))
    whole = new_replay(workload, cluster, rule, estimator.learner, feedback=feedback, place=policy.place)
    times = _stepped(whole, estimator)
    return finished(whole, workload, cluster, policy, estimate, seed), times


def _stepped(whole: Replay, estimator: Estimator) -> PassTimes:
    """Run to the end, one pass at a time."""
    ns: list[int] = []
    searched: list[bool] = []
    size = whole.run.jobs[layout.SIZE]

    def one_pass(at: Replay, ended: Ints, arrived: Ints) -> None:
        if estimator.asked:
            estimator.told(at, ended, arrived)
        least = min(int(size[jobs].min()) if len(jobs) else NEVER for jobs in (at.waiting, arrived))
        searched.append(least <= at.free)
        now = at.now
        begin = time.thread_time_ns()
        kernel.replay(at.cap, at.run, at.rule, at.learner, now)
        ns.append(time.thread_time_ns() - begin)

    whole.on_news = one_pass
    whole.advance()
    return _times(ns, searched, lambda: kernel.replay(whole.cap, whole.run, whole.rule, whole.learner, whole.now))


def _times(ns: list[int], searched: list[bool], empty: Callable[[], object]) -> PassTimes:
    """With the overhead, measured on a step that does nothing."""
    taken = []
    for _ in range(_EMPTY):
        begin = time.thread_time_ns()
        empty()
        taken.append(time.thread_time_ns() - begin)
    return PassTimes(np.array(ns) / 1e9, np.array(searched, np.bool_), float(np.median(taken)) / 1e9)


class _Watched(Policy):
    """A policy with a clock around each of its decisions. What it declares is what that one does."""

    def __init__(self, own: Policy) -> None:
        self.own, self.name = own, own.name
        self.ns: list[int] = []
        self.searched: list[bool] = []

    @property
    def clairvoyant(self) -> bool:
        return self.own.clairvoyant

    @property
    def deciders(self) -> tuple[Policy, ...]:
        return self.own, *self.own.deciders

    def decide(self, state: State) -> Plan:
        fits = state.size[state.waiting] <= state.free
        self.searched.append(bool(fits.any()))
        begin = time.thread_time_ns()
        plan = self.own.decide(state)
        self.ns.append(time.thread_time_ns() - begin)
        return plan
