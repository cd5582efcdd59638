"""Figs. 5 and 10 of the dispatcher paper, with ours."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from dovetail.reports.style import STROKES, figure
from reproductions.dispatch_tables.page import LESS
from reproductions.runs import Runs
from reproductions.values import Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def drawn(values: Values, _: Runs, spans: Sequence[str], order: Sequence[str]) -> Figure:
    """A column for each span, a bar for each dispatcher: mean slowdowns above, mean waits below, run times known."""
    made = figure(920, 100 + 2 * 17 * len(order))
    axes = made.subplots(2, len(spans), squeeze=False, sharey=True)
    axes[0, 0].invert_yaxis()
    at = np.arange(len(order))
    colours = [STROKES[0 if row.startswith("`") else 1].colour for row in order]
    for column, span in zip(axes.T, spans, strict=True):
        for ax, name, scale in zip(column, LESS, (1, 60), strict=True):
            found = [values.number(span, f"{row}, runtime", name) for row in order]
            widths = [np.nan if one is None else one / scale for one in found]
            ax.barh(at, widths, color=colours, height=0.65)
            ax.set_xlim(0, 1.05 * np.nanmax([*widths, 0.01]))
            ax.grid(visible=False, axis="y")
        column[0].set_title(span)
    for ax, label in zip(axes, ("mean slowdown", "mean wait (min)"), strict=True):
        ax[0].set_yticks(at, [row.strip("`").split(":")[0] for row in order])
        ax[len(spans) // 2].set_xlabel(label)
    return made
