"""The page on what planning gains where one, two or three resources of the nodes bind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dovetail.arrays import Floats
from dovetail.metrics.comparison import mean_interval
from dovetail.studies.papers.page import (
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
from dovetail.studies.papers.registry import CP

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME: Final = "binding"


class Metric(NamedTuple):
    """A metric that is shown: in words, and the planner that plans for it."""

    words: str
    planner: str
    digits: int


METRICS: Final[Mapping[str, Metric]] = {
    "bsld": Metric("BSLD", "plan-bsld", 2),
    "mean_wait_s": Metric("mean wait (s)", "plan-af", 0),
    "af_s": Metric("AF (s)", "plan-af", 0),
}


class Case(NamedTuple):
    """Load and estimate: what the runs with one, two and three resources share."""

    scenario: str
    estimate: str

    @property
    def words(self) -> str:
        known = "run times known" if self.estimate == "runtime" else "limits"
        return f"load {self.scenario.removeprefix('set-load=')}, {known}"


Seeds = Mapping[int, Mapping[str, float]]
"""The metrics of each seed."""


@dataclass(frozen=True)
class Gain:
    """The planner against the best list: means over the seeds, and the logarithm of their ratio seed by seed."""

    best: str
    list_mean: float
    planner_mean: float
    logs: tuple[float, ...]

    @property
    def interval(self) -> tuple[float, float, float]:
        """The gain in per cent, and its 95 % interval."""
        mean, low, high = mean_interval(self.logs)
        return 100 * (1 - exp(mean)), 100 * (1 - exp(high)), 100 * (1 - exp(low))


@dataclass(frozen=True)
class Found:
    """The runs that are there: by case, trace and policy."""

    cases: Mapping[Case, Mapping[str, Mapping[str, Seeds]]]
    missing: int

    def gain(self, case: Case, trace: str, metric: str) -> Gain:
        """What the planner of a metric gains over the list whose mean over the seeds is lowest."""
        runs, planner = self.cases[case][trace], METRICS[metric].planner
        means = {name: float(np.mean([one[metric] for one in seeds.values()])) for name, seeds in runs.items()}
        best = min((name for name in runs if not name.startswith("plan")), key=lambda name: means[name])
        plan = next(name for name in runs if name.startswith(planner))
        pairs = ((runs[plan][seed][metric], runs[best][seed][metric]) for seed in runs[best])
        return Gain(best, means[best], means[plan], tuple(log(max(a, 1) / max(b, 1)) for a, b in pairs))


def found(runs: Runs) -> Found:
    """What is in the store. A case has the seeds of which all runs are there, and is left out below two."""
    there = {row["run"]: row for row in runs.store.frame({task.name for task in runs.tasks}).iter_rows(named=True)}
    cases: dict[Case, dict[str, dict[str, dict[int, Mapping[str, float]]]]] = {}
    lacking: dict[Case, set[int]] = {}
    for task in runs.tasks:
        cell, row = task.cell, there.get(task.name)
        case = Case(cell.scenario, cell.estimate)
        seeds = cases.setdefault(case, {}).setdefault(cell.trace, {}).setdefault(cell.policy, {})
        if row is None:
            lacking.setdefault(case, set()).add(cell.seed)
        else:
            seeds[cell.seed] = {metric: float(row[metric]) for metric in METRICS}
    kept = {
        case: {
            trace: {
                policy: {seed: one for seed, one in seeds.items() if seed not in lacking.get(case, ())}
                for policy, seeds in policies.items()
            }
            for trace, policies in traces.items()
        }
        for case, traces in cases.items()
    }
    full = {case: traces for case, traces in kept.items() if len(next(iter(next(iter(traces.values())).values()))) > 1}
    return Found(full, sum(task.name not in there for task in runs.tasks))


def statements(shown: Found) -> list[Statement]:
    """Whether the gain is larger with all resources than with the first alone, case by case."""
    told = []
    for metric, (words, planner, _) in METRICS.items():
        for case, traces in shown.cases.items():
            gains = [shown.gain(case, trace, metric) for trace in traces]
            mean, low, high = mean_interval([a - b for a, b in zip(gains[-1].logs, gains[0].logs, strict=True)])
            text = ", ".join(f"{gain.interval[0]:.0f} %" for gain in gains)
            ratio = f"{text}; last to first: what is left times {exp(mean):.2f} [{exp(low):.2f}, {exp(high):.2f}]"
            told.append(Statement(f"{words.split(' (')[0]} (`{planner}`), {case.words}", ratio, high < 0))
    return told


def page(runs: Runs) -> Page:
    """The page, from what has been run."""
    shown = found(runs)
    said = statements(shown)
    answer = "Yes" if all(one.holds is True for one in said) else "Not in general"
    sections = [
        "# Planning where several resources bind",
        f'{CP} expects planning to gain more where jobs ask for several resources: it is to be "more advantageous in'
        ' systems with multiple resources, as the packing efficiency" of lists falls there (end of Section 5; Section 6'
        ' says "even more beneficial"). The paper has one resource and does not try it. Made by',
        made_with(NAME),
        _DESIGN,
        f"{shown.missing} of {len(runs.tasks)} runs are not in the store yet."
        if shown.missing
        else "All runs are there.",
        "## Does the gain grow with the number of resources?",
        f"{answer}: it is shown to grow in {held(said).split(' statements')[0]} cases.",
        stated("gain over the best list with one, two, three resources", said),
        f"![Gain of the planner by number of resources, and by wait]({NAME}.svg)" if shown.cases else "",
        _why(shown),
        *(part for metric in METRICS for part in _table(shown, metric)),
    ]
    label = "Gain of the planner over the best list, by number of resources that bind and by mean wait of that list"
    pictures = {f"{NAME}.svg": picture(lambda: _draw(shown), NAME, label)} if shown.cases else {}
    facts = {"missing": shown.missing, **facts_of(said)}
    return Page(filled(sections), f"the gain grows: {held(said)}; {shown.missing} runs missing", facts, pictures)


def _why(shown: Found) -> str:
    """What the numbers say about the expectation, and what they leave open."""
    waits = []
    for case, traces in shown.cases.items():
        each = [f"{shown.gain(case, trace, 'mean_wait_s').list_mean:,.0f}" for trace in traces]
        waits.append(f"{', '.join(each)} s ({case.words})")
    return f"""
