"""The priorities that a run's Slurm gave, as its log and scontrol told them, beside ours by the same accounting.

Slurm works them out when a job comes and every PriorityCalcPeriod. When within a few seconds it does, nobody tells: of
each such moment the second counts at which most of ours are theirs, one second for all jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np
from benchmarks.fidelity.agree import Run
from benchmarks.fidelity.digest import OF_ARRAY, Digest
from benchmarks.fidelity.nouns import machine_of, workload_of

from dovetail.arrays import NEVER, Ints
from dovetail.model.shares import Usage
from dovetail.slurm.priority import priorities

AWAKE_S = 6
"""The thread that works them out is so late at most, and what is seen of it is so old."""


@dataclass
class Ranked:
    """How many different priorities were seen of jobs, and how many of them are ours."""

    seen: int = 0
    same: int = 0
    moments: int = 0
    differ: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Seen:
    at: float
    row: int
    job: int
    priority: int


def ranked(digest: Digest) -> Ranked:
    """All that was seen in a run, a vote for each change."""
    run = Run(digest)
    rules = priorities(machine_of(run))
    workload = workload_of(run)
    row_of = {job: row for row, job in enumerate(workload["id"].tolist())}
    came = np.array([int(run.submitted[job // OF_ARRAY * OF_ARRAY]) for job in row_of])
    asking = replace(rules.of_workload(workload), since=came)
    spans = [(int(start), int(run.ended.get(job, NEVER)), row_of[job]) for job, start in run.started.items()]
    seen, found = _changes(digest, row_of), Ranked()
    at = _began(seen, came, rules.period_s)
    usage = Usage(rules.tree, rules.half_life_s, at)
    turn = np.zeros(len(rules.tree.above))  # of associations that are new
    while seen:
        now = [one for one in seen if one.at < at + rules.period_s - AWAKE_S]
        seen = seen[len(now) :]
        rows = np.array([one.row for one in now], np.int64)
        known, theirs = asking.of(rows), np.array([one.priority for one in now])
        tries = list[tuple[int, int, Ints, Usage]]()
        for moment in range(at - AWAKE_S, at + AWAKE_S + 1) if found.moments else [at]:
            after = _counted(usage, moment, spans, workload.size, asking.account)
            turn = after.standing() if found.moments else turn
            ours = rules.rules(replace(known, turn=turn[known.account]), moment)
            tries.append((int((ours == theirs).sum()), moment, ours, after))
        same, moment, ours, usage = max(tries, key=lambda one: (one[0], -abs(one[1] - at)))
        found.moments += 1
        found.seen, found.same = found.seen + len(now), found.same + same
        for one, our in zip(now, ours.tolist(), strict=True):
            if one.priority != our:
                found.differ.append(f"{moment}: {one.job} seen at {one.at:.1f}: {one.priority}, ours {our}")
        at = moment + rules.period_s
    return found


def _counted(usage: Usage, until: int, spans: Sequence[tuple[int, int, int]], size: Ints, owner: Ints) -> Usage:
    """What was used by an instant, if it was counted before, of jobs that run then: these clusters enforce no limits.
    `spans`: when each job began and ended, and its row."""
    after, last = deepcopy(usage), int(usage.now)
    ran = [(row, until - max(start, last)) for start, end, row in spans if start < until < end]
    rows, seconds = np.array(ran, np.int64).reshape(-1, 2).T
    after.pass_to(until)
    after.add(owner[rows], size[rows], seconds)
    return after


def _changes(digest: Digest, row_of: dict[int, int]) -> list[_Seen]:
    """What was seen of each job, where it was not what was seen before."""
    last, found = dict[int, int](), list[_Seen]()
    for at, job, priority in digest.priorities:
        if job in row_of and last.get(job) != priority:
            last[job] = priority
            found.append(_Seen(at, row_of[job], job, priority))
    return found


def _began(seen: Sequence[_Seen], came: Ints, period_s: int) -> int:
    """The first moment of working out: the second of a period, at which most changes that are not of new jobs were seen
    soon after it."""
    late = np.array([one.at for one in seen if one.at > came[one.row] + 2 * AWAKE_S])
    first = int(came.min())
    if not len(late):
        return first - period_s
    after = [int(((late - first - second) % period_s < 2 * AWAKE_S).sum()) for second in range(period_s)]
    return first - period_s + int(np.argmax(after))
