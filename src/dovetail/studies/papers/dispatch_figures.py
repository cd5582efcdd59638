"""Figs. 6 to 9 of the dispatcher paper, drawn from our instances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.reports.style import FAINT, GREY, STROKES, figure
from dovetail.studies.papers.dispatch_compared import ONCE, PCP21, Pair

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CALLED: Final[Mapping[str, str]] = {"runtime": "real run times", "limit": "limits as estimates"}
_STROKES: Final = (STROKES[0], STROKES[2])
_SAID: Final[Mapping[str, Any]] = {"color": FAINT, "alpha": 0.5, "linewidth": 0}
_LEAST: Final = 0.1
"""Below it the axis of fails is linear, down to 0."""


def draw(ratios: Mapping[str, Sequence[float]], pairs: Mapping[str, Sequence[Pair]]) -> Figure:
    """By estimate: ratios of variables, and instances that were solved. Figs. 6 to 8: the ratio against the per cent of
    instances, sorted. Fig. 9: time against fails. Grey is where the paper has all, or almost all, of its instances."""
    made = figure(640, 480)
    (variables, times), (fails, both) = made.subplots(2, 2)
    for ax in (variables, times, both):
        ax.set_yscale("log")
    fails.set_yscale("symlog", linthresh=_LEAST)
    both.set_xscale("symlog", linthresh=_LEAST)
    for (estimate, found), stroke in zip(ratios.items(), _STROKES, strict=False):
        percent = 100 * np.arange(1, len(found) + 1) / len(found)
        variables.plot(percent, sorted(found), color=stroke.colour, linewidth=1.4, label=CALLED[estimate])
        for name, dashes in ((PCP21, "-"), (ONCE, ":")):
            time = [(pair.time(name), pair.weight) for pair in pairs[estimate]]
            fail = [(pair.fails(name), pair.weight) for pair in pairs[estimate]]
            for ax, points in ((times, time), (fails, fail)):
                _sorted(ax, points, color=stroke.colour, linestyle=dashes, linewidth=1.4)
        for proved, face in ((True, stroke.colour), (False, "none")):
            spots = [(p.fails(), p.time()) for p in pairs[estimate] if p.proved == proved and np.isfinite(p.fails())]
            x, y = np.array(spots or np.empty((0, 2))).T
            both.scatter(x, y, s=16, marker=stroke.marker, edgecolors=stroke.colour, facecolors=face, linewidths=0.9)
    times.plot([], [], color=GREY, linestyle=":", linewidth=1.4, label="PCP'21 stopped after one search (Figs. 7, 8)")
    both.scatter([], [], s=16, edgecolors=GREY, facecolors=GREY, label="both proved (Fig. 9)")
    both.scatter([], [], s=16, edgecolors=GREY, facecolors="none", label="a limit was reached")
    _finish(variables, times, fails, both)
    keys = [ax.get_legend_handles_labels() for ax in (variables, times, both)]
    handles, labels = ([one for key in keys for one in key[side]] for side in (0, 1))
    made.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False)
    return made


def _sorted(ax: Axes, points: Sequence[tuple[float, float]], **line: Any) -> None:
    """Numbers by size, each as wide as its weight; those that are none are left out."""
    known = sorted(point for point in points if np.isfinite(point[0]))
    if known:
        reached = 100 * np.cumsum([weight for _, weight in known]) / sum(weight for _, weight in known)
        ax.step([0, *reached], [known[0][0], *(number for number, _ in known)], where="pre", **line)


def _finish(variables: Axes, times: Axes, fails: Axes, both: Axes) -> None:
    """Titles, axes, and what the paper says."""
    from matplotlib.ticker import FuncFormatter, NullLocator

    variables.set_title("Fig. 6: variables, by the formulas")
    times.set_title("Fig. 7: time")
    fails.set_title("Fig. 8: fails, where PCP'19 has any")
    both.set_title("Fig. 9: time against fails")
    for ax in (variables, times, fails):
        ax.set_xlim(0, 100)
        ax.set_xlabel("% of instances")
        ax.set_ylabel("PCP'21 / PCP'19")
    both.set_xlabel("fails, PCP'21 / PCP'19")
    both.set_ylabel("time, PCP'21 / PCP'19")
    fails.set_ylim(-0.02, max(fails.get_ylim()[1], 2))
    both.set_xlim(-0.02, max(both.get_xlim()[1], 2))
    variables.set_ylim(0.04)
    variables.axhspan(0.04, 0.1, **_SAID)
    fails.axhspan(0, 0.1, **_SAID)
    for ax in (times, both):
        ax.set_ylim(min(ax.get_ylim()[0], 0.1), max(ax.get_ylim()[1], 2))
    times.axhspan(times.get_ylim()[0], 1, **_SAID)
    both.fill_between([both.get_xlim()[0], 1], both.get_ylim()[0], 1, **_SAID)
    both.axvline(1, color=GREY, linewidth=0.8)
    for ax in (variables, times, fails, both):
        ax.axhline(1, color=GREY, linewidth=0.8)
        for axis in (ax.xaxis, ax.yaxis):
            if axis.get_scale() != "linear":
                axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
                axis.set_minor_locator(NullLocator())
