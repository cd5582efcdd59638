"""The Standard Workload Format (SWF 2.2), in and out. Every line is kept, or set aside with a reason."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import repeat
from pathlib import Path
from typing import IO, Any, Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Ints
from dovetail.errors import InputError, SettingError
from dovetail.io.streams import BLOCK, MOST_BYTES, packed, regular_file, unpacked
from dovetail.io.swf_wide import UNREADABLE, Wide, fields_behind
from dovetail.kernels import swf as kernel
from dovetail.model.cluster import MOST_MW
from dovetail.model.workload import LICENCE, REQUIRED, UNIT, Column, Provenance, SetAside, Step, Workload
from dovetail.units import printable
from dovetail.version import __version__

FIELDS: Final = (
    "id", "submit", "wait", "runtime", "allocated", "cpu_s", "memory_kb", "size", "limit",
    "requested_memory_kb", "status", "user", "group", "name", "queue", "partition", "after", "think_s",
)  # fmt: skip
"""The columns that SWF's fields 1 to 18 become."""

REASONS: Final = {
    kernel.FIELDS: "not 18 fields",
    kernel.NUMBER: "a field is not a plain decimal number",
    kernel.BYTES: "a byte that is not printable ASCII",
    kernel.LONG: "a line longer than 4,096 bytes",
    kernel.HUGE: "a number beyond 64 bits",
    kernel.TIME: "a time beyond 10,000,000,000 s",
    kernel.SIZE: "a size beyond 1,000,000,000 processors",
    kernel.FRACTION: "a fraction in a field that counts",
    kernel.JOB: "a job number below 0",
    kernel.PARTIAL: "a partial execution (status 2, 3 or 4)",
    kernel.DUPLICATE: "a job number that an earlier line has",
}
"""Why a line was set aside, by the kernel's code."""

TIMES: Final = ("submit", "wait", "runtime", "limit", "think_s", "deadline_s", "soft_limit", "not_before_s", "leaves_s")
SIZES: Final = ("size", "allocated")
MOST_COMMENTS: Final = 10_000
"""Comment lines that a file may have before its first job."""
PIECE = BLOCK
"""Bytes handed to the kernel at a time; what comes out does not depend on it."""
_KEY: Final = re.compile(r"([A-Z][A-Za-z0-9]*):(?!//)\s*(.*)")
_COUNT: Final = re.compile(r"\s*([0-9]{1,10})(?![0-9])")
_SUFFIXES: Final = re.compile(r"(\.swf|\.txt)?(\.gz|\.xz|\.zst)?$", re.IGNORECASE)
_MANY: Final = 30_000  # lines at a time; not a power of two, or all columns of a row would share cache sets


def read_swf(path: str | Path, *, name: str | None = None, most_bytes: int = MOST_BYTES) -> Workload:
    """Read a log: plain, gzip, xz or zstd, whatever its name. The rule for every wart: docs/workloads.md."""
    path = regular_file(Path(path))
    try:
        with path.open("rb") as stream:
            shown = _SUFFIXES.sub("", path.name) if name is None else name
            workload = read_swf_stream(stream, shown, str(path), most_bytes=most_bytes)
    except OSError as error:
        raise InputError(path, 0, f"cannot be read: {error.strerror}") from error
    return replace(workload, provenance=replace(workload.provenance, source=path.name))


def read_swf_stream(stream: IO[bytes], name: str, source: str, *, most_bytes: int = MOST_BYTES) -> Workload:
    """Read a log from an open binary stream. `source` is what errors and the provenance call it."""
    digest = hashlib.sha256()
    lines, fields = _Lines(source), Wide()
    for block in unpacked(stream, source, most_bytes):
        digest.update(block)
        lines.feed_all(fields.narrow(block))
    lines.feed_all(fields.narrow(b"", final=True))
    lines.feed(b"", final=True)
    workload = _workload(lines, name, source, digest.hexdigest(), bool(fields.wide))
    return fields.added(workload) if fields.wide else workload


