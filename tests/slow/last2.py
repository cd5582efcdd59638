"""Last2 by the authors' rules, the slow way: a policy that is asked at every moment and tells another the estimates."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.policies.base import Policy
from dovetail.policies.registry import policy as policy_named


class Last2(Policy):
    """It remembers what has ended, so it serves one replay."""

    def __init__(self, policy: str, rules: Collection[str], jobs: int) -> None:
        self.inner, self.rules, self.name = policy_named(policy), frozenset(rules), policy
        self.first: Ints = np.zeros(jobs, np.int64)
        self.told: Ints = np.zeros(jobs, np.int64)
        self.at_start: Ints = np.zeros(jobs, np.int64)
        self._ran: dict[int, list[int]] = {}
        self._started: list[int] = []

    def decide(self, state: State) -> Plan:
        for step in (self._arrive, self._learn) if "arrivals-first" in self.rules else (self._learn, self._arrive):
            step(state)
        for job in state.running:
            if state.start[job] + self.told[job] <= state.now:
                self.told[job] = state.limit[job]
        if "fits" in self.rules and not len(state.ended) and all(state.size[job] > state.free for job in state.arrived):
            return Plan()
        if "anew" in self.rules:
            self._estimate(state, state.waiting)
        plan = self.inner.decide(replace(state, estimate=self.told))
        for job in plan.starts:
            self.at_start[job] = self.told[job]
            self._started.append(job)
        return plan

    def _learn(self, state: State) -> None:
        for job in sorted(state.ended.tolist(), key=self._started.index if "by-start" in self.rules else None):
            self._ran.setdefault(int(state.user[job]), []).append(state.now - int(state.start[job]))

    def _arrive(self, state: State) -> None:
        self._estimate(state, state.arrived)
        self.first[state.arrived] = self.told[state.arrived]

    def _estimate(self, state: State, jobs: Ints) -> None:
        for job in jobs.tolist():
            last = self._ran.get(int(state.user[job]), [])[-2:]
            if len(last) < (2 if "two" in self.rules else 1):
                self.told[job] = state.limit[job]
            else:
                mean = sum(last) / len(last)
                whole = int(mean) if "cut" in self.rules else int(mean + 0.5)
                self.told[job] = max(1, min(int(state.limit[job]), whole))
