"""The page on Table 2 and Figs. 2 to 7 of CP, with our planner where the paper has CP Optimizer.

It is made of whatever runs are in the store. CPU times and times of passes stand on it: they differ from one execution
to the next; all else is the same each time.
"""

from __future__ import annotations

from math import isnan
from typing import Any, Final

from dovetail.studies.papers.page import LOGS, Page, Runs, bullets, filled, grid, made_with
from dovetail.studies.papers.planner_figures import figures
from dovetail.studies.papers.planner_runs import (
    ALL,
    AUTHORS,
    BASE,
    LONGEST,
    ROWS,
    Found,
    Key,
    below,
    best,
    found,
    metric_of,
    printed,
    verdict,
)
from dovetail.studies.papers.tables import ESTIMATES, METRICS, TABLE_2, TABLE_2_CP, UNAVAILABLE, Place

NAME: Final = "planner-table-2"
NOT_RUN: Final = "not run"
KNOWN: Final = {"runtime": "run time known", "limit": "limit as the estimate"}
ORDER: Final = ("af_s", "awf_s", "bsld", "p2sf_s")


def page(runs: Runs) -> Page:
    """The page and its pictures."""
    shown = found(runs)
    facts = _facts(shown)
    parts, pictures = figures(shown, runs)
    texts = [
        _summary(shown, facts),
        _made(runs),
        _how_to_read(shown),
        *(_diagonal(shown, metric, estimate) for metric in ORDER for estimate in ESTIMATES),
        _not_reached(shown),
        *parts,
        _MATRICES,
        *(_matrix(shown, trace, estimate) for trace in shown.traces for estimate in ESTIMATES),
        _lost(),
    ]
    line = f"{facts['surely_below']} of {facts['compared']} cells of the planner below the best published"
    return Page(filled(texts), f"{line}; {facts['not_run']} of {facts['runs']} runs are missing", facts, pictures)


def _facts(shown: Found) -> dict[str, int]:
    """What is told in JSON: cells on the diagonal with the settings that come first, and what is missing."""
    verdicts = [v for metric in ORDER for v in below(shown, metric, shown.planners(metric)[:1])]
    starved = [shown.longest(key) for key in shown.asked if metric_of(key.policy)]
    return {
        "runs": len(shown.asked),
        "not_run": shown.missing,
        "compared": len(verdicts),
        "below": len(verdicts) - verdicts.count("no"),
        "surely_below": verdicts.count("yes"),
        "starving": sum(multiple is not None and multiple > LONGEST for multiple in starved),
    }


def _summary(shown: Found, facts: dict[str, int]) -> str:
    rows = []
    for metric in ORDER:
        for text in shown.planners(metric):
            told = below(shown, metric, [text])
            cells = [key for key in shown.asked if key.policy == text]
            worst = max((m for key in cells if (m := shown.longest(key)) is not None), default=None)
            counts = [str(told.count("yes")), str(told.count("by rounding")), str(told.count("no"))]
            rows.append([METRICS[metric], f"`{text}`", *counts, str(len(cells) - len(told)), _multiple(worst)])
    head = ["metric", "policy", "below", "below by rounding", "not below", NOT_RUN, "longest wait, at most"]
    gap = ""
    if shown.missing:
        gap = (
            f"**{shown.missing} of {len(shown.asked)} runs are not in the store**: their cells are marked"
            f" `{NOT_RUN}`, and what is said here is about the others."
        )
    return f"""
# Table 2 of CP, with the planner

Table 2 of "CP" (Goponenko, Lamar, Allan, Brandt and Dechev, Job Scheduling for HPC Clusters: Constraint
Programming vs. Backfilling Approaches, DEBS 2024) in full, beside ours, on five of its six traces
({UNAVAILABLE} could not be had). Where the paper has CP Optimizer, with up to 20 s for each pass on a machine of
32 cores, we have the [planner](../planner.md), on one core. The rows of list scheduling are looked at more closely in
[cp-table-2](../../reproductions/cp_table_2/README.md).

{gap}

How often the planner is below the best that is published of any method, on the metric that it plans for, with
the settings of each metric that come first: {facts["surely_below"]} of {facts["compared"]} cells; in
{facts["below"] - facts["surely_below"]} more it is below the whole number that is printed by half a point or less.

{grid(head, rows)}
"""


