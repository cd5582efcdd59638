"""Deadline-based backfilling: jobs that need only end by a deadline may be moved while they wait.

On top of conservative backfilling. Waiting jobs are firm or tentative (AGREED). A firm one keeps its start, which only
moves earlier. A tentative one has been promised an end: its start may move, both ways, whenever a regular job comes.
PROMISED_LAST is where each of them stands in the plan; PROMISED_FIRST is that of the firm ones when they became so.
A depth counts jobs without a deadline: one with a deadline is always in the plan.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import back_to_kept, keep_place, reserve_again, unreserve
from dovetail.kernels.passes.conservative import (
    NONE,
    START_NOW,
    outdated,
    promise,
    promise_entry,
    rebuild,
    stand_again,
    start_beside,
    start_due,
    sweep,
)
from dovetail.kernels.passes.lists import ALL
from dovetail.kernels.passes.rule import Common
from dovetail.kernels.queue import one_by_one
from dovetail.kernels.seam import answers
from dovetail.kernels.state import (
    AGREED,
    ARRIVE,
    ARRIVED,
    BACK_KEY,
    DEADLINE,
    ENDED,
    ESTIMATE,
    FIRM,
    JOINED,
    NEWS_LIST,
    ORDER,
    PROMISED_FIRST,
    PROMISED_LAST,
    QUEUE,
    REFUSED,
    SEEN,
    SPARE,
    SPARE_2,
    SPARE_3,
    START,
    STARTED,
    TENTATIVE,
    UNTIL,
    WAITING,
    Run,
    wake_at_next,
)

_0: int = np.int64(0)  # type: ignore[assignment]  # see timeline.py


class DeadlineRule(NamedTuple):
    """Conservative backfilling in which jobs with a deadline may be moved."""

    common: Common
    guard: bool
    """No accepted deadline is broken for a regular job."""
    sweep: int
    """ONCE, START_NOW or NONE of conservative.py."""
    bounded: bool
    depth: int
    """As that of conservative.py."""


@inner
def _late(run: Run, job: int) -> bool:
    """Whether a job would end after its deadline where it stands in the plan."""
    jobs = run.jobs
    return jobs[PROMISED_LAST, job] + jobs[ESTIMATE, job] > jobs[ARRIVE, job] + jobs[DEADLINE, job]


@inner
def _place(cap: Any, run: Run, now: int, job: int) -> None:
    promise(cap, now, run.jobs[ESTIMATE], job, run.jobs[PROMISED_LAST])


@inner
def _take_out(cap: Any, run: Run, job: int) -> None:
    unreserve(cap, job, run.jobs[PROMISED_LAST, job], run.jobs[ESTIMATE, job])


@inner
def _arrange(cap: Any, run: Run, now: int, k: int, job: int, all_of_them: bool) -> int:
    """Place anew, in order of arrival each: the tentative jobs that are marked (SEEN), the job, the others. Stops at
    the first of the others that is late, unless all are wanted. Returns its position in the list; k if none is."""
    tentative, marked = run.lists[SPARE], run.jobs[SEEN]
    for i in range(k):
        if marked[tentative[i]] == 1:
            _place(cap, run, now, tentative[i])
    _place(cap, run, now, job)
    for i in range(k):
        if marked[tentative[i]] == 0:
            _place(cap, run, now, tentative[i])
            if not all_of_them and _late(run, tentative[i]):
                return i
    return k


@inner
def _cancel(cap: Any, run: Run, k: int, job: int, last: int) -> None:
    """Undo what `_arrange` has placed up to position `last`."""
    tentative, marked = run.lists[SPARE], run.jobs[SEEN]
    for i in range(k):
        if marked[tentative[i]] == 1 or i <= last:
            _take_out(cap, run, tentative[i])
    _take_out(cap, run, job)


@inner
def _last_late(run: Run, k: int) -> int:
    """The last tentative job in the list that is late where it stands; -1 if none is."""
    for i in range(k - 1, -1, -1):
        if _late(run, run.lists[SPARE, i]):
            return i
    return -1


@inner
def _admit(cap: Any, run: Run, now: int, before: int, job: int, guard: bool) -> None:
    """Algorithm 1: a regular job gets the earliest start beside the firm jobs. The tentative ones, among the first
    `before` entries of the queue, make room. Those who would then be late go before it, and become firm.

    As printed, the last repair may leave somebody late. With `guard` the tentative jobs then stay where they were, and
    the job goes around them.
    """
    tentative, old = run.lists[SPARE], run.lists[SPARE_2]
    agreed, at, marked = run.jobs[AGREED], run.jobs[PROMISED_LAST], run.jobs[SEEN]
    k = 0
    for i in range(before):
        other = run.lists[QUEUE, i]
        if agreed[other] == TENTATIVE:
            tentative[k], old[k] = other, at[other]
            keep_place(cap, other)
            _take_out(cap, run, other)
            k += 1
    # Each round marks one more, so there are at most k + 1.
    found = _arrange(cap, run, now, k, job, False)
    while found < k:
        _cancel(cap, run, k, job, found)
        marked[tentative[found]] = 1
        found = _arrange(cap, run, now, k, job, False)
    late = _last_late(run, k)  # only marked ones can be
    if late >= 0:
        _cancel(cap, run, k, job, k)
        for i in range(late):
            if run.jobs[ARRIVE, tentative[i]] < run.jobs[ARRIVE, tentative[late]]:
                marked[tentative[i]] = 1
        _arrange(cap, run, now, k, job, True)
        if guard and _last_late(run, k) >= 0:
            _cancel(cap, run, k, job, k)
            for i in range(k):
                at[tentative[i]] = old[i]
                back_to_kept(cap, tentative[i])
                reserve_again(cap, tentative[i], old[i], run.jobs[ESTIMATE, tentative[i]])
                marked[tentative[i]] = 0
            _place(cap, run, now, job)
    for i in range(k):
        other = tentative[i]
        if marked[other] == 1:
            marked[other] = 0
            agreed[other] = FIRM
            run.jobs[PROMISED_FIRST, other] = at[other]
    run.jobs[PROMISED_FIRST, job] = at[job]


@inner
def _compress(cap: Any, run: Run, now: int, n: int, how: int) -> None:
    """After ends: one sweep over the firm jobs, then one over the tentative ones."""
    if how == NONE:
        return
    order = run.lists[ORDER]
    m = 0
    for of_these in (False, True):
        for i in range(n):
            job = run.lists[QUEUE, i]
            if run.jobs[PROMISED_LAST, job] >= 0 and (run.jobs[AGREED, job] == TENTATIVE) == of_these:
                order[m] = job
                m += 1
    sweep(cap, now, run.jobs[ESTIMATE], run.jobs[UNTIL], order, m, run.jobs[PROMISED_LAST], how == START_NOW)


@inner
def _rebuild(cap: Any, run: Run, now: int, n: int) -> None:
    planned = run.lists[SPARE_3]
    m = 0
    for i in range(n):
        if run.jobs[PROMISED_LAST, run.lists[QUEUE, i]] >= 0:
            planned[m] = run.lists[QUEUE, i]
            m += 1
    rebuild(
        cap, now, run.jobs[ESTIMATE], planned, m, run.jobs[PROMISED_LAST], run.keys[BACK_KEY], run.lists[ORDER],
        run.lists[SPARE],
    )  # fmt: skip


@inner
def _decide_deadline(rule: DeadlineRule, cap: Any, run: Run, now: int) -> int:
    info, jobs, queue = run.info, run.jobs, run.lists[QUEUE]
    n = info[WAITING] - info[JOINED]  # the queue is in order of arrival: the new ones stand last
    tentative, due = False, False
    for i in range(n):
        tentative = tentative or jobs[AGREED, queue[i]] == TENTATIVE
    for i in range(n, info[WAITING]):
        due = due or jobs[DEADLINE, queue[i]] >= 0
    if (tentative or due) and info[JOINED] < info[ARRIVED]:  # they may come to stand between jobs that are alike
        one_by_one(run)
    if outdated(cap, run, now, n, rule.bounded):
        _rebuild(cap, run, now, n)
    elif stand_again(cap, run, now):
        _compress(cap, run, now, n, rule.sweep)
    elif info[ENDED] > 0:
        for i in range(info[ENDED]):
            job = run.lists[NEWS_LIST, i]
            end = jobs[START, job] + jobs[ESTIMATE, job]
            if end > now:
                unreserve(cap, job, now, end - now)
        _compress(cap, run, now, n, rule.sweep)
    blocked = 0
    for i in range(n if rule.depth < ALL else 0):
        blocked += jobs[DEADLINE, queue[i]] < 0 and jobs[PROMISED_LAST, queue[i]] > now
    for i in range(0 if rule.depth < ALL else n, info[WAITING]):
        job = queue[i]
        if jobs[PROMISED_LAST, job] >= 0 or (jobs[DEADLINE, job] < 0 and blocked >= rule.depth):
            continue
        if jobs[DEADLINE, job] >= 0:
            _place(cap, run, now, job)
            if not _late(run, job):
                jobs[AGREED, job] = TENTATIVE
                tentative = True
                continue
            _take_out(cap, run, job)
            jobs[AGREED, job] = REFUSED
        if tentative:
            _admit(cap, run, now, max(i, n), job, rule.guard)
        else:
            promise_entry(cap, now, jobs[ESTIMATE], jobs[UNTIL], job, jobs[PROMISED_LAST], jobs[PROMISED_FIRST])
        blocked += jobs[DEADLINE, job] < 0 and jobs[PROMISED_LAST, job] > now
    # When a tentative job is moved, another may start at an instant at which nobody ends: nothing else would ask then.
    wake_at_next(run, now, jobs[PROMISED_LAST], rule.bounded)
    n_started = start_due(
        cap, now, jobs[ESTIMATE], jobs[UNTIL], queue, info[WAITING], jobs[PROMISED_LAST], run.lists[STARTED]
    )
    return start_beside(cap, run, now, _0, jobs[PROMISED_LAST], n_started) if rule.depth < ALL else n_started


answers(DeadlineRule, decide=_decide_deadline)
