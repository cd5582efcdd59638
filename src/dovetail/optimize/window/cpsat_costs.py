"""An objective as costs of single jobs, around a schedule that is known: what CP-SAT can be told.

AF, AWF, BSLD and the wait are such sums as they are. PaSF is a ratio N / D of such sums. Dinkelbach's way: with rho
the ratio of the known schedule, a schedule is better just if N - rho D < 0, and that is a sum again. It is divided
by the known D, so that in a sum of objectives it counts about as much as the change of the ratio.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Floats, Ints
from dovetail.optimize.window.objective import Lines, Makespan, Objective, Pasf, PerJob, Sum, power_gap
from dovetail.optimize.window.problem import Problem

FloatGrid = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Ratio:
    """N - rho D of a PaSF, as costs of jobs: factor x (over - under), with all times in units of rho."""

    objective: Pasf
    rho: float
    factor: float

    def at(self, problem: Problem, wait: npt.NDArray[np.int64]) -> FloatGrid:
        """The cost of each job (row) at each wait (column)."""
        over, under = self.objective.parts(problem.size[:, None], problem.estimate[:, None], wait, self.rho)
        return np.asarray(self.factor * (over - under), np.float64)

    def slope(self, problem: Problem, wait: npt.NDArray[np.int64]) -> FloatGrid:
        """How fast the cost of each job (row) grows, per second, at each wait (column)."""
        a, q, e = self.objective.level, wait / self.rho, problem.estimate[:, None] / self.rho
        change = power_gap(q, e, a + 1) - power_gap(q, e, a)
        return np.asarray(self.factor * (a + 1) / self.rho * problem.size[:, None] * change, np.float64)

    @property
    def convex_after_s(self) -> float:
        """From this wait on the cost is convex in the wait; before it, it is concave first and then convex.

        The cost is an integral of g = x^a (x - rho) from Q to F, its second derivative g'(F) - g'(Q), and g' falls
        up to x = (a - 1) rho / (a + 1) and grows from there on.
        """
        a = self.objective.level
        return max(a - 1, 0.0) / (a + 1) * self.rho

    def least(self, problem: Problem, first: Ints) -> Floats:
        """Below this no job's cost falls.

        The cost is an integral of x^a (x - rho) over its units of computation; from x = a rho / (a + 1) on, that grows.
        """
        a, wait = self.objective.level, first - problem.arrive
        turn = a / (a + 1)
        lowest = -self.factor * (a + 1) * problem.size * (problem.estimate / self.rho) * turn**a * (1 - turn)
        at_first = self.at(problem, wait[:, None])[:, 0]
        return np.where(wait >= turn * self.rho, at_first, lowest)


@dataclass(frozen=True)
class Costs:
    """All that the model minimises: lines and ratios per job, and seconds of the last end times a weight."""

    lines: tuple[Lines, ...]
    ratios: tuple[Ratio, ...]
    makespan: float

    @property
    def grows_after_s(self) -> int:
        """From this wait on no job's cost falls."""
        return max((int(ratio.rho) + 1 for ratio in self.ratios), default=0)

    def at(self, problem: Problem, starts: npt.NDArray[np.int64]) -> FloatGrid:
        """The cost of each job (row) at each start (column)."""
        wait = starts - problem.arrive[:, None]
        total = np.zeros(wait.shape)
        for slope, zero, floor in self.lines:
            total += np.maximum(floor[:, None], zero[:, None] + slope[:, None] * wait)
        for ratio in self.ratios:
            total += ratio.at(problem, wait)
        return total

    def least(self, problem: Problem, first: Ints) -> Floats:
        """No job costs less, if it starts no earlier than `first`."""
        flat = Costs(self.lines, (), 0.0).at(problem, first[:, None])[:, 0]
        return flat + sum(ratio.least(problem, first) for ratio in self.ratios)


def costs_around(problem: Problem, objective: Objective, known: Ints) -> Costs:
    """The objective as costs of single jobs; ratios around the schedule `known`."""
    parts = objective.parts if isinstance(objective, Sum) else ((1.0, objective),)
    lines, ratios, makespan = [], [], 0.0
    for weight, part in parts:
        if isinstance(part, PerJob) or (isinstance(part, Pasf) and part.level == 0):
            found = part.lines(problem) if isinstance(part, PerJob) else part.level_0(problem)
            lines.append(Lines(*(weight * values for values in found)))
        elif isinstance(part, Pasf):
            rho = part.value(problem, known)
            under = part.parts(problem.size, problem.estimate, known - problem.arrive, rho)[1]
            ratios.append(Ratio(part, rho, weight * rho / fsum(under)))
        elif isinstance(part, Makespan):
            makespan += weight
        else:
            raise TypeError(f"CP-SAT knows no way to minimise {type(part).__name__}")
    return Costs(tuple(lines), tuple(ratios), makespan)
