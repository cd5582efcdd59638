"""Tables of comma-separated values, read line by line: every line is kept, or set aside with a reason."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import InputError
from dovetail.io.streams import BLOCK, regular_file, unpacked
from dovetail.model.workload import SetAside
from dovetail.units import printable

LONGEST: Final = 4_096
"""Bytes of a line; a longer one is set aside."""
MOST_BYTES: Final = 1 << 28
"""Bytes that a table may unpack to: its rows are held in memory while they are read."""
MOST: Final = 10**9
"""Largest count or amount in a field."""
DUPLICATE: Final = "a job number that an earlier line has"
_COUNT: Final = re.compile(r"[0-9]{1,18}", re.ASCII)


@dataclass(frozen=True)
class Rows:
    """What was read: the numbers of each row, its line, the lines set aside, the hash of the bytes."""

    rows: tuple[tuple[Any, ...], ...]
    line: Ints
    aside: SetAside
    sha256: str

    def column(self, place: int) -> Ints:
        """The numbers at one place of all rows."""
        return np.array([row[place] for row in self.rows], np.int64)


def count(text: str, what: str, least: int = 0, most: int = MOST) -> int:
    """A whole number in a field, within bounds. ValueError says what it should have been."""
    if not _COUNT.fullmatch(text):
        raise ValueError(f"{what} is not a whole number")
    value = int(text)
    if not least <= value <= most:
        raise ValueError(f"{what} is not from {least:,} to {most:,}")
    return value


def read_table(path: str | Path, fields: Sequence[str], parse: Callable[[list[str]], tuple[Any, ...]]) -> Rows:
    """Read a table: plain, gzip, xz or zstd. Its first line must name just these fields, in this order.

    `parse` makes numbers of the texts of a line, the number of the row first. Its ValueError sets the line aside.
    """
    path = regular_file(Path(path))
    digest = hashlib.sha256()
    rows: list[tuple[Any, ...]] = []
    kept: list[int] = []
    aside: dict[str, list[tuple[int, int]]] = {}
    known: set[int] = set()
    number = 0
    for number, line in enumerate(_lines(path, digest.update), 1):
        if number == 1:
            _check_head(path, line, fields)
        elif line.strip():
            try:
                row = parse(_texts(line, len(fields)))
                if row[0] in known:
                    raise ValueError(DUPLICATE)
            except ValueError as error:
                aside.setdefault(str(error), []).append((number, _number(line)))
                continue
            known.add(row[0])
            rows.append(row)
            kept.append(number)
    if not kept and not aside:
        raise InputError(path, 0, "no line behind the names of the fields" if number else "the file is empty")
    if not kept:
        first, reason = min((lines[0][0], reason) for reason, lines in aside.items())
        raise InputError(path, first, f"{reason}; no line of the file can be kept")
    gone = SetAside()
    for reason, lines in aside.items():
        gone = gone.with_more(np.array([n for n, _ in lines]), np.array([i for _, i in lines]), reason)
    return Rows(tuple(rows), np.array(kept, np.int64), gone, digest.hexdigest())


def first_line(path: str | Path) -> str:
    """The first line of a file, unpacked: enough to tell what kind of file it is. Empty where it has none."""
    with regular_file(Path(path)).open("rb") as stream:
        head = next((block for block in unpacked(stream, str(path)) if block), b"")
    return _text(head[:LONGEST].partition(b"\n")[0])


def _lines(path: Path, seen: Callable[[bytes], object]) -> Iterator[bytes]:
    """The lines of a file, unpacked; of one that is too long only its beginning."""
    held = b""
    try:
        with path.open("rb") as stream:
            for block in unpacked(stream, str(path), MOST_BYTES):
                seen(block)
                *whole, held = (held + block).split(b"\n")
                yield from whole
                if len(held) > BLOCK:
                    held = held[: LONGEST + 1]
    except OSError as error:
        raise InputError(path, 0, f"cannot be read: {error.strerror}") from error
    if held:
        yield held


def _text(line: bytes) -> str:
    return line.removeprefix(b"\xef\xbb\xbf").rstrip(b"\r").decode("utf-8", "replace")


def _check_head(path: Path, line: bytes, fields: Sequence[str]) -> None:
    if _text(line) != ",".join(fields):
        found = printable(_text(line[:LONGEST]))
        raise InputError(path, 1, f"the first line must be {','.join(fields)}; it is {found!r}")


def _texts(line: bytes, fields: int) -> list[str]:
    if len(line) > LONGEST:
        raise ValueError(f"a line longer than {LONGEST:,} bytes")
    text = line.rstrip(b"\r").decode("utf-8", "replace")
    if not (text.isascii() and text.isprintable()):
        raise ValueError("a byte that is not printable ASCII")
    texts = text.split(",")
    if len(texts) != fields:
        raise ValueError(f"not {fields} fields")
    return texts


def _number(line: bytes) -> int:
    """The number that stands first in a line, -1 if there is none."""
    digits = re.match(rb"[0-9]{1,18}(?=,)", line)
    return int(digits[0]) if digits else -1
