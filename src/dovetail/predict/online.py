"""Predictors that fit the run time to what is known of a job: a regression that learns as jobs end, and neighbours."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import cos, log, pi, sin
from typing import Final

import numpy as np

from dovetail.arrays import Floats
from dovetail.names import number, setting, whole
from dovetail.predict.base import Job, Predictor, correct_setting
from dovetail.units import DAY_S, WEEK_S

FEATURES: Final = 18
PAIRS: Final = tuple(np.array(pair) for pair in np.triu_indices(FEATURES, 1))
"""All pairs of two features; the first, the constant 1, is in none."""


@dataclass
class _User:
    """What is remembered of a user."""

    last: deque[int] = field(default_factory=lambda: deque(maxlen=3))
    """Run times, the last first."""
    ended: int = 0
    total_s: int = 0
    total_size: int = 0
    last_end: int = 0
    """The latest at which one could have ended, had none waited: a predictor is told no ends."""
    there: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Jobs that have not ended: submit and size."""


@dataclass(eq=False)
class Online(Predictor):
    """A polynomial of degree two in 18 features, learned job by job with an asymmetric loss (CVH of Packing, after
    Gaussier, Glesser, Reis and Trystram, Improving Backfilling by using Machine Learning to Predict Running Times, SC
    2015). What is too long costs its square, what is too short its length, each times 1 + log(area).

    Steps are those of normalized adaptive gradient descent (Ross, Mineiro and Langford, Normalized Online Learning, UAI
    2013). Where the paper asks about the user's running jobs, ours are those that have not ended: a predictor is told
    of arrivals and ends only.
    """

    rate: float = setting(5000.0, "how fast it learns", number(0, 1e9))
    penalty: float = setting(4e9, "what large weights cost", number(0, 1e18))
    correct: str = correct_setting()
    name: str = "online"

    def __post_init__(self) -> None:
        super().__post_init__()
        many = 1 + 2 * FEATURES + len(PAIRS[0])
        self._weights, self._largest, self._squares = np.zeros(many), np.full(many, 1e-9), np.full(many, 1e-9)
        self._norm, self._seen = 1e-9, 1
        self._users: dict[int, _User] = defaultdict(_User)
        self._asked: dict[int, Floats] = {}

    def estimate(self, job: Job) -> float:
        user = self._users[job.user]
        self._asked[job.number] = features = _polynomial(_features(job, user))
        user.there[job.number] = (job.submit, job.size)
        return max(1.0, abs(float(self._weights @ features)))

    def observe(self, job: Job, runtime_s: int) -> None:
        self._learn(self._asked.pop(job.number), runtime_s, 1 + log(job.size * runtime_s))
        user = self._users[job.user]
        submit, _ = user.there.pop(job.number)
        user.last.appendleft(runtime_s)
        user.ended += 1
        user.total_s += runtime_s
        user.total_size += job.size
        user.last_end = max(user.last_end, submit + runtime_s)

    def _learn(self, features: Floats, runtime_s: int, weight: float) -> None:
        size = np.abs(features)
        larger = size > self._largest
        self._weights[larger] *= self._largest[larger] / size[larger]
        self._largest[larger] = size[larger]
        self._norm += float(np.sum((features / self._largest) ** 2))
        over = float(self._weights @ features) - runtime_s
        slope = 2 * over if over > 0 else -1.0 if over < 0 else 0.0
        gradient = weight * slope * features + 2 * self.penalty * self._weights
        self._squares += gradient**2
        self._weights -= self.rate * gradient / (np.sqrt(self._norm * self._squares / self._seen) * self._largest)
        self._seen += 1


def _features(job: Job, user: _User) -> list[float]:
    """What is known of a job when it is submitted."""
    last = [min(job.limit, ran) for ran in user.last]
    of_last = [*last, *[job.limit] * (3 - len(last))]
    means = [sum(last[:n]) / len(last[:n]) if last else float(job.limit) for n in (2, 3)]
    ages = [job.submit - submit for submit, _ in user.there.values()]
    return [
        *of_last, job.limit, *means, user.total_s / user.ended if user.ended else 0.0,
        max(0, job.submit - user.last_end) if user.ended else 0.0, job.size,
        sum(size for _, size in user.there.values()), sum(ages), len(ages), max(ages, default=0),
        *(turn(2 * pi * job.submit / period) for period in (DAY_S, WEEK_S) for turn in (cos, sin)),
        job.size * user.ended / user.total_size if user.ended else 1.0,
    ]  # fmt: skip


def _polynomial(features: Sequence[float]) -> Floats:
    x = np.array(features)
    return np.concatenate([[1.0], x, x * x, x[PAIRS[0]] * x[PAIRS[1]]])


@dataclass(eq=False)
class Neighbours(Predictor):
    """The mean run time of the most similar of the user's last jobs: in limit, size, name and queue. A limit or a size
    that is twice another is as far from it as another name or queue."""

    jobs: int = setting(5, "how many of the most similar jobs count", whole(1, 1000))
    last: int = setting(100, "how many of the user's last jobs are looked at", whole(1, 10_000))
    correct: str = correct_setting()
    name: str = "neighbours"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._users: dict[int, deque[tuple[float, ...]]] = {}

    def estimate(self, job: Job) -> float:
        known = self._users.get(job.user)
        if not known:
            return job.limit
        past = np.array(known)[::-1]  # the last first: of two at the same distance it is nearer
        here = _place(job)
        apart = np.abs(past[:, :2] - here[:2]).sum(axis=1) + (past[:, 2:4] != here[2:]).sum(axis=1)
        nearest = np.argsort(apart, kind="stable")[: self.jobs]
        return float(past[nearest, 4].mean())

    def observe(self, job: Job, runtime_s: int) -> None:
        self._users.setdefault(job.user, deque(maxlen=self.last)).append((*_place(job), float(runtime_s)))


def _place(job: Job) -> tuple[float, ...]:
    return log(job.limit, 2), log(job.size, 2), float(job.name), float(job.queue)
