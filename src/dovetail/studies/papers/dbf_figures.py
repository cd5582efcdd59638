"""Figs. 2 to 7 of DBF from our runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import nan
from typing import TYPE_CHECKING, Final

import numpy as np

from dovetail.reports.style import GREY, STROKES, figure
from dovetail.studies.papers.dbf_runs import CALLED, CBF, DBF, EASY, PLANNED, SHARES, Numbers, Results
from dovetail.studies.papers.page import picture

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH: Final = 660
DRAWN: Final = {CBF: STROKES[0], EASY: STROKES[1], DBF: STROKES[2], PLANNED: STROKES[3]}
"""`dbf` would cover DBF: they hardly ever differ."""
HOUR_S: Final = 3600


def pictures(found: Results, logs: Sequence[str]) -> dict[str, str]:
    """All of them by file name."""
    drawn: dict[int, tuple[str, Callable[[], Figure]]] = {
        2: ("mean wait of regular jobs", lambda: _lines(found, logs, "hours", lambda n: n.wait_s / HOUR_S)),
        3: ("waits of regular jobs", lambda: _distributions(found, logs)),
        4: ("mean wait of all jobs", lambda: _lines(found, logs, "minutes", lambda n: n.all_wait_s / 60)),
        5: ("largest stretch", lambda: _lines(found, logs, "largest stretch", lambda n: n.max_stretch, top=True)),
        6: ("deadlines not met", lambda: _bars(found, logs)),
        7: (
            "how much of the deadline is used",
            lambda: _lines(found, logs, "% of the deadline", lambda n: 100 * n.usage, (DBF, PLANNED)),
        ),
    }
    return {
        f"dbf-figure-{number}.svg": picture(draw, f"fig{number}", f"Fig. {number} of DBF, drawn by Dovetail: {title}")
        for number, (title, draw) in drawn.items()
    }


def _lines(
    found: Results, logs: Sequence[str], unit: str, of: Callable[[Numbers], float],
    policies: Sequence[str] = tuple(DRAWN), *, top: bool = False,
) -> Figure:  # fmt: skip
    """One panel per log; a line for each policy over the share, with the interval over seeds or (`top`) the range."""
    made = figure(WIDTH, 240)
    axes = made.subplots(1, len(logs), squeeze=False)[0]
    for ax, log in zip(axes, logs, strict=True):
        for policy in filter(found.has, policies):
            means = np.array([found.mean(log, share, policy, of) for share in SHARES])
            half = np.nan_to_num([found.half(log, share, policy, of) for share in SHARES])
            bars = np.array([half, half])
            if top:  # of few maxima, an interval of the mean says little: from the least to the most
                seeds = [found.values(log, share, policy, of) or [nan] for share in SHARES]
                bars = np.array([means - [min(of) for of in seeds], [max(of) for of in seeds] - means])
            at = [100 * share for share in SHARES]
            ax.errorbar(at, means, yerr=bars, capsize=2, label=CALLED[policy], **DRAWN[policy].line)
        _by_share(ax, log)
        if top:
            ax.set_yscale("log")
            low, high = ax.get_ylim()
            ticks = [tick for k in range(6) for tick in (10**k, 2 * 10**k, 5 * 10**k) if low <= tick <= high]
            ax.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
            ax.set_yticks([], minor=True)
        else:
            ax.set_ylim(bottom=0)
    axes[0].set_ylabel(unit)
    _legend(made, axes[0])
    return made


def _distributions(found: Results, logs: Sequence[str]) -> Figure:
    """A row per log, a column per share: the part of the regular jobs that waited at most so long."""
    made = figure(WIDTH, 130 * len(logs) + 40)
    grid = made.subplots(len(logs), len(SHARES), sharey=True, sharex="row", squeeze=False)
    for row, log in zip(grid, logs, strict=True):
        for ax, share in zip(row, SHARES, strict=True):
            for policy, stroke in DRAWN.items():
                waits = found.waits.get((log, share, policy))
                if waits is not None and len(waits):
                    at = np.linspace(0, 100, 201)
                    hours = np.percentile(waits, at) / HOUR_S
                    ax.plot(hours, at, label=CALLED[policy], **{**stroke.line, "marker": "", "linewidth": 1.1})
            ax.set_xscale("symlog", linthresh=0.1)
            ax.set_xlim(left=0)
            ax.set_xticks([0, 1, 10, 100], ["0", "1", "10", "100"])
            ax.set_title(f"{log}, {100 * share:.0f} %")
        row[0].set_ylabel("% of jobs")
    for ax in grid[-1]:
        ax.set_xlabel("wait, hours")
    _legend(made, grid[0][0])
    return made


def _bars(found: Results, logs: Sequence[str]) -> Figure:
    """Late jobs by the kind of their deadline, the mean over seeds."""
    made = figure(WIDTH, 230)
    axes = made.subplots(1, len(logs), squeeze=False)[0]
    for ax, log in zip(axes, logs, strict=True):
        at = np.arange(len(SHARES))
        short = np.array([found.mean(log, share, DBF, lambda n: n.late_short) for share in SHARES])
        long = np.array([found.mean(log, share, DBF, lambda n: n.late_long) for share in SHARES])
        ax.bar(at, short, color=STROKES[1].colour, width=0.6, label="deadline of 24 hours")
        ax.bar(at, long, bottom=short, color=GREY, width=0.6, label="deadline of 10 limits")
        ax.set_xticks(at, [f"{100 * share:.0f}" for share in SHARES])
        ax.set_title(log)
        ax.set_xlabel("% with a deadline")
        ax.grid(visible=False, axis="x")
    axes[0].set_ylabel("jobs late under DBF")
    _legend(made, axes[0])
    return made


def _by_share(ax: Axes, log: str) -> None:
    ax.set_title(log)
    ax.set_xlabel("% with a deadline")
    ax.set_xticks([100 * share for share in SHARES])


def _legend(made: Figure, ax: Axes) -> None:
    handles, labels = ax.get_legend_handles_labels()
    made.legend(handles, labels, loc="outside upper left", ncols=5, frameon=False)
