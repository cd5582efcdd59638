"""The page on Fig. 3 of Packing: who carries the waiting on SDSC-SP2, small jobs or large ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.metrics import Outcomes, awf_s, awq_s, mean_wait_s, outcomes, wait_area_curve
from dovetail.metrics.exact import running_sum
from dovetail.studies.papers.page import (
    LOGS,
    Page,
    Runs,
    Statement,
    facts_of,
    filled,
    grid,
    held,
    made_with,
    picture,
    stated,
)
from dovetail.studies.papers.recompute import schedule

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME: Final = "packing-figure-3"
POLICIES: Final = {
    "SAF-JustBF": "list-saf",
    "EASY-SJBF": "easy-sjbf",
    "JustBF": "list-reg",
    "LAF-JustBF": "list-laf",
}
"""The lines of the figure: the paper's name of each policy, and ours."""
POINTS: Final = 300
"""Places at which a curve is drawn."""
STARVED_S: Final = 30 * 86400
"""A wait that is called starving here: the papers name no number."""
AXIS_TOP: Final = 0.8e15
"""Where the authors' script cuts the lower axis, in processor seconds times seconds."""
HOUR: Final = 3600
DAY: Final = 86400


@dataclass(frozen=True)
class Waiting:
    """What the jobs of one policy waited, in the order of their areas; `small` and `large` are parts of them."""

    jobs: Outcomes
    area: Ints
    """Of each distinct area, rising; the curves have a value for each."""
    job_share: Floats
    area_share: Floats
    by_size: Floats
    """CWA as the text has it: sum of Q r over jobs with an area up to x, in processor seconds."""
    by_area: Floats
    """CWA as the authors' script draws it: sum of Q r D."""
    small: Outcomes
    """The 80 % of the jobs with the smallest areas."""
    large: Outcomes
    """The 5 % with the largest."""
    rest: Outcomes
    """All but the small ones."""

    def gap(self, curve: Floats) -> float:
        """How far a curve is from proportional to the job areas: its share less theirs where they differ most."""
        off = curve / curve[-1] - self.area_share
        return float(off[np.abs(off).argmax()])


