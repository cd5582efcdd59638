"""Tables 1 and 2 and Figs. 5 and 10 of the dispatcher paper: how long decisions take, how good they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.metrics.comparison import mean_interval
from dovetail.model.schedule import Schedule
from reproductions.claims import Judged, verdict
from reproductions.runs import Points, Run, Runs
from reproductions.values import Content, Key, Values

MODELS: Final = {"pcp21": "PCP'21", "pcp21s": "PCP'21s", "pcp19": "PCP'19", "hcp19": "HCP'19"}
WAYS: Final = {
    "solver=cp": "",
    "solver=cp,look=no": ", blind",
    "": ", CP-SAT",
    "limits=text": ", CP-SAT, text",
    "subset=all,limits=text": ", CP-SAT, text, all jobs",
}
"""What a page calls a way of running them, by its settings. With `text` there are no rules for pairs."""
THEIRS: Final = "pcp21:solver=cp"
"""PCP'21 as its authors run it."""
TIMES_FASTER: Final = 100
BLOCK, WEEK = 10, 8000
"""Jobs in a row that are one pair of a comparison, as neighbours share their fate; of many jobs, about a week."""
MS, ALL = "mean decision (ms)", "in all (s)"
LESS: Final = ("slowdown", "wait")


def measure(schedule: Schedule, _: Callable[[str], Schedule]) -> dict[str, float | Points]:
    """Slowdowns and waits: means, deviations, and means of blocks of neighbouring jobs."""
    run_s, recorded = np.maximum(schedule.workload.runtime, 1), schedule.workload.get("wait")
    found: dict[str, float | Points] = {}
    if bool((recorded >= 0).all()):
        found["recorded_wait"] = float(recorded.mean())
    for name, numbers in zip(LESS, ((schedule.wait + run_s) / run_s, schedule.wait), strict=True):
        found[f"{name}_mean"], found[f"{name}_deviation"] = float(numbers.mean()), float(numbers.std())
        found[name] = list(enumerate(blocks(numbers)))
    return found


def blocks(numbers: npt.NDArray[np.generic]) -> list[float]:
    """The means of neighbouring jobs."""
    many = len(numbers) // (BLOCK if len(numbers) < 2 * WEEK else WEEK)
    return [float(part.mean()) for part in np.array_split(numbers, max(2, many))]


def called(policy: str) -> str:
    """What a page calls a policy."""
    name, _, settings = policy.partition(":")
    way = settings.replace("limits=text,pairs=no", "limits=text")
    return f"{MODELS[name]}{WAYS[way]}" if name in MODELS else f"`{policy}`"


def decision_ms(run: Run) -> float:
    return 1e3 * run.cpu_s / max(run.numbers["passes"], 1)


def less(ours: Run, theirs: Run, curve: str) -> tuple[float, float, float]:
    """The mean difference of two runs and its 95 % interval, over blocks."""
    pairs = zip(ours.curves[curve], theirs.curves[curve], strict=True)
    return mean_interval([one[1] - other[1] for one, other in pairs])


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """A table for each span, and what our policies have less than PCP'21 there."""
    found: dict[Key, Content] = {}
    for run in runs:
        cell, numbers = run.cell, run.numbers
        found["spans", cell.trace, "jobs"] = numbers["jobs"]
        found[cell.trace, "as recorded", "wait"] = numbers.get("recorded_wait", float("nan"))
        row = f"{called(cell.policy)}, {cell.estimate}"
        found[cell.trace, row, MS], found[cell.trace, row, ALL] = decision_ms(run), run.cpu_s
        for name in LESS:
            found[cell.trace, row, name] = numbers[f"{name}_mean"]
            found[cell.trace, row, f"{name} ±"] = numbers[f"{name}_deviation"]
        theirs = runs.get(cell.trace, THEIRS, cell.estimate)
        if theirs and cell.policy.partition(":")[0] not in MODELS:
            table, ours = f"less PCP'21: {cell.trace}, {cell.estimate}", called(cell.policy)
            found[table, ours, "times faster"] = decision_ms(theirs) / decision_ms(run)
            for name in LESS:
                for end, number in zip(("", ", from", ", to"), less(run, theirs, name), strict=True):
                    found[table, ours, name + end] = number
    return found


# The text of cells -------------------------------------------------------------------------------------------


def shown(values: Values, table: str, row: str, column: str) -> str:
    """A cell of a span: times, or a mean with its deviation."""
    form, rest = {MS: (",.3f", ""), ALL: (",.1f", ""), "slowdown": (",.2f", ",.1f"), "wait": (",.0f", ",.0f")}[column]
    number, more = values.number(table, row, column), values.number(table, row, f"{column} ±")
    if number is None:
        return "" if row == "as recorded" else "not run"
    return format(number, form) + (f" ± {more:{rest}}" if more is not None else "")


def published(values: Values, table: str, row: str, column: str) -> str:
    """A printed number."""
    return f"{values.printed_number(table, row, column):,.0f}"


def against(values: Values, table: str, row: str, column: str = "") -> str:
    """What ours has less than PCP'21, in words."""
    slow, wait = ([values.need(table, row, name + end) for end in ("", ", from", ", to")] for name in LESS)
    return (
        f"slowdown {slow[0]:+.2f} [{slow[1]:+.2f}, {slow[2]:+.2f}], wait {wait[0]:+,.0f} s [{wait[1]:+,.0f},"
        f" {wait[2]:+,.0f}], {values.need(table, row, 'times faster'):,.0f} times faster"
    )


# Claims ------------------------------------------------------------------------------------------------------


def fastest(values: Values, where: str, names: Sequence[str]) -> Judged:
    """Whether the first of some dispatchers decides faster than the others."""
    trace, _, estimate = where.rpartition(", ")
    ms = {name: values.need(trace, f"{name}, {estimate}", MS) for name in names}
    ours = ", ".join(f"{name} {number:,.0f}" for name, number in ms.items())
    return Judged(ours, verdict([min(ms, key=ms.__getitem__) == names[0]]))


def no_worse(values: Values, where: str, policy: str) -> Judged:
    """Whether neither interval of the differences to PCP'21 lies above 0, and ours is much faster."""
    table, row = f"less PCP'21: {where}", f"`{policy}`"
    ours = against(values, table, row)
    low = [values.need(table, row, f"{name}, from") for name in LESS]
    fast = values.need(table, row, "times faster") >= TIMES_FASTER
    return Judged(ours, verdict([max(low) <= 0 and fast]))


def switched(values: Values, where: str) -> Judged:
    """Whether `switch` has no higher mean slowdown than any of the policies that it chooses from."""
    trace, _, estimate = where.rpartition(", ")
    names = ("`switch`", "HCP'19, CP-SAT", "PCP'21, CP-SAT", "`sjf-easy:place=scarce`")
    found = {name: values.need(trace, f"{name}, {estimate}", "slowdown") for name in names}
    ours = "; ".join(f"{name} {number:.2f}" for name, number in found.items())
    return Judged(ours, verdict([found["`switch`"] <= min(found.values())]))
