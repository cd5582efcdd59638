"""The records that sacct prints, as frames: parsable with any delimiter, or JSON; packed or not.

sacct quotes nothing: the name of a job may hold the delimiter and the end of a line. Where a stretch of records is
clean, polars splits it; else it is split record by record, and what does not come out with the right number of fields
is set aside. Both give the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import InputError
from dovetail.units import printable

if TYPE_CHECKING:
    import polars as pl

FIELDS: Final = (
    "DBIndex", "JobIDRaw", "JobID", "Submit", "Eligible", "Start", "End", "Suspended", "State", "TimelimitRaw",
    "ReqTRES", "AllocTRES", "ReqNodes", "NNodes", "NodeList", "User", "Account", "Partition", "QOS", "Reservation",
    "Constraints", "Reason", "Flags", "Restarts", "Licenses", "Exclusive", "Cluster", "JobName",
)  # fmt: skip
"""What is asked for, as far as a version has it; the name last, since it may hold anything."""
NOT_IN_OLDER: Final = ("Restarts", "Licenses", "Exclusive")
"""Those that not every version has that is read."""
FREE: Final = (
    "JobName", "SubmitLine", "Comment", "AdminComment", "SystemComment", "WorkDir", "Reason", "Constraints", "Extra",
    "StdErr", "StdIn", "StdOut", "Container", "WCKey", "Licenses",
)  # fmt: skip
"""Fields in which anything may be written."""
TOLD_OTHERWISE: Final = {"Reserved": "Planned"}
"""Names of older versions."""
NEEDED: Final = ("Submit", "State")
BLOCK: Final = 4 << 20
"""Bytes that are split at a time, unless another number is given: all that a reader holds of a dump at once."""
MOST_RECORD: Final = 1 << 20
"""Bytes of a record."""
_SEPARATOR: Final = b"\x1f"
_ODD: Final = re.compile(rb"[\n\r\0\x1f]")
"""What a record may hold only in a text that somebody wrote."""
_NO_VALUE: Final = 0xFFFFFFFE
"""From here on numbers of 32 bits are Slurm's words: no value, no limit."""
_NAME: Final = re.compile(r"[A-Za-z]+")
_PIECE: Final = 1 << 17
"""Bytes that are looked through at a time."""
_LONGEST_HEADER: Final = 1 << 14
_WIDEST: Final = 64
"""Characters of a delimiter."""


@dataclass(frozen=True)
class Layout:
    """How records stand in a dump: the delimiter, whether it stands at their end too, and their fields."""

    delimiter: bytes
    closed: bool
    fields: tuple[str, ...]
    line: bytes = b"\n"

    @property
    def end(self) -> bytes:
        """What ends a record."""
        return self.delimiter * self.closed + self.line


@dataclass(frozen=True)
class Stretch:
    """Some records on their way: a frame of texts, and those that have not the right number of fields: their numbers,
    counted from the first of the dump."""

    frame: pl.DataFrame
    broken: tuple[int, ...] = ()


def layout_of(head: bytes) -> Layout | None:
    """The layout that the first line of a dump tells; None if it is not sacct's."""
    first = head.removeprefix(b"\xef\xbb\xbf").partition(b"\n")[0]
    line = first.removesuffix(b"\r").decode("utf-8", "replace")
    name = _NAME.match(line)
    if name is None or name[0] not in KNOWN or len(line) > _LONGEST_HEADER:
        return None
    for wide in range(1, _WIDEST + 1):  # the shortest text between which all are names of fields
        delimiter = line[name.end() : name.end() + wide]
        closed = line.endswith(delimiter)
        fields = (line.removesuffix(delimiter) if closed else line).split(delimiter) if delimiter else []
        known = sum(one in KNOWN for one in fields)
        if known > 1 and len(set(fields)) == len(fields) and all(map(_NAME.fullmatch, fields)):
            named = tuple(TOLD_OTHERWISE.get(one, one) for one in fields)
            return Layout(delimiter.encode(), closed, named, b"\r\n" if first.endswith(b"\r") else b"\n")
    return None


