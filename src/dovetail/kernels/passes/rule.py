"""What all rules share. A rule is a policy as numbers; its type chooses the code, so that a replay is compiled with one
kind of rule only. Each stands beside its decide:

    decide(rule, cap, run, now)     one pass; returns how many jobs start, the first in the STARTED list
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.passes.order import key_of, moves, sort_by_key
from dovetail.kernels.seam import seam
from dovetail.kernels.state import (
    ARRIVE,
    BACK_KEY,
    BACK_ORDER,
    BACK_QUEUE,
    ESTIMATE,
    KEY,
    ORDER,
    QUEUE,
    SIZE,
    SPARE,
    WAITING,
    Run,
)

decide = seam("decide")


class Common(NamedTuple):
    """What every rule has, and the replay reads."""

    order: int
    """Of the queue, as order.py counts them."""
    backfill: int
    """Order in which the rest is looked at after the last reservation; -1: the same order."""
    starve_s: int
    """Jobs that have waited this long come first, in order of arrival; NEVER: no such rule."""
    every_s: int
    """Passes happen only at multiples of this; 0: at each moment in which a job arrived or ended."""
    stop_for_news: bool
    keep_expected: bool
    """Write the planned start of each job that has one to PROMISED_LAST, and the first ever to PROMISED_FIRST."""
    foresight: int
    """How many jobs that may come are planned for, at most."""
    groups: bool
    """Jobs that are alike stand in the queue as one entry."""
    tree_above: int
    """The queue is kept as a tree where it has more entries than this; NEVER: it is not."""


def fitted(rule: Any, cap: Any, room: int) -> Any:
    """The rule with working space for such a machine and this many waiting and running jobs; one without as it is."""
    return rule._replace(space=rule.space.fitted(rule, cap, room)) if "space" in rule._fields else rule


@inner
def by_arrival(rule: Any) -> bool:
    """Whether the queue is kept in order of arrival and sorted anew at each pass."""
    return (
        rule.common.starve_s < NEVER
        or moves(rule.common.order)
        or (rule.common.backfill >= 0 and moves(rule.common.backfill))
    )


@inner
def sort_waiting(run: Run, rule: Any, now: int, code: int, key: Floats, out: Ints) -> None:
    """Write the waiting jobs to `out` in the order of this pass: the starving first, then by key."""
    n = run.info[WAITING]
    m = 0
    for i in range(n):
        job = run.lists[QUEUE, i]
        if now - run.jobs[ARRIVE, job] >= rule.common.starve_s:
            out[m] = job
            m += 1
    starving: int = np.int64(m)  # type: ignore[assignment]  # a literal 0 would compile the sort twice
    for i in range(n):
        job = run.lists[QUEUE, i]
        if now - run.jobs[ARRIVE, job] < rule.common.starve_s:
            key[job] = key_of(code, run.jobs[ARRIVE, job], run.jobs[SIZE, job], run.jobs[ESTIMATE, job], now, key[job])
            out[m] = job
            m += 1
    sort_by_key(out, starving, n, key, run.lists[SPARE])


@inner
def sort_if_moving(run: Run, rule: Any, now: int) -> tuple[Ints, Ints]:
    """The queue in the two orders of this pass."""
    queue, back = run.lists[QUEUE], run.lists[BACK_QUEUE]
    if by_arrival(rule):
        queue = run.lists[ORDER]
        sort_waiting(run, rule, now, rule.common.order, run.keys[KEY], queue)
        if rule.common.backfill >= 0:
            back = run.lists[BACK_ORDER]
            sort_waiting(run, rule, now, rule.common.backfill, run.keys[BACK_KEY], back)
    return queue, back
