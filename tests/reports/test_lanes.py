"""Lanes against their definition: no two jobs on one lane at once, and as many lanes as the size."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.requests import Placement, requests_of
from dovetail.model.schedule import Schedule
from dovetail.reports.lanes import Rectangles, lay_on_nodes, lay_out
from tests.metrics.schedules import feasible, schedule_of
from tests.reports.nodes import MIXED, asking, placed, random_jobs

MANY = 10**9


def laid(schedule: Schedule, most: int = MANY) -> Rectangles | None:
    return lay_out(schedule.start, schedule.end, schedule.workload.size, schedule.cluster.processors, most)


def lanes_of(schedule: Schedule) -> list[list[int]]:
    """The lanes of each job, one by one."""
    found = laid(schedule)
    assert found is not None
    lanes: list[list[int]] = [[] for _ in range(len(schedule.workload))]
    for job, lane, count in zip(found.job, found.lane, found.lanes, strict=True):
        lanes[job] += range(lane, lane + count)
    return lanes


@pytest.mark.slow
@given(feasible(most=25))
@settings(max_examples=300, deadline=None)
def test_every_job_has_lanes_of_its_own(schedule: Schedule) -> None:
    used: set[tuple[int, int]] = set()
    for job, lanes in enumerate(lanes_of(schedule)):
        assert len(lanes) == schedule.workload.size[job]
        cells = {(lane, at) for lane in lanes for at in range(schedule.start[job], schedule.end[job])}
        assert len(cells) == len(lanes) * schedule.workload.runtime[job]
        assert not cells & used
        assert all(0 <= lane < schedule.cluster.processors for lane in lanes)
        used |= cells


@given(feasible(most=25))
@settings(max_examples=200, deadline=None)
def test_a_job_is_split_only_where_no_run_holds_it(schedule: Schedule) -> None:
    """And a job in one piece stands as low as it can. Slowly: which lanes were free is counted lane by lane."""
    lanes = lanes_of(schedule)
    size, start, end = schedule.workload.size, schedule.start, schedule.end
    order = sorted(range(len(size)), key=lambda job: (start[job], job))
    for place, job in enumerate(order):
        before = [other for other in order[:place] if end[other] > start[job]]
        busy = {lane for other in before for lane in lanes[other]}
        fits = [
            low
            for low in range(schedule.cluster.processors - int(size[job]) + 1)
            if not busy & set(range(low, low + int(size[job])))
        ]
        if fits:
            assert lanes[job] == list(range(fits[0], fits[0] + int(size[job])))


def test_a_case_by_hand() -> None:
    # Of 6 lanes, the first three jobs take two each. At 20 the first one ends, and the next job gets its lanes in the
    # same second, and one of those that were free since 10. At 25 the last job gets the lowest two.
    schedule = schedule_of([(0, 0, 2, 20), (0, 0, 2, 10), (0, 0, 2, 40), (0, 20, 3, 5), (0, 25, 2, 5)])
    assert lanes_of(schedule) == [[0, 1], [2, 3], [4, 5], [0, 1, 2], [0, 1]]
    # Here lanes 2 and 3 stay in use: a job of 4 is split around them.
    split = schedule_of([(0, 0, 2, 10), (0, 0, 2, 40), (0, 0, 2, 10), (0, 20, 4, 5)])
    assert sorted(lanes_of(split)[3]) == [0, 1, 4, 5]
    found = laid(split)
    assert found is not None
    assert found.job.tolist() == [0, 1, 2, 3, 3]


def test_a_split_takes_the_fewest_runs() -> None:
    # Jobs of 1, 1 and 3 end beside two that stay: runs of 1, 1 and 3 are free (lanes 0, 2, 4 to 6). 4 lanes need two.
    rows = [(0, 0, 1, 5), (0, 0, 1, 50), (0, 0, 1, 5), (0, 0, 1, 50), (0, 0, 3, 5), (0, 10, 4, 5)]
    schedule = schedule_of(rows, processors=7)
    found = laid(schedule)
    assert found is not None
    mine = found.job == 5
    assert sorted(zip(found.lane[mine].tolist(), found.lanes[mine].tolist(), strict=True)) == [(0, 1), (4, 3)]


def test_too_many_rectangles_are_none() -> None:
    schedule = schedule_of([(0, 0, 2, 10), (0, 0, 2, 40), (0, 0, 2, 10), (0, 20, 4, 5)])
    assert laid(schedule, most=5) is not None
    assert laid(schedule, most=4) is None


def test_a_schedule_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match="a job of 4 processors started while only 3 were free"):
        laid(schedule_of([(0, 0, 3, 10), (0, 5, 4, 10)]))


def test_nothing_to_lay_out() -> None:
    none = np.empty(0, np.int64)
    found = lay_out(none, none, none, 4, MANY)
    assert found is not None
    assert len(found.job) == 0


# Nodes.

ODD = by_node(
    ("cores", "memory_gb", "gpus"),
    (NodeKind("a", 3, (4, 16, 1)), NodeKind("none", 2, (0, 16, 1)), NodeKind("b", 2, (6, 64, 0))),
)
"""Two nodes without cores between others: they are rows on which nothing is drawn."""


@pytest.mark.parametrize(("cluster", "jobs"), [(MIXED, 400), (ODD, 150)])
def test_every_job_is_drawn_on_its_own_nodes(cluster: Cluster, jobs: int) -> None:
    """Core by core and start by start: nobody is drawn on a core of another, and each has what it took of its nodes."""
    work = random_jobs(jobs, cluster, 5)
    if cluster is ODD:
        columns = {
            name: np.minimum(values, 2) if name.startswith("unit") else values for name, values in work.columns.items()
        }
        shrunk = {"unit_cores": np.minimum(columns["unit_cores"], 3), "unit_gpus": np.zeros(jobs, np.int64)}
        work = replace(work, columns={**columns, **shrunk})
    schedule = placed(work, cluster)
    assert schedule.placement is not None
    found = lay_on_nodes(schedule, np.arange(jobs), MANY)
    assert found is not None
    asked = requests_of(schedule.workload, cluster)
    cores = [cluster.kinds[kind].capacity[0] for kind in cluster.kind_of]
    node_of = [node for node, count in enumerate(cores) for _ in range(count)]
    lanes: list[list[int]] = [[] for _ in range(jobs)]
    for job, lane, count in zip(found.job.tolist(), found.lane.tolist(), found.lanes.tolist(), strict=True):
        lanes[job] += range(lane, lane + count)
        assert cluster.kind_of[node_of[lane]] == cluster.kind_of[node_of[lane + count - 1]]
    for job in range(jobs):
        had: Counter[int] = Counter()
        for node in schedule.placement.of(job).tolist():
            had[node] += cores[node] if asked.exclusive[job] else int(asked.need[job, 0])
        assert Counter(node_of[lane] for lane in lanes[job]) == +had
        beside = np.flatnonzero((schedule.start <= schedule.start[job]) & (schedule.end > schedule.start[job]))
        taken = Counter(lane for other in beside.tolist() for lane in lanes[other])
        assert max(taken.values(), default=1) == 1


def test_whole_nodes_side_by_side_are_one_rectangle() -> None:
    # Four units that fill nodes 0 to 2 and 5 (3 and 4 have no cores), then two units of 2 cores on node 0.
    columns = {"submit": [0, 9], "runtime": [5, 5], "units": [4, 2], "unit_cores": [4, 2], "exclusive": [1, 0]}
    schedule = placed(asking(columns, ODD), ODD)
    assert schedule.placement is not None
    assert schedule.placement.node.tolist() == [0, 1, 2, 5, 0, 0]
    found = lay_on_nodes(schedule, np.arange(2), MANY)
    assert found is not None
    assert (found.job.tolist(), found.lane.tolist(), found.lanes.tolist()) == ([0, 0, 1], [0, 12, 0], [12, 6, 4])
    assert lay_on_nodes(schedule, np.arange(2), 2) is None
    wrong = replace(
        schedule, placement=Placement(schedule.placement.first, np.array([0, 1, 2, 2, 0, 0]), np.empty(0, np.int64))
    )
    found = lay_on_nodes(wrong, np.arange(1), MANY)  # an exclusive job twice on a node has it once
    assert found is not None
    assert found.lanes.tolist() == [12]


def test_no_rectangle_lies_on_two_kinds() -> None:
    columns = {"submit": [0], "runtime": [5], "units": [40], "unit_cores": [1], "exclusive": [1]}
    found = lay_on_nodes(placed(asking(columns, MIXED), MIXED), np.arange(1), MANY)
    assert found is not None
    assert (found.lane.tolist(), found.lanes.tolist()) == ([0, 32 * 16], [32 * 16, 8 * 32])


def test_a_placement_that_cannot_be_is_refused() -> None:
    columns = {"submit": [0, 3], "runtime": [5, 5], "units": [1, 1], "unit_cores": [3, 2]}
    schedule = placed(asking(columns, ODD), ODD)
    first, none = np.array([0, 1, 2]), np.empty(0, np.int64)
    both = replace(schedule, placement=Placement(first, np.array([1, 1]), none))
    with pytest.raises(ValueError, match="a job took 2 cores of node 1 while only 1 were free"):
        lay_on_nodes(both, np.arange(2), MANY)
    for node in (-1, 7):
        lost = replace(schedule, placement=Placement(first, np.array([1, node]), none))
        with pytest.raises(ValueError, match="on none of the 7 nodes"):
            lay_on_nodes(lost, np.arange(2), MANY)
