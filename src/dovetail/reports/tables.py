"""The tables of a page, as plain data: what stands in each cell, and which mark it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, nan

from dovetail.metrics.catalog import MAIN, METRICS, Metric
from dovetail.metrics.comparison import Comparison
from dovetail.reports.columns import DASH, change, exactly, interval, named, percent, scale
from dovetail.reports.page_data import Case, Entry


@dataclass(frozen=True)
class Head:
    """Over a column."""

    text: str
    unit: str = ""
    more_is_better: bool = False


@dataclass(frozen=True)
class TableCell:
    """One value of a table."""

    text: str
    number: str = ""
    """The value to the last digit, in seconds or as a plain ratio; empty where there is none."""
    exact: str = ""
    """The value with its unit, for readers who want to know more."""
    best: bool = False
    change: str = ""
    """Relative to the baseline."""
    interval: str = ""
    verdict: str = ""
    """Of the comparison with the baseline; empty where there is none."""
    test: str = ""
    """Number of pairs, p-values and effect of that comparison."""


@dataclass(frozen=True)
class Row:
    """One policy, or one case."""

    name: str
    cells: tuple[TableCell, ...]
    runs: int = 1


@dataclass(frozen=True)
class Table:
    """Rows under heads. The first row of a case is its baseline."""

    title: str
    heads: tuple[Head, ...]
    rows: tuple[Row, ...]


def judged(entry: Entry) -> bool:
    """Whether a policy was compared with the baseline on enough pairs to say anything."""
    return any(isfinite(found.low) and isfinite(found.high) for found in entry.versus.values())


def seen(case: Case, entry: Entry, key: str) -> tuple[float, float, float, str]:
    """Change against the baseline, its interval (nan: none) and verdict: of the comparison, else of the values."""
    if found := entry.versus.get(key):
        return found.change, found.low, found.high, found.verdict
    base, other = (each.metrics.get(key, nan) for each in (case.entries[0], entry))
    return change(base, other), nan, nan, ""


def of_case(case: Case) -> Table:
    """All policies of a case: value, and below it the change against the baseline."""
    shown = [c for c in METRICS if any(isfinite(entry.metrics.get(c.key, nan)) for entry in case.entries)]
    heads, columns = [], []
    for column in shown:
        values = [float(entry.metrics.get(column.key, nan)) for entry in case.entries]
        unit = scale(column, values)
        heads.append(Head(column.head, unit.unit, column.more_is_better))
        best = best_value(column, values)
        columns.append([
            _cell(case, entry, column, value, unit.text(value), value == best)
            for entry, value in zip(case.entries, values, strict=True)
        ])  # fmt: skip
    rows = zip(case.entries, zip(*columns, strict=True), strict=True) if columns else ()
    made = tuple(Row(named(entry.policy), cells, entry.runs) for entry, cells in rows)
    return Table(named(case.title), tuple(heads), made)


def best_value(column: Metric, values: Sequence[float]) -> float | None:
    """The best value of a column; None where there is nothing to choose, or most have it."""
    known = [value for value in values if isfinite(value)]
    if not known:
        return None
    best = max(known) if column.more_is_better else min(known)
    return best if known.count(best) <= len(known) / 2 else None


def _cell(case: Case, entry: Entry, column: Metric, value: float, text: str, best: bool) -> TableCell:
    if not isfinite(value):
        return TableCell(DASH)
    moved, low, high, verdict = seen(case, entry, column.key)
    base = entry is case.entries[0]
    return TableCell(
        text=text,
        number=repr(value),
        exact=exactly(column, value),
        best=best,
        change="" if base or not isfinite(moved) else percent(moved),
        interval="" if base or not (isfinite(low) and isfinite(high)) else interval(low, high),
        verdict="" if base else verdict,
        test=_test(entry.versus.get(column.key)),
    )


def _test(found: Comparison | None) -> str:
    """`48 pairs; Wilcoxon p: 0.0012, after Holm's correction 0.024; effect -0.61`."""
    if found is None or not isfinite(found.p_value):
        return ""
    p, holm = (f"{p:.2g}" if p >= 0.0001 else "below 0.0001" for p in (found.p_value, found.p_holm))
    return f"{found.pairs:,} pairs; Wilcoxon p: {p}, after Holm's correction {holm}; effect {found.effect:+.2f}"


def overview(cases: Sequence[Case]) -> list[Table]:
    """One table per main metric: cases in rows, and how each policy changed it against the case's baseline."""
    policies = list(dict.fromkeys(entry.policy for case in cases for entry in case.entries[1:]))
    made = []
    for column in MAIN:
        rows = tuple(Row(named(case.title), _changes(case, policies, column)) for case in cases if case.entries)
        if any(cell.change for row in rows for cell in row.cells):
            heads = (Head("baseline"), *(Head(named(policy)) for policy in policies))
            made.append(Table(f"Change of the {column.words}", heads, (*rows, *_totals(rows))))
    return made


def _changes(case: Case, policies: Sequence[str], column: Metric) -> tuple[TableCell, ...]:
    base = float(case.entries[0].metrics.get(column.key, nan))
    unit = scale(column, [base])
    text = f"{unit.text(base)} {unit.unit}".strip() if isfinite(base) else DASH
    cells = [TableCell(text, repr(base) if isfinite(base) else "", exactly(column, base))]
    entries = {entry.policy: entry for entry in reversed(case.entries[1:])}
    for policy in policies:
        moved, low, high, verdict = seen(case, entries[policy], column.key) if policy in entries else (nan,) * 3 + ("",)
        if isfinite(moved):
            bounds = interval(low, high) if isfinite(low) and isfinite(high) else ""
            cells.append(TableCell("", repr(moved), bounds, change=percent(moved), verdict=verdict))
        else:
            cells.append(TableCell(DASH))
    return tuple(cells)


def _totals(rows: Sequence[Row]) -> tuple[Row, ...]:
    """In how many cases each policy was better and worse, where there are verdicts to count."""
    if not any(cell.verdict for row in rows for cell in row.cells):
        return ()
    cells = []
    for column in list(zip(*(row.cells for row in rows), strict=True))[1:]:
        verdicts = [cell.verdict for cell in column if cell.verdict]
        said = f"{verdicts.count('better')} / {verdicts.count('worse')} of {len(verdicts)}" if verdicts else DASH
        cells.append(TableCell(said))
    return (Row("better / worse", (TableCell(""), *cells)),)
