"""Figs. 2 to 7 of DBF."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.reports.style import GREY, STROKES, figure
from reproductions.dbf_tables.page import LOGS, POLICIES, SHARES
from reproductions.runs import Runs
from reproductions.values import Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH: Final = 660
DRAWN: Final = dict(zip(("CBF", "EASY", "DBF", "plan-deadline"), STROKES, strict=False))
"""`dbf` would cover DBF: they hardly ever differ."""
PERCENT: Final = [int(share.removesuffix(" %")) for share in SHARES]


def by_share(
    values: Values, _: Runs, metric: str, unit: str, scale: float = 1, policies: Sequence[str] = tuple(DRAWN)
) -> Figure:
    """A panel for each log, a line for each policy over the share. Bars are intervals over the seeds; of stretches,
    whose few maxima have an interval that says little, they go from the least to the most."""
    made = figure(WIDTH, 240)
    axes = made.subplots(1, len(LOGS), squeeze=False)[0]
    for ax, log in zip(axes, LOGS, strict=True):
        for policy in policies:
            means = _numbers(values, metric, log, policy) / scale
            half, least, most = (
                _numbers(values, f"{metric}, {one}", log, policy) / scale for one in ("±", "least", "most")
            )
            bars = np.nan_to_num([means - least, most - means] if metric == "max_stretch_waited" else [half, half])
            ax.errorbar(PERCENT, means, yerr=bars, capsize=2, label=policy, **DRAWN[policy].line)
        ax.set_title(log)
        ax.set_xlabel("% with a deadline")
        ax.set_xticks(PERCENT)
        if metric == "max_stretch_waited":
            _logarithmic(ax)
        else:
            ax.set_ylim(bottom=0)
    axes[0].set_ylabel(unit)
    _legend(made, axes[0])
    return made


def _numbers(values: Values, metric: str, log: str, policy: str) -> Any:
    found = (values.number(f"{metric}: {log}", policy, share) for share in SHARES)
    return np.array([nan if one is None else one for one in found])


def _logarithmic(ax: Axes) -> None:
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ticks = [tick for k in range(6) for tick in (10**k, 2 * 10**k, 5 * 10**k) if low <= tick <= high]
    ax.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.set_yticks([], minor=True)


def distributions(_: Values, runs: Runs) -> Figure:
    """A row for each log, a column for each share: the share of the regular jobs that waited at most as long."""
    made = figure(WIDTH, 130 * len(LOGS) + 40)
    grid = made.subplots(len(LOGS), len(SHARES), sharey=True, sharex="row", squeeze=False)
    for row, log in zip(grid, LOGS, strict=True):
        for ax, (share, scenario) in zip(row, SHARES.items(), strict=True):
            for policy, stroke in DRAWN.items():
                run = runs.get(log, POLICIES[policy], scenario=scenario)
                points = np.array(run.curves.get("waits", np.empty((0, 2))) if run else np.empty((0, 2)))
                line = {**stroke.line, "marker": "", "linewidth": 1.1}
                ax.plot(points[:, 0] / 3600, points[:, 1], label=policy, **line)
            ax.set_xscale("symlog", linthresh=0.1)
            ax.set_xlim(left=0)
            ax.set_xticks([0, 1, 10, 100], ["0", "1", "10", "100"])
            ax.set_title(f"{log}, {share}")
        row[0].set_ylabel("% of jobs")
    for ax in grid[-1]:
        ax.set_xlabel("wait, hours")
    _legend(made, grid[0][0])
    return made


def late(values: Values, _: Runs) -> Figure:
    """Late jobs under DBF by the kind of their deadline."""
    made = figure(WIDTH, 230)
    axes = made.subplots(1, len(LOGS), squeeze=False)[0]
    for ax, log in zip(axes, LOGS, strict=True):
        at = np.arange(len(SHARES))
        short, long = (_numbers(values, f"late_{kind}", log, "DBF") for kind in ("short", "long"))
        ax.bar(at, short, color=STROKES[1].colour, width=0.6, label="deadline of 24 hours")
        ax.bar(at, long, bottom=short, color=GREY, width=0.6, label="deadline of 10 limits")
        ax.set_xticks(at, [f"{one}" for one in PERCENT])
        ax.set_title(log)
        ax.set_xlabel("% with a deadline")
        ax.grid(visible=False, axis="x")
    axes[0].set_ylabel("jobs late under DBF")
    _legend(made, axes[0])
    return made


def _legend(made: Figure, ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    made.legend(handles, labels, loc="outside upper left", ncols=5, frameon=False)
