"""Tables 1 to 3 and Figs. 2 to 7 of DBF: what regular jobs gain where a share of the others has a deadline."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite, nan
from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.io.read import read_workload
from dovetail.metrics import stretches
from dovetail.metrics.comparison import mean_interval
from dovetail.metrics.jobs import mean
from dovetail.model.schedule import Schedule
from dovetail.studies.task import Cell
from dovetail.units import DAY_S, duration
from reproductions.claims import Judged, verdict
from reproductions.dbf_figure_1.page import ANOMALIES, FILES, PAPERS, anomalies, only_where_other
from reproductions.running import Work
from reproductions.runs import Points, Run, Runs
from reproductions.values import Content, Key, Values

__all__ = ["only_where_other"]

SHARES: Final = {f"{100 * share:.0f} %": f"deadlines={share}" for share in (0.2, 0.4, 0.6, 0.8)}
LOGS: Final = (*PAPERS, "ALCF-Mira-2018")
POLICIES: Final = {
    "CBF": "conservative", "EASY": "easy", "DBF": "dbf:guard=no", "dbf": "dbf", "plan-deadline": "plan-deadline"
}  # fmt: skip
"""What the page calls them; those in capitals are the paper's."""
SEEDS: Final = 5
THREE: Final = ("conservative", "easy", "dbf:guard=no")
AVERAGED: Final = (
    "wait_s", "mean_wait_s", "max_stretch_waited", "deadline_usage", "deadline_usage_above_80", "deadline_at_once",
    "late_short", "late_long",
)  # fmt: skip
LATE: Final = {"late_short": "deadline of 24 hours", "late_long": "deadline of 10 limits"}
STABLE: Final = 0.1
"""Waits that differ by less from share to share are called stable here."""
ON_PAR: Final = 0.02
"""A wait above another by less is on par with it."""


def measure(schedule: Schedule, beside: Callable[[str], Schedule]) -> dict[str, float | Points]:
    """Of the regular jobs that waited under one of the paper's policies, and of late jobs by the kind of deadline."""
    deadline_s = schedule.workload["deadline_s"]
    counts = np.any([beside(policy).wait > 0 for policy in THREE], axis=0) & (deadline_s < 0)
    return measured(schedule, counts)


def measured(schedule: Schedule, counts: npt.NDArray[np.bool_]) -> dict[str, float | Points]:
    """The same, told which jobs count."""
    deadline_s = schedule.workload["deadline_s"]
    wait = schedule.wait[counts].astype(np.float64)
    late = (deadline_s >= 0) & (schedule.end > schedule.deadline_at)
    quartiles = np.percentile(wait, (25, 75)).tolist() if len(wait) else (nan, nan)
    found: dict[str, float | Points] = {
        "wait_s": mean(wait), "max_wait_s": float(wait.max(initial=0)),
        "max_stretch_waited": float(stretches(schedule)[counts].max(initial=1)),
        "first_quartile_s": quartiles[0], "third_quartile_s": quartiles[1],
        "at_once": mean((wait == 0).astype(np.float64)),
        "late_short": int((late & (deadline_s == DAY_S)).sum()), "late_long": int((late & (deadline_s > DAY_S)).sum()),
    }  # fmt: skip
    if schedule.seed == 0 and schedule.policy != "dbf" and len(wait):  # `dbf` would cover DBF in the figure
        at = np.arange(0, 101, 2)
        found["waits"] = list(zip(np.percentile(wait, at).tolist(), at.tolist(), strict=True))
    return found


def cells(work: Work) -> list[Cell]:
    """Table 1: the logs as they are."""
    return [Cell(log, "", "all", "anomalies", "limit", 0) for log in PAPERS]


