"""Planning windows cut from replays: the jobs that wait at a pass, beside what runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.model.schedule import Schedule
from dovetail.optimize.window.problem import Problem, alone, check, free_beside
from dovetail.policies.registry import policy
from dovetail.predict.known import estimates
from dovetail.units import DAY_S

LOGS: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE")
ESTIMATES: Final = ("runtime", "limit")
CLASSES: Final = ((10, 19), (20, 39), (40, 79), (80, 139), (140, 200))
PER_CLASS: Final = 5
"""Windows of each log and class of sizes; every other one with limits for estimates."""
SEED: Final = 1
MOST: Final = 8
"""Jobs of a small window."""
UNITS: Final = 24
"""On the coarser clock of small windows, the longest estimate has about this many units."""


@dataclass(frozen=True)
class Passes:
    """A replay of a log under list-reg, and how many jobs waited at each of its passes."""

    schedule: Schedule
    estimate: Ints
    at: Ints
    waiting: Ints

    def between(self, least: int, most: int) -> Ints:
        """The passes at which from `least` to `most` jobs waited."""
        return np.flatnonzero((self.waiting >= least) & (self.waiting <= most))

    def problem(self, now: int) -> Problem:
        """The planning window of the pass at an instant: all that waits, beside what runs to its expected end."""
        start, size = self.schedule.start, self.schedule.workload.size
        running = np.flatnonzero((start < now) & (self.schedule.end > now))
        ends = np.maximum(start + self.estimate, now + 1)[running]
        times, free = free_beside(now, self.schedule.cluster.processors, size[running].tolist(), ends.tolist())
        jobs = np.flatnonzero((self.schedule.arrive <= now) & (start >= now))
        return Problem(
            now=now, processors=self.schedule.cluster.processors, times=times, free=free,
            arrive=self.schedule.arrive[jobs], size=size[jobs], estimate=self.estimate[jobs],
        )  # fmt: skip


@cache
def passes(path: Path, estimate: str) -> Passes:
    """All passes of a log. In each, ends and arrivals of that second have happened, and nothing has started yet."""
    workload = read_workload(path)
    schedule = replay(workload, policy("list-reg"), estimate=estimate)
    at = np.unique(np.concatenate([schedule.arrive, schedule.end]))
    arrived = np.searchsorted(np.sort(schedule.arrive), at, side="right")
    started = np.searchsorted(np.sort(schedule.start), at, side="left")
    return Passes(schedule, estimates(workload, estimate), at, arrived - started)


def windows(paths: dict[str, Path]) -> list[tuple[str, str, int]]:
    """Log, estimate and instant of up to 100 windows. Any four in a row are from four logs, any five of five classes of
    sizes, and in every 20 each combination comes once; as far as there are enough.

    For each log, estimate and class: the days are shuffled, and one pass is drawn from each, until there are enough in
    which some job fits now (if none does, a planner does not search). Where there are too few days they are gone
    through once more.
    """
    drawn: dict[tuple[int, int, int], tuple[str, str, int]] = {}
    for t, (log, path) in enumerate(paths.items()):
        for e, estimate in enumerate(ESTIMATES):
            known = passes(path, estimate)
            for c, (least, most) in enumerate(CLASSES):
                rng = np.random.default_rng((SEED, t, e, c))
                wanted = list(range(e, PER_CLASS, 2))
                fitting = known.between(least, most)
                days = known.at[fitting] // DAY_S
                seen = set()
                for day in np.concatenate([rng.permutation(np.unique(days)) for _ in range(PER_CLASS)]):
                    now = int(known.at[rng.choice(fitting[days == day])])
                    problem = known.problem(now)
                    if wanted and problem.size.min() <= problem.free[0] and now not in seen:
                        drawn[wanted.pop(0), c, t] = (log, estimate, now)
                        seen.add(now)
                    if not wanted:
                        break
    # 4 and 5 have no common divisor: so each combination of log and class comes once in 20.
    turns = ((k // 20, k % len(CLASSES), k % len(LOGS)) for k in range(PER_CLASS * len(LOGS) * len(CLASSES)))
    return [drawn[turn] for turn in turns if turn in drawn]


def small(known: Passes, count: int, seed: int) -> Iterator[Problem]:
    """Windows of 2 to MOST jobs in which not every job can start as if it were alone, on a coarser clock, so that
    CP-SAT proves most of them in a fraction of a second."""
    made = 0
    for which in np.random.default_rng(seed).permutation(known.between(2, MOST)):
        problem = known.problem(int(known.at[which]))
        if check(problem, alone(problem)):
            yield coarse(problem)
            made += 1
        if made == count:
            return


def coarse(problem: Problem) -> Problem:
    """The same window on a clock of larger units: all instants and estimates in whole units, rounded up."""
    unit = -(-int(problem.estimate.max()) // UNITS)
    since = -(-(problem.times - problem.now) // unit)
    last = np.append(np.diff(since) > 0, True)  # of several steps in one unit the last counts: capacity only rises
    return Problem(
        now=0, processors=problem.processors, times=since[last], free=problem.free[last],
        arrive=-((problem.now - problem.arrive) // unit), size=problem.size, estimate=-(-problem.estimate // unit),
    )  # fmt: skip
