"""A workload without the identities in it, for those who want to publish theirs."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from dovetail.model.workload import LICENCE, Column, Provenance, SetAside, Step, Workload
from dovetail.units import printable

PEOPLE: Final = ("user", "group", "name", "reservation", "account")
"""Columns that say who somebody is, or what a person wrote."""
PLACES: Final = ("queue", "partition", "feature", "ran_on", "descriptor", "qos", "reason")
"""Columns that say what the machine is, and in its words why jobs waited: they stay."""
TECHNICAL: Final = (
    "Version", "MaxJobs", "MaxRecords", "MaxProcs", "MaxNodes", "MaxRuntime", "MaxMemory", "AllowOveruse",
    "UnixStartTime", "TimeZone", "TimeZoneString", "StartTime", "EndTime", "MaxQueues", "MaxPartitions",
)  # fmt: skip
"""Keys of a header that name nobody; all others go."""
_PLAIN: Final = re.compile(r"[A-Za-z0-9 .:/+_()-]{0,60}")
_PERSONAL: Final = re.compile(r"(?<=user is )(?:not )?one of .*|(?<=user is )not .*")
_SHOWN: Final = 20
"""Names of a column that are listed."""


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
    header = {name: values for name, values in workload.header.items() if _technical(name, values)}
    if gone := [name or "loose lines" for name in workload.header if name not in header]:
        replaced.append(f"header: {', '.join(gone)} left out")
    replaced.append("where it came from: the name and the hash of the source left out")
    kept += [f"{name}: {_called(workload, name)}" for name in PLACES if name in columns]
    kept += [f"header: {', '.join(header)}"] if header else []
    if licences := [name.removeprefix(LICENCE) for name in columns if name.startswith(LICENCE)]:
        kept.append(f"licences: {', '.join(licences)}")
    kept.append("times, sizes and limits")
    columns.pop("line", None)
    aside = workload.set_aside
    step = Step("identities replaced by pseudonyms", changed=len(old))
    steps = tuple(replace(one, name=_PERSONAL.sub("some", one.name)) for one in workload.provenance.steps)
    past = Provenance("anonymized", "", workload.provenance.lines, "", (*steps, step))
    reasons = tuple(_PERSONAL.sub("some", text) for text in aside.reasons)
    made = Workload(
        "anonymized", columns, workload.processors, past,
        SetAside(aside.line, np.full(len(aside), -1, np.int64), aside.reason, reasons), header, names,
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


def _technical(name: str, values: Sequence[str]) -> bool:
    """Whether a key of the header is one of those that name nobody, with a number, a date or a zone alone."""
    return name in TECHNICAL and all(_PLAIN.fullmatch(text) for text in values)


def _called(workload: Workload, column: str) -> str:
    """The names that stay, for a person to read: some sites call a queue after a group."""
    texts = [printable(text, 40) for text in workload.names.get(column, ())]
    more = f" and {len(texts) - _SHOWN:,} more" if len(texts) > _SHOWN else ""
    return ", ".join(texts[:_SHOWN]) + more if texts else "numbers"
