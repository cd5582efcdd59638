"""What happened, from the records that sacct prints: a workload, and what was understood of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.errors import InputError
from dovetail.io.local_times import TWICE, both_hours, which_hour
from dovetail.io.streams import regular_file, unpacked
from dovetail.io.swf import beyond_caps
from dovetail.io.table import NO_LIMITS, guessed_size, most_in_use
from dovetail.kernels.swf import MOST_PROCESSORS, MOST_SECONDS
from dovetail.model.cluster import Cluster
from dovetail.model.workload import UNIT, Column, Provenance, SetAside, Step, Workload
from dovetail.slurm import sacct, words
from dovetail.slurm.kept import NO_NUMBER, Kept, Places
from dovetail.slurm.records import BLOCK, MOST_RECORD, Stretch, layout_of, of_json, stretches
from dovetail.slurm.said import CODES, NO_NAME, NO_TEXT, Said
from dovetail.slurm.shapes import SHAPES, Amounts, Hints, shapes
from dovetail.slurm.submit_line import evidence
from dovetail.units import printable

if TYPE_CHECKING:
    import polars as pl

NO_BOUND: Final = 1 << 62
A_RECORD: Final = 1000
"""Bytes that one takes while it becomes a job."""
MOST_AT_ONCE: Final = 1 << 16
"""Records that become jobs at once."""
TIMES: Final = ("Submit", "Eligible", "Start", "End")
TEXTS: Final = (
    "State", "TimelimitRaw", "ReqTRES", "AllocTRES", "NodeList", "User", "Account", "Partition", "QOS", "Reservation",
    "Constraints", "Reason", "Suspended", "Cluster", "Exclusive", "JobName", "Timelimit", "Elapsed",
)  # fmt: skip
"""Fields that are read by their different texts."""
NUMBERS: Final = ("JobIDRaw", "NNodes", "ReqCPUS", "AllocCPUS", "NCPUS", "ElapsedRaw")
READ: Final = (*TIMES, *TEXTS, *NUMBERS, "DBIndex", "JobID", "SubmitLine")
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
_OTHERWISE: Final = {"leaves_s": -1, "exclusive": -1}
"""Of jobs that do not have it, where it is not 0."""
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
        return [f"{count:,} left out: {what}{shown[what]}" for what, count in sorted(self.counts.items())]


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
        index = frame["DBIndex"].cast(pl.UInt64, strict=False).fill_null(0).reinterpret(signed=True)
        made["DBIndex"] = index.set(index == NO_NUMBER, NO_NUMBER + 1)
    made |= {name: _texts(frame[name]) for name in TEXTS if name in frame.columns}
    if "JobID" in frame.columns:  # a number for most jobs; of the others, 3_1, whether they are alike
        plain = frame["JobID"].cast(pl.Int64, strict=False)
        made["JobID"] = plain.fill_null(frame["JobID"].hash().reinterpret(signed=True)) if plain.has_nulls() else plain
    if "SubmitLine" in frame.columns:
        lines = frame["SubmitLine"].to_list()
        proof = {text: evidence(text) for text in set(lines)}
        made["whole"] = pl.Series([int(proof[text].whole) for text in lines], dtype=pl.Int64)
        made["nodes"] = pl.Series([proof[text].nodes for text in lines], dtype=pl.Int64)
    found = pl.DataFrame({name: values for name, values in made.items() if values is not None})
    return found if good.all() else found.filter(good)


def _texts(given: pl.Series) -> pl.Series:
    """Texts as categories; often one text is all that a field has."""
    import polars as pl

    own = pl.Categorical(pl.Categories(given.name))
    if len(given) and bool((given == given[0]).all()):
        return given[:1].cast(own).new_from_index(0, len(given))
    return given.cast(own)


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
    """Records that are gathered, window by window, and then made a workload. `memory`: bytes that they may take."""

    path: str
    zone: str = "UTC"
    memory: int = NO_BOUND
    odd: Odd = field(default_factory=Odd)

    def __post_init__(self) -> None:
        self.kept = Kept(self.memory)

    def close(self) -> None:
        """The records are not asked for again."""
        self.kept.close()

    def add(self, stretches: Iterable[Stretch]) -> None:
        """Take in the records of a window. A record that comes again is the later one."""
        for one in stretches:
            if missing := {"Start", "End"} - set(one.frame.columns):
                raise InputError(self.path, 0, f"sacct was not asked for {min(missing)}: add it to --format")
            self.kept.add(typed(one, self.zone, self.odd))

    def workload(self, name: str, processors: int = 0, cluster: Cluster | None = None) -> tuple[Workload, Understood]:
        """All of it as a workload: every record is a job, or is set aside with a reason. `cluster`: that of the jobs,
        if it is known."""
        if not len(self.kept):
            raise InputError(self.path, 0, "; ".join(("no job in it", *self.odd.in_words())))
        if len(found := self.kept.texts("Cluster")) > 1:
            some = ", ".join(printable(one, 40) for one in found[:5])
            raise InputError(self.path, 0, f"jobs of {len(found)} clusters ({some}): sacct --clusters asks for one")
        return _Reading(self.path, self.zone, self.kept, self.odd, cluster).workload(name, processors)


@dataclass
class _Reading:
    """Records on the way to a workload: some at a time, in the order of their submissions."""

    path: str
    zone: str
    kept: Kept
    odd: Odd
    cluster: Cluster | None = None
    missing: list[str] = field(default_factory=list)
    told: Counter[str] = field(default_factory=Counter)
    """How many jobs there is something to tell of, by what it is."""
    aside: dict[str, list[tuple[Ints, Ints]]] = field(default_factory=dict)
    """Lines and numbers of records by the reason for which they are set aside."""
    repeated: int = 0
    """Times in an hour that a clock shows twice."""

    def __post_init__(self) -> None:
        self.kept.complete()
        self.said = Said(self.kept, self.cluster)
        self.places = _different(self.kept, self.said)
        self.many = len(self.kept) if self.places is None else len(self.places)
        self.at_once = min(max(self.kept.memory // A_RECORD, 1), MOST_AT_ONCE)

    def workload(self, name: str, processors: int) -> tuple[Workload, Understood]:
        self._look()
        twice = self._listed_twice()
        made = _joined((self._piece(begin, some, twice) for begin, some in self._some()), self.many)
        aside = SetAside()
        for reason, found in self.aside.items():
            if found:
                lines, numbers = (np.concatenate(some) for some in zip(*found, strict=True))
                aside = aside.with_more(lines, numbers, reason)
        if len(aside) == self.many:
            why = "; ".join(f"{many:,}: {reason}" for reason, many in aside.counts().items())
            raise InputError(self.path, 0, f"no record can be kept ({why})")
        names = self._names(made)
        first = int(made["submit"].min())
        made["submit"] -= first
        notes = self.said.notes
        if again := _apart(made["id"]):
            notes.append(f"{jobs(again)} with the number of an earlier one: {AGAIN:,} was added to it")
        notes += [f"{jobs(many)} {text}" for text, many in self.told.items() if many]
        notes += self.odd.in_words()
        if len(made["id"]) >= MANY and len(names.get("user", ())) == 1 and (made["user"] == 0).all():
            rule = "a Slurm with PrivateData shows users no jobs but their own"
            notes.append(f"all {len(made['id']):,} jobs are of one user: {rule}")
        begun = made["wait"] >= 0
        machine = processors or (
            most_in_use({name: made[name][begun] for name in ("submit", "wait", "runtime", "size")})
            if begun.any() else int(made["size"].max())
        )  # fmt: skip
        if not processors:
            notes.append(guessed_size(machine))
        steps = [Step(TWICE, changed=self.repeated)] if self.repeated else []
        steps += [Step(f"records left out: {what}", removed=count) for what, count in sorted(self.odd.counts.items())]
        past = Provenance(self.path, self._hash(), self.many, "", tuple(steps))
        counts = dict(zip(SHAPES, np.bincount(made["shape"], minlength=len(SHAPES)).tolist(), strict=True))
        told = Understood(self.many, len(self.kept) - self.many, counts, tuple(notes), tuple(self.missing))
        header = {"UnixStartTime": (str(first),), "TimeZoneString": (self.zone,)}
        return Workload(name, made, machine, past, aside, header, names), told

    def _look(self) -> None:
        """What the records do not have."""
        for name in (one for one in TIMES if one not in self.kept):
            if name != "Eligible":
                raise InputError(self.path, 0, f"sacct was not asked for {name}: add it to --format")
            self.missing.append("when jobs became eligible: held ones, and those that waited for others, seem to wait")
        if not {"TimelimitRaw", "Timelimit"} & self.kept.columns.keys():
            self.missing.append(NO_LIMITS)
        if not {"NNodes", "ReqTRES", "AllocTRES"} & self.kept.columns.keys():
            self.missing.append("on how many nodes jobs ran: sacct was not asked for NNodes")
        self.missing.append("jobs that were held all the time, and those of the last seconds: sacct does not list them")

    def _some(self) -> Iterator[tuple[int, Places]]:
        """The records, some at a time: the place of the first, and which they are."""
        for begin in range(0, self.many, self.at_once):
            end = min(begin + self.at_once, self.many)
            yield begin, slice(begin, end) if self.places is None else self.places[begin:end]
            self.kept.rest()

    def _piece(self, begin: int, some: Places, twice: Ints) -> dict[str, Column]:
        """Some jobs; those that are not kept are set aside."""
        kept, said = self.kept, self.said
        submit, eligible, start, end = self._instants(some)
        word = said.of("State", said.word, some)
        pending, over = word == CODES["PENDING"], ~np.isin(word, [CODES[one] for one in _NOT_OVER])
        gone = np.isin(word, [CODES[one] for one in _LEAVES])
        placed = np.ones(len(word), bool)  # of one that was cancelled while it waited, 22.05 may say that it started
        for name, by_text in said.placed.items():
            placed &= said.of(name, by_text, some)
        start = np.where(gone & ~placed, NEVER, start)
        ran = (start != NEVER) & (end != NEVER) & (over | (word == CODES["REQUEUED"]) | (word == CODES["RESIZING"]))
        left = over & (start == NEVER) & (end != NEVER) & (gone | ~placed)
        asked, given = self._amounts("ReqTRES", said.asked, some), self._amounts("AllocTRES", said.given, some)
        has = said.of("AllocTRES", said.gave, some) & ran
        cores = np.where(has, given.cores, asked.cores)
        for other in (one for one in ("AllocCPUS", "NCPUS", "ReqCPUS") if one in kept):
            cores = np.where(cores > 0, cores, kept.numbers(other, some, 0))
        there = said.of("NodeList", said.there, some)
        ids, line = kept.numbers("JobIDRaw", some, -1), np.arange(begin + 1, begin + 1 + len(word))
        listed, good = np.zeros(len(word), bool), np.ones(len(word), bool)
        listed[twice[slice(*np.searchsorted(twice, [line[0], line[-1] + 1]))] - line[0]] = True
        nodes = np.maximum(asked.nodes, given.nodes)
        for wrong, reason in (
            (
                np.any([one == SKIPPED for one in (submit, start, end)], axis=0),
                "a time that the clock skipped in spring",
            ),
            (submit == NEVER, "no time of submission"),
            (pending & listed, "what waits of an array, whose tasks have records of their own"),
            (pending & ~left, "still waited when the records were read"),
            (over & (start == NEVER) & (end != NEVER) & ~left, "ended, and nobody knows when it started"),
            (~ran & ~left & ~pending & over, "ended, and nobody knows when"),
            (~ran & ~left & ~pending, "still ran when the records were read"),
            (ran & (end < start), "ended before it started"),
            (ran & (start < submit), "started before it was submitted"),
            (left & (end < submit), "left before it was submitted"),
            (cores <= 0, "no processors"),
            (ran & (there < 0), "ran on nodes that the cluster does not have"),
            (cores > MOST_PROCESSORS, f"more than {MOST_PROCESSORS:,} processors"),
            (nodes > MOST_PROCESSORS, f"more than {MOST_PROCESSORS:,} nodes"),
        ):
            now = wrong & good
            self.aside.setdefault(reason, []).extend([(line[now], ids[now])] * bool(now.any()))
            good &= ~now
        field, seconds = said.limit
        limit = said.of(field, seconds, some)
        known = submit != NEVER
        made: dict[str, Column] = {
            "id": ids, "line": line, "submit": submit, "size": cores, "limit": limit,
            "runtime": np.where(ran, end - start, -1), "wait": np.where(ran, start - submit, -1),
            "status": said.of("State", said.status, some),
        }  # fmt: skip
        held = np.where((eligible != NEVER) & known, eligible - submit, 0)
        held = np.where(ran, np.minimum(held, start - submit), held)
        if (held[good] > 0).any():
            made["not_before_s"] = np.maximum(held, 0)
        if left.any():
            made["leaves_s"] = np.where(left, end - submit, -1)
        whole = said.of("Exclusive", said.whole, some) | (kept.numbers("whole", some, 0) > 0)
        hints = Hints(whole, kept.numbers("nodes", some, 0), there)
        made |= self._own(shapes(asked, given, has, cores, hints))
        for column, name in _NAMED.items():
            if name in kept or (column == "feature" and self.cluster is not None):
                made[column] = said.features(some) if column == "feature" else kept.which(name, some)
        suspended = said.of("Suspended", said.suspended, some)
        for those, text in (
            (ran & (suspended > 0), "suspended for a time, which is part of the run time: memory was kept"),
            (ran & (word == CODES["TIMEOUT"]), "ended by the limit: the work might have taken longer"),
            (word == CODES["REQUEUED"], "requeued: each run is a job, submitted when it was requeued"),
            (left, "cancelled before the start: nobody knows for how long they would have run"),
            (ran & (limit < 0), "without a limit of their own"),
        ):
            self.told[text] += int(those.sum())
        if not good.all():
            made = {key: values[good] for key, values in made.items()}
        if broken := beyond_caps({**made, "id": made["line"]}):
            raise InputError(self.path, 0, broken)
        return made

    def _instants(self, some: Places) -> tuple[Ints, Ints, Ints, Ints]:
        """When jobs were submitted, became eligible, started and ended. Where the clock shows an hour twice it is the
        first, unless the order of a job's times or its Elapsed forbid it."""
        kept, said = self.kept, self.said
        submit, eligible, start, end = early = [kept.numbers(one, some, NEVER) for one in TIMES]
        if not any(one + LATE in kept for one in TIMES):
            return submit, eligible, start, end
        late = [np.maximum(a, kept.numbers(one + LATE, some, SKIPPED)) for a, one in zip(early, TIMES, strict=True)]
        self.repeated += sum(int((a != b).sum()) for a, b in zip(early, late, strict=True))
        lasted = said.of("Elapsed", said.lasted, some)
        lasted = np.where(lasted >= 0, lasted, kept.numbers("ElapsedRaw", some, -1))
        lasted = np.where(lasted >= 0, lasted + said.of("Suspended", said.suspended, some), -1)
        start, end = which_hour(submit, start, end, late[2], late[3], lasted)
        return submit, np.where(eligible < submit, late[1], eligible), start, end

    def _amounts(self, name: str, by_text: Amounts, some: Places) -> Amounts:
        """What jobs asked for, or had."""
        which = self.kept.which(name, some)
        nodes = by_text.nodes[which]
        nodes = np.where(nodes > 0, nodes, self.kept.numbers("NNodes", some, 0))
        return Amounts(by_text.cores[which], nodes, by_text.memory_kib[which], by_text.devices[which])

    def _own(self, found: dict[str, Column]) -> dict[str, Column]:
        """Shapes without what the cluster does not count."""
        if self.cluster is None or not self.cluster.kinds:
            return found
        for name in [one for one in found if one.startswith(UNIT)]:
            if (resource := name.removeprefix(UNIT)) not in self.cluster.resources:
                del found[name]
                if (note := f"{resource} of jobs: the cluster counts none") not in self.said.notes:
                    self.said.notes.append(note)
        return found

    def _listed_twice(self) -> Ints:
        """Lines of records that wait, of a job that has another: `3_1` once with its own number, once with the
        array's."""
        nothing = np.empty(0, np.int64)
        waits = self.said.word == CODES["PENDING"]
        if "JobID" not in self.kept or not waits.any():
            return nothing

        def keys(some: Places) -> Ints:
            return np.stack([_shown(self.kept, some), self.kept.numbers("Submit", some, NEVER)], axis=1)

        asked, lines = [np.empty((0, 2), np.int64)], [nothing]
        for begin, some in self._some():
            waiting = np.flatnonzero(self.said.of("State", waits, some))
            asked.append(keys(some)[waiting])
            lines.append(begin + 1 + waiting)
        wanted, which = np.unique(np.concatenate(asked), axis=0, return_inverse=True)
        if not len(wanted):
            return nothing
        found = np.zeros(len(wanted), np.int64)
        place = {tuple(one): at for at, one in enumerate(wanted.tolist())}
        for _, some in self._some():
            shown = keys(some)
            near = np.searchsorted(wanted[:, 0], shown[:, 0]).clip(max=len(wanted) - 1)
            for one in shown[wanted[near, 0] == shown[:, 0]].tolist():
                if (at := place.get(tuple(one), -1)) >= 0:
                    found[at] += 1
        twice: Ints = np.concatenate(lines)[found[which.reshape(-1)] > 1]
        return twice

    def _names(self, made: dict[str, Column]) -> dict[str, tuple[str, ...]]:
        """Columns of places of texts become numbers of names that are there; the names stand behind them."""
        names: dict[str, tuple[str, ...]] = {}
        for column, name in _NAMED.items():
            if column not in made:
                continue
            nothing = NO_NAME if name in ("NodeList", "Reason") else NO_TEXT
            texts = [*self.kept.texts(name), ""] if column != "feature" else self.said.named()
            most = words.MOST_TEXT if name == "NodeList" else 1000
            used = np.bincount(made[column] % len(texts), minlength=len(texts)) > 0
            texts = ["" if text in nothing or not there else printable(text, most)
                     for text, there in zip(texts, used.tolist(), strict=True)]  # fmt: skip
            known = sorted(set(texts) - {""})
            number = {text: at for at, text in enumerate(known)}
            if known:
                made[column] = np.array([number.get(text, -1) for text in texts], np.int64)[made[column]]
                names[column] = tuple(known)
            else:
                del made[column]
        return names

    def _hash(self) -> str:
        """Of the numbers and times of all records in their order: however many calls of sacct they came from."""
        h = hashlib.sha256()
        for name in ("JobIDRaw", "Submit", "Start", "End", "NNodes"):
            for _, some in self._some():
                h.update(self.kept.numbers(name, some, NEVER).astype("<i8").tobytes())
        return h.hexdigest()


