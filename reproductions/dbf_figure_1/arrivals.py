"""When jobs arrive, by the clock on the wall of their site: per hour of the day and per day of the week."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.errors import DovetailError, InputError
from dovetail.io.swf import header_count
from dovetail.model.workload import Workload

HOUR: Final = 3600
DAY: Final = 24 * HOUR
BUSINESS: Final = range(9, 18)
"""The hours of "9AM to 6PM"."""
EVENING: Final = range(18, 24)
NIGHT: Final = range(0, 6)


def local(at: Ints, zone: tzinfo) -> Ints:
    """Seconds of Unix time as a clock on the wall shows them: days since 1970, and the rest since midnight."""
    hours, of = np.unique(at // HOUR, return_inverse=True)  # clocks are changed at full hours
    shifts = [datetime.fromtimestamp(int(hour) * HOUR, zone).utcoffset() for hour in hours]
    return at + np.array([(shift or timedelta()).total_seconds() for shift in shifts], np.int64)[of]


def winter(zone: tzinfo) -> timezone:
    """A zone's winter time all year, as the TimeZone of a log's header has it."""
    return timezone(zone.utcoffset(datetime(2001, 1, 1)) or timedelta())


@dataclass(frozen=True)
class Arrivals:
    """How many jobs arrive, at local time."""

    hourly: Floats
    """Per hour, by hour of the day."""
    daily: Floats
    """Per day, by day of the week, Monday first."""
    mean: float
    """Per hour, over the whole log."""
    quiet_nights: float
    """Share of the nights (0 to 6 o'clock) with fewer arrivals per hour than the mean."""

    @property
    def peak(self) -> list[int]:
        """The hours with more arrivals than the mean: the grey area of the figure."""
        return [hour for hour in range(24) if self.hourly[hour] > self.mean]

    def rate(self, hours: Sequence[int]) -> float:
        """Arrivals per hour in these hours of the day."""
        return float(self.hourly[list(hours)].mean())


def arrivals(at: Ints, zone: tzinfo) -> Arrivals:
    """Of jobs submitted at these seconds (Unix time, rising). An hour of the day counts as often as the log has it."""
    if len(at) < 2 or at[-1] - at[0] < 7 * DAY:
        raise DovetailError("a log of less than a week has no days of the week to compare")
    slots = np.arange(at[0] // HOUR, at[-1] // HOUR + 1) * HOUR
    here, every = local(at, zone), local(slots, zone)
    hourly = np.bincount(here // HOUR % 24, minlength=24) / np.bincount(every // HOUR % 24, minlength=24)
    weekday, all_weekdays = ((seconds // DAY + 3) % 7 for seconds in (here, every))  # 1 January 1970: Thursday
    daily = 24 * np.bincount(weekday, minlength=7) / np.bincount(all_weekdays, minlength=7)
    mean = len(at) / len(slots)
    first = every[0] // DAY
    nights = np.bincount((here // DAY - first)[here // HOUR % 24 < 6], minlength=int(every[-1] // DAY - first) + 1)
    whole = nights[1:-1]  # the log may begin and end within a night
    return Arrivals(hourly, daily, mean, float(np.mean(whole < mean * len(NIGHT))))


def submitted_at(log: Workload) -> Ints:
    """When jobs were submitted, in Unix time: the header says when second 0 was."""
    begin = header_count(log.header, "UnixStartTime")
    if not begin:
        raise InputError(log.provenance.source, 0, "the header has no UnixStartTime: its hours are unknown")
    return log.submit + begin


def periods(hours: Sequence[int]) -> list[tuple[int, int]]:
    """Hours of the day in a row: where each row begins, and how many they are. A row may go over midnight."""
    if len(hours) == 24:
        return [(0, 24)]
    begins = [hour for hour in hours if (hour - 1) % 24 not in hours]
    return [(begin, next(n for n in range(1, 24) if (begin + n) % 24 not in hours)) for begin in begins]


def longest(hours: Sequence[int]) -> tuple[int, int]:
    """The longest of those rows."""
    return max(periods(hours), key=lambda row: row[1])


def spans(hours: Sequence[int]) -> str:
    """Those rows in words: `8 to 18`, `9 to 19 and 20 to 23`."""
    return " and ".join(f"{begin} to {(begin + n) % 24 or 24}" for begin, n in periods(hours))