def waiting(jobs: Outcomes) -> Waiting:
    """The curves and the parts."""
    order = np.argsort(jobs.area, kind="stable")
    curve = wait_area_curve(jobs)
    last = np.searchsorted(jobs.area[order], curve.area, "right") - 1
    n = len(jobs)
    parts = [
        Outcomes(jobs.size[at], jobs.runtime[at], jobs.wait[at])
        for at in (order[: n * 80 // 100], order[n * 95 // 100 :], order[n * 80 // 100 :])
    ]
    by_area = running_sum((jobs.area * jobs.wait)[order])[last]
    return Waiting(jobs, curve.area, curve.job_fraction, curve.area_fraction, curve.wait_area, by_area, *parts)


def page(runs: Runs) -> Page:
    """The page and its picture."""
    tasks = {task.cell.policy: task for task in runs.tasks}
    made = {name: schedule(runs.store, tasks[policy]) for name, policy in POLICIES.items()}
    found = {name: waiting(outcomes(one)) for name, one in made.items()}
    workload = next(iter(made.values())).workload
    said = _statements(found)
    parts = [
        _summary(len(workload), said),
        f"![Fig. 3 of Packing, drawn by Dovetail]({NAME}.svg)",
        f"## Made with\n\n{made_with(NAME)}\n\n{LOGS} SDSC-SP2: thanks to {workload.provenance.acknowledge}.",
        f"## What the paper says, in numbers\n\n{stated('Packing, Section V', said)}",
        _formula(found),
        _groups(found),
    ]
    label = "Cumulative jobs, job areas and wait areas by job area on SDSC-SP2"
    drawn = picture(lambda: _draw(found), "fig3", label)
    return Page(filled(parts), held(said), facts_of(said), {f"{NAME}.svg": drawn})


def _summary(jobs: int, said: Sequence[Statement]) -> str:
    return f"""
# Fig. 3 of Packing, recomputed

Fig. 3 of "Packing" (Goponenko, Lamar, Peterson, Allan, Brandt and Dechev, Metrics for Packing Efficiency and
Fairness of HPC Cluster Batch Job Scheduling, SBAC-PAD 2022): on the authors' input of SDSC-SP2 ({jobs:,}
jobs, 128 processors), with the run time known and all jobs counted. Top: the share of the jobs, and of all
job area (size times run time), that belongs to jobs with an area up to x. Below: the cumulative wait area of
four policies.

The printed curves are a picture and not data: they cannot be compared number by number. What the text says
about them can. {held(said)}.
"""


def _statements(found: Mapping[str, Waiting]) -> list[Statement]:
    """What the text says of the figure, with our numbers and whether it holds."""
    base, saf, laf = found["JustBF"], found["SAF-JustBF"], found["LAF-JustBF"]
    small, large = (float(part.area.sum() / base.jobs.area.sum()) for part in (base.small, base.large))
    gaps = {name: abs(one.gap(one.by_area)) for name, one in found.items()}
    by_area = {part: awq_s(jobs) / HOUR for part, jobs in (("small", laf.small), ("rest", laf.rest))}
    awf = awf_s(laf.jobs) / awf_s(base.jobs) - 1
    starved = "no" if mean_wait_s(laf.small) > DAY else "in part" if _longest(laf.small) > STARVED_S else "yes"
    return [
        Statement("the smallest 80 % of the jobs have less than 5 % of the job area", f"{small:.2%}", small < 0.05),
        Statement("the largest 5 % have more than 50 %", f"{large:.2%}", large > 0.5),
        Statement(
            "JustBF keeps CWA roughly proportional to cumulative job area",
            f"their shares differ by up to {_points(gaps)}",
            min(gaps, key=lambda name: gaps[name]) == "JustBF",
        ),
        Statement(
            "SAF-JustBF depletes the wait queue of small jobs",
            f"mean wait of the smallest 80 %: {_hours(saf.small)} (JustBF {_hours(base.small)})",
            mean_wait_s(saf.small) < mean_wait_s(base.small) / 2,
        ),
        Statement(
            "and nearly starves the large jobs",
            f"mean wait of the largest 5 %: {_hours(saf.large)} (JustBF {_hours(base.large)}), the longest"
            f" {_days(saf.large)} (JustBF {_days(base.large)})",
            _longest(saf.large) > STARVED_S,
        ),
        Statement(
            "LAF-JustBF increases the wait of smaller jobs",
            f"mean wait of the smallest 80 %: {_hours(laf.small)} (JustBF {_hours(base.small)})",
            mean_wait_s(laf.small) > mean_wait_s(base.small),
        ),
        Statement(
            "yet they do not starve",
            f"mean wait {_hours(laf.small)}, the longest {_days(laf.small)} (JustBF {_days(base.small)})",
            starved,
        ),
        Statement(
            "their wait per job area remains smaller (on average) than that of the larger jobs",
            f"wait averaged by area: smallest 80 % {by_area['small']:.1f} h, all others {by_area['rest']:.1f} h",
            by_area["small"] < by_area["rest"],
        ),
        Statement("the overall productivity of the cluster increases", f"AWF against JustBF: {awf:+.0%}", awf < 0),
    ]


def _longest(jobs: Outcomes) -> int:
    return int(jobs.wait.max())


def _hours(jobs: Outcomes) -> str:
    return f"{mean_wait_s(jobs) / HOUR:.1f} h"


def _days(jobs: Outcomes) -> str:
    return f"{_longest(jobs) / DAY:.1f} d"


def _points(gaps: Mapping[str, float]) -> str:
    return ", ".join(f"{100 * gap:.0f} points ({name})" for name, gap in sorted(gaps.items(), key=lambda pair: pair[1]))


def _formula(found: Mapping[str, Waiting]) -> str:
    rows = []
    for name, one in found.items():
        totals = (f"{one.by_area[-1] / 1e15:.2f} x 10^15", f"{one.by_size[-1] / 1e9:.1f} x 10^9")
        gaps = (f"{100 * one.gap(curve):+.0f}" for curve in (one.by_area, one.by_size))
        rows.append([name, *(text for pair in zip(totals, gaps, strict=True) for text in pair)])
    head = ["policy", "sum of Q r D, processor s²", "gap, points", "sum of Q r, processor s", "gap, points"]
    return f"""
## Two formulas

The text defines CWA(x) as the sum of Q r (wait times size) over the jobs with an area up to x. The authors'
script (github.com/algo74/predictsim; its first line says that it makes Fig. 3) adds up Q r D, wait times area,
and cuts the axis at {AXIS_TOP / 1e15:.1f} x 10^15 processor s². So the picture is the second, and so are the
numbers above. Only with Q r D is JustBF the nearest to proportional; with Q r, as the text has it, all four
curves would lie on the floor of that axis, and small jobs carry more of the waiting than their area under
every policy but SAF-JustBF, because waits grow with area far less than area itself does.
Below, a gap is the share of CWA less the share of area where they differ most.

{grid(head, rows)}
"""


def _groups(found: Mapping[str, Waiting]) -> str:
    jobs = {name: one.jobs for name, one in found.items()}
    order = np.argsort(next(iter(jobs.values())).area, kind="stable")
    edges = [len(order) * percent // 100 for percent in (0, 20, 40, 60, 80, 95, 100)]
    names = ("smallest 20 %", "20 to 40 %", "40 to 60 %", "60 to 80 %", "80 to 95 %", "largest 5 %")
    rows = []
    for name, begin, end in zip(names, edges, edges[1:], strict=False):
        at = order[begin:end]
        rows.append([name, *(f"{float(one.wait[at].mean()) / HOUR:.2f}" for one in jobs.values())])
    return f"## Mean wait by job area, hours\n\n{grid(['jobs', *jobs], rows)}"


def _draw(found: Mapping[str, Waiting]) -> Figure:
    """Three rows (shares, Q r D, Q r), each on a linear axis of job areas as printed and on a logarithmic one."""
    from dovetail.reports.style import figure

    made = figure(640, 640)
    axes = made.subplots(3, 2, sharex="col", sharey="row")
    one = found["JustBF"]
    top = float(one.area[-1])
    scales = (
        ("linear", np.linspace(0, top, POINTS), range(0, int(top), 2_000_000), "as printed"),
        ("log", np.geomspace(1, top, POINTS), [1, 100, 10_000, 1_000_000], "logarithmic"),
    )
    for ax, (scale, at, ticks, words) in zip(axes.T, scales, strict=True):
        for stroke, (name, curve) in enumerate((("jobs", one.job_share), ("job areas", one.area_share))):
            _line(ax[0], at, one.area, 100 * curve, stroke, name)
        for stroke, (name, each) in enumerate(found.items()):
            _line(ax[1], at, each.area, each.by_area / 1e15, stroke, name)
            _line(ax[2], at, each.area, each.by_size / 1e9, stroke, name)
        ax[2].set_xscale(scale)
        ax[2].set_xlim(float(at[0]), top)
        ax[2].set_xticks(ticks, [f"{x:,}" for x in ticks])
        ax[2].set_xticks([], minor=True)
        ax[2].set_xlabel(f"job area, processor seconds ({words})")
    labels = ("cumulative share, %", "sum of Q r D,\n10¹⁵ processor s²", "sum of Q r,\n10⁹ processor s")
    for ax, label, limit in zip(axes[:, 0], labels, (101, AXIS_TOP / 1e15, None), strict=True):
        ax.set_ylabel(label)
        ax.set_ylim(0, limit)
    axes[0, 0].legend(loc="lower right", frameon=False)
    axes[1, 1].legend(loc="upper left", frameon=False)
    return made


def _line(ax: Axes, at: Floats, x: Ints, y: Floats, stroke: int, name: str) -> None:
    """A step function drawn at so many places: more would not be seen."""
    from dovetail.reports.style import STROKES

    here = np.searchsorted(x, at, "right") - 1
    ax.plot(at, np.where(here < 0, 0.0, y[here]), label=name, **{**STROKES[stroke].line, "marker": ""})
