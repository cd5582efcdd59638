"""The metric against milliseconds of a pass: more search, and rollouts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dovetail.reports.style import GREY, STROKES, figure
from reproductions.rollouts.page import LOGS, METRICS
from reproductions.runs import Runs
from reproductions.values import Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

KINDS: Final = {"search": "more search", "draws": "rollouts"}


def against_ms(values: Values, _: Runs) -> Figure:
    """A panel for each log and metric; bars from the least to the most of several seeds."""
    made = figure(640, 480)
    axes = made.subplots(len(LOGS), len(METRICS), squeeze=False)
    for row, log in enumerate(LOGS):
        for column, metric in enumerate(METRICS):
            ax, table = axes[row][column], f"{log}, {metric}"
            ax.axhline(100, color=GREY, linewidth=1)
            for (kind, words), stroke in zip(KINDS.items(), STROKES, strict=False):
                names = [name for _, name, _ in values.keys(table, row=f"{kind} *", column="ms")]
                at = [values.need(table, name, "ms") for name in names]
                middle, low, high = ([values.need(table, name, c) for name in names] for c in ("metric", "low", "high"))
                ends = [[m - one for m, one in zip(middle, low, strict=True)],
                        [one - m for m, one in zip(middle, high, strict=True)]]  # fmt: skip
                ax.errorbar(at, middle, yerr=ends, color=stroke.colour, marker=stroke.marker, capsize=2, label=words)
            ax.set_xscale("log")
            ax.set_xlim(0.15, 300)
            ax.set_xticks([1, 10, 100], ["1", "10", "100"])
            ax.set_xticks([], minor=True)
            ax.set_title(f"{log}, {metric}")
            ax.set_xlabel("milliseconds a pass" if row == len(LOGS) - 1 else "")
            ax.set_ylabel("% of the planner" if column == 0 else "")
    made.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper left", ncols=2, frameon=False)
    return made
