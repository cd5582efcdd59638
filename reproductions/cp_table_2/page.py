"""Table 2 of CP from the runs: its rows of list scheduling."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor
from typing import Final

from reproductions.claims import near, rounds
from reproductions.list_tables import AUTHORS, beside, causes, fits, measure, pairs, percents
from reproductions.runs import Runs
from reproductions.values import Content, Key, Pair

__all__ = ["beside", "measure", "values"]

POLICIES: Final = {
    "List-REG": "list-reg", "List-SPF": "list-spf", "List-SAF": "list-saf", "List-SJF": "list-sjf",
    "List-LAF": "list-laf", "EASY": "easy",
}  # fmt: skip
KNOWN: Final = {"runtime": "run time known", "limit": "limit as the estimate"}


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """The table under all rules, how well each fits, and what the authors' rules leave over."""
    found = percents(runs, printed, POLICIES, "List-REG")
    cells = pairs(found, printed, AUTHORS)
    off = [one for one in cells if not rounds(one)]
    twice = sum(_once(_once(one.ours * 10) / 10) == one.printed for one in cells)
    left: dict[Key, Content] = {
        ("left over", "far", "list"): "\n".join(_told(one) for one in off if not near(one, 1)),
        ("left over", "near", "list"): "\n".join(_told(one) for one in off if near(one, 1)),
        ("left over", "rounded twice", "cells"): float(twice),
    }
    return {**found, **fits(found, printed), **causes(found, printed), **left}


def _told(one: Pair) -> str:
    (metric, _, estimate), row, trace = one.key[0].partition(", "), one.key[1], one.key[2]
    return f"- {metric}, {row}, {trace}, {KNOWN[estimate]}: printed {one.printed:.0f}, ours {one.ours:.2f}"


def _once(value: float) -> int:
    return floor(value + 0.5)
