"""The whole-trace replay: moments in turn, one pass each, resumable at any of them.

All of its state is in arrays that the caller owns, so a caller can stop it at an instant, copy the state and go on,
and give estimates as jobs arrive. It returns a code that says why it stopped.
"""

from __future__ import annotations

from typing import Any

from dovetail.arrays import NEVER
from dovetail.kernels.compile import inner, jit
from dovetail.kernels.heap import pop, push, soonest
from dovetail.kernels.learners.learner import Learner, correct, learn
from dovetail.kernels.machine.capacity import happen, next_event, release, room, start
from dovetail.kernels.passes.order import GIVEN_PER_PASS
from dovetail.kernels.passes.rule import decide
from dovetail.kernels.queue import dequeue, enqueue
from dovetail.kernels.state import (
    AFTER,
    ARRIVE,
    ARRIVED,
    BEHIND,
    BETWEEN,
    CHILD,
    CORRECTED,
    DUE,
    END_AT,
    END_JOB,
    ENDED,
    ESTIMATE,
    HELD,
    KEYED,
    KEYS_HOLD,
    LAST,
    LONG,
    NEWS_LIST,
    NEXT,
    NOW,
    PASSES,
    PHASE,
    PLACE,
    PROMISED_FIRST,
    PROMISED_LAST,
    QUEUE,
    RUNNING,
    RUNTIME,
    SIBLING,
    START,
    STARTED,
    SUBMIT,
    THINK,
    TOLD,
    UNTIL,
    WAITING,
    WAKE,
    Run,
)

# Why the replay came back.
DONE, REACHED, NEWS, KEYS, GROW, TREE, LONG_QUEUE = range(7)
"""DONE: nothing is left to happen. REACHED: the next moment is later than `until`. NEWS: jobs ended or arrived
(listed in `news`) and the caller asked to be told before the pass. KEYS: the order's keys are the caller's, and
are wanted for `queue` now. GROW: an array is too short for what comes next. TREE: Run.tree is wanted. LONG_QUEUE: more
entries may wait in the next moment than `info[LONG]`."""


@jit
def replay(cap: Any, run: Run, rule: Any, learner: Learner, until: int) -> int:
    """Go on from where the state is until `until`, or until the caller is needed."""
    info = run.info
    while True:
        if info[PHASE] == BETWEEN:
            now = _next_moment(cap, run, rule)
            if now == NEVER:
                return DONE
            if now > until:
                return REACHED
            most = _most_waiting(run, now)
            if info[RUNNING] + most > run.lists.shape[1] or not room(cap, info[RUNNING], most):
                return GROW
            if most > rule.common.tree_above and run.tree.shape[0] == 0:
                return TREE
            if info[LONG] < 0 or most - info[BEHIND] > info[LONG]:
                info[LONG] = -info[LONG]
                if info[LONG] < 0:
                    return LONG_QUEUE
            info[NOW] = now
            _ends(cap, run, now)
            happen(cap, now)
            _arrivals(run, now)
            learn(learner, run)
            correct(learner, cap, run, now)
            info[PHASE] = TOLD
            news = info[ENDED] + info[ARRIVED] > 0 or now == info[WAKE] or rule.common.every_s == 0
            if rule.common.stop_for_news and news:
                return NEWS
        now = info[NOW]
        if info[PHASE] == TOLD:
            enqueue(rule, cap, run, now)
            info[PHASE] = KEYED
            if (
                rule.common.order == GIVEN_PER_PASS
                and info[WAITING] > 0
                and now >= info[KEYS_HOLD]
                and (rule.common.every_s == 0 or now % rule.common.every_s == 0)
            ):
                return KEYS
        if rule.common.every_s == 0 or (info[WAITING] > 0 and now % rule.common.every_s == 0):
            info[PASSES] += 1
            _carry_out(run, rule, decide(rule, cap, run, now), now)
            info[CORRECTED] = 0
        info[PHASE] = BETWEEN


@jit
def occupy(cap: Any, run: Run, now: int) -> None:
    """Let the jobs that are listed as running have their place on an idle machine."""
    info = run.info
    info[DUE] = NEVER
    happen(cap, now)
    for i in range(info[RUNNING]):
        job = run.lists[END_JOB, i]
        start(cap, job, now, run.jobs[START, job] + run.jobs[ESTIMATE, job])
        info[DUE] = min(info[DUE], run.jobs[START, job] + run.jobs[ESTIMATE, job])


@jit
def give_up(cap: Any, job: int, now: int, end: int) -> None:
    """Take a job off the machine before it has ended; `end` as given to start."""
    release(cap, job, now, end)


