"""A case at a glance: as text that fits a terminal, and as the table that a notebook shows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Final

from dovetail.metrics.catalog import METRICS
from dovetail.reports.columns import named
from dovetail.reports.page_data import Case
from dovetail.reports.style import BETTER, GREY, WORSE
from dovetail.reports.tables import Table, TableCell, judged, of_case
from dovetail.units import duration

_SHOWN: Final = ("mean_wait_s", "wait_p95_s", "bsld", "awf_s", "p2sf_s", "utilization")
"""Metrics that have room in 80 columns of text."""
_NAME: Final = 20
_WIDTH: Final = 10


def as_text(case: Case) -> str:
    """One line per policy, below it the change against the baseline."""
    if not case.entries:
        return f"{_about(case)}\n(no policy)"
    table = of_case(case)
    heads = {column.head for column in METRICS if column.key in _SHOWN}
    shown = [at for at, head in enumerate(table.heads) if head.text in heads]
    lines = [_about(case)]
    lines += [_row("", (_short(table.heads[at].text) for at in shown))]
    lines += [_row("policy", (table.heads[at].unit for at in shown))]
    for number, row in enumerate(table.rows):
        lines.append(_row(named(row.name, _NAME), (row.cells[at].text for at in shown)))
        if row.note:
            lines.append(f"  {row.note}")
        if number and row.entire:
            lines.append(_row("", (_change(row.cells[at]) for at in shown)))
    return "\n".join([*(line.rstrip() for line in lines), *_note(case, "*")])


def _short(head: str) -> str:
    return {"95 % waited up to": "95 % wait", "utilisation": "utilis."}.get(head, head)


def _row(name: str, cells: Iterator[str] | Sequence[str]) -> str:
    return f"{name:<{_NAME}}" + "".join(f"{cell:>{_WIDTH}}" for cell in cells)


def _change(cell: TableCell) -> str:
    return f"{'*' * cell.clear}{cell.change}"


def _about(case: Case) -> str:
    span = f" over {duration(case.span_s)}" if case.span_s > 0 else ""
    return f"{named(case.title, 60)}: {case.jobs:,} jobs{span}, {case.machine}"


def _note(case: Case, mark: str) -> Iterator[str]:
    """What the changes are, and which of them are clear."""
    if len(case.entries) < 2:
        return
    base = named(case.entries[0].policy, 30)
    if case.entries[0].unstarted:
        yield f"{base} left jobs waiting, so nothing is compared with it."
    elif any(judged(entry) for entry in case.entries):
        yield f"Changes are against {base}; {mark} clear over {named(case.pairing, 30)}."
    else:
        yield f"Changes are against {base}; too few pairs to say what is chance."


def as_html(case: Case) -> str:
    """A table that needs no style sheet. All that is foreign is escaped."""
    table = of_case(case)
    return (
        f'<div><p>{escape(_about(case))}</p><table style="font-variant-numeric: tabular-nums">'
        f"<thead>{_heads(table)}</thead><tbody>{''.join(_html_rows(table))}</tbody></table>"
        f"<p><small>{escape(' '.join([*_note(case, 'blue: better, orange: worse,'), 'Bold: best of its column.']))}"
        "</small></p></div>"
    )


def _heads(table: Table) -> str:
    cells = "".join(f"<th>{escape(head.text)}<br><small>{escape(head.unit)}</small></th>" for head in table.heads)
    return f'<tr><th style="text-align: left">policy</th>{cells}</tr>'


def _html_rows(table: Table) -> Iterator[str]:
    for row in table.rows:
        cells = "".join(_html_cell(cell) for cell in row.cells)
        note = (
            f'<br><small style="color: {GREY if row.entire else WORSE}">{escape(row.note)}</small>' if row.note else ""
        )
        yield f'<tr><th style="text-align: left">{escape(row.name)}{note}</th>{cells}</tr>'


def _html_cell(cell: TableCell) -> str:
    title = "; ".join(filter(None, (cell.exact, cell.paired and f"in pairs {cell.paired} {cell.range}", cell.test)))
    value = f"<b>{escape(cell.text)}</b>" if cell.best else escape(cell.text)
    if cell.change:
        colour = {"better": BETTER, "worse": WORSE}[cell.verdict] if cell.clear else GREY
        value += f'<br><small style="color: {colour}">{escape(cell.change)}</small>'
    return f'<td title="{escape(title)}" style="text-align: right; vertical-align: top">{value}</td>'
