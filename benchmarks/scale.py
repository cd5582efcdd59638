"""Does the cost per job stay the same? EASY on 10^5 to 10^7 jobs by Lublin and Feitelson, load 0.8, 1,024 processors.

python -m benchmarks.scale [--jobs 100000 1000000 10000000] [--json]
python -m benchmarks.scale --nodes 1000      on mixed nodes, which fail and are maintained
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from dataclasses import replace

import numpy as np
from benchmarks.node_pass import cluster_of

from dovetail.engine.replay import replay, warm
from dovetail.metrics import max_queue_jobs, mean_queue_jobs, timeline
from dovetail.model.cluster import Cluster, Outage
from dovetail.model.workload import Step, Workload
from dovetail.policies.registry import policy
from dovetail.units import DAY_S
from dovetail.workloads.failures import failures
from dovetail.workloads.lublin import lublin
from dovetail.workloads.scenarios import apply


def in_units(workload: Workload) -> Workload:
    """Jobs of more than 64 processors take whole nodes' worth of them, 64 a unit; others are one unit."""
    units = -(-workload.size // 64)
    cores = np.where(units > 1, 64, workload.size)
    size = units * cores
    return workload.with_columns(Step("units of at most 64 cores"), units=units, unit_cores=cores, size=size)


def with_outages(cluster: Cluster, span_s: int) -> Cluster:
    """Every node fails about once a year and is repaired in 8 hours; once in 90 days a tenth of them is maintained."""
    found = failures(cluster.nodes, span_s, 365 * DAY_S, 8 * 3600, seed=1)
    part = tuple(range(0, cluster.nodes, 10))
    planned = tuple(Outage(part, at, at + DAY_S, known=at - 14 * DAY_S) for at in range(90 * DAY_S, span_s, 90 * DAY_S))
    return replace(cluster, outages=(*found, *planned))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--policy", default="easy")
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--processors", type=int, default=1024)
    parser.add_argument("--nodes", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    chosen = policy(args.policy)
    warm(chosen, bool(args.nodes))
    cluster = cluster_of(args.nodes) if args.nodes else Cluster(args.processors)
    for jobs in args.jobs:
        clock = time.process_time()
        workload = lublin(jobs, args.processors, seed=args.seed, load=args.load)
        if args.nodes:  # as many jobs of those sizes as load so many more processors
            workload = in_units(apply(workload, f"scale-load={cluster.processors / args.processors}"))
            cluster = with_outages(cluster, workload.span_s)
        made = time.process_time() - clock
        clock = time.process_time()
        schedule = replay(workload, chosen, cluster=cluster)
        cpu = time.process_time() - clock
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        line = timeline(schedule)
        row = {
            "jobs": jobs,
            "generate_cpu_s": round(made, 2),
            "replay_cpu_s": round(cpu, 2),
            "us_per_job": round(cpu / jobs * 1e6, 3),
            "peak_gb": round(peak, 2),
            "mean_queue_jobs": round(mean_queue_jobs(line), 1),
            "max_queue_jobs": int(max_queue_jobs(line)),
            "mean_wait_s": round(float(schedule.wait.mean()), 1),
            "outages": len(cluster.outages),
            "lost_runs": len(schedule.lost),
        }
        if args.json:
            print(json.dumps(row), flush=True)
        else:
            print("  ".join(f"{key} {value:,}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
