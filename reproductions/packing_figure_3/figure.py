"""Fig. 3 of Packing: shares, and two formulas of the cumulative wait area, each on two scales."""

from __future__ import annotations

from typing import TYPE_CHECKING

from reproductions.packing_figure_3.page import POLICIES
from reproductions.runs import Runs
from reproductions.values import Values

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def cumulative(values: Values, runs: Runs) -> Figure:
    """Three rows (shares, Q r D, Q r), each on a linear axis of job areas as printed and on a logarithmic one."""
    from dovetail.reports.style import STROKES, figure

    made = figure(640, 640)
    axes = made.subplots(3, 2, sharex="col", sharey="row")
    curves = {one.cell.policy: one.curves for one in runs}
    rows = (
        (("jobs", "list-reg", "share of jobs", 1.0), ("job areas", "list-reg", "share of areas", 1.0)),
        tuple((name, policy, "by area", 1e15) for name, policy in POLICIES.items()),
        tuple((name, policy, "by size", 1e9) for name, policy in POLICIES.items()),
    )
    top = int(curves["list-reg"]["share of jobs"][-1][0])
    scales = (("linear", 0, range(0, top, 2_000_000), "as printed"), ("log", 1, [1, 100, 10_000, 10**6], "logarithmic"))
    for column, (scale, least, ticks, words) in enumerate(scales):
        for ax, lines in zip(axes[:, column], rows, strict=True):
            for stroke, (name, policy, curve, unit) in zip(STROKES, lines, strict=False):
                x, y = zip(*(point for point in curves[policy][curve] if point[0] >= least), strict=True)
                ax.plot(x, [one / unit for one in y], label=name, **{**stroke.line, "marker": ""})
        bottom = axes[2, column]
        bottom.set_xscale(scale)
        bottom.set_xlim(least, top)
        bottom.set_xticks(ticks, [f"{one:,}" for one in ticks])
        bottom.set_xticks([], minor=True)
        bottom.set_xlabel(f"job area, processor seconds ({words})")
    labels = ("cumulative share, %", "sum of Q r D,\n10¹⁵ processor s²", "sum of Q r,\n10⁹ processor s")
    for ax, label, limit in zip(axes[:, 0], labels, (101, 0.8, None), strict=True):
        ax.set_ylabel(label)
        ax.set_ylim(0, limit)
    axes[0, 0].legend(loc="lower right", frameon=False)
    axes[1, 1].legend(loc="upper left", frameon=False)
    return made
