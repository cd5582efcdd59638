"""Figs. 2, 3, 4 and 6 of CP: for each trace the marks of all policies side by side, hollow ones are published."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from dovetail.reports.style import FAINT, GREY, STROKES, Stroke, figure
from reproductions.planner_table_2.page import LOGS, planners
from reproductions.runs import Runs
from reproductions.values import Values

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NEAR: Final = 50
"""Where all marks are below this, the line of the base would only push them together: it is left out."""


class Series(NamedTuple):
    """One kind of mark: a value for each trace."""

    label: str
    by_log: dict[str, float]
    stroke: Stroke
    hollow: bool = False


def _ours(values: Values, policy: str, metric: str, stroke: Stroke, label: str = "") -> Series:
    found = {log: values.number(f"{log}, runtime", policy, metric) for log in LOGS}
    return Series(label or policy, {log: one for log, one in found.items() if one is not None}, stroke)


def _published(values: Values, row: str, table: str, stroke: Stroke) -> Series:
    found = {log: values.printed_number(table, row, log) for log in LOGS}
    return Series(f"{row}, published", {log: one for log, one in found.items() if one is not None}, stroke, True)


def _lists(values: Values, metric: str, rows: dict[str, str], table: str = "") -> list[Series]:
    """Our list policies, each beside its published row."""
    made = []
    for (policy, row), stroke in zip(rows.items(), (STROKES[1], STROKES[3], STROKES[0]), strict=False):
        made += [_ours(values, policy, metric, stroke), _published(values, row, table or f"{metric}, runtime", stroke)]
    return made


def _planned(values: Values, metric: str, of: str = "") -> list[Series]:
    """The planner for a metric, each of its first settings; `of`: measured by another metric."""
    texts = zip(planners(metric), (STROKES[2], STROKES[5], STROKES[4]), strict=False)
    made = [_ours(values, text, of or metric, stroke) for text, stroke in texts]
    stars = _ours(values, f"offline-{metric.lower()}", metric, Stroke(GREY, (), "*"), "knows the future")
    return made if of else [*made, stars]


def _solver(values: Values, metric: str) -> Series:
    return _published(values, f"CP-{metric}", f"{metric}, runtime", STROKES[2])


def figure_2(values: Values, _: Runs) -> Figure:
    """AWF, and what no schedule can beat."""
    least = {log: one for log in LOGS if (one := values.number("no schedule is below", "", log)) is not None}
    below = Series("no schedule is below", least, Stroke(GREY, (), "_"))
    lists = _lists(values, "AWF", {"list-laf": "List-LAF"})
    return _marks({"AWF, % of list-reg": [*lists, _solver(values, "AWF"), *_planned(values, "AWF"), below]})


def figure_3(values: Values, _: Runs) -> Figure:
    """BSLD."""
    lists = _lists(values, "BSLD", {"list-spf": "List-SPF", "list-saf": "List-SAF", "list-sjf": "List-SJF"})
    return _marks({"BSLD, % of list-reg": [*lists, _solver(values, "BSLD"), *_planned(values, "BSLD")]})


def figure_4(values: Values, _: Runs) -> Figure:
    """AF, and AWF of the same schedules. AWF of CP-AF is not printed."""
    lists = _lists(values, "AF", {"list-saf": "List-SAF", "list-sjf": "List-SJF"})
    packing = _lists(values, "AWF", {"list-saf": "SAF-JustBF", "list-sjf": "SJF-JustBF"}, "Packing, AWF, runtime")
    nothing = Series("", {}, STROKES[2], hollow=True)
    above = [*lists, _solver(values, "AF"), *_planned(values, "AF")]
    below = [*packing, nothing, *_planned(values, "AF", "AWF")]
    made = _marks({"(a) AF, % of list-reg": above, "(b) AWF, % of list-reg (logarithmic)": below})
    made.axes[1].set_yscale("log")
    made.axes[1].set_yticks([100, 200, 500, 1000], ["100", "200", "500", "1,000"])
    made.axes[1].set_yticks([], minor=True)
    return made


def figure_6(values: Values, _: Runs) -> Figure:
    """P2SF."""
    plus = _published(values, "CP-P2SF+", "P2SF, runtime", STROKES[1])
    return _marks({"P2SF, % of list-reg": [_solver(values, "P2SF"), plus, *_planned(values, "P2SF")]})


def _marks(panels: dict[str, list[Series]]) -> Figure:
    """The base is the line at 100, if it is near."""
    made = figure(640, 40 + 270 * len(panels))
    axes = made.subplots(len(panels), 1, squeeze=False)[:, 0]
    for ax, (title, series) in zip(axes, panels.items(), strict=True):
        ax.set_title(title)
        _panel(ax, series)
    made.legend(*axes[0].get_legend_handles_labels(), loc="outside upper left", ncols=3, frameon=False)
    return made


def _panel(ax: Axes, series: list[Series]) -> None:
    if max((value for one in series for value in one.by_log.values()), default=100.0) > _NEAR:
        ax.axhline(100, color=GREY, linewidth=1)
    last = len(series) - 1
    shift = min(0.13, 0.76 / max(last, 1))
    for number, one in enumerate(series):
        at = [place + (number - last / 2) * shift for place, log in enumerate(LOGS) if log in one.by_log]
        flat = one.stroke.marker == "_"
        ax.plot(
            at, [one.by_log[log] for log in LOGS if log in one.by_log], label=one.label if at else None,
            color=one.stroke.colour, marker=one.stroke.marker, linestyle="none", markersize=10 if flat else 6,
            markerfacecolor="#ffffff" if one.hollow else one.stroke.colour,
            markeredgewidth=1.3 if one.hollow else 2 if flat else 1,
        )  # fmt: skip
    for place in range(1, len(LOGS)):
        ax.axvline(place - 0.5, color=FAINT, linewidth=0.5, zorder=0)
    ax.set_xlim(-0.5, len(LOGS) - 0.5)
    ax.set_xticks(range(len(LOGS)), LOGS)
    ax.grid(visible=False, axis="x")
    ax.tick_params(axis="x", length=0)
    low, high = ax.get_ylim()
    ax.set_ylim(0 if low < 40 else low, high)
