"""Predictors in the obvious way: dictionaries of what has ended, looked through from the beginning each time."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable

from dovetail.predict.base import Job, Predictor
from dovetail.predict.history import ALIKE, LEVELS, PROFILES


class Slow(Predictor):
    """Remembers every job that has ended, with its run time, in turn."""

    name = "slow"

    def __init__(self, correct: str) -> None:
        self.correct = correct
        self.ended: list[tuple[Job, int]] = []

    def observe(self, job: Job, runtime_s: int) -> None:
        self.ended.append((job, runtime_s))

    def alike(self, job: Job, columns: tuple[str, ...]) -> list[tuple[Job, int]]:
        """Those of a group, the first to end first."""

        def key(one: Job) -> Hashable:
            return tuple(getattr(one, column) for column in columns)

        return [(one, ran) for one, ran in self.ended if key(one) == key(job)]


class SlowRecent(Slow):
    def estimate(self, job: Job) -> float:
        last = [ran for _, ran in self.alike(job, ("user",))][-2:]
        return sum(last) / len(last) if last else job.limit


class SlowSimilar(Slow):
    def estimate(self, job: Job) -> float:
        for level in PROFILES:
            if past := self.alike(job, level):
                return past[-1][1]
        return job.limit


class SlowHierarchy(Slow):
    def estimate(self, job: Job) -> float:
        for level in LEVELS:
            times = [ran for _, ran in self.alike(job, level)]
            if times:
                mean = float(times[0])
                for ran in times[1:]:
                    mean += 0.3 * (ran - mean)
                return mean
        return job.limit


class SlowSurvival(Slow):
    """Kaplan and Meier, by the book: at each instant at which jobs ended by themselves, the share of those still there
    that did not."""

    def __init__(self, correct: str, risk: float, share: float, jobs: int) -> None:
        super().__init__(correct)
        self.risk, self.share, self.jobs = risk, share, jobs

    def estimate(self, job: Job) -> float:
        past = self.alike(job, ALIKE)[::-1][: self.jobs]
        weighed = [(ran, ran < one.limit, self.share * (1 - self.share) ** i) for i, (one, ran) in enumerate(past)]
        never = 1 - sum(weight for _, _, weight in weighed)
        ends: dict[int, float] = defaultdict(float)
        for ran, event, weight in weighed:
            if event:
                ends[ran] += weight
        left = 1.0
        for at in sorted(ends):
            there = never + sum(weight for ran, _, weight in weighed if ran >= at)
            left *= 1 - ends[at] / there
            if left < self.risk:
                return at
        return job.limit


def outlived(correct: str, first: int, limit: int, ran: int) -> int:
    """What is expected next of a job that has run so long, as long as was said or longer."""
    value = first
    steps = [60, 300, 900, 1800, 3600]
    while value <= ran:
        if correct == "limit":
            value = max(limit, ran + 1)
        elif correct == "double":
            value *= 2
        elif correct == "steps":
            value += steps.pop(0) if steps else 7200
        else:
            value = ran + 1
    return max(min(value, limit), ran + 1)
