"""The page docs/results/list-scheduling.md: two published tables beside ours, and why cells differ.

    python -m dovetail.studies.papers.lists --traces DIR -o docs/results/list-scheduling.md

DIR holds papers/ (the inputs of the tables) and archive/ (the logs that they were made from).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping, Sequence
from math import floor
from pathlib import Path
from textwrap import fill
from typing import Final

from dovetail.studies.papers.recompute import (
    AUTHORS,
    COUNTS,
    ENDED,
    INPUTS,
    OURS,
    OWN,
    REFILTERED,
    TABLES,
    TIES,
    Log,
    Results,
    Rule,
    fit,
    inputs_compared,
    places,
    tables_on,
)
from dovetail.studies.papers.tables import ESTIMATES, METRICS, TABLE_2, TABLE_II, Place, Table

COMMAND: Final = "python -m dovetail.studies.papers.lists --traces DIR -o docs/results/list-scheduling.md"
SHOWN: Final[Mapping[Rule, str]] = {
    OWN: "Dovetail, all jobs",
    ENDED: "Dovetail, ended jobs",
    AUTHORS: "authors' rules",
}
"""The rules whose numbers stand in the tables of the page, after the printed one."""
_KNOWN: Final = {"runtime": "run time known", "limit": "limit as the estimate"}
_PRINTED_JOBS: Final = {
    "KTH-SP2": "28k",
    "CTC-SP2": "77k",
    "SDSC-SP2": "60k",
    "SDSC-BLUE": "234k",
    "CEA-Curie": "313k",
}
"""Table I of Packing."""


def page(results: Results, logs: Sequence[Log], inputs: Mapping[str, Results]) -> str:
    """The whole page, in Markdown. It holds nothing that changes from run to run."""
    parts = [
        _summary(results),
        _sources(logs),
        _rules(),
        _fits(results),
        _evidence(results),
        *(_groups(table, results) for table in TABLES),
        _left_over(results),
        _misread(results),
        _jobs(logs, inputs),
        _legend(),
        *tables(results, OURS),
    ]
    return "\n\n".join(_flowing(part) for part in parts) + "\n"


def _flowing(part: str) -> str:
    """Markdown with its paragraphs filled to one width, whatever was put into them."""
    blocks = part.strip().split("\n\n")
    fixed = ("|", "- ", "#", "```")
    return "\n\n".join(b if b.startswith(fixed) else fill(b, 110, break_on_hyphens=False) for b in blocks)


def tables(results: Results, traces: Sequence[str]) -> list[str]:
    """Every row of both tables as Markdown, with the columns of some traces."""
    parts = []
    for table in TABLES:
        for metric, name in METRICS.items():
            for estimate in ESTIMATES:
                rows = [
                    [row, *(_cell(table, Place(metric, row, estimate, trace), results) for trace in traces)]
                    for row in table.policies
                    if row != table.base and Place(metric, row, "limit", traces[0]) in table.percent
                ]
                head = f"### {table.title}: {name}, {_KNOWN[estimate]}\n\n"
                parts.append(head + _grid(["", *traces], rows))
    return parts


def _cell(table: Table, place: Place, results: Results) -> str:
    ours = [results.percent(table, place, rule) for rule in SHOWN]
    printed = table.percent.get(place)
    if printed is None:
        return " · ".join(["2?", *(f"{value:.0f}" for value in ours)])
    marked = (f"{value:.0f}" if abs(value - printed) <= 1 else f"**{value:.0f}**" for value in ours)
    return " · ".join([str(printed), *marked])


def _grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def _bullets(lines: Sequence[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _summary(results: Results) -> str:
    rows = []
    for table in TABLES:
        fits = [fit(table, places(table), results, rule) for rule in SHOWN]
        rows.append([table.title, *(str(n) for n in (fits[0].cells, *(f.near for f in fits), fits[-1].equal))])
    near = [f"within one point: {name}" for name in SHOWN.values()]
    whole = fit(TABLE_II, places(TABLE_II), results, AUTHORS)
    return f"""
# List scheduling: two published tables, recomputed

Table II of "Packing" (Metrics for Packing Efficiency and Fairness of HPC Cluster Batch Job Scheduling,
SBAC-PAD 2022) and the list rows of Table 2 of "CP" (Job Scheduling for HPC Clusters: Constraint
Programming vs. Backfilling Approaches, DEBS 2024), both by Goponenko and others, replayed with Dovetail
on five of their six traces. The sixth, BW201911, could not be had: its printed numbers are kept as data
and not compared.

{_grid(["table", "cells", *near, "equal: authors' rules"], rows)}

With two conventions of the authors, {whole.equal} of the {whole.cells} cells of Table II round to the
printed number. The conventions look small and matter where a queue is overloaded: equal keys of SJF go to
the smaller job (of SPF, to the smaller area), and the one job that ends last is not counted. Dovetail's
own rules are the ones that it documents: equal keys go to the earlier submit, and all jobs count. The
rule `ended`, which leaves out the jobs that end after the last submission, is not how these tables were
made.
"""


def _sources(logs: Sequence[Log]) -> str:
    return f"""
