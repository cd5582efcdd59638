"""Estimates within a replay: what a predictor says of a job when it arrives, what it learns when one ends, and what is
expected of a job that has outlived its estimate.

A learner knows groups of jobs that are alike, from the most to the least specific level: a job belongs to one group of
each. Of each group it remembers which of its jobs ended, the last first, and a decaying mean of their run times. All
kinds of learners are of one type, told apart by a number: a replay is compiled once for all of them.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.kernels.compile import inner, jit
from dovetail.kernels.learners.quantile import Guesses, copied_guesses, guess, learn_from, new_guesses
from dovetail.kernels.machine.capacity import prolong
from dovetail.kernels.state import (
    ARRIVED,
    CORRECTED,
    DUE,
    END_JOB,
    ENDED,
    ESTIMATE,
    NEWS_LIST,
    RUNNING,
    RUNTIME,
    STANDS,
    START,
    Run,
)

# Kinds of learners.
GIVEN, RECENT, DECAYING, SURVIVAL, QUANTILE = range(5)
"""GIVEN: estimates are there from the beginning. RECENT: the mean of the last jobs of the group. DECAYING: the decaying
mean. SURVIVAL: the time that all but a share of the group's last jobs have ended by, late jobs counting more.
QUANTILE: see quantile.py."""

# What is expected of a job that has outlived its estimate.
AT_ONCE, LIMIT, STEPS, DOUBLE, AGAIN = range(5)
"""AT_ONCE: that it ends in the next second. LIMIT: that it runs to its limit. STEPS: that it runs on for a minute, then
five, fifteen, thirty, an hour, then two hours again and again. DOUBLE: that it runs twice as long. AGAIN: what the past
says of jobs that have run so long; only QUANTILE can say it."""
_STEPS = (60, 300, 900, 1800, 3600)
_LAST_STEP = 7200


class Learner(NamedTuple):
    """A predictor as numbers; the caller owns the arrays."""

    kind: int
    correction: int
    many: int
    """So many of a group's jobs are looked at, at most."""
    share: float
    """DECAYING, SURVIVAL: the weight of the last job against all before it."""
    risk: float
    """SURVIVAL: the share of jobs that may outlive the estimate."""
    limit: Ints
    first: Ints
    """By job: what was expected of it when it arrived."""
    groups: Ints
    """By level and job: its group."""
    last: Ints
    """By level and group: the job of it that ended last; -1: none."""
    before: Ints
    """By level and job: which job of its group ended before it; -1: none."""
    means: Floats
    """By level and group."""
    spare: Floats
    """Working space."""
    guesses: Guesses
    """QUANTILE"""


def new_learner(
    limit: Ints, kind: int = GIVEN, correction: int = AT_ONCE, *, first: Ints | None = None, groups: Ints | None = None,
    many: int = 1, share: float = 1.0, risk: float = 0.0, own: int = 0,
) -> Learner:  # fmt: skip
    """A learner that has seen nothing yet. `first`: the estimates, if they are given. `own`: QUANTILE learns for each
    group of this level."""
    n = len(limit)
    groups = np.empty((0, n), np.int64) if groups is None else groups
    none = np.full(groups.shape, -1, np.int64)
    return Learner(
        kind, correction, many, share, risk, np.array(limit, np.int64),
        np.zeros(n, np.int64) if first is None else np.array(first, np.int64),
        np.ascontiguousarray(groups), none, none.copy(), np.zeros(groups.shape),
        np.zeros((3, many)),
        new_guesses(n, groups, many, 1.0 - risk, own) if kind == QUANTILE else new_guesses(0, none[:0], 0, 0.0, 0),
    )  # fmt: skip


def copied_learner(learner: Learner) -> Learner:
    """The same learner in the same state, on its own; what it does not change is shared."""
    changed = ("first", "last", "before", "means", "spare")
    own = {name: getattr(learner, name).copy() for name in changed}
    return learner._replace(**own, guesses=copied_guesses(learner.guesses))


@jit
def observe(learner: Learner, job: int, runtime: int) -> None:
    if learner.kind == QUANTILE:
        learn_from(learner, job, runtime)
    for level in range(learner.groups.shape[0]):
        group = learner.groups[level, job]
        known = learner.last[level, group]
        learner.before[level, job] = known
        learner.last[level, group] = job
        mean = learner.means[level, group]
        learner.means[level, group] = runtime if known < 0 else mean + learner.share * (runtime - mean)


@inner
def _recent(learner: Learner, runtime: Ints, level: int, group: int) -> float:
    total, n = 0.0, 0
    job = learner.last[level, group]
    while job >= 0 and n < learner.many:
        total += float(runtime[job])
        n += 1
        job = learner.before[level, job]
    return total / n


