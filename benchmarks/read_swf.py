"""How fast logs are read: lines, CPU seconds and lines per second, unpacking and checks included.

    python benchmarks/read_swf.py [--json] [log ...]

Without logs, RICC and CEA-Curie from the archive folder of DOVETAIL_TRACES (default ../shared/traces).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

from dovetail.io.swf import read_swf

ROOT = Path(__file__).resolve().parent.parent
ARCHIVE = Path(os.environ.get("DOVETAIL_TRACES", ROOT.parent / "shared" / "traces")) / "archive"
LOGS = (ARCHIVE / "RICC-2010-2.swf.gz", ARCHIVE / "CEA-Curie-2011-2.1-cln.swf.gz")
TIMES = 3


def measure(path: Path) -> dict[str, str | int | float]:
    """The best of a few readings, in CPU time of this process."""
    seconds = []
    for _ in range(TIMES):
        start = time.process_time()
        workload = read_swf(path)
        seconds.append(time.process_time() - start)
    lines, best = workload.provenance.lines, min(seconds)
    return {"log": workload.name, "lines": lines, "cpu_s": round(best, 3), "lines_per_s": round(lines / best)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("logs", nargs="*", type=Path, default=LOGS)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    chosen = parser.parse_args()
    read_swf(chosen.logs[0])  # compiles the kernel, or loads it from its cache
    results = [measure(path) for path in chosen.logs]
    if chosen.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{'log':30} {'lines':>10} {'CPU s':>8} {'lines/s':>12}")
    for row in results:
        print(f"{row['log']:30} {row['lines']:>10,} {row['cpu_s']:>8.3f} {row['lines_per_s']:>12,}")


if __name__ == "__main__":
    main()
