"""What a depth costs and saves: mean wait, mean response and CPU seconds with the first k of the queue planned.

python benchmarks/depth.py [--traces KTH-SP2 SDSC-SP2 CTC-SP2] [--depths 1 10 100 1000]
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

from dovetail.engine.replay import replay, warm
from dovetail.io.read import read_workload
from dovetail.metrics import max_queue_jobs, timeline
from dovetail.policies.registry import policy

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", nargs="+", default=["KTH-SP2", "SDSC-SP2", "CTC-SP2"])
    parser.add_argument("--policies", nargs="+", default=["list:reserve", "conservative:depth", "plan-af:depth"])
    parser.add_argument("--depths", nargs="+", default=["1", "10", "100", "1000", "all"])
    args = parser.parse_args()
    print("| log | policy | k | mean wait (s) | longest queue | CPU (s) |\n|---|---|---|---|---|---|")
    for trace in args.traces:
        workload = read_workload(TRACES / "papers" / f"{trace}.swf.gz")
        for name in args.policies:
            warm(policy(f"{name}=1"))
            for depth in args.depths:
                clock = time.process_time()
                schedule = replay(workload, f"{name}={depth}")
                cpu = time.process_time() - clock
                longest = int(max_queue_jobs(timeline(schedule)))
                wait = float(schedule.wait.mean())
                print(f"| {trace} | `{name}` | {depth} | {wait:,.0f} | {longest:,} | {cpu:.1f} |", flush=True)


if __name__ == "__main__":
    main()