@dataclass
class _Lines:
    """Lines as they come out of the kernel, a part per call, and the bytes of a line that is not complete."""

    source: str
    buffer: npt.NDArray[np.uint8] = field(default_factory=lambda: np.empty(PIECE + kernel.HOLD, np.uint8))
    held: int = 0
    state: Ints = field(default_factory=lambda: np.zeros(10, np.int64))
    rows: Ints = field(default_factory=lambda: np.empty((kernel.ROW, _MANY), np.int64))
    cpu: npt.NDArray[np.float64] = field(default_factory=lambda: np.empty(_MANY, np.float64))
    aside: Ints = field(default_factory=lambda: np.empty((_MANY, 3), np.int64))
    slow: Ints = field(default_factory=lambda: np.empty((_MANY, 3), np.int64))
    comments: Ints = field(default_factory=lambda: np.empty((1_000, 2), np.int64))
    part: Ints = field(default_factory=lambda: np.zeros(8, np.int64))
    column_parts: list[list[Column]] = field(default_factory=lambda: [[] for _ in range(kernel.ROW)])
    aside_parts: list[Ints] = field(default_factory=list)
    header: list[str] = field(default_factory=list)
    known: npt.NDArray[np.bool_] = field(default_factory=lambda: np.zeros(kernel.ROW, np.bool_))
    """Columns with a value that is not -1."""

    def feed_all(self, data: bytes) -> None:
        """As `feed`, of any length."""
        for start in range(0, len(data), PIECE):
            self.feed(data[start : start + PIECE])

    def feed(self, data: bytes, *, final: bool = False) -> None:
        """Read all complete lines of what is held and `data`; hold the rest."""
        end = self.held + len(data)
        self.buffer[self.held : end] = np.frombuffer(data, np.uint8)
        state = self.state
        state[kernel.POS], state[kernel.END], state[kernel.FINAL] = 0, end, final
        more = True
        while more:
            state[kernel.N_ROWS :] = 0
            more = kernel.parse_lines(
                self.buffer, state, self.rows, self.cpu, self.aside, self.slow, self.comments, self.part
            )
            self._collect()
        begin = int(state[kernel.POS])
        self.held = end - begin
        self.buffer[: self.held] = self.buffer[begin:end].copy()

    def _collect(self) -> None:
        n_rows, n_aside, n_comments, n_slow = (int(n) for n in self.state[kernel.N_ROWS :])
        for row, start, stop in self.slow[:n_slow]:
            self.cpu[row] = float(self.buffer[start:stop].tobytes())
        for start, stop in self.comments[:n_comments]:
            self.header.append(self.buffer[start + 1 : stop].tobytes().decode("utf-8", "replace"))
        if len(self.header) > MOST_COMMENTS:
            raise InputError(self.source, 0, f"more than {MOST_COMMENTS:,} comment lines before the first job")
        for place, parts in enumerate(self.column_parts):
            part = (self.cpu if place == 5 else self.rows[place])[:n_rows]
            # A column of nothing but -1 is common: keep one number instead of thousands.
            unknown = bool((part == -1).all())
            parts.append(np.broadcast_to(part.dtype.type(-1), n_rows) if unknown else part.copy())
            self.known[place] |= not unknown
        if n_aside:
            self.aside_parts.append(self.aside[:n_aside].copy())

    def columns(self) -> dict[str, Column]:
        """The columns of all kept lines. Takes the parts apart: memory never holds two copies of all."""
        columns: dict[str, Column] = {}
        for name, parts, known in zip((*FIELDS, "line"), self.column_parts, self.known, strict=True):
            if known or name in REQUIRED or name == "line":
                columns[name] = np.concatenate(parts)
            parts.clear()
        return columns


