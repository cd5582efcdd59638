"""What if, of a month of 100,000 jobs on 1,000 nodes: four questions, each from so many phases, on all cores.

    python benchmarks/whatif_month.py [--phases 20] [--days 30] [--load 0.9]

What 20 phases take is that of the phases, times 20 over their number.
"""

from __future__ import annotations

import argparse
import os
import time
from pathlib import Path

import numpy as np
from benchmarks.slurm_month import CORES, drawn

from dovetail.engine.replay import warm
from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.workload import Step
from dovetail.policies.slurm import Slurm
from dovetail.studies.executors import engine
from dovetail.studies.questions import Site
from dovetail.studies.whatif import PHASES, alternatives, answered, waits

A_DAY, NODES = 3_333, 1_000
QUESTIONS = ("bf_window=2880", "nodes+=10%", "bf_max_job_test=100", "limits*=0.8")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--phases", type=int, default=PHASES)
    parser.add_argument("--days", type=float, default=30)
    parser.add_argument("--load", type=float, default=0.9, help="of what the nodes can do")
    given = parser.parse_args()
    whole = drawn(given.days, A_DAY, NODES, 0, 1)
    shorter = {name: np.maximum(given.load * whole[name], 1).astype(np.int64) for name in ("runtime", "limit")}
    workload = whole.with_columns(Step("load"), **shorter)
    site = Site(workload, by_node(("cores",), (NodeKind("node", NODES, (CORES,)),)), Slurm())
    warm(Slurm(), nodes=True)
    asked, began = alternatives(site, QUESTIONS), time.monotonic()
    found = answered(site, waits(asked, engine("local", None, Path()), given.phases))
    wall_s = time.monotonic() - began
    span_s = float(workload.submit[-1] - workload.submit[0])
    for one in (found.today, *(answer.waits for answer in found.answers)):
        queue = float(one.means().mean()) * len(workload) / span_s
        print(f"{one.name:20} mean wait {one.means().mean():8,.0f} s, {queue:5,.0f} jobs wait on average")
    replays = len(asked) * given.phases
    print(f"{len(workload):,} jobs, {replays} replays, {os.cpu_count()} cores: {wall_s / 60:,.1f} min of wall")
    print(f"{PHASES} phases: {wall_s / 60 * PHASES / given.phases:,.1f} min")


if __name__ == "__main__":
    main()
