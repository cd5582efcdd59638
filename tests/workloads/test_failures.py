"""Drawn failures: exponential times, each node on its own; and what a replay makes of them."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from dovetail.api import generate
from dovetail.energy.site import Site
from dovetail.engine.fair_starts import fair_starts
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.io.clusters import cluster_named
from dovetail.io.outages import read_outages
from dovetail.metrics import summarize
from dovetail.model.cluster import Cluster, NodeKind, Outage, by_node
from dovetail.model.workload import Workload
from dovetail.referee import check_schedule
from dovetail.workloads.failures import failures
from tests.command import run


def test_times_are_as_wanted() -> None:
    found = failures(400, 10**7, 10**5, 10**4, seed=3)
    assert found == failures(400, 10**7, 10**5, 10**4, seed=3) != failures(400, 10**7, 10**5, 10**4, seed=4)
    assert list(found) == sorted(found, key=lambda one: one.begin)
    repairs = np.array([one.end - one.begin for one in found])
    of_node = [[one for one in found if one.nodes == (node,)] for node in range(400)]
    works = np.array([b.begin - a.end for some in of_node for a, b in pairwise(some)])
    assert len(found) == pytest.approx(400 * 10**7 / 1.1e5, rel=0.03)
    assert (repairs.mean(), repairs.std()) == (pytest.approx(1e4, rel=0.03), pytest.approx(1e4, rel=0.03))
    assert (works.mean(), works.std()) == (pytest.approx(1e5, rel=0.03), pytest.approx(1e5, rel=0.06))
    assert works.min() > 0


@pytest.mark.parametrize("wrong", [(0, 9, 9, 9), (9, 0, 9, 9), (9, 9, 0, 9), (9, 9, 9, 0), (10**6, 10**9, 1, 1)])
def test_what_is_refused(wrong: tuple[int, int, int, int]) -> None:
    with pytest.raises(SettingError, match="failures"):
        failures(*wrong)


def test_by_hand() -> None:
    """Two nodes of a core. Job 0 runs from 0 on node 0, which fails at 5 and is back at 30: it runs again from 10 on,
    when job 1 has left node 1."""
    cluster = by_node(("cores",), (NodeKind("one", 2, (1,)),))
    cluster = replace(cluster, outages=(Outage((0,), 5, 30, fails=True),))
    rows = {"id": [1, 2], "submit": [0, 0], "size": [1, 1], "runtime": [8, 10], "limit": [9, 10]}
    workload = replace(generate(2, 2), columns={name: np.array(values) for name, values in rows.items()})
    for by_event in (False, True):
        made = replay(workload, "easy", cluster=cluster, event_by_event=by_event)
        assert made.start.tolist() == [10, 0]
        assert made.arrive.tolist() == [0, 0]
        assert [(one.job, one.start, one.end, one.nodes.tolist()) for one in made.lost] == [(0, 0, 5, [0])]
        assert check_schedule(made) == []
        found = summarize(made)
        assert (found["lost_runs"], found["lost_processor_s"], found["mean_wait_s"]) == (1, 5, 5.0)
        (run_lost,) = made.lost
        for wrong in (
            replace(run_lost, end=4), replace(run_lost, start=6), replace(run_lost, start=-3),
            replace(run_lost, end=12), replace(run_lost, nodes=np.array([1])),
        ):  # fmt: skip
            assert "lost run" in {one.rule for one in check_schedule(replace(made, lost=(wrong,)))}
        through = replace(made, lost=(), start=np.array([0, 0]))
        assert made.placement is not None
        through.placement.node[:] = [0, 1]  # type: ignore[union-attr]
        assert [(one.rule, one.job) for one in check_schedule(through)] == [("lost run", 0)]


def test_on_the_command_line(tmp_path: Path) -> None:
    path, log = tmp_path / "out.csv", tmp_path / "log.swf"
    assert run("workload", "generate", log, "--jobs", "300", "--processors", "64", "--load", "0.9").returncode == 0
    made = run("workload", "failures", path, "--cluster", "eurora", "--span", "9d", "--between", "4d")
    assert "failures" in made.stdout
    assert all(one.fails for one in read_outages(path, cluster_named("eurora").nodes))
    told = run("replay", log, "--cluster", "eurora", "--outages", path, "--json")
    assert '"lost_runs": ' in told.stdout, told.stderr
    assert run("workload", "failures", path, "--cluster", "eurora", "--span", "soon").returncode == 2


def one_node(*outages: Outage, **columns: list[int]) -> tuple[Workload, Cluster]:
    cluster = replace(by_node(("cores",), (NodeKind("one", 1, (1,)),)), outages=outages)
    n = len(columns["submit"])
    rows = {"id": list(range(1, n + 1)), "size": [1] * n, "runtime": columns["limit"], **columns}
    return replace(generate(n, 1), columns={name: np.array(values) for name, values in rows.items()}), cluster


@pytest.mark.parametrize("by_event", [False, True])
@pytest.mark.parametrize("name", ["dbf", "plan-deadline"])
def test_a_deadline_stays_when_a_run_is_lost(name: str, by_event: bool) -> None:
    """It runs from 0 on, fails at 5, and cannot end by 12 any more: it is answered anew, and refused."""
    workload, cluster = one_node(Outage((0,), 5, 6, fails=True), submit=[0], limit=[10], deadline_s=[12])
    made = replay(workload, name, cluster=cluster, event_by_event=by_event)
    assert (made.start.tolist(), made.accepted.tolist()) == ([6], [0])
    assert check_schedule(made, promises=True) == []
    workload, cluster = one_node(Outage((0,), 5, 6, fails=True), submit=[0], limit=[10], deadline_s=[16])
    assert replay(workload, name, cluster=cluster, event_by_event=by_event).accepted.tolist() == [1]


def test_who_knows_the_future_loses_runs_too() -> None:
    workload, cluster = one_node(Outage((0,), 5, 6, fails=True), submit=[0, 1, 2], limit=[8, 8, 5])
    whole, stepped = (replay(workload, "offline-af", cluster=cluster, event_by_event=one) for one in (False, True))
    assert whole.start.tolist() == stepped.start.tolist()
    assert whole.lost
    for wrong in (replace(whole.lost[0], nodes=np.array([9])), replace(whole.lost[0], job=9)):
        assert "lost run" in {one.rule for one in check_schedule(replace(whole, lost=(wrong,)))}


def test_what_does_not_know_failures_is_refused() -> None:
    workload, cluster = one_node(Outage((0,), 5, 6, fails=True), submit=[0], limit=[10])
    with pytest.raises(SettingError, match="where nodes fail"):
        fair_starts(workload, "easy", cluster, np.array(workload.limit))
    with pytest.raises(SettingError, match="may run into an outage"):
        replay(workload, "easy", cluster=cluster, charge_decisions=1)
    with pytest.raises(SettingError, match="what runs drew"):
        summarize(replay(workload, "easy", cluster=cluster), Site("s", 1))
    with pytest.raises(ValueError, match="kept for nobody"):
        Outage((0,), 5, 6, "ours", fails=True)
    for wrong in ({"begin": 6.5}, {"nodes": (0.5,)}, {"known": None}, {"only": 5}, {"fails": "no"}, {"end": 10**30}):
        with pytest.raises(ValueError, match="an outage"):
            replace(Outage((0,), 5, 6), **wrong)
