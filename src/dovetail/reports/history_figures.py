"""Pictures of what happened: waits by group and by hour of the week, limits, what was in use and what waited."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.arrays import Floats
from dovetail.metrics.history import DAYS, STEPS, Groups, History, clock_s
from dovetail.reports.columns import named
from dovetail.reports.line_figures import HEIGHT, WIDTH, ZERO, count_axis, duration_axis, percent_axis
from dovetail.reports.style import (
    BETTER,
    GREY,
    STROKES,
    WORSE,
    Stroke,
    duration_ticks,
    figure,
    short_duration,
    span_axis,
    text_colour,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEW: Final = 10
"""An hour of the week with fewer jobs is hatched."""
BAR: Final = "#56B4E9"
MEAN: Final = Stroke(WORSE, (), "D")
JOBS: Final = Stroke(BAR, (), "s")
CORE_HOURS: Final = Stroke(WORSE, (), "o")
_WIDE: Final = 920
_ROW: Final = 16.0


def waits_figure(groups: Groups) -> Figure:
    """From the median to nine in ten a bar, on to 99 of 100 a line, the mean a mark; one row per group.
    Reasons explain the wait since submission."""
    rows, total = len(groups.names), float(groups.core_h.sum())
    made = figure(WIDTH, 46 + _ROW * max(rows, 3))
    ax, at = made.subplots(), np.arange(rows)
    spread = groups.since_submit if groups.by == "reason" else groups.wait
    mean, median, p90, p99 = (
        np.maximum(one, ZERO) for one in (spread.mean_s, spread.median_s, spread.p90_s, spread.p99_s)
    )
    ax.set_xscale("log")
    ax.hlines(at, p90, p99, color=GREY, linewidth=1.2)
    ax.barh(at, p90 - median, left=median, height=0.6, color=BAR)
    ax.plot(median, at, linestyle="none", marker="|", color=BETTER, markersize=9, markeredgewidth=2.2)
    ax.plot(mean, at, linestyle="none", marker=MEAN.marker, color=MEAN.colour, markersize=4)
    top = max(60.0, float(np.nanmax(np.maximum(p99, mean))))
    ax.set_xlim(ZERO / 1.25, top * 1.3)
    duration_axis(ax, [(ZERO, "0"), *duration_ticks(1, top * 1.3, 7)])
    shares = groups.core_h / total if total else np.zeros(rows)
    labels = [f"{named(name, 26)} · {100 * share:.0f} %" for name, share in zip(groups.names, shares, strict=True)]
    ax.set_yticks(at, labels)
    ax.set_ylim(rows - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)
    return made


def week_figure(week: Groups) -> Figure:
    """Mean wait by day of the week and hour of submission."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import LogNorm
    from matplotlib.patches import Rectangle

    made = figure(_WIDE, 44 + 7 * 24)
    ax = made.subplots()
    top_s = max(600.0, float(np.nanmax(week.wait.mean_s, initial=0.0)))
    least_s = min(60.0, top_s / 100)
    colours = ScalarMappable(LogNorm(least_s, top_s, clip=True), colormaps["YlGnBu"])
    shades = colours.to_rgba(np.nan_to_num(week.wait.mean_s))
    for cell in np.flatnonzero(week.jobs).tolist():
        day, hour = divmod(cell, 24)
        mean, colour = float(week.wait.mean_s[cell]), tuple(shades[cell])
        ink = text_colour(colour)
        ax.add_patch(Rectangle((hour, day), 1, 1, facecolor=colour, edgecolor="#ffffff"))
        if week.jobs[cell] < FEW:
            ax.add_patch(Rectangle((hour, day), 1, 1, fill=False, edgecolor=ink, alpha=0.3, linewidth=0, hatch="////"))
        text = ax.text(hour + 0.5, day + 0.5, short_duration(mean), ha="center", va="center", color=ink, fontsize=7)
        text.set_in_layout(False)
    ax.set_xlim(0, 24)
    ax.set_ylim(7, 0)
    ax.set_xticks(range(0, 25, 3), [f"{hour}:00" for hour in range(0, 25, 3)])
    ax.set_yticks(np.arange(7) + 0.5, DAYS)
    ax.grid(visible=False)
    ax.tick_params(axis="y", length=0)
    ax.spines[:].set_visible(False)
    ticks = duration_ticks(least_s, top_s, 6)
    bar = made.colorbar(colours, ax=ax, pad=0.015, aspect=15)
    bar.ax.minorticks_off()
    bar.set_ticks([x for x, _ in ticks], labels=[text for _, text in ticks])
    bar.ax.set_title("mean wait")
    return made


