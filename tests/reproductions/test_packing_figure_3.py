"""Wait areas against slow code."""

from __future__ import annotations

import random

import numpy as np
import pytest

from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from reproductions.packing_figure_3.page import measure


def schedule(jobs: list[tuple[int, int, int]], policy: str = "list-reg") -> Schedule:
    """Jobs of some size, run time and wait."""
    size, runtime, wait = (np.array(column) for column in zip(*jobs, strict=True))
    zero, none = np.zeros(len(jobs), np.int64), np.full(len(jobs), -1, np.int64)
    columns = {"id": np.arange(len(jobs)), "submit": zero, "size": size, "runtime": runtime, "limit": runtime}
    workload = Workload("made", columns, 10_000, Provenance("by hand"))
    return Schedule(workload, Cluster(10_000), policy, "runtime", wait, zero, none, none, passes=0)


def test_wait_areas_are_sums_over_smaller_jobs() -> None:
    draw = random.Random(3)
    jobs = [(draw.randint(1, 4), draw.randint(1, 5), draw.randint(0, 9)) for _ in range(200)]
    found = measure(schedule(jobs), schedule)  # type: ignore[arg-type]
    whole = sum(r * d for r, d, _ in jobs)
    for x, y in found["by size"]:
        assert y == sum(q * r for r, d, q in jobs if r * d <= x)
    for x, y in found["by area"]:
        assert y == sum(q * r * d for r, d, q in jobs if r * d <= x)
    for x, y in found["share of areas"]:
        assert y == pytest.approx(100 * sum(r * d for r, d, _ in jobs if r * d <= x) / whole, rel=1e-5)
    assert found["total_by_area"] == sum(q * r * d for r, d, q in jobs)
    small = sorted(r * d for r, d, _ in jobs)[:160]
    assert found["small_area"] == sum(small) / whole
    assert "share of jobs" not in measure(schedule(jobs, "easy"), schedule)  # type: ignore[arg-type]


def test_the_gap_of_a_curve_is_where_the_shares_differ_most() -> None:
    # Areas 1, 1 and 2; waits 4, 0 and 2 at size 1: shares of Q r are 4/6 and 1, those of the area 1/2 and 1. Repeated
    # so that each part of the jobs has some.
    found = measure(schedule([(1, 1, 4), (1, 1, 0), (1, 2, 2)] * 10), schedule)  # type: ignore[arg-type]
    assert found["gap_by_size"] == pytest.approx(4 / 6 - 1 / 2)
    assert found["gap_by_area"] == pytest.approx(0)