def stretches(blocks: Iterator[bytes], path: str, size: int = BLOCK, only: Collection[str] = ()) -> Iterator[Stretch]:
    """The records of a parsable dump with its header, a stretch at a time. InputError if it is none. `only`: the fields
    that are wanted; all, if none is named."""
    parts, held, layout, number = list[bytes](), 0, None, 0
    for block in blocks:
        parts.append(block)
        held += len(block)
        if layout is None:
            if b"\n" not in block and held < MOST_RECORD:
                continue
            layout, rest = _headed(b"".join(parts), path)
            parts, held = [rest], len(rest)
        if held >= size:
            rest = parts.pop()
            if (cut := rest.rfind(layout.end)) < 0:  # none in the last block, or across its beginning
                rest, parts = b"".join([*parts, rest]), []
                cut = rest.rfind(layout.end)
            if cut >= 0:
                cut += len(layout.end)
                made, many, left = _stretch(b"".join([*parts, rest[:cut]]), layout, number, only)
                parts, rest, number = [], left + rest[cut:], number + many
                yield made
            elif held > size + MOST_RECORD:
                raise InputError(path, 0, f"a record of more than {MOST_RECORD:,} bytes")
            parts, held = [rest], len(rest)
    rest = b"".join(parts)
    if layout is None:
        layout, rest = _headed(rest, path)
    if rest:
        made, many, left = _stretch(rest if rest.endswith(layout.end) else rest + layout.end, layout, number, only)
        yield replace(made, broken=(*made.broken, *[number + many] * bool(left)))


def _headed(data: bytes, path: str) -> tuple[Layout, bytes]:
    """The layout that the first line tells, and what is behind it."""
    return _layout(data + b"\n", path), data.partition(b"\n")[2]


def _layout(head: bytes, path: str) -> Layout:
    layout = layout_of(head[:MOST_RECORD])
    if layout is None:
        raise InputError(path, 1, "not the header of sacct -p or -P with the names of its fields")
    if missing := [name for name in NEEDED if name not in layout.fields]:
        raise InputError(path, 1, f"sacct was not asked for {' and '.join(missing)}: add it to --format")
    if not {"JobID", "JobIDRaw"} & set(layout.fields):
        raise InputError(path, 1, "sacct was asked for neither JobIDRaw nor JobID: add it to --format")
    return layout


def _stretch(data: bytes, layout: Layout, number: int, only: Collection[str]) -> tuple[Stretch, int, bytes]:
    """Records as a frame, how many they are, and what is left of one that goes on. `number`: of the first."""
    import polars as pl

    if layout.line != b"\n":
        data, layout = data.replace(layout.line, b"\n"), replace(layout, line=b"\n")
    whole = _clean(data, layout, only)
    if whole is not None:
        return Stretch(whole), len(whole), b""
    odd, plain, made, many, left = _apart(data, layout)
    broken = tuple(number + at for at, fields in odd if len(fields) != len(layout.fields))
    kept = [(at, fields) for at, fields in odd if len(fields) == len(layout.fields)]
    clean = _clean(layout.end.join(made) + layout.end, layout, only) if made else None
    if made and clean is None:  # not UTF-8
        kept = sorted([*kept, *((at, one.split(layout.delimiter)) for at, one in zip(plain, made, strict=True))])
        plain = []
    slow = _frame([fields for _, fields in kept], layout, only)
    both = slow if clean is None else pl.concat([clean, slow])
    order = np.argsort(np.array([*plain, *(at for at, _ in kept)], np.int64), kind="stable")
    return Stretch(both[order], broken), many, left


def slowly(data: bytes, layout: Layout, number: int) -> tuple[Stretch, int, bytes]:
    """The same, each record by itself."""
    odd, _, _, many, left = _apart(data, layout, plain=False)
    broken = tuple(number + at for at, fields in odd if len(fields) != len(layout.fields))
    rows = [fields for _, fields in odd if len(fields) == len(layout.fields)]
    return Stretch(_frame(rows, layout, ()), broken), many, left


def _frame(rows: Sequence[Sequence[bytes]], layout: Layout, only: Collection[str]) -> pl.DataFrame:
    import polars as pl

    columns = list(zip(*rows, strict=True)) or [()] * len(layout.fields)
    return pl.DataFrame({
        name: pl.Series([one.decode("utf-8", "replace") for one in column], dtype=pl.String)
        for name, column in zip(layout.fields, columns, strict=True) if not only or name in only
    })  # fmt: skip


