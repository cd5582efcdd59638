"""Beside Table 1 of the dispatcher paper: as many jobs as it has, generated, with its two predictors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np

from dovetail.model.schedule import Schedule
from reproductions.claims import Judged, verdict
from reproductions.dispatch_tables import page as tables
from reproductions.dispatch_tables.page import TIMES_FASTER, against, called, decision_ms, less, published, shown
from reproductions.runs import Points, Runs
from reproductions.values import Content, Key, Values

__all__ = ["against", "published", "shown"]

WHOLE: Final = ("recorded mix", "reported mix")
LISTS: Final = ("easy:place=scarce", "sjf-easy:place=scarce", "spf-easy:place=scarce")
UNDER: Final = "sjf-easy:place=scarce"
"""The policy under which the estimates are looked at: under another, jobs end in another order."""


def measure(schedule: Schedule, beside: Callable[[str], Schedule]) -> dict[str, float | Points]:
    """As for dispatch-tables, and how good the estimates were: per cent that are the limit, mean error, per cent of the
    jobs that outlived theirs."""
    estimate, workload = schedule.said, schedule.workload
    return {
        **tables.measure(schedule, beside),
        "limit": 100 * float(np.mean(estimate == workload.limit)),
        "error": float(np.mean(np.abs(estimate - workload.runtime))),
        "outlived": 100 * float(np.mean(estimate < workload.runtime)),
    }


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """As for dispatch-tables; what similar jobs gain as a predictor; and the slowest decision of ours."""
    found = tables.values(runs, printed)
    for run in runs:
        if run.cell.policy == UNDER and run.cell.estimate != "runtime":
            row = f"{run.cell.trace}, {run.cell.estimate}"
            found |= {("predictors", row, key): run.numbers[key] for key in ("limit", "error", "outlived")}
    for trace in WHOLE:
        for policy in LISTS:
            ran = {estimate: runs.get(trace, policy, estimate) for estimate in ("similar", "recent", "limit")}
            similar, table, row = ran["similar"], f"similar: {trace}", called(policy)
            for estimate, one in ran.items():
                if one and similar:
                    found[table, row, estimate] = one.numbers["slowdown_mean"]
                    for end, number in zip((", less", ", from", ", to"), less(similar, one, "slowdown"), strict=True):
                        found[table, row, estimate + end] = number
        times = {f"{called(one.cell.policy)}, {one.cell.estimate}": decision_ms(one) for one in runs
                 if one.cell.trace == trace}  # fmt: skip
        if len(times) == 12:
            slowest = max(times, key=times.__getitem__)
            least = min(one for key, one in printed.items() if key[2] == tables.MS and isinstance(one, float))
            found["slowest", trace, "policy"], found["slowest", trace, "ms"] = slowest, times[slowest]
            found["slowest", trace, "times faster"] = least / times[slowest]
    return found


def similar(values: Values, trace: str, policy: str) -> Judged:
    """Whether the interval of the slowdown with similar jobs less that with others lies below 0."""
    table, row = f"similar: {trace}", f"`{policy}`"
    parts, below = [], True
    for other in ("recent", "limit"):
        mean, low, high = (values.need(table, row, f"{other}, {end}") for end in ("less", "from", "to"))
        parts.append(f"{mean:+.2f} [{low:+.2f}, {high:+.2f}] of {values.need(table, row, other):,.2f} with `{other}`")
        below = below and high < 0
    return Judged(f"{values.need(table, row, 'similar'):,.2f}; {', '.join(parts)}", verdict([below]))


def faster(values: Values, trace: str) -> Judged:
    """Whether the slowest decision of ours is much faster than the fastest published."""
    times, ms = (values.need("slowest", trace, column) for column in ("times faster", "ms"))
    policy = values.ours["slowest", trace, "policy"].content
    return Judged(f"at most {ms:.3f} ms ({policy}): {times:,.0f} times faster", verdict([times >= TIMES_FASTER]))
