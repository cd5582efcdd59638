"""The page on our predictor: what its quantiles do to schedules, how well they are calibrated, what they cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, isnan, nan
from statistics import fmean
from typing import Any, Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.metrics.comparison import FEWEST, RESAMPLES, block_length, cut
from dovetail.metrics.estimates import FEWEST_JOBS, LEVELS, Calibration, calibration, off
from dovetail.metrics.jobs import Outcomes, slowdowns
from dovetail.model.schedule import Schedule
from dovetail.studies.papers.page import LOGS, Page, Runs, Statement, facts_of, filled, grid, held, made_with, stated
from dovetail.studies.papers.recompute import OURS, schedule
from dovetail.studies.papers.tables import METRICS
from dovetail.studies.task import Task
from dovetail.units import WEEK_S

NAME: Final = "quantiles"
SERVES: Final = {
    "easy-sjbf": "bsld", "list-laf": "awf_s", "list-reg": "p2sf_s",
    "plan-bsld": "bsld", "plan-awf": "awf_s", "plan-p2sf": "p2sf_s", "plan-af": "af_s",
}  # fmt: skip
"""The policies, and the metric that each is judged by."""
CONFIDENCE: Final = 0.95
WORSE: Final = 0.005
"""So much worse is allowed."""
LITTLE: Final = 0.02
"""Where known run times gain less, there is little to gain."""
OFF: Final = 0.02
"""Shares may be so far from the level."""
BUDGET_S: Final = 180
"""CPU seconds that our predictor may add to a replay of SDSC-BLUE."""


Cells = dict[tuple[str, str, str], list[Task]]
"""By trace, policy and estimate: its replays."""


@dataclass(frozen=True)
class Half:
    """A half of one run or more by weeks: what adds up to the top and to the bottom of a metric's fraction."""

    top: Floats
    bottom: Floats


@dataclass(frozen=True)
class Change:
    """Of a metric against that with limits, with its interval over weeks."""

    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        if not isfinite(self.low):
            return f"{100 * self.value:+.1f} (too few weeks for an interval)"
        return f"{100 * self.value:+.1f} [{100 * self.low:+.1f}, {100 * self.high:+.1f}]"


@dataclass(frozen=True)
class Choice:
    """What the first half says for one policy on one trace, and what came of it in the last."""

    trace: str
    policy: str
    name: str
    """The estimate that was chosen."""
    first: Change
    last: Change
    oracle: Change
    """With known run times, last half."""
    tried: Mapping[str, tuple[Change, Change]]
    """All settings: first half, last half."""

    @property
    def verdict(self) -> str:
        if self.name == "limit":
            return "limits stay"
        if self.last.high < 0 or self.last.low > 0:
            return "better" if self.last.high < 0 else "worse"
        return "lower, within chance" if self.last.value < 0 else "higher, within chance"

    @property
    def good(self) -> bool:
        """Lower than with limits; or the same within chance where there is little to gain."""
        same = self.last.low <= 0 <= self.last.high
        return self.last.value < 0 or (same and self.oracle.value > -LITTLE)


def page(runs: Runs) -> Page:
    """The page, from whatever runs are in the store."""
    there = runs.store.names()
    missing = sum(task.name not in there for task in runs.tasks)
    asked: Cells = {}
    for task in runs.tasks:
        asked.setdefault((task.cell.trace, task.cell.policy, task.cell.estimate), []).append(task)
    cells = {key: tasks for key, tasks in asked.items() if all(task.name in there for task in tasks)}
    choices = []
    for trace in dict.fromkeys(task.cell.trace for task in runs.tasks):
        for policy, metric in SERVES.items():
            names = [name for of, by, name in asked if (of, by) == (trace, policy) and name != "recent"]
            if names and all((trace, policy, name) in cells for name in names):
                made = {
                    name: halves([schedule(runs.store, task) for task in cells[trace, policy, name]], metric)
                    for name in names
                }
                choices.append(choose(trace, policy, made))
    fared = {trace: rows for trace in OURS if (rows := _calibration(runs, cells, trace))}
    said = _statements(choices, [row for rows in fared.values() for row in rows], _added(runs, cells))
    parts = [
        _summary(said, missing),
        f"## Made with\n\n{made_with(NAME)}\n\n{LOGS}",
        f"## What was to be shown\n\n{stated('asked for', said)}",
        HOW,
        *(_table(policy, [one for one in choices if one.policy == policy]) for policy in SERVES),
        f"## Calibration\n\n{_calibration_table(fared)}",
        "## All settings\n\nPer cent of change against limits, first half / last half. A job that outlives its"
        " estimate is taken to run to its limit, or, with `a`, is estimated again.",
        _all(choices),
    ]
    return Page(filled(parts), held(said), {**facts_of(said), "missing": missing})


