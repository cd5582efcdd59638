"""Pictures with one line per policy: waits, queue, utilisation, wait area. They draw what curves.py computed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dovetail.reports.curves import DAY, HOUR, Curves, Line
from dovetail.reports.style import GREY, STROKES, Stroke, duration_ticks, figure, span_axis

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH: Final = 440
HEIGHT: Final = 270

ALL_JOBS: Final = Stroke(GREY, (), "")
ALL_AREA: Final = Stroke(GREY, (4, 2), "")
"""The two curves of the wait-area picture that belong to the workload, not to a policy."""

ZERO: Final = 10**-0.6
"""Where a logarithmic axis of waits has its 0: a little left of 1 s."""

_AREA_UNITS: Final = ((365 * DAY, "years"), (DAY, "days"), (HOUR, "hours"), (60, "minutes"), (1, "seconds"))


def waits_figure(drawn: Sequence[Curves]) -> Figure:
    """The distribution of waits, one curve per policy."""
    made = figure(WIDTH, HEIGHT)
    ax = made.subplots()
    top = max(60.0, *(float(c.waits.x[-1]) for c in drawn))
    ax.set_xscale("log")
    ax.set_xlim(ZERO / 1.25, top * 1.1)
    _lines(ax, drawn, lambda c: Line(np.maximum(c.waits.x, ZERO), c.waits.y))
    duration_axis(ax, [(ZERO, "0"), *duration_ticks(1, top, 7)])
    ax.set_xlabel("wait, up to (logarithmic)")
    least = min(float(c.waits.y[0]) for c in drawn)
    ax.set_ylim(max(least - 0.03, 0) // 0.1 / 10, 1.01)  # what lies below all curves would be empty space
    percent_axis(ax)
    ax.set_title("share of jobs")
    return made


def queue_figure(drawn: Sequence[Curves]) -> Figure:
    """Jobs that wait over time, one line per policy."""
    made = _over_time(drawn, lambda c: c.queue)
    made.axes[0].set_title("jobs waiting")
    return made


def busy_figure(drawn: Sequence[Curves]) -> Figure:
    """Utilisation over time, one line per policy."""
    made = _over_time(drawn, lambda c: c.busy)
    ax = made.axes[0]
    ax.set_ylim(0, max(1.01, ax.get_ylim()[1]))
    percent_axis(ax)
    ax.set_title("share of the processors that ran jobs")
    return made


def wait_area_figure(drawn: Sequence[Curves]) -> Figure:
    """Cumulative wait area by job area (Packing, Fig. 3): jobs and area above, one curve per policy below."""
    made = figure(WIDTH, HEIGHT)
    above, below = made.subplots(2, 1, sharex=True, gridspec_kw={"height_ratios": [2, 3]})
    first = drawn[0]
    for line, stroke in ((first.job_share, ALL_JOBS), (first.area_share, ALL_AREA)):
        above.plot(np.maximum(line.x, 1), line.y, **stroke.line)
    above.set_ylim(0, 1.02)
    above.set_yticks([0, 0.5, 1], ["0", "50 %", "100 %"])
    above.set_title("share of all")
    top = max((float(c.wait_area.y.max(initial=0)) for c in drawn), default=0.0)
    unit_s, unit = next((s, text) for s, text in _AREA_UNITS if top >= 3 * s or s == 1)
    _lines(below, drawn, lambda c: Line(np.maximum(c.wait_area.x, 1), c.wait_area.y / unit_s))
    below.set_ylim(bottom=0)
    count_axis(below, 5)
    below.set_title(f"waited for, in processor {unit}")
    below.set_xscale("log")
    low, high = max(float(first.job_share.x.min(initial=1)), 1.0), float(first.job_share.x.max(initial=60))
    below.set_xlim(low, high * 1.1)
    duration_axis(below, duration_ticks(low, high, 7))
    below.set_xlabel("area of the job, up to (processor time, logarithmic)")
    return made


def _lines(ax: Axes, drawn: Sequence[Curves], of: Callable[[Curves], Line]) -> None:
    """One line per policy, the baseline on top, with some markers at unlike places so that each can be seen."""
    for at, (c, stroke) in enumerate(zip(drawn, STROKES, strict=False)):
        line = of(c)
        apart = max(len(line.x) // 6, 1)
        marks = [0, *range(1 + at * apart // len(drawn), len(line.x), apart)] if len(line.x) else []
        ax.plot(line.x, line.y, **stroke.line, markevery=marks, clip_on=True, zorder=3 - at / 100)


def _over_time(drawn: Sequence[Curves], of: Callable[[Curves], Line]) -> Figure:
    made = figure(WIDTH, HEIGHT)
    ax = made.subplots()
    unit_s = span_axis(ax, max((float(of(c).x.max(initial=1)) for c in drawn), default=1.0))
    _lines(ax, drawn, lambda c: Line(of(c).x / unit_s, of(c).y))
    ax.set_ylim(bottom=0)
    count_axis(ax, 6)
    return made


def count_axis(ax: Axes, most: int) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.yaxis.set_major_locator(MaxNLocator(most, integer=True))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))


def percent_axis(ax: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    ax.yaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.0f} %"))


def duration_axis(ax: Axes, ticks: Sequence[tuple[float, str]]) -> None:
    from matplotlib.ticker import NullFormatter, NullLocator

    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticks([x for x, _ in ticks], [text for _, text in ticks])
