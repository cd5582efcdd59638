"""Pictures of what would have become of waits: of each alternative, each part of the jobs, each week, and curves."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from dovetail.arrays import Floats
from dovetail.metrics.whatif import MIDDLE, Change, Waits, WhatIf
from dovetail.reports.columns import named
from dovetail.reports.line_figures import HEIGHT, WIDTH, ZERO, duration_axis, percent_axis
from dovetail.reports.style import BETTER, GREY, INK, STROKES, WORSE, Stroke, duration_ticks, figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

RECORDED: Final = Stroke(INK, (), "D")
REPLAYED: Final = Stroke(BETTER, (), "o")
SHORTER, LONGER, ALIKE = Stroke(BETTER, (), "o"), Stroke(WORSE, (), "o"), Stroke(GREY, (), "o")
_ROW: Final = 17.0
_NAME: Final = 34
_UNITS: Final = ((86400, "days", 3), (3600, "hours", 3), (60, "minutes", 3), (1, "seconds", 0))
_POINTS: Final = 200
"""Of a distribution."""
_NUMBER: Final = re.compile(r"([^=]+)=(\d+(?:\.\d+)?)")


def means_figure(found: WhatIf) -> Figure:
    """The mean wait under each alternative: a mark, and a line where 95 % of the phases are."""
    its = [found.today, *(one.waits for one in found.answers)]
    rows = [(named(one.name, _NAME), one.means(found.started)) for one in its]
    recorded = found.trust.recorded_s if found.trust else None
    made = _rows_figure(len(rows) + (recorded is not None))
    ax = made.axes[0]
    unit_s = _unit([*(means.max() for _, means in rows), recorded or 0.0], ax, "mean wait")
    names = list[str]()
    if recorded is not None:
        names.append("recorded")
        ax.plot([recorded / unit_s], [0], linestyle="none", marker="D", markersize=4.5, color=RECORDED.colour)
    strokes = [ALIKE, *(_stroke(one.all) for one in found.answers)]
    for (name, means), stroke in zip(rows, strokes, strict=True):
        low, high = np.quantile(means, MIDDLE) / unit_s
        ax.hlines(len(names), low, high, color=stroke.colour, linewidth=1.6)
        ax.plot([means.mean() / unit_s], [len(names)], linestyle="none", marker="o", markersize=5, color=stroke.colour)
        names.append(name)
    ax.axvline(float(rows[0][1].mean()) / unit_s, color=GREY, linewidth=0.8, linestyle=(0, (3, 2)))
    ax.set_xlim(left=0)
    _named_rows(ax, names)
    return made


def changes_figure(rows: Mapping[str, Change]) -> Figure:
    """The change of the mean wait of each part of the jobs, with what is chance."""
    made = _rows_figure(len(rows))
    ax = made.axes[0]
    shown = list(rows.values())
    unit_s = _unit([value for one in shown for value in (one.low_s, one.high_s)], ax, "change of the mean wait")
    for at, one in enumerate(shown):
        colour = _stroke(one).colour
        ax.hlines(at, one.low_s / unit_s, one.high_s / unit_s, color=colour, linewidth=1.6)
        change = (one.then_s - one.today_s) / unit_s
        ax.plot([change], [at], linestyle="none", marker="o", markersize=5, color=colour)
    ax.axvline(0, color=INK, linewidth=0.8)
    _named_rows(ax, [named(name, _NAME) for name in rows])
    return made


def weeks_figure(names: Sequence[str], changes: Sequence[Change]) -> Figure:
    """The same by the week of submission, from left to right."""
    made = figure(WIDTH, HEIGHT - 40)
    ax = made.subplots()
    unit_s, unit = _unit_of([value for one in changes for value in (one.low_s, one.high_s)])
    for at, one in enumerate(changes):
        colour = _stroke(one).colour
        ax.vlines(at, one.low_s / unit_s, one.high_s / unit_s, color=colour, linewidth=1.6)
        ax.plot([at], [(one.then_s - one.today_s) / unit_s], linestyle="none", marker="o", markersize=4, color=colour)
    ax.axhline(0, color=INK, linewidth=0.8)
    every = -(-len(names) // 6)
    shown = range(0, len(names), every)
    ax.set_xticks(shown, [names[at] for at in shown])
    ax.set_xlim(-0.6, len(names) - 0.4)
    ax.grid(visible=False, axis="x")
    ax.set_title(f"change of the mean wait, in {unit}")
    return made


def spread_figure(lines: Sequence[tuple[str, Floats, Stroke]]) -> Figure:
    """The distribution of waits, all phases together; `spread_lines` says which."""
    made = figure(WIDTH, HEIGHT)
    ax = made.subplots()
    shares = np.linspace(0, 1, _POINTS)
    top = 60.0
    for _, waits, stroke in lines:
        x = np.quantile(waits, shares, method="higher")
        top = max(top, float(x[-1]))
        ax.plot(np.maximum(x, ZERO), shares, **{**stroke.line, "markevery": _POINTS // 6})
    ax.set_xscale("log")
    ax.set_xlim(ZERO / 1.25, top * 1.1)
    duration_axis(ax, [(ZERO, "0"), *duration_ticks(1, top, 7)])
    ax.set_xlabel("wait, up to (logarithmic)")
    ax.set_ylim(0, 1.01)
    percent_axis(ax)
    ax.set_title("share of jobs")
    return made


def spread_lines(found: WhatIf, most: int) -> list[tuple[str, Floats, Stroke]]:
    """What is drawn: its name, waits of the jobs that start in each replay, and how; those of curves last."""
    lines = [("recorded", found.recorded)] if found.trust else []
    last = curved(found)
    its = sorted((one.waits for one in found.answers), key=lambda one: one.name in last)
    lines += [(named(one.name, _NAME), one.seconds) for one in (found.today, *its)]
    known = ((name, (chosen := waits[..., found.started])[~np.isnan(chosen)]) for name, waits in lines)
    shown = [(name, waits) for name, waits in known if len(waits)][:most]
    return [(name, waits, stroke) for (name, waits), stroke in zip(shown, STROKES, strict=False)]


def curves(found: WhatIf, fewest: int = 3) -> dict[str, list[tuple[float, Waits]]]:
    """Settings that were tried with some values each: by name, the waits with each value, rising."""
    values: dict[str, dict[float, Waits]] = {}
    for one in found.answers:
        if match := _NUMBER.fullmatch(one.waits.name):
            values.setdefault(match[1], {})[float(match[2])] = one.waits
    return {
        name: sorted(some.items(), key=lambda pair: pair[0]) for name, some in values.items() if len(some) >= fewest
    }


def curved(found: WhatIf) -> set[str]:
    """The names of what is on a curve."""
    return {waits.name for tried in curves(found).values() for _, waits in tried}


def curve_figure(found: WhatIf, name: str, tried: Sequence[tuple[float, Waits]]) -> Figure:
    """The mean wait by the value of a setting, a band for 95 % of the phases; today's beside it, dashed."""
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    made = figure(WIDTH, HEIGHT)
    ax = made.subplots()
    x = [value for value, _ in tried]
    means = np.array([one.means(found.started) for _, one in tried])
    low, high = np.quantile(means, MIDDLE, axis=1)
    was = found.today.means(found.started)
    unit_s, unit = _unit_of([*means.max(axis=1), was.max()])
    ax.fill_between(x, low / unit_s, high / unit_s, color=BETTER, alpha=0.2, linewidth=0)
    ax.plot(x, means.mean(axis=1) / unit_s, **REPLAYED.line)
    ax.axhline(float(was.mean()) / unit_s, color=GREY, linewidth=1, linestyle=(0, (4, 2)))
    if x[0] > 0 and x[-1] >= 8 * x[0]:
        ax.set_xscale("log")
    ax.xaxis.set_minor_locator(NullLocator())
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.set_xticks(x)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    ax.set_xlabel(named(name, _NAME))
    ax.set_ylim(bottom=0)
    ax.set_title(f"mean wait, in {unit}")
    return made