def busy_figure(found: History) -> Figure:
    """What was in use over time, one line per resource."""
    made = figure(_WIDE, HEIGHT - 40)
    ax = made.subplots()
    x = _times(ax, found)
    for values, stroke in zip(found.over_time.busy.values(), STROKES, strict=False):
        ax.plot(x, values, **{**stroke.line, "marker": ""})
    ax.set_ylim(0, max(1.01, ax.get_ylim()[1]))
    percent_axis(ax)
    ax.set_title("share in use")
    return made


def queue_figure(found: History) -> Figure:
    """Jobs that waited, and the work in them."""
    made = figure(_WIDE, HEIGHT + 40)
    above, below = made.subplots(2, 1, sharex=True)
    x = _times(below, found)
    for ax, values, title in (
        (above, found.over_time.queue_jobs, "jobs waiting"),
        (below, found.over_time.backlog_core_h, "backlog, in core hours"),
    ):
        ax.fill_between(x, values, step=None, color=BAR, linewidth=0)
        ax.set_ylim(0, max(float(values.max(initial=0)) * 1.05, 1))
        count_axis(ax, 4)
        ax.set_title(title)
    return made


def _times(ax: Axes, found: History) -> Floats:
    """Where the middles of bins lie on an axis of dates, or of the time since the first submission."""
    edges = found.over_time.edges
    middles = (edges[:-1] + edges[1:]) / 2
    if not found.epoch:
        unit_s = span_axis(ax, found.span_s)
        return np.asarray((middles - edges[0]) / unit_s, np.float64)
    from matplotlib.dates import AutoDateLocator, ConciseDateFormatter

    place: Any = AutoDateLocator(minticks=4, maxticks=10)  # type: ignore[no-untyped-call]
    ax.xaxis.set_major_locator(place)
    ax.xaxis.set_major_formatter(ConciseDateFormatter(place, show_offset=False))  # type: ignore[no-untyped-call]
    shown = [clock_s(found.epoch + one, found.zone) / 86400 for one in (middles.astype(np.int64), edges[[0, -1]])]
    ax.set_xlim(*shown[1])
    return np.asarray(shown[0], np.float64)


def limits_figure(found: History) -> Figure:
    """Jobs and core hours by the share of the limit that was used."""
    made = figure(WIDTH, HEIGHT)
    ax = made.subplots()
    at = np.arange(STEPS + 1) + 0.5
    at[-1] += 0.5  # apart: what reached it
    jobs = found.limit_jobs / max(int(found.limit_jobs.sum()), 1)
    core_h = found.limit_core_h / max(float(found.limit_core_h.sum()), 1e-9)
    ax.bar(at, jobs, width=0.9, color=JOBS.colour)
    ax.plot(at, core_h, linestyle="none", marker="o", markersize=4, color=CORE_HOURS.colour)
    ax.set_xticks([0, 5, 10, 15, 20, float(at[-1])], ["0", "25 %", "50 %", "75 %", "", "reached"])
    ax.set_xlim(0, STEPS + 2)
    ax.set_ylim(bottom=0)
    percent_axis(ax)
    ax.set_xlabel("share of the limit that was used")
    ax.set_title("share of all")
    ax.grid(visible=False, axis="x")
    return made