def _apart(
    data: bytes, layout: Layout, plain: bool = True
) -> tuple[list[tuple[int, list[bytes]]], list[int], list[bytes], int, bytes]:
    """Records that want a closer look, by their place and with their fields, and if `plain` those that do not, by place
    and as they are; how many there are, and what is left of one that goes on.

    A piece with too few fields goes on behind the end of its line, unless what follows is whole by itself. Where one
    field alone is free text, it has what is too much."""
    wanted, between = len(layout.fields), layout.end
    free = [at for at, name in enumerate(layout.fields) if name in FREE]
    odd, places, clean, many = list[tuple[int, list[bytes]]](), list[int](), list[bytes](), 0
    begun, held, have = list[bytes](), 0, 0

    def take(pieces: list[bytes]) -> None:
        nonlocal many
        fields = between.join(pieces).split(layout.delimiter)
        if len(fields) > wanted and len(free) == 1:
            last = free[0] + len(fields) - wanted + 1
            fields = [*fields[: free[0]], layout.delimiter.join(fields[free[0] : last]), *fields[last:]]
        odd.append((many, fields))
        many += 1

    for piece in data.removesuffix(between).split(between):
        inside = piece.count(layout.delimiter)
        if inside >= wanted - 1 or held > MOST_RECORD:
            if begun:
                take(begun)
                begun, held = [], 0
            if plain and inside == wanted - 1 and not _ODD.search(piece):
                places.append(many)
                clean.append(piece)
                many += 1
                continue
        have = have + inside + layout.closed if begun else inside + 1
        begun.append(piece)
        held += len(piece)
        if have >= wanted:
            take(begun)
            begun, held = [], 0
    return odd, places, clean, many, between.join(begun) + between if begun else b""


def _clean(data: bytes, layout: Layout, only: Collection[str]) -> pl.DataFrame | None:
    """The frame of records in which no text holds a delimiter or the end of a line; else None."""
    import polars as pl

    if any(odd in data for odd in (_SEPARATOR, b"\r", b"\0")) or not _utf8(data):
        return None
    delimiter, mark = layout.delimiter, layout.delimiter[:1]
    twice = layout.closed and len(delimiter) > 2 and delimiter.endswith(mark) and delimiter.count(mark) == 2
    if not twice and len(delimiter) > 1:
        data, mark = data.replace(delimiter, _SEPARATOR), _SEPARATOR
    lines, apart = _count(data, b"\n"), 1 + twice  # split at both ends: what is between them is a field more
    inside = apart * (len(layout.fields) - (not layout.closed))
    if _count(data, mark) != inside * lines or (twice and data.count(delimiter) * apart != inside * lines):
        return None  # an end of a line, or a delimiter, within a text
    if not twice and not _even(data, mark, inside):
        return None
    names = {apart * at: name for at, name in enumerate(layout.fields) if not only or name in only}
    behind = {inside - 1: delimiter[1:-1], inside: b""} if twice else {inside: b""} if layout.closed else {}
    try:
        frame = pl.read_csv(
            data, separator=mark.decode("latin-1"), has_header=False, infer_schema=False, quote_char=None,
            columns=sorted({*names, *behind}), new_columns=[names.get(at, f"{at}") for at in range(inside + 1)],
            empty_string_is_null=False,
        )  # fmt: skip
    except pl.exceptions.PolarsError:  # the first line has another number of fields
        return None
    ended = all((frame[f"{at}"] == text.decode()).all() for at, text in behind.items())
    return frame.select(names.values()) if ended and len(frame) == lines else None


def _count(data: bytes, one: bytes) -> int:
    """How often a byte is there: by pieces that a processor keeps at hand, some times as fast as bytes.count."""
    values = np.frombuffer(data, np.uint8)
    return sum(int(np.count_nonzero(values[at : at + _PIECE] == one[0])) for at in range(0, len(values), _PIECE))


def _even(data: bytes, mark: bytes, inside: int) -> bool:
    """Whether all lines have so many of a byte."""
    ends = _places(data, b"\n")
    return np.array_equal(np.searchsorted(_places(data, mark), ends), inside * np.arange(1, len(ends) + 1))


def _places(data: bytes, one: bytes) -> Ints:
    """Where a byte stands."""
    return np.flatnonzero(np.frombuffer(data, np.uint8) == one[0])


def _utf8(data: bytes) -> bool:
    try:
        return data.isascii() or bool(data.decode("utf-8"))
    except UnicodeDecodeError:
        return False


def of_json(data: bytes, path: str) -> Stretch:
    """The records of `sacct --json`, of any version, with the fields that they would have in a parsable dump."""
    import polars as pl

    try:
        jobs = json.loads(data)["jobs"]
        rows = [_of_object(job) for job in jobs]
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise InputError(path, 0, f"not what sacct --json prints: {printable(repr(error))}") from error
    columns = {name: [row.get(name, "").encode("utf-8", "replace").decode() for row in rows] for name in _OF_JSON}
    return Stretch(pl.DataFrame({name: pl.Series(texts, dtype=pl.String) for name, texts in columns.items()}))