def _workload(lines: _Lines, name: str, source: str, sha256: str, wide: bool) -> Workload:
    """Put together what was read: duplicates set aside, rows in order, header understood."""
    header = _header(lines.header)
    columns = lines.columns()
    aside = _set_aside(lines.aside_parts)
    if wide:
        words = {REASONS[kernel.FIELDS]: UNREADABLE}
        aside = replace(aside, reasons=tuple(words.get(text, text) for text in aside.reasons))
    first = _first_of_each(columns["id"])
    if not first.all():
        aside = aside.with_more(columns["line"][~first], columns["id"][~first], REASONS[kernel.DUPLICATE])
        columns = {key: values[first] for key, values in columns.items()}
    n = len(columns["id"])
    if not n and len(aside):
        at = int(np.argmin(aside.line))
        rule = f"{aside.reasons[aside.reason[at]]}; no line of the file is a job: is it an SWF log?"
        raise InputError(source, int(aside.line[at]), rule)
    if not n and not lines.header:
        raise InputError(source, 0, "neither a header nor a job: the file is empty")
    steps: tuple[Step, ...] = ()
    submit = columns["submit"]
    moved = int(np.count_nonzero(submit < np.maximum.accumulate(submit)))
    if moved:
        order = np.argsort(submit, kind="stable")
        columns = {key: values[order] for key, values in columns.items()}
        steps = (Step("sorted by submit", changed=moved),)
    thanks = " ".join(" ".join(header.get("Acknowledge", ())).split())
    provenance = Provenance(source, sha256, n + len(aside), thanks, steps)
    return Workload(name, columns, _processors(header), provenance, aside, header)


def _first_of_each(ids: Ints) -> npt.NDArray[np.bool_]:
    """True where an id occurs for the first time."""
    if len(ids) < 2 or bool(np.all(ids[1:] > ids[:-1])):
        return np.ones(len(ids), np.bool_)
    first = np.zeros(len(ids), np.bool_)
    first[np.unique(ids, return_index=True)[1]] = True
    return first


def _set_aside(parts: Sequence[Ints]) -> SetAside:
    """The lines that the kernel set aside, with the words for their codes."""
    if not parts:
        return SetAside()
    table = np.concatenate(parts)
    codes, reason = np.unique(table[:, 2], return_inverse=True)
    return SetAside(
        table[:, 0].copy(), table[:, 1].copy(), reason.astype(np.int16), tuple(REASONS[int(c)] for c in codes)
    )


