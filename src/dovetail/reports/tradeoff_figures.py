"""Pictures of several objectives at once: the front between two metrics, and policies against all metrics."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, zip_longest
from math import hypot, isfinite, log2, nan
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from dovetail.metrics.catalog import METRICS, Metric, metric_of
from dovetail.reports.columns import DASH, labels
from dovetail.reports.page_data import Case
from dovetail.reports.style import BETTER, GREY, INK, WORSE, figure, text_colour
from dovetail.reports.tables import best_value

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FEWEST: Final = 3
"""Fewer policies have no front."""
MOST_NAMED: Final = 17
"""Points of the front that carry their names, and rows of the matrix; the baseline is one of them."""
FAR: Final = 2.0
"""A value of more than this times the baseline's stands at the edge, so that it does not squeeze the others."""

_WIDE: Final = 920
_HIGH: Final = 290
_ROW: Final = 17.0
_FONT: Final = 8
_NEAR: Final = 12.0
"""Points between a mark and its name up to which no line needs to join them."""


@dataclass(frozen=True)
class Point:
    """A policy in the plane of two metrics, each as a multiple of the baseline's."""

    entry: int
    """Its place in the case."""
    x: float
    y: float
    dominated: bool
    """Whether another policy is as good in both and better in one."""


class Box(NamedTuple):
    """A rectangle on the screen."""

    left: float
    low: float
    right: float
    high: float


def relative(case: Case, at: int, key: str) -> float:
    """A policy's value as a multiple of the baseline's; nan where one of them is missing or the baseline's is 0."""
    pair = case.entries[0], case.entries[at]
    base, own = (nan if entry.unstarted else float(entry.metrics.get(key, nan)) for entry in pair)
    return own / base if isfinite(own) and isfinite(base) and base > 0 else nan


def front(case: Case) -> list[Point]:
    """All policies that have both metrics; none if they are too few to speak of a front."""
    found = [
        (at, relative(case, at, case.axes[0]), relative(case, at, case.axes[1])) for at in range(len(case.entries))
    ]
    known = [(at, x, y) for at, x, y in found if isfinite(x) and isfinite(y)]
    if len(known) < FEWEST:
        return []
    return [
        Point(at, x, y, any(a <= x and b <= y and (a, b) != (x, y) for _, a, b in known)) for at, x, y in known
    ]  # fmt: skip


def front_figure(case: Case) -> Figure:
    """Two metrics against each other: those that no other beats in both are filled, and joined by steps."""
    points = front(case)
    made = figure(_WIDE, _HIGH)
    ax = made.subplots()
    for set_limits, values in ((ax.set_xlim, [p.x for p in points]), (ax.set_ylim, [p.y for p in points])):
        low, high = min(values), max(*(value for value in values if value <= FAR), min(values) + 0.02)
        pad = 0.09 * (high - low)
        set_limits(low - pad, high + pad)
    ax.axvline(1, color=INK, linewidth=0.6, zorder=1)
    ax.axhline(1, color=INK, linewidth=0.6, zorder=1)
    ax.plot(*zip(*_corners(points), strict=True), color=BETTER, linewidth=1.2, zorder=2)
    _percent_of_baseline(ax)
    ax.set_xlabel(f"{metric_of(case.axes[0]).head}, in percent of the baseline's (less is better)")
    ax.set_title(f"{metric_of(case.axes[1]).head}, in percent of the baseline's (less is better)")
    _marks(ax, points)
    made.draw_without_rendering()  # now the axes have their place, and names can look for theirs
    made.set_layout_engine("none")
    _names(ax, case, points)
    return made


def _corners(points: Sequence[Point]) -> list[tuple[float, float]]:
    """The front as steps: from each point to the right, then down to the next."""
    steps = sorted({(p.x, p.y) for p in points if not p.dominated})
    between = [(right, y) for (_, y), (right, _) in pairwise(steps)]
    return [corner for pair in zip_longest(steps, between) for corner in pair if corner is not None]


def _marks(ax: Axes, points: Sequence[Point]) -> None:
    for point in points:
        colour = INK if point.entry == 0 else GREY if point.dominated else BETTER
        shape = "s" if point.entry == 0 else "o"
        x, y = _shown(ax, point)
        if (x, y) != (point.x, point.y):
            shape = ">" if point.x > x else "^"
        face = "#ffffff" if point.dominated else colour
        ax.plot([x], [y], marker=shape, color=colour, markerfacecolor=face, markersize=6, linestyle="none", zorder=3)


