"""What a burst costs: very many jobs in one second on 1,024 processors, limits as estimates, CPU seconds.

python benchmarks/bursts.py easy 1000 2000 4000            unlike jobs: sizes, limits and run times drawn
python benchmarks/bursts.py list-reg 100000 --array        an array: tasks of one core and one limit, run times drawn
python benchmarks/bursts.py conservative 100000 --array --among 1000      with so many unlike jobs among them
"""

from __future__ import annotations

import argparse
import hashlib
import json
import resource
import time

import numpy as np

from dovetail.engine.replay import replay, warm
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.registry import policy

PROCESSORS = 1024
LIMIT_S = 3600
MOST_S = 86_400


def burst(n: int, *, array: bool = False, among: int = 0, seed: int = 1) -> Workload:
    """n jobs that arrive in one second. `array`: tasks of one core, with `among` unlike jobs at random places."""
    rng = np.random.Generator(np.random.PCG64(seed))
    unlike = np.ones(n, bool)
    if array:
        unlike = np.zeros(n + among, bool)
        unlike[rng.choice(n + among, among, replace=False)] = True
    n = len(unlike)
    size = np.where(unlike, np.exp2(rng.uniform(0, np.log2(PROCESSORS), n)).astype(np.int64), 1)
    limit = np.where(unlike, rng.integers(60, MOST_S, n), LIMIT_S)
    runtime = 1 + (rng.random(n) * limit).astype(np.int64)
    columns = {"id": np.arange(1, n + 1), "submit": np.zeros(n, np.int64), "size": size, "runtime": runtime}
    return Workload("burst", {**columns, "limit": limit}, PROCESSORS, Provenance("made here"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("policy")
    parser.add_argument("jobs", type=int, nargs="+")
    parser.add_argument("--array", action="store_true")
    parser.add_argument("--among", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    chosen = policy(args.policy)
    warm(chosen)
    before = 0.0
    for n in args.jobs:
        workload = burst(n, array=args.array, among=args.among, seed=args.seed)
        clock = time.process_time()
        schedule = replay(workload, chosen)
        cpu = time.process_time() - clock
        row = {
            "policy": args.policy, "jobs": n, "array": args.array, "among": args.among, "cpu_s": round(cpu, 2),
            "ratio": round(cpu / before, 2) if before else None, "passes": schedule.passes,
            "mean_wait_s": round(float(schedule.wait.mean()), 1),
            "starts": hashlib.sha256(schedule.start.tobytes()).hexdigest()[:12],
            "peak_gb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        }  # fmt: skip
        before = cpu
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
