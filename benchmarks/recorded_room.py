"""Did recorded jobs wait for nodes? Of each job that waits in a log, every quarter of an hour: would it have fitted?

python benchmarks/recorded_room.py [--every 900]

Eurora on its nodes, as PBS ran it. Jobs that waited with room for them waited for something that the log does not say.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path

import numpy as np

from dovetail.engine.replay import replay
from dovetail.io.clusters import cluster_named
from dovetail.io.read import read_workload
from dovetail.model.requests import requests_of
from dovetail.referee import check_schedule

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=900)
    args = parser.parse_args()
    workload = read_workload(TRACES / "heterogeneous" / "eurora_jobs_merged.csv.gz")
    cluster = cluster_named("eurora")
    made, asked = replay(workload, "recorded", cluster=cluster), requests_of(workload, cluster)
    assert made.placement is not None
    waits = room = 0
    for at in range(int(workload.submit.min()), int(made.start.max()), args.every):
        free = cluster.capacity[cluster.kind_of]
        for job in np.flatnonzero((made.start <= at) & (made.end > at)).tolist():
            np.subtract.at(free, made.placement.of(job), asked.need[job])
        for job in np.flatnonzero((workload.submit <= at) & (made.start > at)).tolist():
            need = asked.need[job]
            units = (free[:, need > 0] // need[need > 0]).min(axis=1) * asked.sets[asked.among[job], cluster.kind_of]
            waits += 1
            room += int(units.clip(0).sum() >= asked.units[job])
    near = {
        name: round(float((np.abs(replay(workload, name, cluster=cluster).start - made.start) <= 3600).mean()), 3)
        for name in ("easy", "list-reg")
    }
    row = {"jobs": len(workload), "rules_broken": len(check_schedule(made)), "looks": waits}
    print(json.dumps({**row, "with_room": round(room / waits, 4), "within_an_hour": near}))


if __name__ == "__main__":
    main()
