"""Turning numbers into words: every figure that a person reads carries its unit."""

from __future__ import annotations

import re

_DURATION = re.compile(r"^\s*(\d+(?:\.\d+)?)\s*([smhdw]?)\s*$")
MOST_SECONDS = 10**10
"""Longest duration that is read, some 317 years: as in a log."""
DAY_S = 86_400
WEEK_S = 604_800
_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": DAY_S, "w": WEEK_S}


def duration(seconds: float) -> str:
    """A duration in the largest two units that matter: 45 s, 12 m 3 s, 5 h 20 m, 3 d 4 h."""
    if seconds < 0:
        return "-" + duration(-seconds)
    if seconds < 60:
        return f"{seconds:.0f} s" if seconds == int(seconds) else f"{seconds:.1f} s"
    whole = round(seconds)
    for big, big_s, small, small_s in (("d", 86400, "h", 3600), ("h", 3600, "m", 60), ("m", 60, "s", 1)):
        if whole >= big_s:
            rest = (whole % big_s) // small_s
            return f"{whole // big_s} {big} {rest} {small}" if rest else f"{whole // big_s} {big}"
    raise AssertionError("unreachable: seconds >= 60")


def parse_duration(text: str) -> int:
    """Seconds from `90`, `90s`, `15m`, `2h`, `3d`, `1w`. Raises ValueError with the valid forms."""
    match = _DURATION.match(text)
    if not match:
        raise ValueError(f"{text!r} is not a duration: write seconds, or a number with s, m, h, d or w (36h)")
    seconds = float(match[1]) * _SECONDS[match[2]]
    if seconds > MOST_SECONDS:
        raise ValueError(f"{text!r} is longer than {MOST_SECONDS:,} s")
    return round(seconds)


def printable(text: str, most: int = 200) -> str:
    """Foreign text made safe for a terminal or a log: control characters out, length capped."""
    if len(text) <= most and text.isprintable():
        return text
    clean = "".join(c if c.isprintable() else "�" for c in text[: most + 1])
    return clean if len(clean) <= most else clean[: most - 1] + "…"
