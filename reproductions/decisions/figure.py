"""Mean waits against the time of a decision: a line for each scheduler, a point for each factor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dovetail.reports.style import STROKES, figure
from reproductions.decisions.page import EURORA, KTH, names
from reproductions.runs import Runs
from reproductions.values import Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TICKS: Final = {
    1e-4: "0.1 ms", 1e-3: "1 ms", 1e-2: "10 ms", 0.1: "0.1 s", 1.0: "1 s", 10.0: "10 s", 100.0: "100 s",
}  # fmt: skip


def waits(values: Values, _: Runs) -> Figure:
    """A panel for each stretch, with its schedulers below it."""
    made = figure(920, 520)
    for ax, trace in zip(made.subplots(1, 2), (KTH, EURORA), strict=True):
        for stroke, name in enumerate(names(trace)):
            points = sorted((float(key[2]), wait) for key, wait in values.numbers(f"figure: {trace}", name).items())
            if points:
                ax.plot(*zip(*points, strict=True), label=name, **STROKES[stroke % len(STROKES)].line)
        ax.set_xscale("log")
        ax.set_xticks(list(TICKS), list(TICKS.values()))
        ax.set_xticks([], minor=True)
        ax.set_ylim(bottom=0)
        ax.set_title(trace)
        ax.set_xlabel("time of a decision")
        if ax.lines:
            ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.14), ncol=2, frameon=False)
    made.axes[0].set_ylabel("mean wait (s)")
    return made
