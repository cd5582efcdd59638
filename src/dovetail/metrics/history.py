"""What happened, by a log alone: who waited for how long, how limits fitted run times, how busy the machine was.

No replay. Jobs count that ran and whose wait is recorded. A wait is from when the job could have started, as in a
replay. The wait since its submission is longer where it was held, or waited for another job (`not_before_s`).
docs/history.md says what each number is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.errors import SettingError
from dovetail.io.swf import header_count
from dovetail.io.table import guessed_size, most_in_use
from dovetail.metrics.over_time import OverTime, Places, over_time
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Workload
from dovetail.units import DAY_S, WEEK_S, duration, printable

NAMED: Final = ("partition", "queue", "account", "group", "user", "qos", "reason")
"""Columns of names by which jobs are parted."""
LIMITS_S: Final = (900, 3600, 4 * 3600, 12 * 3600, DAY_S, 2 * DAY_S, 7 * DAY_S)
"""The largest limit of each class; that of the last has no end."""
DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
HOURS: Final = tuple(f"{hour:02d}–{hour + 1:02d} h" for hour in range(24))
OTHERS: Final = "(others)"
UNKNOWN: Final = "(not known)"
NO_REASON: Final = "None"
"""What Slurm calls it: its turn had not come, or too little was free."""
MARKS: Final = (0.5, 0.9, 0.99)
"""The quantiles of waits."""
USED: Final = (0.1, 0.5, 0.9)
"""The quantiles of the used share of limits."""
STEPS: Final = 20
"""Equal parts of a limit, in the histogram of used shares; one more is for what reached it."""
_LAST: Final = 253_402_300_799
"""The last second of the year 9999."""


@dataclass(frozen=True)
class Spread:
    """Durations of some groups of jobs: an entry for each; nan where it has no job."""

    mean_s: Floats
    median_s: Floats
    p90_s: Floats
    p99_s: Floats
    longest_s: Floats


@dataclass(frozen=True)
class Groups:
    """Jobs parted by one thing: an entry for each group."""

    by: str
    names: tuple[str, ...]
    jobs: Ints
    core_h: Floats
    """Cores times run time."""
    wait: Spread
    """From when jobs could have started."""
    since_submit: Spread


@dataclass(frozen=True)
class LimitUse:
    """How limits fitted run times: an entry for each group."""

    by: str
    names: tuple[str, ...]
    jobs: Ints
    """With a limit."""
    without: Ints
    used: Floats
    """Run time / limit: a row for each group, with the quantiles USED."""
    reached: Ints
    """Jobs that ran for as long as their limit, or longer."""
    asked_core_h: Floats
    """Cores times limit."""
    used_core_h: Floats
    """Cores times run time of these jobs, up to the limit."""


@dataclass(frozen=True)
class LongWait:
    """One job that waited for long."""

    job: int
    user: str
    partition: str
    cores: int
    submitted: str
    """On the clock of the zone; empty where the log does not say when it began."""
    wait_s: int
    since_submit_s: int
    runtime_s: int
    reason: str


@dataclass(frozen=True)
class History:
    """What a log says of what happened. Names in it are foreign text that is safe to print."""

    name: str
    processors: int
    epoch: int
    """Second 0 of the log, in seconds since 1970; 0: it does not say."""
    zone: str
    """Of all hours and days."""
    since: str
    """When the first job was submitted, and..."""
    until: str
    """...when the last one ended; empty where the log does not say when it began."""
    span_s: int
    """From the one to the other."""
    entire: Groups
    """All jobs."""
    by: tuple[Groups, ...]
    week: Groups | None
    """By day of the week and hour of submission: 168 groups, those of Monday first; None: not known, or
    less than a week."""
    limits: tuple[LimitUse, ...]
    """Of all jobs, then by partition and the like."""
    limit_jobs: Ints
    """Jobs by the share of their limit that they used: STEPS equal parts, and those that reached it."""
    limit_core_h: Floats
    """The core hours of these."""
    over_time: OverTime
    longest: tuple[LongWait, ...]
    """Those that waited longest since their submission."""
    set_aside: Mapping[str, int]
    """What is not counted, by reason: on reading, and here."""
    guesses: tuple[str, ...]
    not_known: tuple[str, ...]
    """What the log does not say, and what that means."""


@dataclass(frozen=True)
class _Parts:
    """One way to part jobs: the group of each."""

    by: str
    names: tuple[str, ...]
    of: Ints


def history_of(
    log: Workload, zone: str = "UTC", cluster: Cluster | None = None, places: Places | None = None, top: int = 10,
    bins: int = 200,
) -> History:  # fmt: skip
    """`zone`: of hours and days. `cluster`: the machine, with its resources. `places`: on which nodes jobs ran. `top`:
    how many names are told apart, and how many jobs that waited long. `bins`: of times."""
    left = (log.get("wait") < 0) & (log.get("leaves_s") >= 0)
    known = ((log.get("wait") >= 0) & (log.runtime >= 0) & (log.size > 0)) | left
    log = log.take(known, "no recorded wait, run time or size")
    ran = log.take(log.get("wait") >= 0, "left the queue before it started")
    if not len(ran):
        gone = "; ".join(f"{many:,}: {why}" for why, many in ran.set_aside.counts().items())
        raise SettingError(f"{log.name}: no job whose wait and run time are recorded ({gone or 'it is empty'})")
    processors = cluster.processors if cluster is not None else log.processors
    guesses = []
    if processors < 1:
        processors = most_in_use(ran.columns)
        guesses.append(guessed_size(processors))
    core_h = ran.size / 3600 * ran.runtime
    waits = _Waits(ran, core_h)
    whole = _Parts("all", ("all jobs",), np.zeros(len(ran), np.int64))
    ends = ran.submit + ran["wait"] + ran.runtime
    since, until = int(log.submit[0]), int(ends.max())
    epoch = _epoch(log, until)
    hours = _hours(epoch, ran.submit, zone)
    parts = [one for one in _parts(ran, hours, core_h, top) if len(one.names) > 1]
    owners = [one for one in parts if one.by in ("partition", "queue", "user")]
    limited = bool((ran.limit > 0).any())
    return History(
        name=printable(log.name),
        processors=processors,
        epoch=epoch,
        zone=zone,
        since=written(epoch, since, zone),
        until=written(epoch, until, zone),
        span_s=until - since,
        entire=waits.of(whole),
        by=tuple(waits.of(one) for one in parts),
        week=None if hours is None or until - since < WEEK_S else waits.of(_week(hours)),
        limits=tuple(_limit_use(one, ran) for one in (whole, *owners)) if limited else (),
        limit_jobs=_limit_steps(ran, np.ones(len(ran))).astype(np.int64),
        limit_core_h=_limit_steps(ran, core_h),
        over_time=over_time(log, processors, bins, cluster, places),
        longest=tuple(_longest(ran, epoch, zone, top)),
        set_aside=ran.set_aside.counts(),
        guesses=tuple(guesses),
        not_known=tuple(_not_known(ran, epoch, places)),
    )


def _not_known(ran: Workload, epoch: int, places: Places | None) -> Iterator[str]:
    """What the log does not say, and what that means."""
    if not ran.held_s.any():
        yield "when jobs could start, if later than they were submitted: both waits are the same"
    if "reason" not in ran:
        yield "why jobs waited"
    if not epoch:
        yield "when it began: there are no hours and days of the week"
    if not (ran.limit > 0).any():
        yield "limits"
    if places is None:
        yield "on which nodes jobs ran, or there are too many to count"


# How jobs are parted.


def _parts(ran: Workload, hours: Ints | None, core_h: Floats, top: int) -> Iterator[_Parts]:
    for column in NAMED:
        if column in ran and bool((ran[column] >= 0).any()):
            yield _named(ran, column, core_h, top)
    powers = 1 << np.arange(int(ran.size.max()).bit_length() + 1)
    least = [1, *(powers[:-1] + 1).tolist()]
    sizes = [f"{a:,}" if a == b else f"{a:,}–{b:,}" for a, b in zip(least, powers.tolist(), strict=True)]
    yield _in_order("cores", sizes, np.searchsorted(powers, ran.size))
    if bool((ran.limit > 0).any()):
        within = [f"up to {duration(limit)}" for limit in LIMITS_S]
        limits = [*within, f"over {duration(LIMITS_S[-1])}", "no limit"]
        yield _in_order("limit", limits, np.where(ran.limit > 0, np.searchsorted(LIMITS_S, ran.limit), len(limits) - 1))
    if hours is not None:
        yield _in_order("hour of submission", HOURS, hours % 24)
        yield _in_order("day of submission", DAYS, hours // 24)


def _in_order(by: str, names: list[str] | tuple[str, ...], of: Ints) -> _Parts:
    """Classes in their own order, but for those without a job."""
    there = np.flatnonzero(np.bincount(of, minlength=len(names)))
    place = np.zeros(len(names), np.int64)
    place[there] = np.arange(len(there))
    return _Parts(by, tuple(names[at] for at in there), place[of])


def _named(ran: Workload, column: str, core_h: Floats, top: int) -> _Parts:
    """By name: those with the most core hours first, the last of many together."""
    number, of = np.unique(np.maximum(ran[column], -1), return_inverse=True)
    order = np.argsort(-np.bincount(of, weights=core_h), kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    unknown = NO_REASON if column == "reason" else UNKNOWN
    kept = order[: top if len(order) > top + 1 else None].tolist()
    names = [printable(ran.called(column, int(number[at])) or unknown) for at in kept]
    if len(kept) < len(order):
        names.append(OTHERS)
    return _Parts(column, tuple(names), np.minimum(rank, len(names) - 1)[of])


def _hours(epoch: int, submit: Ints, zone: str) -> Ints | None:
    """The hour of the week of each submission, from Monday 0 h on; None where the log does not say when it began."""
    if not epoch:
        return None
    return np.asarray((clock_s(epoch + submit, zone) // 3600 + 3 * 24) % 168, np.int64)  # 1970 began with a Thursday


def _week(hours: Ints) -> _Parts:
    return _Parts("hour of the week", tuple(f"{day} {hour}" for day in DAYS for hour in HOURS), hours)


def _epoch(log: Workload, until: int) -> int:
    """Second 0 of a log, in seconds since 1970; 0 where it does not say that, or no calendar has its end."""
    epoch = header_count(log.header, "UnixStartTime")
    return epoch if 0 < epoch <= _LAST - until else 0


def clock_s(instants: Ints, zone: str) -> Ints:
    """Seconds since 1970 as what the clock of a zone shows then, in seconds since it showed the first of 1970."""
    import polars as pl

    shown = pl.from_epoch(pl.Series(instants), time_unit="s").dt.replace_time_zone("UTC").dt.convert_time_zone(zone)
    return shown.dt.replace_time_zone(None).dt.epoch("s").to_numpy()


def written(epoch: int, instant: int, zone: str) -> str:
    """An instant of a log on the clock of a zone; empty where it is not known when it began."""
    if not epoch:
        return ""
    return f"{datetime.fromtimestamp(int(clock_s(np.array([epoch + instant]), zone)[0]), UTC):%Y-%m-%d %H:%M}"


# What is counted of each part.


class _Waits:
    """Both waits of all jobs, in order of their length once for all ways to part them."""

    def __init__(self, ran: Workload, core_h: Floats) -> None:
        since_submit = ran["wait"]
        self._core_h = core_h
        self._both = [since_submit - np.minimum(ran.held_s, since_submit), since_submit]
        self._order = [np.argsort(waits, kind="stable") for waits in self._both]

    def of(self, parts: _Parts) -> Groups:
        groups = len(parts.names)
        jobs = np.bincount(parts.of, minlength=groups)
        wait, since = (
            _spread(waits, order, parts.of, jobs) for waits, order in zip(self._both, self._order, strict=True)
        )
        return Groups(parts.by, parts.names, jobs, _sums(parts.of, self._core_h, groups), wait, since)


def _sums(of: Ints, weight: Floats, groups: int) -> Floats:
    return np.bincount(of, weights=weight, minlength=groups).astype(np.float64, copy=False)


def _spread(waits: Ints, order: Ints, of: Ints, jobs: Ints) -> Spread:
    total = np.bincount(of, weights=waits, minlength=len(jobs))
    mean = np.divide(total, jobs, out=np.full(len(jobs), np.nan), where=jobs > 0)
    found = quantiles(waits, order, of, jobs, (*MARKS, 1.0))
    return Spread(mean, *(found[:, at] for at in range(len(MARKS) + 1)))


def quantiles(values: Ints | Floats, order: Ints, of: Ints, members: Ints, marks: tuple[float, ...]) -> Floats:
    """Quantiles of values by group, between neighbours by linear interpolation; nan where a group has none. `order`: in
    which the values rise; `of`: the group of each; `members`: how many each group has."""
    grouped = of[order].astype(np.uint16 if len(members) < 1 << 16 else np.int64)  # of 16 bits it is much faster
    rising = values[order[np.argsort(grouped, kind="stable")]]
    found = np.full((len(members), len(marks)), np.nan)
    first, there = np.cumsum(members) - members, members > 0
    for at, mark in enumerate(marks):
        place = mark * (members[there] - 1)
        low = np.floor(place).astype(np.int64)
        a, b = (rising[first[there] + np.minimum(one, members[there] - 1)].astype(np.float64) for one in (low, low + 1))
        found[there, at] = a + (b - a) * (place - low)
    return found


def _limit_use(parts: _Parts, ran: Workload) -> LimitUse:
    has = ran.limit > 0
    groups, of = len(parts.names), parts.of[has]
    limit, runtime, size = ran.limit[has], ran.runtime[has], ran.size[has]
    used, jobs = runtime / limit, np.bincount(of, minlength=groups)
    return LimitUse(
        parts.by, parts.names, jobs,
        np.bincount(parts.of[~has], minlength=groups),
        quantiles(used, np.argsort(used, kind="stable"), of, jobs, USED),
        np.bincount(of[runtime >= limit], minlength=groups),
        _sums(of, size / 3600 * limit, groups),
        _sums(of, size / 3600 * np.minimum(runtime, limit), groups),
    )  # fmt: skip


def _limit_steps(ran: Workload, weight: Floats) -> Floats:
    has = ran.limit > 0
    step = np.minimum(STEPS * ran.runtime[has] // ran.limit[has], STEPS)
    return _sums(step, weight[has], STEPS + 1)


def _longest(ran: Workload, epoch: int, zone: str, top: int) -> Iterator[LongWait]:
    since_submit = ran["wait"]
    for at in np.argsort(-since_submit, kind="stable")[:top].tolist():
        yield LongWait(
            job=int(ran["id"][at]),
            user=printable(ran.called("user", int(ran.get("user")[at]))),
            partition=printable(ran.called("partition", int(ran.get("partition")[at]))),
            cores=int(ran.size[at]),
            submitted=written(epoch, int(ran.submit[at]), zone),
            wait_s=int(since_submit[at] - min(ran.held_s[at], since_submit[at])),
            since_submit_s=int(since_submit[at]),
            runtime_s=int(ran.runtime[at]),
            reason=printable(ran.called("reason", int(ran.get("reason")[at]))),
        )
