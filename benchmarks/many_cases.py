"""The engines against slow obvious Python on many random cases; prints how many disagree (it must be 0).

    python benchmarks/many_cases.py [--cases N] [--first SEED] [--nodes]

The same cases as tests/contract/test_equal.py, which runs the first 1,000; with --nodes those of
tests/contract/test_nodes.py, random clusters of nodes, which runs the first 720.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # the cases live beside the tests

from tests.contract.cases import case, disagreements
from tests.contract.test_nodes import disagreement


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=10_000, help="how many (default 10000)")
    parser.add_argument("--first", type=int, default=0, help="seed of the first one (default 0)")
    parser.add_argument("--nodes", action="store_true", help="clusters of nodes")
    chosen = parser.parse_args()
    begin = time.process_time()
    wrong = 0
    for seed in range(chosen.first, chosen.first + chosen.cases):
        found = disagreement(seed) if chosen.nodes else disagreements(case(seed))
        wrong += bool(found)
        for text in found:
            print(text)
    seconds = time.process_time() - begin
    print(f"{chosen.cases:,} cases, {wrong} disagreements, {seconds:.1f} s of CPU")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