def _different(kept: Kept, said: Said) -> Ints | None:
    """Places of the different records, in the order of their submissions; of one that came again, the last. None: all,
    as they are.

    What tells them apart is their place in the database, else number and submission. A job that was resized has a
    record for each size, of which only the start tells."""
    everything, by = slice(0, len(kept)), ("Submit", "JobIDRaw", "Start", "End")

    def numbers(name: str, some: Places = everything) -> Ints:
        return kept.numbers(name, some, NEVER)

    index = kept.numbers("DBIndex", everything, 0)
    if (index[1:] > index[:-1]).all() and index[0] > 0 and _in_order([numbers(name) for name in by]):
        return None
    if (index != 0).all():
        told = [index, numbers("JobIDRaw")]
    else:
        resized = said.of("State", said.resized, everything)
        told = [numbers("JobIDRaw"), numbers("Submit"), np.where(resized, numbers("Start"), NEVER)]
        told.append(_shown(kept, everything))
    order = np.lexsort(told)
    same = np.ones(len(order) - 1, bool)
    for values in told:
        ordered = values[order]
        same &= ordered[1:] == ordered[:-1]
    last = order[np.append(~same, True)]
    del told, order, index
    found: Ints = last[np.lexsort([numbers(name, last) for name in reversed(by)])]
    return None if np.array_equal(found, np.arange(len(kept))) else found


