"""Random cases from a seed on, each judged in many ways; what fails is made small and written down.

    python -m tests.simulate --seed N               the case of that number
    python -m tests.simulate --seed N --minutes M   that one and those after it, for so long
    python -m tests.simulate --planted              is every planted bug found? (planted.py has the list)

docs/testing.md says what is drawn and what must hold.
"""

from __future__ import annotations

import argparse
import csv
import faulthandler
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from tests.simulate.planted import hunt_all
from tests.simulate.run import Totals, seeds_from, simulate
from tests.simulate.shrink import kind_of

RUNS = Path(__file__).with_name("runs.csv")
"""What was run: first and last seed, cases, events, CPU seconds, violations, commit."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0, help="number of the first case (default 0)")
    parser.add_argument("--minutes", type=float, help="how long to go on (default: this one case)")
    parser.add_argument("--planted", nargs="*", metavar="NAME", help="look for planted bugs (default: all)")
    parser.add_argument("--record", action="store_true", help="add a line to tests/simulate/runs.csv")
    chosen = parser.parse_args()
    if chosen.planted is not None:
        return min(1, hunt_all(chosen.planted))
    faulthandler.enable()
    totals, began, clock = Totals(), time.process_time(), time.monotonic()
    simulate(seeds_from(chosen.seed, 60 * (chosen.minutes or 0)), totals)
    for title, counts in (("policies", totals.policies), ("checks", totals.checks)):
        print(f"{title}: " + ", ".join(f"{name} {count:,}" for name, count in sorted(counts.items())))
    print("seconds: " + ", ".join(f"{name} {took:.1f}" for name, took in totals.seconds.most_common(12)))
    for (check, kind), count in Counter((check, kind_of(said)) for _, check, said in totals.violations).items():
        print(f"{count:,} x {check}: {kind}... (seed {next(s for s, c, _ in totals.violations if c == check)})")
    print(
        f"{totals.line(chosen.seed + totals.cases - 1, began)}, {time.monotonic() - clock:,.0f} s, from {chosen.seed}"
    )
    if chosen.record:
        record(chosen.seed, totals, time.process_time() - began)
    return 1 if totals.violations else 0


def record(first: int, totals: Totals, cpu_s: float) -> None:
    """Write down what was run."""
    asked = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(asked, cwd=RUNS.parent, capture_output=True, text=True, check=True).stdout.strip()
    row = (first, first + totals.cases - 1, totals.cases, totals.events, round(cpu_s), len(totals.violations), commit)
    with RUNS.open("a", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerow(row)


if __name__ == "__main__":
    sys.exit(main())
