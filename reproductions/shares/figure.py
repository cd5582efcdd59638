"""The share of each account by weeks beside what is due to it, a panel for each log and policy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dovetail.reports.style import STROKES, figure
from reproductions.runs import Runs
from reproductions.shares.page import ACCOUNTS, DUE, LOGS
from reproductions.values import Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN: Final = {
    "list-reg": "list, no shares",
    "list:order=three.toml": "list by shares",
    "plan-awf": "planner, no shares",
    "plan-awf:favour=three.toml,strength=4": "planner, shares to the 4th",
}


def received_figure(_: Values, runs: Runs) -> Figure:
    """Lines of what was received, dashes at what is due."""
    made = figure(720, 40 + 150 * len(LOGS))
    axes = made.subplots(len(LOGS), len(SHOWN), squeeze=False, sharey=True)
    for row, log in enumerate(LOGS):
        for column, (policy, words) in enumerate(SHOWN.items()):
            ax, run = axes[row][column], runs.get(log, policy)
            for name, stroke in zip(ACCOUNTS, STROKES, strict=False):
                points = run.curves[name] if run else ()
                shares = [100 * share for _, share in points]
                ax.plot([day for day, _ in points], shares, color=stroke.colour, linewidth=1.2, label=name)
                ax.axhline(100 * DUE[name], color=stroke.colour, linewidth=0.8, linestyle=(0, (4, 3)))
            ax.set_ylim(0, 100)
            ax.set_title(words if row == 0 else "")
            ax.set_xlabel("days" if row == len(LOGS) - 1 else "")
            ax.set_ylabel(f"{log}, %" if column == 0 else "")
    made.legend(*axes[0][0].get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False)
    return made
