"""The page on Fig. 1 of DBF: when jobs arrive, by hour of the day and by day of the week."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, tzinfo
from typing import TYPE_CHECKING, Final, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import numpy as np
import numpy.typing as npt

from dovetail.errors import DovetailError
from dovetail.io.read import read_workload
from dovetail.model.workload import Workload
from dovetail.studies.papers.arrivals import (
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
from dovetail.studies.papers.page import (
    LOGS,
    Page,
    Runs,
    Statement,
    facts_of,
    filled,
    grid,
    held,
    made_with,
    picture,
    stated,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NAME: Final = "dbf-figure-1"
SHARP: Final = 2 / 3
"""What "a sharp decrease" is taken to mean here, as the paper gives no number: to two thirds, or less."""
ALIKE: Final = 0.8
"""The correlation from which patterns are called similar here."""
T = TypeVar("T")
DAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Source:
    """A log of the figure, and what the paper prints about it."""

    file: str
    jobs: int = 0
    """Jobs of its experiments (its Table 2, Total); 0: not in the paper."""
    anomalies: tuple[int, ...] = ()
    """Its Table 1: run time or processors missing, more processors than asked for, over the limit, over by a minute."""
    zone: str = ""
    """Where the log's header names no time zone: that of the site."""


SOURCES: Final[Mapping[str, Source]] = {
    "SDSC-BLUE": Source("SDSC-BLUE-2000-4.2-cln", 157_604, (10_770, 19_516, 458, 23_434, 8_115)),
    "SDSC-DS": Source("SDSC-DS-2004-2.1-cln", 64_715, (11_176, 0, 0, 10_658, 1_043)),
    "HPC2N": Source("HPC2N-2002-2.2-cln", 202_871, (0, 0, 729, 14_817, 6_170)),
    "ALCF-Mira-2018": Source("ALCF-Mira-2018", zone="America/Chicago"),
}
PAPERS: Final = tuple(name for name, source in SOURCES.items() if source.jobs)


def zone_of(log: Workload, source: Source) -> ZoneInfo:
    """The time zone of a log's site: its header's TimeZoneString, else what is known of the site."""
    name = source.zone or next(iter(log.header.get("TimeZoneString", ())), "")
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise DovetailError(f"no time zone {name!r} on this machine: pip install tzdata") from error


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


def anomalies(log: Workload) -> tuple[int, ...]:
    """The numbers of the paper's Table 1."""
    allocated, over = log.get("allocated"), log.runtime - log.limit
    rules = (log.runtime <= 0, allocated <= 0, allocated > log.size, over > 0, over > 60)
    return tuple(int(rule.sum()) for rule in rules)


@dataclass(frozen=True)
class Measured:
    """All that the page says about a log."""

    log: Workload
    zone: tzinfo
    every: Arrivals
    """Of all jobs of the log."""
    some: Arrivals
    """Of the jobs of the paper's experiments."""
    kept: int
    """How many those are."""


def measure(name: str, log: Workload, zone: tzinfo) -> Measured:
    """A log's arrivals by the clocks of a zone."""
    at, keep = submitted_at(log), in_experiments(name, log)
    return Measured(log, zone, arrivals(at, zone), arrivals(at[keep], zone), int(keep.sum()))


def page(runs: Runs) -> Page:
    """The page and its picture. Nothing is replayed: a log is read, and its submits are counted."""
    found = {}
    for name, source in SOURCES.items():
        log = read_workload(runs.log(f"archive/{source.file}.swf.gz"))
        found[name] = measure(name, log, zone_of(log, source))
    said = _statements([found[name] for name in PAPERS])
    parts = [
        _summary(said),
        f"![Arrivals by hour of the day and by day of the week, drawn by Dovetail]({NAME}.svg)",
        _sources(found),
        f"## What the paper says, in numbers\n\n{_READING}\n\n{stated('DBF, Sections 5 and 6.3', said)}",
        _jobs(found),
        _zones(found),
    ]
    drawn = picture(lambda: _draw(found), "fig1", "Arrivals by hour of the day and by day of the week, four logs")
    return Page(filled(parts), held(said), facts_of(said), {f"{NAME}.svg": drawn})


_READING: Final = """
Numbers are of all jobs of the logs of SDSC-BLUE, SDSC-DS and HPC2N, in this order; in brackets, of the jobs of
the paper's experiments. "Sharp" is taken to mean to two thirds or less, "similar" a correlation of 0.8 or more:
the paper gives no numbers.
"""


