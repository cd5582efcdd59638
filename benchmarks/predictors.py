"""What predictors cost: CPU time per job that each adds to a replay of EASY with known estimates.

python benchmarks/predictors.py [--log KTH-SP2] [--repeat 3]
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from time import process_time

from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.predict.registry import LEARNED

TRACES = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))


def seconds(workload: Workload, estimate: str, repeat: int) -> float:
    """The least CPU time of several replays: what disturbs one adds to it."""
    times = []
    for _ in range(repeat):
        begun = process_time()
        replay(workload, policy("easy"), estimate=estimate)
        times.append(process_time() - begun)
    return min(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--log", default="KTH-SP2")
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    workload = read_workload(TRACES / "papers" / f"{given.log}.swf.gz")
    replay(workload, policy("easy"))  # compiled by now
    base = seconds(workload, "limit", given.repeat)
    print(f"{given.log}, {len(workload):,} jobs: {base:.2f} s with limits")
    for name in LEARNED:
        added = seconds(workload, name, given.repeat) - base
        print(f"{name:12} {added:8.2f} s more, {1e6 * added / len(workload):6.1f} us a job")


if __name__ == "__main__":
    main()
