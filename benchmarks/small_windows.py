"""Does the search find the optimum? On windows of at most 8 jobs, against the proofs of CP-SAT.

    python benchmarks/small_windows.py [--results small_windows.jsonl] [--windows 1000]

For AF, AWF and BSLD: whether the search has CP-SAT's proved optimum over all whole starts. For P2SF: how much lower it
would be if jobs might idle on purpose. The clock is a coarser one, so that CP-SAT proves most of it in a fraction of a
second. Adds what is missing to the results file. `windows_page.py` shows it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.windows import NAMES, Passes, passes, read

from dovetail.optimize.window.cpsat import solve
from dovetail.optimize.window.objective import OBJECTIVES
from dovetail.optimize.window.problem import Problem, Solution, alone, check
from dovetail.optimize.window.search import METHODS, search

MOST: Final = 8
DECODES: Final = 3000
MORE_DECODES: Final = 20_000
"""For the annealing once more."""
UNITS: Final = 24
"""On the coarser clock, the longest estimate has about so many units."""


def cut(known: Passes, count: int, seed: int) -> Iterator[tuple[str, Problem]]:
    """So many windows of 2 to MOST jobs in which not every job can start as if it were alone."""
    rng = np.random.default_rng(seed)
    fitting = known.between(2, MOST)
    made = 0
    for which in rng.permutation(fitting):
        problem = known.problem(int(which))
        first = alone(problem)
        if check(problem, first):
            yield f"{known.name} {problem.now}", problem
            made += 1
        if made == count:
            return


def coarse(problem: Problem) -> Problem:
    """The same window on a clock of larger units: all instants and estimates in whole units, rounded up."""
    unit = -(-int(problem.estimate.max()) // UNITS)
    since = -(-(problem.times - problem.now) // unit)
    last = np.append(np.diff(since) > 0, True)  # of several steps in one unit the last counts: capacity only rises
    return Problem(
        now=0, processors=problem.processors, times=since[last], free=problem.free[last],
        arrive=-((problem.now - problem.arrive) // unit), size=problem.size, estimate=-(-problem.estimate // unit),
    )  # fmt: skip


def searched(problem: Problem, name: str, seed: int) -> dict[str, Solution]:
    """The answer of each method; `more` is the annealing with more decodes. Every schedule is checked."""
    objective = OBJECTIVES[name]
    found: dict[str, Solution] = {
        method: search(problem, objective, decodes=DECODES, seed=seed, method=method).solution for method in METHODS
    }
    found["more"] = search(problem, objective, decodes=MORE_DECODES, seed=seed).solution
    for one in found.values():
        assert check(problem, one.starts) == []
    return found


def compare(problem: Problem, name: str, seed: int) -> dict[str, Any]:
    """One row: the value of each method, the best that CP-SAT found, and whether it proved it."""
    found = searched(problem, name, seed)
    free = solve(problem, OBJECTIVES[name], deterministic_s=1, hint=found["anneal"].starts)
    values = {method: one.value for method, one in found.items()}
    return {"objective": name, "jobs": len(problem), "free": free.value, "status": free.status, **values}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", type=Path, default=Path("small_windows.jsonl"))
    parser.add_argument("--windows", type=int, default=1000)
    args = parser.parse_args()
    have = {(row["window"], row["objective"]) for row in read(args.results)}
    kinds = [passes(trace, estimate) for trace in NAMES for estimate in ("runtime", "limit")]
    each = -(-args.windows // len(kinds))
    for seed, turn in enumerate(zip(*(cut(known, each, seed=0) for known in kinds), strict=True)):
        for window, problem in turn:
            for name in ("af", "awf", "bsld", "p2sf"):
                if (window, name) not in have:
                    row = {"window": window, **compare(coarse(problem), name, seed)}
                    with args.results.open("a") as out:
                        out.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