def _shown(ax: Axes, point: Point) -> tuple[float, float]:
    """Where a point is drawn: at the edge, if it lies beyond."""
    (left, right), (low, high) = ax.get_xlim(), ax.get_ylim()
    edge_x, edge_y = right - 0.02 * (right - left), high - 0.04 * (high - low)
    return (min(point.x, edge_x), min(point.y, edge_y))


def _names(ax: Axes, case: Case, points: Sequence[Point]) -> None:
    """A name beside each mark, as near as there is room: no name covers another, or a mark, or if it can a line."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = ax.figure
    assert isinstance(made, Figure)  # noqa: S101 - not within a figure of figures
    renderer, unit = FigureCanvasAgg(made).get_renderer(), made.dpi / 72  # type: ignore[no-untyped-call]
    inside = Box(*ax.get_window_extent(renderer).extents)
    texts = labels([entry.policy for entry in case.entries])
    marks: list[tuple[float, float]] = [tuple(ax.transData.transform(_shown(ax, point))) for point in points]
    taken = [Box(x - 5 * unit, y - 5 * unit, x + 5 * unit, y + 5 * unit) for x, y in marks]
    corners = ax.transData.transform(_corners(points))
    lines = [Box(*np.minimum(a, b), *np.maximum(a, b)) for a, b in pairwise(corners)]
    x, y = ax.transData.transform((1, 1))
    lines += [Box(x, inside.low, x, inside.high), Box(inside.left, y, inside.right, y)]
    for at in _first_named(points):
        point, mark = points[at], marks[at]
        text = texts[point.entry] + (" (baseline)" if point.entry == 0 else "") + _beyond(ax, case, point)
        size = _size(made, text, renderer)
        if (box := _free_place(mark, size, inside, taken, lines, unit)) is not None:
            taken.append(box)
            _put(ax, text, GREY if point.dominated and point.entry else INK, mark, box, unit)


def _size(made: Figure, text: str, renderer: Any) -> tuple[float, float]:
    """Width and height of a name."""
    trial = made.text(0, 0, text, fontsize=_FONT)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font", UserWarning)  # the browser will have it
        extent = trial.get_window_extent(renderer)
    trial.remove()
    return extent.width, extent.height


def _first_named(points: Sequence[Point]) -> list[int]:
    """Which points get names: the baseline, those not dominated, then the others, while there is room for names."""
    order = sorted(range(len(points)), key=lambda at: (points[at].entry != 0, points[at].dominated))
    return order[:MOST_NAMED]


def _beyond(ax: Axes, case: Case, point: Point) -> str:
    """The values of a point that is drawn at the edge."""
    x, y = _shown(ax, point)
    pairs = ((point.x > x, case.axes[0], point.x), (point.y > y, case.axes[1], point.y))
    said = [f"{metric_of(key).head} {of_baseline(value)}" for is_beyond, key, value in pairs if is_beyond]
    return f": {', '.join(said)}" if said else ""


def _free_place(
    mark: tuple[float, float], size: tuple[float, float], inside: Box, taken: Sequence[Box], lines: Sequence[Box],
    unit: float,
) -> Box | None:  # fmt: skip
    """A box of that size, within `inside`, clear of all `taken`, as near to the mark as can be; None: nowhere."""
    (x, y), (width, height) = mark, size
    across = np.append(np.arange(inside.left, inside.right, 3 * unit), [x + 8 * unit, x - width / 2])
    up = np.append(np.arange(inside.low, inside.high, 3 * unit), y - height / 2)
    lefts, lows = (grid.ravel() for grid in np.meshgrid(across, up))
    rights, highs = lefts + width, lows + height
    within = (lefts >= inside.left) & (rights <= inside.right) & (lows >= inside.low) & (highs <= inside.high)

    def clear(box: Box) -> npt.NDArray[np.bool_]:
        apart = (lefts > box.right + 2 * unit) | (rights < box.left - 2 * unit)
        found: npt.NDArray[np.bool_] = apart | (lows > box.high + unit) | (highs < box.low - unit)
        return found

    free = np.logical_and.reduce([within, *map(clear, taken)])
    if not free.any():
        return None
    away = np.hypot(np.maximum(lefts - x, x - rights).clip(0), np.maximum(lows - y, y - highs).clip(0))
    off_centre = np.hypot(lefts + width / 2 - x, lows + height / 2 - y)
    crossed = np.add.reduce([~clear(line) for line in lines])
    best = int(np.argmin(np.where(free, away + 0.02 * off_centre + 15 * unit * crossed, np.inf)))
    return Box(float(lefts[best]), float(lows[best]), float(rights[best]), float(highs[best]))


def _put(ax: Axes, text: str, colour: str, mark: tuple[float, float], box: Box, unit: float) -> None:
    """Writes a name into its box, with a thin line to its mark where that is not beside it."""
    x, y = mark
    away = hypot(max(box.left - x, x - box.right, 0), max(box.low - y, y - box.high, 0))
    line = {"arrowstyle": "-", "color": GREY, "linewidth": 0.5, "shrinkA": 0, "shrinkB": 4}
    ax.annotate(
        text, tuple(ax.transData.inverted().transform(mark)), ((box.left - x) / unit, (box.low - y) / unit),
        textcoords="offset points", ha="left", va="bottom", fontsize=_FONT, color=colour,
        arrowprops=line if away > _NEAR * unit else None,
    )  # fmt: skip


def _percent_of_baseline(ax: Axes) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(MaxNLocator(6, steps=[1, 2, 5, 10]))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.10g} %"))


def of_baseline(multiple: float) -> str:
    """A multiple of the baseline's value as percent: 87.4 %, 1,230 %."""
    if not isfinite(multiple):
        return DASH
    return f"{100 * multiple:.1f} %" if multiple < 9.9995 else f"{100 * multiple:,.0f} %"


