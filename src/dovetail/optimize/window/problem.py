"""One pass as arrays: what an optimizer is asked, what it answers, and the slow, obvious way to check both."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dovetail.arrays import NEVER, Floats, Ints

"""The latest start of a job that has none."""

Status = Literal["optimal", "feasible", "infeasible", "unknown"]
"""Proved best; good, not proved; proved that no schedule meets the latest starts; none found, none excluded."""


@dataclass(frozen=True)
class Problem:
    """The planning window of one pass.

    From `times[i]` on, `free[i]` processors are free beside what runs, to its expected end; the last value holds
    for ever. `times[0]` is `now`. Each job has an arrival, a size and an estimate of at least 1 s, may start from
    `earliest` (default: now, or its arrival if that is still to come) up to and including `latest` (default: any
    time), and counts with `weight` where an objective asks for weights (default 1). A job must fit into what is
    free in the end: leave out jobs that can never run.
    """

    now: int
    processors: int
    times: Ints
    free: Ints
    arrive: Ints
    size: Ints
    estimate: Ints
    earliest: Ints = None  # type: ignore[assignment]  # filled in below: an array on every finished object
    latest: Ints = None  # type: ignore[assignment]
    weight: Floats = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        n = len(self.arrive)
        if self.earliest is None:
            object.__setattr__(self, "earliest", np.maximum(np.asarray(self.arrive, np.int64), self.now))
        if self.latest is None:
            object.__setattr__(self, "latest", np.full(n, NEVER))
        if self.weight is None:
            object.__setattr__(self, "weight", np.ones(n))
        for name in ("times", "free", "arrive", "size", "estimate", "earliest", "latest", "weight"):
            values = np.array(getattr(self, name), np.float64 if name == "weight" else np.int64)
            values.flags.writeable = False
            object.__setattr__(self, name, values)
            if name not in ("times", "free") and values.shape != (n,):
                raise ValueError(f"{n} jobs have an arrival, but {name} has the shape {values.shape}")
        self._check_steps()
        self._check_jobs()

    def _check_steps(self) -> None:
        if len(self.times) != len(self.free) or not len(self.times) or self.times[0] != self.now:
            raise ValueError("free capacity is one value per instant, and the first instant is now")
        if bool(np.any(np.diff(self.times) <= 0)):
            raise ValueError("the instants of the free capacity must rise")
        if bool(np.any((self.free < 0) | (self.free > self.processors))):
            raise ValueError(f"free capacity is from 0 to the cluster's {self.processors} processors")

    def _check_jobs(self) -> None:
        rules = (
            (self.size < 1, "a size of less than 1"),
            (self.size > self.free[-1], f"a size above the {self.free[-1]} processors that are free in the end"),
            (self.estimate < 1, "an estimate of less than 1 s"),
            (self.earliest < np.maximum(self.arrive, self.now), "an earliest start before now or before its arrival"),
            (~(np.isfinite(self.weight) & (self.weight >= 0)), "a weight that is not a number of at least 0"),
        )
        for broken, rule in rules:
            if bool(np.any(broken)):
                raise ValueError(f"job {int(np.argmax(broken))} of the problem has {rule}")
        # Seconds, areas, and areas times seconds of one job, are added up in 64 bits.
        if not len(self):
            return
        seconds = int(self.estimate.sum()) + int(self.earliest.max()) - min(0, int(self.arrive.min()))
        if seconds >= 2**40:
            raise ValueError("instants and the sum of the estimates must stay below 2^40 s")
        if seconds * self.processors >= 2**63:
            raise ValueError("the sum of the estimates times all processors must stay below 2^63 processor seconds")

    def __len__(self) -> int:
        return len(self.arrive)

    @property
    def area(self) -> Ints:
        """Size times estimate: processor seconds of each job."""
        return self.size * self.estimate


@dataclass(frozen=True)
class Solution:
    """What a solver answers. It always exists: without a schedule, starts are -1 and the value is infinite.

    `bound`: no schedule has a lower value; nan where none is known.
    """

    starts: Ints
    value: float
    bound: float
    status: Status
    cpu_s: float

    @property
    def found(self) -> bool:
        """Whether there is a schedule."""
        return self.value < inf or self.status in ("optimal", "feasible")


def free_beside(now: int, processors: int, size: Iterable[int], end: Iterable[int]) -> tuple[Ints, Ints]:
    """The free capacity, as times and values, beside running jobs of these sizes and expected ends (after now)."""
    freed: dict[int, int] = {now: processors}
    for width, ends_at in zip(size, end, strict=True):
        if ends_at <= now:
            raise ValueError(f"a running job is expected to end at {ends_at}, which is not after now ({now})")
        freed[now] -= width
        freed[ends_at] = freed.get(ends_at, 0) + width
    times = sorted(freed)
    return np.array(times, np.int64), np.cumsum([freed[at] for at in times], dtype=np.int64)


def decode(problem: Problem, order: Iterable[int]) -> Ints:
    """List scheduling with all jobs reserved: each job of `order` in turn at its earliest fit; -1 for the others.

    Latest starts are not looked at: `check` says what is late. In the order of the starts of any schedule, no job
    is decoded later than it was there: what stands before it in the order ends no later than before, so its old
    place is still free.
    """
    times, free = problem.times.tolist(), problem.free.tolist()
    starts = np.full(len(problem), -1, np.int64)
    for job in order:
        size, length = int(problem.size[job]), int(problem.estimate[job])
        start = _earliest_fit(times, free, int(problem.earliest[job]), size, length)
        starts[job] = start
        for edge in (start, start + length):
            if edge not in times:
                at = next((i for i, instant in enumerate(times) if instant > edge), len(times))
                times.insert(at, edge)
                free.insert(at, free[at - 1])
        for i in range(times.index(start), times.index(start + length)):
            free[i] -= size
    return starts


def alone(problem: Problem) -> Ints:
    """The earliest fit of each job if there were no other: no schedule starts it before."""
    times, free = problem.times.tolist(), problem.free.tolist()
    jobs = zip(problem.earliest.tolist(), problem.size.tolist(), problem.estimate.tolist(), strict=True)
    return np.array([_earliest_fit(times, free, *job) for job in jobs], np.int64)


def _earliest_fit(times: Sequence[int], free: Sequence[int], earliest: int, size: int, length: int) -> int:
    """The first instant from which `size` processors are free for `length` seconds."""
    start = earliest
    for i, instant in enumerate(times):
        if instant >= start + length:
            break
        ends_at = times[i + 1] if i + 1 < len(times) else None
        if free[i] < size and (ends_at is None or ends_at > start):
            if ends_at is None:
                raise ValueError(f"{size} processors are never free")
            start = ends_at
    return start


def check(problem: Problem, starts: npt.NDArray[Any]) -> list[str]:
    """What is wrong with a schedule, in words; nothing if it obeys earliest and latest starts and the capacity."""
    if starts.shape != (len(problem),):
        return [f"there are {len(problem)} jobs, and starts of the shape {starts.shape}"]
    wrong = []
    for job, start in enumerate(starts.tolist()):
        if start < problem.earliest[job]:
            wrong.append(f"job {job} starts at {start}, before its earliest start {problem.earliest[job]}")
        if start > problem.latest[job]:
            wrong.append(f"job {job} starts at {start}, after its latest start {problem.latest[job]}")
    # What is used can only rise when a job starts, and what is free only fall at a step: nothing happens between.
    for instant in sorted({*starts.tolist(), *problem.times.tolist()}):
        if instant < problem.now:
            continue
        running = (starts <= instant) & (instant < starts + problem.estimate)
        used = int(problem.size[running].sum())
        free = int(problem.free[problem.times <= instant][-1])
        if used > free:
            wrong.append(f"at {instant} the jobs use {used} processors, and {free} are free")
    return wrong
