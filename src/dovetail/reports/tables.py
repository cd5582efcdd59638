"""The tables of a page, as plain data: what stands in each cell, and which mark it gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Final

from dovetail.metrics.catalog import MAIN, METRICS, Metric
from dovetail.metrics.comparison import Comparison
from dovetail.reports.columns import DASH, change, exactly, interval, named, percent, scale
from dovetail.reports.page_data import Case, Entry

EXPERT: Final = ("bsld", "af_s", "awf_s", "p2sf_s", "loss_of_capacity")
"""Metrics whose names say little to who does not know them."""


@dataclass(frozen=True)
class Head:
    """Over a column."""

    text: str
    unit: str = ""
    more_is_better: bool = False
    meaning: str = ""
    """What the column measures, in a sentence or two."""
    expert: bool = False
    """Whether it needs that to be read at all."""
    key: str = ""
    """The metric below it."""


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
    """Of this value, relative to the baseline's."""
    paired: str = ""
    """The change pair by pair; empty where there is none."""
    range: str = ""
    """Its interval."""
    verdict: str = ""
    """Of that comparison."""
    clear: bool = False
    """Whether that comparison says of the change of the value that it is no chance."""
    test: str = ""
    """Number of pairs, p-values and effect of that comparison."""


@dataclass(frozen=True)
class Row:
    """One policy, or one case."""

    name: str
    cells: tuple[TableCell, ...]
    runs: int = 1
    note: str = ""
    """What a reader must know of its numbers."""
    entire: bool = True
    """Whether they are of all jobs."""


@dataclass(frozen=True)
class Table:
    """Rows under heads. The first row of a case is its baseline."""

    title: str
    heads: tuple[Head, ...]
    rows: tuple[Row, ...]


def judged(entry: Entry) -> bool:
    """Whether a policy was compared with the baseline on enough pairs to say anything."""
    return any(paired(entry, key) for key in entry.versus)


def moved(case: Case, entry: Entry, key: str) -> float:
    """The change of a value against the baseline's; nan where one of them is not of all jobs."""
    pair = (case.entries[0], entry)
    return nan if any(each.unstarted for each in pair) else change(*(each.metrics.get(key, nan) for each in pair))


def paired(entry: Entry, key: str) -> Comparison | None:
    """The comparison with the baseline pair by pair; None where it has no interval."""
    found = entry.versus.get(key)
    return found if found and isfinite(found.low) and isfinite(found.high) else None


def agreed(by: float, found: Comparison) -> str:
    """The verdict of the pairs, for a place that shows the change of the values alone: "unclear" where that goes the
    other way."""
    return found.verdict if by * found.change > 0 else "unclear"


def in_pairs(found: Comparison | None) -> str:
    """`−20.1 % [−24.0, −16.0]`; empty where there is no comparison."""
    return f"{percent(found.change)} {interval(found.low, found.high)}" if found else ""


def of_case(case: Case) -> Table:
    """All policies of a case: value, and below it the change against the baseline."""
    shown = [c for c in METRICS if any(isfinite(entry.metrics.get(c.key, nan)) for entry in case.entries)]
    heads, columns = [], []
    for column in shown:
        values = [float(entry.metrics.get(column.key, nan)) for entry in case.entries]
        unit = scale(column, values)
        heads.append(
            Head(column.head, unit.unit, column.more_is_better, column.meaning, column.key in EXPERT, column.key)
        )
        best = best_value(case, column)
        columns.append([
            _cell(case, entry, column, value, unit.text(value), value == best and entry.contends)
            for entry, value in zip(case.entries, values, strict=True)
        ])  # fmt: skip
    rows = zip(case.entries, zip(*columns, strict=True), strict=True) if columns else ()
    made = tuple(Row(named(entry.policy), cells, entry.runs, entry.note, not entry.unstarted) for entry, cells in rows)
    return Table(named(case.title), tuple(heads), made)


def split(table: Table) -> tuple[Table, Table]:
    """The columns that all readers understand, and those for experts; where there are no plain ones, all are taken for
    plain."""
    plain = [at for at, head in enumerate(table.heads) if not head.expert] or list(range(len(table.heads)))
    expert = [at for at in range(len(table.heads)) if at not in plain]
    first, second = (
        Table(
            table.title,
            tuple(table.heads[at] for at in shown),
            tuple(replace(row, cells=tuple(row.cells[at] for at in shown)) for row in table.rows),
        )
        for shown in (plain, expert)
    )
    return first, second


def best_value(case: Case, column: Metric) -> float | None:
    """The best value of a column, of those that contend; None where there is nothing to choose, or most
    have it."""
    whole = [float(entry.metrics.get(column.key, nan)) for entry in case.entries if entry.contends]
    known = [value for value in whole if isfinite(value)]
    if not known:
        return None
    best = max(known) if column.more_is_better else min(known)
    return best if known.count(best) <= len(known) / 2 else None


def _cell(case: Case, entry: Entry, column: Metric, value: float, text: str, best: bool) -> TableCell:
    if not isfinite(value):
        return TableCell(DASH)
    by, found = moved(case, entry, column.key), paired(entry, column.key)
    return TableCell(
        text=text,
        number=repr(value),
        exact=exactly(column, value),
        best=best,
        change="" if entry is case.entries[0] or not isfinite(by) else percent(by),
        paired=percent(found.change) if found else "",
        range=interval(found.low, found.high) if found else "",
        verdict=found.verdict if found else "",
        clear=found is not None and agreed(by, found) != "unclear",
        test=_test(found),
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
        entry = entries.get(policy)
        by, found = (moved(case, entry, column.key), paired(entry, column.key)) if entry else (nan, None)
        if isfinite(by):
            verdict, over = (agreed(by, found), f"{in_pairs(found)} over {case.pairing}") if found else ("", "")
            cells.append(TableCell("", repr(by), over, change=percent(by), verdict=verdict))
        else:
            cells.append(TableCell(DASH, exact=entry.unstarted if entry else ""))
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
