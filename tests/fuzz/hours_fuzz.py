"""Mutated hours (prices, weather) against their reader: tables, Open-Meteo's JSON, EPW. An hour that cannot be read
refuses its file; what is accepted is judged by a second reading of each value."""

from __future__ import annotations

import csv
import io
import json
import random
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from dovetail.io.series import read_hours
from tests.fuzz.common import NASTY, Tally, asked, worse_bytes, worse_fields, written

ZERO = datetime(2021, 1, 1, tzinfo=UTC)
SCALE = 1_000_000


def when(at: datetime, rng: random.Random) -> str:
    """The same instant, as people write it."""
    zone = timezone(timedelta(hours=rng.randrange(-11, 13)))
    there = at.astimezone(zone)
    plain = at.replace(tzinfo=None)
    return rng.choice(
        (plain.isoformat(), plain.isoformat(" "), f"{plain:%Y-%m-%d %H:%M}", there.isoformat(), f"{plain:%Y%m%dT%H%M}",
         f"{at:%Y-%m-%dT%H:%M:%SZ}", f" {plain.isoformat()} ", f"{plain.isoformat()}.75")
    )  # fmt: skip


def amount(rng: random.Random) -> str:
    """A number, as people write it."""
    value = rng.randrange(-(10**8), 10**8) / 10**4
    return rng.choice(
        (f"{value}", f"{value:.6f}", f"{value:e}", f" {value} ", f"{value:+}", f"{round(value)}", "1e9", "0")
    )


def one(rng: random.Random, folder: Path) -> Tally:
    kind = rng.choice((table, table, weather, typical_year))
    return kind(rng, folder)


def _judged(path: Path, hours: list[tuple[int, str]], step: int, good: bool, mutated: int) -> Tally:
    """Read a file that holds these instants and values. `good`: it has nothing wrong; else anything may come of it
    that is no crash, and as many hours as it has."""
    series, refused = asked(lambda: read_hours(path, "EUR", "", SCALE))
    if series is None:
        assert not good, f"refused: {refused}"
        return Tally(1, len(hours), mutated, refused=len(hours), refused_files=1)
    assert (series.values <= 10**9 * SCALE).all()
    assert (series.values >= -(10**9) * SCALE).all()
    if good:
        assert (series.begin, series.step_s) == (0, step if len(hours) > 1 else 3600)
        assert len(series.values) == len(hours)
        for found, (_, text) in zip(series.values.tolist(), hours, strict=True):
            exact = Fraction(Decimal(text.strip())) * SCALE
            assert abs(found - exact) <= Fraction(1, 2) + abs(exact) / 2**50, f"{found} for {text}"
    kept = len(series.values)
    return Tally(1, kept, mutated, kept)


def table(rng: random.Random, folder: Path) -> Tally:
    """A date and a number in each line, all in other notations; in half of the files some of them worse."""
    step, many = rng.choice((60, 900, 3600, 86_400)), rng.choice((1, 2, 24, 500, 2_000))
    rows = [[when(ZERO + timedelta(seconds=step * at), rng), "x", amount(rng)] for at in range(many)]
    hours = [(step * at, row[2]) for at, row in enumerate(rows)]
    head, good, mutated = ["when", "zone", "EUR"], True, many
    if rng.random() < 0.5:
        good = False
        for at in rng.sample(range(many), min(many, rng.choice((0, 1, 2, 20)))):
            way = rng.randrange(6)
            if way <= 2 and rows[at]:
                rows[at][rng.choice((0, len(rows[at]) - 1))] = rng.choice(NASTY)
            elif way == 3:
                rows[at] = worse_fields(rows[at], rng)
            elif way == 4:
                rows.insert(at, rows[at])
            else:
                other = rng.randrange(len(rows))
                rows[at], rows[other] = rows[other], rows[at]
        if rng.random() < 0.1:
            head = worse_fields(head, rng)
    out = io.StringIO()
    csv.writer(out, lineterminator=rng.choice(("\n", "\r\n"))).writerows([head, *rows])
    data = rng.choice((b"", b"\xef\xbb\xbf")) + out.getvalue().encode("utf-8", "surrogatepass")
    if not good and rng.random() < 0.3:
        data = worse_bytes(data, rng)
    return _judged(written(folder, "hours.csv", data), hours, step, good, mutated)


def weather(rng: random.Random, folder: Path) -> Tally:
    """As Open-Meteo gives it."""
    many = rng.choice((1, 24, 500))
    texts = [amount(rng) for _ in range(many)]
    times = [when(ZERO + timedelta(hours=at), rng) for at in range(many)]
    values: list[object] = [rng.choice((text, float(text))) for text in texts]
    hours = [(3600 * at, str(value)) for at, value in enumerate(values)]
    found: object = {"hourly": {"time": times, "temperature_2m": values}, "latitude": 37.2}
    good = rng.random() < 0.5
    if not good:
        from tests.fuzz.parquet_fuzz import worse_json

        found = worse_json(found, rng)
    try:
        data = json.dumps(found).encode()
    except RecursionError:
        data = b'{"hourly": {"time": ' + b"[" * 5_000
    if not good and rng.random() < 0.3:
        data = worse_bytes(data, rng)
    return _judged(written(folder, "hours.json", data), hours, 3600, good, 1 if not good else many)


def typical_year(rng: random.Random, folder: Path) -> Tally:
    """EPW: eight lines of a header, then hours from 1 to 24 of days of a year of any number."""
    many = rng.choice((1, 24, 500))
    texts = [amount(rng) for _ in range(many)]
    rows = []
    for at, text in enumerate(texts):
        day = ZERO + timedelta(hours=at)
        rows.append([str(rng.randrange(1990, 2020)), str(day.month), str(day.day), str(day.hour + 1), "60", "x", text])
    good, mutated = rng.random() < 0.5, 0
    if not good:
        mutated = rng.randrange(1, 3)
        for _ in range(mutated):
            at = rng.randrange(many)
            rows[at] = worse_fields(rows[at], rng)
    out = io.StringIO()
    csv.writer(out).writerows([["LOCATION", "Espa\u00f1a"], *[["HEADER"]] * 7, *rows])
    data = out.getvalue().encode(rng.choice(("utf-8", "latin-1")), "replace")
    if not good and rng.random() < 0.3:
        data = worse_bytes(data, rng)
    hours = [(3600 * at, text) for at, text in enumerate(texts)]
    return _judged(written(folder, "year.epw", data), hours, 3600, good, mutated)