def solve(cell: Cell, work: Work) -> dict[str, float]:
    """Count what is odd in a log."""
    return anomalies(read_workload(work.log(FILES[cell.trace])))


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """Means over the seeds that were run, with their intervals; the tables; and the planner beside dbf."""
    found: dict[Key, Content] = {}
    for log in LOGS:
        if log_run := runs.get(log, "anomalies"):
            found |= {("Table 1", log, words): log_run.numbers[key] for key, words in ANOMALIES.items()}
        for share in SHARES:
            for name in POLICIES:
                found |= _averaged(log, share, name, _seeds(runs, log, share, name))
            found |= _first(runs, log, share)
    dbf = [run.numbers["deadlines_missed"] for run in runs if run.cell.policy == "dbf:guard=no"]
    guarded = [run.numbers["deadlines_missed"] for run in runs if run.cell.policy == "dbf"]
    found |= _times(runs)
    return {**found, **({("missed", "DBF", ""): sum(dbf), ("missed", "dbf", ""): sum(guarded)} if dbf else {})}


def _seeds(runs: Runs, log: str, share: str, name: str) -> list[Run]:
    found = (runs.get(log, POLICIES[name], scenario=SHARES[share], seed=seed) for seed in range(SEEDS))
    return [run for run in found if run]


def _averaged(log: str, share: str, name: str, seeds: Sequence[Run]) -> dict[Key, Content]:
    if not seeds:
        return {}
    found: dict[Key, Content] = {}
    for metric in AVERAGED:
        numbers = [run.numbers[metric] for run in seeds]
        middle, low, high = mean_interval(numbers)
        found[f"{metric}: {log}", name, share], found[f"{metric}, ±: {log}", name, share] = middle, high - middle
        # Of stretches: their few maxima have an interval that says little.
        ends = (min(numbers), max(numbers)) if metric == "max_stretch_waited" else (low, high)
        found |= {(f"{metric}: {log} {end}", name, share): one for end, one in zip(("low", "high"), ends, strict=True)}
        if name == "DBF" and metric in LATE:
            found[f"late: {log}", LATE[metric], share] = middle
    return found


def _times(runs: Runs) -> dict[Key, Content]:
    """CPU times, where all of the paper's logs have all runs: times of one machine are compared, or none."""
    found: dict[Key, Content] = {}
    for log in PAPERS:
        for name in ("CBF", "EASY", "DBF"):
            seeds = [_seeds(runs, log, share, name) for share in SHARES]
            if any(len(some) < SEEDS for some in seeds):
                return {}
            times = [mean(np.array([run.cpu_s for run in some])) for some in seeds]
            found |= {(f"cpu_s: {log}", name, share): time for share, time in zip(SHARES, times, strict=True)}
            columns = [f"DBF {share}" for share in SHARES] if name == "DBF" else [name]
            shown = times if name == "DBF" else [mean(np.array(times))]
            found |= {("Table 3", log, column): time for column, time in zip(columns, shown, strict=True)}
    return found


def _first(runs: Runs, log: str, share: str) -> dict[Key, Content]:
    """Of the first seed: numbers that are not averaged, and the planner less dbf."""
    found: dict[Key, Content] = {}
    row, ran = f"{log}, {share}", {name: runs.get(log, POLICIES[name], scenario=SHARES[share]) for name in POLICIES}
    for name, run in ran.items():
        if run:
            numbers, table = run.numbers, f"first seed: {name}"
            found["Table 2", log, "jobs"], found["Table 2", log, share] = numbers["jobs"], numbers["regular_jobs"]
            found |= {(table, row, key): number for key, number in numbers.items() if number == number}
            found[table, row, "longest wait, h"] = numbers["regular_max_wait_s"] / 3600
            found[table, row, "late"] = numbers["late_short"] + numbers["late_long"]
            found[table, row, "CPU, s"] = run.cpu_s
            found |= {(f"waits: {row}", name, f"{x / 3600:g}"): y for x, y in run.curves.get("waits", ())}
    dbf, plan = ran["dbf"], ran["plan-deadline"]
    if dbf and plan:
        for column, metric in (("change, %", "regular_mean_wait_s"), ("of all jobs, %", "mean_wait_s")):
            found["planner", row, column] = 100 * (plan.numbers[metric] / dbf.numbers[metric] - 1)
    return found


# The text of cells -------------------------------------------------------------------------------------------


def interval(values: Values, table: str, row: str, column: str) -> str:
    """A mean with half the width of its interval."""
    middle, half = (values.number(table.replace(":", words), row, column) for words in (":", ", ±:"))
    if middle is None:
        return "not run"
    return f"{middle:,.0f}" + (f" ± {half:,.0f}" if half is not None and isfinite(half) else "")


