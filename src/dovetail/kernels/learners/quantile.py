"""A quantile of a job's run time: many guesses from the past, blended by how well each has done, and calibrated.

Each guess reads the last jobs of all groups that a job belongs to as one distribution, the most specific group first:
it has all the weight but that of some jobs' worth of doubt, which is left to the next group, and what is left at the
end is for the limit. Guesses differ in how soon they forget, how much they doubt, whether they take run times in
seconds or as shares of the limits, and which quantile they read. One more says the limit.

The blend's weights, one set per group of `own` and one for all jobs, follow the gradient of the pinball loss in seconds
(exponentiated gradient, steps as in AdaGrad). Two shifts, the group's and that of all jobs, then move the blend towards
the limit or towards zero, so that in the long run the share of jobs that end within what is said is right, of all and
of each group with many jobs (adaptive conformal inference). None goes further than all the way: many jobs at once that
outlive what was said of them must not be paid for by thousands after them.
"""

from __future__ import annotations

from math import exp, sqrt
from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.passes.order import sort_by_key

MEMORIES = ((0.8, 1.0), (0.98, 30.0))
"""What a job weighs against the one that ended after it in its group; and how many jobs' worth of doubt there is."""
READ = (1.0, 1 / 3, 1.6)
"""A guess lets so many times the share outlive it that the blend may."""
GUESSES = 2 * len(MEMORIES) * len(READ) + 1
LEAST_LEVEL = 0.02
LIMIT_FIRST = 12.0
"""How far above the others the weight of the limit begins, as a logarithm, for each unit of the level above a half."""
STEP = 1.0
NEWCOMER = 0.05
"""A new group begins with the weights of all jobs, and as if it had learned this share of what they were learned of."""
SHIFT_STEP, OWN_SHIFT_STEP = 0.001, 0.003


class Guesses(NamedTuple):
    """What the blend knows; the caller owns the arrays. The last row of those by group is for all jobs."""

    level: float
    own: int
    """The level of groups that have their own weights."""
    made: Floats
    """By job: its guesses, made when it arrived."""
    weights: Floats
    """Logarithms, by group and guess."""
    squares: Floats
    """Sums of the squared gradients, by group and guess."""
    shifts: Floats
    """By group: how far blends are moved, 1 is to the limit, -1 to zero; that of all jobs is added."""
    known: Floats
    """The sum of the limits of jobs that have ended, and their number."""
    values: Floats
    """Working space: run times of jobs alike, and what each weighs."""
    order: Ints
    """Working space: the run times in order; how many there are, by level."""


def new_guesses(jobs: int, groups: Ints, many: int, level: float, own: int) -> Guesses:
    """Before the first job. `groups`: by level and job; `many` jobs of each are looked at."""
    kinds = int(groups[own].max()) + 2 if groups.size else 1
    weights = np.zeros((kinds, GUESSES))
    weights[:, -1] = LIMIT_FIRST * max(0.0, level - 0.5)
    most = max(len(groups) * many + 1, GUESSES)
    return Guesses(
        level, own, np.zeros((jobs, GUESSES)), weights, np.zeros((kinds, GUESSES)), np.zeros(kinds),
        np.zeros(2), np.zeros((3, most)), np.zeros((3, most), np.int64),
    )  # fmt: skip


def copied_guesses(guesses: Guesses) -> Guesses:
    """The same in the same state, on its own."""
    return guesses._replace(**{key: getattr(guesses, key).copy() for key in guesses._fields[2:]})


@inner
def _collect(learner: Any, runtime: Ints, job: int, ran: int, shares: bool) -> int:
    """Put run times of the last jobs of each group, if longer than `ran`, in order; returns how many there are."""
    values, order = learner.guesses.values[0], learner.guesses.order
    limit = float(learner.limit[job])
    n = 0
    for level in range(learner.groups.shape[0]):
        one, looked, before = learner.last[level, learner.groups[level, job]], 0, n
        while one >= 0 and looked < learner.many:
            value = float(runtime[one])
            if shares:
                value = value / float(learner.limit[one]) * limit
            if value > ran:
                values[n] = min(value, limit)
                n += 1
            looked += 1
            one = learner.before[level, one]
        order[2, level] = n - before
    values[n] = limit
    for i in range(n + 1):
        order[0, i] = i
    sort_by_key(order[0], 0, n + 1, values, order[1])
    return n


