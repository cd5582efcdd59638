"""A cluster that fills up, against slow obvious code; and what is left of it, counted node by node."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from dovetail.kernels.machine.nodes import Nodes
from dovetail.model.cluster import Typical
from dovetail.model.machine import new_machine
from dovetail.model.requests import requests_of
from reproductions.alibaba_gpus.kernel import all_fragmented, fill
from tests.slow.node_cases import random_nodes_case
from tests.slow.nodes import RULES
from tests.slow.policies import Block, Profile

FOREVER = 1_000_000
"""Longer than anything in here."""


@pytest.mark.parametrize("rule", RULES)
def test_filling_equals_slow_code(rule: str) -> None:
    lost = 0
    for seed in range(60):
        rng = random.Random(f"filling {rule} {seed}")
        case = random_nodes_case(rng)
        types = tuple(Typical(t.probability, tuple(t.need), t.share, t.kinds) for t in case.machine.types)
        cluster, machine = replace(case.cluster, typical=types), replace(case.machine, rule=rule)
        requests = requests_of(case.workload, cluster)
        cap = new_machine(cluster, case.workload.size, requests, cluster.takes(case.workload), rule, len(case.jobs))
        assert isinstance(cap, Nodes)
        stays, half = np.zeros(len(case.jobs), np.bool_), len(case.jobs) // 2
        fill(cap, 0, half, stays)
        assert not stays[half:].any()
        fill(cap, half, len(case.jobs), stays)
        held: list[Block] = []
        for j, job in enumerate(case.jobs):
            profile = Profile(0, machine.capacity, held)
            place = machine.place(profile, replace(job, estimate=FOREVER), 0)
            assert stays[j] == (place is not None), (seed, j)
            units = slice(int(requests.first[j]), int(requests.first[j + 1]))
            if place is None:
                assert (cap.placed[:, units] == -1).all()
                lost += 1
                continue
            assert cap.placed[0, units].tolist() == list(place.nodes), (seed, j)
            assert cap.placed[1, units].tolist() == list(place.devices), (seed, j)
            held.append((0, FOREVER, place.size))
        if cluster.shared:
            free = machine.by_node(Profile(0, machine.capacity, held).least(0, FOREVER))
            wanted = sum(machine.fragmentation(x, m) for x, m in enumerate(free))
            assert all_fragmented(cap) == pytest.approx(wanted, rel=1e-12, abs=1e-12)
    assert lost > 100
