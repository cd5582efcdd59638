"""What would have become of waits: what replays of a site as it is and as it could be say, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Mask
from dovetail.metrics.comparison import Comparison
from dovetail.model.workload import Workload

MIDDLE: Final = (0.025, 0.975)
"""What an interval holds of the pairs of phases."""
FAR, FAR_S = 0.25, 60
"""A replay whose mean wait is off by more than this part of the recorded one, and by more seconds, is warned of."""


@dataclass(frozen=True)
class Waits:
    """Of one alternative: seconds from when each job could have started to its start; a row for each phase. nan: it
    left before."""

    name: str
    seconds: Floats
    busy: Floats
    """The part of all cores that was in use from the first arrival to the last, by phase."""
    unseen: Floats = field(default_factory=lambda: np.zeros(1))
    """The part of all waiting that was behind as many jobs as a cycle of the backfill tries, by phase."""
    notes: tuple[str, ...] = ()

    @property
    def left(self) -> float:
        """How many jobs left before they started, on average."""
        return float(np.isnan(self.seconds).sum(axis=1).mean())

    def means(self, jobs: Mask | None = None) -> Floats:
        """Of each phase, of all jobs or of some."""
        chosen = self.seconds if jobs is None else self.seconds[:, jobs]
        many = (~np.isnan(chosen)).sum(axis=1)
        found: Floats = np.divide(np.nansum(chosen, axis=1), many, out=np.full(len(chosen), np.nan), where=many > 0)
        return found


@dataclass(frozen=True)
class Change:
    """Of the mean wait, against today's settings; of jobs that start in each replay."""

    today_s: float
    then_s: float
    low_s: float
    high_s: float
    """Of the difference: what pairs of phases say, 95 % of them."""

    @property
    def told(self) -> bool:
        """Whether it is more than the phases alone make."""
        return self.low_s > 0 or self.high_s < 0


@dataclass(frozen=True)
class Weeks:
    """What becomes of the mean wait, by the week in which jobs were submitted."""

    begins: tuple[int, ...]
    changes: tuple[Change, ...]
    overall: Comparison
    """Whether it holds from week to week."""


@dataclass(frozen=True)
class Answer:
    """What becomes of waits under one alternative."""

    today: Waits
    waits: Waits
    all: Change
    groups: Mapping[str, Change]
    """By partition, account, size and part of the day."""
    weeks: Weeks | None
    """None: a history of one week."""


@dataclass(frozen=True)
class Trust:
    """What happened, beside a replay with today's settings."""

    jobs: int
    recorded_s: float
    replayed_s: float
    low_s: float
    high_s: float
    """The least and the largest mean wait of a phase."""
    within_hour: float
    """The part of jobs that start within an hour of when they did."""
    recorded_busy: float
    replayed_busy: float
    groups: tuple[tuple[str, int, float, float], ...]
    """The same parts: name, jobs, mean wait as recorded, and replayed."""

    @property
    def far(self) -> bool:
        """Whether the replay is so far from what happened that an answer says little."""
        return abs(self.replayed_s - self.recorded_s) > max(FAR * self.recorded_s, FAR_S)


@dataclass(frozen=True)
class WhatIf:
    """What was asked of a history, and what would have become of it."""

    workload: Workload
    remarks: tuple[str, ...]
    """What must be said of today's settings."""
    trust: Trust | None
    recorded: Floats
    """The wait of each job that happened; nan: not known."""
    started: Mask
    """The jobs that start in each replay: all changes are of these."""
    today: Waits
    answers: tuple[Answer, ...]
    not_followed: tuple[str, ...]
    """Of today's settings, in words."""


def started_in(found: Sequence[Waits]) -> Mask:
    """The jobs that start in each replay."""
    return np.asarray(~np.any([np.isnan(one.seconds).any(axis=0) for one in found], axis=0))


def change(today: Waits, then: Waits, jobs: Mask | None = None) -> Change:
    """What becomes of the mean wait of some jobs, which start in each replay; None: all of these. All pairs of a phase
    of one and a phase of the other: two Slurms are not in step, whatever their settings."""
    chosen = started_in([today, then]) if jobs is None else jobs
    before, after = today.means(chosen), then.means(chosen)
    differences = (after[:, None] - before[None, :]).reshape(-1)
    low, high = np.quantile(differences, MIDDLE)
    return Change(float(before.mean()), float(after.mean()), float(low), float(high))
