"""What a depth costs and saves: mean wait, mean response and CPU seconds with the first k of the queue planned.

python -m benchmarks.depth [--traces KTH-SP2 SDSC-SP2 CTC-SP2] [--depths 1 10 100 1000]
python -m benchmarks.depth --on-nodes --policies plan-af:decodes=20,depth --depths 10 30 100 all
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.node_pass import cluster_of
from benchmarks.scale import in_units

from dovetail.api import read
from dovetail.engine.replay import replay, warm
from dovetail.io.clusters import cluster_named
from dovetail.io.read import read_workload
from dovetail.metrics import max_queue_jobs, timeline
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.workloads.lublin import lublin
from dovetail.workloads.scenarios import apply

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))


def on_nodes() -> Iterator[tuple[str, Workload, Cluster]]:
    """Logs on nodes: their names, jobs and clusters."""
    kept = ["standard"]
    eurora, kit = cluster_named("eurora"), cluster_named("kit-fh2")
    yield "eurora", read(TRACES / "heterogeneous" / "eurora_jobs_merged.csv.gz", kept, cluster=eurora), eurora
    path, scenarios = TRACES / "archive" / "KIT-FH2-2016-1.first25k.swf.gz", ["per-node=20", "span=0d..14d"]
    yield "kit-fh2, 14 days", read(path, kept, scenarios, cluster=kit), kit
    small = cluster_of(64)
    made = apply(lublin(5_000, 1_024, seed=1, load=0.9), f"scale-load={small.processors / 1_024}")
    yield "generated, load 0.9, 64 nodes", in_units(made), small


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", nargs="+", default=["KTH-SP2", "SDSC-SP2", "CTC-SP2"])
    parser.add_argument("--policies", nargs="+", default=["list:reserve", "conservative:depth", "plan-af:depth"])
    parser.add_argument("--depths", nargs="+", default=["1", "10", "100", "1000", "all"])
    parser.add_argument("--on-nodes", action="store_true", help="Eurora, KIT ForHLR II and a generated log, on nodes")
    args = parser.parse_args()
    print("| log | policy | k | mean wait (s) | longest queue | CPU (s) |\n|---|---|---|---|---|---|")
    counted = ((trace, read_workload(TRACES / "papers" / f"{trace}.swf.gz"), None) for trace in args.traces)
    for trace, workload, cluster in on_nodes() if args.on_nodes else counted:
        for name in args.policies:
            warm(policy(f"{name}=1"), args.on_nodes)
            for depth in args.depths:
                clock = time.process_time()
                schedule = replay(workload, f"{name}={depth}", cluster=cluster)
                cpu = time.process_time() - clock
                longest = int(max_queue_jobs(timeline(schedule)))
                wait = float(schedule.wait.mean())
                print(f"| {trace} | `{name}` | {depth} | {wait:,.0f} | {longest:,} | {cpu:.1f} |", flush=True)


if __name__ == "__main__":
    main()