def _header(comments: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Comments as keys with their values. A line without a key continues the value above it, on a new line;
    after an empty comment, or above all keys, it is a value of the key ''."""
    header: dict[str, list[str]] = {}
    key = ""
    for comment in comments:
        text = printable(comment.replace("\t", " ").strip(), kernel.LONGEST)
        match = _KEY.match(text)
        if match:
            key = match[1]
            header.setdefault(key, []).append(match[2])
        elif not text:
            key = ""
        elif key:
            header[key][-1] += f"\n{text}"
        else:
            header.setdefault("", []).append(text)
    return {key: tuple(values) for key, values in header.items()}


def header_count(header: Mapping[str, tuple[str, ...]], key: str) -> int:
    """The first number in a header's value (`MaxProcs: 1664 (72, 1368, 224)` is 1664), 0 if there is none."""
    for value in header.get(key, ()):
        if match := _COUNT.match(value):
            return int(match[1])
    return 0


def _processors(header: Mapping[str, tuple[str, ...]]) -> int:
    count = header_count(header, "MaxProcs") or header_count(header, "MaxNodes")
    return count if count <= kernel.MOST_PROCESSORS else 0


def _any_beyond(columns: Mapping[str, Column], names: Sequence[str], most: int) -> bool:
    present = (columns[name] for name in names if name in columns)
    return any(bool(((values > most) | (values < -most)).any()) for values in present)


def beyond_caps(columns: Mapping[str, Column]) -> str:
    """Which rule the values of a workload break, '' if none. Later sums rely on the caps."""
    status = columns.get("status", np.empty(0, np.int64))
    cpu = columns.get("cpu_s", np.empty(0, np.float64))
    named = [name for name in columns if name.startswith((UNIT, LICENCE))]
    sizes = [*SIZES, "gpus", "units", "per_node", "gpu_share", *named]
    checks = (
        (REASONS[kernel.TIME], _any_beyond(columns, TIMES, kernel.MOST_SECONDS)),
        (REASONS[kernel.SIZE], _any_beyond(columns, sizes, kernel.MOST_PROCESSORS)),
        (f"a power beyond {MOST_MW:,} mW", _any_beyond(columns, ("power_mw",), MOST_MW)),
        (REASONS[kernel.NUMBER], not np.isfinite(cpu).all()),
        (REASONS[kernel.HUGE], bool((abs(cpu) >= 2.0**63).any())),
        (REASONS[kernel.JOB], bool((columns["id"] < 0).any())),
        (REASONS[kernel.PARTIAL], bool(((status >= 2) & (status <= 4)).any())),
        (REASONS[kernel.DUPLICATE], not _first_of_each(columns["id"]).all()),
    )
    return next((rule for rule, broken in checks if broken), "")


def write_swf(workload: Workload, path: str | Path, *, wait: Ints | None = None, note: str = "") -> None:
    """Write a log that `read_swf` reads back with equal columns, packed by the suffix (.gz, .xz, .zst).

    `wait` takes the place of the recorded waits, as the waits of a simulated schedule do.
    """
    columns: dict[str, Column] = dict(workload.columns)
    if wait is not None:
        if len(wait) != len(workload):
            raise ValueError(f"wait has {len(wait)} values for {len(workload)} jobs")
        columns["wait"] = np.asarray(wait, np.int64)
    if broken := beyond_caps(columns):
        raise SettingError(f"workload {workload.name!r} cannot be written as SWF: {broken}")
    more = fields_behind(workload)
    line = " ".join(["%s"] * (len(FIELDS) + len(more))) + "\n"
    with packed(Path(path)) as stream:
        stream.write(_header_text(workload, note).encode("utf-8", "replace"))
        for start in range(0, len(workload), _MANY):
            stop = min(start + _MANY, len(workload))
            fields = [_texts(columns[c][start:stop]) if c in columns else repeat("-1") for c in FIELDS]
            fields += [values[start:stop] for values in more]
            stream.write("".join(map(line.__mod__, zip(*fields, strict=False))).encode())


def _texts(values: Column) -> list[Any]:
    """Values as SWF writes them: integers as they are, other numbers in full, without an exponent."""
    if values.dtype == np.int64:
        return values.tolist()  # type: ignore[no-any-return]
    return [int(v) if v.is_integer() else np.format_float_positional(v, trim="-") for v in values.tolist()]


def _header_text(workload: Workload, note: str) -> str:
    header = dict(workload.header)
    count = (str(len(workload)),)
    header["MaxJobs"] = header["MaxRecords"] = count
    if workload.processors and _processors(header) != workload.processors:
        header["MaxProcs"] = (str(workload.processors),)
    done = [f"{s.name} ({s.removed} removed, {s.changed} changed)" for s in workload.provenance.steps]
    notes = [f"written by Dovetail {__version__}" + "".join(f"; {text}" for text in done)]
    header["Note"] = (*header.get("Note", ()), *notes, *([" ".join(note.split())] if note else []))
    loose = header.pop("", ())
    written = [f"; {text}" for text in loose]
    for key, values in header.items():
        for value in values:
            first, *rest = value.split("\n")
            written += [f"; {key}: {first}", *(f";       {text}" for text in rest)]
    if loose:
        written.insert(len(loose), ";")
    return "".join(f"{line.replace(chr(13), ' ')}\n" for line in written)
