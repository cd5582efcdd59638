"""How long one pass takes: a replay that stops at every moment, with a clock around the pass alone.

Kernels have no clock, but the compiled replay can stop when jobs have ended or arrived, just before the pass; asked to
go on no further than that moment, it makes the pass and comes back. The clock counts the CPU time of this thread, so
other work on the machine is not in it.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dovetail.engine.compiled import Replay, new_replay
from dovetail.engine.estimates import Said
from dovetail.engine.replay import checked, finished, made_ready, replay
from dovetail.errors import SettingError
from dovetail.kernels import replay as kernel
from dovetail.kernels import state as layout
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Ints, Workload
from dovetail.policies.base import Policy, RulePolicy, is_clairvoyant

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
    policy: Policy,
    *,
    cluster: Cluster | None = None,
    estimate: str = "limit",
    feedback: bool = False,
    seed: int = 0,
) -> tuple[Schedule, PassTimes]:
    """The same schedule as that of `replay`, and how long each of its passes took.

    A pass is timed from the moment at which the news is known to the jobs chosen and started. Policies in Python are
    asked event by event: their passes are calls of `decide`.
    """
    if cluster is None:
        cluster = Cluster(workload.processors)
    if not isinstance(policy, RulePolicy) or policy.timed:
        rule = policy.rule(seed=seed) if isinstance(policy, RulePolicy) else None
        cluster = made_ready(cluster, workload, policy, rule)
        watch = _Watched(policy, policy.name)
        schedule = replay(workload, watch, cluster=cluster, estimate=estimate, feedback=feedback, seed=seed)
        return schedule, _times(watch.ns, watch.searched, lambda: None)
    if policy.user_keys:
        raise SettingError("passes are timed for built-in policies and for policies in Python, not for a user's order")
    said = checked(workload, cluster, policy, estimate, feedback=feedback)
    rule = policy.rule(bounded=said.bounded, stop_for_news=True, seed=seed)
    cluster = made_ready(cluster, workload, policy, rule)
    whole = new_replay(workload, cluster, rule, said.learner, feedback=feedback, place=policy.place)
    times = _stepped(whole, said)
    return finished(whole, workload, cluster, policy, estimate, seed), times


def _stepped(whole: Replay, said: Said) -> PassTimes:
    """Run to the end, one pass at a time."""
    ns: list[int] = []
    searched: list[bool] = []
    size = whole.run.jobs[layout.SIZE]

    def one_pass(at: Replay, ended: Ints, arrived: Ints) -> None:
        if said.asked:
            said.told(at, ended, arrived)
        least = min(int(size[jobs].min()) if len(jobs) else layout.NEVER for jobs in (at.waiting, arrived))
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


@dataclass
class _Watched(Policy):
    """A policy with a clock around each of its decisions."""

    inner: Policy
    name: str
    ns: list[int] = field(default_factory=list)
    searched: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.clairvoyant = is_clairvoyant(self.inner)  # type: ignore[misc]  # what its class says, said for it

    def decide(self, state: State) -> Plan:
        fits = state.size[state.waiting] <= state.free
        self.searched.append(bool(fits.any()))
        begin = time.thread_time_ns()
        plan = self.inner.decide(state)
        self.ns.append(time.thread_time_ns() - begin)
        return plan
