"""Hourly prices, temperatures and carbon from files: tables with a date and a number in each line, weather as
Open-Meteo gives it (JSON) or of a typical year (EPW), packed or not, or in a tar file (`prices.tar.xz/DE/2021.csv`)."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import numpy as np

from dovetail.energy.series import HOUR_S, Hours
from dovetail.errors import InputError
from dovetail.io.streams import regular_file, unpacked
from dovetail.units import printable

MOST_BYTES: Final = 1 << 27
"""Bytes of a file, unpacked: a century of hours needs a fifth."""
MOST_VALUE: Final = 1e9
_EPW_TEMPERATURE: Final = 6
_EPW_HEADER: Final = 8
_COUNT: Final = re.compile(r"[0-9]{1,2}", re.ASCII)
_PACKED: Final = (".gz", ".xz", ".zst")
LEAST_STEP_S: Final = 60
_WEATHER: Final = "temperature_2m"


def read_hours(path: Path, column: str, begins: str, scale: int) -> Hours:
    """The series in a file, as whole numbers, each value times `scale`. `begins`: the date and hour in it that is
    second 0 of the trace; empty: its first. Every hour must be there, once; after the last comes the first."""
    rows = list(_rows(path, column))
    if not rows:
        raise InputError(path, 0, "has no hours")
    instants = [instant for instant, _, _ in rows]
    step_s = int(instants[1] - instants[0]) if len(rows) > 1 else HOUR_S
    for i in range(1, len(rows)):
        if instants[i] - instants[i - 1] != step_s or step_s < LEAST_STEP_S:
            raise InputError(
                path,
                rows[i][2],
                f"the steps are not of {step_s:,} s here: each must be there once, and last a minute or more",
            )
    values = np.array([round(value * scale) for _, value, _ in rows], np.int64)
    at = _instant(begins) if begins else instants[0]
    if at is None or not instants[0] <= at < instants[-1] + step_s:
        first, last = (datetime.fromtimestamp(x, UTC).strftime("%Y-%m-%dT%H:%M") for x in (instants[0], instants[-1]))
        raise InputError(path, 0, f"begins = {printable(begins)!r}: must be a date from {first} to {last}")
    return Hours(values, int(instants[0] - at), step_s)


def _rows(path: Path, column: str) -> Iterator[tuple[int, float, int]]:
    """Instant, value, line."""
    raw = content(path)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")  # EPW files have names of places in it
    kind = next((suffix for suffix in reversed(path.suffixes) if suffix not in _PACKED), "")
    try:
        if kind == ".json":
            yield from _of_json(path, text)
        elif kind == ".epw":
            yield from _of_epw(path, text)
        else:
            yield from _of_table(path, text, column)
    except csv.Error as error:
        raise InputError(path, 0, f"not a table: {printable(str(error))}") from error


def _of_table(path: Path, text: str, column: str) -> Iterator[tuple[int, float, int]]:
    lines = csv.reader(io.StringIO(text))
    head = next(lines, [])
    if column not in head:
        raise InputError(path, 1, f"has no column {printable(column)!r}; it has {printable(', '.join(head), 300)}")
    place = head.index(column)
    for row in lines:
        if not row:
            continue
        if len(row) <= place:
            raise InputError(path, lines.line_num, f"has {len(row)} fields, no {printable(column)!r}")
        yield _hour(path, lines.line_num, row[0], row[place])


def _of_json(path: Path, text: str) -> Iterator[tuple[int, float, int]]:
    try:
        hourly: Any = json.loads(text)["hourly"]
        pairs = list(zip(hourly["time"], hourly[_WEATHER], strict=True))
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(path, 0, f"is not hourly weather with a time and a {_WEATHER} each") from error
    for number, (when, value) in enumerate(pairs, 1):
        yield _hour(path, number, str(when), str(value))


def _of_epw(path: Path, text: str) -> Iterator[tuple[int, float, int]]:
    """Months of a typical year are of different years; all are put into one without a leap day."""
    for number, row in enumerate(csv.reader(io.StringIO(text)), 1):
        if number > _EPW_HEADER and row:
            if len(row) <= _EPW_TEMPERATURE or not all(_COUNT.fullmatch(part.strip()) for part in row[1:4]):
                raise InputError(path, number, "is not an hour of an EPW file")
            month, day, hour = (int(part) for part in row[1:4])
            yield _hour(path, number, f"2001-{month:02}-{day:02} {hour - 1:02}:00:00", row[_EPW_TEMPERATURE])


def _hour(path: Path, line: int, when: str, value: str) -> tuple[int, float, int]:
    instant = _instant(when)
    if instant is None:
        raise InputError(path, line, f"{printable(when)!r} is not a date and an hour, such as 2021-03-01 17:00")
    try:
        number = float(value)
    except ValueError:
        number = math.nan
    if not abs(number) <= MOST_VALUE:
        raise InputError(path, line, f"{printable(value)!r} is not a number of at most {MOST_VALUE:,.0f}")
    return instant, number, line


def _instant(text: str) -> int | None:
    """Seconds since 1970 of a date; one without a zone is taken as UTC, so that no hour is there twice."""
    try:
        found = datetime.fromisoformat(text.strip())
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp())
    except (ValueError, OverflowError):
        return None


def content(path: Path) -> bytes:
    """The bytes of a file, or of one inside a tar file."""
    try:
        archive = next((parent for parent in path.parents if ".tar" in parent.suffixes and parent.is_file()), path)
        with regular_file(archive).open("rb") as raw:
            found = b"".join(unpacked(raw, str(archive), MOST_BYTES))
    except OSError as error:
        raise InputError(path, 0, f"cannot be read: {error.strerror or error}") from error
    if archive == path:
        return found
    try:
        # All of it has been unpacked, so what is damaged has been found out; links are not followed.
        with tarfile.open(fileobj=io.BytesIO(found), mode="r:") as tar:
            member = tar.getmember(path.relative_to(archive).as_posix())
            stream = tar.extractfile(member) if member.isreg() else None
            if stream is None:
                raise KeyError
            return stream.read()
    except KeyError:
        raise InputError(path, 0, f"is not a file in {archive.name}") from None
    except (tarfile.TarError, OSError, ValueError, OverflowError) as error:
        raise InputError(archive, 0, f"not a tar file: {printable(str(error))}") from error
