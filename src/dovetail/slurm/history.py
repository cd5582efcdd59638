"""What happened, from the records that sacct prints: a workload, and what was understood of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dovetail.arrays import NEVER, Ints, Mask
from dovetail.errors import InputError, SettingError
from dovetail.io.local_times import TWICE, both_hours, which_hour
from dovetail.io.node_list import hosts
from dovetail.io.streams import regular_file, unpacked
from dovetail.io.swf import beyond_caps
from dovetail.io.table import NO_LIMITS, guessed_size, most_in_use
from dovetail.kernels.swf import MOST_PROCESSORS, MOST_SECONDS
from dovetail.model.cluster import Cluster
from dovetail.model.features import chosen
from dovetail.model.workload import UNIT, Column, Provenance, SetAside, Step, Workload
from dovetail.slurm import sacct, words
from dovetail.slurm.machine import DEVICE
from dovetail.slurm.records import BLOCK, MOST_RECORD, Stretch, layout_of, of_json, stretches
from dovetail.slurm.shapes import SHAPES, Amounts, Hints, shapes
from dovetail.slurm.submit_line import NOTHING, evidence
from dovetail.units import printable

if TYPE_CHECKING:
    import polars as pl

_T = TypeVar("_T")
Places: TypeAlias = NDArray[np.int32]
_Resources: TypeAlias = tuple[Places, list[dict[str, int]]]
"""What each record's text of resources says, as a place in a list."""
_OF_NODES: Final = ("cpu", "node", "mem")
TIMES: Final = ("Submit", "Eligible", "Start", "End")
TEXTS: Final = (
    "JobID", "State", "TimelimitRaw", "ReqTRES", "AllocTRES", "NodeList", "User", "Account", "Partition", "QOS",
    "Reservation", "Constraints", "SubmitLine", "Reason", "Suspended", "Cluster", "Exclusive", "JobName", "Timelimit",
    "Elapsed",
)  # fmt: skip
"""Fields that are read by their different texts."""
NUMBERS: Final = ("JobIDRaw", "NNodes", "ReqCPUS", "AllocCPUS", "NCPUS", "ElapsedRaw")
READ: Final = (*TIMES, *TEXTS, *NUMBERS, "DBIndex")
AGAIN: Final = 10**10
"""More than any number of a job."""
LATE: Final = " late"
"""Behind the name of a time: the later choice."""
SKIPPED: Final = -1
"""A time that no clock showed, as it was put forward."""
_NAMED: Final = {
    "user": "User", "account": "Account", "partition": "Partition", "qos": "QOS", "reservation": "Reservation",
    "feature": "Constraints", "name": "JobName", "ran_on": "NodeList", "reason": "Reason",
}  # fmt: skip
"""Columns of a workload by the field that has their names."""
_NO_TIME: Final = ("unknown", "none", "")
MOST_TIME: Final = MOST_SECONDS
"""Seconds since 1970, and of a duration: what a log may hold."""
MANY: Final = 100
"""Jobs of a cluster that are hardly all of one user."""
_WRITTEN: Final = "%Y-%m-%dT%H:%M:%S"
_ENDED: Final = {"COMPLETED": 1, "CANCELLED": 5}
"""States as SWF has them; all others are failures."""
_LEAVES: Final = ("CANCELLED", "DEADLINE", "REVOKED")
"""States of a job that may never have started."""
_NOT_OVER: Final = ("RUNNING", "SUSPENDED", "PENDING", "RESIZING", "REQUEUED", "COMPLETING", "CONFIGURING", "STOPPED")


@dataclass(frozen=True)
class Understood:
    """What the records say of themselves."""

    records: int
    """Different ones."""
    again: int
    """Those that were printed more than once, since windows overlap."""
    shapes: dict[str, int]
    """How many jobs have a shape that is told, inferred or unknown."""
    notes: tuple[str, ...]
    missing: tuple[str, ...]