def _shown(kept: Kept, some: Places) -> Ints:
    """The numbers of jobs as people see them; where they were not asked for, the raw ones."""
    raw = kept.numbers("JobIDRaw", some, -1)
    shown = kept.numbers("JobID", some, NEVER)
    return np.where(shown == NEVER, raw, shown)


def _in_order(keys: list[Ints]) -> bool:
    """Whether each is behind the one before it, or alike, by the first key, or by the next where that is the same."""
    same, good = np.True_, True
    for values in keys:
        good = good and not (same & (values[1:] < values[:-1])).any()
        same = same & (values[1:] == values[:-1])
    return good


def _joined(pieces: Iterable[dict[str, Column]], most: int) -> dict[str, Column]:
    """One behind the other, at once in their place: memory that many small arrays give back is not had again."""
    made: dict[str, Column] = {}
    end = 0
    for piece in pieces:
        begin, end = end, end + len(piece["id"])
        for name in (one for one in piece if one not in made):
            made[name] = np.empty(most, np.int64)
            made[name][:begin] = _OTHERWISE.get(name, 0)
        for name, values in made.items():
            values[begin:end] = piece.get(name, _OTHERWISE.get(name, 0))
    for values in made.values():
        values.resize(end, refcheck=False)
    return {name: made[name] for name in sorted(made)}  # whatever the first pieces lack