def _summary(said: Sequence[Statement]) -> str:
    return f"""
# Fig. 1 of DBF, recomputed

Fig. 1 of "DBF" (N'takpé and Suter, Don't Hurry Be Happy: a Deadline-Based Backfilling Approach, JSSPP 2017)
shows how many jobs are submitted per hour of the day, with the hours above the daily average in grey and the
average as a line, for four logs; the text goes on to the days of the week. Three of the logs are here.
ANL-Intrepid could not be had; ALCF-Mira-2018, another and later machine of the same site, stands beside them
and is not compared.

The printed curves are a picture and not data: they cannot be compared number by number. What the text says
about them can. {held(said)}.
"""


def _sources(found: Mapping[str, Measured]) -> str:
    thanks = [f"{name}: {one.log.provenance.acknowledge}" for name, one in found.items() if name in PAPERS]
    return f"""
## Made with

{made_with(NAME)}

{LOGS} Thanks for them go to {"; ".join(thanks)}. ALCF-Mira-2018 is not of the archive.
"""


def _statements(logs: Sequence[Measured]) -> list[Statement]:
    """What the text says, for the paper's logs in their order; the last is HPC2N."""
    both = [[one.every for one in logs], [one.some for one in logs]]
    return [*_peaks(both), *_lulls(both)]


def _peaks(both: Sequence[Sequence[Arrivals]]) -> list[Statement]:
    """What it says of the busy hours."""
    alike = [float(np.corrcoef([a.hourly for a in of])[~np.eye(len(of), dtype=bool)].min()) for of in both]
    periods = [[spans(a.peak) for a in of] for of in both]
    inside = [[sum(hour in a.peak for hour in BUSINESS) for a in of] for of in both]
    share = [[a.rate(BUSINESS) * len(BUSINESS) / (24 * a.mean) for a in of] for of in both]
    begins = [[longest(a.peak)[0] for a in of] for of in both]
    return [
        Statement(
            "a similar job arrival pattern for all workloads",
            f"least correlation of the hourly rates of two logs: {alike[0]:.2f} ({alike[1]:.2f})",
            _share([value >= ALIKE for value in alike]),
        ),
        Statement(
            "with a period during which the arrival rate is greater than the daily average",
            _shown(periods, str),
            _share([" and " not in text for of in periods for text in of]),
        ),
        Statement(
            "roughly business hours, from 9 to 18 o'clock, for all workloads",
            f"of these nine hours above the average: {_shown(inside, str)}; their share of the jobs:"
            f" {_shown(share, _pct)}",
            _share([hours == len(BUSINESS) for of in inside for hours in of]),
        ),
        Statement(
            "for SDSC-BLUE and SDSC-DS it starts earlier",
            f"begins at {_shown(begins, str)} o'clock",
            _share([begin < of[-1] for of in begins for begin in of[:-1]]),
        ),
    ]


def _lulls(both: Sequence[Sequence[Arrivals]]) -> list[Statement]:
    """What it says of evenings, weekends and nights."""
    after = [[a.rate(EVENING) / a.rate(BUSINESS) for a in of] for of in both]
    weekend = [[float(a.daily[5:].mean() / a.daily[:5].mean()) for a in of] for of in both]
    nights = [[a.quiet_nights for a in of] for of in both]
    low = [[longest([hour for hour in range(24) if hour not in a.peak])[1] for a in of] for of in both]
    return [
        Statement(
            "a sharp decrease of the arrival rate after business hours",
            f"18 to 24 o'clock against 9 to 18: {_shown(after, _pct)}",
            _share([value <= SHARP for of in after for value in of]),
        ),
        Statement(
            "a sharp decrease of the number of submissions over the weekend",
            f"a day of Saturday and Sunday against one of Monday to Friday: {_shown(weekend, _pct)}",
            _share([value <= SHARP for of in weekend for value in of]),
        ),
        Statement(
            "large periods of lower load every night",
            f"hours in a row below the average: {_shown(low, str)}; nights (0 to 6 o'clock) below it:"
            f" {_shown(nights, _pct)}",
            "yes" if all(value == 1 for of in nights for value in of) else "in part",
        ),
    ]


def _shown(both: Sequence[Sequence[T]], how: Callable[[T], str]) -> str:
    return ", ".join(f"{how(every)} ({how(some)})" for every, some in zip(*both, strict=True))


def _pct(value: float) -> str:
    return f"{100 * value:.1f} %"


def _share(holds: Sequence[bool]) -> str:
    return "yes" if all(holds) else "in part" if any(holds) else "no"