@dataclass
class Odd:
    """Records that cannot be read, by what is wrong: how many, and the first text."""

    counts: dict[str, int] = field(default_factory=dict)
    first: dict[str, str] = field(default_factory=dict)

    def add(self, what: str, count: int, text: str = "") -> None:
        """Some more of a kind."""
        if count:
            self.counts[what] = self.counts.get(what, 0) + count
            self.first.setdefault(what, text)

    def in_words(self) -> list[str]:
        """A sentence for each kind."""
        shown = {what: f", such as {printable(text, 40)!r}" if text else "" for what, text in self.first.items()}
        return [f"{count:,} left out: {what}{shown[what]}" for what, count in self.counts.items()]


def typed(stretch: Stretch, zone: str, odd: Odd) -> pl.DataFrame:
    """A stretch with its times and numbers as integers and its texts as categories; records that cannot be read are
    left out. Times that are written are of a zone; a second column has the later choice where the clock shows an hour
    twice."""
    import polars as pl

    frame = stretch.frame
    odd.add("a wrong number of fields", len(stretch.broken))
    shown = frame["JobID"] if "JobID" in frame.columns else frame["JobIDRaw"]
    steps = shown.str.contains(".", literal=True)
    if steps.any():  # or a list of tasks that Slurm cut: 3_[1,3,...
        steps &= shown.str.contains(r"^[^\[.]*(\[[^\]]*\])?\.")
        odd.add("steps of jobs", int(steps.sum()))
        frame = frame.filter(~steps)
    raw = frame["JobIDRaw"] if "JobIDRaw" in frame.columns else frame["JobID"].str.extract(r"^(\d+)", 1)
    number = raw.cast(pl.Int64, strict=False)
    good = number.is_between(0, AGAIN - 1).fill_null(value=False)
    odd.add("no number of a job", int((~good).sum()), raw.filter(~good).fill_null("")[0] if not good.all() else "")
    made: dict[str, pl.Series | None] = {"JobIDRaw": number}
    for name in (one for one in TIMES if one in frame.columns):
        seconds, made[name + LATE] = _seconds(frame[name], zone)
        made[name] = seconds
        if seconds.has_nulls():
            wrong = seconds.is_null() & ~frame[name].str.to_lowercase().is_in(_NO_TIME) & good
            odd.add(f"{name} is no time such as 2026-01-31T08:00:00, and no seconds since 1970", int(wrong.sum()),
                    frame[name].filter(wrong)[0] if wrong.any() else "")  # fmt: skip
            good &= ~wrong
    made |= {name: frame[name].cast(pl.Int64, strict=False) for name in NUMBERS if name in frame.columns}
    if "DBIndex" in frame.columns:
        made["DBIndex"] = frame["DBIndex"].cast(pl.UInt64, strict=False)
    made |= {name: _texts(frame[name]) for name in TEXTS if name in frame.columns and name != "JobID"}
    if "JobID" in frame.columns:  # for most jobs it is the raw one: half a million texts less
        made["JobID"] = frame["JobID"].set(frame["JobID"] == raw, None).cast(pl.Categorical)
    found = pl.DataFrame({name: values for name, values in made.items() if values is not None})
    return found if good.all() else found.filter(good)


def _texts(given: pl.Series) -> pl.Series:
    """Texts as categories; often one text is all that a field has."""
    import polars as pl

    if len(given) and bool((given == given[0]).all()):
        return given[:1].cast(pl.Categorical).new_from_index(0, len(given))
    return given.cast(pl.Categorical)


