"""How much of a change is chance: metrics when 1 % of the limits are a second longer, which helps no job.

python benchmarks/chance.py [--logs KTH-SP2 CTC-SP2 SDSC-SP2] [--seeds 20]

A policy turns the smallest change into another schedule. What this spreads over is a floor: a predictor that moves a
metric by less has not been shown to do anything on that trace.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path

import numpy as np

from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.metrics import summarize
from dovetail.policies.registry import policy
from dovetail.workloads.scenarios import nudge

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
SERVES = {"easy-sjbf": "bsld", "list-laf": "awf_s", "list-reg": "p2sf_s"}
SHARE = 0.01


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--logs", nargs="+", default=["KTH-SP2", "CTC-SP2", "SDSC-SP2"])
    parser.add_argument("--seeds", type=int, default=20)
    given = parser.parse_args()
    for log in given.logs:
        workload = read_workload(TRACES / "papers" / f"{log}.swf.gz")
        for name, metric in SERVES.items():
            chosen = policy(name)
            base = summarize(replay(workload, chosen, estimate="limit"))[metric]
            changes = []
            for seed in range(given.seeds):
                made = replay(nudge(workload, SHARE, seed), chosen, estimate="limit")
                changes.append(100 * summarize(made)[metric] / base - 100)
            low, high = min(changes), max(changes)
            spread = f"{low:+.1f} to {high:+.1f} %, standard deviation {np.std(changes, ddof=1):.1f} %"
            print(f"{log:10} {metric:7} of {name:10} {spread}", flush=True)


if __name__ == "__main__":
    main()
