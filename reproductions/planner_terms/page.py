"""Settings of the planner on the logs that chose them, and each term with and without on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean
from typing import Final

from dovetail.metrics.comparison import mean_interval
from reproductions.claims import NO, YES, Judged
from reproductions.runs import Run, Runs
from reproductions.values import Content, Key, NotRunError, Values

BASE: Final = "list-reg"
ESTIMATES: Final = {"runtime": "run times known", "limit": "limits"}
METRICS: Final = {"AF": "af_s", "AWF": "awf_s", "BSLD": "bsld"}
CHOOSING: Final = ("SDSC-DS", "ALCF-Theta-2023", "HPC2N, first half")
OTHERS: Final = ("ALCF-Mira-2018", "RICC", "UniLu-Gaia", "HPC2N, second half")
SPAN: Final = "0d..120d"
SEEDS: Final = 3
PLAN: Final = "plan:objective="
TERMS: Final = {
    "AF, long=8d": ("AF", "af,long=none", "af"),
    "AWF, long=8d": ("AWF", "awf,long=none", "awf"),
    "BSLD, long=2d": ("BSLD", "bsld,foresight=4,long=none", "bsld,foresight=4,long=2d"),
    "AWF, wide=0.2": ("AWF", "awf", "awf,wide=0.2"),
    "AF, commit=0.5": ("AF", "af", "af,commit=0.5"),
    "BSLD, commit=0.5": ("BSLD", "bsld,foresight=4,long=2d", "bsld,foresight=4,long=2d,commit=0.5"),
    "BSLD by af, commit=0.5": ("BSLD", "bsld,foresight=4,long=2d", "af,commit=0.5"),
    "BSLD, foresight=4": ("BSLD", "bsld,long=2d", "bsld,foresight=4,long=2d"),
}
"""A term: the metric, the planner without it, and with it."""


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """In per cent of the base: settings on the logs that chose, their geometric means; terms on the others."""
    found: dict[Key, Content] = {}
    for estimate in ESTIMATES:
        for policy in dict.fromkeys(run.cell.policy for run in runs if run.cell.span == SPAN):
            found |= _chosen(runs, policy, estimate)
        for term, (metric, *pair) in TERMS.items():
            for log_ in OTHERS:
                found |= _term(runs, term, METRICS[metric], [f"{PLAN}{one}" for one in pair], log_, estimate)
    return found


def _chosen(runs: Runs, policy: str, estimate: str) -> dict[Key, Content]:
    own, base = ([runs.get(log_, one, estimate, span=SPAN) for log_ in CHOOSING] for one in (policy, BASE))
    pairs = [(one, usual) for one, usual in zip(own, base, strict=True) if one and usual]
    if policy == BASE or len(pairs) < len(CHOOSING):
        return {}
    row = policy.removeprefix(PLAN)
    found: dict[Key, Content] = {}
    for metric, key in METRICS.items():
        shares = [100 * one.numbers[key] / usual.numbers[key] for one, usual in pairs]
        table = f"{metric}, {estimate}"
        found |= {(table, row, log_): share for log_, share in zip(CHOOSING, shares, strict=True)}
        found[table, row, "mean"] = exp(fmean(map(log, shares)))
        waits = [one.numbers["max_wait_s"] / usual.numbers["max_wait_s"] for one, usual in pairs]
        found[table, row, "longest wait"] = ", ".join(f"{wait:.1f}" for wait in waits)
        found[table, row, "CPU, s"] = sum(one.cpu_s for one, _ in pairs)
    return found


def _term(runs: Runs, term: str, key: str, pair: Sequence[str], log_: str, estimate: str) -> dict[Key, Content]:
    """The change by a term, each seed a pair: its mean, its interval by Student's t; and of the longest wait."""
    without, with_ = (
        [run for seed in range(SEEDS) if (run := runs.get(log_, one, estimate, seed=seed))] for one in pair
    )
    if len(without) < SEEDS or len(with_) < SEEDS:
        return {}

    def changes(name: str) -> list[float]:
        return [100 * (b.numbers[name] / a.numbers[name] - 1) for a, b in zip(without, with_, strict=True)]

    mean, low, high = mean_interval(changes(key))
    table = f"{term}, {estimate}"
    longest = [max(_waits(some)) for some in (without, with_)]
    return {
        (table, log_, "change"): mean, (table, log_, "low"): low, (table, log_, "high"): high,
        (table, log_, "longest"): longest[1] / longest[0] if longest[0] else 1.0,
    }  # fmt: skip


def _waits(runs: Sequence[Run]) -> list[float]:
    return [run.numbers["max_wait_s"] for run in runs]


# From values to the page.


def settings(values: Values, metric: str, of: str) -> list[list[str]]:
    """The rows of a metric's table: planners whose objective begins with one of the words in `of`."""
    rows = [key[1] for key in values.keys(f"{metric}, limit", column="mean")]
    wanted = [row for row in rows if row.partition(",")[0].split("+")[0] in of.split()]
    made = []
    for row in wanted:
        cells = [f"`{row}`"]
        for estimate in ESTIMATES:
            table = f"{metric}, {estimate}"
            shares = [values.text(table, row, log_, ".1f") for log_ in CHOOSING]
            cells += [" ".join(shares), f"**{values.text(table, row, 'mean', '.2f')}**"]
        waits = ", ".join(values.text(f"{metric}, {estimate}", row, "longest wait") for estimate in ESTIMATES)
        cpu_s = sum(values.need(f"{metric}, {estimate}", row, "CPU, s") for estimate in ESTIMATES)
        made.append([*cells, waits, f"{cpu_s:.0f}"])
    return made


def terms(values: Values) -> list[list[str]]:
    """A row for each term and estimate: its change on each log."""
    rows = []
    for term in TERMS:
        for estimate, words in ESTIMATES.items():
            table = f"{term}, {estimate}"
            cells = [_cell(values, table, log_) for log_ in OTHERS]
            if any(cells):
                rows.append([term, words, *(cell or "not run" for cell in cells)])
    return rows


def _cell(values: Values, table: str, log_: str) -> str:
    mean, low, high, longest = (values.number(table, log_, part) for part in ("change", "low", "high", "longest"))
    if mean is None or low is None or high is None or longest is None:
        return ""
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}] ({longest:.1f} x)"


def _of_others(values: Values, table: str, part: str) -> dict[str, float]:
    found = {log_: values.number(table, log_, part) for log_ in OTHERS}
    known = {log_: one for log_, one in found.items() if one is not None}
    if not known:
        raise NotRunError(table)
    return known


def helps(values: Values, term: str, estimate: str, on: str = "most") -> Judged:
    """Whether a term makes the metric less on most of the logs, or on average."""
    known = _of_others(values, f"{term}, {estimate}", "change")
    less = sum(one < 0 for one in known.values())
    mean = exp(fmean(log(1 + one / 100) for one in known.values())) - 1
    words = ", ".join(f"{log_} {one:+.1f} %" for log_, one in known.items())
    good = 2 * less > len(known) if on == "most" else mean < 0
    return Judged(words if on == "most" else f"{words}: {100 * mean:+.1f} %", YES if good else NO)


def shortens(values: Values, term: str, estimate: str) -> Judged:
    """Whether a term makes the longest wait of some log shorter by a tenth, and of none longer by a hundredth."""
    known = _of_others(values, f"{term}, {estimate}", "longest")
    good = min(known.values()) < 0.9 and max(known.values()) <= 1.01
    return Judged(", ".join(f"{log_} {one:.2f} x" for log_, one in known.items()), YES if good else NO)