def _jobs(found: Mapping[str, Measured]) -> str:
    head = ["log", "lines", "run time missing", "processors missing", "more processors than asked for"]
    head += ["over the limit", "by a minute", "jobs of the experiments", "as printed"]
    rows = []
    for name in PAPERS:
        one, source = found[name], SOURCES[name]
        ours = anomalies(one.log)
        same = ours == source.anomalies and one.kept == source.jobs
        numbers = [f"{n:,}" for n in (len(one.log), *ours, one.kept)]
        rows.append([name, *numbers, "yes" if same else "**no**"])
    return f"""
## Which jobs

The paper does not say whether the figure has all jobs of the cleaned logs or those of its experiments. Both are
drawn (solid lines and bars; dashed lines and squares). Its Tables 1 and 2 let the second be found: jobs with a
run time and processors; of SDSC-BLUE not those of the queue `interactive`; of SDSC-DS only those of the
batch partition of 8-way nodes.

{grid(head, rows)}
"""


def _zones(found: Mapping[str, Measured]) -> str:
    ways: dict[str, Callable[[tzinfo], tzinfo]] = {"its winter time all year": winter, "UTC": lambda zone: UTC}
    others = {
        way: {name: measure(name, one.log, zone(one.zone)) for name, one in found.items()} for way, zone in ways.items()
    }
    rows = [
        [name, str(one.zone), *(spans(each[name].every.peak) for each in (found, *others.values()))]
        for name, one in found.items()
    ]
    head = ["log", "time zone", "with its summer time", *ways]
    said = {way: _statements([each[name] for name in PAPERS]) for way, each in (("", found), *others.items())}
    changes = [
        [way, one.text, one.ours, f"{one.verdict} (above: {here.verdict})"]
        for way in ways
        for here, one in zip(said[""], said[way], strict=True)
        if one.verdict != here.verdict
    ]
    mira = found["ALCF-Mira-2018"]
    moved = arrivals(submitted_at(mira.log) - 5 * HOUR, mira.zone)
    return f"""
## Which hours

A log counts seconds from its header's UnixStartTime, which is UTC; TimeZoneString names the zone of the site.
Hours and weekdays here are those of a clock on the wall there, summer time included. An hour of the day counts
as often as it occurs between the first submit and the last. The header's TimeZone, a fixed offset, would ignore
summer time. The paper does not say what it did. The hours above the average would be

{grid(head, rows)}

and these statements would fare otherwise:

{grid(["clocks", "statement", "ours", "holds"], changes)}

ALCF-Mira-2018 names no zone; Chicago's is that of its site. Its hours then seem late by about five, which is the
distance of Chicago from UTC in summer: its clock may have been shifted twice before it was published (moved back
by that, its hours would be {spans(moved.peak)}). Nothing here rests on it.
"""


def _draw(found: Mapping[str, Measured]) -> Figure:
    """One row per log: hours of the day at the left, days of the week at the right."""
    from dovetail.reports.style import figure

    made = figure(640, 660)
    axes = made.subplots(len(found), 2, sharex="col", width_ratios=(2, 1))
    for row, (name, one) in enumerate(found.items()):
        by_hour, by_day = axes[row]
        by_hour.set_title(name if name in PAPERS else f"{name} (not in the paper)")
        _hours(by_hour, one, name in PAPERS)
        _week(by_day, one, name in PAPERS)
        by_hour.set_ylabel("jobs per hour")
        by_day.set_ylabel("jobs per day")
    axes[-1, 0].set_xlabel("hour of the day, local time")
    axes[-1, 0].set_xticks(range(0, 25, 3))
    axes[-1, 0].set_xlim(0, 24)
    axes[-1, 1].set_xlabel("day of the week")
    axes[-1, 1].set_xticks(range(7), DAYS)
    return made


def _hours(ax: Axes, one: Measured, papers: bool) -> None:
    from dovetail.reports.style import FAINT, INK, STROKES

    for hour in one.every.peak:
        ax.axvspan(hour, hour + 1, color=FAINT, alpha=0.6, linewidth=0)
    ax.stairs(one.every.hourly, range(25), baseline=None, color=INK, linewidth=1.4, label="all jobs of the log")
    if papers:
        line = STROKES[1].line
        ax.stairs(
            one.some.hourly, range(25), baseline=None, color=line["color"], linestyle=line["linestyle"],
            linewidth=1.2, label="jobs of the experiments",
        )  # fmt: skip
        ax.legend(loc="upper left", frameon=False, fontsize=7.5)
    ax.axhline(one.every.mean, color=INK, linewidth=0.8)
    ax.set_ylim(0)


def _week(ax: Axes, one: Measured, papers: bool) -> None:
    from dovetail.reports.style import GREY, INK, STROKES

    ax.bar(range(7), one.every.daily, color=GREY, width=0.7)
    if papers:
        ax.plot(range(7), one.some.daily, **{**STROKES[1].line, "linewidth": 0})
    ax.axhline(24 * one.every.mean, color=INK, linewidth=0.8)
    ax.set_ylim(0)
