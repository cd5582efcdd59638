"""What an optimizer minimises: the metrics over jobs, with estimates in place of run times.

Q is the wait (start - arrival), E the estimate, F = Q + E the response, r the size. The formulas are those of
docs/metrics.md. An objective is *regular* if no job's delay, all else equal, ever lowers it. Then some order, decoded
by list scheduling, is an optimum: take an optimal schedule and decode its jobs in the order of its starts; no job
comes later.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from math import fsum, isfinite, nan
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Floats, Ints
from dovetail.errors import SettingError
from dovetail.optimize.window.problem import Problem


class Objective(ABC):
    """Something to minimise."""

    @property
    @abstractmethod
    def regular(self) -> bool:
        """Whether delaying a job never improves it."""

    @abstractmethod
    def value(self, problem: Problem, starts: Ints) -> float:
        """The value of a schedule; nan for no jobs."""


class Lines(NamedTuple):
    """The cost of each job as a function of its wait Q: max(floor, zero + slope Q). The value is their sum."""

    slope: Floats
    zero: Floats
    floor: Floats


class PerJob(Objective):
    """A sum over jobs, each a line in its own wait that may begin flat. Regular: no slope is negative."""

    @property
    def regular(self) -> bool:
        return True

    @abstractmethod
    def lines(self, problem: Problem) -> Lines:
        """The costs of the jobs."""

    def value(self, problem: Problem, starts: Ints) -> float:
        if not len(problem):
            return nan
        slope, zero, floor = self.lines(problem)
        return fsum(np.maximum(floor, zero + slope * (starts - problem.arrive)))


@dataclass(frozen=True)
class Af(PerJob):
    """AF: the mean response. Regular: each response grows with its job's start."""

    def lines(self, problem: Problem) -> Lines:
        n = len(problem)
        return Lines(np.full(n, 1 / n), problem.estimate / n, np.zeros(n))


@dataclass(frozen=True)
class Awf(PerJob):
    """AWF: the mean response by area. Regular for the same reason: no area is negative."""

    def lines(self, problem: Problem) -> Lines:
        share = problem.area / problem.area.sum()
        return Lines(share, problem.estimate * share, np.zeros(len(problem)))


@dataclass(frozen=True)
class Bsld(PerJob):
    """BSLD: the mean of max(1, F / max(E, bound)). Regular: flat at 1 while F is short, then rising."""

    bound_s: float = 10

    def __post_init__(self) -> None:
        if not (isfinite(self.bound_s) and self.bound_s >= 0):
            raise ValueError(f"the bound of the bounded slowdown is at least 0 s, got {self.bound_s}")

    def lines(self, problem: Problem) -> Lines:
        n = len(problem)
        slope = 1 / (n * np.maximum(problem.estimate, self.bound_s))
        return Lines(slope, problem.estimate * slope, np.full(n, 1 / n))


@dataclass(frozen=True)
class Wait(PerJob):
    """The mean wait by the problem's weights. Regular: no weight is negative."""

    def lines(self, problem: Problem) -> Lines:
        total = problem.weight.sum()
        none = np.zeros(len(problem))
        return Lines(problem.weight / total if total else none, none, none)


@dataclass(frozen=True)
class Makespan(Objective):
    """From the first arrival to the last end. Regular: a job's delay can only move the last end back."""

    @property
    def regular(self) -> bool:
        return True

    def value(self, problem: Problem, starts: Ints) -> float:
        return float((starts + problem.estimate).max() - problem.arrive.min()) if len(problem) else nan


