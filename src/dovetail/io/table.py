"""Tables of any origin as workloads: CSV, TSV, Parquet. Every row is kept, or set aside with a reason.

Columns are known by their usual names (KNOWN), or named by the caller. Values are read as people write them: instants
as ISO 8601 or seconds since 1970, durations as seconds or `1-02:03:04`. What had to be guessed, and what the table
does not say, is told (`Told`).
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.arrays import NEVER, Ints, Mask
from dovetail.errors import InputError, SettingError
from dovetail.io.local_times import TWICE, both_hours, which_hour, zone_named
from dovetail.io.published import Published, kind_of, without_names
from dovetail.io.streams import polars_failures, regular_file, unpacked
from dovetail.io.swf import FIELDS, beyond_caps, read_swf
from dovetail.io.swf_wide import BEHIND
from dovetail.model.workload import Column, Provenance, SetAside, Step, Workload
from dovetail.names import unknown
from dovetail.units import printable

if TYPE_CHECKING:
    import polars as pl

KNOWN: Final[Mapping[str, tuple[str, ...]]] = {
    "id": ("jobid", "id", "job", "jobnumber", "jobidraw"),
    "submit": ("submit", "submittime", "submitted", "submission", "submissiontime", "queued", "qtime", "arrival"),
    "start": ("start", "starttime", "started", "begin", "begintime"),
    "end": ("end", "endtime", "ended", "finish", "finished", "finishtime", "completed", "completiontime"),
    "wait": ("wait", "waittime", "queuetime"),
    "runtime": ("runtime", "elapsed", "elapsedraw", "duration", "usedwalltime", "walltimeused"),
    "limit": (
        "limit", "timelimit", "timelimitraw", "reqtime", "requestedtime", "requestedwalltime",
        "reqwalltime", "walltimelimit", "walltime",
    ),
    "size": (
        "ncpus", "cpus", "cores", "ncores", "processors", "procs", "nprocs", "alloccpus", "allocatedcpus", "slots",
        "size", "reqcpus", "requestedcpus",
    ),
    "nodes": ("nnodes", "nodes", "nodecount", "allocnodes", "reqnodes"),
    "user": ("user", "username", "userid", "uid", "owner"),
    "group": ("account", "group", "groupname", "project", "gid", "groupid"),
    "partition": ("partition",),
    "queue": ("queue", "qos", "class"),
    "name": ("jobname", "name"),
    "status": ("state", "status", "jobstate", "exitstatus"),
    "exit": (),
    "power": (),
    "soft": (),
}  # fmt: skip
"""Fields by the names that their columns usually have, without case, blanks and signs; the first that is there. `exit`
is a number, 0 if all went well; `power` is watts of the whole job, or a list of samples; `soft` is the run time that
the user expects."""
MOST_BYTES: Final = 4 << 30
MOST_ROWS: Final = 50_000_000
MOST_S: Final = 10**9
"""Seconds of a duration: thirty years."""
MOST_W: Final = 10**8
"""Watts of a job: more than any machine draws."""
_SWF: Final = re.compile(r"(?i)\.swf(\.gz|\.xz|\.zst)?$")
_PARQUET: Final = b"PAR1"
SEPARATORS: Final = (",", "\t", ";", "|")
_PER: Final = {"s": 1, "sec": 1, "seconds": 1, "min": 60, "minutes": 60, "h": 3600, "hours": 3600, "raw": 0}
_DURATION: Final = r"^(?:(\d{1,5})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2})(?:\.\d+)?$"
_DAYS: Final = r"^(\d{1,5})-(\d{1,2})(?::(\d{1,2}))?$"
"""Days, hours and perhaps minutes, as Slurm has it: the minutes and seconds of `03:04` have no days before them."""
_TIMED: Final = ("wait", "runtime", "limit", "soft")
"""Fields whose columns may end with a unit."""
_NONE: Final = ("", "unknown", "none", "n/a", "na", "null", "nan", "-", "invalid")
_NO_LIMIT: Final = ("unlimited", "infinite", "partition_limit")
_STATES: Final = {
    **dict.fromkeys(("completed", "complete", "cd", "done", "success", "succeeded", "finished", "ok"), 1),
    **dict.fromkeys(("cancelled", "canceled", "ca", "killed"), 5),
    **dict.fromkeys(("failed", "fail", "timeout", "to", "error", "f", "node_fail", "nf", "boot_fail", "deadline"), 0),
    **dict.fromkeys(("out_of_memory", "oom", "preempted", "pr"), 0),
}
_RUNNING: Final = ("running", "r", "suspended", "pending", "pd", "requeued", "resizing", "completing")
NO_LIMITS: Final = "limits: policies that need estimates are to be told the run times, or predict them"
TIMES: Final = ("submit", "start", "end")
FORMS: Final = (
    "%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%Y%m%d", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M",
)  # fmt: skip
"""How times are written, beside seconds since 1970; a blank will do for the T."""
_UNIT: Final = re.compile(r"(?i)(?:[_ (]|(?=raw$))(s|sec|seconds|min|minutes|h|hours|raw)\)?$")
_SECONDS: Final = 1e11
"""A number of this size or more is an instant in milliseconds since 1970."""


@dataclass(frozen=True)
class Told:
    """What was understood of a table."""

    columns: Mapping[str, str]
    """The column that each field came from."""
    ignored: tuple[str, ...]
    guesses: tuple[str, ...]
    """What was not said, and is taken to be so."""
    missing: tuple[str, ...]
    """What the table does not know, and what that means."""
    published: str = ""
    """The published table that it is, by its columns; empty if it is none."""


def read_any(
    path: str | Path, columns: Mapping[str, str] | None = None, *, tz: str = "UTC", processors: int = 0,
    more: Sequence[str | Path] = (),
) -> tuple[Workload, Told]:  # fmt: skip
    """Read a table of jobs. `columns`: the column of a field where its name is unusual. `tz`: the zone of times that
    name none. `processors`: of the machine; 0: the most that were in use at once, a guess. `more`: files with further
    rows of the same table."""
    paths = [regular_file(Path(one)) for one in (path, *more)]
    path = paths[0]
    if _SWF.search(path.name):
        if columns or more:
            raise SettingError("a log in SWF is one file, and its fields have no names: leave out --columns")
        return _of_swf(path, processors)
    parts = [_Part.read(one, columns or {}) for one in paths]
    if len({one.sha256 for one in parts}) < len(parts):
        raise InputError(path, 0, "a file of this table is given twice")
    return _Reading(path, parts, dict(columns or {}), zone_named(tz)).workload(processors)


def _of_swf(path: Path, processors: int) -> tuple[Workload, Told]:
    """A log in SWF, which says by the places of its fields what they are."""
    workload = read_swf(path)
    if not len(workload):
        raise InputError(path, 0, "no job in it")
    fields = {name: f"field {at}" for at, name in enumerate((*FIELDS, *BEHIND), 1) if name in workload}
    guesses = []
    if machine := processors or workload.processors:
        workload = replace(workload, processors=machine)
    else:
        kept = {name: workload[name] for name in ("submit", "runtime")} | {"wait": workload.get("wait")}
        kept["size"] = np.maximum(workload.size, workload.get("allocated"))
        workload = replace(workload, processors=most_in_use(kept))
        guesses.append(guessed_size(workload.processors))
    missing = () if bool((workload.limit > 0).any()) else (NO_LIMITS,)
    return workload, Told(fields, (), tuple(guesses), missing)


def guessed_size(processors: int) -> str:
    """What is said of a machine whose size nobody gave."""
    return f"{processors:,} processors: the most that were in use at once; give --processors or --cluster"


def parse_columns(text: str) -> dict[str, str]:
    """`submit=Submit,size=NCPUS` as a dictionary."""
    found = {}
    for part in filter(None, text.split(",")):
        name, equals, column = part.partition("=")
        if name not in KNOWN:
            raise SettingError(f"--columns: {unknown('field', name, KNOWN)}")
        if not equals or not column:
            raise SettingError(f"--columns: {printable(part)} is not FIELD=COLUMN, such as submit=Submit")
        found[name] = column
    return found


@dataclass(frozen=True)
class _Part:
    """One file of a table."""

    frame: pl.DataFrame
    """With texts or numbers in its columns; without those of Parquet that nobody would ask for."""
    names: tuple[str, ...]
    """Of all columns."""
    sha256: str

    @classmethod
    def read(cls, path: Path, given: Mapping[str, str]) -> _Part:
        with path.open("rb") as stream:
            data = b"".join(unpacked(stream, str(path), MOST_BYTES))
        frame, names = _frame(path, data, given)
        return cls(frame, names, hashlib.sha256(data).hexdigest())


def _together(path: Path, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The rows of all files. Their times may be of different zones, and a column may hold nothing in one of them."""
    import polars as pl

    alike = [frame.with_columns(pl.col(pl.Datetime(time_zone="*")).dt.convert_time_zone("UTC")) for frame in frames]
    kinds: dict[str, str] = {}
    for name, dtype in ((name, dtype) for frame in alike for name, dtype in frame.schema.items()):
        kind = "numbers" if dtype.is_numeric() else "empty" if dtype == pl.Null else str(dtype)
        if kind != "empty" and kinds.setdefault(name, kind) != kind:
            raise InputError(path, 0, f"the files are not of one table: {name} is {kinds[name]} here and {kind} there")
    try:
        return pl.concat(alike, how="diagonal_relaxed")
    except pl.exceptions.PolarsError as error:
        raise InputError(path, 0, f"the files are not of one table: {printable(str(error), 200)}") from error


