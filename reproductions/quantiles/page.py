"""What our quantiles do to schedules, by weeks, how well they are calibrated, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import inf, isfinite, nan
from statistics import fmean
from typing import Any, Final

import numpy as np

from dovetail.arrays import Floats
from dovetail.metrics.comparison import FEWEST, RESAMPLES, block_length, cut
from dovetail.metrics.estimates import LEARNING, LEVELS, calibration, off, pinball_s
from dovetail.metrics.jobs import Outcomes, slowdowns
from dovetail.model.schedule import Schedule
from dovetail.units import WEEK_S
from reproductions.claims import NO, NOT_RUN, YES, Judged
from reproductions.runs import Points, Run, Runs
from reproductions.values import Content, Key, NotRunError, Values

SERVES: Final = {
    "easy-sjbf": "BSLD", "list-laf": "AWF", "list-reg": "P2SF",
    "plan-bsld": "BSLD", "plan-awf": "AWF", "plan-p2sf": "P2SF", "plan-af": "AF",
}  # fmt: skip
"""The policies, and the metric that each is judged by."""
SPANS: Final = {"SDSC-BLUE": "SDSC-BLUE 180 d", "CEA-Curie": "CEA-Curie 63 d"}
"""The planner is replayed on spans of these."""
LOGS: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie")
SETTINGS: Final = {
    "easy-sjbf": ("0.2", "0.3", "0.5", "0.8"),
    "list-laf": ("0.5", "0.8", "0.8 a", "0.9 a", "0.9", "0.95", "0.99"),
    "plan-bsld": ("0.3",),
    "plan-awf": ("0.9", "0.99"),
}
"""Levels that a policy is offered, `a` where a job that outlives its estimate is estimated again. Those of list-reg are
list-laf's, those of the other planners plan-awf's."""
LITTLE: Final = 2
"""Per cent: where known run times gain less, there is little to gain."""


def offered(policy: str) -> dict[str, str]:
    """The settings of a policy: what the page and what the study calls them."""
    known = SETTINGS.get(policy) or SETTINGS["plan-awf" if policy.startswith("plan") else "list-laf"]
    return {one: f"quantile:level={one}".replace(" a", ",correct=again") for one in known}


def measure(schedule: Schedule, _: Callable[[str], Schedule]) -> dict[str, float | Points]:
    """By weeks, what adds up to the top and to the bottom of the metric's fraction, in both halves of the time in
    which jobs are submitted; and how the estimates fare under list-reg."""
    work = schedule.workload
    middle = (int(work.submit[0]) + int(work.submit[-1])) // 2
    week = (work.submit - middle) // WEEK_S
    parts = _parts(Outcomes(work.size, work.runtime, schedule.wait), SERVES[schedule.policy])
    found: dict[str, float | Points] = {}
    for name, half in (("first half", week < 0), ("last half", week >= 0)):
        at = week[half] - week[half].min()
        sums = [np.bincount(at, weights=part[half]).tolist() for part in parts]
        found[name] = list(zip(*sums, strict=True))
    return {**found, **(_fared(schedule) if schedule.policy == "list-reg" and schedule.seed == 0 else {})}


def _parts(jobs: Outcomes, metric: str) -> tuple[Floats, Floats]:
    """What each job adds to the top and the bottom of a metric that is a fraction, but for a constant."""
    response, wait = jobs.response.astype(np.float64), jobs.wait.astype(np.float64)
    one = np.ones(len(jobs))
    if metric == "BSLD":
        return slowdowns(jobs, 10), one
    if metric == "AF":
        return response, one
    if metric == "AWF":
        return jobs.area * response, jobs.area.astype(np.float64)
    return jobs.size * (response**4 - wait**4), jobs.size * (response**3 - wait**3)


def _fared(schedule: Schedule) -> dict[str, float]:
    """Calibration and losses of the estimates, without the first tenth of the jobs."""
    work, said = schedule.workload, schedule.said
    counted = slice(len(work) // LEARNING, None)
    losses = {level: pinball_s(said[counted], work.runtime[counted], level) for level in LEVELS}
    found = {f"pinball_{100 * level:.0f}_s": loss for level, loss in losses.items()}
    name, _, level = schedule.estimate.partition(":level=")
    if name == "quantile" and level in map(str, LEVELS):
        one = calibration(float(level), said, said, said, work)
        found |= {key: getattr(one, key) for key in ("ended_before", "ended_by", "off_by_user")}
    return found


@dataclass(frozen=True)
class Change:
    """Of a metric against that with limits, in per cent, with its interval over weeks: without end where there are too
    few of them."""

    value: float
    low: float
    high: float


def change(base: Floats, other: Floats) -> Change:
    """From tops and bottoms by weeks, with an interval by resampling neighbouring weeks together."""

    def of(over: Callable[[Floats], Any]) -> Any:
        ours, theirs = (over(half[0]) / over(half[1]) for half in (other, base))
        return 100 * (ours / theirs - 1)

    weeks = base.shape[1]
    block = block_length(weeks)
    if weeks < FEWEST * block:
        return Change(float(of(np.sum)), -inf, inf)
    first = np.random.default_rng(0).integers(0, weeks, (RESAMPLES, -(-weeks // block)))
    drawn = ((first[:, :, None] + np.arange(block)) % weeks).reshape(RESAMPLES, -1)[:, :weeks]
    return Change(float(of(np.sum)), *cut(of(lambda side: side[drawn].sum(axis=1)), weeks / block, 0.95))


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """What was chosen for each policy on each trace, what came of it, all settings, and how quantiles fare."""
    found: dict[Key, Content] = {}
    replays: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        replays.setdefault((run.cell.trace, run.cell.policy, run.cell.estimate), []).append(run)
    for policy in SERVES:
        planned = policy.startswith("plan")
        for trace in (SPANS.get(log, log) if planned else log for log in LOGS):
            settings = {"limit": "limit", "runtime": "runtime", **offered(policy)}
            some = {name: replays.get((trace, policy, text), []) for name, text in settings.items()}
            if all(len(one) == (1 if planned else 3) for one in some.values()):
                found |= chosen(trace, policy, {name: _halves(one) for name, one in some.items()})
    for log in LOGS:
        found |= _calibrated(log, runs)
    by_name = {name: replays.get(("SDSC-BLUE", "easy-sjbf", name), []) for name in ("limit", "quantile:level=0.8")}
    if all(by_name.values()):
        before, after = (fmean(run.cpu_s for run in some) for some in by_name.values())
        found["CPU", "SDSC-BLUE", "added, s"] = after - before
    return found


def _halves(replays: Sequence[Run]) -> tuple[Floats, Floats]:
    """Replays of the same jobs, taken together: tops and bottoms by weeks, of both halves."""
    sums = [np.sum([run.curves[half] for run in replays], axis=0).T for half in ("first half", "last half")]
    return sums[0], sums[1]


def chosen(trace: str, policy: str, made: Mapping[str, tuple[Floats, Floats]]) -> dict[Key, Content]:
    """The setting with the least metric in the first half, if even the upper end of its interval is below the limits;
    else the limits. And what came of it in the last half."""
    base = made["limit"]
    tried = {name: [change(base[half], one[half]) for half in (0, 1)] for name, one in made.items() if name != "limit"}
    known = tried.pop("runtime")[1]
    row = f"{trace}, {policy}"
    found: dict[Key, Content] = {
        ("All settings", row, name): f"{first.value:+.1f} / {last.value:+.1f}" for name, (first, last) in tried.items()
    }
    sure = {name: first.value for name, (first, _) in tried.items() if first.high < 0}
    name = min(sure, key=lambda one: sure[one]) if sure else "limit"
    table = f"{SERVES[policy]}, {policy}"
    found[table, trace, "chosen"] = name if name == "limit" else offered(policy)[name]
    for which, one in zip(("known", "first", "last"), (known, *tried.get(name, (None, None))), strict=True):
        for part in ("value", "low", "high"):
            found[table, trace, f"{which}, {part}"] = "" if one is None else getattr(one, part)
    return found


def _calibrated(log: str, runs: Runs) -> dict[Key, Content]:
    found: dict[Key, Content] = {}
    for level in LEVELS:
        names = ("limit", "recent", f"quantile:level={level}")
        some = [runs.get(log, "list-reg", name, scenario="nudge=0.01") for name in names]
        limit, recent, ours = (run.numbers if run else {} for run in some)
        if limit and recent and ours:
            loss = f"pinball_{100 * level:.0f}_s"
            row = f"{log}, {100 * level:g} %"
            shares = {"ended before": "ended_before", "ended by": "ended_by", "off by user": "off_by_user"}
            found |= {("Calibration", row, name): 100 * ours[key] for name, key in shares.items()}
            losses = {"pinball, s": ours, "of the limit, s": limit, "of Last2, s": recent}
            found |= {("Calibration", row, name): one[loss] for name, one in losses.items()}
    return found


def interval(values: Values, table: str, row: str, column: str) -> str:
    """A cell of the table of a policy: what was chosen, a change with its interval, or what to say of it."""
    if column == "chosen":
        return str(values.ours[table, row, column].content)
    if column == "":
        return _said(values, table, row)
    which = {"first half, %": "first, ", "last half, %": "last, ", "known, last half, %": "known, "}[column]
    value, low, high = (values.number(table, row, which + part) for part in ("value", "low", "high"))
    if value is None:
        return "0" if which == "last, " else ""
    if low is None or high is None or not isfinite(low):
        return f"{value:+.1f} (too few weeks for an interval)"
    return f"{value:+.1f} [{low:+.1f}, {high:+.1f}]"


def _said(values: Values, table: str, row: str) -> str:
    value, low, high = (values.number(table, row, f"last, {part}") for part in ("value", "low", "high"))
    if value is None:
        return "limits stay"
    if (high or 0) < 0 or (low or 0) > 0:
        return "better" if value < 0 else "worse"
    return "lower, within chance" if value < 0 else "higher, within chance"


def lower(values: Values, table: str, need: int, worse: float) -> Judged:
    """Whether the metric is lower than with limits on enough traces, or the same within chance where there is little to
    gain; and nowhere higher by more than is allowed."""
    rows = [key[1] for key in values.keys(table, column="chosen")]
    if not rows:
        raise NotRunError(table)
    last = {row: values.number(table, row, "last, value") or 0.0 for row in rows}
    good = sum(_good(values, table, row, last[row]) for row in rows)
    words = ", ".join(f"{row} {last[row]:+.1f} % ({_said(values, table, row)})" for row in rows)
    left = len(LOGS) - len(rows)
    harmless = max(last.values()) <= worse
    holds = YES if good >= need and harmless else NO
    if left and good + left >= need and harmless:
        holds = f"not known: {len(rows)} of {len(LOGS)} traces run"
    return Judged(words, holds)


def _good(values: Values, table: str, row: str, last: float) -> bool:
    low, high = (values.number(table, row, f"last, {part}") or 0.0 for part in ("low", "high"))
    return last < 0 or (low <= 0 <= high and values.need(table, row, "known, value") > -LITTLE)


def calibrated(values: Values, by: float) -> Judged:
    """How far levels are from the shares of jobs that ended before and by the estimates."""
    rows = list(dict.fromkeys(key[1] for key in values.keys("Calibration")))
    worst, users = 0.0, []
    for row in rows:
        before, ended = (values.need("Calibration", row, name) for name in ("ended before", "ended by"))
        worst = max(worst, float(off(float(row.split(", ")[1].removesuffix(" %")), before, ended)))
        users.append(values.number("Calibration", row, "off by user") or nan)
    if not rows:
        return Judged("-", NOT_RUN)
    words = f"{worst:.1f} points off at most; by user {np.nanmin(users):.1f} to {np.nanmax(users):.1f} on average"
    return Judged(words, YES if worst <= by else NO)


def losses(values: Values, other: str) -> Judged:
    """In how many cells the loss is below that of other estimates."""
    rows = list(dict.fromkeys(key[1] for key in values.keys("Calibration")))
    pairs = [[values.need("Calibration", row, name) for name in ("pinball, s", other)] for row in rows]
    if not pairs:
        return Judged("-", NOT_RUN)
    less, most = sum(ours < theirs for ours, theirs in pairs), max(ours / theirs for ours, theirs in pairs)
    return Judged(f"{less} of {len(pairs)} cells; {most:.3f} times at most", YES if less == len(pairs) else "in part")
