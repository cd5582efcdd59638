"""Outages on a real log: nothing runs there, no promise crosses one, and a reserved window is for its jobs alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.io.clusters import cluster_named
from dovetail.io.read import read_workload
from dovetail.model.cluster import Outage
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.referee import check_plan, check_schedule
from dovetail.workloads.filters import clean
from tests.conftest import TRACES, needs_traces

HOUR_S = 3600
TENTH = (0, 1, 2, 40, 50, 63)
"""Of the 64 nodes, of all kinds."""


@pytest.fixture(scope="module")
def days() -> Workload:
    return clean(read_workload(TRACES / "heterogeneous" / "eurora_jobs_merged.csv.gz"), ["standard"])


def on(made: Schedule, nodes: tuple[int, ...], begin: int, end: int) -> Ints:
    """The jobs that run on some of these nodes at some time from begin to end."""
    assert made.placement is not None
    job = np.repeat(np.arange(len(made.start)), np.diff(made.placement.first))
    there = np.isin(made.placement.node, nodes) & (made.start[job] < end) & (made.end[job] > begin)
    return np.unique(job[there])


@needs_traces
@pytest.mark.parametrize("known", [0, 46 * HOUR_S])
@pytest.mark.parametrize("name", ["easy", "conservative"])
def test_a_tenth_of_the_nodes_for_half_a_day(days: Workload, name: str, known: int) -> None:
    begin, end = 48 * HOUR_S, 60 * HOUR_S
    cluster = replace(cluster_named("eurora"), outages=(Outage(TENTH, begin, end, known=known),))
    made = replay(days, name, cluster=cluster)
    assert check_schedule(made) == []
    inside = on(made, TENTH, begin, end)
    assert (made.start[inside] < known).all()  # when nobody knew
    assert len(inside) == 0 or known > 0
    before = replay(days, name, cluster=cluster_named("eurora"))
    assert len(on(before, TENTH, begin, end)) > 50
    assert np.array_equal(made.start[made.start < known - 1], before.start[made.start < known - 1]) or known == 0


@needs_traces
def test_no_promise_crosses_it(days: Workload) -> None:
    """In the hour before, each plan of conservative backfilling names the nodes of all who wait."""
    begin, end = 66 * HOUR_S, 72 * HOUR_S
    cluster = replace(cluster_named("eurora"), outages=(Outage(TENTH, begin, end),))
    seen = 0

    def see(state: State, plan: Plan) -> None:
        nonlocal seen
        if state.now < begin - HOUR_S:
            return
        assert check_plan(state, plan) == []
        for job, at in plan.promised.items():
            crosses = at < end and at + int(state.estimate[job]) > begin
            assert not (crosses and set(plan.nodes[job]) & set(TENTH))
            seen += crosses

    stepper = Stepper(days, cluster, policy("conservative"), np.array(days.limit), see=see)
    stepper.advance(begin)
    assert seen > 100


@needs_traces
def test_a_window_for_named_jobs(days: Workload) -> None:
    """All nodes are kept for jobs of the queue `debug` for 6 hours."""
    begin, end = 48 * HOUR_S, 54 * HOUR_S
    queues = days.names["queue"]
    named = np.where(days["queue"] == queues.index("debug"), 0, -1)
    jobs = replace(
        days, columns={**days.columns, "reservation": named}, names={**days.names, "reservation": ("maintenance",)}
    )
    cluster = cluster_named("eurora")
    everything = tuple(range(cluster.nodes))
    kept = replace(cluster, outages=(Outage(everything, begin, end, "maintenance"),))
    made = replay(jobs, "easy", cluster=kept)
    assert check_schedule(made) == []
    inside = on(made, everything, begin, end)
    assert (named[inside] == 0).all()
    assert len(inside) > 20
    assert (named[on(replay(jobs, "easy", cluster=cluster), everything, begin, end)] < 0).any()
