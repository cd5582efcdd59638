"""A day's jobs, placed in an order: each at its earliest fit, if that is still today.

Two machines answer: `pool` counts processors, and says soon when a job may start at the earliest, or that it will not
today; `nodes` says when and where it does. Where nodes are not known any processors will do: `Anywhere`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import Ints
from dovetail.kernels.compile import inner, jit
from dovetail.kernels.machine.capacity import (
    earliest_before,
    earliest_fit,
    open_plan,
    reserve,
    reserve_again,
    start,
)
from dovetail.kernels.seam import answers


class Anywhere(NamedTuple):
    """No nodes: a job that has its processors has its place."""

    none: Ints = np.empty((2, 0), np.int64)

    def hold(self, job: int, now: int, nodes: Ints, devices: Ints) -> None:
        """No job has a node."""

    def picked(self) -> Ints:
        """No job has a node."""
        return self.none

    def pick_again(self, where: Ints) -> None:
        """No job has a node."""


@inner
def _nothing(cap: Anywhere, job: int, at: int, length: int) -> None:
    """There are no nodes to take."""


@inner
def _open(cap: Anywhere, now: int) -> None:
    """There are no nodes to plan for."""


@inner
def _at_once(cap: Anywhere, job: int, at: int, length: int, until: int) -> int:
    return at


answers(
    Anywhere, start=_nothing, reserve=_nothing, reserve_again=_nothing, open_plan=_open, earliest_before=_at_once
)  # fmt: skip


@jit
def begin_day(pool: Any, nodes: Any, now: int, running: Ints, ends: Ints) -> None:
    """What already runs, to its ends."""
    for i in range(len(running)):
        start(pool, running[i], now, ends[i])
        start(nodes, running[i], now, ends[i])


@jit
def place_day(
    pool: Any, nodes: Any, now: int, until: int, order: Ints, earliest: Ints, length: Ints, fixed: Ints, at: Ints
) -> None:
    """Write the start of every job to `at`, -1 where it does not start before `until`. Jobs with a start in `fixed`
    (not -1) are placed there, before all others, on the nodes that they were picked last."""
    open_plan(pool, now)
    open_plan(nodes, now)
    for i in range(len(order)):
        job = order[i]
        at[job] = fixed[job]
        if fixed[job] >= 0:
            reserve(pool, job, fixed[job], length[job])
            reserve_again(nodes, job, fixed[job], length[job])
    for i in range(len(order)):
        job = order[i]
        if fixed[job] < 0 and earliest[job] < until:
            found = earliest_fit(pool, job, earliest[job], length[job])
            if found < until:
                found = earliest_before(nodes, job, found, length[job], until)
            if found < until:
                reserve(pool, job, found, length[job])
                reserve(nodes, job, found, length[job])
                at[job] = found
