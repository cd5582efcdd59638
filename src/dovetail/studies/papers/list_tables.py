"""What the pages on two published tables share: rules, fits, why cells differ, and the tables themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from dovetail.studies.papers.page import LOGS, Runs, bullets, grid, made_with
from dovetail.studies.papers.recompute import AUTHORS, COUNTS, ENDED, OURS, OWN, TIES, Results, Rule, fit, places
from dovetail.studies.papers.tables import ESTIMATES, METRICS, Place, Table

SHOWN: Final[Mapping[Rule, str]] = {
    OWN: "Dovetail, all jobs",
    ENDED: "Dovetail, ended jobs",
    AUTHORS: "authors' rules",
}
"""The rules whose numbers stand in the tables of a page, after the printed one."""
KNOWN: Final = {"runtime": "run time known", "limit": "limit as the estimate"}


def tables(table: Table, results: Results, traces: Sequence[str]) -> list[str]:
    """Every row of a table as Markdown, with the columns of some traces."""
    parts = []
    for metric, name in METRICS.items():
        for estimate in ESTIMATES:
            rows = [
                [row, *(_cell(table, Place(metric, row, estimate, trace), results) for trace in traces)]
                for row in table.policies
                if row != table.base and Place(metric, row, "limit", traces[0]) in table.percent
            ]
            head = f"### {table.title}: {name}, {KNOWN[estimate]}\n\n"
            parts.append(head + grid(["", *traces], rows))
    return parts


def _cell(table: Table, place: Place, results: Results) -> str:
    ours = [results.percent(table, place, rule) for rule in SHOWN]
    printed = table.percent.get(place)
    if printed is None:
        return " · ".join(["2?", *(f"{value:.0f}" for value in ours)])
    marked = (f"{value:.0f}" if abs(value - printed) <= 1 else f"**{value:.0f}**" for value in ours)
    return " · ".join([str(printed), *marked])


def counted(table: Table, results: Results) -> str:
    """How many cells meet the printed number under each of the rules shown."""
    fits = [fit(table, places(table), results, rule) for rule in SHOWN]
    near = [f"within one point: {name}" for name in SHOWN.values()]
    numbers = [str(n) for n in (fits[0].cells, *(f.near for f in fits), fits[-1].equal)]
    return grid(["cells", *near, "equal: authors' rules"], [numbers])


def facts(table: Table, results: Results) -> dict[str, int]:
    """The same for JSON: equal and near under the authors' rules, near under Dovetail's own."""
    theirs, own = (fit(table, places(table), results, rule) for rule in (AUTHORS, OWN))
    return {"cells": theirs.cells, "equal": theirs.equal, "within_a_point": theirs.near, "own_within_a_point": own.near}


def told(found: Mapping[str, int]) -> str:
    """Those facts in one line."""
    return (
        f"{found['equal']} of {found['cells']} cells equal and {found['within_a_point']} within a point under the"
        f" authors' rules; {found['own_within_a_point']} within a point under Dovetail's"
    )


def sources(name: str, runs: Runs) -> str:
    """The command, the logs, and whom to thank."""
    digests = {task.cell.trace: task.workload_sha256 for task in runs.tasks if task.cell.trace in OURS}
    thanks = {trace: runs.store.workload(sha256).provenance.acknowledge for trace, sha256 in digests.items()}
    return f"""
## Made with

{made_with(name)}

The runs are kept in a store; the same inputs and rules give the same page, byte for byte. {LOGS} Thanks for
the logs go to

{bullets([f"{trace}: {people}" for trace, people in thanks.items()])}

What is said here of the authors' conventions was read in the simulator that both papers name
(github.com/algo74/predictsim: `pyss/schedulers/sorters.py`, `analysis/calculate_metrics.py`,
`data/filter_swf.py`) and then tried.
"""


def rules() -> str:
    """The rules of the replays, of counting and of ties."""
    return """
## The rules

One pass per second in which a job arrived or ended: ends, then arrivals, then the pass. JustBF and
List-ORDER reserve for every blocked job in that order and forget all reservations at the next pass;
Aggressive reserves for none; EASY for the first, in the textbook way. SJF orders by estimate, SAF and LAF
by size times estimate, SPF by size times estimate squared. BSLD has a bound of 10 s. The size of a job is
what it asked for.

| counting | leaves out |
|---|---|
| all | nothing |
| ended | jobs that end after the last submission |
| but last | the job that ends last (the authors' script with `--notrim`, by a strict comparison) |
| middle | the first 1 % to end, and what does not end before the last submission (the script's default) |

| ties | equal keys go to |
|---|---|
| submit | the earlier submit, then the earlier line |
| authors | under SJF the smaller size, under SPF the smaller area (size times estimate); then as above |
"""


def fits(table: Table, results: Results) -> str:
    """A table under every pair of rules."""
    head = ["ties", "counting", "within one point", "equal when rounded", "mean absolute difference, points"]
    rows = []
    for tie in TIES:
        for counting in COUNTS:
            f = fit(table, places(table), results, (tie, counting))
            rows.append([tie, counting, f"{f.near} of {f.cells}", str(f.equal), f"{f.mean_off:.2f}"])
    return f"## Why cells differ\n\n{table.title} under every pair of rules:\n\n{grid(head, rows)}"


def groups(table: Table, results: Results) -> str:
    """Every cell that is off under Dovetail's own rules, by what brings it within one point."""
    causes: dict[Rule, str] = {
        ("authors", "all"): "ties alone",
        ("submit", "but last"): "the one job alone",
        AUTHORS: "both together",
    }
    found: dict[str, list[Place]] = {cause: [] for cause in (*causes.values(), "neither")}
    for place in places(table):
        printed = table.percent[place]
        if abs(results.percent(table, place, OWN) - printed) > 1:
            near = (r for r in causes if abs(results.percent(table, place, r) - printed) <= 1)
            found[causes.get(next(near, OWN), "neither")].append(place)
    total = sum(len(cells) for cells in found.values())
    parts = [
        f"**{table.title}: {total} cells are more than one point off** under Dovetail's rules with all jobs"
        " counted. What brings them within one point:"
    ]
    parts += [f"*{cause}* ({len(cells)} cells)\n\n{_listed(cells)}" for cause, cells in found.items() if cells]
    return "\n\n".join(parts)


def _listed(cells: Sequence[Place]) -> str:
    """Cells, one line per metric and row."""
    lines: dict[str, list[str]] = {}
    for place in cells:
        lines.setdefault(f"{METRICS[place.metric]}, {place.row}", []).append(f"{place.trace} ({place.estimate})")
    return bullets([f"{row}: {', '.join(where)}" for row, where in lines.items()])


def named(place: Place) -> str:
    """A cell in words."""
    return f"{METRICS[place.metric]}, {place.row}, {place.trace}, {KNOWN[place.estimate]}"


def legend(base: str, more: str = "") -> str:
    """How to read the tables."""
    ours = " · ".join(SHOWN.values())
    return f"""
## The tables

Each cell: printed · {ours}. All are per cent of the {base} value with the same estimate on the same
trace.{more} **Bold** is more than one point off the printed number.
"""