def _made(runs: Runs) -> str:
    thanks = {}
    for task in runs.tasks:
        if task.cell.trace not in thanks:
            thanks[task.cell.trace] = runs.store.workload(task.workload_sha256).provenance.acknowledge
    return f"""
## Made with

{made_with(NAME)}

It runs what the store does not have; the policies stand in `src/dovetail/studies/papers/{NAME}.toml`. {LOGS}
Thanks for the logs go to

{bullets([f"{trace}: {people}" for trace, people in thanks.items()])}
"""


def _how_to_read(shown: Found) -> str:
    over = [m.facts["pass_overhead_ms"] for m in shown.there.values() if m.facts["pass_overhead_ms"] is not None]
    stepping = f" (here {1e3 * min(over):.0f} to {1e3 * max(over):.0f} µs)" if over else ""
    return f"""
## The planner on its own metric

Per cent of `{BASE}` with the same estimate on the same trace; lower is better. *Ours* counts all jobs;
*authors* leaves out the one job that ends last, as the authors' script does. *Below* compares both with the best
published value: `yes` if rounding cannot explain it, `by rounding` if ours is below the printed whole number by
half a point or less. A `*` means that another method's number is printed and illegible, and may be lower still.
*Longest wait* is a multiple of that of `{BASE}`; **bold** is above {LONGEST:.0f}.

*CPU* is of the replay and its metrics, one thread. A pass happens whenever a job arrives or ends. *Search* are the
passes in which some waiting job fits; in all others nothing can start, and the planner does not search. All are
CPU times of one run that stops at every pass to look at the clock. Each pass includes what that costs{stepping}:
little beside a search, but nearly all of the pass of a list policy, whose CPU time is several times that of a
replay without a clock.
"""


def _diagonal(shown: Found, metric: str, estimate: str) -> str:
    """The planner's policies for one metric against what is published of it."""
    solver = next(row for row in TABLE_2_CP.policies if any(p.row == row and p.metric == metric for p in _cells()))
    rows = []
    for trace in shown.traces:
        known = best(metric, estimate, trace)
        for text in shown.planners(metric):
            key = Key(trace, text, estimate)
            if key in shown.asked:
                beside = [f"{known.percent:g} ({known.method}){'*' if known.lost else ''}"]
                beside.append(printed(metric, solver, estimate, trace))
                rows.append([trace, f"`{text}`", *beside, *_own(shown, key, metric, known.percent)])
    head = ["trace", "policy", "best published", solver, "ours", "authors", "below", "longest wait", *_COSTS]
    return f"### {METRICS[metric]}, {KNOWN[estimate]}\n\n{grid(head, rows)}"


def _not_reached(shown: Found) -> str:
    """The cells in which no settings within the bound on waits are below what is published, and all that was tried."""
    rows = []
    for metric in ORDER:
        for estimate in ESTIMATES:
            for trace in shown.traces:
                keys = [Key(trace, text, estimate) for text in shown.planners(metric)]
                tried = {key: value for key in keys if (value := shown.percent(key, metric)) is not None}
                known = best(metric, estimate, trace).percent
                safe = [value for key, value in tried.items() if (shown.longest(key) or 0) <= LONGEST]
                if tried and all(verdict(value, known) != "yes" for value in safe):
                    told = [f"`{k.policy}` {v:.1f} ({_multiple(shown.longest(k))})" for k, v in tried.items()]
                    rows.append([METRICS[metric], KNOWN[estimate], trace, f"{known:g}", ", ".join(told)])
    head = ["metric", "estimate", "trace", "best published", "ours (longest wait)"]
    return f"{_WHY_NOT}\n\n{grid(head, rows)}" if rows else ""


_COSTS: Final = ("CPU, s", "pass p50 / p99, ms", "search p50 / p99, ms")


def _own(shown: Found, key: Key, metric: str, published: float) -> list[str]:
    ours = [shown.percent(key, metric, counting) for counting in (ALL, AUTHORS)]
    values = [value for value in ours if value is not None]
    if not values:
        return [NOT_RUN, *[""] * (3 + len(_COSTS))]
    told = dict.fromkeys(verdict(value, published) for value in values)
    return [*(f"{value:.1f}" for value in values), ", ".join(told), _multiple(shown.longest(key)), *_costs(shown, key)]


def _costs(shown: Found, key: Key) -> list[str]:
    """CPU time and times of passes of a run that is there."""
    facts = shown.there[key].facts
    return [
        f"{facts['cpu_s']:.1f}",
        f"{_ms(facts['pass_p50_ms'])} / {_ms(facts['pass_p99_ms'])}",
        f"{_ms(facts['search_p50_ms'])} / {_ms(facts['search_p99_ms'])}",
    ]


