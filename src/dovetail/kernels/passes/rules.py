"""Rules: a policy as numbers, and how it decides within a replay. The type of the rule chooses the code, so a
replay is compiled with one kind of rule only.

    decide(rule, cap, run, now)     one pass; returns how many jobs start, the first in the STARTED list
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import advance_plan, start, unreserve
from dovetail.kernels.passes.conservative import EACH_END, compress, promise, rebuild, start_due
from dovetail.kernels.passes.lists import list_pass, place_rest, slack_pass
from dovetail.kernels.passes.order import key_of, moves, sort_by_key
from dovetail.kernels.passes.rates import Rates
from dovetail.kernels.seam import answers, seam
from dovetail.kernels.state import (
    ARRIVE,
    ARRIVED,
    BACK_KEY,
    BACK_ORDER,
    BACK_QUEUE,
    CORRECTED,
    END_JOB,
    ENDED,
    ESTIMATE,
    KEY,
    NEVER,
    NEWS_LIST,
    ORDER,
    PLACE,
    PROMISED_FIRST,
    PROMISED_LAST,
    QUEUE,
    RUNNING,
    SEEN,
    SIZE,
    SPARE,
    SPARE_2,
    SPARE_3,
    STANDS,
    START,
    STARTED,
    WAITING,
    Floats,
    Ints,
    Run,
)

decide = seam("decide")


class ListRule(NamedTuple):
    """List scheduling: an order and a reservation depth."""

    order: int
    backfill: int
    """Order in which the rest is looked at after the last reservation; -1: the same order."""
    depth: int
    starve_s: int
    """Jobs that have waited so long come first, in order of arrival; NEVER: no such rule."""
    every_s: int
    """Passes happen only at multiples of this; 0: at each moment in which a job arrived or ended."""
    stop_for_news: bool
    keep_expected: bool
    """Write the planned start of each job that has one to PROMISED_LAST, and the first ever to PROMISED_FIRST."""
    reuse: bool
    """Keep the plan from pass to pass while a new one would be the same: all are reserved, the keys do not move, and
    no job has ended before its expected end. Estimates must be upper bounds that do not change."""


class SlackRule(NamedTuple):
    """List scheduling whose reservations may be pushed back a little."""

    order: int
    backfill: int
    depth: int
    starve_s: int
    every_s: int
    stop_for_news: bool
    keep_expected: bool
    relax: float
    slack: float


class ConservativeRule(NamedTuple):
    """Conservative backfilling: FCFS, everyone promised, promises kept."""

    order: int
    backfill: int
    starve_s: int
    every_s: int
    stop_for_news: bool
    keep_expected: bool
    sweep: int
    bounded: bool
    """Estimates are upper bounds of the run times: no running job can outlive one."""


class DeadlineRule(NamedTuple):
    """Deadline-based backfilling (deadline.py): conservative, but jobs with a deadline may be moved."""

    order: int
    backfill: int
    starve_s: int
    every_s: int
    stop_for_news: bool
    keep_expected: bool
    guard: bool
    """No accepted deadline is broken for a regular job."""
    bounded: bool


class PlanRule(NamedTuple):
    """A planner: an objective, a budget, a window."""

    order: int
    backfill: int
    starve_s: int
    every_s: int
    stop_for_news: bool
    keep_expected: bool
    window: int
    decodes: int
    foresight: int
    """How many jobs that may come are planned for, at most."""
    clairvoyant: bool
    """They are those that will come, and not copies of those that came."""
    seed: int
    level: int
    """Of PaSF."""
    hot: float
    cold: float
    patient: float
    """What a job with an accepted deadline counts, of what it would without; below 0: deadlines are not looked at."""
    weights: Floats
    """Of the terms of the objective."""
    space: Any
    """Working space (search.py)."""


class ThriftRule(NamedTuple):
    """A list, all reserved, each where it is cheapest (thrift.py)."""

    order: int
    backfill: int
    starve_s: int
    every_s: int
    stop_for_news: bool
    keep_expected: bool
    window: int
    """So many jobs, the first in the order, may wait for a cheap hour; those behind go to their earliest fit."""
    hold_s: int
    """Nobody is held longer than this after arrival."""
    wait: float
    """What a second of one job's wait costs."""
    rates: Rates