def seconds(values: Values, table: str, row: str, column: str) -> str:
    """CPU seconds, and the printed ones."""
    ours = values.number(table, row, column)
    return f"{'-' if ours is None else format(ours, '.1f')} ({values.printed_number(table, row, column):,.0f})"


BESIDE: Final = {"longest wait, h": "longest wait, h", "refused": "deadlines_refused", "late": "late",
                 "accepted and late": "deadlines_missed"}  # fmt: skip


def planner(values: Values, table: str, row: str, column: str) -> str:
    """dbf beside the planner, on the same jobs."""
    if column.endswith("%"):
        change = values.number(table, row, column)
        return "not run" if change is None else f"**{change:+.1f}**" if column == "change, %" else f"{change:+.1f}"
    names = ("dbf", "plan-deadline") if column in BESIDE else (column.partition(":")[0],)
    metric = BESIDE.get(column) or column.partition(": ")[2]
    found = [values.number(f"first seed: {name}", row, metric) for name in names]
    return " / ".join("-" if one is None else f"{one:,.0f}" for one in found)


# Claims ------------------------------------------------------------------------------------------------------


def _grid(values: Values, metric: str, name: str = "DBF", other: str = "") -> npt.NDArray[np.float64]:
    """A metric by log and share; with `other`, over that of another policy."""
    found = np.array([[values.need(f"{metric}: {log}", name, share) for share in SHARES] for log in PAPERS])
    return found / _grid(values, metric, other) if other else found


def _falls(found: npt.NDArray[np.float64]) -> list[bool]:
    """On which logs it falls from share to share."""
    return [bool((np.diff(row) < 0).all()) for row in found]


def _percents(numbers: npt.NDArray[np.float64], form: str = ".1f") -> str:
    return ", ".join(f"{format(100 * number, form)} %" for number in numbers)


def _not_in(ratio: npt.NDArray[np.float64]) -> tuple[list[str], str]:
    """The configurations where DBF is not below another policy, and in words."""
    named = [f"{log} {share}" for log in PAPERS for share in SHARES]
    places = [name for name, one in zip(named, ratio.flat, strict=True) if one >= 1]
    return places, f"not in: {', '.join(places) or 'none'}"


def stable(values: Values) -> Judged:
    grids = {name: _grid(values, "wait_s", name) for name in ("CBF", "EASY")}
    spreads = {name: found.max(axis=1) / found.min(axis=1) - 1 for name, found in grids.items()}
    ours = "; ".join(f"{name} differs by up to {_percents(numbers)}" for name, numbers in spreads.items())
    return Judged(ours, verdict(bool(numbers.max() < STABLE) for numbers in spreads.values()))


def below_easy(values: Values) -> Judged:
    ratio = _grid(values, "wait_s", "DBF", "EASY")
    places, ours = _not_in(ratio)
    blue = ratio[0, 0] - 1
    holds = verdict([set(places) <= {"SDSC-BLUE 20 %"}, bool(0 < blue < 0.1)])
    return Judged(f"{ours}; SDSC-BLUE with 20 %: {100 * blue:+.1f} %", holds)


def linear(values: Values) -> Judged:
    found = _grid(values, "wait_s")
    straight = [float(np.corrcoef((0.2, 0.4, 0.6, 0.8), curve)[0, 1]) for curve in found]
    falls = _falls(found)
    ours = f"falls from share to share on {sum(falls)} of {len(falls)} logs; correlation "
    return Judged(ours + ", ".join(f"{one:.3f}" for one in straight), verdict([all(falls) and max(straight) < -0.98]))


def with_20(values: Values) -> Judged:
    first = _grid(values, "wait_s", "DBF", "EASY")[:, 0] - 1
    return Judged(_percents(first, "+.1f"), verdict([*(first < ON_PAR), -0.3 < first.min() < -0.2]))


def factor_of_two(values: Values) -> Judged:
    factor = 1 / _grid(values, "wait_s", "DBF", "CBF")[PAPERS.index("SDSC-DS"), 0]
    return Judged(f"by a factor of {factor:.2f}", verdict([factor > 2]))


