"""What verbs print for people: tables and sentences that fit the terminal, 80 columns where there is none."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from rich.table import Table

    from dovetail.reports.page_data import Entry
    from dovetail.reports.sheets import Sheet

Wide = Annotated[bool, typer.Option("--wide", help="All columns of tables, however wide.")]
NAME: Final = 24
"""Characters of a name before it is folded."""
MOST_RANK: Final = 1
"""Columns of a sheet that have a higher rank are only shown if all are asked for."""
_HEAD: Final = 10
"""Characters of a head before it is folded."""


class Grouped(TyperCommand):
    """A command whose help has its options in groups, plain and quick."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        groups: dict[str, list[tuple[str, str]]] = {}
        for one in self.get_params(ctx):
            if record := one.get_help_record(ctx):
                group = getattr(one, "rich_help_panel", None) or "Options"
                groups.setdefault("Arguments" if one.param_type_name == "argument" else group, []).append(record)
        for title, records in sorted(
            groups.items(), key=lambda group: (group[0] != "Arguments", group[0] == "Options")
        ):
            with formatter.section(title):
                formatter.write_dl(records)


class Column(NamedTuple):
    """A column of numbers."""

    head: str
    cells: Sequence[str]
    rank: int = 0
    """Where there is no room, columns of the highest rank are left out first; those of rank 0 stay."""


def titled(head: str, unit: str) -> str:
    """A head with its unit below."""
    return f"{head}\n({unit})" if unit else head


def policy(entry: Entry, note: str = "") -> str:
    """The name of a policy for a table, with what a reader must know of its numbers below."""
    from rich.markup import escape

    from dovetail.units import printable

    name, below = escape(printable(entry.policy, 60)), entry.note or note
    return f"{name}\n[{'red' if entry.unstarted else 'dim'}]{below}[/]" if below else name


def print_table(
    words: Sequence[tuple[str, Sequence[str]]], numbers: Sequence[Column], *notes: str, wide: bool = False
) -> None:
    """A table in the width of the terminal, and notes below it. Numbers are never cut: columns that have no room are
    left out, by rank, and named; with `wide` all are shown. Cells may have markup: what is foreign comes escaped."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(highlight=False)
    shown = list(numbers)
    while (
        not wide
        and any(one.rank for one in shown)
        and console.measure(_made(words, shown), options=console.options.update(width=1_000)).maximum > console.width
    ):
        last = max(range(len(shown)), key=lambda at: (shown[at].rank, at))
        del shown[last]
    if wide:
        console = Console(width=1_000, highlight=False)
    console.print(_made(words, shown))
    gone = [one.head.replace("\n", " ") for one in numbers if one not in shown]
    if gone:
        said = f"No room for {', '.join(gone)}: --wide shows all."
        notes = (*notes, escape(said))
    for note in notes:
        Console(highlight=False).print(note)


def print_sheet(sheet: Sheet, wide: bool) -> None:
    """A sheet as a table, and its notes below."""
    from rich.markup import escape

    names = [escape(name) for name in sheet.names]
    numbers = [
        Column(titled(one.head, one.unit), [escape(cell) for cell in one.cells], one.rank)
        for one in sheet.numbers
        if wide or one.rank <= MOST_RANK
    ]
    print_table([("" if sheet.head == "all" else sheet.head, names)], numbers, wide=wide)
    facts(((name, note) for name, note in zip(sheet.names, sheet.notes, strict=False) if note), label=24)


def _made(words: Sequence[tuple[str, Sequence[str]]], numbers: Sequence[Column]) -> Table:
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
    for head, _ in words:
        table.add_column(head, max_width=NAME, overflow="fold", vertical="top")
    for one in numbers:
        table.add_column(_folded(one.head), justify="right", no_wrap=True)
    for row in zip(*(cells for _, cells in words), *(one.cells for one in numbers), strict=True):
        table.add_row(*row)
    return table


def _folded(head: str) -> str:
    from textwrap import fill

    return "\n".join(fill(part, _HEAD, break_long_words=False) for part in head.split("\n"))


def facts(rows: Iterable[tuple[str, str]], *, label: int = 16) -> None:
    """Lines of a label and what it says, folded under each other."""
    for name, text in rows:
        tell(text, f"{name:<{label}}"[: max(label, len(name) + 1)], " " * label)


def tell(text: str, first: str = "", rest: str = "") -> None:
    """Sentences, folded to the width of the terminal. Foreign text comes as it is: nothing of it is markup."""
    import re
    from shutil import get_terminal_size
    from textwrap import fill

    width = max(get_terminal_size().columns, 40)
    whole = re.sub(r"(?<=\d) (?=[smhd%])", "\xa0", text)  # a number and its unit stay together
    folded = fill(whole, width, initial_indent=first, subsequent_indent=rest, break_on_hyphens=False)
    typer.echo(folded.replace("\xa0", " "))
