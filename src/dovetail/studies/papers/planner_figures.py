"""Figs. 2 to 7 of CP from our runs: each a picture, and what the paper says of it in numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.metrics import timeline
from dovetail.optimize.window.bounds import awf_bound_s
from dovetail.reports.curves import DAY, Line, binned, edges, middles
from dovetail.reports.style import FAINT, GREY, STROKES, Stroke, figure
from dovetail.studies.papers import planner_said as said
from dovetail.studies.papers.page import Runs, Statement, picture, stated
from dovetail.studies.papers.planner_runs import ALL, BASE, Found, Key
from dovetail.studies.papers.planner_said import KNOWN, SP2, Values, first, values
from dovetail.studies.papers.tables import METRICS, P2SF_PLUS, TABLE_2, TABLE_2_CP, TABLE_II, Place, Table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

WIDTH: Final = 640
HEIGHT: Final = 270


@dataclass(frozen=True)
class Series:
    """One kind of mark: a value for each trace. Hollow marks are published numbers."""

    label: str
    by_trace: Values
    stroke: Stroke
    hollow: bool = False


def figures(shown: Found, runs: Runs) -> tuple[list[str], dict[str, str]]:
    """The part of the page on the figures, and the pictures by file name."""
    bound = _bounds(shown, runs)
    queues = _queues(shown)
    made: list[tuple[int, str, str, str, list[Statement], Callable[[], Figure]]] = [
        (2, "AWF", _FIG_2, "5.1", said.about_packing(shown, bound), lambda: _marks([_fig_2(shown, bound)], shown)),
        (3, "BSLD", _FIG_3, "5.2", said.about_slowdown(shown), lambda: _marks([_fig_3(shown)], shown)),
        (4, "AF, and AWF of the same schedules", _FIG_4, "5.3", said.about_response(shown), lambda: _fig_4(shown)),
        (5, "the queue of SDSC-SP2", _FIG_5, "5.3", said.about_overload(shown), lambda: _fig_5(shown)),
        (6, "P2SF", _FIG_6, "5.4", said.about_fairness(shown), lambda: _marks([_fig_6(shown)], shown)),
        (7, "how many jobs wait", _FIG_7, "5.4", said.about_queues(queues, shown), lambda: _fig_7(queues)),
    ]
    parts, pictures = [_HEAD], {}
    for number, title, text, section, told, draw in made:
        name = f"planner-figure-{number}.svg"
        pictures[name] = picture(draw, f"fig{number}", f"Fig. {number} of CP, drawn by Dovetail: {title}")
        parts.append(f"### Fig. {number}: {title}\n\n{text}\n\n![Fig. {number} of CP, drawn by Dovetail]({name})")
        parts.append(stated(f"CP, Section {section}", told))
    return parts, pictures


_HEAD: Final = """
## Figs. 2 to 7