@inner
def _survival(learner: Learner, runtime: Ints, level: int, group: int) -> float:
    """The least time that less than a share `risk` of the group outlives, by Kaplan and Meier; infinity if none will
    do. The job that ended last weighs `share`, each before it less by that share, and what is left is a job that never
    ends: who has seen little fears much. A job that ran to its limit is censored: it would have run on."""
    times, weights, events = learner.spare[0], learner.spare[1], learner.spare[2]
    n, weight, at_risk = 0, learner.share, 1.0
    job = learner.last[level, group]
    while job >= 0 and n < learner.many:
        value, event = float(runtime[job]), 1.0 if runtime[job] < learner.limit[job] else 0.0
        i = n
        while i > 0 and (times[i - 1] > value or (times[i - 1] == value and event > events[i - 1])):
            times[i], weights[i], events[i] = times[i - 1], weights[i - 1], events[i - 1]
            i -= 1
        times[i], weights[i], events[i] = value, weight, event
        weight *= 1.0 - learner.share
        n += 1
        job = learner.before[level, job]
    left = 1.0
    for i in range(n):
        if events[i] > 0.0:
            left *= 1.0 - weights[i] / at_risk
        at_risk -= weights[i]
        if left < learner.risk:
            return times[i]
    return np.inf


@inner
def whole_seconds(value: float, limit: int) -> int:
    """An estimate: rounded half up, at least a second, at most the limit."""
    seconds: int = limit
    if value < limit:
        seconds = np.int64(np.floor(value + 0.5))  # type: ignore[assignment]
    return max(seconds, 1)


@jit
def predicted(learner: Learner, runtime: Ints, job: int) -> int:
    """Of the most specific group in which a job has ended; the limit if there is none."""
    limit = learner.limit[job]
    if learner.kind == QUANTILE:
        return whole_seconds(guess(learner, runtime, job, 0), limit)
    for level in range(learner.groups.shape[0]):
        group = learner.groups[level, job]
        if learner.last[level, group] < 0:
            continue
        value = learner.means[level, group]
        if learner.kind == RECENT:
            value = _recent(learner, runtime, level, group)
        elif learner.kind == SURVIVAL:
            value = _survival(learner, runtime, level, group)
        return whole_seconds(value, limit)
    return whole_seconds(np.inf, limit)


@jit
def outlived(learner: Learner, runtime: Ints, job: int, ran: int) -> int:
    """What is expected of a job that has run for `ran` seconds, as long as its estimate said or longer."""
    limit, estimate = learner.limit[job], learner.first[job]
    if learner.correction == LIMIT:
        estimate = limit
    elif learner.correction == AGAIN:
        estimate = whole_seconds(guess(learner, runtime, job, ran), limit)
    elif learner.correction == DOUBLE:
        estimate = max(estimate, 1)
        while estimate <= ran:
            estimate *= 2
    elif learner.correction == STEPS:
        for step in _STEPS:
            if estimate <= ran:
                estimate += step
        if estimate <= ran:
            estimate += _LAST_STEP * ((ran - estimate) // _LAST_STEP + 1)
    return max(min(estimate, limit), ran + 1)


@inner
def learn(learner: Learner, run: Run) -> None:
    """Observe the jobs that ended in this moment, then estimate those that arrived."""
    if learner.kind == GIVEN:
        return
    for i in range(run.info[ENDED]):
        job = run.lists[NEWS_LIST, i]
        observe(learner, job, run.jobs[RUNTIME, job])
    for i in range(run.info[ENDED], run.info[ENDED] + run.info[ARRIVED]):
        job = run.lists[NEWS_LIST, i]
        run.jobs[ESTIMATE, job] = learner.first[job] = predicted(learner, run.jobs[RUNTIME], job)


@inner
def correct(learner: Learner, cap: Any, run: Run, now: int) -> None:
    """Give the running jobs that have outlived their estimates others."""
    info = run.info
    if learner.correction == AT_ONCE or now < info[DUE]:
        return
    info[DUE] = NEVER
    for i in range(info[RUNNING]):
        job = run.lists[END_JOB, i]
        started = run.jobs[START, job]
        if started + run.jobs[ESTIMATE, job] <= now:
            run.jobs[ESTIMATE, job] = outlived(learner, run.jobs[RUNTIME], job, now - started)
            prolong(cap, job, now, started + run.jobs[ESTIMATE, job])
            info[CORRECTED], info[STANDS] = 1, 0
        info[DUE] = min(info[DUE], started + run.jobs[ESTIMATE, job])