def _ms(value: Any) -> str:
    """Milliseconds with two digits that count."""
    if value is None or isnan(value):
        return "-"
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def _multiple(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:.2f}" if value <= LONGEST else f"**{value:.2f}**"


_WHY_NOT: Final = """
## Cells that are not reached

Those in which no settings of ours that keep all waits within twice the longest of `list-reg` are surely below the
best published value; beside them all that was tried.

What limits most of them is the bound on waits itself. Nothing bounds a wait in the published methods, and with
`starve=none` nothing does in ours: then a few wide jobs wait for a lull, many times longer than under `list-reg`,
and all others gain. The published best of BSLD with known run times is that of list orders which never let a large
job go before a small one. A job that must go in time makes the cluster drain for it, and that costs all who wait
beside it; more decodes do not help ([how the defaults were chosen](../planner.md#how-the-defaults-were-chosen)).
"""
_MATRICES: Final = """
## Every policy on every metric

Each cell: printed, where the paper has it, then ours with all jobs counted and with the authors' counting. Equal
keys of our list policies go to the earlier submit; the authors' simulator has other rules for them
([cp-table-2](../../reproductions/cp_table_2/README.md) has both).
"""


def _matrix(shown: Found, trace: str, estimate: str) -> str:
    rows = []
    for text in shown.policies:
        key = Key(trace, text, estimate)
        if key not in shown.asked or text == BASE:
            continue
        row = ROWS.get(text, "")
        named = f"`{text}` ({row})" if row else f"`{text}`"
        if shown.percent(key, ORDER[0]) is None:
            cells = [" · ".join(filter(None, [printed(m, row, estimate, trace), NOT_RUN])) for m in ORDER]
            rows.append([named, *cells, *[""] * (1 + len(_COSTS))])
        else:
            cells = [_both(shown, key, metric, row) for metric in ORDER]
            rows.append([named, *cells, _multiple(shown.longest(key)), *_costs(shown, key)])
    head = ["", *(METRICS[metric] for metric in ORDER), "longest wait", *_COSTS]
    return f"### {trace}, {KNOWN[estimate]}\n\n{_absolute(shown, trace, estimate)}\n\n{grid(head, rows)}"


def _both(shown: Found, key: Key, metric: str, row: str) -> str:
    known = printed(metric, row, key.estimate, key.trace)
    ours = [f"{value:.1f}" for c in (ALL, AUTHORS) if (value := shown.percent(key, metric, c)) is not None]
    return " · ".join([f"*{known}*", *ours] if known else ours)


def _absolute(shown: Found, trace: str, estimate: str) -> str:
    """What the per cents are of."""
    key = Key(trace, BASE, estimate)
    base = shown.there.get(key)
    if base is None:
        return f"`{BASE}`: {NOT_RUN}."
    values = base.values[ALL]
    told = ", ".join(f"{METRICS[m]} {values[m]:,.1f}{' s' if m.endswith('_s') else ''}" for m in ORDER)
    cpu_s, passes, searches = _costs(shown, key)
    return (
        f"`{BASE}`: {told}, longest wait {base.longest_s:,} s; CPU {cpu_s} s, pass {passes} ms, search {searches} ms."
    )


def _cells() -> list[Place]:
    return [*TABLE_2_CP.percent, *TABLE_2_CP.misread]


def _lost() -> str:
    """Cells of the published table that the text at hand garbles."""
    lines = []
    for table in (TABLE_2, TABLE_2_CP):
        for place, text in sorted(table.misread.items()):
            read = f"read as {table.percent[place]}" if place in table.percent else "not read"
            lines.append(
                f"{METRICS[place.metric]}, {place.row}, {place.trace}, {KNOWN[place.estimate]}: `{text}`, {read}"
            )
    return f"""
## Cells that cannot be read for sure

The text of CP at hand was read by machine from the printed page. Where [Table II of
Packing](../../reproductions/packing_table_2/README.md)
has the same cell, it shows that a `%` stands for a lost second digit: `9%` is 96, `7%` is 77. So CP-AWF on KTH-SP2
with run times known is 90 to 99, and CP-BSLD on CTC-SP2 with limits probably 20 to 29: lower than the 43 that is
the best number that can be read there.

{bullets(lines)}
"""