def _seconds(texts: pl.Series, zone: str) -> tuple[pl.Series, pl.Series | None]:
    """Seconds since 1970, null where there is none; and the later choice, if times are written."""
    import polars as pl

    plain = texts.cast(pl.Int64, strict=False)
    if not plain.is_between(0, MOST_TIME).all():
        plain = plain.set(~plain.is_between(0, MOST_TIME), None)
    if not plain.has_nulls():
        return plain, None
    written = texts.set(plain.is_not_null(), None).str.to_datetime(_WRITTEN, strict=False, time_unit="ms")
    if written.is_null().all():
        return plain, None
    early, late = both_hours(written, zone)
    skipped = written.is_not_null() & early.is_null()
    early, late = (one.set(~one.is_between(0, MOST_TIME), None) for one in (early, late))
    return plain.fill_null(early).set(skipped, SKIPPED), plain.fill_null(late).set(skipped, SKIPPED)


@dataclass
class History:
    """Records that are gathered, window by window, and then made a workload."""

    path: str
    zone: str = "UTC"
    parts: list[pl.DataFrame] = field(default_factory=list)
    odd: Odd = field(default_factory=Odd)

    def add(self, stretches: Iterable[Stretch]) -> None:
        """Take in the records of a window. A record that comes again is the later one."""
        for one in stretches:
            if missing := {"Start", "End"} - set(one.frame.columns):
                raise InputError(self.path, 0, f"sacct was not asked for {min(missing)}: add it to --format")
            self.parts.append(typed(one, self.zone, self.odd))

    def workload(self, name: str, processors: int = 0, cluster: Cluster | None = None) -> tuple[Workload, Understood]:
        """All of it as a workload: every record is a job, or is set aside with a reason. `cluster`: that of the jobs,
        if it is known."""
        import polars as pl

        if not any(len(part) for part in self.parts):
            raise InputError(self.path, 0, "; ".join(("no job in it", *self.odd.in_words())))
        frame = pl.concat(self.parts, how="diagonal")
        self.parts.clear()
        if "Cluster" in frame.columns and len(found := frame["Cluster"].unique()) > 1:
            some = ", ".join(printable(str(one), 40) for one in found.to_list()[:5])
            raise InputError(self.path, 0, f"jobs of {len(found)} clusters ({some}): sacct --clusters asks for one")
        places = _different(frame)
        again = len(frame) - len(places)
        if again or bool((np.diff(places) < 0).any()):
            frame = frame[places]
        return _Reading(self.path, self.zone, frame, self.odd, again, cluster).workload(name, processors)


def _different(frame: pl.DataFrame) -> Ints:
    """Places of the different records, in the order of their submissions; of one that came again, the last.

    What tells them apart is their place in the database, else number and submission. A job that was resized has a
    record for each size, of which only the start tells."""
    import polars as pl

    def numbers(name: str) -> Ints:
        return _numbers(frame, name, NEVER)

    if "DBIndex" in frame.columns and bool((frame["DBIndex"].fill_null(0) > 0).all()):
        told = [frame["DBIndex"].to_numpy(), numbers("JobIDRaw")]
    else:
        resized = frame["State"].cast(pl.String).str.contains("RESIZING").fill_null(value=False).to_numpy()
        told = [numbers("JobIDRaw"), numbers("Submit"), np.where(resized, numbers("Start"), NEVER)]
        if "JobID" in frame.columns:
            told.append(frame["JobID"].to_physical().cast(pl.Int64).fill_null(-1).to_numpy())
    order = np.lexsort(told)
    same = np.all([np.diff(values[order]) == 0 for values in told], axis=0)
    last = order[np.append(~same, True)]
    ordered: Ints = last[np.lexsort([numbers(name)[last] for name in ("End", "Start", "JobIDRaw", "Submit")])]
    return ordered


def _numbers(frame: pl.DataFrame, name: str, otherwise: int) -> Ints:
    """A field of all records, if it is there."""
    if name not in frame.columns:
        return np.full(len(frame), otherwise)
    return np.asarray(frame[name].fill_null(otherwise).to_numpy(), np.int64)


