"""Pictures of many small values: changes against the baseline by metric, and waits by size and run time of job."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import TYPE_CHECKING, Final

import numpy as np

from dovetail.metrics.catalog import METRICS, Metric
from dovetail.reports.columns import labels, named, percent
from dovetail.reports.curves import Curves, WaitMap
from dovetail.reports.page_data import Case, Entry
from dovetail.reports.style import BETTER, GREY, INK, WORSE, duration_ticks, figure, short_duration, text_colour
from dovetail.reports.tables import moved, paired

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

MOST_ROWS: Final = 16
"""Policies in the picture of changes, the baseline apart."""
LEAST: Final = 0.0005
"""A metric that no policy changes by this much has no panel: it would be a row of zeros."""
OFF_SCALE: Final = 1.0
"""A change beyond this is shown by an arrow and in figures, so that it does not squeeze the others."""
FEW: Final = 10
"""A cell of the wait map with fewer jobs is hatched."""

_WIDE: Final = 920
_ROW: Final = 15.0
_PER_LINE: Final = 5
_RUNTIME_LABELS: Final = ("< 1 min", "1–10 min", "10–60 min", "1–4 h", "4–12 h", "12–24 h", "≥ 1 d")


def changed(case: Case) -> tuple[list[Metric], list[Entry]]:
    """The metrics and policies for which there is a change to show."""
    rows = list(case.entries[1 : 1 + MOST_ROWS])
    found = {c.key: [seen(case, entry, c.key)[0] for entry in rows] for c in METRICS}
    return [c for c in METRICS if any(isfinite(v) and abs(v) >= LEAST for v in found[c.key])], rows


def seen(case: Case, entry: Entry, key: str) -> tuple[float, float, float, str]:
    """Change against the baseline, its interval (nan: none) and verdict: pair by pair, else of the values."""
    if found := paired(entry, key):
        return found.change, found.low, found.high, found.verdict
    return moved(case, entry, key), nan, nan, ""


def changes_figure(case: Case) -> Figure:
    """Relative change of each metric against the baseline, with its interval: one panel per metric."""
    columns, rows = changed(case)
    across = min(len(columns), _PER_LINE)
    down = -(-len(columns) // _PER_LINE)
    made = figure(_WIDE, down * (_ROW * len(rows) + 48))
    grid = made.subplots(down, across, squeeze=False)
    names = labels([entry.policy for entry in case.entries])[1 : 1 + len(rows)]
    for at, ax in enumerate(grid.flat):
        if at >= len(columns):
            ax.set_visible(False)
            continue
        _panel(ax, case, rows, columns[at])
        ax.set_yticks(range(len(rows)), names if at % across == 0 else [""] * len(rows))
        ax.set_ylim(len(rows) - 0.4, -0.6)
        ax.tick_params(axis="y", length=0)
    return made


def _panel(ax: Axes, case: Case, rows: Sequence[Entry], column: Metric) -> None:
    found = [seen(case, entry, column.key) for entry in rows]
    ends = [end for value, low, high, _ in found for end in (value, low, high) if isfinite(end)]
    low, high = max(min(*ends, -0.01), -OFF_SCALE), min(max(*ends, 0.01), OFF_SCALE)
    pad = 0.08 * (high - low)
    ax.set_xlim(low - pad, high + pad)
    ax.axvline(0, color=INK, linewidth=0.8, zorder=1)
    for y, (value, left, right, verdict) in enumerate(found):
        if not isfinite(value):
            continue
        colour = {"better": BETTER, "worse": WORSE}.get(verdict, GREY)
        if value > high:
            ax.plot([high], [y], marker=">", color=colour, markersize=5)
            ax.text(high - pad, y, percent(value), ha="right", va="center", fontsize=7.5, color=INK)
            continue
        if isfinite(left) and isfinite(right):
            ax.plot([max(left, low - pad), min(right, high + pad)], [y, y], color=colour, linewidth=1.6, zorder=2)
        face = colour if verdict in ("better", "worse") else "#ffffff"
        shape = "s" if verdict == "worse" else "o"
        ax.plot([value], [y], marker=shape, color=colour, markerfacecolor=face, markersize=5, zorder=3)
    _signed_percent_axis(ax)
    ax.grid(visible=False, axis="y")
    ax.set_title(column.head + (" (more is better)" if column.more_is_better else ""))


def _signed_percent_axis(ax: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))

    def text(value: float, _: object) -> str:
        return "0" if abs(value) < 1e-9 else f"{100 * value:+.10g} %".replace("-", "−")

    ax.xaxis.set_major_formatter(FuncFormatter(text))


def wait_map_figure(drawn: Sequence[Curves]) -> Figure:
    """Mean wait by size and run time of job, one map per policy under one scale of colours."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm

    made = figure(_WIDE / 2 * len(drawn), 44 + 25 * max(len(drawn[0].wait_map.sizes), 4))
    axes = made.subplots(1, len(drawn), squeeze=False)[0]
    top_s = max(600.0, *(float(np.nanmax(c.wait_map.mean_s, initial=0.0)) for c in drawn))
    least_s = min(60.0, top_s / 100)
    colours = ScalarMappable(LogNorm(least_s, top_s, clip=True), colormaps["YlGnBu"])
    across = 1 + max(int(np.flatnonzero(c.wait_map.jobs.any(axis=0))[-1]) for c in drawn)
    for ax, c in zip(axes, drawn, strict=True):
        _map(ax, c.wait_map, colours)
        ax.set_title(named(c.policy, 50))
        ax.set_xlim(0, across)
        ax.set_xticks(np.arange(across) + 0.5, _RUNTIME_LABELS[:across])
        ax.set_yticks(np.arange(len(c.wait_map.sizes)) + 0.5, size_labels(c.wait_map.sizes))
        ax.set_xlabel("run time")
    axes[0].set_ylabel("processors", rotation_mode="anchor")
    ticks = duration_ticks(least_s, top_s, 6)
    bar = made.colorbar(colours, ax=list(axes), pad=0.015, aspect=25)
    bar.ax.minorticks_off()
    bar.set_ticks([x for x, _ in ticks], labels=[text for _, text in ticks])
    bar.ax.set_title("mean wait")
    return made


def _map(ax: Axes, found: WaitMap, colours: ScalarMappable) -> None:
    from matplotlib.patches import Rectangle

    cells = colours.to_rgba(np.nan_to_num(found.mean_s))
    for row, column in np.argwhere(found.jobs > 0):
        colour, place = tuple(cells[row, column]), (float(column), float(row))
        ink = text_colour(colour)
        ax.add_patch(Rectangle(place, 1, 1, facecolor=colour, edgecolor="#ffffff"))
        if found.jobs[row, column] < FEW:
            ax.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=ink, alpha=0.3, linewidth=0, hatch="////"))
        text = short_duration(float(found.mean_s[row, column]))
        at = ax.text(column + 0.5, row + 0.5, text, ha="center", va="center", color=ink, fontsize=8)
        at.set_in_layout(False)  # it is within the axes, and measuring it takes long
    ax.set_ylim(0, len(found.sizes))
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


def size_labels(sizes: Sequence[int]) -> list[str]:
    """The rows of a wait map in words: 1, 2, 3–4, 5 and more."""
    ends = [following - 1 for following in sizes[1:]]
    closed = [f"{low:,}" if low == high else f"{low:,}–{high:,}" for low, high in zip(sizes, ends, strict=False)]
    return [*closed, f"≥ {sizes[-1]:,}"]
