"""Small schedules for the tests of metrics: made by hand, or drawn at random and always feasible."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from hypothesis import strategies as st

from dovetail.arrays import Ints
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload

PROCESSORS = 6

Row = tuple[int, int, int, int]
"""A job: arrival, start (-1: never), size, run time."""


def from_columns(arrive: Ints, start: Ints, size: Ints, runtime: Ints, processors: int) -> Schedule:
    columns = {
        "id": np.arange(len(arrive)),
        "submit": arrive,
        "size": size,
        "runtime": runtime,
        "limit": runtime,
    }
    workload = Workload("test", columns, processors, Provenance("test"))
    none = np.full(len(arrive), -1, np.int64)
    return Schedule(workload, Cluster(processors), "test", "limit", start, arrive, none, none, 0)


def schedule_of(rows: Sequence[Row], processors: int = PROCESSORS) -> Schedule:
    table = np.array(sorted(rows, key=lambda row: row[0]), np.int64).reshape(-1, 4)
    return from_columns(table[:, 0], table[:, 1], table[:, 2], table[:, 3], processors)


def rows_of(schedule: Schedule) -> list[Row]:
    work = schedule.workload
    columns = (schedule.arrive, schedule.start, work.size, work.runtime)
    return [tuple(map(int, row)) for row in zip(*columns, strict=True)]  # type: ignore[misc]


def moved(schedule: Schedule, start: Ints) -> Schedule:
    """The same jobs with other starts."""
    work = schedule.workload
    return from_columns(schedule.arrive, start, work.size, work.runtime, schedule.cluster.processors)


_JOB = st.tuples(
    st.integers(0, 5),  # seconds since the arrival before
    st.integers(1, PROCESSORS),  # size
    st.integers(1, 9),  # run time
    st.integers(0, 4),  # seconds that the job is held back on purpose
)


@st.composite
def feasible(draw: st.DrawFn, least: int = 1, most: int = 10) -> Schedule:
    """Jobs placed one after another at the first second in which they fit, after a pause."""
    busy = [0] * 300
    now, rows = 100, []
    for gap, size, runtime, pause in draw(st.lists(_JOB, min_size=least, max_size=most)):
        now += gap
        start = now + pause
        while any(busy[t - 100] + size > PROCESSORS for t in range(start, start + runtime)):
            start += 1
        for t in range(start, start + runtime):
            busy[t - 100] += size
        rows.append((now, start, size, runtime))
    return schedule_of(rows)