@dataclass
class _Reading:
    """Different records, in the order of their submissions, on the way to a workload."""

    path: str
    zone: str
    frame: pl.DataFrame
    odd: Odd
    again: int
    cluster: Cluster | None = None
    notes: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)

    def workload(self, name: str, processors: int) -> tuple[Workload, Understood]:
        submit, eligible, start, end = self._instants()
        state = self._by_text("State", words.state, words.State("UPDATE_DB"))
        word = self._of(state, lambda one: _CODES["REQUEUED" if "REQUEUED" in one.signs else one.word])
        pending, over = word == _CODES["PENDING"], ~np.isin(word, [_CODES[one] for one in _NOT_OVER])
        gone = np.isin(word, [_CODES[one] for one in _LEAVES])
        start = np.where(gone & ~self._placed(), NEVER, start)
        ran = (start != NEVER) & (end != NEVER) & (over | (word == _CODES["REQUEUED"]) | (word == _CODES["RESIZING"]))
        left = over & (start == NEVER) & (end != NEVER)
        nothing: dict[str, int] = {}
        asked, given = (self._by_text(one, words.tres, nothing) for one in ("ReqTRES", "AllocTRES"))
        has = np.array([bool(one) for one in given[1]] or [False])[given[0]] & ran
        cores = np.where(
            has, self._of(given, lambda one: one.get("cpu", 0)), self._of(asked, lambda one: one.get("cpu", 0))
        )
        for other in ("AllocCPUS", "NCPUS", "ReqCPUS"):
            if other in self.frame.columns:
                cores = np.where(cores > 0, cores, self._numbers(other, 0))
        aside, kept = SetAside(), np.ones(len(self.frame), bool)
        ids, line = self._numbers("JobIDRaw", -1), np.arange(1, len(self.frame) + 1)
        for wrong, reason in (
            (
                np.any([one == SKIPPED for one in (submit, start, end)], axis=0),
                "a time that the clock skipped in spring",
            ),
            (submit == NEVER, "no time of submission"),
            (self._listed_twice(pending), "what waits of an array, whose tasks have records of their own"),
            (pending & ~left, "still waited when the records were read"),
            (~ran & ~left & ~pending & over, "ended, and nobody knows when"),
            (~ran & ~left & ~pending, "still ran when the records were read"),
            (ran & (end < start), "ended before it started"),
            (ran & (start < submit), "started before it was submitted"),
            (left & (end < submit), "left before it was submitted"),
            (cores <= 0, "no processors"),
            (ran & (self._there < 0), "ran on nodes that the cluster does not have"),
            (cores > MOST_PROCESSORS, f"more than {MOST_PROCESSORS:,} processors"),
        ):
            now = wrong & kept
            if now.any():
                aside = aside.with_more(line[now], ids[now], reason)
                kept &= ~now
        if not kept.any():
            why = "; ".join(f"{many:,}: {reason}" for reason, many in aside.counts().items())
            raise InputError(self.path, 0, f"no record can be kept ({why})")
        ids = self._different(ids, kept)
        first = int(submit[kept].min())
        known = submit != NEVER
        limit = self._limits()
        made: dict[str, Column] = {
            "id": ids, "line": line, "submit": np.where(known, submit - first, 0), "size": cores, "limit": limit,
            "runtime": np.where(ran, end - start, -1), "wait": np.where(ran, start - submit, -1),
            "status": self._of(state, lambda one: _ENDED.get(one.word, 0)),
        }  # fmt: skip
        held = np.where((eligible != NEVER) & known, eligible - submit, 0)
        held = np.where(ran, np.minimum(held, start - submit), held)
        if (held > 0).any():
            made["not_before_s"] = np.maximum(held, 0)
        if left.any():
            made["leaves_s"] = np.where(left, end - submit, -1)
        made |= self._shapes(cores, has, asked, given)
        self._tell(ran, left, word, limit)
        names = self._names(made, kept)
        if not kept.all():
            made = {key: values[kept] for key, values in made.items()}
        if len(ids := made["id"]) >= MANY and len(names.get("user", ())) == 1 and (made["user"] == 0).all():
            rule = "a Slurm with PrivateData shows users no jobs but their own"
            self.notes.append(f"all {len(ids):,} jobs are of one user: {rule}")
        if broken := beyond_caps(made):
            raise InputError(self.path, 0, broken)
        begun = made["wait"] >= 0
        in_use = {name: made[name][begun] for name in ("submit", "wait", "runtime", "size")}
        machine = processors or (most_in_use(in_use) if begun.any() else int(made["size"].max()))
        if not processors:
            self.notes.append(guessed_size(machine))
        past = Provenance(self.path, self._hash(), len(self.frame), "", tuple(self.steps))
        counts = {word: int((made["shape"] == code).sum()) for code, word in enumerate(SHAPES)}
        told = Understood(len(self.frame), self.again, counts, tuple(self.notes), tuple(self.missing))
        header = {"UnixStartTime": (str(first),), "TimeZoneString": (self.zone,)}
        return Workload(name, made, machine, past, aside, header, names), told

    # One field of all records.

    def _instants(self) -> tuple[Ints, Ints, Ints, Ints]:
        """When jobs were submitted, became eligible, started and ended. Where the clock shows an hour twice it is the
        first, unless the order of a job's times or its Elapsed forbid it."""
        early = [self._times(one) for one in TIMES]
        late = [np.maximum(one, self._numbers(name + LATE, SKIPPED)) for one, name in zip(early, TIMES, strict=True)]
        submit, eligible, start, end = early
        if repeated := int(sum((a != b).sum() for a, b in zip(early, late, strict=True))):
            self.steps.append(Step(TWICE, changed=repeated))
        lasted = self._of(self._by_text("Elapsed", words.elapsed_s, -1), int)
        lasted = np.where(lasted >= 0, lasted, self._numbers("ElapsedRaw", -1))
        lasted = np.where(lasted >= 0, lasted + self._suspended, -1)
        start, end = which_hour(submit, start, end, late[2], late[3], lasted)
        return submit, np.where(eligible < submit, late[1], eligible), start, end

    def _times(self, name: str) -> Ints:
        if name not in self.frame.columns:
            if name != "Eligible":
                raise InputError(self.path, 0, f"sacct was not asked for {name}: add it to --format")
            self.missing.append("when jobs became eligible: held ones, and those that waited for others, seem to wait")
            return np.full(len(self.frame), NEVER)
        return self._numbers(name, NEVER)

    def _numbers(self, name: str, otherwise: int) -> Ints:
        return _numbers(self.frame, name, otherwise)

    def _by_text(self, name: str, read: Callable[[str], _T], otherwise: _T) -> tuple[Places, list[_T]]:
        """What each record's text of a field is: a place in a list of what the different texts say."""
        if name not in self.frame.columns:
            return np.zeros(len(self.frame), np.int32), [otherwise]
        import polars as pl

        column = self.frame[name]
        different = column.unique().drop_nulls()
        codes = different.to_physical().to_numpy()
        place = np.full(int(codes.max(initial=0)) + 1, len(codes), np.int32)
        place[codes] = np.arange(len(codes))
        made, wrong = list[_T](), list[str]()
        for text in different.cast(pl.String).to_list():
            try:
                made.append(read(text) if text else otherwise)
            except ValueError as error:
                wrong.append(str(error))
                made.append(otherwise)
        if wrong:
            more = f", and {len(wrong) - 1:,} texts more" if len(wrong) > 1 else ""
            self.notes.append(f"{name}: {wrong[0]}{more}: taken to be unknown")
        made.append(otherwise)
        physical = column.to_physical().fill_null(int(codes[0]) if len(codes) else 0).to_numpy()
        found = place[physical]
        return np.where(column.is_null().to_numpy(), np.int32(len(codes)), found), made

    def _of(self, found: tuple[Places, list[_T]], read: Callable[[_T], int]) -> Ints:
        return np.array([read(one) for one in found[1]], np.int64)[found[0]]

    @cached_property
    def _suspended(self) -> Ints:
        return np.maximum(self._of(self._by_text("Suspended", _suspended_s, 0), int), 0)

    def _placed(self) -> Mask:
        """Which jobs were given anything. Of one that was cancelled while it waited, 22.05 may say that it started."""
        found = np.ones(len(self.frame), bool)
        for name in ("AllocTRES", "NodeList"):
            if name in self.frame.columns:
                found &= self._of(self._by_text(name, lambda text: int(text not in _NO_NAME), 0), int) > 0
        return found

    def _limits(self) -> Ints:
        """Seconds; -1 where there is none."""

        def minutes(text: str) -> int:
            return -1 if text.lower() in _NO_LIMIT else 60 * words.limit_minutes(text)

        def written(text: str) -> int:
            return -1 if text.lower() in _NO_LIMIT else words.elapsed_s(text)

        if "TimelimitRaw" in self.frame.columns:
            found = self._by_text("TimelimitRaw", minutes, -1)
        elif "Timelimit" in self.frame.columns:
            found = self._by_text("Timelimit", written, -1)
        else:
            self.missing.append(NO_LIMITS)
            return np.full(len(self.frame), -1)
        return self._of(found, lambda seconds: seconds if 0 < seconds <= MOST_TIME else -1)

    def _different(self, ids: Ints, kept: Mask) -> Ints:
        """Numbers that no two jobs share: of a job that ran again, and of one whose number Slurm gave once more, the
        later ones are AGAIN larger each."""
        order = np.lexsort((np.arange(len(ids)), ids, ~kept))
        same = np.concatenate([[False], np.diff(ids[order]) == 0])
        place = np.arange(len(ids))
        run = place - np.maximum.accumulate(np.where(same, 0, place))
        found = ids.copy()
        found[order] += AGAIN * run
        if (again := (found != ids) & kept).any():
            self.notes.append(f"{jobs(again)} with the number of an earlier one: {AGAIN:,} was added to it")
        return found

    def _listed_twice(self, pending: Mask) -> Mask:
        """A record that waits, of a job that has another: `3_1` once with its own number, once with the array's."""
        if "JobID" not in self.frame.columns or not pending.any():
            return np.zeros(len(self.frame), bool)
        import polars as pl

        shown = pl.coalesce(pl.col("JobID").cast(pl.String), pl.col("JobIDRaw").cast(pl.String))
        twice = self.frame.select(pl.struct(shown, "Submit").is_duplicated()).to_series().to_numpy()
        found: Mask = pending & np.asarray(twice, bool)
        return found

    def _shapes(self, cores: Ints, has: Mask, asked: _Resources, given: _Resources) -> dict[str, Column]:
        """What jobs ask of nodes."""

        def amounts(found: _Resources) -> Amounts:
            devices = self._of(found, lambda one: sum(words.devices(one).values()))
            cores, nodes, memory = (self._of(found, partial(_amount, name)) for name in _OF_NODES)
            return Amounts(cores, nodes, memory, devices)

        wanted, had = amounts(asked), amounts(given)
        if not {"NNodes", "ReqTRES", "AllocTRES"} & set(self.frame.columns):
            self.missing.append("on how many nodes jobs ran: sacct was not asked for NNodes")
        count = self._numbers("NNodes", 0)
        wanted, had = (replace(one, nodes=np.where(one.nodes > 0, one.nodes, count)) for one in (wanted, had))
        proof = self._by_text("SubmitLine", evidence, NOTHING)
        whole = self._of(self._by_text("Exclusive", lambda text: int(text.upper() in _WHOLE), 0), int) > 0
        whole |= self._of(proof, lambda one: int(one.whole)) > 0
        found = shapes(wanted, had, has, cores, Hints(whole, self._of(proof, lambda one: one.nodes), self._there))
        if self.cluster is not None and self.cluster.kinds:
            for name in [one for one in found if one.startswith(UNIT)]:
                if name.removeprefix(UNIT) not in self.cluster.resources:
                    del found[name]
                    self.notes.append(f"{name.removeprefix(UNIT)} of jobs: the cluster counts none")
        return found

    @cached_property
    def _there(self) -> Ints:
        """How many cores the nodes have that jobs were given; -1: they are not all of the cluster, 0: nobody knows."""
        if self.cluster is None or not self.cluster.names:
            return np.zeros(len(self.frame), np.int64)
        return self._of(self._by_text("NodeList", partial(_cores_of, self.cluster), 0), int)

    def _features(self) -> tuple[Ints, list[str]]:
        """What jobs ask for by name: features of nodes, and where the cluster knows them types of GPU."""
        place, texts = self._by_text("Constraints", _constraint, "")
        if self.cluster is None:
            return place.astype(np.int64), texts
        having = self.cluster.having

        def types(text: str) -> str:
            kinds = [f"{DEVICE}{one}" for one in words.devices(words.tres(text)) if one]
            return "&".join(one for one in kinds if having(one).any())

        other, kinds = self._by_text("ReqTRES", types, "")
        known, which = np.unique(kinds, return_inverse=True)
        both = [f"({text})&{kind}" if text and kind else text or kind for text in texts for kind in known.tolist()]
        return place.astype(np.int64) * len(known) + which[other], both

    def _names(self, made: dict[str, Column], kept: Mask) -> dict[str, tuple[str, ...]]:
        """Columns of names become numbers; the names of jobs that are kept stand behind them."""
        names: dict[str, tuple[str, ...]] = {}
        for column, name in _NAMED.items():
            if name not in self.frame.columns:
                continue
            nothing = _NO_NAME if name in ("NodeList", "Reason") else _NO_TEXT
            place, texts = self._by_text(name, str, "") if column != "feature" else self._features()
            most = words.MOST_TEXT if name == "NodeList" else 1000
            texts = ["" if text in nothing else printable(text, most) for text in texts]
            used = np.bincount(place[kept], minlength=len(texts)) > 0
            known = sorted({text for text, there in zip(texts, used.tolist(), strict=True) if there} - {""})
            number = {text: at for at, text in enumerate(known)}
            if known:
                made[column] = np.array([number.get(text, -1) for text in texts], np.int64)[place]
                names[column] = tuple(known)
        return names

    # What is said beside the workload.

    def _tell(self, ran: Mask, left: Mask, word: Ints, limit: Ints) -> None:
        suspended = self._suspended
        timeout = word == _CODES["TIMEOUT"]
        requeued = word == _CODES["REQUEUED"]
        for some, text in (
            (ran & (suspended > 0), "suspended for a time, which is part of the run time: memory was kept"),
            (ran & timeout, "ended by the limit: the work might have taken longer"),
            (requeued, "requeued: each run is a job, submitted when it was requeued"),
            (left, "cancelled before the start: nobody knows for how long they would have run"),
            (ran & (limit < 0), "without a limit of their own"),
        ):
            if some.any():
                self.notes.append(f"{jobs(some)} {text}")
        self.missing.append("jobs that were held all the time, and those of the last seconds: sacct does not list them")
        self.steps += [Step(f"records left out: {what}", removed=count) for what, count in self.odd.counts.items()]
        self.notes += self.odd.in_words()

    def _hash(self) -> str:
        """Of the numbers and times of all records in their order: however many calls of sacct they came from."""
        h = hashlib.sha256()
        for name in ("JobIDRaw", "Submit", "Start", "End", "NNodes"):
            h.update(self._numbers(name, NEVER).astype("<i8").tobytes())
        return h.hexdigest()