def halves(replays: Sequence[Schedule], metric: str) -> tuple[Half, Half]:
    """Replays of the same jobs, taken together: two halves of the time in which jobs are submitted, each in weeks."""
    work = replays[0].workload
    middle = (int(work.submit[0]) + int(work.submit[-1])) // 2
    week = (work.submit - middle) // WEEK_S
    parts = [_parts(Outcomes(work.size, work.runtime, one.wait), metric) for one in replays]
    top, bottom = (np.sum([part[side] for part in parts], axis=0) for side in (0, 1))
    found = []
    for part in (week < 0, week >= 0):
        at = week[part] - week[part].min()
        found.append(Half(_by_week(at, top[part]), _by_week(at, bottom[part])))
    return found[0], found[1]


def _by_week(week: Ints, values: Floats) -> Floats:
    sums = np.zeros(int(week.max(initial=0)) + 1)
    np.add.at(sums, week, values)
    return sums


def _parts(jobs: Outcomes, metric: str) -> tuple[Floats, Floats]:
    """What each job adds to the top and the bottom of a metric that is a fraction; but for a constant."""
    response, wait = jobs.response.astype(np.float64), jobs.wait.astype(np.float64)
    one = np.ones(len(jobs))
    if metric == "bsld":
        return slowdowns(jobs, 10), one
    if metric == "af_s":
        return response, one
    if metric == "awf_s":
        return jobs.area * response, jobs.area.astype(np.float64)
    return jobs.size * (response**4 - wait**4), jobs.size * (response**3 - wait**3)


