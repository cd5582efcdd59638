"""Fig. 1 of DBF: when jobs arrive, by three clocks; all jobs of a log, and those of the paper's experiments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, tzinfo
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from dovetail.errors import DovetailError
from dovetail.io.read import read_workload
from dovetail.model.workload import Workload
from dovetail.studies.task import Cell
from reproductions.claims import Judged, verdict
from reproductions.dbf_figure_1.arrivals import (
    BUSINESS,
    EVENING,
    HOUR,
    Arrivals,
    arrivals,
    longest,
    spans,
    submitted_at,
    winter,
)
from reproductions.running import Work
from reproductions.runs import Points, Runs
from reproductions.values import Content, Key, NotRunError, Values

FILES: Final = {
    "SDSC-BLUE": "archive/SDSC-BLUE-2000-4.2-cln.swf.gz", "SDSC-DS": "archive/SDSC-DS-2004-2.1-cln.swf.gz",
    "HPC2N": "archive/HPC2N-2002-2.2-cln.swf.gz", "ALCF-Mira-2018": "archive/ALCF-Mira-2018.swf.gz",
}  # fmt: skip
PAPERS: Final = ("SDSC-BLUE", "SDSC-DS", "HPC2N")
ZONES: Final = {
    "SDSC-BLUE": "US/Pacific", "SDSC-DS": "US/Pacific", "HPC2N": "Europe/Stockholm", "ALCF-Mira-2018": "America/Chicago"
}  # fmt: skip
"""The TimeZoneString of each log's header; Mira has none, and this is that of its site."""
LOCAL, WINTER, MOVED = "with its summer time", "its winter time all year", "moved back by five hours"
CLOCKS: Final[Mapping[str, Callable[[tzinfo], tzinfo]]] = {
    LOCAL: lambda zone: zone, WINTER: winter, "UTC": lambda zone: UTC
}  # fmt: skip
JOBS: Final = ("all jobs", "experiments")
ANOMALIES: Final = {
    "no_runtime": "run time missing", "no_processors": "processors missing",
    "more_processors": "more processors than asked for", "over_limit": "over the limit",
    "over_by_a_minute": "over it by a minute",
}  # fmt: skip
"""The columns of the paper's Table 1."""
SHARP: Final = 2 / 3
"""What "a sharp decrease" is taken to mean here, as the paper gives no number: to two thirds, or less."""
ALIKE: Final = 0.8
"""The correlation from which patterns are called similar here."""


def cells(work: Work) -> list[Cell]:
    """Each log by each clock, all jobs and those of the experiments; and Mira as if its clock had been shifted."""
    made = [Cell(log, clock, "all", "arrivals", jobs, 0) for log in FILES for clock in CLOCKS for jobs in JOBS]
    return [*made, Cell("ALCF-Mira-2018", MOVED, "all", "arrivals", "all jobs", 0)]


def solve(cell: Cell, work: Work) -> dict[str, float | Points]:
    """Count the submits of a log."""
    log = read_workload(work.log(FILES[cell.trace]))
    at, zone = submitted_at(log), zone_of(cell.trace, log)
    if cell.scenario == MOVED:
        at = at - 5 * HOUR
    else:
        zone = CLOCKS[cell.scenario](zone)
    if cell.estimate == "experiments":
        at = at[in_experiments(cell.trace, log)]
    found = arrivals(at, zone)
    return {
        "lines": len(log), "jobs": len(at), "mean": found.mean, "quiet_nights": found.quiet_nights, **anomalies(log),
        "hourly": list(enumerate(found.hourly.tolist())), "daily": list(enumerate(found.daily.tolist())),
    }  # fmt: skip


def zone_of(name: str, log: Workload) -> tzinfo:
    """The time zone of a log's site."""
    named = next(iter(log.header.get("TimeZoneString", ())), ZONES[name])
    if named != ZONES[name]:
        raise DovetailError(f"the header of {name} names the time zone {named}, not {ZONES[name]}")
    try:
        return ZoneInfo(named)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise DovetailError(f"no time zone {named!r} on this machine: pip install tzdata") from error


def in_experiments(name: str, log: Workload) -> npt.NDArray[np.bool_]:
    """The jobs of the paper's experiments: without those that have no run time or no processors, nor interactive ones.

    Which these are it does not say; what is here gives the numbers of its Table 2.
    """
    keep = (log.runtime > 0) & (log.get("allocated") > 0)
    if name == "SDSC-BLUE":
        keep &= log.get("queue") != 0  # "interactive"
    if name == "SDSC-DS":
        keep &= log.get("partition") == 2  # the nodes of 8 processors that took batch jobs
    return np.asarray(keep, np.bool_)


def anomalies(log: Workload) -> dict[str, float]:
    """The numbers of the paper's Table 1."""
    allocated, over = log.get("allocated"), log.runtime - log.limit
    rules = (log.runtime <= 0, allocated <= 0, allocated > log.size, over > 0, over > 60)
    return {name: int(rule.sum()) for name, rule in zip(ANOMALIES, rules, strict=True)}