def trust_figure(groups: Sequence[tuple[str, int, float, float]]) -> Figure:
    """The mean wait of each part of the jobs, recorded and replayed."""
    made = _rows_figure(len(groups))
    ax = made.axes[0]
    unit_s = _unit([value for *_, was, now in groups for value in (was, now)], ax, "mean wait")
    for at, (_, _, was, now) in enumerate(groups):
        ax.hlines(at, min(was, now) / unit_s, max(was, now) / unit_s, color=GREY, linewidth=1)
        for value, stroke in ((was, RECORDED), (now, REPLAYED)):
            ax.plot([value / unit_s], [at], linestyle="none", marker=stroke.marker, markersize=4.5, color=stroke.colour)
    ax.set_xlim(left=0)
    _named_rows(ax, [named(name, _NAME) for name, *_ in groups])
    return made


def _stroke(made: Change) -> Stroke:
    return ALIKE if not made.told else SHORTER if made.then_s < made.today_s else LONGER


def _rows_figure(rows: int) -> Figure:
    made = figure(WIDTH, 52 + _ROW * max(rows, 3))
    made.subplots()
    return made


def _named_rows(ax: Axes, names: Sequence[str]) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.grid(visible=False, axis="y")
    ax.tick_params(axis="y", length=0)


def _unit(seconds: Sequence[float], ax: Axes, what: str) -> float:
    """Seconds of the unit in which these are best counted; the axis says which."""
    unit_s, unit = _unit_of(seconds)
    ax.set_xlabel(f"{what}, in {unit}")
    return unit_s


def _unit_of(seconds: Sequence[float]) -> tuple[float, str]:
    far = max((abs(one) for one in seconds if np.isfinite(one)), default=0.0)
    return next((float(s), name) for s, name, least in _UNITS if far >= least * s)
