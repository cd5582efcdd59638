"""What pages on tables of list scheduling (Packing and CP) share: metrics under several rules of ties and counting."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import nan
from statistics import fmean
from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.metrics import Outcomes, af_s, awf_s, bsld, counted, pasf_s
from dovetail.model.schedule import Schedule
from reproductions.claims import near, rounds
from reproductions.runs import Runs
from reproductions.values import Content, Key, Pair, Values

METRICS: Final = {"bsld": "BSLD", "af_s": "AF", "awf_s": "AWF", "p2sf_s": "P2SF"}
"""Keys of metrics, and what the papers call them."""
TRACES: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie")
"""The traces that can be replayed; the papers' sixth, BW201911, could not be had."""
COUNTS: Final = {"all": "", "ended": "_ended", "but last": "_but_last", "middle": "_middle"}
"""Which jobs a metric counts, and how its name ends then. `all` and `ended` are Dovetail's rules. `but last` leaves out
the job that ends last, `middle` the first 1 % to end and those that do not end before the last submission: both are in
the authors' script."""
TIES: Final = ("submit", "authors")
"""How equal keys of an order are told apart. `submit`: earlier submit, then earlier line, for all orders.
`authors`: SJF by size, SPF by area, and then the same."""
WITH_TIES: Final = {
    "list-sjf": "list:order=../ties.py:sjf",
    "greedy-sjf": "list:order=../ties.py:sjf,reserve=none",
    "list-spf": "list:order=../ties.py:spf",
}
"""The policies that change with the rule for ties, and what they are under `authors`."""
OWN, ENDED, AUTHORS = "submit, all", "submit, ended", "authors, but last"
SHOWN: Final = (OWN, ENDED, AUTHORS)
"""The rules whose numbers stand in a cell, after the printed one."""
FORMULAS: Final[Mapping[str, Callable[[Outcomes], float]]] = {
    "bsld": bsld, "af_s": af_s, "awf_s": awf_s, "p2sf_s": pasf_s
}  # fmt: skip


def counts(schedule: Schedule, rule: str) -> npt.NDArray[np.bool_]:
    """Which jobs count under one of COUNTS."""
    end = schedule.end
    if rule == "but last":
        kept: npt.NDArray[np.bool_] = end < end.max()
        return kept
    if rule == "middle":
        first = np.sort(end)[len(end) // 100]
        inside: npt.NDArray[np.bool_] = (end > first) & (end < schedule.arrive.max())
        return inside
    return counted(schedule, rule)


def measure(schedule: Schedule, _: Callable[[str], Schedule]) -> dict[str, float]:
    """The four metrics of the papers under each rule of counting."""
    found: dict[str, float] = {}
    for rule, ending in COUNTS.items():
        mask = counts(schedule, rule)
        jobs = Outcomes(schedule.workload.size[mask], schedule.workload.runtime[mask], schedule.wait[mask])
        found |= {metric + ending: formula(jobs) for metric, formula in FORMULAS.items()}
    return found


def rules() -> Iterator[tuple[str, str]]:
    """Every pair of rules: ties, counting."""
    return ((ties, counting) for ties in TIES for counting in COUNTS)


def percents(
    runs: Runs, printed: Mapping[Key, Content], policies: Mapping[str, str], base: str, other: str = ""
) -> dict[Key, Content]:
    """The cells of a printed table in per cent of the row `base`, under each pair of rules: those of the table
    `METRIC, ESTIMATE` are in the table `TIES, COUNTING: METRIC, ESTIMATE`. `other` stands behind the name of each trace
    whose runs are to be taken in its place."""
    keys = {name: key for key, name in METRICS.items()}
    found: dict[Key, Content] = {}
    for table, row, trace in (key for key in printed if key[2] in TRACES and key[1] != base):
        metric, _, estimate = table.partition(", ")
        for ties, counting in rules():
            named = [WITH_TIES.get(p, p) if ties == "authors" else p for p in (policies[row], policies[base])]
            pair = [runs.number(keys[metric] + COUNTS[counting], trace + other, p, estimate) for p in named]
            if pair[0] is not None and pair[1]:
                found[f"{ties}, {counting}: {table}", row, trace] = 100 * pair[0] / pair[1]
    return found


def pairs(
    found: Mapping[Key, Content], printed: Mapping[Key, Content], rule: str, traces: tuple[str, ...] = TRACES
) -> list[Pair]:
    """The cells of a printed table, under one pair of rules, that are printed legibly."""
    made = []
    for key, number in printed.items():
        ours = found.get((f"{rule}: {key[0]}", key[1], key[2]))
        if isinstance(ours, float) and isinstance(number, float) and key[2] in traces:
            made.append(Pair(key, ours, number))
    return made


def fit(cells: list[Pair]) -> dict[str, float]:
    """How well cells meet the printed numbers: how many there are, within one point or not, equal or not; the mean
    absolute difference."""
    off = fmean(abs(one.ours - one.printed) for one in cells) if cells else nan
    close, equal = sum(near(one, 1) for one in cells), sum(rounds(one) for one in cells)
    many = len(cells)
    return {"cells": many, "near": close, "far": many - close, "equal": equal, "unequal": many - equal, "off": off}


def fits(found: Mapping[Key, Content], printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """The fit under every pair of rules: the table `fits`, a row for each."""
    made: dict[Key, Content] = {}
    for ties, counting in rules():
        one = fit(pairs(found, printed, f"{ties}, {counting}"))
        made |= {("fits", f"{ties}, {counting}", name): value for name, value in one.items()}
    return made


def causes(found: Mapping[Key, Content], printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """Every cell that is off under Dovetail's own rules, by what brings it within one point: the table `causes`, with
    how many there are and a list of them."""
    tried = {"ties alone": "authors, all", "the one job alone": "submit, but last", "both together": AUTHORS}
    met = {cause: {one.key for one in pairs(found, printed, rule) if near(one, 1)} for cause, rule in tried.items()}
    lists: dict[str, dict[str, list[str]]] = {}
    for one in pairs(found, printed, OWN):
        if not near(one, 1):
            cause = next((cause for cause in met if one.key in met[cause]), "neither")
            (metric, _, estimate), row, trace = one.key[0].partition(", "), one.key[1], one.key[2]
            lists.setdefault(cause, {}).setdefault(f"{metric}, {row}", []).append(f"{trace} ({estimate})")
    made: dict[Key, Content] = {}
    for cause in (*tried, "neither"):
        lines = lists.get(cause, {})
        made["causes", cause, "cells"] = float(sum(len(where) for where in lines.values()))
        made["causes", cause, "list"] = "\n".join(f"- {row}: {', '.join(where)}" for row, where in lines.items())
    return made


def beside(values: Values, table: str, row: str, trace: str) -> str:
    """A cell: the printed number, and ours under the rules SHOWN, bold where it is more than one point off."""
    printed = values.printed[table, row, trace]
    texts = [printed if isinstance(printed, str) else f"{printed:.0f}"]
    for rule in SHOWN:
        ours = values.need(f"{rule}: {table}", row, trace)
        far = isinstance(printed, float) and abs(ours - printed) > 1
        texts.append(f"**{ours:.0f}**" if far else f"{ours:.0f}")
    return " · ".join(texts)