All with the run times known. Printed pictures are not data: hollow marks are the numbers of Table 2 (of Table II of
Packing for AWF in Fig. 4). The off-line schedules of Figs. 2, 3, 4 and 6 (CP-OFF, KTH-SP2 only) were made by giving
CP Optimizer the whole trace at once; ours, the stars, by a planner that knows the next 50 jobs in each pass. Fig. 2
also has a lower bound that holds for every schedule.
CP-BSLD+ and CP-P2SF+ improve the plans of list policies in each pass; our planner always begins with them, so it is
what is compared with these too.
"""
_FIG_2: Final = "The paper shows AWF of CP-AWF and List-LAF by trace, in per cent of List-REG: CP-AWF is lowest."
_FIG_3: Final = (
    "The paper shows BSLD of CP-BSLD, CP-BSLD+ and three list policies: all far below List-REG, and the solver not"
    " below List-SPF."
)
_FIG_4: Final = (
    "The paper shows AF (a) and AWF (b) of CP-AF, List-SAF and List-SJF: only CP-AF improves AF on all traces, since"
    " the others pack badly."
)
_FIG_5: Final = (
    "The paper shows the queue over time on SDSC-SP2: it grows without end under List-SAF and does not under CP-AF."
    " Ours: means of one week."
)
_FIG_6: Final = "The paper shows P2SF of CP-P2SF and CP-P2SF+: below List-REG on few traces only."
_FIG_7: Final = (
    "The paper shows how many jobs wait in the passes of CP-P2SF, as the reason why its search fails where queues are"
    " long. Ours: the share of the passes in which at most so many jobs wait, under our planner for P2SF."
)


def _bounds(shown: Found, runs: Runs) -> Values:
    """On AWF: what no schedule can beat, in per cent of the base."""
    bases = {t.cell.trace: t for t in runs.tasks if (t.cell.policy, t.cell.estimate) == (BASE, KNOWN)}
    found = {}
    for trace, task in bases.items():
        base = shown.there.get(Key(trace, BASE, KNOWN))
        if base is not None:
            least = awf_bound_s(runs.store.workload(task.workload_sha256), by_size=True)
            found[trace] = 100 * least / base.values[ALL]["awf_s"]
    return found


def _queues(shown: Found) -> dict[str, Ints]:
    plan = first(shown, "p2sf_s")
    made = {trace: shown.read(Key(trace, plan, KNOWN)) for trace in shown.traces if plan}
    return {trace: said.queue_lengths(one) for trace, one in made.items() if one is not None}


def _published(table: Table, row: str, metric: str, shown: Found) -> Values:
    places = {trace: Place(metric, row, KNOWN, trace) for trace in shown.traces}
    return {trace: float(table.percent[place]) for trace, place in places.items() if place in table.percent}


def _planned(shown: Found, metric: str, of: str | None = None) -> list[Series]:
    """The planner for a metric, each of its settings; `of`: measured by another metric."""
    strokes = (STROKES[2], STROKES[5], STROKES[4])
    texts = shown.planners(metric)[: len(strokes)]
    made = [Series(text, values(shown, text, of or metric), s) for text, s in zip(texts, strokes, strict=False)]
    return made if of else [*made, Series("knows the future", said.offline(shown, metric), Stroke(GREY, (), "*"))]


def _both(shown: Found, names: Mapping[str, str], metric: str, table: Table = TABLE_2) -> list[Series]:
    """Our list policies, each beside its published row."""
    strokes = (STROKES[1], STROKES[3], STROKES[0])
    made = []
    for (ours, row), stroke in zip(names.items(), strokes, strict=False):
        made.append(Series(ours, values(shown, ours, metric), stroke))
        made.append(Series(f"{row}, published", _published(table, row, metric, shown), stroke, hollow=True))
    return made


def _solver(shown: Found, metric: str) -> Series:
    row = next(place.row for place in TABLE_2_CP.percent if place.metric == metric)
    return Series(f"{row}, published", _published(TABLE_2_CP, row, metric, shown), STROKES[2], hollow=True)


_NEAR: Final = 50
"""Where all marks are below this, the line of the base would only push them together: it is left out."""


@dataclass(frozen=True)
class Panel:
    """Marks over one axis."""

    title: str
    series: Sequence[Series]
    logarithmic: bool = False


def _fig_2(shown: Found, bound: Values) -> Panel:
    least = Series("no schedule is below", bound, Stroke(GREY, (), "_"))
    lists = _both(shown, {"list-laf": "List-LAF"}, "awf_s")
    return Panel("AWF, % of list-reg", [*lists, _solver(shown, "awf_s"), *_planned(shown, "awf_s"), least])


def _fig_3(shown: Found) -> Panel:
    lists = _both(shown, {"list-spf": "List-SPF", "list-saf": "List-SAF", "list-sjf": "List-SJF"}, "bsld")
    return Panel("BSLD, % of list-reg", [*lists, _solver(shown, "bsld"), *_planned(shown, "bsld")])


def _fig_4(shown: Found) -> Figure:
    lists = _both(shown, {"list-saf": "List-SAF", "list-sjf": "List-SJF"}, "af_s")
    above = Panel("(a) AF, % of list-reg", [*lists, _solver(shown, "af_s"), *_planned(shown, "af_s")])
    packing = _both(shown, {"list-saf": "SAF-JustBF", "list-sjf": "SJF-JustBF"}, "awf_s", TABLE_II)
    nothing = Series("", {}, STROKES[2], hollow=True)  # the solver's place: AWF of CP-AF is not printed
    below = Panel("(b) AWF, % of list-reg (logarithmic)", [*packing, nothing, *_planned(shown, "af_s", "awf_s")], True)
    return _marks([above, below], shown)


def _fig_6(shown: Found) -> Panel:
    plus = Series("CP-P2SF+, published in words", P2SF_PLUS, STROKES[1], hollow=True)
    return Panel("P2SF, % of list-reg", [_solver(shown, "p2sf_s"), plus, *_planned(shown, "p2sf_s")])


def _marks(panels: Sequence[Panel], shown: Found) -> Figure:
    """For each trace the marks of all series side by side; the base is the line at 100, if it is near."""
    made = figure(WIDTH, 40 + HEIGHT * len(panels))
    axes = made.subplots(len(panels), 1, squeeze=False)[:, 0]
    for ax, panel in zip(axes, panels, strict=True):
        _panel(ax, panel, shown.traces)
    handles, labels = axes[0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside upper left", ncols=3, frameon=False)
    return made


def _panel(ax: Axes, panel: Panel, traces: Sequence[str]) -> None:
    drawn_to = max((value for one in panel.series for value in one.by_trace.values()), default=100.0)
    if drawn_to > _NEAR:
        ax.axhline(100, color=GREY, linewidth=1)
    last = len(panel.series) - 1
    shift = min(0.13, 0.76 / max(last, 1))
    for number, one in enumerate(panel.series):
        at = [i + (number - last / 2) * shift for i, trace in enumerate(traces) if trace in one.by_trace]
        drawn: dict[str, Any] = {
            "color": one.stroke.colour,
            "marker": one.stroke.marker,
            "linestyle": "none",
            "markersize": 6,
        }
        if one.hollow:
            drawn |= {"markerfacecolor": "#ffffff", "markeredgewidth": 1.3}
        if one.stroke.marker == "_":
            drawn |= {"markersize": 10, "markeredgewidth": 2}
        label = one.label if at else ""  # nothing to see, nothing to explain
        ax.plot(at, [one.by_trace[t] for t in traces if t in one.by_trace], label=label or None, **drawn)
    for i in range(1, len(traces)):
        ax.axvline(i - 0.5, color=FAINT, linewidth=0.5, zorder=0)
    ax.set_xlim(-0.5, len(traces) - 0.5)
    ax.set_xticks(range(len(traces)), traces)
    ax.grid(visible=False, axis="x")
    ax.tick_params(axis="x", length=0)
    ax.set_title(panel.title)
    if panel.logarithmic:
        ax.set_yscale("log")
        ax.set_yticks([100, 200, 500, 1000], ["100", "200", "500", "1,000"])
        ax.set_yticks([], minor=True)
    else:
        low, high = ax.get_ylim()
        ax.set_ylim(0 if low < 40 else low, high)


def _fig_5(shown: Found) -> Figure:
    """Jobs that wait over time, the mean of each week."""
    made = figure(WIDTH, HEIGHT)
    ax = made.subplots()
    plan = first(shown, "af_s")
    for number, name in enumerate(filter(None, (BASE, "list-saf", plan))):
        one = shown.read(Key(SP2, name, KNOWN))
        if one is not None:
            line = timeline(one)
            at = edges(line.times, 7 * DAY)
            week = Line(middles(at), binned(line.times, line.queue_jobs, at))
            ax.plot(week.x / DAY, week.y, label=name, **{**STROKES[number].line, "marker": ""})
    ax.set_xlabel("days since the first arrival")
    ax.set_xlim(left=0)
    ax.set_ylim(bottom=0)
    ax.set_title("jobs waiting on SDSC-SP2")
    if ax.lines:
        ax.legend(loc="upper left", frameon=False)
    return made


def _fig_7(queues: Mapping[str, Ints]) -> Figure:
    """Share of the passes in which at most so many jobs wait, one line per trace."""
    made = figure(WIDTH, HEIGHT)
    ax = made.subplots()
    top = max((int(found.max(initial=1)) for found in queues.values()), default=1)
    at = np.unique(np.rint(np.geomspace(1, max(top, 100), 120))).astype(np.int64)
    for stroke, (trace, found) in zip(STROKES, queues.items(), strict=False):
        share = np.searchsorted(np.sort(found), at, side="right") / max(len(found), 1)
        ax.plot(at, 100 * share, label=trace, **{**stroke.line, "marker": ""})
    ax.axvline(said.LONG_QUEUE, color=GREY, linewidth=1)
    ax.annotate(f"{said.LONG_QUEUE} jobs", (said.LONG_QUEUE, 2), (4, 0), textcoords="offset points", color=GREY)
    ax.set_xscale("log")
    ticks = [tick for tick in (1, 10, 100, 1000, 10_000) if tick <= at[-1]]
    ax.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    ax.set_xticks([], minor=True)
    ax.set_xlim(1, float(at[-1]))
    ax.set_ylim(0, 101)
    ax.set_xlabel("jobs waiting, up to (logarithmic)")
    ax.set_title(f"share of the passes of the planner for {METRICS['p2sf_s']}, %")
    if queues:
        ax.legend(loc="lower right", frameon=False)
    return made