_CODES: Final = {word: at for at, word in enumerate((*words.STATES, *words.SIGNS))}
_NO_LIMIT: Final = ("unlimited", "partition_limit", "infinite", "-1", "", "n/a")
_NO_NAME: Final = ("", "None assigned", "(null)", "Unknown", "None")
_NO_TEXT: Final = ("", "(null)")
_OF_TABLES: Final = (b",", b";", b"\t")
_WHOLE: Final = ("NODE", "EXCLUSIVE", "YES")


def _constraint(text: str) -> str:
    """Features as the model has them. Counts ask for nodes of several kinds: any of these will do."""
    plain, counts = re.subn(r"\*\d{1,9}(?::\d{1,9})?", "", re.sub(r"[\[\]]", "", text))
    plain = plain.replace("&", "|") if counts else plain.replace(",", "&")
    try:
        chosen(plain, lambda _: np.zeros(1, bool))
    except SettingError as error:
        raise ValueError(f"{printable(text, 40)!r} joins no names of features by & and |") from error
    return plain


def _cores_of(cluster: Cluster, text: str) -> int:
    """All cores of a list of nodes; -1, if they are not all of the cluster."""
    if text in _NO_NAME:
        return -1
    nodes = [cluster.number.get(name, -1) for name in hosts(text)] or [-1]
    return -1 if -1 in nodes else int(cluster.capacity[cluster.kind_of[nodes], 0].sum())


