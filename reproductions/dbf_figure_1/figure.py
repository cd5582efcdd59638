"""Fig. 1 of DBF: a row for each log, hours of the day at the left, days of the week at the right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dovetail.reports.style import FAINT, GREY, INK, STROKES, figure
from reproductions.dbf_figure_1.arrivals import Arrivals
from reproductions.dbf_figure_1.page import FILES, PAPERS, arrivals_of
from reproductions.runs import Runs
from reproductions.values import Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def drawn(values: Values, runs: Runs, **_: Any) -> Figure:
    """The figure from the runs that are there."""
    made = figure(640, 660)
    axes = made.subplots(len(FILES), 2, sharex="col", width_ratios=(2, 1))
    for (by_hour, by_day), log in zip(axes, FILES, strict=True):
        by_hour.set_title(log if log in PAPERS else f"{log} (not in the paper)")
        every = arrivals_of(runs, log)
        some = arrivals_of(runs, log, jobs="experiments") if log in PAPERS else None
        if every:
            _hours(by_hour, every, some)
            _week(by_day, every, some)
        by_hour.set_ylabel("jobs per hour")
        by_day.set_ylabel("jobs per day")
    axes[-1, 0].set_xlabel("hour of the day, local time")
    axes[-1, 0].set_xticks(range(0, 25, 3))
    axes[-1, 0].set_xlim(0, 24)
    axes[-1, 1].set_xlabel("day of the week")
    axes[-1, 1].set_xticks(range(7), ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"))
    return made


def _hours(ax: Axes, every: Arrivals, some: Arrivals | None) -> None:
    for hour in every.peak:
        ax.axvspan(hour, hour + 1, color=FAINT, alpha=0.6, linewidth=0)
    ax.stairs(every.hourly, range(25), baseline=None, color=INK, linewidth=1.4, label="all jobs of the log")
    if some:
        line = {key: STROKES[1].line[key] for key in ("color", "linestyle")}
        ax.stairs(some.hourly, range(25), baseline=None, linewidth=1.2, label="jobs of the experiments", **line)
        ax.legend(loc="upper left", frameon=False, fontsize=7.5)
    ax.axhline(every.mean, color=INK, linewidth=0.8)
    ax.set_ylim(0)


def _week(ax: Axes, every: Arrivals, some: Arrivals | None) -> None:
    ax.bar(range(7), every.daily, color=GREY, width=0.7)
    if some:
        ax.plot(range(7), some.daily, **{**STROKES[1].line, "linewidth": 0})
    ax.axhline(24 * every.mean, color=INK, linewidth=0.8)
    ax.set_ylim(0)
