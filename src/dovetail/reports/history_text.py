"""What happened, in sentences, as sheets for the terminal and the page, and as frames for files."""

from __future__ import annotations

from collections.abc import Iterable
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from dovetail.arrays import Floats
from dovetail.metrics.history import STEPS, USED, Groups, History, LimitUse, written
from dovetail.metrics.over_time import OverTime
from dovetail.reports.columns import DASH
from dovetail.reports.sheets import Cells, Sheet
from dovetail.reports.style import short_duration
from dovetail.slurm.reasons import meaning
from dovetail.units import duration

if TYPE_CHECKING:
    import polars as pl


def sentences(found: History) -> list[str]:
    """What it comes to; the first one is the headline."""
    waits, jobs = found.entire.wait, int(found.entire.jobs[0])
    half = f"within {_rounded(waits.median_s[0])}" if waits.median_s[0] >= 1 else "at once"
    told = [f"Half of the jobs started {half}; one in ten waited for more than {_rounded(waits.p90_s[0])}."]
    if waits.p90_s[0] < 1:
        told = ["Nine in ten jobs, or more, started at once."]
    told.append(
        f"The mean wait was {_rounded(waits.mean_s[0])}, the longest {_rounded(waits.longest_s[0])}."
        + (f" Since their submission: {_rounded(found.entire.since_submit.mean_s[0])} on average." * differ(found))
    )
    ran = f"{jobs:,} jobs ran for {found.entire.core_h[0]:,.0f} core hours on {found.processors:,} cores"
    line = found.over_time
    if found.span_s:
        shares = [f"{100 * _mean(line, used):.0f} % of the {resource(name)}" for name, used in line.busy.items()]
        ran += f"; in use on average: {', '.join(shares)}"
    told.append(f"{ran}.")
    if found.limits and found.limits[0].asked_core_h[0] > 0:
        use = found.limits[0]
        used = 100 * use.used_core_h[0] / use.asked_core_h[0]
        reached = 100 * use.reached[0] / use.jobs[0]
        told.append(
            f"Jobs with a limit used {used:.0f} % of the core hours that their limits stand for; {reached:.1f} % of"
            " them reached the limit."
        )
    return told


def differ(found: History) -> bool:
    """Whether some jobs could not start when they were submitted."""
    both = found.entire
    return bool(both.wait.mean_s[0] < both.since_submit.mean_s[0])


def _mean(line: OverTime, values: Floats) -> float:
    """Over all of the time, from the first submission to the last end."""
    return float(np.average(values, weights=np.diff(line.edges)))


def resource(name: str) -> str:
    """What a resource is called, without the unit that it is counted in: `memory_mb` is memory."""
    word = name.partition("_")[0]
    return "GPUs" if word == "gpus" else word


def _rounded(seconds: float) -> str:
    return duration(round(seconds))


def entire_sheet(found: History) -> Sheet:
    """The waits of all jobs: both, where they differ."""
    both = [("from when it could start", found.entire.wait), ("from its submission", found.entire.since_submit)]
    spreads = [spread for _, spread in both][: 1 + differ(found)]
    numbers = [
        _durations(head, [float(getattr(one, key)[0]) for one in spreads])
        for head, key in (
            ("mean", "mean_s"), ("median", "median_s"), ("90 %", "p90_s"), ("99 %", "p99_s"), ("longest", "longest_s"),
        )
    ]  # fmt: skip
    return Sheet("Waits of all jobs", "wait of a job", [name for name, _ in both][: len(spreads)], numbers)


def waits_sheet(found: History, groups: Groups) -> Sheet:
    """Waits by group. Those since submission stand behind, where they differ."""
    total = float(found.entire.core_h[0])
    numbers = [
        Cells("jobs", [f"{many:,}" for many in groups.jobs.tolist()]),
        Cells("core h", [_share(part, total) for part in groups.core_h.tolist()], "%"),
    ]
    wait = [
        _durations("mean", groups.wait.mean_s),
        _durations("median", groups.wait.median_s),
        _durations("90 %", groups.wait.p90_s),
        _durations("99 %", groups.wait.p99_s, rank=1 * differ(found)),
        _durations("longest", groups.wait.longest_s),
    ]
    since = [
        _durations("since submit: mean", groups.since_submit.mean_s),
        _durations("since submit: median", groups.since_submit.median_s, rank=2),
        _durations("since submit: 90 %", groups.since_submit.p90_s, rank=2),
        _durations("since submit: 99 %", groups.since_submit.p99_s, rank=2),
        _durations("since submit: longest", groups.since_submit.longest_s, rank=2),
    ]
    notes = [meaning(name) for name in groups.names] if groups.by == "reason" else ()
    both = [*wait, *since] if differ(found) else wait
    return Sheet(f"Waits by {groups.by}", groups.by, groups.names, [*numbers, *both], notes)


def limits_sheet(use: LimitUse) -> Sheet:
    """How limits fitted, by group."""
    numbers = [Cells("jobs with a limit", [f"{many:,}" for many in use.jobs.tolist()])]
    for at, mark in enumerate(USED):
        head = "median" if mark == 0.5 else f"{100 * mark:.0f} %"
        numbers.append(Cells(head, [_share(value, 1) for value in use.used[:, at].tolist()], "% used"))
    pairs = zip(use.used_core_h.tolist(), use.asked_core_h.tolist(), strict=True)
    numbers.append(Cells("core h", [_share(a, b) for a, b in pairs], "% used"))
    pairs = zip(use.reached.tolist(), use.jobs.tolist(), strict=True)
    numbers.append(Cells("reached the limit", [_share(a, b) for a, b in pairs], "%"))
    if use.without.any():
        numbers.append(Cells("jobs without", [f"{many:,}" for many in use.without.tolist()], rank=2))
    return Sheet(f"Limits by {use.by}", use.by, use.names, numbers)


