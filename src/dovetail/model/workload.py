"""Workload: an immutable, columnar set of jobs that knows where it came from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Ints
from dovetail.model import frames
from dovetail.units import duration, printable

if TYPE_CHECKING:
    import polars as pl

Column = npt.NDArray[Any]

REQUIRED: Final = ("id", "submit", "size", "runtime", "limit")
"""Columns that every workload has: int64, seconds and processors; -1 where history does not know."""

OPTIONAL: Final = (
    "user", "group", "name", "queue", "partition", "status",
    "wait", "allocated", "cpu_s", "memory_kb", "requested_memory_kb", "after", "think_s", "deadline_s", "line",
    "units", "per_node", "exclusive", "feature", "gpu_share", "reservation", "ran_on", "power_mw", "gpus", "soft_limit",
    "descriptor", "priority", "qos", "account", "not_before_s", "leaves_s",
    "shape", "reason", "array",
)  # fmt: skip
"""Columns that a workload may have. `cpu_s` is float64, all others int64; `wait` is the recorded wait;
`after` is the id of the job that this one waited for (SWF field 17) and `think_s` the pause after its end
(field 18); `deadline_s` is by how long after its arrival a job must have ended (-1: no matter when); `line` is
the line of the source file. What a job asks of nodes (model/requests.py): `units`, `unit_RESOURCE` of each for any
resource, `per_node`, `exclusive`, `feature`, `gpu_share`, `reservation`; `ran_on`: which it had, as
recorded. `power_mw`: milliwatts that each processor of the job draws. Of SWF with more than 18 fields: used `gpus`,
`soft_limit`, and a `descriptor` of nodes. `priority`, `qos` and `account` are for policies that look at them.
`not_before_s`: how long after its submit a job may start at the earliest; it comes into the queue then. `leaves_s`: how
long after its submit a job leaves the queue if it has not started; -1: it stays. `shape`: how well it is known what the
job asks of nodes: 0 told, 1 inferred, 2 unknown. `reason`: why it waited, in the words of its batch system.
`array`: tasks of one array of jobs have one number; -1: it is none."""

TOLD: Final = ("group", "name", "queue", "partition", "priority", "qos", "account", "reservation", "array")
"""Columns that a job comes with and a policy may look at (`State.columns`)."""

UNIT: Final = "unit_"
"""Columns with this before the name of a resource: what one unit of a job needs of it."""
LICENCE: Final = "licence_"
"""Columns with this before the name of a licence: how many of them a job holds while it runs."""

NAMED: Final = (
    "user", "group", "name", "queue", "partition", "feature", "reservation", "ran_on", "descriptor", "qos",
    "account", "reason",
)  # fmt: skip
"""Columns of numbers that stand for names. Where the names are known, `Workload.names` has them."""


def is_column(name: str) -> bool:
    """Whether a workload may have a column of that name."""
    return name in REQUIRED or name in OPTIONAL or name.startswith((UNIT, LICENCE))


@dataclass(frozen=True)
class SetAside:
    """Jobs that were read and not kept: the line, the id and the reason of each. Nothing is lost silently."""

    line: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    id: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    reason: npt.NDArray[np.int16] = field(default_factory=lambda: np.empty(0, np.int16))
    reasons: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.line)

    def counts(self) -> dict[str, int]:
        """How many jobs each reason set aside, in the order in which the reasons applied."""
        per = np.bincount(self.reason, minlength=len(self.reasons))
        return {text: int(n) for text, n in zip(self.reasons, per, strict=True) if n}

    def with_more(self, line: Ints, job_id: Ints, reason: str) -> SetAside:
        """These and the given jobs, all for one reason."""
        known = self.reasons if reason in self.reasons else (*self.reasons, reason)
        code = np.full(len(line), known.index(reason), np.int16)
        return SetAside(
            np.concatenate([self.line, line]),
            np.concatenate([self.id, job_id]),
            np.concatenate([self.reason, code]),
            known,
        )


@dataclass(frozen=True)
class Step:
    """One thing that was done to a workload: a filter, a transform. `removed` and `changed` count jobs."""

    name: str
    removed: int = 0
    changed: int = 0


@dataclass(frozen=True)
class Provenance:
    """Where a workload came from and all that was done to it since."""

    source: str
    sha256: str = ""
    """Hash of the source's bytes (after decompression), empty for generated workloads."""
    lines: int = 0
    """Job lines read from the source: equals jobs kept plus jobs set aside."""
    acknowledge: str = ""
    """Whom to thank when results are shown, as the log's header asks."""
    steps: tuple[Step, ...] = ()


