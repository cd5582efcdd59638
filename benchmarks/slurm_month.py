"""A Slurm's month: CPU time of a replay by its rules on 1,000 nodes with about 1,000 jobs waiting.

    python benchmarks/slurm_month.py [--days 1] [--jobs-a-day 26667] [--nodes 1000] [--waiting 1000]

Jobs come at random, as many as the nodes can take, behind a queue that is there from the first second. What a month
takes is that of the days, times 30 over their number.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.compiled import new_replay
from dovetail.engine.replay import warm
from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.workload import Workload
from dovetail.policies.slurm import Slurm
from dovetail.units import DAY_S

CORES, STEPS = 64, 48
SIZES = ((1, 0.3), (4, 0.15), (16, 0.2), (64, 0.2), (256, 0.1), (1024, 0.05))
"""Cores of a job, and how many ask for so many."""


def drawn(days: float, a_day: int, nodes: int, waiting: int, seed: int) -> Workload:
    """Jobs whose work is what the nodes can do, behind those that fill them and those that wait when it begins."""
    rng = np.random.default_rng(seed)
    sizes, parts = zip(*SIZES, strict=True)
    mean = float(np.dot(sizes, parts))
    coming, first = int(days * a_day), int(nodes * CORES / mean) + waiting
    count = first + coming
    size = rng.choice(sizes, count, p=parts)
    runtime = np.maximum(rng.exponential(nodes * CORES * DAY_S / a_day / mean, count), 30).astype(np.int64)
    limit: Ints = np.ceil(runtime * rng.uniform(1, 4, count) / 900).astype(np.int64) * 900
    submit = np.sort(np.concatenate([np.zeros(first), rng.uniform(1, days * DAY_S, coming)])).astype(np.int64)
    wide = size > CORES
    columns = {
        "id": np.arange(count), "submit": submit, "size": size, "runtime": runtime, "limit": limit,
        "units": np.where(wide, size // CORES, size), "unit_cores": np.where(wide, CORES, 1),
        "per_node": np.where(wide, 1, -1), "user": rng.integers(0, 200, count),
    }  # fmt: skip
    return Workload("month", columns, nodes * CORES)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=float, default=1)
    parser.add_argument("--jobs-a-day", type=int, default=26_667)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--waiting", type=int, default=1000)
    given = parser.parse_args()
    workload = drawn(given.days, given.jobs_a_day, given.nodes, given.waiting, 1)
    cluster = by_node(("cores",), (NodeKind("node", given.nodes, (CORES,)),))
    warm(Slurm(), nodes=True)
    policy = Slurm().at(None, workload, cluster)
    whole = new_replay(workload, cluster, policy.rule(), np.array(workload.limit))
    waited, took, until = [], 0.0, int(given.days * DAY_S)
    for at in range(1, STEPS + 1):
        began = time.process_time()
        whole.advance(until * at // STEPS)
        took += time.process_time() - began
        waited.append(len(whole.waiting))
    print(f"{len(workload):,} jobs, {given.days:g} days, {given.nodes:,} nodes: {took:,.1f} s of CPU")
    print(f"{whole.passes:,} passes; {np.mean(waited):,.0f} jobs wait on average, {min(waited):,} to {max(waited):,}")
    print(f"30 days: {took * 30 / given.days / 60:,.1f} min of CPU; a year: {took * 365 / given.days / 3600:,.1f} h")


if __name__ == "__main__":
    main()
