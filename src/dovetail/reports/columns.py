"""Numbers and labels as people read them: units, digits, changes in percent, names that fit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Final

from dovetail.metrics.catalog import Metric
from dovetail.units import printable

DASH: Final = "–"
"""Shown where there is nothing to measure."""


_UNITS: Final = ((2 * 86400, "d", 86400), (3600, "h", 3600), (60, "min", 60))


@dataclass(frozen=True)
class Scale:
    """One unit and number of digits for all values of a column, so that they can be compared at a glance."""

    unit: str
    divisor: float
    digits: int

    def text(self, value: float) -> str:
        return f"{value / self.divisor:,.{self.digits}f}" if isfinite(value) else DASH


def scale(metric: Metric, values: Iterable[float]) -> Scale:
    """The unit in which the values of a metric read best, by their median."""
    found = sorted(abs(value) for value in values if isfinite(value))
    middle = found[len(found) // 2] if found else 0.0
    unit, divisor = metric.unit, 1.0
    if metric.kind == "share":
        return Scale("%", 0.01, 1)
    if metric.kind == "seconds":
        unit, divisor = next(((name, float(s)) for least, name, s in _UNITS if middle >= least), ("s", 1.0))
    digits = 2 - floor(log10(middle / divisor)) if middle else 0
    return Scale(unit, divisor, min(max(digits, 0), 2))


def exactly(metric: Metric, value: float) -> str:
    """A value with its unit and more digits than a table has room for."""
    if not isfinite(value):
        return "nothing to measure"
    if metric.kind == "seconds":
        return f"{value:,.1f} s"
    return f"{value:,.4f}" if metric.kind == "ratio" else f"{100 * value:.3f} %"


def change(base: float, other: float) -> float:
    """Relative change from base to other: -0.1 is a tenth less. nan where there is nothing to compare with."""
    return other / base - 1 if isfinite(base) and isfinite(other) and base > 0 else float("nan")


def percent(share: float) -> str:
    """A share as percent, with a real minus sign: −13.6 %, +240 %."""
    if not isfinite(share):
        return DASH
    digits = 1 if abs(share) < 0.9995 else 0
    text = f"{100 * share:+,.{digits}f}"
    return "0.0 %" if text in ("+0.0", "-0.0") else f"{text} %".replace("-", "−")


def interval(low: float, high: float) -> str:
    """An interval of relative changes: [−18.1, −9.0]."""
    return f"[{percent(low).removesuffix(' %')}, {percent(high).removesuffix(' %')}]"


def named(text: str, most: int = 120) -> str:
    """Foreign text for a page: control characters out, and where it is too long the middle."""
    if len(text) > most:
        tail = (most - 1) // 2
        text = f"{text[: most - 1 - tail]}…{text[-tail:]}"
    return printable(text, most)


_SETTINGS: Final = re.compile(r"([\w.-]+):(\w+=[^,]*(?:,\w+=[^,]*)*)")
_PLAIN: Final = ("objective=", "order=")
"""Settings whose values say what they are."""


def _parted(policy: str) -> tuple[str, list[str]]:
    """A policy's name without its settings, and those."""
    found = _SETTINGS.fullmatch(policy)
    return (found[1], found[2].split(",")) if found else (policy, [])


def shared(policies: Sequence[str]) -> list[str]:
    """The settings that labels leave out, as `plan:decodes=50`: those that all policies of one name have."""
    groups: dict[str, list[list[str]]] = {}
    for name, settings in map(_parted, policies):
        groups.setdefault(name, []).append(settings)
    found = {
        name: [one for one in members[0] if all(one in other for other in members)]
        for name, members in groups.items()
        if len(members) > 1
    }
    return [f"{name}:{one}" for name, settings in found.items() for one in settings]


def labels(policies: Sequence[str], most: int = 34) -> list[str]:
    """Names for pictures, all of them different: `plan:objective=af+3*p2sf,decodes=50` is `plan:af+3*p2sf`.

    What all policies of one name share is left out (`shared`). What is still too long loses its middle. Where that
    made two alike, all are numbered.
    """
    gone, short = set(shared(policies)), []
    for name, settings in map(_parted, policies):
        kept = [one for one in settings if f"{name}:{one}" not in gone]
        said = ",".join(one.partition("=")[2] if one.startswith(_PLAIN) else one for one in kept)
        short.append(f"{name}:{said}" if said else name)
    if len(set(short)) < len(set(policies)):
        short = list(policies)
    short = [named(text, most) for text in short]
    return short if len(set(short)) == len(short) else [f"{at}. {text}" for at, text in enumerate(short, 1)]
