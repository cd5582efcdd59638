"""Whose turn it is in a replay: what accounts and their users have used by now, and where each stands."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.model.schedule import Lost
from dovetail.model.turns import Turns
from dovetail.model.workload import Workload
from dovetail.policies.shares import Tree, Usage


class Accounts:
    """Keeps count as a replay goes on. Usage is counted every `turns.every_s` seconds from the first submit on: a pass
    sees what had been used when it was last."""

    def __init__(self, turns: Turns, workload: Workload) -> None:
        self._workload, self._every_s = workload, turns.every_s
        account, named = turns.owners(workload)
        self._usage: Usage | None = None
        if turns.priority:
            self._turn: Floats = np.array([float(value) for value in named.values()])[account]
            return
        pairs, owner = np.unique(np.stack([account, workload.get("user")]), axis=1, return_inverse=True)
        accounts, users = len(named), pairs.shape[1]
        above = (*[-1] * accounts, *pairs[0].tolist())
        tree = Tree(above, (*map(int, named.values()), *[1] * users), (*[False] * accounts, *[True] * users))
        self._owner: Ints = accounts + owner.reshape(-1)
        first = int(workload.submit[0]) if len(workload) else 0
        self._usage = Usage(tree, turns.half_life_s, first)
        self._open = np.empty(0, np.int64)
        """Jobs that may have run since the usage was counted, of those below `_came`."""
        self._came = 0
        self._turn = self._usage.standing()[self._owner]

    def turn(self, now: int, start: Ints, came: int, lost: Sequence[Lost] = ()) -> Floats:
        """Where the owner of each job stands at an instant: the larger, the sooner. `start` has the starts so far; jobs
        from `came` on have not come."""
        if self._usage is None or now < self._usage.now + self._every_s:
            return self._turn
        self._open = np.concatenate([self._open, np.arange(self._came, came)])
        self._came = came
        until, runtime = now - (now - int(self._usage.now)) % self._every_s, self._workload.runtime
        begun = self._open[start[self._open] >= 0]
        spans = [(one.job, one.start, one.end) for one in lost if one.end > self._usage.now]
        more = np.array(spans, np.int64).reshape(-1, 3).T
        jobs = np.concatenate([begun, more[0]])
        begins, ends = np.concatenate([start[begun], more[1]]), np.concatenate([start[begun] + runtime[begun], more[2]])
        while (before := int(self._usage.now)) < until:
            at = before + self._every_s
            seconds = np.minimum(ends, at) - np.maximum(begins, before)
            ran = seconds > 0
            self._usage.pass_to(at)
            self._usage.add(self._owner[jobs[ran]], self._workload.size[jobs[ran]], seconds[ran])
        over = (start[self._open] >= 0) & (start[self._open] + runtime[self._open] <= until)
        self._open = self._open[~over]
        self._turn = self._usage.standing()[self._owner]
        return self._turn
