"""What goes beside the replay on nodes: passes are timed and fair starts measured with the same placement; policies
that cannot run there are refused."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.fair_starts import fair_starts
from dovetail.engine.pass_times import timed_replay
from dovetail.engine.replay import made_ready, replay, warm
from dovetail.errors import SettingError
from dovetail.model.cluster import Cluster
from dovetail.model.requests import requests_of, typical
from dovetail.model.workload import Workload
from dovetail.policies.base import Policy
from dovetail.policies.registry import policy
from tests.engine.first_fits import FirstFits
from tests.slow.node_cases import random_nodes_case

PLACES = ("first", "best", "worst", "consolidate", "scarce", "gradient")


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_timed_passes_place_as_the_replay_does(place: str) -> None:
    chosen = policy(f"easy:place={place}")
    for seed in range(30):
        case = random_nodes_case(random.Random(seed))
        plain = replay(case.workload, chosen, cluster=case.cluster)
        timed, times = timed_replay(case.workload, chosen, cluster=case.cluster)
        assert timed.start.tolist() == plain.start.tolist()
        assert timed.placement is not None
        assert plain.placement is not None
        assert timed.placement.node.tolist() == plain.placement.node.tolist()
        assert timed.cluster == plain.cluster
        assert len(times.seconds) == timed.passes


@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
def test_fair_starts_place_as_the_replay_does(place: str) -> None:
    chosen = policy(f"easy-sjbf:place={place}")
    for seed in range(12):
        case = random_nodes_case(random.Random(seed))
        guess = np.array(case.workload.limit)
        cluster = replay(case.workload, chosen, cluster=case.cluster).cluster  # it knows the typical jobs
        fair = fair_starts(case.workload, chosen, cluster, guess)
        for job in range(len(case.workload)):
            known = case.workload.take(np.arange(len(case.workload)) <= job, "comes later")
            wanted = replay(known, chosen, cluster=cluster, estimate=guess[: job + 1]).start[job]
            assert fair[job] == wanted, (place, seed, job)


def test_typical_jobs_are_those_of_the_workload_where_the_cluster_says_none() -> None:
    """Only where the rule of placement asks for them; what the cluster says stays."""
    case = random_nodes_case(random.Random(1))
    plain = replace(case.cluster, typical=())
    known = made_ready(plain, case.workload, policy("easy:place=gradient"))
    assert known.typical == typical(requests_of(case.workload, plain), weigh=plain.shared_at)
    assert known.typical
    assert made_ready(plain, case.workload, policy("easy:place=best")) is plain
    given = replace(plain, typical=known.typical[:1])
    assert made_ready(given, case.workload, policy("easy:place=gradient")) is given


def test_kernels_are_made_ready_for_policies_that_have_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """By a replay of one job. A policy in Python needs none."""
    replayed: list[tuple[str, int]] = []

    def one_job_of(workload: Workload, chosen: Policy, *, cluster: Cluster) -> None:
        assert len(workload) == 1
        replayed.append((chosen.name, cluster.nodes))

    monkeypatch.setattr("dovetail.engine.replay.replay", one_job_of)
    warm(policy("easy"))
    warm(policy("easy"), nodes=True)
    warm(FirstFits())
    assert replayed == [("easy", 0), ("easy", 1)]


def test_policies_that_cannot_run_on_nodes_are_refused() -> None:
    name = "cp-af"
    case = random_nodes_case(random.Random(1))
    chosen = policy(name)
    for tried in (replay, timed_replay):
        with pytest.raises(SettingError, match=rf"{name} .* nodes.*: choose a list policy \(easy, "):
            tried(case.workload, chosen, cluster=case.cluster)
    with pytest.raises(SettingError, match="nodes"):
        warm(chosen, nodes=True)