@inner
def _next_moment(cap: Any, run: Run, rule: Any) -> int:
    """The next instant at which a job arrives or ends, the machine changes while jobs wait, or a periodic pass is due;
    NEVER if nothing will happen."""
    info = run.info
    feedback = run.links.shape[1] > 0
    last = min(run.jobs.shape[1], info[LAST])
    while feedback and info[NEXT] < last and run.links[AFTER, info[NEXT]] >= 0:
        info[NEXT] += 1  # it arrives when the other job has ended
    at = NEVER
    if info[NEXT] < last:
        at = run.jobs[SUBMIT, info[NEXT]]
    if info[RUNNING] > 0:
        at = min(at, run.lists[END_AT, 0])
    if info[HELD] > 0:
        at = min(at, run.held[0, 0])
    if info[WAKE] > info[NOW]:
        at = min(at, info[WAKE])
    if info[WAITING] > 0:
        at = min(at, next_event(cap))
    if rule.common.every_s > 0 and info[WAITING] > 0:
        tick = (info[NOW] // rule.common.every_s + 1) * rule.common.every_s
        at = min(at, tick)
    return at


@inner
def _most_waiting(run: Run, now: int) -> int:
    """How many jobs may wait in this moment, whatever it brings."""
    info = run.info
    last = min(run.jobs.shape[1], info[LAST])
    most = info[WAITING] + info[BEHIND]
    if info[HELD] > 0 and run.held[0, 0] == now:
        most += soonest(run.held[0], info[HELD])
    if run.links.shape[1] > 0:
        i = 0
        while i < info[RUNNING]:  # an end may bring arrivals in the same moment
            child = run.links[CHILD, run.lists[END_JOB, i]] if run.lists[END_AT, i] == now else -1
            while child >= 0:
                most += 1
                child = run.links[SIBLING, child]
            i += 1
    i = info[NEXT]
    while i < last and run.jobs[SUBMIT, i] == now:
        most += 1
        i += 1
    return most


@inner
def _ends(cap: Any, run: Run, now: int) -> None:
    """Give back what the jobs that end now have used."""
    info = run.info
    n = 0
    while info[RUNNING] > 0 and run.lists[END_AT, 0] == now:
        job = run.lists[END_JOB, 0]
        info[RUNNING] = pop(run.lists[END_AT], run.lists[END_JOB], info[RUNNING])
        release(cap, job, now, run.jobs[START, job] + run.jobs[ESTIMATE, job])
        if run.links.shape[1] > 0:
            child = run.links[CHILD, job]
            while child >= 0:
                info[HELD] = push(run.held[0], run.held[1], info[HELD], now + run.links[THINK, child], child)
                child = run.links[SIBLING, child]
        run.lists[NEWS_LIST, n] = job
        n += 1
    info[ENDED] = n


@inner
def _arrivals(run: Run, now: int) -> None:
    """List the jobs that arrive now, in order of their numbers."""
    info = run.info
    feedback = run.links.shape[1] > 0
    last = min(run.jobs.shape[1], info[LAST])
    arrived = 0
    while True:
        while feedback and info[NEXT] < last and run.links[AFTER, info[NEXT]] >= 0:
            info[NEXT] += 1
        job = -1
        if info[NEXT] < last and run.jobs[SUBMIT, info[NEXT]] == now:
            job = info[NEXT]
        if info[HELD] > 0 and run.held[0, 0] == now and (job < 0 or run.held[1, 0] < job):
            job = run.held[1, 0]
            info[HELD] = pop(run.held[0], run.held[1], info[HELD])
        elif job >= 0:
            info[NEXT] += 1
        if job < 0:
            break
        if job < last:
            run.jobs[ARRIVE, job] = now
            run.lists[NEWS_LIST, info[ENDED] + arrived] = job
            arrived += 1
    info[ARRIVED] = arrived
    if arrived > 0:
        info[KEYS_HOLD] = 0


@inner
def _carry_out(run: Run, rule: Any, n_started: int, now: int) -> None:
    """Let the chosen jobs run, and take them out of the queues."""
    info = run.info
    if rule.common.keep_expected:
        for i in range(info[WAITING]):
            first = run.lists[QUEUE, i]
            for job in range(first, run.jobs[UNTIL, first]):
                if run.jobs[PLACE, job] > now:
                    run.jobs[PROMISED_LAST, job] = run.jobs[PLACE, job]
                    if run.jobs[PROMISED_FIRST, job] < 0:
                        run.jobs[PROMISED_FIRST, job] = run.jobs[PLACE, job]
    if n_started == 0:
        return
    for i in range(n_started):
        job = run.lists[STARTED, i]
        run.jobs[START, job] = now
        if run.jobs[PROMISED_FIRST, job] >= 0:
            run.jobs[PROMISED_LAST, job] = now
        info[RUNNING] = push(run.lists[END_AT], run.lists[END_JOB], info[RUNNING], now + run.jobs[RUNTIME, job], job)
        info[DUE] = min(info[DUE], now + run.jobs[ESTIMATE, job])
    dequeue(rule, run, n_started)
