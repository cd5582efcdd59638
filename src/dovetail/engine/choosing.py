"""A replay of a policy that chooses on the way who decides, of what has been seen until then."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.engine.compiled import Replay
from dovetail.kernels import state as layout
from dovetail.kernels.passes.rule import fitted
from dovetail.kernels.planner.search import BOUND_S
from dovetail.policies.base import Asked, Choices


@dataclass
class Choosing:
    """A replay that stops at fixed intervals and goes on under the choice that did best in those before.

    Each choice is tried on the interval that has just ended: a fork goes on from its beginning with the jobs that have
    come by now, until all of them have started. The run time of a job that has not ended by now is not known: it is
    its estimate there, or what it has run already. What each of those jobs waits is counted by the goal."""

    replay: Replay
    choices: Choices
    asked: Asked
    first: int
    """When the first interval begins."""
    chosen: list[int] = field(default_factory=lambda: [0])
    """Which choice decided, in the intervals after which there was something to learn."""

    def __post_init__(self) -> None:
        self._rules = [one.rule(self.asked) for one in self.choices.among]
        if self.replay.rule.common.foresight < max(rule.common.foresight for rule in self._rules):
            raise ValueError("the machine has no room for all that one of the choices foresees")
        self._set(self.replay, self._rules[0])
        self._end = self.first + self.choices.every_s
        self._before = self.replay.copy()
        self._waited: deque[Floats] = deque(maxlen=self.choices.look)

    @property
    def started(self) -> int:
        """How many jobs have started so far."""
        return self.replay.started

    def advance(self, until: int = NEVER - 1) -> bool:
        """Go on up to and including the instant `until`. Returns True when nothing is left to happen."""
        while self._end <= until:
            if self.replay.advance(self._end):
                return True
            self._choose(self._end)
            self._end += self.choices.every_s
        return self.replay.advance(until)

    def _choose(self, now: int) -> None:
        """Try all on the interval that ends now, and go on under the one that is best so far."""
        came = int(self.replay.run.info[layout.NEXT])
        if came > self._before.run.info[layout.NEXT]:  # else nothing can be learned
            known = self._known(now, came)
            tried = [self._trial(rule, came, known) for rule in self._rules]
            self._waited.append(np.array(tried))
            self.chosen.append(int(np.sum(self._waited, axis=0).argmin()))
            self._set(self.replay, self._rules[self.chosen[-1]])
        self._before = self.replay.copy()

    def _known(self, now: int, came: int) -> Ints:
        """The run time of each job that came, as far as it is known now."""
        jobs = self.replay.run.jobs[:, :came]
        start, run_time, estimate = jobs[layout.START], jobs[layout.RUNTIME], jobs[layout.ESTIMATE]
        so_far = np.where(start >= 0, now - start + 1, 1)
        known: Ints = np.where((start >= 0) & (start + run_time <= now), run_time, np.maximum(estimate, so_far))
        return known

    def _trial(self, rule: Any, came: int, known: Ints) -> float:
        """What the jobs of the interval, and those that waited at its beginning, wait under a rule, by the goal."""
        fork = self._before.copy()
        jobs, info, lists = fork.run.jobs, fork.run.info, fork.run.lists
        waits = np.flatnonzero(jobs[layout.START, :came] < 0)
        jobs[layout.RUNTIME, :came] = known
        info[layout.LAST] = came
        ends = lists[[layout.END_AT, layout.END_JOB], : info[layout.RUNNING]]
        ends[0] = jobs[layout.START, ends[1]] + jobs[layout.RUNTIME, ends[1]]
        lists[[layout.END_AT, layout.END_JOB], : ends.shape[1]] = ends[:, np.lexsort(ends[::-1])]  # sorted: a heap
        self._set(fork, rule._replace(decodes=min(rule.decodes, self.choices.trial)))
        fork.advance()
        wait = (jobs[layout.START, waits] - jobs[layout.ARRIVE, waits]).astype(np.float64)
        size, length = jobs[layout.SIZE, waits].astype(np.float64), known[waits].astype(np.float64)
        if self.choices.goal == "bsld":
            return float(np.maximum(1.0, (wait + length) / np.maximum(length, BOUND_S)).sum())
        return float(((size * length if self.choices.goal == "awf" else 1.0) * wait).sum())

    @staticmethod
    def _set(replay: Replay, rule: Any) -> None:
        replay.rule = fitted(rule, replay.cap, replay.run.lists.shape[1])
