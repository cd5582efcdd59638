"""The page on Table 1 and Fig. 5 of the dispatcher paper: how long decisions take, and how good they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.metrics.comparison import mean_interval
from dovetail.model.workload import Ints
from dovetail.studies.papers.page import Page, Runs, Statement, facts_of, filled, grid, held, made_with, stated
from dovetail.studies.papers.registry import DISPATCHER

NAME: Final = "dispatch-tables"
PAPERS: Final[Mapping[str, str]] = {"hcp19": "HCP'19", "pcp19": "PCP'19", "pcp21": "PCP'21", "pcp21s": "PCP'21s"}
PUBLISHED: Final[Mapping[tuple[str, str], tuple[int, int]]] = {
    ("hcp19", "runtime"): (357, 189_522), ("pcp19", "runtime"): (469, 249_367), ("pcp21", "runtime"): (256, 136_401),
    ("hcp19", "similar"): (392, 208_231), ("pcp19", "similar"): (511, 271_586), ("pcp21", "similar"): (209, 111_373),
}  # fmt: skip
"""Table 1: the mean time of a decision in ms and that of the whole simulation in s, of about 400,000 jobs."""
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
    said = [one for estimate in estimates for one in statements(made, traces, estimate, policies)]
    sections = [
        "# Dispatching onto nodes",
        f"{DISPATCHER}, Table 1 and Fig. 5: the paper's dispatchers with CP-SAT in the place of its solver, and"
        " ours, on the same spans of the Eurora days. Made by",
        made_with(NAME),
        _READING,
        f"{missing} of {len(runs.tasks)} runs are not in the store yet." if missing else "All runs are there.",
        "## What is said, and what is found",
        stated("statement", said),
        *(part for trace in traces for part in _trace(made, trace, estimates, policies)),
        "## Published",
        _published(),
    ]
    facts = {"missing": missing, **facts_of(said)}
    return Page(filled(sections), f"{held(said)}; {missing} runs missing", facts)


def _trace(made: Mapping[Key, Ran], trace: str, estimates: Sequence[str], policies: Sequence[str]) -> list[str]:
    """The table of one span."""
    rows = []
    any_run = next((made[key] for key in made if key[0] == trace), None)
    if any_run is None:
        return []
    if bool((any_run.recorded >= 0).all()):
        rows.append(["as recorded (PBS)", "", "", "", "", f"{any_run.recorded.mean():,.0f}"])
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
    return [f"## {trace}: {len(any_run.wait):,} jobs", grid(head, rows)]


def difference(ours: npt.NDArray[np.float64], theirs: npt.NDArray[np.float64]) -> tuple[float, float, float]:
    """The mean difference and its 95 % interval, over blocks of neighbouring jobs."""
    blocks = [float(part.mean()) for part in np.array_split(ours - theirs, max(2, len(ours) // BLOCK))]
    return mean_interval(blocks)


def statements(
    made: Mapping[Key, Ran], traces: Sequence[str], estimate: str, policies: Sequence[str]
) -> list[Statement]:
    """What the paper says, and what we ask of ours, where the runs are there."""
    told: list[Statement] = []
    for trace in traces:
        here = {policy: made[trace, estimate, policy] for policy in policies if (trace, estimate, policy) in made}
        where = f"{trace}, {estimate}"
        if all(name in here for name in ("hcp19", "pcp19", "pcp21")):
            ms = {name: here[name].decision_ms for name in ("hcp19", "pcp19", "pcp21")}
            text = ", ".join(f"{PAPERS[name]} {value:,.0f}" for name, value in ms.items())
            fast = ms["pcp21"] < min(ms["hcp19"], ms["pcp19"])
            told.append(Statement(f"{where}: PCP'21 decides faster than HCP'19 and PCP'19 (ms)", text, fast))
        if "pcp21" not in here:
            continue
        theirs = here["pcp21"]
        for policy, ran in here.items():
            if policy in PAPERS:
                continue
            slow, wait = (
                difference(a.astype(np.float64), b.astype(np.float64))
                for a, b in ((ran.slowdown, theirs.slowdown), (ran.wait, theirs.wait))
            )
            faster = theirs.decision_ms / ran.decision_ms
            worse = slow[1] > 0 or wait[1] > 0
            text = (
                f"slowdown {slow[0]:+.2f} [{slow[1]:+.2f}, {slow[2]:+.2f}], wait {wait[0]:+,.0f} s [{wait[1]:+,.0f},"
                f" {wait[2]:+,.0f}], {faster:,.0f} times faster"
            )
            claim = f"{where}: `{policy}` is no worse than PCP'21, and {TIMES_FASTER} times faster"
            told.append(Statement(claim, text, not worse and faster >= TIMES_FASTER))
    return told


def _published() -> str:
    rows = [[PAPERS[name], estimate, f"{ms}", f"{total:,}"] for (name, estimate), (ms, total) in PUBLISHED.items()]
    return grid(["dispatcher", "estimate", "mean decision (ms)", "in all (s)"], rows)


_READING: Final = f"""
The mean decision is the CPU time of the whole replay over its passes; ours has all of the replay in it. The limits of
the paper's dispatchers are counted in work, a unit of which is about a second of CPU (docs/nodes.md). Each span
begins with an empty machine. PBS's waits are those recorded, of a machine that was not empty. Intervals are of 95 %,
over blocks of {BLOCK} neighbouring jobs. No worse means that the interval of neither difference lies above 0.
"""