@inner
def _weigh(learner: Any, decay: float, doubt: float) -> None:
    """Give each run time its weight: together they weigh 1."""
    weights, many = learner.guesses.values[1], learner.guesses.order[2]
    left, first = 1.0, 0
    for level in range(learner.groups.shape[0]):
        n = many[level]
        if n == 0:
            continue
        total, one = 0.0, 1.0
        for _ in range(n):
            total += one
            one *= decay
        taken = left * total / (total + doubt)
        one = taken / total
        for i in range(first, first + n):
            weights[i] = one
            one *= decay
        left -= taken
        first += n
    weights[first] = left


@inner
def _quantile(learner: Any, n: int, level: float) -> float:
    """The least of the run times that so much of the weight does not exceed."""
    values, weights, order = learner.guesses.values[0], learner.guesses.values[1], learner.guesses.order[0]
    total = 0.0
    for i in range(n):
        total += weights[order[i]]
        if total >= level:
            return float(values[order[i]])
    return float(values[order[n]])


@inner
def _blend(guesses: Guesses, who: int, made: Floats) -> float:
    weights = guesses.weights[who]
    most = weights[0]
    for i in range(1, GUESSES):
        most = max(most, weights[i])
    total, value = 0.0, 0.0
    for i in range(GUESSES):
        weight = exp(weights[i] - most)
        total += weight
        value += weight * made[i]
    return value / total


@inner
def guess(learner: Any, runtime: Ints, job: int, ran: int) -> float:
    """The quantile of a job that has run for `ran` seconds; at its arrival, 0, the guesses are kept. A group in which
    no job has ended has the weights of all jobs, as they are now."""
    guesses = learner.guesses
    made = guesses.made[job] if ran == 0 else guesses.values[2]
    at = 0
    for shares in (False, True):
        n = _collect(learner, runtime, job, ran, shares)
        for decay, doubt in MEMORIES:
            _weigh(learner, decay, doubt)
            for times in READ:
                made[at] = _quantile(learner, n, max(LEAST_LEVEL, 1.0 - times * (1.0 - guesses.level)))
                at += 1
    limit = float(learner.limit[job])
    made[at] = limit
    who, everybody = learner.groups[guesses.own, job], guesses.weights.shape[0] - 1
    if learner.last[guesses.own, who] < 0:
        for i in range(GUESSES):
            guesses.weights[who, i] = guesses.weights[everybody, i]
            guesses.squares[who, i] = NEWCOMER * guesses.squares[everybody, i]
    value, shift = _blend(guesses, who, made), guesses.shifts[who] + guesses.shifts[everybody]
    if shift > 0.0:
        return value + min(1.0, shift) * (limit - value)
    return value * (1.0 + max(-1.0, shift))


@inner
def learn_from(learner: Any, job: int, runtime: int) -> None:
    """A job of which `learner.first` was said has ended."""
    guesses = learner.guesses
    level, known, made = guesses.level, guesses.known, guesses.made[job]
    known[0] += learner.limit[job]
    known[1] += 1.0
    scale = known[0] / known[1]
    everybody = guesses.weights.shape[0] - 1
    for who, step in ((learner.groups[guesses.own, job], OWN_SHIFT_STEP), (everybody, SHIFT_STEP)):
        if runtime > learner.first[job]:
            guesses.shifts[who] = min(1.0, guesses.shifts[who] + step * level)
        elif runtime < learner.first[job]:
            guesses.shifts[who] = max(-1.0, guesses.shifts[who] - step * (1.0 - level))
        value = _blend(guesses, who, made)
        slope = 0.0
        if runtime > value:
            slope = -level
        elif runtime < value:
            slope = 1.0 - level
        for i in range(GUESSES):
            gradient = slope * (made[i] - value) / scale
            guesses.squares[who, i] += gradient * gradient
            guesses.weights[who, i] -= STEP * gradient / sqrt(1.0 + guesses.squares[who, i])