def _frame(path: Path, data: bytes, given: Mapping[str, str]) -> tuple[pl.DataFrame, tuple[str, ...]]:
    """A table with texts or numbers in its columns, and the names of all columns."""
    import polars as pl

    try:
        if data.startswith(_PARQUET):
            schema = pl.read_parquet_schema(io.BytesIO(data))
            kind = kind_of(schema)
            asked = {*given.values(), *kind.columns.values(), *kind.also} if kind else set(schema)
            wanted = [name for name in schema if name in asked]
            frame = pl.read_parquet(data, columns=wanted)
            return _with_rows(path, frame), tuple(schema)
        if (found := without_names(data)) is not None:
            frame = found
        else:
            head = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace")
            most = max(SEPARATORS, key=head.count)
            frame = pl.read_csv(
                data, separator=most, infer_schema=False, truncate_ragged_lines=True, encoding="utf8-lossy"
            )
    except polars_failures() as error:
        named = "not a table with its columns named in the first line"
        rule = "damaged Parquet" if data.startswith(_PARQUET) else named
        raise InputError(path, 0, f"{rule}: {printable(str(error))}") from error
    return _with_rows(path, frame), tuple(frame.columns)


def _with_rows(path: Path, frame: pl.DataFrame) -> pl.DataFrame:
    if not len(frame):
        raise InputError(path, 0, "no row behind the names of the columns")
    if len(frame) > MOST_ROWS:
        raise InputError(path, 0, f"{len(frame):,} rows; at most {MOST_ROWS:,} are read")
    return frame


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@dataclass
class _Reading:
    """One table on its way to a workload."""

    path: Path
    parts: list[_Part]
    given: dict[str, str]
    zone: str
    guesses: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    late: dict[str, Ints] = field(default_factory=dict)
    """Instants with the later choice where the clock showed an hour twice."""
    skipped: dict[str, Mask] = field(default_factory=dict)
    """Times that no clock showed, as it was put forward."""

    @cached_property
    def frame(self) -> pl.DataFrame:
        found = self.parts[0].frame if len(self.parts) == 1 else _together(self.path, [one.frame for one in self.parts])
        return _with_rows(self.path, found)

    @cached_property
    def published(self) -> Published | None:
        return kind_of(self.frame.columns)

    @cached_property
    def columns(self) -> dict[str, str]:
        """The column of each field."""
        for name, column in self.given.items():
            if column not in self.frame.columns:
                raise SettingError(f"--columns {name}={unknown('column', column, self.frame.columns)}")
        if self.published is not None:
            if useless := self.given.keys() & {"nodes"} - {"size"}:
                raise SettingError(f"--columns {useless.pop()}: of this table give size, which is what a job takes")
            return {**self.published.columns, **self.given}
        by_name, by_base = dict[str, str](), dict[str, str]()
        for column in self.frame.columns:
            by_name.setdefault(_plain(column), column)
            if (base := _UNIT.sub("", column)) != column:
                by_base.setdefault(_plain(base), column)
        found = {}
        for name, usual in KNOWN.items():
            known = {**by_base, **by_name} if name in _TIMED else by_name
            if column := self.given.get(name) or next((known[one] for one in usual if one in known), ""):
                found[name] = column
        return found

    def workload(self, processors: int) -> tuple[Workload, Told]:
        """All of it."""
        rows, columns = len(self.frame), self.columns
        if "submit" not in columns and not {"start", "wait"} <= columns.keys():
            self._lacks("submit", "when jobs were submitted")
        size = self._sizes()
        submit, start, end = (self._instants(name) for name in TIMES)
        wait, runtime, limit, soft = (self._durations(name) for name in _TIMED)
        repeated = sum(
            int((early != self.late[name]).sum()) for name, early in zip(TIMES, (submit, start, end), strict=True)
        )
        start, end = which_hour(submit, start, end, self.late["start"], self.late["end"], runtime)
        if "start" not in columns and "wait" in columns:
            start = np.where((submit != NEVER) & (wait >= 0), submit + wait, NEVER)
        if "submit" not in columns:
            submit = np.where((start != NEVER) & (wait >= 0), start - wait, NEVER)
        if "end" in columns:
            ran = (end != NEVER) & (start != NEVER)
            runtime = np.where(ran, end - start, np.where(end != NEVER, runtime, -1))
        elif "runtime" not in columns:
            self._lacks("end", "how long jobs ran (end or elapsed)")
        known = start != NEVER if "start" in columns or "wait" in columns else runtime >= 0
        if "start" not in columns and "wait" not in columns:
            self.missing.append("when jobs started: recorded waits are not known")
        ids, identified = self._ids()
        skipped = np.any([self.skipped[name] for name in TIMES], axis=0)
        busy = np.array([text in _RUNNING for text in self._states()] or np.zeros(rows), bool)
        aside, left = SetAside(), np.ones(rows, bool)
        for wrong, reason in (
            (~identified, "a step of a job, not a job"),
            (skipped, "a time that the clock skipped in spring: is --tz right?"),
            (submit == NEVER, "no time of submission"),
            (~known, "never started"),
            ((end != NEVER) & (start != NEVER) & (end < start), "ended before it started"),
            ((runtime < 0) | busy, "no end: it still ran, or its end is not known"),
            ((start != NEVER) & (start < submit), "started before it was submitted"),
            (size <= 0, "no processors"),
        ):
            now = wrong & left
            if now.any():
                aside = aside.with_more(np.flatnonzero(now) + 2, ids[now], reason)
                left &= ~now
        if not left.any():
            why = "; ".join(f"{many:,}: {reason}" for reason, many in aside.counts().items())
            raise InputError(self.path, 0, f"no row can be kept ({why})")
        made: dict[str, Column] = {"id": ids, "submit": submit, "size": size, "runtime": runtime, "limit": limit}
        made["wait"] = np.where(start != NEVER, start - submit, -1)
        if "soft" in columns:
            made["soft_limit"] = soft
        if "power" in columns:
            made["power_mw"] = self._power(size)
        names = self._named(made)
        self._statuses(made)
        if "limit" not in columns:
            self.missing.append(NO_LIMITS)
        first = int(submit[left].min())
        made["submit"] = np.where(left, submit - first, 0)
        made["line"] = np.arange(2, rows + 2)
        order = np.flatnonzero(left)[np.argsort(made["submit"][left], kind="stable")]
        kept = {name: values[order] for name, values in made.items()}
        if broken := beyond_caps(kept):
            raise InputError(self.path, 0, broken)
        machine = processors or most_in_use(kept)
        if not processors:
            self.guesses.append(guessed_size(machine))
        if repeated:
            self.steps.append(Step(TWICE, changed=repeated))
        header = {"UnixStartTime": (str(first),), "TimeZoneString": (self.zone,)}
        hashes = [one.sha256 for one in self.parts]
        sha256 = hashes[0] if len(hashes) == 1 else hashlib.sha256("".join(hashes).encode()).hexdigest()
        provenance = Provenance(self.path.name, sha256, rows, "", tuple(self.steps))
        names_of_all = dict.fromkeys(name for one in self.parts for name in one.names)
        ignored = tuple(name for name in names_of_all if name not in columns.values())
        kind = self.published
        self.guesses += [note for note in (kind.notes if kind else ()) if not ("size" in self.given and "size" in note)]
        told = Told(columns, ignored, tuple(self.guesses), tuple(self.missing), kind.name if kind else "")
        name = self.path.name.partition(".")[0]
        return Workload(name, kept, machine, provenance, aside, header, names), told

    def _lacks(self, name: str, what: str) -> None:
        have = ", ".join(printable(one, 30) for one in self.frame.columns[:30])
        raise InputError(self.path, 1, f"no column says {what}. It has {have}; name one: --columns {name}=COLUMN")

    def _refuse(self, name: str, texts: pl.Series, wrong: Mask, what: str) -> None:
        """InputError for the first value of a column that is there and is not what it should be."""
        bad = np.flatnonzero(wrong & (texts != "").to_numpy())
        if len(bad):
            rule = f"{printable(texts[int(bad[0])], 40)!r} in {self.columns[name]} is no {what}"
            raise InputError(self.path, int(bad[0]) + 2, rule)

    def _texts(self, name: str) -> pl.Series:
        """A column as texts without blanks around them; empty where there is nothing."""
        import polars as pl

        given = self.frame[self.columns[name]]
        try:
            texts = given.cast(pl.String, strict=False).fill_null("").str.strip_chars()
        except pl.exceptions.PolarsError as error:
            raise InputError(self.path, 0, f"{self.columns[name]}: {given.dtype} is no text and no number") from error
        return texts.set(texts.str.to_lowercase().is_in(list(_NONE)), "")

    def _instants(self, name: str) -> Ints:
        """Seconds since 1970; NEVER where there is none."""
        import polars as pl

        self.late[name], self.skipped[name] = np.full(len(self.frame), NEVER), np.zeros(len(self.frame), bool)
        if name not in self.columns:
            return self.late[name]
        given = self.frame[self.columns[name]]
        if given.dtype == pl.Date or isinstance(given.dtype, pl.Datetime):
            return self._local(name, given.cast(pl.Datetime("us", getattr(given.dtype, "time_zone", None))))
        texts = self._texts(name)
        number = texts.cast(pl.Float64, strict=False).to_numpy()
        number = np.where(np.abs(number) >= _SECONDS, number / 1000, number)
        written = texts.str.replace(r"^(\d{4}[-/]\d{2}[-/]\d{2}) ", "${1}T").str.replace_all("/", "-", literal=True)
        zoned = written.str.contains(r"T.*(Z|[+-]\d{2}:?\d{2})$")
        short = ~written.str.contains(r"^(\d{4}-|(19|20)\d{6}$|\d{1,2}\.\d{1,2}\.\d{4})")  # years have four digits
        here, there = written.set(zoned | short, None), written.set(~zoned, None)
        with_zone = there.str.replace("Z$", "+00:00").str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", strict=False)
        local = self._local(name, _first_of(here, FORMS))
        zoned_s = with_zone.dt.epoch("s").fill_null(NEVER).to_numpy()
        dates = texts.str.contains(r"^(19|20)\d{6}$").to_numpy()  # 20260131 is a day, not a second
        plain = (np.abs(number) < _SECONDS) & ~dates
        exact = np.where(plain, np.floor(np.where(plain, number, 0)), zoned_s).astype(np.int64)
        seconds = np.where(exact != NEVER, exact, local)
        self.late[name] = np.where(exact != NEVER, exact, self.late[name])
        self.skipped[name] &= seconds == NEVER
        if plain.any():
            self.guesses.append(f"{self.columns[name]}: plain numbers are seconds since 1970")
        wrong = (seconds == NEVER) & ~self.skipped[name]
        self._refuse(name, texts, wrong, "time such as 2026-01-31T08:00:00")
        return seconds

    def _local(self, name: str, given: pl.Series) -> Ints:
        """Instants of times that name no zone; where the clock shows an hour twice, the first of the two."""
        zoned = getattr(given.dtype, "time_zone", None)
        early, late = (given.dt.epoch("s"),) * 2 if zoned else both_hours(given, self.zone)
        self.skipped[name] = (given.is_not_null() & early.is_null()).to_numpy()
        found, self.late[name] = (np.asarray(one.fill_null(NEVER).to_numpy(), np.int64) for one in (early, late))
        return found

    def _durations(self, name: str) -> Ints:
        """Seconds; -1 where there is none."""
        import polars as pl

        if name not in self.columns:
            return np.full(len(self.frame), -1)
        given, column = self.frame[self.columns[name]], self.columns[name]
        if isinstance(given.dtype, pl.Duration):
            return np.maximum(np.asarray(given.dt.total_seconds().fill_null(-1).to_numpy(), np.int64), -1)
        texts = self._texts(name)
        texts = texts.set(texts.str.to_lowercase().is_in(list(_NO_LIMIT)), "")
        suffix = _UNIT.search(column)
        per = _PER[suffix[1].lower()] if suffix else 1
        if known := self.published is not None and self.published.columns.get(name) == column:
            per = 60 if self.published and name in self.published.minutes else 1  # whatever the suffix says
        if not per:  # sacct: TimelimitRaw is in minutes, ElapsedRaw in seconds
            per = 60 if name == "limit" else 1
        number = texts.cast(pl.Float64, strict=False) * per
        number = number.set(number == -per, None)  # -1: not known
        texts = texts.set(texts.is_in(["-1", "-1.0"]), "")
        parts = [texts.str.extract(_DURATION, group).cast(pl.Int64, strict=False).fill_null(0) for group in range(1, 5)]
        written = parts[0] * 86400 + parts[1] * 3600 + parts[2] * 60 + parts[3]
        days = [texts.str.extract(_DAYS, group).cast(pl.Int64, strict=False) for group in (1, 2, 3)]
        whole_days = days[0] * 86400 + days[1] * 3600 + days[2].fill_null(0) * 60
        clock = written.set(~texts.str.contains(_DURATION), -1)
        found = number.fill_null(whole_days.cast(pl.Float64)).fill_null(clock.cast(pl.Float64)).to_numpy()
        wrong = ~((found >= 0) & (found < MOST_S))
        self._refuse(name, texts, wrong, "duration such as 3600 or 1-02:03:04")
        if number.is_not_null().any() and not suffix and not known:
            self.guesses.append(f"{column}: plain numbers are seconds")
        seconds: Ints = np.ceil(np.round(found, 6)).astype(np.int64)
        return seconds

    def _sizes(self) -> Ints:
        import polars as pl

        name = "size" if "size" in self.columns else "nodes"
        if name not in self.columns:
            self._lacks("size", "how many processors jobs had")
        if name == "nodes":
            self.guesses.append(f"{self.columns[name]}: a job's size is its nodes, as no column has processors")
        texts = self._texts(name)
        number = texts.cast(pl.Float64, strict=False).to_numpy()
        whole = (number == np.floor(number)) & (np.abs(number) < 2.0**53)
        self._refuse(name, texts, ~whole, "whole number of processors")
        return np.where(whole, number, 0).astype(np.int64)

    def _power(self, size: Ints) -> Ints:
        """Milliwatts of each processor; -1 where it is not known, or no power that a job can draw."""
        import polars as pl

        given = self.frame[self.columns["power"]]
        watts = given.list.mean() if isinstance(given.dtype, pl.List) else self._texts("power")
        found = np.asarray(watts.cast(pl.Float64, strict=False).fill_null(-1).to_numpy(), np.float64)
        known = (found >= 0) & (found < MOST_W) & (size > 0)
        return np.where(known, np.where(known, found, 0) * 1000 // np.maximum(size, 1), -1).astype(np.int64)

    def _ids(self) -> tuple[Ints, Mask]:
        """Numbers of jobs, from what the table has or by row; and which rows are jobs (`123.batch` is a step)."""
        import polars as pl

        rows = len(self.frame)
        if "id" not in self.columns:
            return np.arange(1, rows + 1), np.ones(rows, bool)
        texts = self._texts("id")
        parents = texts.str.extract(r"^(\d+(?:[_+]\d+)?)\.", 1)
        jobs = ~(parents.is_not_null() & parents.is_in(texts.to_list())).fill_null(value=False).to_numpy()
        number = texts.str.extract(r"^(\d{1,15})(?:\.0)?$", 1).cast(pl.Int64, strict=False)
        own = number.filter(pl.Series(jobs))
        if own.is_null().any() or own.n_unique() < len(own):
            self.guesses.append(
                f"{self.columns['id']}: not a number of its own for each job, so jobs are numbered by row"
            )
            return np.arange(1, rows + 1), jobs
        return np.asarray(number.fill_null(-1).to_numpy(), np.int64), jobs

    def _named(self, made: dict[str, Column]) -> dict[str, tuple[str, ...]]:
        """Columns of names become numbers, and the names behind them are kept."""
        names: dict[str, tuple[str, ...]] = {}
        for name in ("user", "group", "partition", "queue", "name"):
            if name in self.columns:
                texts = self._texts(name).to_list()
                known = sorted({text for text in texts if text})
                number = {text: at for at, text in enumerate(known)}
                made[name] = np.array([number.get(text, -1) for text in texts], np.int64)
                names[name] = tuple(printable(text, 200) for text in known)
            elif name == "user":
                self.missing.append("users: comparisons by user and predictors by user have nothing to go by")
        return names

    def _statuses(self, made: dict[str, Column]) -> None:
        """States as SWF has them: 1 completed, 0 failed, 5 cancelled, -1 not known."""
        if "exit" in self.columns:
            code = self._texts("exit")
            self._refuse(
                "exit", code, ~code.str.contains(r"^-?\d+([.:]\d+)?$").to_numpy(), "exit code such as 0 or 1:0"
            )
            well = code.is_in(["0", "0.0", "0:0"])
            made["status"] = np.select([(code == "").to_numpy(), well.to_numpy()], [-1, 1], 0)
        elif found := self._states():
            made["status"] = np.array([_STATES.get(text, -1) for text in found], np.int64)

    def _states(self) -> list[str]:
        """The first word of each state; none where there is no such column."""
        if "status" not in self.columns:
            return []
        words: list[str] = (
            self._texts("status").str.to_lowercase().str.extract(r"^([a-z_]+)", 1).fill_null("").to_list()
        )
        return words


def _first_of(texts: pl.Series, forms: Sequence[str]) -> pl.Series:
    """Texts as times by the first form that fits each."""
    import polars as pl

    found = pl.Series([None] * len(texts), dtype=pl.Datetime("us"))
    for form in forms:
        made: Any = texts.str.to_datetime(form, strict=False, time_unit="us")
        found = found.fill_null(made)
    return found


def most_in_use(kept: Mapping[str, Column]) -> int:
    """The most processors that ran jobs at once; without starts, the largest job."""
    begun = kept["submit"] + kept["wait"]
    if bool((kept["wait"] < 0).any()):
        return int(kept["size"].max())
    at = np.concatenate([begun, begun + np.maximum(kept["runtime"], 1)])
    more = np.concatenate([kept["size"], -kept["size"]])
    return int(np.cumsum(more[np.lexsort((more, at))]).max())
