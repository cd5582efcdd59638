"""The priority of waiting jobs as a sum of weighted factors: how long they have waited, whose turn it is, their size,
partition, quality of service, account and resources. A whole number for each job, as the batch systems that have it
compute it: to the unit, their order of adding included."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Ints, Mask
from dovetail.errors import SettingError

LARGE, SMALL = "large", "small"
MOST: Final = (1 << 32) - 1
"""The highest priority."""


@dataclass(frozen=True)
class Weights:
    """What each factor, from 0 to 1, is worth."""

    age: int = 0
    account: int = 0
    turn: int = 0
    size: int = 0
    partition: int = 0
    qos: int = 0
    resources: Mapping[str, float] = field(default_factory=dict)
    """In the order in which they are added."""


@dataclass(frozen=True)
class Asking:
    """What is asked of waiting jobs that nobody holds: an array of each, one value for a job."""

    since: Ints
    """Since when age counts, in seconds; -1: it does not."""
    processors: Ints
    nodes: Ints
    limit_minutes: Ints
    partition: Ints
    """Its place in `Multifactor.partitions`; -1: none."""
    qos: Ints
    account: Ints
    turn: Floats
    """Where its owner stands, from 1 down to 0."""
    site: Ints
    """What the site adds."""
    nice: Ints
    """What is taken away."""
    resources: Mapping[str, Ints] = field(default_factory=dict)
    fixed: Ints | None = None
    """Priorities that somebody set by hand; 0: nobody did."""

    def of(self, jobs: Ints) -> Asking:
        """What some of them ask for."""
        fixed = None if self.fixed is None else self.fixed[jobs]
        plain = {name: getattr(self, name)[jobs] for name in _BY_JOB}
        return Asking(**plain, resources={name: one[jobs] for name, one in self.resources.items()}, fixed=fixed)


_BY_JOB: Final = (
    "since",
    "processors",
    "nodes",
    "limit_minutes",
    "partition",
    "qos",
    "account",
    "turn",
    "site",
    "nice",
)


@dataclass(frozen=True)
class Multifactor:
    """The rules of a site."""

    weights: Weights
    processors: int
    nodes: int
    oldest_s: int = 7 * 86_400
    """From this age on it is 1."""
    favours: str = LARGE
    by_time: bool = False
    """Whether size is relative to the limit."""
    partitions: tuple[int, ...] = ()
    qos: tuple[int, ...] = ()
    accounts: tuple[int, ...] = ()
    held: tuple[Mapping[str, int], ...] = ()
    """What each partition has of resources."""
    as_they_are: frozenset[str] = frozenset()
    """Which of partition, qos, account and resources are not divided by the most that there is."""

    def __post_init__(self) -> None:
        if self.processors <= 0 or self.nodes <= 0 or self.oldest_s <= 0:
            raise SettingError("priorities need a machine with nodes and processors, and an age of a second at least")
        if self.favours not in (LARGE, SMALL):
            raise SettingError(f"priorities favour {LARGE} jobs or {SMALL} ones, not {self.favours!r}")

    def parts(self, jobs: Asking, now: int) -> dict[str, Floats]:
        """What each factor adds, in the order of adding; `site` and what is taken away behind them."""
        own = self.weights
        return {
            "age": self._age(jobs, now) * float(own.age),
            "account": self._of("account", self.accounts, jobs.account) * float(own.account),
            "turn": jobs.turn * float(own.turn),
            "size": self._size(jobs) * float(own.size),
            "partition": self._of("partition", self.partitions, jobs.partition) * float(own.partition),
            "qos": self._of("qos", self.qos, jobs.qos) * float(own.qos),
            "resources": self._resources(jobs),
            "site": jobs.site.astype(np.float64),
            "nice": -jobs.nice.astype(np.float64),
        }

    def __call__(self, jobs: Asking, now: int) -> Ints:
        """The priorities at an instant."""
        total = np.zeros(len(jobs.since))
        for part in self.parts(jobs, now).values():
            total = total + part
        found = np.minimum(np.maximum(total, 1), float(MOST)).astype(np.int64)
        return found if jobs.fixed is None else np.where(jobs.fixed > 0, jobs.fixed, found)

    def _age(self, jobs: Asking, now: int) -> Floats:
        waited = np.maximum(now - jobs.since, 0)
        return np.where(jobs.since >= 0, np.where(waited < self.oldest_s, waited / float(self.oldest_s), 1.0), 0.0)

    def _size(self, jobs: Asking) -> Floats:
        nodes, processors = jobs.nodes.astype(np.float64), jobs.processors.astype(np.float64)
        every, most = float(self.nodes), float(self.processors)
        if self.by_time:
            found = np.maximum(nodes * most / every, processors) / jobs.limit_minutes / most
            found = 1.0 - found if self.favours == SMALL else found
        elif self.favours == SMALL:
            found = ((every - nodes) / every + (most - processors) / most) / 2
        else:
            found = (nodes / every + processors / most) / 2
        return np.minimum(np.maximum(found, 0.0), 1.0)

    def _of(self, what: str, values: tuple[int, ...], which: Ints) -> Floats:
        """The factor of a partition, ...: its part of the highest."""
        most = 1 if what in self.as_they_are else max(values, default=0)
        factors = np.array([value / most if most else 0.0 for value in values] + [0.0])
        return factors[which]

    def _resources(self, jobs: Asking) -> Floats:
        total = np.zeros(len(jobs.since))
        for name, weight in self.weights.resources.items():
            asked = jobs.resources.get(name, np.zeros(len(total), np.int64)).astype(np.float64)
            if "resources" not in self.as_they_are:
                there = np.array([float(one.get(name, 0)) for one in self.held] + [0.0])[jobs.partition]
                known: Mask = there > 0
                asked = np.divide(asked, there, out=np.zeros(len(total)), where=known)
            total = total + asked * weight
        return total