def _of_object(job: Mapping[str, Any]) -> dict[str, str]:
    """One job of JSON as fields of texts. A number that is not set is an object in newer versions, 0 in older."""
    times, array, het = job["time"], job.get("array") or {}, job.get("het") or {}
    raw = int(job["job_id"])
    shown = str(raw)
    array_id, task = int(array.get("job_id") or 0), _number(array.get("task_id"))
    het_id = int(het.get("job_id") or 0)
    if array_id:
        tasks = array.get("task") or ""
        shown = f"{array_id}_{task}" if task is not None and not tasks else f"{array_id}_[{tasks}]"
    elif het_id:
        shown = f"{het_id}+{_number(het.get('job_offset')) or 0}"
    states = job["state"]["current"]
    state = ",".join(states) if isinstance(states, list) else str(states)
    limit = times.get("limit")
    minutes = _number(limit)
    infinite = isinstance(limit, dict) and bool(limit.get("infinite"))
    unlimited = infinite or (minutes is not None and minutes >= _NO_VALUE)
    start, end = (int(times.get(name) or 0) for name in ("start", "end"))
    nodes = job.get("nodes") or ""
    tres = job.get("tres") or {}
    return {
        "JobIDRaw": str(raw), "JobID": shown, "Submit": str(int(times.get("submission") or 0)),
        "Eligible": _known(times.get("eligible")), "Start": _known(start), "End": _known(end),
        "Suspended": str(int(times.get("suspended") or 0)), "State": state,
        "TimelimitRaw": "UNLIMITED" if unlimited else "" if minutes is None else str(minutes),
        "ReqTRES": _tres(tres.get("requested")), "AllocTRES": _tres(tres.get("allocated")),
        "NNodes": str(job.get("allocation_nodes") or ""), "NodeList": str(nodes), "User": str(job.get("user") or ""),
        "Account": str(job.get("account") or ""), "Partition": str(job.get("partition") or ""),
        "QOS": str(job.get("qos") or ""), "Reservation": str((job.get("reservation") or {}).get("name") or ""),
        "Constraints": str(job.get("constraints") or ""), "Reason": str(job["state"].get("reason") or ""),
        "Flags": ",".join(job.get("flags") or ()), "Restarts": str(_number(job.get("restart_cnt")) or 0),
        "Licenses": str(job.get("licenses") or ""), "Cluster": str(job.get("cluster") or ""),
        "Exclusive": str(job.get("exclusive") or ""),
        "JobName": str(job.get("name") or ""),
    }  # fmt: skip


def _number(given: Any) -> int | None:
    """A number of JSON: itself, or an object that says whether it is set."""
    if isinstance(given, Mapping):
        return int(given["number"]) if given.get("set") else None
    return None if given is None else int(given)


def _known(given: Any) -> str:
    seconds = _number(given)
    return str(seconds) if seconds else "Unknown"


def _tres(given: Sequence[Mapping[str, Any]] | None) -> str:
    """`cpu=4,mem=8000M` of a list of objects; a type's name is behind a slash, as in `gres/gpu:a100`."""
    parts = []
    for one in given or ():
        name, count = f"{one['type']}/{one['name']}" if one.get("name") else str(one["type"]), one.get("count")
        if count is not None and count >= 0:  # energy that nobody measured is -2, or null
            parts.append(f"{name}={int(count)}{'M' * (name == 'mem')}")
    return ",".join(parts)


_OF_JSON: Final = tuple(name for name in FIELDS if name not in ("DBIndex", "ReqNodes"))
KNOWN: Final = (
    *FIELDS, "Account", "AdminComment", "AllocCPUS", "AllocNodes", "AssocID", "AveCPU", "AveCPUFreq", "AveDiskRead",
    "AveDiskWrite", "AvePages", "AveRSS", "AveVMSize", "BlockID", "Comment", "ConsumedEnergy", "ConsumedEnergyRaw",
    "Container", "CPUTime", "CPUTimeRAW", "DerivedExitCode", "Elapsed", "ElapsedRaw", "ExitCode", "Extra",
    "FailedNode", "GID", "Group", "Layout", "MaxDiskRead", "MaxDiskWrite", "MaxPages", "MaxRSS", "MaxVMSize",
    "McsLabel", "MinCPU", "NCPUS", "NTasks", "OverSubscribe", "Planned", "PlannedCPU", "PlannedCPURAW", "Priority",
    "QOSRAW", "QOSREQ", "ReqCPUFreq", "ReqCPUS", "ReqMem", "ReqReservation", "ReservationId", "Reserved", "ResvCPU",
    "ResvCPURAW", "SegmentSize", "SLUID", "StdErr", "StdIn", "StdOut", "SubmitLine", "SystemComment", "SystemCPU",
    "Timelimit", "TotalCPU", "TRESUsageInTot", "TRESUsageOutTot", "UID", "UserCPU", "WCKey", "WCKeyID", "WorkDir",
)  # fmt: skip
"""The fields by which a header is known to be sacct's."""
