"""Alibaba's cluster of 2023 filled under each rule of placement, and under one rule with other typical pods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Final

import numpy as np

from dovetail.arrays import Floats
from dovetail.io.alibaba import read_nodes, read_pods
from dovetail.metrics.comparison import compare, mean_interval
from dovetail.model.cluster import WHOLE, Cluster
from dovetail.model.machine import PLACES
from dovetail.model.requests import requests_of, typical
from dovetail.model.workload import Workload
from dovetail.studies.task import Cell
from reproductions.alibaba_gpus.filling import POINTS, UPTO, drawn, filled, shared_asked, shared_capacity
from reproductions.claims import NO, PART, YES, Judged
from reproductions.running import Work
from reproductions.runs import Points, Run, Runs
from reproductions.values import Content, Key, Values

NODES: Final = "heterogeneous/alibaba2023_openb_node_list_all_node.csv.gz"
PODS: Final = "heterogeneous/alibaba2023_openb_pod_list_default.csv.gz"
SEEDS: Final = range(10, 20)
"""Not 0 to 9: what to try was looked for with those."""
WHEN: Final = {"at saturation (100 % asked for)": "free_100", "at the end (130 %)": "free_130"}
BASE: Final = "best"
GOAL: Final = -25
"""How much less than under best fit is to be left free, in per cent."""
TYPICAL: Final = {
    "frequent": (False, True, False), "all": (False, False, False), "frequent, earlier": (True, True, False),
    "weighed": (False, True, True), "all, weighed": (False, False, True), "weighed, earlier": (True, True, True),
}  # fmt: skip
"""Which pods are taken for typical: whether of the earlier half alone, the 64 first ones, weighed by their GPUs."""
VARIANTS: Final = {
    **{place: ("all pods", "frequent", place) for place in PLACES},
    **{name: ("all pods", name, "gradient") for name in ("all", "frequent, earlier", "weighed", "all, weighed")},
    "later": ("later half", "frequent, earlier", BASE),
    "later, frequent": ("later half", "frequent, earlier", "gradient"),
    "later, weighed": ("later half", "weighed, earlier", "gradient"),
}
"""By row of the tables: the list that pods are drawn from, typical pods, and the rule of placement."""
LIST: Final = Cell("all pods", "", "all", "none", "limit", 0)
"""What is in the list of pods: nothing is placed."""


def cells(_: Work) -> list[Cell]:
    """Every variant with every seed; the same seed draws the same pods from a list."""
    return [LIST, *(cell for name in VARIANTS for cell in _seeds(name))]


def _seeds(name: str) -> list[Cell]:
    pods, known, place = VARIANTS[name]
    return [Cell(pods, known, "all", place, "limit", seed) for seed in SEEDS]


@cache
def _read(nodes: Path, pods: Path) -> tuple[Cluster, Workload]:
    return read_nodes(nodes), read_pods(pods)


def solve(cell: Cell, work: Work) -> dict[str, float | Points]:
    """Fill the cluster once."""
    cluster, pods = _read(work.log(NODES), work.log(PODS))
    asked, half = shared_asked(requests_of(pods, cluster), cluster), len(pods) // 2
    shares, counts = np.unique(asked[(asked > 0) & (asked < WHOLE)], return_counts=True)
    common = int(shares[np.argmax(counts)])
    if cell == LIST:
        return {
            "nodes": cluster.nodes, "gpus": shared_capacity(cluster), "pods": len(pods), "common": common,
            "requests": len(typical(requests_of(pods, cluster), len(pods))), "common_part": counts.max() / len(pods),
            "small_part": float(((asked > 0) & (asked <= WHOLE - common)).mean()),
        }  # fmt: skip
    early, few, weigh = TYPICAL[cell.scenario]
    source = requests_of(_part(pods, slice(0, half)) if early else pods, cluster)
    known = typical(source, 64 if few else len(pods), cluster.shared_at if weigh else -1)
    chosen = pods if cell.trace == "all pods" else _part(pods, slice(half, None))
    made = filled(drawn(chosen, cluster, cell.seed), replace(cluster, typical=known), cell.policy)
    figure: dict[str, Points] = {}
    if cell.trace == "all pods" and cell.scenario in ("frequent", "weighed"):
        figure["free"] = [(percent, round(made.free(percent), 3)) for percent in range(80, UPTO + 1, 2)]
    if cell.scenario == "frequent":  # the fragments of others are of other typical pods
        figure["fragments"] = [(p, round(float(f), 3)) for p, f in zip(POINTS, made.fragments, strict=True)]
    return {
        "free_100": made.free(100), "free_130": made.free(UPTO), "pieces": made.pieces,
        "fragments_50": float(made.fragments[POINTS.index(50)]),
        "fragments_100": float(made.fragments[POINTS.index(100)]), "first_lost": made.first_lost,
        "lost": made.lost(100), "lost_several": made.lost(100, 1), "placed": int(made.stays.sum()),
        "beside": int(made.stays[made.asked == common].sum()) * (WHOLE - common) / WHOLE, "fill_s": made.cpu_s,
        **figure,
    }  # fmt: skip


def _part(pods: Workload, rows: slice) -> Workload:
    """A part of the list, which is in order of time."""
    return replace(pods, columns={name: values[rows] for name, values in pods.columns.items()})


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """Means over the seeds with their intervals, what is free against `best` seed by seed, and the lines of the
    figure."""
    kept = {run.cell: run for run in runs}
    if LIST not in kept or not all(cell in kept for name in VARIANTS for cell in _seeds(name)):
        return {}
    about = kept[LIST].numbers
    found: dict[Key, Content] = {("list", "all pods", key): one for key, one in about.items()}
    by_name = {name: [kept[cell] for cell in _seeds(name)] for name in VARIANTS}
    most = max(PLACES, key=lambda place: _each(by_name[place], "free_100").mean())
    found["list", "all pods", "most"] = most
    for name, some in by_name.items():
        for when, metric in WHEN.items():
            row = dict(zip(("free", "low", "high"), mean_interval(_each(some, metric).tolist()), strict=True))
            base = _each(by_name["later" if name.startswith("later") else BASE], metric)
            row |= _less(base, _each(some, metric))
            found |= {(when, name, key): one for key, one in row.items()}
        for metric in ("fragments_50", "fragments_100", "first_lost", "lost", "lost_several", "pieces", "beside"):
            found["rules", name, metric] = float(_each(some, metric).mean())
        found["rules", name, "whole"] = float((_each(some, "free_130") - _each(some, "pieces")).mean())
        found["rules", name, "µs"] = 1e6 * float(_each(some, "fill_s").sum() / _each(some, "placed").sum())
        for curve in ("free", "fragments"):
            for points in zip(*(run.curves.get(curve, ()) for run in some), strict=True):
                mean = sum(y for _, y in points) / len(points)
                line = "gradient, weighed" if name == "weighed" else name
                found[f"figure: {curve}", line, f"{points[0][0]:g}"] = 100 * mean / about["gpus"]
    most_free = _less(_each(by_name[most], "free_100"), _each(by_name["gradient"], "free_100"))
    return found | {("published", "gradient", key): one for key, one in most_free.items()}


def _each(some: Sequence[Run], metric: str) -> Floats:
    return np.array([run.numbers[metric] for run in some])


def _less(base: Floats, other: Floats) -> dict[str, float]:
    """How much less is free than under another rule, seed by seed, in per cent."""
    less = compare(base, other)
    change = {"change": less.change, "change low": less.low, "change high": less.high}
    return {"base": less.base, **{key: 100 * one for key, one in change.items()}}


def quarter(values: Values, when: str, row: str) -> Judged:
    """Whether at least a quarter less is free than under best fit: yes if the whole interval is there, in part if it
    reaches there."""
    change, low, high, free, base = (
        values.need(when, row, key) for key in ("change", "change low", "change high", "free", "base")
    )
    ours = f"{change:+.1f} % ({low:+.1f} to {high:+.1f}): {free:.0f} against {base:.0f} GPUs"
    return Judged(ours, YES if high <= GOAL else PART if low <= GOAL else NO)