def _apart(ids: Ints) -> int:
    """Make numbers such that no two jobs share one: of a job that ran again, and of one whose number Slurm gave once
    more, the later ones are AGAIN larger each. How many they are."""
    ordered = np.sort(ids)
    if not (ordered[1:] == ordered[:-1]).any():
        return 0
    order = np.argsort(ids, kind="stable")
    same = np.concatenate([[False], np.diff(ids[order]) == 0])
    place = np.arange(len(ids))
    ids[order] += AGAIN * (place - np.maximum.accumulate(np.where(same, 0, place)))
    return int(same.sum())


_OF_TABLES: Final = (b",", b";", b"\t")


def jobs(many: int) -> str:
    """`1 job`, `2,345 jobs`."""
    return f"{many:,} job{'s' * (many != 1)}"


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
    path: str | Path,
    processors: int = 0,
    zone: str = "UTC",
    block: int = BLOCK,
    cluster: Cluster | None = None,
    memory: int = NO_BOUND,
) -> tuple[Workload, Understood]:
    """The workload of a dump: a folder that `sacct.fetch` filled, or a file of what sacct printed, parsable or JSON,
    packed or not. `block`: bytes that are split at once. `cluster`: that of the jobs, if it is known. `memory`: bytes
    that records may take, beside the workload; what is more waits in temporary files."""
    path = Path(path)
    with closing(History(path.name, zone, memory)) as history:
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
