"""Plans on nodes: what is reserved is taken on its nodes for its time and no more, and taken out again it is free.
Uncompiled, to save time."""

from __future__ import annotations

import os
import random
import subprocess
import sys

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.kernels.machine.capacity import earliest_fit, open_plan, reserve, unreserve
from dovetail.kernels.machine.node_classes import AT_NODES
from dovetail.kernels.machine.node_fit import least_free
from dovetail.kernels.machine.nodes import Nodes
from dovetail.model.cluster import Cluster
from dovetail.model.machine import new_machine
from dovetail.model.requests import Requests, requests_of
from tests.conftest import ROOT
from tests.slow.node_cases import random_nodes_case


def free_in(plan: dict[int, tuple[int, int]], cap: Nodes, cluster: Cluster, asked: Requests, at: int) -> Ints:
    """What must be free on each node at an instant beside these jobs, each from its first to its second instant."""
    free: Ints = cluster.vectors[cluster.kind_of].copy()
    for job, (begin, end) in plan.items():
        nodes, devices = cap.pick[:2, cap.first[job] : cap.first[job + 1]]
        if begin <= at < end:
            np.subtract.at(free, nodes, asked.taken(job, cluster, nodes.tolist(), devices.tolist()))
    return free


def what_is_taken_out_of_a_plan_is_free_again(seed: int) -> None:
    rng = random.Random(seed)
    case = random_nodes_case(rng)
    cluster, asked, n = case.cluster, requests_of(case.workload, case.cluster), len(case.jobs)
    cap = new_machine(cluster, np.array(case.workload.size), asked, cluster.takes(case.workload), "first", n)
    assert isinstance(cap, Nodes)
    open_plan(cap, 0)
    found = []
    for _ in range(2):  # an empty plan is like a new one
        plan = dict[int, tuple[int, int]]()
        for job in range(n):
            at = int(earliest_fit(cap, job, 0, case.jobs[job].estimate))
            reserve(cap, job, at, case.jobs[job].estimate)
            plan[job] = at, at + case.jobs[job].estimate
        found.append((list(plan.values()), cap.pick.tolist()))
        instants = sorted({at for begin, end in plan.values() for at in (begin, end - 1, end)})
        for job in rng.sample(range(n), n):
            at = rng.choice(instants)
            out = np.zeros((cluster.nodes, cluster.vectors.shape[1]), np.int64)
            for node in range(cluster.nodes):
                least_free(cap.plan, cap.plan[cap.plan[AT_NODES] + node], at, at + 1, out[node])
            assert out.tolist() == free_in(plan, cap, cluster, asked, at).tolist()
            begin, end = plan.pop(job)
            unreserve(cap, job, begin, end - begin)
    assert found[0] == found[1]


@pytest.mark.slow
def test_what_is_taken_out_is_free_again() -> None:
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    script = "from tests.kernels.test_nodes import *; [*map(what_is_taken_out_of_a_plan_is_free_again, range(40))]"
    command = [sys.executable, "-W", "ignore::RuntimeWarning", "-c", script]
    done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
