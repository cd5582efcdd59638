"""Does the cost per job stay the same? EASY on 10^5 to 10^7 jobs by Lublin and Feitelson, load 0.8, 1,024 processors.

python benchmarks/scale.py [--jobs 100000 1000000 10000000] [--json]
"""

from __future__ import annotations

import argparse
import json
import resource
import time

from dovetail.engine.replay import replay, warm
from dovetail.metrics import max_queue_jobs, mean_queue_jobs, timeline
from dovetail.policies.registry import policy
from dovetail.workloads.lublin import lublin


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100_000, 1_000_000, 10_000_000])
    parser.add_argument("--policy", default="easy")
    parser.add_argument("--load", type=float, default=0.8)
    parser.add_argument("--processors", type=int, default=1024)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    chosen = policy(args.policy)
    warm(chosen)
    for jobs in args.jobs:
        clock = time.process_time()
        workload = lublin(jobs, args.processors, seed=args.seed, load=args.load)
        made = time.process_time() - clock
        clock = time.process_time()
        schedule = replay(workload, chosen)
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
        }
        if args.json:
            print(json.dumps(row), flush=True)
        else:
            print("  ".join(f"{key} {value:,}" for key, value in row.items()), flush=True)


if __name__ == "__main__":
    main()