def _amount(name: str, found: dict[str, int]) -> int:
    return found.get(name, 0)


def jobs(some: Mask) -> str:
    """`1 job`, `2,345 jobs`."""
    many = int(some.sum())
    return f"{many:,} job{'s' * (many != 1)}"


def _suspended_s(text: str) -> int:
    seconds = int(text[:19]) if text.isdigit() else words.elapsed_s(text)
    if seconds > MOST_TIME:
        raise ValueError(f"{printable(text, 40)!r} is longer than anything lasts")
    return seconds


def is_history(path: Path) -> bool:
    """Whether a path leads to what sacct printed: a folder that `sacct.fetch` filled, or a file with sacct's header or
    JSON. A table with sacct's names between commas, semicolons or tabs was made by another program, which may quote."""
    if path.is_dir():
        return (path / sacct.ABOUT).is_file()
    with regular_file(path).open("rb") as stream:
        head, _ = _begun(stream, path)
    layout = layout_of(head)
    return head.lstrip()[:1] == b"{" or (
        layout is not None and layout.delimiter not in _OF_TABLES and bool({"JobID", "JobIDRaw"} & set(layout.fields))
    )


def _begun(stream: IO[bytes], path: Path) -> tuple[bytes, Iterator[bytes]]:
    """The first bytes of a file that say anything, and the blocks behind them."""
    blocks, head = unpacked(stream, str(path)), b""
    while not head.strip() and len(head) < MOST_RECORD and (more := next(blocks, b"")):
        head += more
    return head.removeprefix(b"\xef\xbb\xbf"), blocks


def read_history(
    path: str | Path, processors: int = 0, zone: str = "UTC", block: int = BLOCK, cluster: Cluster | None = None
) -> tuple[Workload, Understood]:
    """The workload of a dump: a folder that `sacct.fetch` filled, or a file of what sacct printed, parsable or JSON,
    packed or not. `block`: bytes that are split at once. `cluster`: that of the jobs, if it is known."""
    path = Path(path)
    history = History(path.name, zone)
    if path.is_dir():
        found = sacct.windows(path)
        done, behind = sacct.joined(sacct.read_about(path), found)
        if behind:
            rule = f"what happened from {done} to {behind[0][0]} is missing: ask for it by import-slurm with --from"
            raise InputError(path, 0, rule)
        for window in found:
            history.add(stretches(sacct.printed(path, window), path.name, block, READ))
    else:
        with regular_file(path).open("rb") as stream:
            head, blocks = _begun(stream, path)
            if head.lstrip()[:1] == b"{":
                history.add([of_json(head + b"".join(blocks), str(path))])
            else:
                history.add(stretches(chain([head], blocks), str(path), block, READ))
    return history.workload(path.name if path.is_dir() else path.name.partition(".")[0], processors, cluster)
