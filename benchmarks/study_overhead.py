"""What the machinery of studies costs beside the cells: many short cells on the local pool.

    python benchmarks/study_overhead.py --cells 1000

One trace, one policy, as many seeds as cells (EASY draws nothing: every cell is the same 50 ms of work). The ratio is
elapsed time over the cells' own CPU time (replay and metrics) divided by the workers; 1 would be no overhead. On a
machine that others use, elapsed time is not ours alone: the CPU ratio counts all CPU time of the command instead.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dovetail.studies.store import Store

ROOT = Path(__file__).resolve().parent.parent
TRACES = Path(os.environ.get("DOVETAIL_TRACES", ROOT.parent / "shared" / "traces"))
STUDY = 'name = "overhead"\npolicies = ["easy"]\nseeds = {cells}\n[[traces]]\npath = "{trace}"\n'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cells", type=int, default=1_000)
    parser.add_argument("--trace", type=Path, default=TRACES / "papers" / "KTH-SP2.swf.gz")
    given = parser.parse_args()
    workers = len(os.sched_getaffinity(0))
    with tempfile.TemporaryDirectory() as folder:
        study = Path(folder, "study.toml")
        study.write_text(STUDY.format(cells=given.cells, trace=given.trace.resolve()))
        command = [str(Path(sys.executable).with_name("dovetail")), "study", "run", str(study)]
        clock = time.monotonic()
        subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
        elapsed_s = time.monotonic() - clock
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        frame = Store(Path(folder, "study.store")).frame()
    cells_s = float(frame["cpu_s"].sum())
    result = {
        "cells": len(frame),
        "workers": workers,
        "cell_cpu_ms": round(1000 * cells_s / given.cells, 2),
        "elapsed_s": round(elapsed_s, 2),
        "elapsed_ratio": round(elapsed_s / (cells_s / workers), 3),
        "cpu_ratio": round((used.ru_utime + used.ru_stime) / cells_s, 3),
    }
    print(json.dumps(result))


if __name__ == "__main__":
    main()
