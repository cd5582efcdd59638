"""How fast a replay is: CPU seconds of the replay itself, once compiled; best of several.

python benchmarks/speed.py [--traces KTH-SP2 CEA-Curie] [--policies easy list-reg] [--json]
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from dovetail.engine.replay import replay, warm
from dovetail.io.read import read_workload
from dovetail.policies.registry import policy

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", nargs="+", default=["KTH-SP2", "CEA-Curie"])
    parser.add_argument("--policies", nargs="+", default=["easy", "list-reg", "conservative"])
    parser.add_argument("--estimates", nargs="+", default=["runtime", "limit"])
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    for trace in args.traces:
        workload = read_workload(TRACES / "papers" / f"{trace}.swf.gz")
        for name in args.policies:
            chosen = policy(name)
            warm(chosen)
            for estimate in args.estimates:
                best = float("inf")
                for _ in range(args.repeat):
                    clock = time.process_time()
                    schedule = replay(workload, chosen, estimate=estimate)
                    best = min(best, time.process_time() - clock)
                row = {
                    "trace": trace,
                    "policy": name,
                    "estimate": estimate,
                    "jobs": len(workload),
                    "passes": schedule.passes,
                    "cpu_s": round(best, 3),
                    "jobs_per_s": round(len(workload) / best),
                }
                if args.json:
                    print(json.dumps(row), flush=True)
                else:
                    rate = f"{row['jobs_per_s']:>10,} jobs/s"
                    print(f"{trace:<12} {name:<14} {estimate:<8} {best:8.3f} s {rate}", flush=True)


if __name__ == "__main__":
    main()
