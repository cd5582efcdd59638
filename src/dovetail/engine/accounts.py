"""Whose turn it is in a replay: what accounts and their users have used by now, and where each stands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.model.schedule import Lost
from dovetail.model.shares import Usage
from dovetail.model.turns import TreeTurns, Turns
from dovetail.model.workload import Workload


class Accounts:
    """Keeps count as a replay goes on. Usage is counted every `turns.every_s` seconds from the first submit on: a pass
    sees what had been used when it was last."""

    def __init__(self, turns: Turns | TreeTurns, workload: Workload) -> None:
        self._workload, self._every_s = workload, turns.every_s
        self._usage: Usage | None = None
        if (fixed := turns.fixed(workload)) is not None:
            self._turn: Floats = fixed
            return
        tree, self._owner = turns.tree(workload)
        self._to_the_end = turns.to_the_end
        self._among, self._seen = turns.among_seen, np.zeros(len(tree.above), bool)
        self._usage = Usage(tree, turns.half_life_s, int(workload.submit[0]) if len(workload) else 0)
        self._open = np.empty(0, np.int64)
        """Jobs that may have run since the usage was counted, of those below `_came`."""
        self._came = 0
        self._turn = np.ones(len(workload)) if turns.among_seen else self._standing()

    def turn(
        self, now: int, start: Ints, below: int, came: tuple[Ints, Mapping[int, int]], lost: Sequence[Lost] = ()
    ) -> Floats:
        """Where the owner of each job stands at an instant: the larger, the sooner. `start` has the starts so far; jobs
        from `below` on have not come. `came`: when the others did; and those that were lost, first."""
        if self._usage is None or now < self._usage.now + self._every_s:
            return self._turn
        self._open = np.concatenate([self._open, np.arange(self._came, below)])
        self._came = below
        until, runtime = now - (now - int(self._usage.now)) % self._every_s, self._workload.runtime
        begun = self._open[start[self._open] >= 0]
        spans = [(one.job, one.start, one.end) for one in lost if one.end > self._usage.now]
        more = np.array(spans, np.int64).reshape(-1, 3).T
        jobs = np.concatenate([begun, more[0]])
        begins, ends = np.concatenate([start[begun], more[1]]), np.concatenate([start[begun] + runtime[begun], more[2]])
        while (before := int(self._usage.now)) < until:
            at = before + self._every_s
            seconds = np.minimum(ends, at) - np.maximum(begins, before)
            ran = (seconds > 0) & (self._owner[jobs] >= 0) & (self._to_the_end | (ends > at))
            self._usage.pass_to(at)
            self._usage.add(self._owner[jobs[ran]], self._workload.size[jobs[ran]], seconds[ran])
        arrive, again = came
        if self._among:
            here = self._open[(arrive[self._open] >= 0) & (arrive[self._open] <= until)]
            self._seen[self._owner[here]] = True
            self._seen[self._owner[[job for job, at in again.items() if at <= until]]] = True
        over = (start[self._open] >= 0) & (start[self._open] + runtime[self._open] <= until)
        self._open = self._open[~over]
        self._turn = self._standing()
        return self._turn

    def _standing(self) -> Floats:
        """Of the owner of each job; 0: nobody knows it."""
        stand = self._usage.standing() if self._usage else np.empty(0)
        return np.append(self._among_seen(stand) if self._among else stand, 0.0)[self._owner]

    def _among_seen(self, stand: Floats) -> Floats:
        """The part of the users seen so far that stand no better, oneself counted: the first has 1. Who is still to
        come changes nothing."""
        seen, new = np.sort(stand[self._seen]), ~self._seen
        found: Floats = (np.searchsorted(seen, stand, "right") + new) / (len(seen) + new)
        return found
