"""Sites, from TOML files: power, cooling, prices, carbon and tariff of a machine (docs/energy.md has the form)."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from os.path import expandvars
from pathlib import Path
from typing import Any, Final

import numpy as np

from dovetail.energy.cooling import MOST_PUE, ONE, PLANTS, STEP_W, Cooling, constant, plant_table
from dovetail.energy.series import Hours, always
from dovetail.energy.site import MILLION, Off, Site
from dovetail.errors import InputError
from dovetail.io.clusters import read_toml, shown
from dovetail.io.series import content, read_hours
from dovetail.names import unknown
from dovetail.units import parse_duration, printable

MOST_W: Final = 1e6
"""Watts a processor."""
MOST_MONEY: Final = 1e6
MOST_KW: Final = 30_000
"""Kilowatts that a plant can cool: those of the largest machines. The table has a row for each 500 W."""
_SERIES: Final = {"temperature": 1000, "price": MILLION, "carbon": 1000}
"""Sections of hours, and by what their values are multiplied to be whole: degrees; money and kg for a MWh."""
_KEYS: Final = ("name", "currency", "busy_w", "idle_w", "tariff", "off", "cooling", *_SERIES)


def read_site(path: str | Path) -> Site:
    """Read a site. InputError for whatever is not as docs/energy.md says."""
    path = Path(path)
    table = read_toml(path, "a site")
    try:
        return _site(table, path)
    except ValueError as error:
        raise InputError(path, 0, str(error)) from error


def _site(table: Mapping[str, Any], path: Path) -> Site:
    _known(table, _KEYS, "")
    for key in ("off", "cooling", *_SERIES):
        if not isinstance(table.get(key, {}), dict):
            raise ValueError(f"{key} = {shown(table[key])}: write a section [{key}]")
    hours = {key: _hours(table.get(key, {}), key, scale, path) for key, scale in _SERIES.items() if key in table}
    return Site(
        name=_text(table, "name", path.stem),
        currency=_text(table, "currency", "EUR"),
        busy_mw=round(1000 * _number(table, "busy_w", 0, MOST_W)),
        idle_mw=round(1000 * _number(table, "idle_w", 0, MOST_W, 0.0)),
        tariff=round(MILLION * _number(table, "tariff", 0, MOST_MONEY, 0.0)),
        off=_off(table["off"]) if "off" in table else None,
        cooling=_cooling(table.get("cooling", {"pue": 1.0}), path),
        **{name: hours[key] for key, name in (("temperature", "temperature_mc"), *((x, x) for x in ("price", "carbon")))
           if key in hours},
    )  # fmt: skip


def _off(table: Mapping[str, Any]) -> Off:
    _known(table, ("after", "wake", "processors", "w"), "off.")
    after, wake = (_duration(table, key) for key in ("after", "wake"))
    processors = table.get("processors", 1)
    if not isinstance(processors, int) or not 1 <= processors <= MILLION:
        raise ValueError(f"off.processors = {shown(processors)}: must be a whole number from 1 to {MILLION:,}")
    return Off(after, wake, processors, round(1000 * _number(table, "w", 0, MOST_W, 0.0)))


def _duration(table: Mapping[str, Any], key: str) -> int:
    try:
        return parse_duration(_text(table, key, "0s"))
    except ValueError as error:
        raise ValueError(f"off.{key}: {error}") from error


def _cooling(table: Mapping[str, Any], path: Path) -> Cooling:
    _known(table, ("pue", "plant", "full_kw", "table"), "cooling.")
    if len([key for key in ("pue", "plant", "table") if key in table]) != 1:
        raise ValueError("[cooling] needs one of pue, plant and table")
    if "pue" in table:
        return constant(round(ONE * _number(table, "pue", 1, MOST_PUE / ONE)))
    if "plant" in table:
        name = _text(table, "plant", "")
        if name not in PLANTS:
            raise ValueError(f"cooling.plant = {printable(name)!r}: choose from {', '.join(PLANTS)}")
        full_w = round(1000 * _number(table, "full_kw", STEP_W / 1000, MOST_KW))
        return plant_table(name, PLANTS[name], full_w)
    return _read_table(_beside(_text(table, "table", ""), path))


def _read_table(path: Path) -> Cooling:
    """A table of PUEs: in the first line the degrees, one apart; then a line per load, 500 W apart, from 0."""
    try:
        rows = list(csv.reader(io.StringIO(content(path).decode("utf-8", "replace"))))
        if len(rows) < 2 or len(rows[0]) < 2:
            raise ValueError("it has no line of degrees, or no line below it")
        degrees = [int(cell) for cell in rows[0][1:]]
        loads = [int(row[0]) for row in rows[1:]]
        pue = np.array([[round(ONE * float(cell)) for cell in row[1:]] for row in rows[1:]], np.int64)
        if degrees != list(range(degrees[0], degrees[0] + len(degrees))) or pue.shape != (len(loads), len(degrees)):
            raise ValueError("the first line has the degrees Celsius, one apart, and each line a number for each")
        if loads != list(range(0, STEP_W * len(loads), STEP_W)):
            raise ValueError(f"the first column has the loads in watts: 0, {STEP_W}, {2 * STEP_W}, ...")
        if not bool(((pue >= ONE) & (pue <= MOST_PUE)).all()):
            raise ValueError(f"a PUE is from 1 to {MOST_PUE // ONE}")
    except (ValueError, IndexError, OverflowError, csv.Error) as error:
        raise InputError(path, 0, f"not a table of PUEs: {printable(str(error))}") from error
    return Cooling(path.stem, pue, degrees[0])


def _hours(table: Mapping[str, Any], name: str, scale: int, path: Path) -> Hours:
    _known(table, ("file", "column", "begins", "constant"), f"{name}.")
    if ("file" in table) == ("constant" in table):
        raise ValueError(f"[{name}] needs a file or a constant, and not both")
    if "constant" in table:
        return always(round(scale * _number(table, "constant", -MOST_MONEY, MOST_MONEY, where=f"{name}.")))
    texts = {key: _text(table, key, "") for key in ("file", "column")}
    begins = table.get("begins", "")
    return read_hours(_beside(texts["file"], path), texts["column"], str(begins), scale)


def _beside(text: str, path: Path) -> Path:
    """A file as the site's file names it: variables filled in, seen from its folder."""
    try:
        return path.parent / Path(expandvars(text)).expanduser()
    except RuntimeError as error:
        raise ValueError(f"{printable(text)}: {error}") from error


def _known(table: Mapping[str, Any], keys: tuple[str, ...], where: str) -> None:
    for key in table:
        if key not in keys:
            raise ValueError(f"{where}{unknown('key', printable(key), keys)}")


def _text(table: Mapping[str, Any], key: str, default: str) -> str:
    value = table.get(key, default)
    if not isinstance(value, str) or printable(value, 1000) != value:
        raise ValueError(f"{key} = {shown(value)}: must be a text")
    return value


def _number(
    table: Mapping[str, Any], key: str, least: float, most: float, default: float | None = None, where: str = ""
) -> float:
    value = table.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= most:
        raise ValueError(f"{where}{key} = {shown(value)}: must be a number from {least:,g} to {most:,g}")
    return float(value)