def columns_of(case: Case) -> list[Metric]:
    """The metrics of the matrix: those that the baseline and another policy have."""
    others = range(1, len(case.entries))
    return [c for c in METRICS if any(isfinite(relative(case, at, c.key)) for at in others)]


def matrix_figure(case: Case) -> Figure:
    """Policies against metrics, in percent of the baseline: blue is better, orange worse; a star marks the best."""
    from matplotlib.patches import Rectangle

    columns, rows = columns_of(case), case.entries[:MOST_NAMED]
    made = figure(_WIDE, _ROW * len(rows) + 34)
    ax = made.subplots()
    for across, column in enumerate(columns):
        best = best_value(case, column)
        for down in range(len(rows)):
            found = relative(case, down, column.key)
            colour = shade(1 / found if column.more_is_better and found else found)
            ax.add_patch(Rectangle((across, down), 1, 1, facecolor=colour, edgecolor="#ffffff"))
            star = rows[down].metrics.get(column.key, nan) == best and rows[down].contends
            text = ("★ " if star else "") + of_baseline(found)
            weight = "bold" if star else "normal"
            at = ax.text(across + 0.5, down + 0.5, text, ha="center", va="center", fontsize=8, fontweight=weight)
            at.set_color(text_colour(colour))
            at.set_in_layout(False)  # it is within the axes, and measuring it takes long
    ax.set_xlim(0, max(len(columns), 1))
    ax.set_ylim(len(rows), 0)
    heads = ["\n".join(wrap(c.head + (" (more is better)" if c.more_is_better else ""), 17)) for c in columns]
    ax.set_xticks(np.arange(len(columns)) + 0.5, heads)
    ax.xaxis.tick_top()
    first, *others = labels([entry.policy for entry in case.entries])[: len(rows)]
    ax.set_yticks(np.arange(len(rows)) + 0.5, [f"{first} (baseline)", *others])
    ax.grid(visible=False)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return made


def shade(multiple: float) -> tuple[float, float, float]:
    """From blue (half of the baseline's or less) over white to orange (twice or more); grey where there is nothing."""
    from matplotlib.colors import to_rgb

    if not isfinite(multiple):
        return to_rgb("#eeeeee")
    part = min(max(log2(multiple) if multiple > 0 else -1.0, -1.0), 1.0)
    end = to_rgb(WORSE if part > 0 else BETTER)
    red, green, blue = (1 + abs(part) * (c - 1) for c in end)
    return red, green, blue