## Made with

```
{COMMAND}
```

DIR holds `papers/` (the authors' filtered inputs) and `archive/` (the logs as published). The same inputs
and rules give the same page, byte for byte. The logs are from the Parallel Workloads Archive (Feitelson,
Tsafrir and Krakov, Experience with using the Parallel Workloads Archive, JPDC 74(10), 2014). Thanks for
the logs go to

{_bullets([f"{log.trace}: {log.acknowledge}" for log in logs])}

What is said here of the authors' conventions was read in the simulator that both papers name
(github.com/algo74/predictsim: `pyss/schedulers/sorters.py`, `analysis/calculate_metrics.py`,
`data/filter_swf.py`) and then tried.
"""


def _rules() -> str:
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


def _fits(results: Results) -> str:
    parts = ["## Why cells differ"]
    head = ["ties", "counting", "within one point", "equal when rounded", "mean absolute difference, points"]
    for table in TABLES:
        rows = []
        for tie in TIES:
            for counting in COUNTS:
                f = fit(table, places(table), results, (tie, counting))
                rows.append([tie, counting, f"{f.near} of {f.cells}", str(f.equal), f"{f.mean_off:.2f}"])
        parts.append(f"{table.title} under every pair of rules:\n\n{_grid(head, rows)}")
    return "\n\n".join(parts)


def _evidence(results: Results) -> str:
    """The two conventions at the cells where they show most."""
    sjf = Place("bsld", "SJF-JustBF", "limit", "CTC-SP2")
    saf = Place("awf_s", "SAF-JustBF", "runtime", "SDSC-SP2")
    early, small = (f"{results.percent(TABLE_II, sjf, rule):.0f} %" for rule in (OWN, AUTHORS))
    every, but_last, ended = (f"{results.percent(TABLE_II, saf, rule):.0f} %" for rule in (OWN, AUTHORS, ENDED))
    printed_sjf, printed_saf = (f"{TABLE_II.percent[place]} %" for place in (sjf, saf))
    return f"""
**Ties.** Limits are round numbers, so under SJF many waiting jobs share their key with others, and the
rule for ties orders the queue as much as the order does. BSLD of SJF-JustBF on CTC-SP2 with the limit is
{early} of JustBF with ties to the earlier submit and {small} with ties to the smaller size (printed:
{printed_sjf}).

**One job.** SAF and SJF leave the largest jobs to the end, after waits of months, and one of them weighs:
without the last, AWF of SAF-JustBF on SDSC-SP2 goes from {every} to {but_last} (printed: {printed_saf}).
Without all jobs that end after the last submission it would be {ended}. This is why the column of `ended`
differs wherever jobs still waited when the last one came: it leaves out just those that the order left behind.
"""


def _groups(table: Table, results: Results) -> str:
    """Every cell that is off under Dovetail's own rules, by what brings it within one point."""
    causes: dict[Rule, str] = {
        ("authors", "all"): "ties alone",
        ("submit", "but last"): "the one job alone",
        AUTHORS: "both together",
    }
    groups: dict[str, list[Place]] = {cause: [] for cause in (*causes.values(), "neither")}
    for place in places(table):
        printed = table.percent[place]
        if abs(results.percent(table, place, OWN) - printed) > 1:
            near = (r for r in causes if abs(results.percent(table, place, r) - printed) <= 1)
            groups[causes.get(next(near, OWN), "neither")].append(place)
    total = sum(len(found) for found in groups.values())
    parts = [
        f"**{table.title}: {total} cells are more than one point off** under Dovetail's rules with all jobs"
        " counted. What brings them within one point:"
    ]
    parts += [f"*{cause}* ({len(found)} cells)\n\n{_listed(found)}" for cause, found in groups.items() if found]
    return "\n\n".join(parts)


def _listed(found: Sequence[Place]) -> str:
    """Cells, one line per metric and row."""
    lines: dict[str, list[str]] = {}
    for place in found:
        lines.setdefault(f"{METRICS[place.metric]}, {place.row}", []).append(f"{place.trace} ({place.estimate})")
    return _bullets([f"{row}: {', '.join(cells)}" for row, cells in lines.items()])


def _left_over(results: Results) -> str:
    """What the authors' rules do not give."""
    cells = [(place, results.percent(TABLE_2, place, AUTHORS)) for place in places(TABLE_2)]
    off = [(place, ours) for place, ours in cells if _once(ours) != TABLE_2.percent[place]]
    told = {place: f"{_said(place)}: printed {TABLE_2.percent[place]}, ours {ours:.2f}" for place, ours in off}
    far = [told[place] for place, ours in off if abs(ours - TABLE_2.percent[place]) > 1]
    near = [told[place] for place, ours in off if abs(ours - TABLE_2.percent[place]) <= 1]
    once, twice = (sum(how(v) == TABLE_2.percent[p] for p, v in cells) for how in (_once, _twice))
    spf = results.percent(TABLE_2, Place("bsld", "List-SPF", "limit", "CTC-SP2"), ("authors", "all"))
    table_ii = fit(TABLE_II, places(TABLE_II), results, AUTHORS)
    left = table_ii.cells - table_ii.equal
    return f"""
**Left over under the authors' rules.** Table II: {left} cells. Table 2, more than one
point off:

{_bullets(far)}

BSLD of List-SPF there is {spf:.2f} with the authors' ties and all jobs counted. List-SPF is the row that
CP adds to those of Packing, so it may have been counted otherwise than the others; the paper does not
say.

Table 2, within one point and yet not the printed number:

{_bullets(near)}

These are the printed numbers when ours are rounded to tenths first and then to whole numbers, halves up:
{twice} of {len(cells)} cells are equal so, {once} when rounded once. Packing prints the same cells
rounded once.

Nothing else was needed. One pass per second, textbook EASY, SJBF with ties to the earlier submit, and the
requested size give the printed numbers: no cell tells the two engines apart.
"""


def _misread(results: Results) -> str:
    read = [
        f"{_said(place)}: `{text}`, read as {TABLE_2.percent[place]}"
        for place, text in TABLE_2.misread.items()
        if place in TABLE_2.percent
    ]
    lost = Place("bsld", "List-SPF", "runtime", "SDSC-SP2")
    return f"""
**Garbled cells.** The text of CP at hand was read by machine from the printed page. Table II has the same
cells but for List-SPF, and gives these readings:

{_bullets(read)}

{_said(lost)}: the second digit is lost (`{TABLE_2.misread[lost]}`). Ours is
{results.percent(TABLE_2, lost, AUTHORS):.1f}. It is shown as 2? and not compared.
"""


def _said(place: Place) -> str:
    return f"{METRICS[place.metric]}, {place.row}, {place.trace}, {_KNOWN[place.estimate]}"


def _once(value: float) -> int:
    return floor(value + 0.5)


def _twice(value: float) -> int:
    return _once(_once(value * 10) / 10)


def _jobs(logs: Sequence[Log], inputs: Mapping[str, Results]) -> str:
    rows = []
    for log in logs:
        numbers = (f"{n:,}" for n in (log.lines, log.jobs, log.papers))
        rows.append([log.trace, _PRINTED_JOBS[log.trace], *numbers, "yes" if log.same else "no"])
    head = ["trace", "Packing", "lines of the archive log", "after `standard`", "authors' file", "same jobs"]
    at = places(TABLE_II, REFILTERED, ("runtime",))
    fits = []
    for title in INPUTS:
        f = fit(TABLE_II, at, inputs[title], AUTHORS)
        by_trace = [
            f"{fit(TABLE_II, [p for p in at if p.trace == trace], inputs[title], AUTHORS).mean_off:.2f}"
            for trace in REFILTERED
        ]
        fits.append([title, f"{f.near} of {f.cells}", str(f.equal), f"{f.mean_off:.2f}", *by_trace])
    columns = ["input", "within one point", "equal when rounded", "mean absolute difference, points"]
    return f"""
## Which jobs

Packing prints larger job counts for three traces than the authors' files have. They are the lines of the
archive's logs before any filter, rounded; 234k looks like 243k with two digits changed places (no filter by
run time, allocation, status, wait, processor time or limit, alone or in pairs, leaves 234k of them).

{_grid(head, rows)}

`standard` drops jobs without a run time or a limit and cuts run times at the limit. It turns the
archive's logs into the authors' files, but for SDSC-SP2, where theirs has seven jobs more (ids 4 to 10).
Table II with the run time known, on the three traces, under the authors' rules, from three inputs (every
line kept: a run time of 0 or less made 1 s, a missing limit the run time; only 19 jobs of CEA-Curie
without any size are dropped):

{_grid([*columns, *REFILTERED], fits)}

Rounding alone leaves 0.25 points. So the authors' files are the input of Table II too, not the logs that its
job counts suggest.
"""


def _legend() -> str:
    ours = " · ".join(SHOWN.values())
    return f"""
## The tables

Each cell: printed · {ours}. All are per cent of the List-REG or JustBF value with the same estimate on
the same trace; Table II's changes have become 100 plus the change. **Bold** is more than one point off
the printed number.
"""


def main(arguments: Sequence[str] | None = None) -> None:
    """Compute everything and write the page."""
    parser = argparse.ArgumentParser(description="Recompute two published tables and write the page on them.")
    parser.add_argument("--traces", type=Path, required=True, help="folder that holds papers/ and archive/")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the page to write, in Markdown")
    options = parser.parse_args(arguments)

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    results = tables_on(options.traces, OURS, say)
    logs, inputs = inputs_compared(options.traces, results, say)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(page(results, logs, inputs), encoding="utf-8")
    say(f"wrote {options.output}")


if __name__ == "__main__":
    main()
