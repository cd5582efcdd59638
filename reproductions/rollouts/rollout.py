"""A planner that looks further: its few different answers to what starts now, each followed into drawn futures.

An experiment beside the package. In each pass several planners propose what to start: the one that is to be improved,
the same with the price of commitment, with foresight, for slowdown, and itself with its widest start held back. Where
they differ, each proposal is followed: jobs come as they came at this hour of one of the days before, jobs run as long
as such jobs ran, and a planner with fewer decodes decides on the way, until all have started. The proposal with the
least mean cost starts.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from time import thread_time
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.engine.compiled import Replay
from dovetail.kernels import replay as kernel
from dovetail.kernels import state as layout
from dovetail.kernels.learners.learner import new_learner
from dovetail.kernels.passes.rule import fitted
from dovetail.model.cluster import Cluster
from dovetail.model.machine import new_machine
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.policies.base import Asked, Policy
from dovetail.policies.planner import Planner
from dovetail.units import DAY_S

COMING: Final = 50
"""Jobs that are drawn to come."""
DAYS: Final = 14
"""The days before that they are drawn from."""
NEAR_S: Final = 1800
"""How far from this hour they may begin, to both sides."""
MOST: Final = 5
"""Proposals that are followed."""


@dataclass
class Rollout(Policy):
    """`draws` futures, the same for each proposal. `known`: estimates are the run times."""

    planner: Planner
    draws: int
    known: bool
    follow: int = 0
    """Decodes of the planner on the way."""
    name: str = "rollout"
    looked: int = 0
    """Passes in which proposals differed."""
    passes: int = 0
    """Passes in which some waiting job fits."""
    spent_s: float = 0.0
    """CPU seconds of these."""
    changed: int = 0
    """Passes in which another than the first proposal started."""
    _ratios: list[float] = field(default_factory=list)
    """Run time over estimate of the jobs that have ended."""
    _ran: dict[int, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one = self.planner
        self._others = [replace(one, commit=0.5), replace(one, foresight=4), replace(one, objective="bsld")]

    def decide(self, state: State) -> Plan:
        for job in state.ended.tolist():
            self._ran[job] = state.now - int(state.start[job])
            self._ratios.append(self._ran[job] / max(int(state.estimate[job]), 1))
        if not (state.size[state.waiting] <= state.free).any():
            return self.planner.decide(state)
        began = thread_time()
        plan = self._chosen(state)
        self.passes += 1
        self.spent_s += thread_time() - began
        return plan

    def _chosen(self, state: State) -> Plan:
        first = self.planner.decide(state)
        found = {frozenset(first.starts): first}
        for other in self._others:
            plan = other.decide(state)
            found.setdefault(frozenset(plan.starts), plan)
        if first.starts and len(first.starts) + len(state.running) > 1:  # the widest of those that start is held
            held = max(first.starts, key=lambda job: int(state.size[job]))
            starts = [job for job in first.starts if job != held]
            plan = replace(first, starts=starts, expected={**first.expected, held: state.now + 1})
            found.setdefault(frozenset(starts), plan)
        plans = list(found.values())[:MOST]
        if len(plans) == 1 or not self.draws:
            return first
        self.looked += 1
        rng = np.random.Generator(np.random.PCG64([state.seed, state.now]))
        total = np.zeros(len(plans))
        here = np.concatenate([state.waiting, state.running])
        for _ in range(self.draws):
            coming = self._coming(state, rng)
            runtime = self._runtimes(state, np.concatenate([here, coming[0]]), rng)
            total += [self._cost(state, plan, here, coming, runtime) for plan in plans]
        best = int(total.argmin())
        self.changed += best > 0
        return plans[best]

    def _coming(self, state: State, rng: np.random.Generator) -> Ints:
        """Jobs like which some will come, and when: those that came from this hour of an earlier day on."""
        came = np.flatnonzero((state.submit >= 0) & (state.submit < state.now))
        at = state.now - DAY_S * int(rng.integers(1, DAYS + 1)) + int(rng.integers(-NEAR_S, NEAR_S + 1))
        first = int(np.searchsorted(state.submit[came], at))
        if not len(came) or at <= state.submit[came[0]]:
            return np.empty((2, 0), np.int64)
        jobs = came[first : first + COMING]
        return np.stack([jobs, state.now + 1 + np.maximum(state.submit[jobs] - at, 0)])

    def _runtimes(self, state: State, jobs: Ints, rng: np.random.Generator) -> Ints:
        """How long each runs: as known, else the part of its estimate that some job ran for, and longer than so far."""
        estimate = state.estimate[jobs]
        if self.known or not self._ratios:
            return estimate.copy()
        drawn = np.ceil(estimate * rng.choice(self._ratios, len(jobs))).astype(np.int64)
        start = np.where(np.isin(jobs, state.running), state.start[jobs], state.now)
        so_far = np.maximum(state.now - start, 0)
        return np.clip(np.where(drawn > so_far, drawn, estimate), np.minimum(so_far + 1, estimate), estimate)

    def _cost(self, state: State, plan: Plan, here: Ints, coming: Ints, runtime: Ints) -> float:
        """What all that wait and come will have waited, by the objective, if this starts now."""
        waits = ~np.isin(state.waiting, plan.starts)
        n, m = len(here), coming.shape[1]
        jobs = np.full((layout.JOB_ROWS, n + m), -1, np.int64)
        both = np.concatenate([here, coming[0]])
        jobs[layout.SIZE], jobs[layout.ESTIMATE], jobs[layout.RUNTIME] = state.size[both], state.estimate[both], runtime
        jobs[layout.SUBMIT, :n] = jobs[layout.ARRIVE, :n] = state.submit[here]
        jobs[layout.SUBMIT, n:] = coming[1]
        jobs[layout.START, len(waits) : n] = state.start[state.running]
        jobs[layout.START, : len(waits)][~waits] = state.now
        jobs[layout.SEEN], jobs[layout.NUMBER] = 0, np.arange(n + m)
        jobs[layout.UNTIL] = np.arange(1, n + m + 1)
        queue = np.flatnonzero(waits)
        ran = np.concatenate([np.flatnonzero(~waits), np.arange(len(waits), n)])
        info = np.zeros(layout.INFO, np.int64)
        info[[layout.NOW, layout.NEXT, layout.LAST, layout.LONG]] = [state.now, n, n + m, 1 << 40]
        info[[layout.WAITING, layout.RUNNING, layout.PHASE]] = [len(queue), len(ran), layout.BETWEEN]
        lists = np.zeros((layout.LIST_ROWS, 2 * (n + m) + 64), np.int64)
        lists[layout.QUEUE, : len(queue)] = queue
        ends = np.maximum(jobs[layout.START, ran] + runtime[ran], state.now + 1)
        in_turn = np.lexsort((ran, ends))
        lists[layout.END_AT, : len(ran)], lists[layout.END_JOB, : len(ran)] = ends[in_turn], ran[in_turn]
        none = np.empty((4, 0), np.int64)
        run = layout.Run(info, jobs, np.zeros((2, n + m)), none, np.empty((2, 0), np.int64), lists)
        rule = replace(self.planner, decodes=self.follow, foresight=0, commit=0.0).rule(Asked(seed=state.seed))
        takes = np.empty((n + m, 0), np.int64)
        cap = new_machine(Cluster(state.processors), jobs[layout.SIZE], None, takes, "first", lists.shape[1])
        kernel.occupy(cap, run, state.now)
        limit = jobs[layout.ESTIMATE].copy()
        made = Replay(run, cap, fitted(rule, cap, lists.shape[1]), new_learner(limit, first=limit))
        made.advance()
        if bool((made.start < 0).any()):
            raise ValueError("a future has come to its end, and not all have started")
        counted = np.concatenate([np.arange(len(waits)), np.arange(n, n + m)])
        wait: Floats = (made.start[counted] - jobs[layout.SUBMIT, counted]).astype(np.float64)
        weight = 1.0 if self.planner.objective == "af" else (jobs[layout.SIZE] * runtime)[counted].astype(np.float64)
        return float((weight * wait).sum())
