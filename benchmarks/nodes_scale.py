"""How a pass by node grows with the machine: 1,000 waiting jobs on 1,000 to 160,000 mixed nodes.

python benchmarks/nodes_scale.py [--nodes 1000,10000] [--seeds 5] [--page docs/results]

Each machine is 70 % thin nodes (64 cores, 256 GB), 20 % fat (1,024 GB) and 10 % with 4 GPUs (512 GB). Jobs of 1 to 64
units fill it to a share of its cores; then 1,000 more arrive at once, and the one pass that decides on them is timed,
in CPU seconds. `--page` writes docs/results/nodes-scale.md and its figure.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from math import log2
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.policies.base import Asked

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from dovetail.engine.compiled import new_replay
from dovetail.engine.replay import warm
from dovetail.kernels import state as layout
from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.workload import Column, Provenance, Workload
from dovetail.policies.base import RulePolicy
from dovetail.policies.registry import policy
from dovetail.studies.papers.page import grid, picture

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WAITING: Final = 1000
CORES: Final = 64
NODES: Final = (1_000, 2_500, 10_000, 40_000, 160_000)
CASES: Final = (
    ("greedy-fcfs", 0.80),
    ("easy", 0.80),
    ("easy", 0.93),
    ("list:reserve=10", 0.93),
    ("list:reserve=100", 0.93),
)
"""Policies, and the share of the cores that is asked for before the 1,000 jobs come."""

Row = dict[str, Any]


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
    """What so many jobs ask for: half of them one unit, the others up to 64; one in eight needs GPUs."""
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


def measured(nodes: int, name: str, share: float, seed: int) -> Row:
    """One pass: its CPU time, and how many units it started or reserved."""
    jobs, chosen = workload(nodes, share, seed), policy(name)
    assert isinstance(chosen, RulePolicy)
    rule = chosen.rule(Asked(bounded=True, keep=chosen.name.startswith("list")))
    going = new_replay(jobs, machine(nodes), rule, np.array(jobs.limit), place=chosen.place, room=len(jobs) + 1)
    going.advance(0)
    begun = time.process_time()
    going.advance(1)
    spent = time.process_time() - begun
    now = going.start == 1
    reserved = (going.run.jobs[layout.PLACE] > 1) & ~now if rule.keep_expected else np.zeros(len(jobs), bool)
    return {
        "policy": name, "share": share, "nodes": nodes, "seed": seed, "pass_s": spent, "jobs_started": int(now.sum()),
        "units_started": int(jobs["units"][now].sum()), "units_reserved": int(jobs["units"][reserved].sum()),
    }  # fmt: skip


def per_unit(rows: list[Row]) -> float:
    """Median microseconds per unit that was started or reserved."""
    return float(median(1e6 * r["pass_s"] / max(1, r["units_started"] + r["units_reserved"]) for r in rows))


def drawn(rows: list[Row], nodes: list[int]) -> Figure:
    """Cost per unit against the number of nodes, and what the logarithm would make of the first."""
    from dovetail.reports.style import STROKES, figure

    made = figure(440, 270)
    ax = made.subplots()
    for k, (name, share) in enumerate(CASES[:2]):
        costs = [per_unit(picked(rows, name, share, n)) for n in nodes]
        ax.plot(nodes, costs, color=STROKES[k].colour, marker="o", markersize=3, label=name)
        if k == 0:
            grown = [costs[0] * log2(n) / log2(nodes[0]) for n in nodes]
            ax.plot(nodes, grown, color="#888888", linestyle=":", label="logarithm of the nodes")
    ax.set_xscale("log")
    ax.set_xticks(nodes, [f"{n:,}" for n in nodes])
    ax.minorticks_off()
    ax.set_ylim(0)
    ax.set_xlabel("nodes (logarithmic)")
    ax.set_ylabel("CPU microseconds per unit placed")
    ax.legend(frameon=False, fontsize=8)
    return made


def picked(rows: list[Row], name: str, share: float, nodes: int) -> list[Row]:
    return [r for r in rows if (r["policy"], r["share"], r["nodes"]) == (name, share, nodes)]


def page(rows: list[Row], nodes: list[int], seeds: int, folder: Path) -> None:
    """docs/results/nodes-scale.md and its figure."""
    head = ["policy", "cores asked for before", "nodes", "pass (ms)", "longest (ms)", "jobs started", "units placed",
            "per unit (µs)"]  # fmt: skip
    lines = []
    for name, share in CASES:
        for n in nodes:
            here = picked(rows, name, share, n)
            times = [1e3 * r["pass_s"] for r in here]
            placed = median(r["units_started"] + r["units_reserved"] for r in here)
            lines.append([
                f"`{name}`", f"{share:.0%}", f"{n:,}", f"{median(times):.1f}", f"{max(times):.1f}",
                f"{median(r['jobs_started'] for r in here):.0f}", f"{placed:,.0f}", f"{per_unit(here):.1f}",
            ])  # fmt: skip
    growth = [per_unit(picked(rows, *CASES[0], n)) for n in (nodes[0], nodes[-1])]
    text = f"""# One pass on large machines

Made by `python benchmarks/nodes_scale.py --page docs/results`, on one core of a shared machine, CPU time. {WAITING:,}
jobs arrive at once on a machine of three kinds of node of which jobs before them ask for a part of the cores; the pass
that decides on them is timed. Medians of {seeds} seeds. Placed are units that were started, or reserved.

{grid(head, lines)}

![Cost per unit](nodes-scale.svg)

From {nodes[0]:,} to {nodes[-1]:,} nodes the cost per unit placed by `{CASES[0][0]}` grows by a factor of
{growth[1] / growth[0]:.2f}; the logarithm of the number of nodes by {log2(nodes[-1]) / log2(nodes[0]):.2f}. A start
looks through the classes of nodes with different amounts free, not through the nodes. A reservation looks through the
classes of nodes with different futures, which on a full machine are about as many as running jobs: with many
reservations a pass grows with the machine.
"""
    (folder / "nodes-scale.md").write_text(text)
    (folder / "nodes-scale.svg").write_text(picture(lambda: drawn(rows, nodes), "nodes-scale", "Cost per unit placed"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", default=",".join(map(str, NODES)))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--page", type=Path)
    options = parser.parse_args()
    nodes = [int(text) for text in options.nodes.split(",")]
    for name, _ in CASES:
        warm(policy(name))
    measured(100, "easy", 0.8, 0)  # compiled by node
    rows = []
    for name, share in CASES:
        for n in nodes:
            for seed in range(options.seeds):
                rows.append(measured(n, name, share, seed))
                print(json.dumps(rows[-1]), flush=True)
    if options.page is not None:
        page(rows, nodes, options.seeds, options.page)


if __name__ == "__main__":
    main()
