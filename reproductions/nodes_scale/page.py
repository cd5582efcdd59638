"""How a pass by node grows with the machine: 1,000 waiting jobs on 1,000 to 160,000 mixed nodes.

Each machine is 70 % thin nodes (64 cores, 256 GB), 20 % fat (1,024 GB) and 10 % with 4 GPUs (512 GB). Jobs of 1 to 64
units fill it to a share of its cores; then 1,000 more arrive at once, and the one pass that decides on them is timed,
in CPU seconds.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from functools import cache
from math import log2
from statistics import median
from typing import Final, cast

import numpy as np

from dovetail.engine.compiled import new_replay
from dovetail.engine.replay import warm
from dovetail.kernels import state as layout
from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.workload import Column, Provenance, Workload
from dovetail.policies.base import Asked, RulePolicy
from dovetail.policies.registry import policy
from dovetail.studies.task import Cell
from reproductions.running import Work
from reproductions.runs import Runs
from reproductions.values import Content, Key

WAITING: Final = 1000
CORES: Final = 64
NODES: Final = (1_000, 2_500, 10_000, 40_000, 160_000)
SEEDS: Final = range(5)
CASES: Final = (
    ("greedy-fcfs", 80), ("easy", 80), ("easy", 93), ("list:reserve=10", 93), ("list:reserve=100", 93),
)  # fmt: skip
"""Policies, and how many per cent of the cores are asked for before the 1,000 jobs come."""


def cells(_: Work) -> list[Cell]:
    """A pass for each policy, machine and seed."""
    return [cell for name, percent in CASES for nodes in NODES for cell in _seeds(name, percent, nodes)]


def _seeds(name: str, percent: int, nodes: int) -> list[Cell]:
    return [Cell(f"{nodes} nodes", f"{percent} % asked for", "all", name, "limit", seed) for seed in SEEDS]


def machine(nodes: int) -> Cluster:
    """A machine of three kinds."""
    thin, fat = nodes * 7 // 10, nodes * 2 // 10
    kinds = (
        NodeKind("thin", thin, (CORES, 256, 0)),
        NodeKind("fat", fat, (CORES, 1024, 0)),
        NodeKind("gpu", nodes - thin - fat, (CORES, 512, 4)),
    )
    return by_node(("cores", "memory_gb", "gpus"), kinds)


def asked(n: int, rng: np.random.Generator) -> dict[str, Column]:
    """What `n` jobs ask for: half of them one unit, the others up to 64; one in eight needs GPUs."""
    units = np.where(rng.random(n) < 0.5, 1, np.minimum(np.exp(rng.normal(2, 1.2, n)).astype(np.int64) + 1, 64))
    cores = rng.choice([1, 2, 4, 8, 16, 32, 64], n)
    cores = np.where(units > 1, np.maximum(cores, 16), cores)
    gpus = np.where(rng.random(n) < 0.125, rng.choice([1, 1, 2, 4], n), 0)
    memory = np.minimum(cores * rng.choice([1, 2, 4, 8], n), 240)
    units = np.where(gpus > 0, np.minimum(units, 4), units)
    return {"units": units, "unit_cores": cores, "unit_memory_gb": memory, "unit_gpus": gpus}


def workload(nodes: int, share: float, seed: int) -> Workload:
    """Jobs that ask for a share of the machine at 0 s, and 1,000 more at 1 s."""
    rng = np.random.default_rng(seed)
    first = asked(2 * nodes + 100, rng)
    m = int(np.searchsorted(np.cumsum(first["units"] * first["unit_cores"]), share * CORES * nodes))
    columns = {name: np.concatenate([values[:m], more]) for (name, values), more in zip(
        first.items(), asked(WAITING, rng).values(), strict=True)}  # fmt: skip
    limit = rng.integers(600, 86_400, m + WAITING)
    columns |= {"id": np.arange(m + WAITING), "submit": (np.arange(m + WAITING) >= m).astype(np.int64)}
    columns |= {"size": columns["units"] * columns["unit_cores"], "runtime": limit, "limit": limit}
    return Workload("scale", columns, nodes * CORES, Provenance("scale"))


@cache
def _warmed(name: str) -> None:
    """Nothing is compiled while the clock runs."""
    warm(policy(name))
    one_pass(100, name, 0.8, 0)


def solve(cell: Cell, _: Work) -> dict[str, float]:
    """One pass."""
    _warmed(cell.policy)
    return one_pass(int(cell.trace.split()[0]), cell.policy, int(cell.scenario.split()[0]) / 100, cell.seed)


def one_pass(nodes: int, name: str, share: float, seed: int) -> dict[str, float]:
    """Its CPU time, how many jobs it started, and how many units it started or reserved."""
    jobs, chosen = workload(nodes, share, seed), cast("RulePolicy", policy(name))
    rule = chosen.rule(Asked(bounded=True, keep=chosen.name.startswith("list"), nodes=True))
    going = new_replay(jobs, machine(nodes), rule, np.array(jobs.limit), place=chosen.place, room=len(jobs) + 1)
    going.advance(0)
    begun = time.process_time()
    going.advance(1)
    spent = time.process_time() - begun
    now = going.start == 1
    reserved = (going.run.jobs[layout.PLACE] > 1) & ~now if rule.common.keep_expected else np.zeros(len(jobs), bool)
    return {"pass_s": spent, "jobs_started": int(now.sum()), "units_placed": int(jobs["units"][now | reserved].sum())}


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """Medians over the seeds, and the lines of the figure: microseconds per unit placed."""
    kept = {run.cell: run.numbers for run in runs}
    found: dict[Key, Content] = {}
    for name, percent in CASES:
        for nodes in NODES:
            some = [kept[cell] for cell in _seeds(name, percent, nodes) if cell in kept]
            if len(some) == len(SEEDS):
                each = [1e6 * one["pass_s"] / max(1, one["units_placed"]) for one in some]
                times = [1e3 * one["pass_s"] for one in some]
                row = {"pass (ms)": median(times), "longest (ms)": max(times), "per unit (µs)": median(each)}
                row |= {
                    key.replace("_", " "): median(one[key] for one in some) for key in ("jobs_started", "units_placed")
                }
                found |= {(f"{name}, {percent} %", str(nodes), key): number for key, number in row.items()}
                if percent == 80:
                    found["figure", name, str(nodes)] = row["per unit (µs)"]
    first = found.get(("figure", CASES[0][0], str(NODES[0])))
    for nodes in NODES:
        found["growth", str(nodes), "logarithm"] = grown = log2(nodes) / log2(NODES[0])
        cost = found.get(("figure", CASES[0][0], str(nodes)))
        if isinstance(first, float) and isinstance(cost, float):
            found["growth", str(nodes), CASES[0][0]] = cost / first
            found["figure", "logarithm of the nodes", str(nodes)] = first * grown
    return found
