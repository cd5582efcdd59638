"""How long one pass takes: CPU milliseconds, of all passes and of those in which a waiting job fitted (a planner
searches only then), and what the stepping adds to each, in microseconds.

python benchmarks/pass_times.py [--traces KTH-SP2 CEA-Curie] [--policies list-reg plan-af] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from dovetail.engine.pass_times import timed_replay
from dovetail.engine.replay import warm
from dovetail.io.read import read_workload
from dovetail.policies.registry import policy

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", nargs="+", default=["KTH-SP2"])
    parser.add_argument("--policies", nargs="+", default=["strict-fcfs", "easy", "list-reg", "plan-af", "plan-p2sf"])
    parser.add_argument("--estimates", nargs="+", default=["runtime", "limit"])
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for trace in args.traces:
        workload = read_workload(TRACES / "papers" / f"{trace}.swf.gz")
        for name in args.policies:
            chosen = policy(name)
            warm(chosen)
            for estimate in args.estimates:
                _, times = timed_replay(workload, chosen, estimate=estimate)
                row: dict[str, str | float] = {"trace": trace, "policy": name, "estimate": estimate}
                for kind, ms in (("all", times.seconds * 1e3), ("searched", times.seconds[times.searched] * 1e3)):
                    row[f"{kind}_passes"] = len(ms)
                    for key, at in (("p50", 50), ("p99", 99), ("max", 100)):
                        row[f"{kind}_{key}_ms"] = round(float(np.percentile(ms, at)), 4) if len(ms) else 0.0
                row["overhead_us"] = round(times.overhead_s * 1e6, 2)
                print(json.dumps(row) if args.json else "  ".join(f"{k} {v}" for k, v in row.items()), flush=True)


if __name__ == "__main__":
    main()