class MoneyRule(NamedTuple):
    """A planner whose objective is money or carbon (money.py)."""

    order: int
    """Which jobs are in the window: the first in this order."""
    backfill: int
    starve_s: int
    every_s: int
    stop_for_news: bool
    keep_expected: bool
    window: int
    decodes: int
    seed: int
    hot: float
    cold: float
    hold_s: int
    """Nobody is held longer than this after arrival."""
    wait: float
    """What a second of one job's wait costs."""
    tariff: float
    """What a second of a processor earns; 0: what is earned does not count."""
    horizon_s: int
    """Only what is paid and earned in so many seconds from now counts; NEVER: all of it."""
    rates: Rates
    space: Any


Rule = ListRule | SlackRule | ConservativeRule | DeadlineRule | PlanRule | ThriftRule | MoneyRule


@inner
def by_arrival(rule: Any) -> bool:
    """Whether the queue is kept in order of arrival and sorted anew at each pass."""
    return rule.starve_s < NEVER or moves(rule.order) or (rule.backfill >= 0 and moves(rule.backfill))


@inner
def sort_waiting(run: Run, rule: Any, now: int, code: int, key: Floats, out: Ints) -> None:
    """Write the waiting jobs to `out` in the order of this pass: the starving first, then by key."""
    n = run.info[WAITING]
    m = 0
    for i in range(n):
        job = run.lists[QUEUE, i]
        if now - run.jobs[ARRIVE, job] >= rule.starve_s:
            out[m] = job
            m += 1
    starving: int = np.int64(m)  # type: ignore[assignment]  # a literal 0 would compile the sort twice
    for i in range(n):
        job = run.lists[QUEUE, i]
        if now - run.jobs[ARRIVE, job] < rule.starve_s:
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
        sort_waiting(run, rule, now, rule.order, run.keys[KEY], queue)
        if rule.backfill >= 0:
            back = run.lists[BACK_ORDER]
            sort_waiting(run, rule, now, rule.backfill, run.keys[BACK_KEY], back)
    return queue, back


@inner
def _decide_list(rule: ListRule, cap: Any, run: Run, now: int) -> int:
    info = run.info
    n = info[WAITING]
    if n == 0:
        info[STANDS] = 0
        return 0
    place = run.jobs[PLACE]
    if rule.reuse:
        first = _standing(cap, run, now)
        if first >= 0:
            n_started = _start_placed(cap, run, now, first)
            if first == n:
                return n_started
            return place_rest(
                cap, now, run.jobs[ESTIMATE], run.jobs[SIZE], run.lists[QUEUE], first, n, rule.depth,
                rule.keep_expected, place, run.lists[SPARE], run.lists[SPARE_2], run.lists[STARTED], n_started,
            )[0]  # fmt: skip
    queue, back = sort_if_moving(run, rule, now)
    n_started = list_pass(
        cap, now, run.jobs[ESTIMATE], run.jobs[SIZE], queue, n, back, rule.backfill >= 0, rule.depth,
        rule.keep_expected, place, run.jobs[SEEN], run.lists[SPARE], run.lists[SPARE_2], run.lists[STARTED],
    )  # fmt: skip
    if rule.reuse:
        for i in range(n):
            info[STANDS] |= place[queue[i]] > now
    return n_started


@inner
def _standing(cap: Any, run: Run, now: int) -> int:
    """If the plan still stands: how many jobs at the head of the queue keep their places in it; those behind them are
    taken out. Else -1.

    A new plan would put these jobs just where they are: what started since took its place around them, all that ended
    did so when expected, so there is nowhere more room than when they were placed.
    """
    info = run.info
    n = info[WAITING]
    for i in range(info[ENDED]):
        job = run.lists[NEWS_LIST, i]
        if run.jobs[START, job] + run.jobs[ESTIMATE, job] != now:
            info[STANDS] = 0
    if info[STANDS] == 0:
        return -1
    queue, place = run.lists[QUEUE], run.jobs[PLACE]
    first = 0
    while first < n and place[queue[first]] >= 0:
        first += 1
    behind = 0
    for i in range(first, n):
        behind += place[queue[i]] >= 0
    if behind > first:  # cheaper to begin anew than to take so many out
        info[STANDS] = 0
        return -1
    advance_plan(cap, now)
    for i in range(first, n):
        job = queue[i]
        if place[job] >= 0:
            unreserve(cap, job, place[job], run.jobs[ESTIMATE, job])
            place[job] = -1
    return first


