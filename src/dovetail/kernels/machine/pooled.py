"""Nodes, and beside them what is counted for the whole cluster: power.

Each question is asked of both. A job fits where both have room for it: the first instant is looked for in turn, until
one is found that suits both. What is in the shadow of the first in the queue is not asked: a plan is always made
(`ahead`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import (
    advance_plan,
    alike,
    back_to_kept,
    beside,
    due,
    earliest_fit,
    fits_again,
    fits_now,
    fits_plan,
    happen,
    keep_place,
    next_event,
    open_plan,
    prolong,
    recall_plan,
    release,
    remember_plan,
    reserve,
    reserve_again,
    room,
    shadow,
    shaken,
    spare,
    spare_beside,
    start,
    take_beside,
    unreserve,
)
from dovetail.kernels.machine.nodes import Nodes
from dovetail.kernels.machine.processors import Counted
from dovetail.kernels.seam import answers

_NEVER: int = np.int64(NEVER)  # type: ignore[assignment]
_NONE: int = np.int64(-1)  # type: ignore[assignment]


class Pooled(NamedTuple):
    """The two machines; the caller owns their arrays."""

    nodes: Nodes
    counts: Counted

    def copied(self) -> Pooled:
        """The same machine in the same state, on its own."""
        return Pooled(self.nodes.copied(), self.counts.copied())

    def larger(self) -> Pooled:
        """The same with room for twice as many jobs."""
        return Pooled(self.nodes.larger(), self.counts.larger())

    def memory(self) -> Ints:
        """Memory for a plan: that of the nodes, then of what is counted."""
        return np.concatenate([self.nodes.memory(), self.counts.memory()])

    def hold(self, job: int, now: int, nodes: Ints, devices: Ints) -> None:
        """As that of nodes."""
        self.nodes.hold(job, now, nodes, devices)

    def stand(self, job: int, nodes: Sequence[int], devices: Sequence[int]) -> None:
        """As that of nodes."""
        self.nodes.stand(job, nodes, devices)


@inner
def _fits_now(cap: Pooled, job: int) -> bool:
    return fits_now(cap.counts, job) and fits_now(cap.nodes, job)


@inner
def _alike(cap: Pooled, job: int, other: int) -> bool:
    return alike(cap.counts, job, other) and alike(cap.nodes, job, other)


@inner
def _spare(cap: Pooled) -> int:
    return spare(cap.nodes)


@inner
def _start(cap: Pooled, job: int, now: int, end: int) -> None:
    start(cap.nodes, job, now, end)
    start(cap.counts, job, now, end)


@inner
def _release(cap: Pooled, job: int, now: int, end: int) -> None:
    release(cap.nodes, job, now, end)
    release(cap.counts, job, now, end)


@inner
def _prolong(cap: Pooled, job: int, now: int, end: int) -> None:
    prolong(cap.nodes, job, now, end)
    prolong(cap.counts, job, now, end)


@inner
def _open_plan(cap: Pooled, now: int) -> None:
    open_plan(cap.nodes, now)
    open_plan(cap.counts, now)


@inner
def _advance_plan(cap: Pooled, now: int) -> None:
    advance_plan(cap.nodes, now)
    advance_plan(cap.counts, now)


@inner
def _earliest_fit(cap: Pooled, job: int, at: int, length: int) -> int:
    while True:  # each turn is later, and all ends at last
        on_nodes = earliest_fit(cap.nodes, job, at, length)
        at = earliest_fit(cap.counts, job, on_nodes, length)
        if at == on_nodes:
            return at


@inner
def _fits_plan(cap: Pooled, job: int, at: int, length: int) -> bool:
    return fits_plan(cap.counts, job, at, length) and fits_plan(cap.nodes, job, at, length)


@inner
def _fits_again(cap: Pooled, job: int, at: int, length: int) -> bool:
    return fits_again(cap.counts, job, at, length) and fits_again(cap.nodes, job, at, length)


@inner
def _reserve(cap: Pooled, job: int, at: int, length: int) -> None:
    reserve(cap.nodes, job, at, length)
    reserve(cap.counts, job, at, length)


@inner
def _reserve_again(cap: Pooled, job: int, at: int, length: int) -> None:
    reserve_again(cap.nodes, job, at, length)
    reserve(cap.counts, job, at, length)


@inner
def _unreserve(cap: Pooled, job: int, at: int, length: int) -> None:
    unreserve(cap.nodes, job, at, length)
    unreserve(cap.counts, job, at, length)


@inner
def _keep_place(cap: Pooled, job: int) -> None:
    keep_place(cap.nodes, job)


@inner
def _back_to_kept(cap: Pooled, job: int) -> None:
    back_to_kept(cap.nodes, job)


@inner
def _due(cap: Pooled, job: int, now: int) -> None:
    due(cap.nodes, job, now)


@inner
def _shaken(cap: Pooled) -> bool:
    return shaken(cap.nodes)


@inner
def _remember_plan(cap: Pooled, memory: Ints) -> None:
    remember_plan(cap.nodes, memory)
    remember_plan(cap.counts, memory[len(cap.nodes.plan) :])


@inner
def _recall_plan(cap: Pooled, memory: Ints) -> None:
    recall_plan(cap.nodes, memory)
    recall_plan(cap.counts, memory[len(cap.nodes.plan) :])


@inner
def _shadow(cap: Pooled, job: int, now: int) -> int:
    return shadow(cap.nodes, job, now)


@inner
def _beside(cap: Pooled, job: int, end: int, at: int) -> bool:
    return beside(cap.nodes, job, end, at)


@inner
def _spare_beside(cap: Pooled) -> int:
    return spare_beside(cap.nodes)


@inner
def _take_beside(cap: Pooled, job: int) -> None:
    take_beside(cap.nodes, job)


@inner
def _names_nodes(cap: Pooled) -> bool:
    return True


@inner
def _next_room(cap: Pooled, job: int, at: int) -> int:
    return _NONE


@inner
def _next_lack(cap: Pooled, job: int, at: int) -> int:
    return _NEVER


@inner
def _next_event(cap: Pooled) -> int:
    return next_event(cap.nodes)


@inner
def _happen(cap: Pooled, now: int) -> None:
    happen(cap.nodes, now)


@inner
def _ahead(cap: Pooled) -> bool:
    return True


@inner
def _room(cap: Pooled, running: int, jobs: int) -> bool:
    return room(cap.nodes, running, jobs) and room(cap.counts, running, jobs)


answers(
    Pooled,
    fits_now=_fits_now,
    alike=_alike,
    spare=_spare,
    start=_start,
    release=_release,
    prolong=_prolong,
    shadow=_shadow,
    beside=_beside,
    spare_beside=_spare_beside,
    take_beside=_take_beside,
    open_plan=_open_plan,
    advance_plan=_advance_plan,
    earliest_fit=_earliest_fit,
    fits_plan=_fits_plan,
    fits_again=_fits_again,
    next_room=_next_room,
    next_lack=_next_lack,
    reserve=_reserve,
    reserve_again=_reserve_again,
    unreserve=_unreserve,
    keep_place=_keep_place,
    back_to_kept=_back_to_kept,
    due=_due,
    shaken=_shaken,
    remember_plan=_remember_plan,
    recall_plan=_recall_plan,
    names_nodes=_names_nodes,
    next_event=_next_event,
    happen=_happen,
    ahead=_ahead,
    room=_room,
)
