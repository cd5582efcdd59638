"""One over the run time of a job, guessed from those of its user that have ended: for the order of a plan alone."""

from __future__ import annotations

from collections import defaultdict, deque

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.model.state import State

LAST = 8
"""So many jobs of a user are looked at, the last that ended: those with the same limit, else any."""
LEAST_S = 10
"""No slowdown is of a shorter time."""


class ByHistory:
    """For `favour` of one replay: the mean of one over the run times of a user's last jobs, over one over the limit.
    The limit itself counts as one of the jobs; so what a plan for BSLD weighs is between the two. Of the run times it
    looks at those alone that have passed: jobs that end while nobody waits are in no state."""

    def __init__(self, run_times: Ints) -> None:
        self.run_times = run_times
        self.counted = np.zeros(len(run_times), np.bool_)
        self.ended: dict[tuple[int, ...], deque[int]] = defaultdict(lambda: deque(maxlen=LAST))

    def __call__(self, state: State) -> Floats:
        ends = state.start + self.run_times
        new = np.flatnonzero((state.start >= 0) & (ends <= state.now) & ~self.counted)
        self.counted[new] = True
        for job in new[np.argsort(ends[new], kind="stable")].tolist():
            user, limit, took = int(state.user[job]), int(state.limit[job]), max(int(self.run_times[job]), LEAST_S)
            self.ended[user,].append(took)
            self.ended[user, limit].append(took)
        return np.array([self._of(int(state.user[job]), int(state.limit[job])) for job in state.waiting.tolist()])

    def _of(self, user: int, limit: int) -> float:
        seen = self.ended.get((user, limit)) or self.ended.get((user,)) or ()
        own = max(limit, LEAST_S)
        return (1 + sum(max(own / took, 1) for took in seen)) / (1 + len(seen))
