"""A workload without the identities in it, for those who want to publish theirs."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.model.workload import Column, Provenance, SetAside, Step, Workload

PEOPLE: Final = ("user", "group", "name")
"""Columns that say who somebody is, or what a person wrote."""
PLACES: Final = ("queue", "partition", "feature", "descriptor")
"""Columns that say what the machine is: they stay."""
TECHNICAL: Final = (
    "Version", "MaxJobs", "MaxRecords", "MaxProcs", "MaxNodes", "MaxRuntime", "MaxMemory", "AllowOveruse",
    "UnixStartTime", "TimeZone", "TimeZoneString", "StartTime", "EndTime", "MaxQueues", "MaxPartitions",
)  # fmt: skip
"""Keys of a header that name nobody; all others go."""


@dataclass(frozen=True)
class Changed:
    """What `anonymize` did, one line each."""

    replaced: tuple[str, ...]
    kept: tuple[str, ...]


def anonymize(workload: Workload, key: bytes) -> tuple[Workload, Changed]:
    """The same jobs with pseudonyms for users, groups and job names, and new job numbers.

    A pseudonym is a keyed hash of the name: the same name gets the same one wherever the same key is used, and without
    the key nobody can try names. How often somebody submits, and when, stays: it may tell them apart.
    """
    columns: dict[str, Column] = dict(workload.columns)
    names, replaced, kept = dict(workload.names), [], []
    for column in (name for name in PEOPLE if name in columns):
        numbers = np.unique(columns[column][columns[column] >= 0])
        known = [workload.called(column, int(number)) for number in numbers]
        called = [_pseudonym(key, column, text) for text in known]
        order = sorted(range(len(called)), key=called.__getitem__)  # the new number says nothing of the old
        new = np.empty(len(numbers), np.int64)
        new[order] = np.arange(len(numbers))
        columns[column] = _renumbered(columns[column], numbers, new)
        if column in names:
            names[column] = tuple(called[at] for at in order)
        what = "job name" if column == "name" else column
        replaced.append(f"{what}: {len(numbers):,} replaced by pseudonyms")
    old = columns["id"]
    columns["id"] = np.arange(1, len(old) + 1)
    if "after" in columns:
        columns["after"] = _followed(old, columns["after"])
    replaced.append(f"job numbers: {len(old):,} counted anew, in the order of submission")
    header = {name: values for name, values in workload.header.items() if name in TECHNICAL}
    if gone := [name or "loose lines" for name in workload.header if name not in TECHNICAL]:
        replaced.append(f"header: {', '.join(gone)} left out")
    replaced.append("where it came from: the name and the hash of the source left out")
    kept += [f"{name}: {_many(workload, name)}" for name in PLACES if name in columns]
    kept.append("times, sizes and limits; with UnixStartTime, the date of the first submission")
    aside = workload.set_aside
    step = Step("identities replaced by pseudonyms", changed=len(old))
    past = Provenance("anonymized", "", workload.provenance.lines, "", (*workload.provenance.steps, step))
    made = Workload(
        "anonymized", columns, workload.processors, past,
        SetAside(aside.line, np.full(len(aside), -1, np.int64), aside.reason, aside.reasons), header, names,
    )  # fmt: skip
    return made, Changed(tuple(replaced), tuple(kept))


def _pseudonym(key: bytes, column: str, text: str) -> str:
    hashed = hmac.new(key, f"{column}\0{text}".encode("utf-8", "surrogatepass"), "sha256").hexdigest()
    return f"{column}-{hashed[:12]}"


def _renumbered(values: Column, old: Column, new: Column) -> Column:
    """Values of `old`, which rises, as those of `new` in the same places; -1 where there is none."""
    if not len(old):
        return values
    return np.where(values >= 0, new[np.searchsorted(old, np.maximum(values, old[0]))], -1)


def _followed(old: Column, after: Column) -> Column:
    """The new numbers of the jobs that jobs waited for; -1 where that is none of these."""
    where = {job: at for at, job in enumerate(old.tolist(), 1)}
    return np.array([where.get(job, -1) for job in after.tolist()], np.int64)


def _many(workload: Workload, column: str) -> str:
    texts: Sequence[str] = workload.names.get(column, ())
    return f"{len(texts):,} names" if texts else "numbers"
