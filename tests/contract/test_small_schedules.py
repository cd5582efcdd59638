"""Small workloads have the schedules that they had: every number of them is in small_schedules.csv.

Slow code says what lists and conservative backfilling must do; of planners, predictors and placements it does not. A
change that is meant: `python -m tests.contract.test_small_schedules` writes the file anew, and its difference is read.
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.workload import Provenance, Workload

PATH = Path(__file__).with_name("small_schedules.csv")
SEEDS = 5
PLANNERS = (
    "plan-af:decodes=6", "plan-awf:decodes=6,window=5", "plan-bsld:decodes=6", "plan-p2sf:decodes=6",
    "plan-deadline:decodes=4", "plan-af:decodes=4,foresight=2", "plan-af:decodes=4,depth=3", "plan-deadline:depth=2",
)  # fmt: skip
LEARNED = ("recent", "similar", "hierarchy", "survival", "neighbours", "online", "quantile")
ON_NODES = ("easy:place=first", "easy:place=best", "list-saf", "plan-af:decodes=3")
KINDS = [
    *((name, "limit", "processors") for name in PLANNERS),
    *(("easy", name, "processors") for name in LEARNED),
    *((name, "limit", "nodes") for name in ON_NODES),
]
NODES = by_node(("cores",), (NodeKind("thin", 2, (3,)), NodeKind("fat", 1, (4,))))


def made(seed: int) -> Workload:
    """Twenty jobs of three users on ten processors, some alike, some with deadlines."""
    rng, n = np.random.Generator(np.random.PCG64(seed)), 20
    limit = rng.integers(2, 40, n)
    columns = {
        "id": np.arange(1, n + 1), "submit": np.sort(rng.integers(0, 60, n)), "size": rng.integers(1, 8, n),
        "limit": limit, "runtime": 1 + (rng.random(n) * limit).astype(np.int64), "user": rng.integers(0, 3, n),
        "deadline_s": np.where(rng.random(n) < 0.3, rng.integers(40, 200, n), -1),
    }  # fmt: skip
    columns["runtime"] = np.minimum(columns["runtime"], limit)
    columns["size"][4:7], columns["limit"][4:7], columns["submit"][4:7] = 2, 40, columns["submit"][4]
    return Workload("small", columns, 10, Provenance("made here"))


def digest(policy: str, estimate: str, machine: str, seed: int) -> str:
    """Of all that was decided."""
    schedule = replay(
        made(seed), policy, estimate=estimate, cluster=NODES if machine == "nodes" else Cluster(10),
        keep_promises=machine == "processors",
    )  # fmt: skip
    columns = [schedule.start, schedule.promised_first, schedule.promised_last]
    columns += [schedule.placement.node] if schedule.placement is not None else []
    return hashlib.sha256(b"".join(column.tobytes() for column in columns)).hexdigest()[:16]


@pytest.mark.parametrize("seed", range(SEEDS))
@pytest.mark.parametrize(("policy", "estimate", "machine"), KINDS)
def test_schedules_are_what_they_were(policy: str, estimate: str, machine: str, seed: int) -> None:
    with PATH.open(newline="", encoding="utf-8") as file:
        known = {tuple(row[:4]): row[4] for row in csv.reader(file)}
    assert digest(policy, estimate, machine, seed) == known[policy, estimate, machine, str(seed)]


if __name__ == "__main__":
    with PATH.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, lineterminator="\n").writerows(
            (*kind, seed, digest(*kind, seed)) for kind in KINDS for seed in range(SEEDS)
        )