@inner
def _start_placed(cap: Any, run: Run, now: int, first: int) -> int:
    """Start the jobs, among the first of the queue, whose place in the standing plan is now."""
    n_started = 0
    for i in range(first):
        job = run.lists[QUEUE, i]
        if run.jobs[PLACE, job] == now:
            start(cap, job, now, now + run.jobs[ESTIMATE, job])
            run.lists[STARTED, n_started] = job
            n_started += 1
    return n_started


@inner
def _decide_slack(rule: SlackRule, cap: Any, run: Run, now: int) -> int:
    n = run.info[WAITING]
    if n == 0:
        return 0
    queue, back = sort_if_moving(run, rule, now)
    return slack_pass(
        cap, now, run.jobs[ESTIMATE], run.jobs[ARRIVE], queue, n, back, rule.backfill >= 0, rule.depth, rule.relax,
        rule.slack, run.jobs[PROMISED_FIRST], run.jobs[PLACE], run.lists[SPARE], run.lists[SPARE_2],
        run.lists[SPARE_3], run.jobs[SEEN], run.lists[STARTED],
    )  # fmt: skip


@inner
def _compress(rule: ConservativeRule, cap: Any, run: Run, now: int, n: int) -> None:
    compress(
        cap, now, run.jobs[ESTIMATE], run.lists[QUEUE], n, run.jobs[PROMISED_LAST], rule.sweep, run.keys[BACK_KEY],
        run.lists[ORDER], run.lists[SPARE],
    )  # fmt: skip


@inner
def outdated(run: Run, now: int, n: int) -> bool:
    """Whether a running job has outlived its estimate, or a promise could not be kept."""
    if run.info[CORRECTED] == 1:
        return True
    for i in range(run.info[RUNNING]):
        job = run.lists[END_JOB, i]
        if run.jobs[START, job] + run.jobs[ESTIMATE, job] <= now:
            return True
    for i in range(n):
        if run.jobs[PROMISED_LAST, run.lists[QUEUE, i]] < now:
            return True
    return False


@inner
def _decide_conservative(rule: ConservativeRule, cap: Any, run: Run, now: int) -> int:
    info = run.info
    n = info[WAITING] - info[ARRIVED]  # the queue is in order of arrival: the new ones stand last
    if not rule.bounded and outdated(run, now, n):
        rebuild(
            cap, now, run.jobs[ESTIMATE], run.lists[QUEUE], n, run.jobs[PROMISED_LAST], run.keys[BACK_KEY],
            run.lists[ORDER], run.lists[SPARE],
        )  # fmt: skip
    else:
        for i in range(info[ENDED]):
            job = run.lists[NEWS_LIST, i]
            end = run.jobs[START, job] + run.jobs[ESTIMATE, job]
            if end > now:
                unreserve(cap, job, now, end - now)
            if rule.sweep == EACH_END or i == info[ENDED] - 1:
                _compress(rule, cap, run, now, n)
    for i in range(n, info[WAITING]):
        job = run.lists[QUEUE, i]
        promise(cap, now, run.jobs[ESTIMATE], job, run.jobs[PROMISED_LAST])
        run.jobs[PROMISED_FIRST, job] = run.jobs[PROMISED_LAST, job]
    return start_due(
        cap,
        now,
        run.jobs[ESTIMATE],
        run.lists[QUEUE],
        info[WAITING],
        run.jobs[PROMISED_LAST],
        run.lists[STARTED],
    )


answers(ListRule, decide=_decide_list)
answers(SlackRule, decide=_decide_slack)
answers(ConservativeRule, decide=_decide_conservative)
