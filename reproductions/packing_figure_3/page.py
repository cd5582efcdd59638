"""Fig. 3 of Packing: which jobs carry the waiting on SDSC-SP2, small jobs or large ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Final

import numpy as np

from dovetail.arrays import Floats
from dovetail.metrics import Outcomes, awq_s, mean_wait_s, outcomes, wait_area_curve
from dovetail.metrics.exact import running_sum
from dovetail.model.schedule import Schedule
from reproductions.claims import NO, PART, YES, Judged, verdict
from reproductions.runs import Runs
from reproductions.values import Content, Key, Values

POLICIES: Final = {
    "SAF-JustBF": "list-saf", "EASY-SJBF": "easy-sjbf", "JustBF": "list-reg", "LAF-JustBF": "list-laf"
}  # fmt: skip
"""The lines of the figure: the paper's name of each policy, and ours."""
EDGES: Final = (0, 20, 40, 60, 80, 95, 100)
"""Of groups of jobs by their areas, in per cent of the jobs."""
POINTS: Final = 100
"""Places at which a curve is kept, by a linear and by a logarithmic scale each."""
STARVED_D: Final = 30
"""A wait that is called starving here: the papers name no number."""
UNITS: Final = {"_h": 3600, "_d": 86400}
"""Seconds, by how names end on the page."""


def measure(schedule: Schedule, _: Callable[[str], Schedule]) -> dict[str, Any]:
    """Waits by job area. CWA, the cumulative wait area, as the text has it (`by_size`: the sum of Q r over jobs with an
    area up to x) and as the authors' script draws it (`by_area`: the sum of Q r D)."""
    jobs = outcomes(schedule)
    order, curve, n = np.argsort(jobs.area, kind="stable"), wait_area_curve(jobs), len(jobs)
    last = np.searchsorted(jobs.area[order], curve.area, "right") - 1
    by_area, by_size = running_sum((jobs.area * jobs.wait)[order])[last], curve.wait_area
    small, large, rest = (
        Outcomes(jobs.size[at], jobs.runtime[at], jobs.wait[at])
        for at in (order[: n * 80 // 100], order[n * 95 // 100 :], order[n * 80 // 100 :])
    )
    groups = [(a, b, order[n * a // 100 : n * b // 100]) for a, b in pairwise(EDGES)]
    shares = {"share of jobs": 100 * curve.job_fraction, "share of areas": 100 * curve.area_fraction}
    lines = {"by area": by_area, "by size": by_size, **(shares if schedule.policy == "list-reg" else {})}
    top = float(curve.area[-1])
    at = np.unique(np.concatenate([np.linspace(0, top, POINTS), np.geomspace(1, top, POINTS)]).round())
    found: dict[str, Any] = {name: _points(at, curve.area, one) for name, one in lines.items()}
    for name, part in (("small", small), ("large", large), ("rest", rest)):
        found[f"{name}_area"] = float(part.area.sum() / jobs.area.sum())
        found |= {f"{name}_wait_s": mean_wait_s(part), f"{name}_longest_s": int(part.wait.max())}
        found[f"{name}_awq_s"] = awq_s(part)
    for name, one in (("by_area", by_area), ("by_size", by_size)):
        found |= {f"total_{name}": float(one[-1]), f"gap_{name}": _gap(one, curve.area_fraction)}
    return {**found, **{f"wait_{a}_{b}_s": float(jobs.wait[group].mean()) for a, b, group in groups}}


def _gap(curve: Floats, area_share: Floats) -> float:
    """How far a curve is from proportional to the job areas: its share less theirs where they differ most."""
    off = curve / curve[-1] - area_share
    return float(off[np.abs(off).argmax()])


def _points(at: Floats, x: Any, y: Floats) -> list[tuple[float, float]]:
    """A step function at some places, to six digits: more would not be seen."""
    here = np.searchsorted(x, at, "right") - 1
    found = np.where(here < 0, 0.0, y[here])
    return [(float(one), float(f"{value:.6g}")) for one, value in zip(at, found, strict=True)]


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """The metrics by policy, and the table of waits."""
    found: dict[Key, Content] = {}
    for name, policy in POLICIES.items():
        one = runs.get("SDSC-SP2", policy, "runtime")
        if one:
            found |= {("waiting", name, metric): number for metric, number in one.numbers.items()}
            for ending, unit_s in UNITS.items():
                for key in ("small_wait", "large_wait", "small_longest", "large_longest", "small_awq", "rest_awq"):
                    found["waiting", name, key + ending] = one.numbers[f"{key}_s"] / unit_s
            for a, b in pairwise(EDGES):
                group = "smallest 20 %" if a == 0 else "largest 5 %" if b == 100 else f"{a} to {b} %"
                found["mean wait", group, name] = one.numbers[f"wait_{a}_{b}_s"] / 3600
    laf, base = (runs.number("awf_s", "SDSC-SP2", policy, "runtime") for policy in ("list-laf", "list-reg"))
    if laf and base:
        found["AWF", "LAF-JustBF", "change"] = laf / base - 1
        found |= {("by area", part, "h"): found["waiting", "LAF-JustBF", f"{part}_awq_h"] for part in ("small", "rest")}
    return found


def proportional(values: Values) -> Judged:
    """How far the cumulative wait area is from proportional, under each policy."""
    gaps = {name: abs(values.need("waiting", name, "gap_by_area")) for name in POLICIES}
    ordered = sorted(gaps, key=lambda name: gaps[name])
    words = ", ".join(f"{100 * gaps[name]:.0f} points ({name})" for name in ordered)
    return Judged(f"their shares differ by up to {words}", verdict([ordered[0] == "JustBF"]))


def depleted(values: Values) -> Judged:
    """Whether small jobs wait half as long as under JustBF, or less."""
    ours, base = (values.need("waiting", name, "small_wait_h") for name in ("SAF-JustBF", "JustBF"))
    text = f"mean wait of the smallest 80 %: {ours:.1f} h (JustBF {base:.1f} h)"
    return Judged(text, verdict([ours < base / 2]))


def starved(values: Values, policy: str, part: str, of: str = "") -> Judged:
    """Whether jobs starve: some for a month, all for a day."""
    mean, longest = (values.need("waiting", policy, f"{part}_{name}") for name in ("wait_h", "longest_d"))
    base, other = (values.need("waiting", "JustBF", f"{part}_{name}") for name in ("wait_h", "longest_d"))
    beside = f" (JustBF {base:.1f} h)" if of else ""
    text = f"mean wait{of} {mean:.1f} h{beside}, the longest {longest:.1f} d (JustBF {other:.1f} d)"
    if part == "large":
        return Judged(text, verdict([longest > STARVED_D]))
    return Judged(text, NO if mean > 24 else PART if longest > STARVED_D else YES)
