"""The page on Tables 1 and 2 and Figs. 5 and 10 of the dispatcher paper: how long decisions take, how good they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Ints
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
from dovetail.studies.papers.registry import DISPATCHER

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAME: Final = "dispatch-tables"
PAPERS: Final[Mapping[str, str]] = {"hcp19": "HCP'19", "pcp19": "PCP'19", "pcp21": "PCP'21", "pcp21s": "PCP'21s"}
EURORA: Final = "Table 1, Eurora"
PUBLISHED: Final[Mapping[str, Mapping[tuple[str, str], tuple[int, int]]]] = {
    EURORA: {
        ("hcp19", "runtime"): (357, 189_522), ("pcp19", "runtime"): (469, 249_367),
        ("pcp21", "runtime"): (256, 136_401), ("hcp19", "similar"): (392, 208_231),
        ("pcp19", "similar"): (511, 271_586), ("pcp21", "similar"): (209, 111_373),
    },
    "Table 2, KIT ForHLR II; PCP'19 did not end": {
        ("hcp19", "runtime"): (269, 54_289), ("pcp21", "runtime"): (476, 96_030), ("pcp21s", "runtime"): (342, 69_094),
        ("hcp19", "recent"): (278, 56_083), ("pcp21", "recent"): (493, 99_590), ("pcp21s", "recent"): (334, 67_471),
    },
}  # fmt: skip
"""The mean time of a decision in ms, and that of the whole simulation in s."""
FASTER: Final = (
    ("pcp21", ("hcp19", "pcp19")),
    ("pcp21s", ("pcp21",)),
    ("hcp19", ("pcp21s",)),
)
"""Who decides faster than whom, where all of them were run."""
TIMES_FASTER: Final = 100
BLOCK: Final = 10
"""Jobs in a row that are one pair of a comparison: neighbours share their fate."""

Key = tuple[str, str, str]
"""Trace, estimate, policy."""


@dataclass(frozen=True)
class Ran:
    """One run: waits and slowdowns of its jobs, passes, CPU seconds."""

    wait: Ints
    slowdown: npt.NDArray[np.float64]
    recorded: Ints
    passes: int
    cpu_s: float

    @property
    def decision_ms(self) -> float:
        return 1e3 * self.cpu_s / max(self.passes, 1)


def found(runs: Runs) -> tuple[dict[Key, Ran], int]:
    """What is in the store, and how many runs are not."""
    there = runs.store.names()
    cpu = {row[0]: row[1:] for row in runs.store.frame().select("run", "cpu_s", "passes").iter_rows()}
    made: dict[Key, Ran] = {}
    for task in runs.tasks:
        schedule = runs.store.schedule(task.name) if task.name in there else None
        if schedule is None:
            continue
        run_s = np.maximum(schedule.workload.runtime, 1)
        slowdown = (schedule.wait + run_s) / run_s
        cpu_s, passes = cpu[task.name]
        key = (task.cell.trace, task.cell.estimate, task.cell.policy)
        made[key] = Ran(schedule.wait, slowdown, schedule.workload.get("wait"), int(passes), float(cpu_s))
    return made, len(runs.tasks) - len(made)


def page(runs: Runs) -> Page:
    """The page, from what has been run."""
    made, missing = found(runs)
    traces = list(dict.fromkeys(task.cell.trace for task in runs.tasks))
    estimates = list(dict.fromkeys(task.cell.estimate for task in runs.tasks))
    policies = list(dict.fromkeys(task.cell.policy for task in runs.tasks))
    said = [one for estimate in estimates for one in compared(made, traces, estimate, policies)]
    sections = [
        "# Dispatching onto nodes",
        f"{DISPATCHER}, Tables 1 and 2 and Figs. 5 and 10: the paper's dispatchers with CP-SAT in the place of its"
        " solver, and ours, on the same spans of the Eurora days and of KIT's log. Made by",
        made_with(NAME),
        _READING,
        f"{missing} of {len(runs.tasks)} runs are not in the store yet." if missing else "All runs are there.",
        "## What is said, and what is found",
        stated("statement", said),
        f"![Mean slowdown and mean wait of each dispatcher on each span, drawn by Dovetail]({NAME}.svg)",
        *(part for trace in traces for part in table(made, trace, estimates, policies)),
        "## Published",
        *(part for title, cells in PUBLISHED.items() for part in (f"{title}:", published(cells))),
    ]
    label = "Figs. 5 and 10 of the dispatcher paper with ours: mean slowdown and mean wait, run times known"
    drawing = picture(lambda: _draw(made, traces, policies), "dispatch", label)
    facts = {"missing": missing, **facts_of(said)}
    return Page(filled(sections), f"{held(said)}; {missing} runs missing", facts, {f"{NAME}.svg": drawing})


def table(made: Mapping[Key, Ran], trace: str, estimates: Sequence[str], policies: Sequence[str]) -> list[str]:
    """The table of one span."""
    rows = []
    any_run = next((made[key] for key in made if key[0] == trace), None)
    if any_run is None:
        return []
    if bool((any_run.recorded >= 0).all()):
        rows.append(["as recorded", "", "", "", "", f"{any_run.recorded.mean():,.0f}"])
    for estimate in estimates:
        for policy in policies:
            ran = made.get((trace, estimate, policy))
            if ran is None:
                continue
            rows.append([
                PAPERS.get(policy, f"`{policy}`"), estimate, f"{ran.decision_ms:,.3f}", f"{ran.cpu_s:,.1f}",
                f"{ran.slowdown.mean():,.2f} ± {ran.slowdown.std():,.1f}",
                f"{ran.wait.mean():,.0f} ± {ran.wait.std():,.0f}",
            ])  # fmt: skip
    head = [
        "dispatcher",
        "estimate",
        "mean decision (ms)",
        "in all (s)",
        "slowdown ± deviation",
        "wait (s) ± deviation",
    ]
    idle = "" if any(made[key].wait.any() for key in made if key[0] == trace) else "; nobody ever waits"
    return [f"## {trace}: {len(any_run.wait):,} jobs{idle}", grid(head, rows)]


def difference(
    ours: npt.NDArray[np.float64], theirs: npt.NDArray[np.float64], block: int = BLOCK
) -> tuple[float, float, float]:
    """The mean difference and its 95 % interval, over blocks of neighbouring jobs."""
    blocks = [float(part.mean()) for part in np.array_split(ours - theirs, max(2, len(ours) // block))]
    return mean_interval(blocks)


def against(ran: Ran, theirs: Ran) -> tuple[str, bool]:
    """One run less another in words, and whether it is no worse and so many times faster."""
    slow, wait = (
        difference(a.astype(np.float64), b.astype(np.float64))
        for a, b in ((ran.slowdown, theirs.slowdown), (ran.wait, theirs.wait))
    )
    faster = theirs.decision_ms / ran.decision_ms
    text = (
        f"slowdown {slow[0]:+.2f} [{slow[1]:+.2f}, {slow[2]:+.2f}], wait {wait[0]:+,.0f} s [{wait[1]:+,.0f},"
        f" {wait[2]:+,.0f}], {faster:,.0f} times faster"
    )
    return text, slow[1] <= 0 and wait[1] <= 0 and faster >= TIMES_FASTER


def compared(made: Mapping[Key, Ran], traces: Sequence[str], estimate: str, policies: Sequence[str]) -> list[Statement]:
    """What the paper says, and what we ask of ours, where the runs are there."""
    told: list[Statement] = []
    for trace in traces:
        here = {policy: made[trace, estimate, policy] for policy in policies if (trace, estimate, policy) in made}
        where = f"{trace}, {estimate}"
        for fast, others in FASTER:
            if all(name in here for name in (fast, *others)):
                ms = {name: here[name].decision_ms for name in (fast, *others)}
                text = ", ".join(f"{PAPERS[name]} {value:,.0f}" for name, value in ms.items())
                claim = f"{where}: {PAPERS[fast]} decides faster than {' and '.join(map(PAPERS.__getitem__, others))}"
                told.append(Statement(f"{claim} (ms)", text, min(ms, key=ms.__getitem__) == fast))
        if "pcp21" not in here:
            continue
        theirs = here["pcp21"]
        for policy, ran in here.items():
            if policy in PAPERS:
                continue
            text, good = against(ran, theirs)
            claim = f"{where}: `{policy}` is no worse than PCP'21, and {TIMES_FASTER} times faster"
            told.append(Statement(claim, text, good))
    return told


def published(cells: Mapping[tuple[str, str], tuple[int, int]]) -> str:
    """A published table."""
    rows = [[PAPERS[name], estimate, f"{ms}", f"{total:,}"] for (name, estimate), (ms, total) in cells.items()]
    return grid(["dispatcher", "estimate", "mean decision (ms)", "in all (s)"], rows)


def _draw(made: Mapping[Key, Ran], traces: Sequence[str], policies: Sequence[str]) -> Figure:
    """A column per span, a row per dispatcher: mean slowdowns above, mean waits below, with run times known."""
    from dovetail.reports.style import STROKES, figure

    drawn = figure(920, 100 + 2 * 17 * len(policies))
    traces = [trace for trace in traces if any(key[0] == trace for key in made)] or list(traces)
    policies = sorted(policies, key=lambda policy: policy not in PAPERS)
    axes = drawn.subplots(2, len(traces), squeeze=False, sharey=True)
    axes[0, 0].invert_yaxis()
    at = np.arange(len(policies))
    for column, trace in enumerate(traces):
        here = [made.get((trace, "runtime", policy)) for policy in policies]
        slowdown = [ran.slowdown.mean() if ran else np.nan for ran in here]
        wait_min = [ran.wait.mean() / 60 if ran else np.nan for ran in here]
        colours = [STROKES[1 if policy in PAPERS else 0].colour for policy in policies]
        for ax, values in zip(axes[:, column], (slowdown, wait_min), strict=True):
            ax.barh(at, values, color=colours, height=0.65)
            ax.set_xlim(0, 1.05 * np.nanmax([*values, 0.01]))
            ax.grid(visible=False, axis="y")
        axes[0, column].set_title(trace)
    for row, label in enumerate(("mean slowdown", "mean wait (min)")):
        axes[row, 0].set_yticks(at, [PAPERS.get(policy, policy.split(":")[0]) for policy in policies])
        axes[row, len(traces) // 2].set_xlabel(label)
    return drawn


_READING: Final = f"""
The mean decision is the CPU time of the whole replay over its passes; ours has all of the replay in it. The limits of
the paper's dispatchers are counted in work, a unit of which is about a second of CPU (docs/nodes.md). Each span begins
with an empty machine. Recorded waits are of a machine that was not empty. Intervals are of 95 %, over blocks of
{BLOCK} neighbouring jobs. No worse means that the interval of neither difference lies above 0: with few jobs, that is
not much. The paper's figures of slowdown and wait have no numbers to compare with; its text says that the dispatchers
are better than PBS, and at KIT nearly identical.
"""
