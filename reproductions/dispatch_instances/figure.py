"""Figs. 6 to 8 of the dispatcher paper: ratios of PCP'21 over PCP'19 on the same instances."""

from __future__ import annotations

from math import isfinite, isnan
from typing import TYPE_CHECKING, Final

import numpy as np

from dovetail.reports.style import STROKES, figure
from reproductions.dispatch_instances.page import pairs_of
from reproductions.runs import Runs
from reproductions.values import Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PANELS: Final = {"variables": "variables", "seconds": "CPU time", "conflicts": "fails"}
LEAST: Final = 1e-4
"""Where a ratio of 0 is drawn."""


def ratios(_: Values, runs: Runs) -> Figure:
    """A panel for each ratio, a line for each solver: the share of instances whose ratio is at most so much."""
    made = figure(920, 300)
    axes = made.subplots(1, len(PANELS), sharey=True)
    for ax, (key, title) in zip(axes, PANELS.items(), strict=True):
        stroke = 0
        for way in ("CP-SAT", "CP"):
            for estimate in ("runtime", "limit"):
                every = [pair.ratio(key) for pair in pairs_of(runs, way, estimate)]
                found = sorted(max(one, LEAST) for one in every if isfinite(one))
                share = 100 * np.arange(1, len(found) + 1) / max(sum(not isnan(one) for one in every), 1)
                ax.plot(found, share, label=f"{way}, {estimate}", **{**STROKES[stroke].line, "marker": ""})
                stroke += 1
        ax.set_xscale("log")
        ax.axvspan(*((0.01, 1) if key == "seconds" else (LEAST, 0.1)), color="#000000", alpha=0.06, linewidth=0)
        ax.set_title(title)
        ax.set_xlabel("PCP'21 over PCP'19")
    axes[0].set_ylabel("instances at most so (%)")
    axes[0].legend(loc="lower right", frameon=False)
    return made
