"""The metrics that a page shows, with their words and units, and numbers as people read them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Final, Literal

from dovetail.units import printable

DASH: Final = "–"
"""Shown where there is nothing to measure."""


@dataclass(frozen=True)
class Column:
    """One metric of a page."""

    key: str
    """Its name in docs/metrics.md."""
    head: str
    """Over a column or a panel."""
    words: str
    """In a sentence, after `the`."""
    meaning: str
    kind: Literal["seconds", "ratio", "share"] = "seconds"
    more_is_better: bool = False


COLUMNS: Final = (
    Column("mean_wait_s", "mean wait", "mean wait", "From arrival to start, averaged over jobs."),
    Column(
        "regular_mean_wait_s", "wait without a deadline", "mean wait of jobs without a deadline",
        "The mean wait, of the jobs that have no deadline.",
    ),
    Column(
        "wait_p95_s", "95 % waited up to", "95th percentile of the wait",
        "The wait that 19 of 20 jobs stayed below: what users may count on.",
    ),
    Column("max_wait_s", "longest wait", "longest wait", "That of one job, the unluckiest. It says nothing of others."),
    Column(
        "bsld", "BSLD", "mean bounded slowdown",
        "How many times longer jobs took, waiting included, than running alone would have; run times below 10 s count"
        " as 10 s. Small jobs rule it.",
        "ratio",
    ),
    Column(
        "af_s", "AF", "mean response",
        "Response: from arrival to end, averaged over jobs. The mean wait plus the mean run time.",
    ),
    Column(
        "awf_s", "AWF", "area-weighted response AWF",
        "Response weighted by area (processors times run time): how early computation gets done, no matter whose it is."
        " Large jobs rule it.",
    ),
    Column(
        "p2sf_s", "P2SF", "unfairness measure P2SF",
        "Response of each piece of computation, with the long ones weighted up by their square: it grows where some"
        " wait much longer than others.",
    ),
    Column(
        "utilization", "utilisation", "utilisation",
        "Share of the processors that ran jobs, from the first arrival to the last end. More is better here.",
        "share", more_is_better=True,
    ),
    Column(
        "loss_of_capacity", "loss of capacity", "loss of capacity",
        "Share of the processors that stood idle while waiting jobs asked for them.",
        "share",
    ),
    Column(
        "energy_cost", "bill", "electricity bill",
        "What the energy of jobs, idle processors and cooling costs, in the currency of the site.", "ratio",
    ),
    Column("co2_kg", "CO2, kg", "CO2 in kg", "What making that energy let into the air.", "ratio"),
)  # fmt: skip
MAIN: Final = tuple(column for column in COLUMNS if column.key in ("mean_wait_s", "bsld", "awf_s", "p2sf_s"))
"""The few that an overview of several cases shows."""

_UNITS: Final = ((2 * 86400, "d", 86400), (3600, "h", 3600), (60, "min", 60))


@dataclass(frozen=True)
class Scale:
    """One unit and number of digits for all values of a column, so that they can be compared at a glance."""

    unit: str
    divisor: float
    digits: int

    def text(self, value: float) -> str:
        return f"{value / self.divisor:,.{self.digits}f}" if isfinite(value) else DASH


def scale(column: Column, values: Iterable[float]) -> Scale:
    """The unit in which the values of a column read best, by their median."""
    found = sorted(abs(value) for value in values if isfinite(value))
    middle = found[len(found) // 2] if found else 0.0
    unit, divisor = "", 1.0
    if column.kind == "share":
        return Scale("%", 0.01, 1)
    if column.kind == "seconds":
        unit, divisor = next(((name, float(s)) for least, name, s in _UNITS if middle >= least), ("s", 1.0))
    digits = 2 - floor(log10(middle / divisor)) if middle else 0
    return Scale(unit, divisor, min(max(digits, 0), 2))


def exactly(column: Column, value: float) -> str:
    """A value with its unit and more digits than a table has room for."""
    if not isfinite(value):
        return "nothing to measure"
    if column.kind == "seconds":
        return f"{value:,.1f} s"
    return f"{value:,.4f}" if column.kind == "ratio" else f"{100 * value:.3f} %"


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
