"""GPUs that cannot be allocated: a cluster that fills up, counted slowly, and claims about it."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from dovetail.errors import SettingError
from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.machine import PLACES
from dovetail.model.requests import requests_of, typical
from dovetail.model.workload import Provenance, Workload
from reproductions.alibaba_gpus.filling import POINTS, UPTO, drawn, filled
from reproductions.alibaba_gpus.page import quarter
from reproductions.values import Value, Values

CLUSTER = by_node(
    ("cores", "memory_mb", "gpus"),
    (NodeKind("few", 6, (16, 32, 2), ()), NodeKind("many", 3, (32, 64, 8), ()), NodeKind("none", 2, (16, 32, 0), ())),
    shared="gpus",
)
"""36 GPUs."""
ASKED = ((2, 4, 1, 500), (4, 4, 1, 1000), (3, 8, 1, 810), (8, 8, 0, 0), (1, 2, 1, 190), (16, 16, 8, 1000))
"""Cores, memory, GPUs, share."""


def pods(count: int = 60) -> Workload:
    draw = random.Random(5)
    rows = [draw.choice(ASKED) for _ in range(count)]
    columns = dict(
        zip(("unit_cores", "unit_memory_mb", "unit_gpus", "gpu_share"), zip(*rows, strict=True), strict=True)
    )
    columns |= {"size": columns["unit_cores"], "id": tuple(range(1, count + 1)), "submit": tuple(range(count))}
    columns |= dict.fromkeys(("runtime", "limit", "units"), (1,) * count)
    return Workload("pods", {name: np.array(v, np.int64) for name, v in columns.items()}, 0, Provenance("made here"))


def test_pods_are_drawn_until_they_ask_for_enough() -> None:
    listed = pods()
    known = {tuple(row) for row in requests_of(listed, CLUSTER).need.tolist()}
    for seed in range(5):
        one = drawn(listed, CLUSTER, seed)
        asked = [n * share for n, share in zip(one["unit_gpus"].tolist(), one["gpu_share"].tolist(), strict=True)]
        assert 36_000 * 1.3 - 8000 < sum(asked) <= 36_000 * 1.3
        assert {tuple(row) for row in requests_of(one, CLUSTER).need.tolist()} <= known
        assert one["gpu_share"].tolist() == drawn(listed, CLUSTER, seed)["gpu_share"].tolist()
    assert drawn(listed, CLUSTER, 1)["gpu_share"].tolist() != drawn(listed, CLUSTER, 2)["gpu_share"].tolist()


def test_who_asks_for_nothing_fills_nothing() -> None:
    none = {"unit_gpus": np.zeros(60, np.int64)}
    with pytest.raises(SettingError, match="asks for no gpus"):
        drawn(replace(pods(), columns={**pods().columns, **none}), CLUSTER, 0)
    with pytest.raises(SettingError, match="node by node"):
        filled(pods(), replace(CLUSTER, shared=""), "best")


@pytest.mark.parametrize("place", PLACES)
def test_what_is_free_and_lost_is_counted_pod_by_pod(place: str) -> None:
    listed = pods()
    cluster = replace(CLUSTER, typical=typical(requests_of(listed, CLUSTER)))
    made = filled(drawn(listed, cluster, 3), cluster, place)
    assert made.capacity == 36
    for percent in (50, 100, UPTO):
        came = free = lost = several = 0
        for asked, stays in zip(made.asked.tolist(), made.stays.tolist(), strict=True):
            came += asked
            if came > 360 * percent:
                break
            free += stays * asked
            lost += (1 - stays) * asked
            several += (1 - stays) * asked * (asked > 1000)
        assert made.free(percent) == 36 - free / 1000
        assert (made.lost(percent), made.lost(percent, 1)) == (lost / 1000, several / 1000)
    first = made.stays.tolist().index(0)
    assert made.first_lost == pytest.approx(sum(made.asked[: first + 1].tolist()) / 360)
    assert 0 <= made.pieces <= made.free(UPTO)
    assert round(1000 * (made.free(UPTO) - made.pieces)) % 1000 == 0  # whole devices
    assert all(0 <= f <= made.free(p) + 1e-9 for f, p in zip(made.fragments.tolist(), POINTS, strict=True))


def test_typical_jobs_by_number_and_by_what_they_ask_for() -> None:
    requests = requests_of(pods(), CLUSTER)
    rows = list(zip(requests.need.tolist(), requests.share.tolist(), strict=True))
    by_number, by_gpus = typical(requests), typical(requests, weigh=2)
    total = sum(need[2] * share for need, share in rows)
    for one in by_number:
        assert one.part == rows.count((list(one.need), one.share)) / len(rows)
    for one in by_gpus:
        assert one.part == rows.count((list(one.need), one.share)) * one.need[2] * one.share / total
    assert {one.need for one in by_number} - {one.need for one in by_gpus} == {(8, 8, 0)}
    assert [one.part for one in by_gpus] == sorted((one.part for one in by_gpus), reverse=True)
    assert sum(one.part for one in typical(requests, 2, 2)) == pytest.approx(1)


@pytest.mark.parametrize(("low", "high", "verdict"), [(-30, -25, "yes"), (-30, -20, "in part"), (-20, 0, "no")])
def test_a_claim_holds_if_the_whole_interval_does(low: float, high: float, verdict: str) -> None:
    row = {"change": (low + high) / 2, "change low": low, "change high": high, "free": 300.4, "base": 400.0}
    values = Values({("end", "gradient", key): Value(one, "", "run") for key, one in row.items()}, {})
    judged = quarter(values, "end", "gradient")
    assert judged.holds == verdict
    assert judged.ours.endswith(": 300 against 400 GPUs")