Lists do get worse with more resources at the same load. The mean wait under the best of them, with one, two and three:
{"; ".join(waits)}. So there is more to gain; the table says where the planner takes it. The lower half of the figure
has the same gains by the wait of the list. Whether it is the number of resources or only the longer queue that planning
gains from, these runs cannot tell.

Where the interval of what is left lies above 1, the expectation is wrong. With limits as estimates, plans are made of
numbers far above run times; whether that is why `plan-bsld` loses to the lists there was not tried. For `plan-af` with
limits the gain in the mean wait and the two means beside it point different ways: the gain counts all seeds alike, the
means count those with long queues most.

With so many intervals of 95 %, one yes may be chance. {_seeds(shown)} seeds of 500 jobs, one kind of node, units of
at most half a node in each resource, and demands that have nothing to do with each other: that is all it was tried on.
Where demands go together, more resources bind no more than one.
"""


def _seeds(shown: Found) -> str:
    """How many seeds the cases have."""
    many = {len(next(iter(next(iter(traces.values())).values()))) for traces in shown.cases.values()}
    return ", ".join(str(n) for n in sorted(many)) or "No"


def _table(shown: Found, metric: str) -> list[str]:
    words, planner, digits = METRICS[metric]
    rows = []
    for case, traces in shown.cases.items():
        for trace in traces:
            gain = shown.gain(case, trace, metric)
            mean, low, high = gain.interval
            means = [f"{value:,.{digits}f}" for value in (gain.list_mean, gain.planner_mean)]
            rows.append([case.words, trace, f"`{gain.best}`", *means, f"{mean:.1f} [{low:.1f}, {high:.1f}]"])
    head = ["case", "resources that bind", "best list", "its mean", f"`{planner}`", "gain (%)"]
    return [f"## {words}", grid(head, rows)]


def _draw(shown: Found) -> Figure:
    """Above: the gain by number of resources, a line for each case. Below: the same points by the wait of the list."""
    from dovetail.reports.style import STROKES, figure

    made = figure(640, 420)
    axes = made.subplots(2, len(METRICS), sharey="col")
    for column, (metric, (words, planner, _)) in enumerate(METRICS.items()):
        above, below = axes[0, column], axes[1, column]
        for at, (case, traces) in enumerate(shown.cases.items()):
            gains = [shown.gain(case, trace, metric) for trace in traces]
            aside = 0.08 * (at - (len(shown.cases) - 1) / 2)
            x = np.array([count + aside for count in range(1, len(gains) + 1)], np.float64)
            _bars(above, x, gains, STROKES[at].line, case.words)
            waits = [shown.gain(case, trace, "mean_wait_s").list_mean for trace in traces]
            for count, (wait, gain) in enumerate(zip(waits, gains, strict=True), 1):
                below.text(wait, gain.interval[0], str(count), color=STROKES[at].colour, ha="center", va="center")
            below.plot(waits, [gain.interval[0] for gain in gains], color=STROKES[at].colour, lw=0.5, alpha=0.5)
        above.set_title(f"{words.split(' (')[0]}, {planner}")
        above.set_xticks(range(1, 1 + max(len(traces) for traces in shown.cases.values())))
        above.set_xlabel("resources that bind")
        below.set_xlim(left=0)
        below.set_xlabel("mean wait under the best list, s\n(a digit: resources that bind)")
        for ax in (above, below):
            ax.axhline(0, color="0.4", lw=0.6)
    for row in axes:
        row[0].set_ylabel("gain over the best list, %")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    made.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return made


def _bars(ax: Axes, x: Floats, gains: Sequence[Gain], line: Mapping[str, Any], label: str) -> None:
    """Points with their intervals, and a line through them."""
    mean, low, high = np.array([gain.interval for gain in gains]).T
    ax.errorbar(x, mean, yerr=[mean - low, high - mean], label=label, capsize=2, elinewidth=0.6, **line)


_DESIGN: Final = """
16 nodes, each with 32 cores, 32 GB and 32 slices of GPUs. 500 jobs of the model of Lublin and Feitelson (sizes up to 8)
with limits by Tsafrir, Etsion and Feitelson; a size is the number of units, each on one node. A unit asks for 1 to 16
cores, drawn evenly; with two resources for 1 to 16 GB as well, with three for 1 to 16 slices, each drawn for itself
(scenario `demand`). The jobs of a seed are the same otherwise. All resources that are asked for have the same load, to
a part in a hundred, so they bind alike. The load is the work that arrives over what the machine could do meanwhile; a
few long jobs are much of it, so there are hours without a queue even at 1.

Lists: EASY in the orders FCFS, SJF and SPF, with the placements `scarce` and `best`; the best is the one whose mean
over the seeds is lowest, which favours the lists. Planners: 20 decodes, a window of 30 jobs. A gain is 1 - the
geometric mean of planner / list over the seeds (a mean wait below 1 s counts as 1 s), with a 95 % interval by
Student's t. Whether it grows is asked seed by seed: planner / list with all resources over planner / list with cores
alone; yes means that the interval of that ratio lies below 1.
"""
