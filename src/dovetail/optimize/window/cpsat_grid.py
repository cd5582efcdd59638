"""A coarser clock: the problem counted in units of many seconds, such that its schedules are true ones."""

from __future__ import annotations

import numpy as np

from dovetail.arrays import NEVER
from dovetail.optimize.window.problem import Problem


def coarsened(problem: Problem, unit: int) -> Problem:
    """The problem counted in units from now. Estimates and earliest starts are rounded up, latest starts down.

    In each unit, free is what is free throughout. So starts of the coarse problem, times the unit, plus now, are
    a schedule of the problem. With a unit of 1 s nothing is lost.
    """
    since = problem.times - problem.now
    edges = np.unique(np.concatenate([since // unit, -(-since // unit)]))
    free = []
    for begin, end in zip(edges.tolist(), [*edges[1:].tolist(), NEVER], strict=True):
        held = np.flatnonzero(since < (end * unit if end < NEVER else NEVER))
        inside = held[np.searchsorted(since, begin * unit, side="right") - 1 :]
        free.append(int(problem.free[inside].min()))
    earliest = -(-(problem.earliest - problem.now) // unit)
    return Problem(
        now=0,
        processors=problem.processors,
        times=edges,
        free=np.array(free, np.int64),
        arrive=np.zeros(len(problem), np.int64),
        size=problem.size,
        estimate=-(-problem.estimate // unit),
        earliest=earliest,
        latest=np.where(problem.latest == NEVER, NEVER, (problem.latest - problem.now) // unit),
    )
