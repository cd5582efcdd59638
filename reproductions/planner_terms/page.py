"""Settings of the planner on the logs that chose them, and each term with and without on others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, log
from statistics import fmean
from typing import Final

from dovetail.engine.replay import replay
from dovetail.metrics import summarize
from dovetail.metrics.comparison import mean_interval
from dovetail.policies.planner import PLANNED, Planner
from dovetail.studies.task import Cell
from reproductions.claims import NO, YES, Judged
from reproductions.planner_terms.history import ByHistory
from reproductions.running import Work
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
WINDOWS: Final = (50, 200)
LONG_QUEUES: Final = (
    "HPC2N, days 640 to 700", "HPC2N, days 640 to 700, 1.25 x the load", "HPC2N, days 640 to 700, 1.5 x the load",
    "HPC2N, days 640 to 700, 2 x the load", "HPC2N, days 720 to 780",
)  # fmt: skip
GUESSED: Final = {
    "SDSC-DS": ("SDSC-DS-2004-2.1-cln", "0d..120d"), "ALCF-Theta-2023": ("ALCF-Theta-2023", "0d..120d"),
    "HPC2N, first half": ("HPC2N-2002-2.2-cln", "0d..120d"), "ALCF-Mira-2018": ("ALCF-Mira-2018", "0d..15d"),
    "RICC": ("RICC-2010-2", "0d..6d"), "UniLu-Gaia": ("UniLu-Gaia-2014-1", "0d..40d"),
    "HPC2N, second half": ("HPC2N-2002-2.2-cln", "640d..700d"),
}  # fmt: skip
BY_LIMIT, BY_HISTORY = "plan-bsld, one over the limit", "plan-bsld, by history"


def cells(_: Work) -> list[Cell]:
    """Slowdown with limits, weighed by the limits and by what a user's last jobs took."""
    return [
        Cell(log_, "", span, weighed, "limit", seed)
        for log_, (_file, span) in GUESSED.items()
        for seed in range(SEEDS)
        for weighed in (BY_LIMIT, BY_HISTORY)
    ]


def solve(cell: Cell, work: Work) -> dict[str, float]:
    """One replay."""
    log_ = work.jobs(f"archive/{GUESSED[cell.trace][0]}", f"span={cell.span}")
    own = Planner(**PLANNED["bsld"], name="plan-bsld")
    chosen = own if cell.policy == BY_LIMIT else replace(own, favour=ByHistory(log_.runtime))
    return summarize(replay(log_, chosen, estimate=cell.estimate, seed=cell.seed))


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """In per cent of the base: settings on the logs that chose, their geometric means; terms on the others."""
    found: dict[Key, Content] = {}
    for estimate in ESTIMATES:
        for policy in dict.fromkeys(run.cell.policy for run in runs if run.cell.span == SPAN):
            found |= _chosen(runs, policy, estimate)
        for term, (metric, *pair) in TERMS.items():
            for log_ in OTHERS:
                found |= _term(runs, term, METRICS[metric], [f"{PLAN}{one}" for one in pair], log_, estimate)
    for log_ in LONG_QUEUES:
        for window in WINDOWS:
            pair = [f"{PLAN}af,window={window}{commit}" for commit in ("", ",commit=0.5")]
            found |= _term(runs, f"commit, window={window}", "af_s", pair, log_, "runtime")
            if run := runs.get(log_, pair[0], "runtime"):
                found[f"commit, window={window}", log_, "wait, h"] = run.numbers["mean_wait_s"] / 3600
    for log_, (_file, span) in GUESSED.items():
        found |= _term(runs, "by history", "bsld", [BY_LIMIT, BY_HISTORY], log_, "limit", span)
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


def _term(
    runs: Runs, term: str, key: str, pair: Sequence[str], log_: str, estimate: str, span: str = "all"
) -> dict[Key, Content]:
    """The change by a term, each seed a pair: its mean, its interval by Student's t; and of the longest wait."""
    without, with_ = (
        [run for seed in range(SEEDS) if (run := runs.get(log_, one, estimate, seed=seed, span=span))] for one in pair
    )
    if not without or len(without) != len(with_):
        return {}

    def changes(name: str) -> list[float]:
        return [100 * (b.numbers[name] / a.numbers[name] - 1) for a, b in zip(without, with_, strict=True)]

    table = f"{term}, {estimate}"
    longest = [max(_waits(some)) for some in (without, with_)]
    found: dict[Key, Content] = {
        (table, log_, "change"): fmean(changes(key)),
        (table, log_, "longest"): longest[1] / longest[0] if longest[0] else 1.0,
    }
    if len(without) == SEEDS:
        _, found[table, log_, "low"], found[table, log_, "high"] = mean_interval(changes(key))
    return found


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


def windows(values: Values) -> list[list[str]]:
    """What commitment changes, by the planning window."""
    tables = [f"commit, window={window}, runtime" for window in WINDOWS]
    waits = [values.text(f"commit, window={WINDOWS[0]}", log_, "wait, h", ".2f", "not run") for log_ in LONG_QUEUES]
    return [
        [log_, wait, *(_cell(values, table, log_) or "not run" for table in tables)]
        for log_, wait in zip(LONG_QUEUES, waits, strict=True)
    ]


def guessed(values: Values) -> list[list[str]]:
    """What it changes to weigh by history."""
    return [[log_, _cell(values, "by history, limit", log_) or "not run"] for log_ in GUESSED]


def _cell(values: Values, table: str, log_: str) -> str:
    mean, low, high, longest = (values.number(table, log_, part) for part in ("change", "low", "high", "longest"))
    if mean is None or longest is None:
        return ""
    interval = "one seed" if low is None or high is None else f"[{low:+.1f}, {high:+.1f}]"
    return f"{mean:+.1f} {interval} ({longest:.1f} x)"


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
