"""What a pass of the planner costs and is worth: budgets and windows against each other, in one run.

    python benchmarks/planner_budget.py [DAYS]

On days 0 to DAYS of three logs that are in no table of results, limits as estimates: CPU time and the metric that is
planned for, both in percent of the widest and deepest search.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import dovetail as dt

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).parents[2] / "shared" / "traces")) / "archive"
LOGS = ("SDSC-DS-2004-2.1-cln", "ALCF-Theta-2023", "HPC2N-2002-2.2-cln")
BUDGETS = ((100, 200), (50, 200), (50, 100), (30, 100))
"""Jobs that are arranged, and plans that are tried."""


def main(days: int) -> None:
    print(f"{'log':22} {'planner':9} {'window':>6} {'decodes':>7} {'CPU, s':>8} {'CPU, %':>7} {'metric, %':>9}")
    for log in LOGS:
        workload = dt.read(TRACES / f"{log}.swf.gz", scenarios=[f"span=0d..{days}d"])
        for name, metric in (("plan-af", "af_s"), ("plan-awf", "awf_s"), ("plan-p2sf", "p2sf_s")):
            first: tuple[float, float] | None = None
            for window, decodes in BUDGETS:
                policy = f"{name}:window={window},decodes={decodes}"
                dt.replay(workload.take(workload.submit < workload.submit[0] + 3600, "an hour"), policy)  # compiled now
                clock = time.process_time()
                schedule = dt.replay(workload, policy)
                cpu_s = time.process_time() - clock
                found = dt.summarize(schedule)[metric]
                first = first or (cpu_s, found)
                shares = f"{100 * cpu_s / first[0]:>7.0f} {100 * found / first[1]:>9.2f}"
                print(f"{log[:22]:22} {name:9} {window:>6} {decodes:>7} {cpu_s:>8.2f} {shares}", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 120)