@dataclass(frozen=True)
class Pasf(Objective):
    """PaSF at a level a: the response of each unit of computation, averaged by its own power a.

    Regular at level 0 only. It is a mean whose weights move: a unit whose response is below a/(a+1) of the mean
    pulls the mean down, and pulls harder the later it is done.
    """

    level: float = 2

    def __post_init__(self) -> None:
        if not 0 <= self.level <= 100:
            raise ValueError(f"the level of PaSF is from 0 to 100 (the papers use 2), got {self.level}")

    @property
    def regular(self) -> bool:
        return self.level == 0

    def value(self, problem: Problem, starts: Ints) -> float:
        if not len(problem):
            return nan
        wait = starts - problem.arrive
        scale = float((wait + problem.estimate).max())
        over, under = self.parts(problem.size, problem.estimate, wait, scale)
        return scale * (fsum(over) / fsum(under))

    def level_0(self, problem: Problem) -> Lines:
        """PaSF at level 0, (F + Q) / 2 averaged by area. No level is below it: the others weigh long responses more."""
        share = problem.area / problem.area.sum()
        return Lines(share, problem.estimate * share / 2, np.zeros(len(problem)))

    def parts(
        self, size: Ints, estimate: Ints, wait: npt.NDArray[Any], scale: float
    ) -> tuple[npt.NDArray[Any], npt.NDArray[Any]]:
        """What each job adds above and below the ratio, all times in units of `scale`; PaSF = scale x the ratio."""
        q, e = wait / scale, estimate / scale
        over = (self.level + 1) / (self.level + 2) * size * power_gap(q, e, self.level + 2)
        return over, size * power_gap(q, e, self.level + 1)


def power_gap(q: npt.NDArray[Any], e: npt.NDArray[Any], m: float) -> npt.NDArray[Any]:
    """F^m - Q^m = F^m (1 - (1 - E/F)^m), never as a difference of two large numbers."""
    f = q + e
    with np.errstate(divide="ignore"):  # no wait: log(0) = -inf, and exp(-inf) = 0 is right
        gap: npt.NDArray[Any] = -(f**m) * np.expm1(m * np.log1p(-e / f))
    return gap


@dataclass(frozen=True)
class Sum(Objective):
    """Objectives added up, each times a positive weight. Regular if all of them are."""

    parts: tuple[tuple[float, Objective], ...]

    def __post_init__(self) -> None:
        if not self.parts or not all(isfinite(weight) and weight > 0 for weight, _ in self.parts):
            raise ValueError("a sum of objectives has at least one, and each has a weight above 0")

    @property
    def regular(self) -> bool:
        return all(part.regular for _, part in self.parts)

    def value(self, problem: Problem, starts: Ints) -> float:
        return fsum(weight * part.value(problem, starts) for weight, part in self.parts)


OBJECTIVES: Final[dict[str, Objective]] = {
    "af": Af(), "awf": Awf(), "bsld": Bsld(), "p2sf": Pasf(2), "makespan": Makespan(), "wait": Wait(),
}  # fmt: skip
"""Objectives by name. `pasf:LEVEL` is one more."""


def parse(text: str) -> Objective:
    """An objective from words: `af`, `pasf:3`, `af+0.5*p2sf`."""
    parts = [_term(term.strip(), text) for term in text.split("+")]
    return parts[0][1] if len(parts) == 1 and parts[0][0] == 1 else Sum(tuple(parts))


def _term(term: str, text: str) -> tuple[float, Objective]:
    before, times, name = term.rpartition("*")
    weight = _number(before) if times else 1.0
    kind, colon, level = name.strip().partition(":")
    if not (isfinite(weight) and weight > 0):
        raise SettingError(f"objective {text!r}: the weight {before!r} is not a number above 0")
    if kind == "pasf" and colon:
        if not 0 <= _number(level) <= 100:
            raise SettingError(f"objective {text!r}: the level {level!r} of PaSF is not a number from 0 to 100")
        return weight, Pasf(_number(level))
    if colon or kind not in OBJECTIVES:
        choices = ", ".join([*OBJECTIVES, "pasf:LEVEL"])
        raise SettingError(
            f"objective {text!r}: no objective {name.strip()!r}; choose from {choices}, or sums like af+0.5*p2sf"
        )
    return weight, OBJECTIVES[kind]


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return nan