def all_jobs(values: Values) -> Judged:
    ratio = _grid(values, "mean_wait_s", "DBF", "CBF")
    places, ours = _not_in(ratio)
    grows = _falls(ratio)
    ours += f"; grows with the share on {sum(grows)} of {len(grows)} logs"
    return Judged(ours, verdict([not places, all(grows)]))


def like_easy(values: Values) -> Judged:
    par = _grid(values, "mean_wait_s", "DBF", "EASY")[:, 1:] < 1 + ON_PAR
    return Judged(f"in {par.sum()} of {par.size} configurations", verdict([par.mean() > 0.5]))


def _blue(values: Values, metric: str, name: str) -> float:
    return values.need(f"first seed: {name}", "SDSC-BLUE, 20 %", metric)


def first_quartile(values: Values) -> Judged:
    at_once, first = _blue(values, "at_once", "EASY"), _blue(values, "first_quartile_s", "DBF")
    return Judged(f"{100 * at_once:.1f} %; {duration(round(first))}", verdict([at_once > 0.25, 60 <= first <= 300]))


def third_quartile(values: Values) -> Judged:
    metrics = ("third_quartile_s", "max_wait_s")
    third, longest = (_blue(values, metric, "DBF") - _blue(values, metric, "EASY") for metric in metrics)
    signed = [f"{'+' if one >= 0 else '-'}{duration(round(abs(one)))}" for one in (third, longest)]
    holds = verdict([0 < third < 1800, 6 * 3600 < -longest < 18 * 3600])
    return Judged(f"DBF less EASY: {'; '.join(signed)}", holds)


def stretch(values: Values) -> Judged:
    parts = _grid(values, "max_stretch_waited", "DBF", "EASY").mean(axis=1)
    good = [bool(one < (1.1 if log == "SDSC-DS" else 1.0)) for log, one in zip(PAPERS, parts, strict=True)]
    return Judged(f"of that of EASY, mean over the shares: {_percents(parts)}", verdict(good))


def few_late(values: Values) -> Judged:
    late = _grid(values, "late_short") + _grid(values, "late_long")
    regular = [[values.need("Table 2", log, column) for column in ("jobs", *SHARES)] for log in PAPERS]
    worst = max((one / (row[0] - np.array(row[1:]))).max() for one, row in zip(late, regular, strict=True))
    counts = "; ".join(", ".join(f"{one:.0f}" for one in row) for row in late)
    return Judged(f"{counts}: {100 * worst:.2f} % of the jobs with a deadline at most", verdict([worst < 0.01]))


def accepted(values: Values) -> Judged:
    late = {"DBF": values.need("missed", "DBF", ""), "`dbf`": values.number("missed", "dbf", "")}
    told = ", ".join(f"{name} {one:.0f}" for name, one in late.items() if one is not None)
    return Judged(f"accepted and late in all runs: {told}", verdict([not any(late.values())]))


def short_deadlines(values: Values) -> Judged:
    short, long = (_grid(values, f"late_{kind}").sum(axis=1) for kind in ("short", "long"))
    parts = short / np.maximum(short + long, 1)
    return Judged(f"share of those: {_percents(parts)}", verdict([*(parts[:2] > 2 / 3), parts[2] < 0.5]))


def at_once(values: Values) -> Judged:
    part = _grid(values, "deadline_at_once").mean()
    return Judged(f"{100 * part:.1f} %, mean of the configurations", verdict([0.4 < part < 0.5]))


def usage(values: Values) -> Judged:
    found = 100 * _grid(values, "deadline_usage")
    falls = _falls(found)
    ours = f"falls on {sum(falls)} of {len(falls)} logs; {found.max():.1f} % at most"
    return Judged(ours, verdict([all(falls), found.max() < 20]))


def longer(values: Values) -> Judged:
    over = _grid(values, "cpu_s", "DBF", "CBF") - 1
    ours = f"{100 * over.mean():+.0f} % on average over the configurations, {100 * over.max():+.0f} % at most"
    return Judged(ours, verdict([0.1 < over.mean() < 0.4]))