def arrivals_of(runs: Runs, log: str, clock: str = LOCAL, jobs: str = "all jobs") -> Arrivals | None:
    """What was counted; None if it was not."""
    run = runs.get(log, "arrivals", jobs, scenario=clock)
    if run is None:
        return None
    hourly, daily = (np.array([y for _, y in run.curves[name]]) for name in ("hourly", "daily"))
    return Arrivals(hourly, daily, run.numbers["mean"], run.numbers["quiet_nights"])


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """The hours above the average and what the text says of them, by each clock; the numbers of Tables 1 and 2."""
    found: dict[Key, Content] = {}
    for log in FILES:
        for clock in (*CLOCKS, MOVED):
            if one := arrivals_of(runs, log, clock):
                found["hours", log, "time zone"], found["hours", log, clock] = ZONES[log], spans(one.peak)
        every, some = (runs.get(log, "arrivals", jobs, scenario=LOCAL) for jobs in JOBS)
        if log in PAPERS and every and some:
            found["jobs", log, "lines"] = every.numbers["lines"]
            found |= {("jobs", log, words): every.numbers[key] for key, words in ANOMALIES.items()}
            found["jobs", log, "jobs of the experiments"] = some.numbers["jobs"]
    for clock in CLOCKS:
        both = [[arrivals_of(runs, log, clock, jobs) for log in PAPERS] for jobs in JOBS]
        known = [[one for one in of if one] for of in both]
        if all(len(of) == len(PAPERS) for of in known):
            for says, made in {**_peaks(known), **_lulls(known)}.items():
                found[clock, says, "ours"], found[clock, says, "holds"] = made.ours, made.holds
    return found


Both = Sequence[Sequence[Arrivals]]
"""All jobs of the paper's logs in their order, the last HPC2N; then the same for the jobs of the experiments."""


def _peaks(both: Both) -> dict[str, Judged]:
    """What the text says of the busy hours."""
    alike = [float(np.corrcoef([a.hourly for a in of])[~np.eye(len(of), dtype=bool)].min()) for of in both]
    periods = [[spans(a.peak) for a in of] for of in both]
    inside = [[sum(hour in a.peak for hour in BUSINESS) for a in of] for of in both]
    share = [[a.rate(BUSINESS) * len(BUSINESS) / (24 * a.mean) for a in of] for of in both]
    starts = [[longest(a.peak)[0] for a in of] for of in both]
    return {
        "a similar job arrival pattern for all workloads": Judged(
            f"least correlation of the hourly rates of two logs: {alike[0]:.2f} ({alike[1]:.2f})",
            verdict(one >= ALIKE for one in alike),
        ),
        "with a period during which the arrival rate is greater than the daily average": Judged(
            _shown(periods), verdict(" and " not in text for of in periods for text in of)
        ),
        "roughly business hours, from 9 to 18 o'clock, for all workloads": Judged(
            f"of these nine hours above the average: {_shown(inside)}; their share of the jobs: {_shown(share, _pct)}",
            verdict(hours == len(BUSINESS) for of in inside for hours in of),
        ),
        "for SDSC-BLUE and SDSC-DS it starts earlier": Judged(
            f"begins at {_shown(starts)} o'clock", verdict(start < of[-1] for of in starts for start in of[:-1])
        ),
    }


def _lulls(both: Both) -> dict[str, Judged]:
    """What it says of evenings, weekends and nights."""
    after = [[a.rate(EVENING) / a.rate(BUSINESS) for a in of] for of in both]
    weekend = [[float(a.daily[5:].mean() / a.daily[:5].mean()) for a in of] for of in both]
    nights = [[a.quiet_nights for a in of] for of in both]
    low = [[longest([hour for hour in range(24) if hour not in a.peak])[1] for a in of] for of in both]
    return {
        "a sharp decrease of the arrival rate after business hours": Judged(
            f"18 to 24 o'clock against 9 to 18: {_shown(after, _pct)}",
            verdict(one <= SHARP for of in after for one in of),
        ),
        "a sharp decrease of the number of submissions over the weekend": Judged(
            f"a day of Saturday and Sunday against one of Monday to Friday: {_shown(weekend, _pct)}",
            verdict(one <= SHARP for of in weekend for one in of),
        ),
        "large periods of lower load every night": Judged(
            f"hours in a row below the average: {_shown(low)}; nights (0 to 6 o'clock) below it:"
            f" {_shown(nights, _pct)}",
            "yes" if all(one == 1 for of in nights for one in of) else "in part",
        ),
    }


def _shown(both: Sequence[Sequence[Any]], how: Callable[[Any], str] = str) -> str:
    return ", ".join(f"{how(every)} ({how(some)})" for every, some in zip(*both, strict=True))


def _pct(number: float) -> str:
    return f"{100 * number:.1f} %"


def told(values: Values, says: str, clock: str = LOCAL) -> Judged:
    """A statement of the text by one of the clocks."""
    found = [values.ours.get((clock, says, column)) for column in ("ours", "holds")]
    if found[0] is None or found[1] is None:
        raise NotRunError(says)
    return Judged(str(found[0].content), str(found[1].content))


def only_where_other(values: Values, table: str, row: str, column: str) -> str:
    """Our number, and in brackets the printed one where it is another."""
    ours, printed = values.number(table, row, column), values.printed_number(table, row, column)
    if ours is None:
        return "-"
    return f"{ours:,.0f}" if printed in (None, ours) else f"**{ours:,.0f}** ({printed:,.0f})"
