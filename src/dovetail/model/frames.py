"""Jobs as a polars frame: one row per job, one column per fact, null where a fact is not known. docs/python.md has the
columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.arrays import Ints

if TYPE_CHECKING:
    import polars as pl

    from dovetail.model.schedule import Schedule
    from dovetail.model.workload import Workload

_NAMED: Final = ("group", "name", "queue", "partition")
"""Columns of names behind the user's, where the workload has them."""


def of_workload(workload: Workload) -> pl.DataFrame:
    """The jobs as they were submitted."""
    facts: dict[str, Any] = {**_who(workload), "submit": workload.submit}
    facts |= {"runtime_s": workload.runtime, "limit_s": workload.limit, **_rest(workload)}
    return _frame(facts)


def of_schedule(schedule: Schedule) -> pl.DataFrame:
    """The jobs as they ran."""
    workload, ran = schedule.workload, schedule.start >= 0
    facts: dict[str, Any] = {
        **_who(workload),
        "submit": workload.submit,
        "start": schedule.start,
        "end": np.where(ran, schedule.end, -1),
        "wait_s": np.where(ran, schedule.wait, -1),
        "runtime_s": workload.runtime,
        "limit_s": workload.limit,
        "arrive": schedule.arrive,
    }
    if len(schedule.said):
        facts["estimate_s"] = schedule.said
    facts["promised"] = schedule.promised_first
    if bool((schedule.deadline_at >= 0).any()):
        facts["deadline"] = schedule.deadline_at
    if len(schedule.accepted):
        facts["accepted"] = schedule.accepted
    if (placed := schedule.placement) is not None:
        facts["nodes"] = [placed.of(job).tolist() if there else None for job, there in enumerate(ran.tolist())]
    return _frame(facts | _rest(workload))


def _who(workload: Workload) -> dict[str, Any]:
    return {"id": workload["id"], "user": _names(workload, "user"), "size": workload.size}


def _rest(workload: Workload) -> dict[str, Any]:
    """What only some workloads know."""
    found: dict[str, Any] = {name: _names(workload, name) for name in _NAMED if name in workload}
    return {**found, "recorded_wait_s": workload["wait"]} if "wait" in workload else found


def _names(workload: Workload, column: str) -> list[str | None]:
    """What the users, queues, ... of all jobs are called: each number is looked up once."""
    numbers, place = np.unique(workload.get(column), return_inverse=True)
    names = [workload.called(column, number) or None for number in numbers.tolist()]
    return [names[at] for at in place.tolist()]


def _frame(facts: dict[str, Any]) -> pl.DataFrame:
    import polars as pl

    known = {name: values if isinstance(values, list) else _or_null(values) for name, values in facts.items()}
    texts = {"user": pl.String} | {name: pl.String for name in _NAMED if name in facts}
    return pl.DataFrame(known, schema_overrides=texts)


def _or_null(values: Ints) -> pl.Series:
    import polars as pl

    series = pl.Series(values)
    return series.set(series < 0, None)
