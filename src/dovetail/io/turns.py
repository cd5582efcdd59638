"""Whose turn it is, from a TOML file (docs/shares.md has the form)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from dovetail.errors import InputError, SettingError
from dovetail.io.clusters import read_toml, shown
from dovetail.model.turns import MOST, OWNERS, Turns
from dovetail.names import unknown
from dovetail.units import MOST_SECONDS, parse_duration, printable

_KEYS: Final = ("by", "half_life", "every", "others", "shares", "priority", "members")


def read_turns(path: str | Path) -> Turns:
    """Read whose turn it is. InputError for whatever is not as docs/shares.md says."""
    try:
        return _turns(read_toml(Path(path).expanduser(), "shares"), str(path))
    except (ValueError, SettingError, RuntimeError) as error:
        raise InputError(path, 0, str(error)) from error


def _turns(table: Mapping[str, Any], source: str) -> Turns:
    for key in table:
        if key not in _KEYS:
            raise ValueError(unknown("key", printable(key), _KEYS))
    by = table.get("by")
    if by not in OWNERS:
        words = unknown("owner", printable(by), OWNERS) if isinstance(by, str) else f"one of {', '.join(OWNERS)}"
        raise ValueError(f"by = {shown(by)}: it says whose a job is: {words}")
    named = [key for key in ("shares", "priority") if key in table]
    if len(named) != 1 or not isinstance(table[named[0]], dict) or not table[named[0]]:
        raise ValueError("write one section, [shares] or [priority], with a number for each name")
    if named == ["priority"] and (set(table) & {"half_life", "every"}):
        raise ValueError("half_life and every are of shares: a priority does not depend on what was used")
    whole = named == ["shares"]
    values = tuple((name, _number(name, value, whole)) for name, value in table[named[0]].items())
    others = _number("others", table["others"], whole) if "others" in table else None
    how: dict[str, Any] = {
        f"{key}_s": _duration(key, table[key], key == "every") for key in ("half_life", "every") if key in table
    }
    if whole and not any(value for _, value in values) and not others:
        raise ValueError("nobody has shares: give at least one a number above 0")
    how |= {
        named[0]: values,
        "members": _members(table.get("members", {}), [name for name, _ in values]),
        "others": others,
        "source": source,
    }
    return Turns(by, **how)


def _members(table: Any, named: list[str]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Who is in each of those that are named."""
    if not isinstance(table, dict):
        raise ValueError(f"members = {shown(table)}: must be a section [members] with a list for each name")
    seen = set[str]()
    for name, members in table.items():
        if name not in named:
            raise ValueError(f"members: {unknown('name', printable(name), named)}")
        if not isinstance(members, list) or not all(type(one) in (str, int) for one in members):
            raise ValueError(f"members: {printable(name)} = {shown(members)}: must be a list of names or numbers")
        for one in map(str, members):
            if one in seen or (one in named and one != name):
                raise ValueError(f"members: {printable(one)!r} is named twice")
            seen.add(one)
    return tuple((name, tuple(map(str, members))) for name, members in table.items())


def _number(name: str, value: Any, whole: bool) -> Any:
    kinds = (int,) if whole else (int, float)
    if isinstance(value, bool) or not isinstance(value, kinds) or not 0 <= value <= MOST:
        kind, huge = "a whole number" if whole else "a number", isinstance(value, int) and abs(value) > MOST
        given = "" if huge else f" = {shown(value)}"  # a number may have more digits than can be written
        raise ValueError(f"{printable(name)}{given}: must be {kind} from 0 to {MOST:,}")
    return value


def _duration(key: str, value: Any, above: bool) -> int:
    seconds = parse_duration(value) if isinstance(value, str) else -1
    if not above <= seconds <= MOST_SECONDS:
        raise ValueError(f"{key} = {shown(value)}: must be a duration as in 7d, from {int(above)} s on")
    return seconds
