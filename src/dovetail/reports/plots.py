"""Single pictures for work in Python: by kind, of schedules or of a case, with a legend of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from dovetail.errors import SettingError
from dovetail.model.schedule import Schedule
from dovetail.names import unknown
from dovetail.reports import line_figures, panel_figures, tradeoff_figures
from dovetail.reports.columns import named
from dovetail.reports.curves import Curves, curves
from dovetail.reports.figures import drawable
from dovetail.reports.page_data import Case
from dovetail.reports.style import STROKES, Stroke, settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LINES: Final[dict[str, Callable[[Sequence[Curves]], Figure]]] = {
    "waits": line_figures.waits_figure,
    "queue": line_figures.queue_figure,
    "utilization": line_figures.busy_figure,
    "wait-area": line_figures.wait_area_figure,
    "wait-map": panel_figures.wait_map_figure,
}
"""Kinds that need nothing but schedules."""
CASES: Final[dict[str, Callable[[Case], Figure]]] = {
    "changes": panel_figures.changes_figure,
    "matrix": tradeoff_figures.matrix_figure,
    "front": tradeoff_figures.front_figure,
}
"""Kinds that set policies against a baseline."""


def known(kind: str) -> str:
    """The kind, if there is one of that name."""
    if kind not in LINES and kind not in CASES:
        raise SettingError(unknown("kind of plot", kind, [*LINES, *CASES]))
    return kind


def of_case(case: Case, kind: str) -> Figure:
    """A picture of the policies of a case."""
    if known(kind) in CASES:
        _need(case, kind)
        with settings():
            return _finished(CASES[kind](case))
    shown = {entry.policy: entry.schedule() for entry in drawable(case) if entry.schedule is not None}
    if not shown:
        raise SettingError(f"a plot of kind {kind} draws starts of jobs, and none were kept")
    return _lines(shown, kind)


def of_schedules(schedules: Sequence[Schedule], kind: str) -> Figure:
    """A picture of schedules, one line each, called by what tells them apart."""
    if not 0 < len(schedules) <= len(STROKES):
        raise SettingError(f"{len(schedules)} schedules: from 1 to {len(STROKES)} lines can be told apart")
    parts = [(one.policy, one.estimate, one.workload.name, f"seed {one.seed}") for one in schedules]
    apart = [0, *(at for at in range(1, 4) if len({part[at] for part in parts}) > 1)]
    names = [", ".join(part[at] for at in apart) for part in parts]
    if len(set(names)) < len(names):
        names = [f"{at}. {name}" for at, name in enumerate(names, 1)]
    return _lines(dict(zip(names, schedules, strict=True)), kind)


def _need(case: Case, kind: str) -> None:
    """A case in which there is something to draw."""
    enough = {
        "changes": bool(panel_figures.changed(case)[0]),
        "matrix": bool(tradeoff_figures.columns_of(case)),
        "front": bool(tradeoff_figures.front(case)),
    }
    if not enough[kind]:
        raise SettingError(f"nothing to draw in a plot of kind {kind}: compare more policies, or other ones")


def _lines(schedules: dict[str, Schedule], kind: str) -> Figure:
    drawn: list[Curves] = []
    for name, schedule in schedules.items():
        if not bool((schedule.start >= 0).any()):
            raise SettingError(f"{name}: no job ever started, so there is nothing to draw")
        drawn.append(curves(name, schedule, drawn[0] if drawn else None))
    with settings():
        made = LINES[kind](drawn)
        if kind != "wait-map":
            keys = [(named(one.policy, 50), stroke) for one, stroke in zip(drawn, STROKES, strict=False)]
            if kind == "wait-area":
                keys = [("jobs", line_figures.ALL_JOBS), ("computation", line_figures.ALL_AREA), *keys]
            _legend(made, keys)
        return _finished(made)


def _legend(made: Figure, keys: Sequence[tuple[str, Stroke]]) -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], label=name, **stroke.line) for name, stroke in keys]
    made.legend(handles=handles, loc="outside lower left", ncols=min(len(keys), 4), frameon=False, handlelength=3)


def _finished(made: Figure) -> Figure:
    """On white, and laid out now: what is drawn later would follow the settings of that time."""
    made.set_facecolor("#ffffff")
    made.draw_without_rendering()
    return made