def change(base: Half, other: Half) -> Change:
    """With an interval by resampling neighbouring weeks together; it is without end where there are too few."""

    def of(over: Any) -> Any:
        ours, theirs = (over(half.top) / over(half.bottom) for half in (other, base))
        return ours / theirs - 1

    weeks = len(base.top)
    block = block_length(weeks)
    if weeks < FEWEST * block:
        return Change(float(of(np.sum)), -inf, inf)
    rng = np.random.default_rng(0)
    first = rng.integers(0, weeks, (RESAMPLES, -(-weeks // block)))
    drawn = ((first[:, :, None] + np.arange(block)) % weeks).reshape(RESAMPLES, -1)[:, :weeks]
    return Change(float(of(np.sum)), *cut(of(lambda side: side[drawn].sum(axis=1)), weeks / block, CONFIDENCE))


def choose(trace: str, policy: str, made: Mapping[str, tuple[Half, Half]]) -> Choice:
    """The setting with the least metric in the first half, if even the upper end of its interval is below the limits;
    else the limits."""
    none = Change(0.0, 0.0, 0.0)
    base = made["limit"]
    tried = {name: (change(base[0], one[0]), change(base[1], one[1])) for name, one in made.items() if name != "limit"}
    oracle = tried.pop("runtime")[1]
    sure = {name: first.value for name, (first, _) in tried.items() if first.high < 0}
    name = min(sure, key=lambda one: sure[one]) if sure else "limit"
    first, last = tried.get(name, (none, none))
    return Choice(trace, policy, name, first, last, oracle, tried)


def _calibration(runs: Runs, cells: Cells, trace: str) -> list[Calibration]:
    names = ["limit", "recent", *(f"quantile:level={level}" for level in LEVELS)]
    if any((trace, "list-reg", name) not in cells for name in names):
        return []
    made = [schedule(runs.store, cells[trace, "list-reg", name][0]) for name in names]
    limit, recent, *ours = (one.said for one in made)
    work = made[0].workload
    return [calibration(level, said, limit, recent, work) for level, said in zip(LEVELS, ours, strict=True)]


def _added(runs: Runs, cells: Cells) -> float | None:
    """CPU seconds that our predictor adds to a replay of SDSC-BLUE."""
    keys = [("SDSC-BLUE", "easy-sjbf", name) for name in ("limit", "quantile:level=0.8")]
    if any(key not in cells for key in keys):
        return None
    cpu_s = {row["run"]: float(row["cpu_s"]) for row in runs.store.frame().iter_rows(named=True)}
    before, after = (fmean(cpu_s[task.name] for task in cells[key]) for key in keys)
    return after - before


def _statements(choices: Sequence[Choice], fared: Sequence[Calibration], added: float | None) -> list[Statement]:
    said = []
    for policy, metric in SERVES.items():
        mine = [one for one in choices if one.policy == policy]
        if not mine:
            continue
        need = len(OURS) if metric == "bsld" else len(OURS) - 1
        good, worst = sum(one.good for one in mine), max(one.last.value for one in mine)
        words = ", ".join(f"{one.trace} {100 * one.last.value:+.1f} % ({one.verdict})" for one in mine)
        holds = "yes" if good >= need and worst <= WORSE else "no"
        open_yet = len(OURS) - len(mine)
        if open_yet and good + open_yet >= need and worst <= WORSE:
            holds = f"not known: {len(mine)} of {len(OURS)} traces run"
        rule = f"lower on {need} of {len(OURS)} traces" + (
            "" if metric == "bsld" else ", or equal where little can be gained"
        )
        said.append(
            Statement(
                f"{METRICS[metric]} with {policy} in the last half: {rule}; nowhere more than {100 * WORSE:g} % higher",
                words,
                holds,
            )
        )
    if fared:
        worst = float(max(off(one.level, one.ended_before, one.ended_by) for one in fared))
        users = [100 * one.off_by_user for one in fared if not isnan(one.off_by_user)] or [nan]
        words = f"{100 * worst:.1f} points off at most; by user {min(users):.1f} to {max(users):.1f} on average"
        said.append(Statement(f"calibrated within {100 * OFF:g} points", words, worst <= OFF))
        for name, losses in (
            ("the limits", [(one.pinball_s, one.pinball_limit_s) for one in fared]),
            ("Last2", [(one.pinball_s, one.pinball_recent_s) for one in fared]),
        ):
            less = sum(ours < theirs for ours, theirs in losses)
            ratio = max(ours / theirs for ours, theirs in losses)
            said.append(
                Statement(
                    f"pinball loss below that of {name}",
                    f"{less} of {len(losses)} cells; {ratio:.3f} times at most",
                    "yes" if less == len(losses) else "in part",
                )
            )
    if added is not None:
        said.append(Statement(f"at most {BUDGET_S} s of CPU for SDSC-BLUE", f"{added:.0f} s", added <= BUDGET_S))
    return said


def _summary(said: Sequence[Statement], missing: int) -> str:
    rest = f" {missing} runs of the study are not in the store: what needs them is left out." if missing else ""
    return f"""
# Our quantiles of run times

`quantile` says the time that a share of the jobs ends within, learned and calibrated while it runs
([predictors](../predictors.md#a-quantile-of-the-run-time)). Here is what it does to schedules, beside the users' limits
and the run times themselves. {held(said)}.{rest}
"""


HOW: Final = """
## What it does to schedules

Each trace is replayed whole with each setting, three times: a policy turns the smallest change into another schedule,
so in each of the three another one in a hundred limits is a second longer (`nudge=0.01`), and what is shown is of the
three together. The planner takes minutes and is replayed once, on the two largest logs in a span. Settings are chosen
on the jobs submitted in the first half of the time, and figures are of those submitted in the last: the setting with
the least metric in the first half, if even the upper end of its 95 % interval over weeks is below the limits; else,
and where there are too few weeks for an interval, the limits stay. Changes are in per cent against limits, with 95 %
intervals over weeks (neighbouring weeks resampled together); "known" is with the run times themselves. "better" and
"worse" are only said where the whole interval is on one side of 0. Up to seven settings are tried and nothing is
corrected for their number, so a setting may be chosen by chance: the last half shows it.

Why packing and fairness hardly gain, and slowdowns do: [which errors of estimates do harm](errors.md).

KTH-SP2 and SDSC-SP2 were looked at while the constants of the predictor were chosen, whole. Which levels are offered to
which policy was decided when results of whole traces had been seen: on these five (an earlier version of this page,
with 0.5 as the lowest), and on SDSC-DS, ALCF-Theta and ALCF-Mira, where 0.1 was never the best. Another
rule, the most cautious setting within a standard error of the best, was tried on three of the traces and dropped: it
did no better.
"""


def _table(policy: str, choices: Sequence[Choice]) -> str:
    if not choices:
        return ""
    rows = []
    for one in choices:
        first, last = ("", "0") if one.name == "limit" else (one.first.text, one.last.text)
        rows.append([one.trace, one.name, first, last, one.oracle.text, one.verdict])
    head = [
        f"{METRICS[SERVES[policy]]}, {policy}",
        "chosen",
        "first half, %",
        "last half, %",
        "known, last half, %",
        "",
    ]
    return grid(head, rows)


def _calibration_table(fared: Mapping[str, Sequence[Calibration]]) -> str:
    shares = ["ended before, %", "ended by, %", "off by user, points"]
    head = ["trace", "level, %", *shares, "pinball, s", "of the limit, s", "of Last2, s"]
    body = [
        [trace, f"{100 * one.level:g}",
         *(f"{100 * share:.1f}" for share in (one.ended_before, one.ended_by, one.off_by_user)),
         *(f"{loss:,.1f}" for loss in (one.pinball_s, one.pinball_limit_s, one.pinball_recent_s))]
        for trace, rows in fared.items() for one in rows
    ]  # fmt: skip
    return (
        "Under list-reg, without the first tenth of the jobs. A level between the two shares is calibrated; where many"
        " jobs run exactly to their limits the shares are far apart, and even the limits may pass at a high level. *Off"
        f" by user* is how far the level is from the shares of one user's jobs: the mean over users with {FEWEST_JOBS}"
        " jobs or more, by jobs.\n\n" + grid(head, body)
    )


def _all(choices: Sequence[Choice]) -> str:
    names = list(dict.fromkeys(name for one in choices for name in one.tried))
    short = [name.removeprefix("quantile:level=").replace(",correct=again", " a") for name in names]
    rows = []
    for one in choices:
        cells = []
        for name in names:
            pair = one.tried.get(name)
            cells.append("" if pair is None else f"{100 * pair[0].value:+.1f} / {100 * pair[1].value:+.1f}")
        rows.append([one.trace, one.policy, *cells])
    return grid(["trace", "policy", *short], rows)
