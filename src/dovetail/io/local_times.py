"""Times that are written without a zone: of which second they are, also in the hour that a clock shows twice."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Final

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.errors import SettingError
from dovetail.units import printable

if TYPE_CHECKING:
    import polars as pl

TWICE: Final = "times in the hour that the clock shows twice: the first, unless other times of the job forbid it"
"""The step that counts them."""


def zone_named(name: str) -> str:
    """The name of a zone, if there is one. Polars has its own table of them: a machine may have none."""
    import polars as pl

    try:
        pl.Series([0]).cast(pl.Datetime("us")).dt.replace_time_zone(name)
    except pl.exceptions.PolarsError as error:
        raise SettingError(f"--tz: no time zone {printable(name)!r}; one is Europe/Berlin, another UTC") from error
    return name


def zone_of(header: Mapping[str, tuple[str, ...]]) -> str:
    """The zone of a log, if there is one of that name; else UTC."""
    for named in header.get("TimeZoneString", ()):
        try:
            return zone_named(named.strip())
        except SettingError:
            continue
    return "UTC"


def both_hours(given: pl.Series, zone: str) -> tuple[pl.Series, pl.Series]:
    """Seconds since 1970 of what a clock of the zone showed, and the later choice where it showed that twice; null
    where it never did, as it was put forward."""
    early, late = (
        given.dt.replace_time_zone(zone, ambiguous=which, non_existent="null").dt.epoch("s")
        for which in ("earliest", "latest")
    )
    return early, late


def instant(text: str, zone: str) -> int:
    """Seconds since 1970 of `2026-01-31T08:00` as a clock of a zone shows it, the first time if it does so twice, or
    with an offset of its own. ValueError if there is no such instant."""
    import polars as pl

    told = datetime.fromisoformat(text.strip())
    if told.tzinfo:
        return round(told.timestamp())
    (found,) = both_hours(pl.Series([told], dtype=pl.Datetime("ms")), zone)[0]
    if found is None:
        raise ValueError("no clock shows it")
    return int(found)


def which_hour(
    submit: Ints, start: Ints, end: Ints, late_start: Ints, late_end: Ints, lasted: Ints
) -> tuple[Ints, Ints]:
    """Start and end of jobs: the first choice, unless their order forbids it, or how long they lasted (-1: nobody
    says)."""
    known = (start != NEVER) & (end != NEVER)
    fits = known & (lasted >= 0) & (end - start != lasted) & (end - late_start == lasted)
    start = np.where((start < submit) & (submit != NEVER) | fits, late_start, start)
    end = np.where(known & (end < start + np.maximum(lasted, 0)), late_end, end)
    return start, end
