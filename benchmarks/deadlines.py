"""CPU seconds of deadline-based backfilling on whole logs, and over those of conservative backfilling in the same run.

    python benchmarks/deadlines.py [--log SDSC-BLUE] [--repeat 3]

The least of some repetitions, by log and by share of jobs with a deadline. The logs are those of the
reproduction dbf-tables, found through DOVETAIL_TRACES.
"""

from __future__ import annotations

import argparse
import os
import time
from dataclasses import replace
from pathlib import Path

from dovetail.engine.replay import replay, warm
from dovetail.io.read import read_workload
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.studies.spec import Trace, read_study
from dovetail.workloads.filters import clean
from dovetail.workloads.scenarios import apply

POLICIES = ("conservative", "dbf", "dbf:guard=no", "easy")


def prepared(trace: Trace) -> Workload:
    """A log of the study, as the study has it."""
    folder = os.environ.get("DOVETAIL_TRACES", str(Path(__file__).resolve().parents[2] / "shared" / "traces"))
    log = read_workload(trace.path.replace("$DOVETAIL_TRACES", folder))
    return clean(replace(log, processors=trace.processors or log.processors), trace.filters)


def cpu_s(workload: Workload, name: str, repeat: int) -> float:
    """The least CPU time of some replays."""
    taken = []
    for _ in range(repeat):
        begin = time.process_time()
        replay(workload, policy(name))
        taken.append(time.process_time() - begin)
    return min(taken)


def main() -> None:
    pages = Path(__file__).resolve().parents[1] / "reproductions"
    traces = read_study(pages / "dbf_tables" / "study.toml").traces
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--log", action="append", choices=[trace.name for trace in traces])
    parser.add_argument("--repeat", type=int, default=3)
    chosen = parser.parse_args()
    for name in POLICIES:
        warm(policy(name))
    print(f"{'log':<16} {'share':>5}  " + "  ".join(f"{name:>14}" for name in POLICIES) + "   dbf / conservative")
    for trace in traces:
        if chosen.log and trace.name not in chosen.log:
            continue
        workload = prepared(trace)
        for share in (0.2, 0.4, 0.6, 0.8):
            drawn = apply(workload, f"deadlines={share}", seed=0)
            taken = {name: cpu_s(drawn, name, chosen.repeat) for name in POLICIES}
            cells = "  ".join(f"{taken[name]:>12.2f} s" for name in POLICIES)
            print(f"{trace.name:<16} {100 * share:>3.0f} %  {cells}   {taken['dbf'] / taken['conservative']:.2f}")


if __name__ == "__main__":
    main()
