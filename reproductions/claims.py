"""Whether claims hold. A claim says what must hold by a word of a fixed vocabulary, or names a function of page.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import floor
from statistics import fmean, median
from typing import Any, Final

from dovetail.errors import SettingError
from reproductions.folders import Claim, Folder
from reproductions.values import NotRunError, Pair, Value, Values

YES, PART, NO, NOT_RUN = "yes", "in part", "no", "not run"
TABLE: Final = "claims"
"""The table of carried.csv that has judgements: the row is the statement, the columns are `ours` and `holds`."""
REDUCE: Final[Mapping[str, Callable[[Sequence[float]], float]]] = {
    "mean": fmean, "median": median, "min": min, "max": max
}  # fmt: skip


@dataclass(frozen=True)
class Judged:
    """Our numbers for a claim, in words, and whether it holds."""

    ours: str
    holds: str


@dataclass(frozen=True)
class Statement:
    """A claim with its judgement."""

    whose: str
    says: str
    ours: str
    holds: str
    carried: str = ""
    """The version that judged it, where its numbers were not kept."""


@dataclass(frozen=True)
class Tally:
    """How claims fare."""

    claims: int
    hold: int
    part: int
    not_run: int

    def __str__(self) -> str:
        rest = [(self.part, PART), (self.not_run, NOT_RUN)]
        more = "".join(f", {count} {word}" for count, word in rest if count)
        verb = "holds" if self.hold == 1 else "hold"
        return f"{self.hold} of {self.claims} {verb}{more}"


def verdict(good: Iterable[bool], *, half: bool = False, strict: bool = False) -> str:
    """yes if it is so in all cells, in part if in some (in half of them), else no."""
    found = list(good)
    if not found:
        return NOT_RUN
    enough = sum(found) * 2 >= len(found) if half else any(found)
    return YES if all(found) else PART if enough and not strict else NO


def near(pair: Pair, by: float) -> bool:
    """Whether ours is at most so far from the printed number."""
    return abs(pair.ours - pair.printed) <= by


def rounds(pair: Pair) -> bool:
    """Whether ours rounds to the printed whole number."""
    return floor(pair.ours + 0.5) == pair.printed


WORDS: Final = ("near", "rounds", "sign", "above", "below", "least", "most")
"""What must hold: README.md says what each means."""


def _good(claim: Claim, values: Values) -> list[bool]:
    """For each cell that a claim is about, whether it is as its word says."""
    if claim.holds in ("above", "below"):
        return [(a - b if claim.holds == "above" else b - a) > claim.by for a, b in _compared(claim, values)]
    if claim.holds in ("least", "most"):
        found, pick = values.numbers(claim.table, claim.row, claim.column), min if claim.holds == "least" else max
        tables = dict.fromkeys(key[0] for key in found)
        best = [pick((key for key in found if key[0] == one), key=lambda key: found[key]) for one in tables]
        return [claim.than in key for key in best]
    pairs = values.pairs(claim.table, claim.row, claim.column)
    if claim.holds == "near":
        return [near(pair, claim.by) for pair in pairs]
    if claim.holds == "rounds":
        return [rounds(pair) for pair in pairs]
    return [one.ours * one.printed > 0 for one in pairs if max(abs(one.ours), abs(one.printed)) > claim.by]


def _compared(claim: Claim, values: Values) -> list[tuple[float, float]]:
    found = values.numbers(claim.table, claim.row, claim.column)
    if isinstance(claim.than, str):
        others = ((ours, values.number(key[0], claim.than, key[2])) for key, ours in found.items())
        return [(ours, other) for ours, other in others if other is not None]
    numbers = _numbers(claim, values)
    if claim.reduce and numbers:
        numbers = [REDUCE[claim.reduce](numbers)]
    return [(ours, float(claim.than or 0)) for ours in numbers]


def _numbers(claim: Claim, values: Values) -> list[float]:
    found = values.numbers(claim.table, claim.row, claim.column).values()
    return [abs(one) for one in found] if claim.size else list(found)


def judge(claim: Claim, folder: Folder, values: Values) -> Judged:
    """Whether a claim holds. Its `ours` may have {good}, {cells}, {mean}, {median}, {min}, {max}, {at} and {than}: how
    many cells are as they should be, how many there are, what their numbers come to, in which column the least is, and
    what the first is compared with."""
    if claim.holds == "function":
        try:
            judged: Judged = folder.function(claim.function)(values, **claim.given)
        except NotRunError:
            return Judged("-", NOT_RUN)
        return judged
    if claim.holds not in WORDS:
        raise SettingError(f"{folder.name}: no word {claim.holds!r}: choose from {', '.join(WORDS)} and function")
    good = _good(claim, values)
    if not good:
        return Judged("-", NOT_RUN)
    numbers = _numbers(claim, values)
    facts: dict[str, Any] = {name: made(numbers) for name, made in REDUCE.items()}
    found = values.numbers(claim.table, claim.row, claim.column)
    facts |= {"good": sum(good), "cells": len(good), "at": min(found, key=lambda key: found[key])[2]}
    if claim.holds in ("above", "below"):
        facts["than"] = _compared(claim, values)[0][1]
    return Judged(claim.ours.format_map(facts), verdict(good, half=claim.half, strict=claim.strict))


def statements(folder: Folder, values: Values) -> list[Statement]:
    """All claims of a page with their judgements; that of carried.csv where it has one."""
    found = []
    for claim in (one for written in folder.claims for one in spread(written)):
        kept = [values.ours.get((TABLE, claim.says, column)) for column in ("ours", "holds")]
        if isinstance(kept[0], Value) and isinstance(kept[1], Value):
            made, version = Judged(str(kept[0].content), str(kept[1].content)), kept[1].version
        else:
            made, version = judge(claim, folder, values), ""
        found.append(Statement(claim.whose, claim.says, made.ours, made.holds, version))
    return found


def spread(claim: Claim) -> list[Claim]:
    """A claim for each combination of what its `each` lists."""
    if not claim.each:
        return [claim]
    chosen = [dict(zip(claim.each, some, strict=True)) for some in product(*claim.each.values())]
    texts = claim.model_dump(include={"says", "table", "row", "column", "than", "given"})
    return [claim.model_copy(update={**_filled(texts, names), "each": {}}) for names in chosen]


def _filled(part: Any, names: Mapping[str, str]) -> Any:
    """The texts in a part of a claim with {name} replaced."""
    if isinstance(part, str):
        for name, text in names.items():
            part = part.replace("{" + name + "}", text)
        return part
    if isinstance(part, dict):
        return {key: _filled(one, names) for key, one in part.items()}
    return [_filled(one, names) for one in part] if isinstance(part, list) else part


def tally(said: Sequence[Statement], whose: str = "") -> Tally:
    """How the claims of one side fare, or of both."""
    some = [one.holds for one in said if whose in ("", one.whose)]
    return Tally(len(some), some.count(YES), some.count(PART), some.count(NOT_RUN))
