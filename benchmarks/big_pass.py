"""One pass that reserves every waiting job: sizes and limits resampled from CTC-SP2, on 65,536 nodes.

python benchmarks/big_pass.py [--jobs 100000] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import time
from pathlib import Path

import numpy as np

from dovetail.arrays import Ints
from dovetail.io.read import read_workload
from dovetail.kernels import state as layout
from dovetail.kernels.machine.processors import new_counted
from dovetail.kernels.machine.timeline import FITS, HOLES
from dovetail.kernels.one_pass import step
from dovetail.policies.base import Asked
from dovetail.policies.lists import ListPolicy

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
NODES = 65_536


def big_pass(size: Ints, limit: Ints, nodes: int) -> dict[str, float]:
    """Reserve every job of a queue on an idle machine, all in one pass; CPU seconds and what the fits met."""
    n = len(size)
    jobs = np.full((layout.JOB_ROWS, n), -1, np.int64)
    jobs[[layout.SUBMIT, layout.ARRIVE, layout.SEEN]] = 0
    jobs[layout.SIZE], jobs[layout.ESTIMATE] = size, limit
    info = np.zeros(layout.INFO, np.int64)
    info[layout.WAITING] = n
    lists = np.zeros((layout.LIST_ROWS, n), np.int64)
    lists[layout.QUEUE] = np.arange(n)
    none = np.empty((4, 0), np.int64)
    run = layout.Run(info, jobs, np.zeros((2, n)), none, np.empty((2, 0), np.int64), lists)
    cap = new_counted(size, np.array([nodes], np.int64), n, 3 * n)
    clock = time.process_time()
    started = step(ListPolicy(reserve="all").rule(Asked(keep=True)), cap, run, 0)
    cpu = time.process_time() - clock
    places = jobs[layout.PLACE]
    assert started > 0
    assert (places >= 0).sum() + started >= n
    fits = int(cap.plan.mem[FITS])
    holes = int(cap.plan.mem[HOLES])
    return {
        "jobs": n,
        "nodes": nodes,
        "started": started,
        "cpu_s": cpu,
        "fits": fits,
        "holes_per_fit": holes / max(fits, 1),
        "last_start_s": int(places.max(initial=0)),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    log = read_workload(TRACES / "papers" / "CTC-SP2.swf.gz")
    rng = np.random.Generator(np.random.PCG64(args.seed))
    big_pass(np.array(log.size[:100]), np.array(log.limit[:100]), NODES)  # compile
    for n in args.jobs:
        pick = rng.integers(0, len(log), n)
        row = big_pass(np.array(log.size[pick]), np.array(log.limit[pick]), NODES)
        row["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(row) if args.json else "  ".join(f"{key} {value:,.2f}" for key, value in row.items()))


if __name__ == "__main__":
    main()
