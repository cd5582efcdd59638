"""Tables of any origin as workloads: CSV, TSV, `sacct -P`, Parquet. Every row is kept, or set aside with a reason.

Columns are known by their usual names (KNOWN), or named by the caller. Values are read as people write them: instants
as ISO 8601 or seconds since 1970, durations as seconds or `1-02:03:04`. What had to be guessed, and what the table
does not say, is told (`Told`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.arrays import NEVER, Ints, Mask
from dovetail.errors import InputError, SettingError
from dovetail.io.streams import regular_file, unpacked
from dovetail.io.swf import beyond_caps
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
        "limit", "timelimit", "timelimitraw", "walltime", "reqtime", "requestedtime", "requestedwalltime",
        "reqwalltime", "walltimelimit",
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
}  # fmt: skip
"""Fields by the names that their columns usually have, without case, blanks and signs; the first that is there."""
MOST_BYTES: Final = 4 << 30
MOST_ROWS: Final = 50_000_000
MOST_S: Final = 10**9
"""Seconds of a duration: thirty years."""
SEPARATORS: Final = (",", "\t", ";", "|")
_PER: Final = {"s": 1, "sec": 1, "seconds": 1, "min": 60, "minutes": 60, "h": 3600, "hours": 3600, "raw": 0}
_DURATION: Final = r"^(?:(\d{1,5})-)?(?:(\d{1,6}):)?(\d{1,6}):(\d{1,2})(?:\.\d+)?$"
_DAYS: Final = r"^(\d{1,5})-(\d{1,2})$"
_NONE: Final = ("", "unknown", "none", "n/a", "na", "null", "nan", "-", "invalid")
_NO_LIMIT: Final = ("unlimited", "infinite", "partition_limit")
_STATES: Final = {"completed": 1, "cd": 1, "cancelled": 5, "canceled": 5, "ca": 5, "failed": 0, "timeout": 0}
TIMES: Final = ("submit", "start", "end")
FORMS: Final = ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M", "%Y-%m-%d", "%d.%m.%Y %H:%M:%S", "%d.%m.%Y %H:%M")
"""How times are written, beside seconds since 1970; a blank will do for the T."""
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


def read_any(
    path: str | Path, columns: Mapping[str, str] | None = None, *, tz: str = "UTC", processors: int = 0
) -> tuple[Workload, Told]:
    """Read a table of jobs. `columns`: the column of a field where its name is unusual. `tz`: the zone of times that
    name none. `processors`: of the machine; 0: the most that were in use at once, a guess."""
    path = regular_file(Path(path))
    frame, sha256 = _frame(path)
    return _Reading(path, frame, dict(columns or {}), _zone(tz), sha256).workload(processors)


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


def _zone(name: str) -> str:
    """The name of a zone, if there is one. Polars has its own table of them: a machine may have none."""
    import polars as pl

    try:
        pl.Series([0]).cast(pl.Datetime("us")).dt.replace_time_zone(name)
    except pl.exceptions.PolarsError as error:
        raise SettingError(f"--tz: no time zone {printable(name)!r}; one is Europe/Berlin, another UTC") from error
    return name


def _frame(path: Path) -> tuple[pl.DataFrame, str]:
    """A table with texts or numbers in its columns, and the hash of its bytes."""
    import polars as pl

    with path.open("rb") as stream:
        data = b"".join(unpacked(stream, str(path), MOST_BYTES))
    sha256 = hashlib.sha256(data).hexdigest()
    try:
        if data.startswith(b"PAR1"):
            frame = pl.read_parquet(data)
        else:
            head = data.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0].decode("utf-8", "replace")
            most = max(SEPARATORS, key=head.count)
            frame = pl.read_csv(
                data, separator=most, infer_schema=False, truncate_ragged_lines=True, encoding="utf8-lossy"
            )
    except pl.exceptions.PolarsError as error:
        raise InputError(path, 0, f"not a table with its columns named in the first line: {error}") from error
    if not len(frame):
        raise InputError(path, 0, "no row behind the names of the columns")
    if len(frame) > MOST_ROWS:
        raise InputError(path, 0, f"{len(frame):,} rows; at most {MOST_ROWS:,} are read")
    return frame, sha256


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


@dataclass
class _Reading:
    """One table on its way to a workload."""

    path: Path
    frame: pl.DataFrame
    given: dict[str, str]
    zone: str
    sha256: str
    guesses: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    late: dict[str, Ints] = field(default_factory=dict)
    """Instants with the later choice where the clock showed an hour twice."""

    @cached_property
    def columns(self) -> dict[str, str]:
        """The column of each field."""
        for name, column in self.given.items():
            if column not in self.frame.columns:
                raise SettingError(f"--columns {name}={unknown('column', column, self.frame.columns)}")
        by_name: dict[str, str] = {}
        for column in self.frame.columns:
            base = re.sub(r"(?i)[_ (](s|sec|seconds|min|minutes|h|hours)\)?$", "", column)
            by_name.setdefault(_plain(column), column)
            by_name.setdefault(_plain(base), column)
        found = {}
        for name, usual in KNOWN.items():
            if column := self.given.get(name) or next((by_name[one] for one in usual if one in by_name), ""):
                found[name] = column
        return found

    def workload(self, processors: int) -> tuple[Workload, Told]:
        """All of it."""
        rows, columns = len(self.frame), self.columns
        if "submit" not in columns and not {"start", "wait"} <= columns.keys():
            self._lacks("submit", "when jobs were submitted")
        size = self._sizes()
        submit, start, end = (self._instants(name) for name in ("submit", "start", "end"))
        runtime, wait, limit = (self._durations(name) for name in ("runtime", "wait", "limit"))
        repeated = sum(
            int((early != self.late[name]).sum()) for name, early in zip(TIMES, (submit, start, end), strict=True)
        )
        start = np.where((start < submit) & (submit != NEVER), self.late["start"], start)
        ends = start + np.where(runtime >= 0, runtime, 0)  # Elapsed, where the table has it, says which of two hours
        end = np.where((end < ends) & (start != NEVER), self.late["end"], end)
        if "start" not in columns and "wait" in columns:
            start = np.where((submit != NEVER) & (wait >= 0), submit + wait, NEVER)
        if "submit" not in columns:
            submit = np.where((start != NEVER) & (wait >= 0), start - wait, NEVER)
        if "end" in columns:
            runtime = np.where((end != NEVER) & (start != NEVER), end - start, runtime)
        elif "runtime" not in columns:
            self._lacks("end", "how long jobs ran (end or elapsed)")
        known = start != NEVER if "start" in columns or "wait" in columns else runtime >= 0
        if "start" not in columns and "wait" not in columns:
            self.missing.append("when jobs started: recorded waits are not known")
        ids, identified = self._ids()
        aside, left = SetAside(), np.ones(rows, bool)
        for wrong, reason in (
            (~identified, "a step of a job, not a job"),
            (submit == NEVER, "no time of submission"),
            (~known, "never started"),
            (runtime < 0, "no end: it still ran, or its end is not known"),
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
        names = self._named(made)
        self._statuses(made)
        if "limit" not in columns:
            self.missing.append("limits: policies that need estimates are to be told the run times, or predict them")
        first = int(submit[left].min())
        made["submit"] = np.where(left, submit - first, 0)
        made["line"] = np.arange(2, rows + 2)
        order = np.flatnonzero(left)[np.argsort(made["submit"][left], kind="stable")]
        kept = {name: values[order] for name, values in made.items()}
        if broken := beyond_caps(kept):
            raise InputError(self.path, 0, broken)
        machine = processors or _most_in_use(kept)
        if not processors:
            self.guesses.append(f"{machine:,} processors: the most that were in use at once; give --processors")
        if repeated:
            hour = "times in the hour that the clock shows twice: the first, unless other times of the job forbid it"
            self.steps.append(Step(hour, changed=repeated))
        header = {"UnixStartTime": (str(first),), "TimeZoneString": (self.zone,)}
        provenance = Provenance(self.path.name, self.sha256, rows, "", tuple(self.steps))
        ignored = tuple(name for name in self.frame.columns if name not in columns.values())
        told = Told(columns, ignored, tuple(self.guesses), tuple(self.missing))
        name = self.path.name.partition(".")[0]
        return Workload(name, kept, machine, provenance, aside, header, names), told

    def _lacks(self, name: str, what: str) -> None:
        have = ", ".join(printable(one, 30) for one in self.frame.columns[:30])
        raise InputError(self.path, 1, f"no column says {what}. It has {have}; name one: --columns {name}=COLUMN")

    def _texts(self, name: str) -> pl.Series:
        """A column as texts without blanks around them; empty where there is nothing."""
        import polars as pl

        given = self.frame[self.columns[name]]
        texts = given.cast(pl.String, strict=False).fill_null("").str.strip_chars()
        return texts.set(texts.str.to_lowercase().is_in(list(_NONE)), "")

    def _instants(self, name: str) -> Ints:
        """Seconds since 1970; NEVER where there is none."""
        import polars as pl

        self.late[name] = np.full(len(self.frame), NEVER)
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
        here, there = written.set(zoned, None), written.set(~zoned, None)
        with_zone = there.str.replace("Z$", "+00:00").str.to_datetime("%Y-%m-%dT%H:%M:%S%.f%z", strict=False)
        local = self._local(name, _first_of(here, FORMS))
        zoned_s = with_zone.dt.epoch("s").fill_null(NEVER).to_numpy()
        plain = np.abs(number) < _SECONDS
        exact = np.where(plain, np.floor(np.where(plain, number, 0)), zoned_s).astype(np.int64)
        seconds = np.where(exact != NEVER, exact, local)
        self.late[name] = np.where(exact != NEVER, exact, self.late[name])
        wrong = (texts != "").to_numpy() & (seconds == NEVER)
        if wrong.any():
            bad = int(np.flatnonzero(wrong)[0])
            rule = f"{printable(texts[bad], 40)!r} in {self.columns[name]} is no time such as 2026-01-31T08:00:00"
            raise InputError(self.path, bad + 2, rule)
        return seconds

    def _local(self, name: str, given: pl.Series) -> Ints:
        """Instants of times that name no zone; where the clock shows an hour twice, the first of the two."""
        if not getattr(given.dtype, "time_zone", None):
            early, late = (
                given.dt.replace_time_zone(self.zone, ambiguous=which, non_existent="null")
                for which in ("earliest", "latest")
            )
        else:
            early = late = given
        found, self.late[name] = (
            np.asarray(one.dt.epoch("s").fill_null(NEVER).to_numpy(), np.int64) for one in (early, late)
        )
        return found

    def _durations(self, name: str) -> Ints:
        """Seconds; -1 where there is none."""
        import polars as pl

        if name not in self.columns:
            return np.full(len(self.frame), -1)
        given, column = self.frame[self.columns[name]], self.columns[name]
        if isinstance(given.dtype, pl.Duration):
            return np.asarray(given.dt.total_seconds().fill_null(-1).to_numpy(), np.int64)
        texts = self._texts(name)
        texts = texts.set(texts.str.to_lowercase().is_in(list(_NO_LIMIT)), "")
        suffix = re.search(r"(?i)(?:[_ (]|(?=raw$))(s|sec|seconds|min|minutes|h|hours|raw)\)?$", column)
        per = _PER[suffix[1].lower()] if suffix else 1
        if not per:  # sacct: TimelimitRaw is in minutes, ElapsedRaw in seconds
            per = 60 if name == "limit" else 1
        number = texts.cast(pl.Float64, strict=False) * per
        parts = [texts.str.extract(_DURATION, group).cast(pl.Int64, strict=False).fill_null(0) for group in range(1, 5)]
        written = parts[0] * 86400 + parts[1] * 3600 + parts[2] * 60 + parts[3]
        days = [texts.str.extract(_DAYS, group).cast(pl.Int64, strict=False) for group in (1, 2)]
        matched = texts.str.contains(_DURATION)
        whole_days = (days[0] * 86400 + days[1] * 3600).fill_null(-1)
        found = number.fill_null(pl.Series(np.where(matched, written, whole_days), dtype=pl.Float64)).to_numpy()
        wrong = (texts != "").to_numpy() & ~((found >= 0) & (found < MOST_S))
        if wrong.any():
            bad = int(np.flatnonzero(wrong)[0])
            rule = f"{printable(texts[bad], 40)!r} in {column} is no duration such as 3600 or 1-02:03:04"
            raise InputError(self.path, bad + 2, rule)
        if number.is_not_null().any() and not suffix:
            self.guesses.append(f"{column}: plain numbers are seconds")
        seconds: Ints = np.ceil(found).astype(np.int64)
        return seconds

    def _sizes(self) -> Ints:
        import polars as pl

        name = "size" if "size" in self.columns else "nodes"
        if name not in self.columns:
            self._lacks("size", "how many processors jobs had")
        if name == "nodes":
            self.guesses.append(f"{self.columns[name]}: a job's size is its nodes, as no column has processors")
        number = self._texts(name).cast(pl.Float64, strict=False).fill_null(0)
        sizes: Ints = np.asarray(number.cast(pl.Int64, strict=False).fill_null(0).to_numpy(), np.int64)
        return sizes

    def _ids(self) -> tuple[Ints, Mask]:
        """Numbers of jobs, from what the table has or by row; and which rows are jobs (`123.batch` is a step)."""
        import polars as pl

        rows = len(self.frame)
        if "id" not in self.columns:
            return np.arange(1, rows + 1), np.ones(rows, bool)
        texts = self._texts("id")
        steps = texts.str.contains(r"^\d+(_\d+)?\.").to_numpy()
        number = texts.str.extract(r"^(\d{1,15})$", 1).cast(pl.Int64, strict=False)
        if number.is_null().any() or number.n_unique() < rows:
            return np.arange(1, rows + 1), ~steps
        return np.asarray(number.to_numpy(), np.int64), ~steps

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
        if "status" in self.columns:
            first = self._texts("status").str.to_lowercase().str.extract(r"^([a-z_]+)", 1).fill_null("").to_list()
            made["status"] = np.array([_STATES.get(text, 0 if text else -1) for text in first], np.int64)


def _first_of(texts: pl.Series, forms: Sequence[str]) -> pl.Series:
    """Texts as times by the first form that fits each."""
    import polars as pl

    found = pl.Series([None] * len(texts), dtype=pl.Datetime("us"))
    for form in forms:
        made: Any = texts.str.to_datetime(form, strict=False, time_unit="us")
        found = found.fill_null(made)
    return found


def _most_in_use(kept: Mapping[str, Column]) -> int:
    """The most processors that ran jobs at once; without starts, the largest job."""
    begun = kept["submit"] + kept["wait"]
    if bool((kept["wait"] < 0).any()):
        return int(kept["size"].max())
    at = np.concatenate([begun, begun + np.maximum(kept["runtime"], 1)])
    more = np.concatenate([kept["size"], -kept["size"]])
    return int(np.cumsum(more[np.lexsort((more, at))]).max())
