"""Shared kinds of figures, drawn from values; a figure of another kind is a function of a folder's figure.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from reproductions.folders import Folder, Picture
from reproductions.runs import Runs
from reproductions.values import Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_ENDS: Final = ("", " low", " high")


def drawn(folder: Folder, picture: Picture, values: Values, runs: Runs) -> str:
    """A picture as the text of an SVG file: the same bytes each time."""
    from dovetail.reports.style import settings, svg

    with settings():
        if picture.draw in KINDS:
            made = KINDS[picture.draw](values, picture.settings)
        else:
            made = folder.function(picture.draw, "figure")(values, runs, **picture.settings)
        text = svg(made, picture.file.removesuffix(".svg"), picture.label)
    # A file of its own has no style sheet, and its reader may have a dark page behind it.
    root = (
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="DejaVu Sans, Verdana, sans-serif"'
        ' stroke-linejoin="round" stroke-linecap="butt" style="background:#ffffff" '
    )
    return text.replace("<svg ", root, 1) + "\n"


def lines(values: Values, given: Mapping[str, Any]) -> Figure:
    """A panel for each table, a line for each of its rows, the columns as x; between the tables of that name with `low`
    and `high` after it, where they are there, a band."""
    from dovetail.reports.style import STROKES

    made, panels = _panels(values, given)
    for ax, (table, rows) in panels:
        for stroke, row in enumerate(rows):
            x, middle, low, high = _points(values, table, row, given.get("per", 1))
            line = {**STROKES[stroke % len(STROKES)].line, **({} if given.get("markers") else {"marker": ""})}
            ax.plot(x, middle, label=row, **line)
            if x and len(low) == len(high) == len(x):
                ax.fill_between(x, low, high, color=line["color"], alpha=0.15, linewidth=0)
    return _finished(made, given)


def _points(values: Values, table: str, row: str, per: float) -> list[list[float]]:
    """The columns of a row, its numbers in their order, and those of the tables `low` and `high`."""
    found = [values.numbers(table + end, row).items() for end in _ENDS]
    sides = [sorted((float(key[2].removesuffix(" %")), y / per) for key, y in side) for side in found]
    return [[x for x, _ in sides[0]], *([y for _, y in side] for side in sides)]


def bars(values: Values, given: Mapping[str, Any]) -> Figure:
    """A panel for each table, a group of bars for each column, a bar in it for each row."""
    from dovetail.reports.style import STROKES

    made, panels = _panels(values, given)
    for ax, (table, rows) in panels:
        columns = list(dict.fromkeys(key[2] for key in values.keys(table)))
        width = 0.8 / max(len(rows), 1)
        for place, row in enumerate(rows):
            heights = [values.number(table, row, column) for column in columns]
            at = [x - 0.4 + width * (place + 0.5) for x in range(len(columns))]
            ax.bar(at, [y or 0 for y in heights], width, label=row, color=STROKES[place % len(STROKES)].colour)
        ax.set_xticks(range(len(columns)), columns)
    return _finished(made, given)


KINDS: Final[Mapping[str, Callable[[Values, Mapping[str, Any]], Figure]]] = {"lines": lines, "bars": bars}
"""Their settings in about.toml: `tables` (a panel each, and its title), `rows` (default: all), `width`, `height`,
`across` (panels in a row; default: all), `x`, `y` (labels), `y_log`, `x_log` (yes, or from which number on), `y_ticks`,
`x_ticks` (numbers, or pairs of number and text), `legend` (place), `share` (no: each panel has its own y), `markers`
and `per` (of lines: what numbers are divided by)."""


def _panels(values: Values, given: Mapping[str, Any]) -> tuple[Figure, list[tuple[Axes, tuple[str, list[str]]]]]:
    from dovetail.reports.style import figure

    tables: Mapping[str, str] = given["tables"]
    made = figure(given.get("width", 720), given.get("height", 300))
    across = given.get("across", len(tables))
    axes = made.subplots(len(tables) // across, across, sharey=given.get("share", True), squeeze=False).flat
    found = []
    for ax, (table, title) in zip(axes, tables.items(), strict=True):
        ax.set_title(title)
        rows = given.get("rows") or list(dict.fromkeys(key[1] for key in values.keys(table)))
        found.append((ax, (table, rows)))
    return made, found


def _finished(made: Figure, given: Mapping[str, Any]) -> Figure:
    for ax in made.axes:
        ax.set_xlabel(given.get("x", ""))
        for axis, scale, ticks in (("x", ax.set_xscale, ax.set_xticks), ("y", ax.set_yscale, ax.set_yticks)):
            if begins := given.get(f"{axis}_log"):
                scale("log" if begins is True else "symlog", **({} if begins is True else {"linthresh": begins}))
            if marks := given.get(f"{axis}_ticks"):
                pairs = [(one, f"{one:g}") if isinstance(one, int | float) else one for one in marks]
                ticks(*zip(*pairs, strict=True))
                ticks([], minor=True)
    made.axes[0].set_ylabel(given.get("y", ""))
    if made.axes[-1].get_legend_handles_labels()[0]:
        made.axes[-1].legend(loc=given.get("legend", "upper right"), frameon=False)
    return made
