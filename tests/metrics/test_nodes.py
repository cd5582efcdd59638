"""Metrics of nodes: one schedule by hand, and random replays against a loop over seconds, nodes and units."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction
from math import isnan, nan

import numpy as np
import pytest

from dovetail import metrics
from dovetail.engine.replay import replay
from dovetail.metrics.nodes import of_nodes
from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.requests import Placement, requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.registry import policy
from tests.slow.node_cases import random_nodes_case

TWO = by_node(("cores", "gpus"), (NodeKind("gpu", 1, (4, 2)), NodeKind("plain", 1, (4, 0))), shared="gpus")


def by_hand() -> Schedule:
    """Job 1 has all cores and 300 of 2,000 parts of the first node for 10 s; job 2 waits 6 s for that node, and takes
    it whole for 5 s; job 3 has 2 cores of the other node for 20 s. Job 4 never starts."""
    columns = {
        "id": [1, 2, 3, 4],
        "submit": [0, 4, 5, 6],
        "size": [4, 1, 2, 1],
        "runtime": [10, 5, 20, 9],
        "limit": [10, 5, 20, 9],
        "units": [1, 1, 2, 1],
        "unit_cores": [4, 1, 1, 1],
        "unit_gpus": [1, 2, 0, 0],
        "gpu_share": [300, 1000, 1000, 1000],
        "exclusive": [0, 1, 0, 0],
    }
    jobs = Workload("hand", {name: np.array(values) for name, values in columns.items()}, 8, Provenance("by hand"))
    placement = Placement(np.array([0, 1, 2, 4, 5]), np.array([0, 0, 1, 1, -1]), np.array([1, 3, 0, 0, 0]))
    start, none = np.array([0, 10, 5, -1]), np.full(4, -1)
    return Schedule(jobs, TWO, "hand", "limit", start, jobs.submit, none, none, 9, placement=placement)


def test_by_hand() -> None:
    found = of_nodes(by_hand())
    assert found == {
        "utilization_cores": (4 * 10 + 4 * 5 + 2 * 20) / (8 * 25),
        "utilization_gpus": (300 * 10 + 2000 * 5) / (2000 * 25),
        # From 4 to 10 s, while job 2 waits, 1,700 parts are free and no core beside them.
        "stranded_gpus": 1700 / 2000,
    }
    assert list(found.items()) == [(key, value) for key, value in metrics.summarize(by_hand()).items() if key in found]


def test_a_node_without_cores_is_always_stranded() -> None:
    hand = by_hand()
    more = by_node(TWO.resources, (*TWO.kinds, NodeKind("bare", 2, (0, 3))), shared="gpus")
    found = of_nodes(replace(hand, cluster=more))
    assert found["stranded_gpus"] == (1700 + 6000) / 8000


def test_whole_nodes_without_waiting_strand_nothing() -> None:
    schedule = by_hand()
    at_once = Schedule(
        schedule.workload, TWO, "hand", "limit", schedule.start, np.maximum(schedule.start, 0), schedule.start,
        schedule.start, 9, placement=schedule.placement,
    )  # fmt: skip
    assert isnan(of_nodes(at_once)["stranded_gpus"])


def test_nobody_started_and_no_nodes() -> None:
    schedule = by_hand()
    never, nodes = np.full(4, -1), Placement(np.array([0, 1, 2, 4, 5]), np.full(5, -1), np.zeros(5, np.int64))
    none = Schedule(
        schedule.workload, TWO, "hand", "limit", never, schedule.arrive, never, never, 9, placement=nodes
    )  # fmt: skip
    assert all(isnan(value) for value in of_nodes(none).values())
    assert len(of_nodes(none)) == 3
    counted = Schedule(schedule.workload, TWO, "hand", "limit", schedule.start, schedule.arrive, never, never, 9)
    assert of_nodes(counted) == {}
    assert "utilization_gpus" not in metrics.summarize(counted)


def slowly(schedule: Schedule) -> dict[str, float]:
    """The same by looking at every node in every second."""
    cluster, asked = schedule.cluster, requests_of(schedule.workload, schedule.cluster)
    assert schedule.placement is not None
    whole = [kind.capacity for kind in cluster.kinds for _ in range(kind.count)]
    parts = [1000 if name == cluster.shared else 1 for name in cluster.resources]
    used = [Fraction(0)] * len(parts)
    stranded = [Fraction(0)] * len(parts)
    begin, end = int(schedule.arrive.min()), int(schedule.end.max())
    waited = 0
    for second in range(begin, end):
        free = [[have * part for have, part in zip(row, parts, strict=True)] for row in whole]
        for job in range(len(schedule.start)):
            if not schedule.start[job] <= second < schedule.end[job]:
                continue
            for unit, node in enumerate(schedule.placement.of(job).tolist()):
                for r in range(len(parts)):
                    if asked.exclusive[job]:
                        taken = whole[node][r] * parts[r]
                    elif parts[r] == 1000:
                        devices = int(schedule.placement.devices_of(job)[unit])
                        taken = devices.bit_count() * int(asked.share[job])
                    else:
                        taken = int(asked.need[job, r])
                    free[node][r] -= taken
                    used[r] += taken
        if any(a <= second < b for a, b in zip(schedule.arrive, schedule.start, strict=True)):
            waited += 1
            for row in free:
                for r in range(len(parts)):
                    stranded[r] += row[r] if row[0] == 0 else 0
    found = {}
    for name, values, seconds in (("utilization", used, end - begin), ("stranded", stranded, waited)):
        for r in range(name == "stranded", len(parts)):
            total = sum(row[r] for row in whole) * parts[r] * seconds
            found[f"{name}_{cluster.resources[r]}"] = float(values[r] / total) if total else nan
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", ["easy:place=first", "list-saf:place=scarce", "greedy-fcfs:place=worst"])
def test_random_replays_against_a_loop_over_seconds(name: str) -> None:
    strands = 0
    for seed in range(60):
        case = random_nodes_case(random.Random(seed))
        schedule = replay(case.workload, policy(name), cluster=case.cluster)
        found = of_nodes(schedule)
        wanted = slowly(schedule)
        assert list(found) == list(wanted)
        np.testing.assert_array_equal(list(found.values()), list(wanted.values()), err_msg=f"{name} {seed}")
        strands += any(key.startswith("stranded") and value > 0 for key, value in found.items())
    assert strands > 10  # else these cases say little
