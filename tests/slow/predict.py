"""Predictors in the obvious way: dictionaries of what has ended, looked through from the beginning each time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable

from dovetail.predict.base import Job, Predictor
from dovetail.predict.history import ALIKE, LEVELS, PROFILES
from dovetail.predict.quantile import LEVELS as NESTED


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


class SlowQuantile(Slow):
    """Guesses, their blend and its shifts, each by its definition."""

    def __init__(self, correct: str, level: float) -> None:
        super().__init__(correct)
        self.level = level
        self.shifts: dict[int | None, float] = {}
        everybody = [0.0] * 12 + [12 * max(0.0, level - 0.5)]
        self.weights: dict[int | None, list[float]] = {None: everybody}
        self.squares: dict[int | None, list[float]] = {None: [0.0] * 13}
        self.made: dict[int, list[float]] = {}
        self.said: dict[int, int] = {}

    def distribution(
        self, job: Job, ran: int, *, shares: bool, decay: float, doubt: float
    ) -> list[tuple[float, float]]:
        """Run times longer than `ran` and what they weigh, in order."""
        found, left = [], 1.0
        for columns in NESTED:
            past = self.alike(job, columns)[::-1][:50]
            times = [ended / one.limit * job.limit if shares else ended for one, ended in past]
            times = [time for time in times if time > ran]
            weights = [decay**i for i in range(len(times))]
            taken = left * sum(weights) / (sum(weights) + doubt)
            found += [
                (min(time, job.limit), taken * weight / sum(weights))
                for time, weight in zip(times, weights, strict=True)
            ]
            left -= taken
        return sorted([*found, (job.limit, left)])

    def guesses(self, job: Job, ran: int = 0) -> list[float]:
        made = []
        for shares in (False, True):
            for decay, doubt in ((0.8, 1.0), (0.98, 30.0)):
                known = self.distribution(job, ran, shares=shares, decay=decay, doubt=doubt)
                for times in (1.0, 1 / 3, 1.6):
                    level = max(0.02, 1 - times * (1 - self.level))
                    reached = [time for i, (time, _) in enumerate(known) if sum(w for _, w in known[: i + 1]) >= level]
                    made.append(reached[0] if reached else known[-1][0])
        return [*made, job.limit]

    def blend(self, who: int | None, made: list[float]) -> float:
        weights = [math.exp(weight - max(self.weights[who])) for weight in self.weights[who]]
        return sum(weight * one for weight, one in zip(weights, made, strict=True)) / sum(weights)

    def shifted(self, job: Job, made: list[float]) -> float:
        value = self.blend(job.user, made)
        shift = max(-1.0, min(1.0, self.shifts.get(job.user, 0.0) + self.shifts.get(None, 0.0)))
        return value + shift * (job.limit - value) if shift > 0 else value * (1 + shift)

    def again(self, job: Job, ran: int) -> int:
        """What is expected of a job that has run so long."""
        self.welcome(job)
        return max(min(int(self.shifted(job, self.guesses(job, ran)) + 0.5), job.limit), ran + 1)

    def welcome(self, job: Job) -> None:
        """A user of whom no job has ended has the weights of all jobs."""
        if not self.alike(job, ("user",)):
            self.weights[job.user] = list(self.weights[None])
            self.squares[job.user] = [0.05 * square for square in self.squares[None]]

    def estimate(self, job: Job) -> float:
        self.made[job.number] = made = self.guesses(job)
        self.welcome(job)
        value = self.shifted(job, made)
        self.said[job.number] = max(1, min(job.limit, int(value + 0.5)))
        return value

    def observe(self, job: Job, runtime_s: int) -> None:
        super().observe(job, runtime_s)
        made, scale = self.made[job.number], sum(one.limit for one, _ in self.ended) / len(self.ended)
        for who in (job.user, None):
            value = self.blend(who, made)
            slope = -self.level if runtime_s > value else 1 - self.level if runtime_s < value else 0.0
            for i, one in enumerate(made):
                gradient = slope * (one - value) / scale
                self.squares[who][i] += gradient**2
                self.weights[who][i] -= gradient / math.sqrt(1 + self.squares[who][i])
        for who, step in ((job.user, 0.003), (None, 0.001)):
            if runtime_s > self.said[job.number]:
                self.shifts[who] = min(1.0, self.shifts.get(who, 0.0) + step * self.level)
            elif runtime_s < self.said[job.number]:
                self.shifts[who] = max(-1.0, self.shifts.get(who, 0.0) - step * (1 - self.level))


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