def over_time_sheet(found: History, most: int) -> Sheet:
    """What was in use and what waited, in a few lines."""
    line = found.over_time.coarser(most)
    first = int(line.edges[0])
    begins = [written(found.epoch, one, found.zone) or duration(one - first) for one in line.edges[:-1].tolist()]
    numbers = [
        Cells(resource(name), [_share(value, 1) for value in used.tolist()], "%") for name, used in line.busy.items()
    ]
    numbers.append(Cells("jobs waiting", [f"{many:,.1f}" for many in line.queue_jobs.tolist()]))
    numbers.append(Cells("backlog", [f"{many:,.0f}" for many in line.backlog_core_h.tolist()], "core hours"))
    return Sheet("Over time", "from", begins, numbers)


def longest_sheet(found: History) -> Sheet:
    """The jobs that waited longest."""
    jobs = found.longest
    numbers = [
        _durations("since submit" if differ(found) else "wait", [one.since_submit_s for one in jobs]),
        *([_durations("wait", [one.wait_s for one in jobs])] if differ(found) else ()),
        _durations("ran", [one.runtime_s for one in jobs]),
        Cells("cores", [f"{one.cores:,}" for one in jobs]),
        Cells("user", [one.user for one in jobs]),
        Cells("reason", [one.reason for one in jobs], exact=[meaning(one.reason) for one in jobs]),
        Cells("submitted", [one.submitted for one in jobs], rank=1),
        Cells("partition", [one.partition for one in jobs], rank=2),
    ]
    kept = [one for one in numbers if any(one.cells)]
    return Sheet("The longest waits", "job", [f"{one.job}" for one in jobs], kept)


def _durations(head: str, seconds: Iterable[float], rank: int = 0) -> Cells:
    values = [float(one) for one in seconds]
    short = [short_duration(one) if isfinite(one) else DASH for one in values]
    return Cells(head, short, "", [f"{one:,.0f} s" if isfinite(one) else "" for one in values], rank)


def _share(part: float, whole: float) -> str:
    """A share in percent, without the sign; a dash of nothing."""
    return f"{100 * part / whole:.1f}" if whole > 0 and isfinite(part) else DASH


def step(at: int) -> str:
    """A step of the histogram of used shares, in words."""
    return "reached it" if at == STEPS else f"{100 * at // STEPS}–{100 * (at + 1) // STEPS} %"


def frames(found: History) -> dict[str, pl.DataFrame]:
    """All of it as polars frames, by the name of the file that each makes. Columns end with their unit."""
    import polars as pl

    line = found.over_time
    return {
        "waits": pl.DataFrame(list(_waits((found.entire, *found.by, *((found.week,) if found.week else ()))))),
        "limits": pl.DataFrame(list(_limits(found.limits)), schema=None if found.limits else {"by": pl.String}),
        "limit_use": pl.DataFrame({
            "share_of_limit": [step(at) for at in range(STEPS + 1)],
            "jobs": found.limit_jobs, "core_h": found.limit_core_h,
        }),
        "over_time": pl.DataFrame({
            "begin": [written(found.epoch, at, found.zone) for at in line.edges[:-1].tolist()],
            "begin_s": line.edges[:-1], "end_s": line.edges[1:],
            **{f"{name}_used_share": values for name, values in line.busy.items()},
            "queue_jobs": line.queue_jobs, "backlog_core_h": line.backlog_core_h,
        }),
        "longest": pl.DataFrame([{**vars(one), "meaning": meaning(one.reason)} for one in found.longest]),
        "set_aside": pl.DataFrame(
            {"jobs": list(found.set_aside.values()), "why": list(found.set_aside)},
            schema={"jobs": pl.Int64, "why": pl.String},
        ),
    }  # fmt: skip


def _waits(groups: Iterable[Groups]) -> Iterable[dict[str, Any]]:
    for one in groups:
        for at, name in enumerate(one.names):
            row: dict[str, Any] = {"by": one.by, "group": name, "jobs": int(one.jobs[at])}
            row["core_h"] = float(one.core_h[at])
            for kind, spread in (("wait", one.wait), ("since_submit", one.since_submit)):
                row |= {f"{kind}_{key}": _number(values[at]) for key, values in vars(spread).items()}
            yield row


def _limits(uses: Iterable[LimitUse]) -> Iterable[dict[str, Any]]:
    for one in uses:
        for at, name in enumerate(one.names):
            shares = {f"used_p{100 * mark:.0f}": _number(one.used[at, place]) for place, mark in enumerate(USED)}
            yield {
                "by": one.by, "group": name, "jobs": int(one.jobs[at]), "without": int(one.without[at]),
                "reached": int(one.reached[at]), **shares,
                "asked_core_h": float(one.asked_core_h[at]), "used_core_h": float(one.used_core_h[at]),
            }  # fmt: skip


def _number(value: float) -> float | None:
    return float(value) if isfinite(value) else None