@dataclass(frozen=True)
class Workload:
    """Jobs in order of (submit, line), one array per column; arrays are read-only.

    `processors` is the size of the machine that the log describes (SWF header MaxProcs), 0 if unknown.
    """

    name: str
    columns: Mapping[str, Column]
    processors: int
    provenance: Provenance = field(default_factory=lambda: Provenance("made in memory"))
    set_aside: SetAside = field(default_factory=SetAside)
    header: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The names behind the numbers of a column in NAMED: number 0 is the first. They are foreign text."""

    def __post_init__(self) -> None:
        missing = [c for c in REQUIRED if c not in self.columns]
        if missing:
            raise ValueError(f"workload {self.name!r} lacks the columns {missing}; every workload has {REQUIRED}")
        unknown = [name for name in self.columns if not is_column(name)]
        if unknown:
            raise ValueError(f"workload {self.name!r} has unknown columns {unknown}; known: {REQUIRED + OPTIONAL}")
        if nameless := [c for c in self.names if c not in NAMED or c not in self.columns]:
            raise ValueError(f"workload {self.name!r} names the numbers of {nameless}; it may name those of {NAMED}")
        n = len(self.columns["id"])
        frozen: dict[str, Column] = {}
        for name, values in self.columns.items():
            if len(values) != n:
                raise ValueError(f"column {name!r} has {len(values)} values, column 'id' has {n}")
            kind = np.float64 if name == "cpu_s" else np.int64
            array = np.ascontiguousarray(values, dtype=kind)
            view = array.view()
            view.flags.writeable = False
            frozen[name] = view
        submit = frozen["submit"]
        if n > 1 and bool(np.any(submit[1:] < submit[:-1])):
            raise ValueError(f"workload {self.name!r}: jobs must be in order of submit; sort them first")
        object.__setattr__(self, "columns", MappingProxyType(frozen))
        object.__setattr__(self, "header", MappingProxyType(dict(self.header)))
        object.__setattr__(self, "names", MappingProxyType(dict(self.names)))

    def __reduce__(self) -> tuple[type[Workload], tuple[Any, ...]]:
        """To another process it goes as its parts, to be made again: a view that nobody can change does not travel."""
        parts = [getattr(self, part.name) for part in fields(self)]
        return Workload, tuple(dict(part) if isinstance(part, MappingProxyType) else part for part in parts)

    def __len__(self) -> int:
        return len(self.columns["id"])

    def __repr__(self) -> str:
        span = f" over {duration(self.span_s)}" if self.span_s > 0 else ""
        machine = f"{self.processors:,} processors" if self.processors > 0 else "a machine of unknown size"
        return f"Workload: {printable(self.name, 60)}, {len(self):,} jobs{span} on {machine}"

    def jobs(self) -> pl.DataFrame:
        """A polars frame with one row per job; null where the log does not know. docs/python.md has the columns."""
        return frames.of_workload(self)

    @property
    def span_s(self) -> int:
        """Seconds from the first submission to the last."""
        return int(self.submit[-1] - self.submit[0]) if len(self) else 0

    def __getitem__(self, column: str) -> Column:
        return self.columns[column]

    def __contains__(self, column: str) -> bool:
        return column in self.columns

    @property
    def submit(self) -> Ints:
        return self.columns["submit"]

    @property
    def size(self) -> Ints:
        return self.columns["size"]

    @property
    def runtime(self) -> Ints:
        return self.columns["runtime"]

    @property
    def limit(self) -> Ints:
        return self.columns["limit"]

    def get(self, column: str) -> Ints:
        """An int64 column, or -1 for every job where the workload does not have it."""
        if column in self.columns:
            return self.columns[column]
        return np.full(len(self), -1, np.int64)

    @property
    def held_s(self) -> Ints:
        """How long after its submit each job comes into the queue, feedback apart."""
        return np.maximum(self.get("not_before_s"), 0)

    @property
    def leaves(self) -> Ints:
        """When each job leaves the queue if it has not started; -1: it stays."""
        leaves_s = self.get("leaves_s")
        return np.where(leaves_s >= 0, self.submit + leaves_s, -1)

    @property
    def arrives(self) -> Ints:
        """When each job comes into the queue, feedback apart; -1: it leaves before."""
        at, leaves = self.submit + self.held_s, self.leaves
        return np.where((leaves >= 0) & (leaves <= at), -1, at)

    @property
    def may_leave(self) -> bool:
        """Whether a job leaves the queue if it has to wait for long."""
        return bool((self.get("leaves_s") >= 0).any())

    @property
    def comes_and_stays(self) -> bool:
        """Whether all jobs come at their submits, and stay until they start."""
        return not (self.may_leave or self.held_s.any())

    @property
    def told(self) -> dict[str, Ints]:
        """What policies may look at of each job beside what all know: TOLD, as far as it is there."""
        return {name: self.columns[name] for name in TOLD if name in self.columns}

    def called(self, column: str, number: int) -> str:
        """What a user, a job, ... of that number is called: its name, else the number, empty where none is known."""
        known = self.names.get(column, ())
        return known[number] if 0 <= number < len(known) else str(number) if number >= 0 else ""

    def places(self, known: Mapping[Any, int], *columns: str) -> Ints:
        """Where the name of each job in a column stands, by a list of names, or its names in several; -1: nowhere."""
        pairs, which = np.unique(np.stack([self.get(one) for one in columns]), axis=1, return_inverse=True)
        names = (tuple(map(self.called, columns, pair)) for pair in pairs.T.tolist())
        found = [known.get(one if len(columns) > 1 else one[0], -1) for one in names]
        return np.array(found, np.int64)[which.reshape(-1)]

    def take(self, keep: npt.NDArray[np.bool_], reason: str) -> Workload:
        """The jobs where `keep` is true; the others are set aside for `reason`. Records the step."""
        gone = ~keep
        n_gone = int(gone.sum())
        step = Step(reason, removed=n_gone)
        if not n_gone:
            return self.with_step(step)
        aside = self.set_aside.with_more(self.get("line")[gone], self["id"][gone], reason)
        columns = {name: values[keep] for name, values in self.columns.items()}
        return replace(self, columns=columns, set_aside=aside).with_step(step)

    def with_columns(self, step: Step, **columns: Column) -> Workload:
        """The same jobs with some columns replaced or added, re-sorted by submit (stable). Records the step."""
        merged: dict[str, Column] = {**self.columns, **columns}
        submit = merged["submit"]
        if len(submit) > 1 and bool(np.any(submit[1:] < submit[:-1])):
            order = np.argsort(submit, kind="stable")
            merged = {name: values[order] for name, values in merged.items()}
        return replace(self, columns=merged).with_step(step)

    def with_step(self, step: Step) -> Workload:
        past = self.provenance
        return replace(self, provenance=replace(past, steps=(*past.steps, step)))

    def draws_mw(self, idle_mw: int, busy_mw: int) -> Ints:
        """What each job draws beyond what its processors draw when idle; `busy_mw` where its own power is not known."""
        return self.size * np.maximum(self.power_mw(busy_mw) - idle_mw, 0)

    def power_mw(self, otherwise: int) -> Ints:
        """Milliwatts of each processor of a job: its own where it is known."""
        own = self.get("power_mw")
        return np.where(own >= 0, own, otherwise)

    def digest(self) -> str:
        """SHA-256 over all that is known of the jobs: every column but `line`, and the names behind numbers.

        A column of nothing but -1 says no more than one that is not there; such are left out. So the same jobs have
        the same digest, whatever kind of file they were read from.
        """
        return self._digest

    @cached_property
    def _digest(self) -> str:
        h = hashlib.sha256()
        for name, values in sorted(self.columns.items()):
            if name != "line" and bool(np.any(values != -1)):
                kind = values.dtype.newbyteorder("<")
                h.update(_framed(name, kind.str, len(values)))
                h.update(values.astype(kind, copy=False).tobytes())
        for name, known in sorted(self.names.items()):
            if known:
                h.update(_framed(name, *known))
        return h.hexdigest()


def _framed(*parts: str | int) -> bytes:
    """Texts and numbers as bytes that no other parts would give: their number first, and of each its length."""
    texts = [str(part).encode("utf-8", "surrogatepass") for part in parts]
    return b"".join(b"%d:%s" % (len(text), text) for text in (str(len(texts)).encode(), *texts))
