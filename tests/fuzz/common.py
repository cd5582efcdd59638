"""What the fuzzers of all readers share: values that hurt, records made worse, the rules that every reader keeps."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TypeVar

from dovetail.errors import InputError

T = TypeVar("T")

_WORDS = """
0 -0 1 -1 -5 1.5 -1.5 1e5 1e300 1e999 -1e999 NaN nan inf -inf 0x1F 0b1 +5 5. .5 - -- --1 1,5 1_000 007 1K 4 8 16
9223372036854775807 9223372036854775808 -9223372036854775808 18446744073709551616 1000000000 1000000001
10000000000 10000000001 100000000000 99999999999.9 9007199254740993 0.30000000000000004 1e-320 3,600
None none null NULL Unknown UNKNOWN n/a N/A INVALID True false yes UNLIMITED Partition_Limit
2026-01-31 2026-02-30 2026-13-01 2026-01-31T25:00:00 2026-01-31T24:00:00 2026-01-31T23:59:60 20260131
2026-01-31T08:00 2026-01-31T08:00:00Z 2026-01-31T08:00:00+02:00 2026-01-31T08:00:00.5 31.01.2026 1.1.2026
0001-01-01T00:00:00 9999-12-31T23:59:59 99999-01-01T00:00:00 -2026-01-01 26-01-31 123.batch 7_[1-9]
1-02:03:04 1-02 1-02:03 03:04 99:99 00:00:00 1-99:99:99 99999-23:59:59 100000-00:00:00
completed COMPLETED CANCELLED FAILED RUNNING PENDING
"""
NASTY = (
    *_WORDS.split(), "", " ", "  7  ", "2026-01-31 08:00:00", "31.01.2026 08:00", "01/31/2026 08:00", "Jan 31 2026",
    "1" * 40, "1" * 400, "1." + "0" * 30 + "1", "x" * 5_000, "\u0661\u0662", "\uff11", "\u00a07", "\u200b", "\u202e7",
    "\x00", "1\x002", "\r", "\x0b", "\x1b[31mred", "\x7f", "\x85", "\u2028", "\U0001f600", "CANCELLED by 7", "a|b", "|",
    "a,b", '"', '""', '"a', 'a"b', '"a,b"', "'", "\\", "\\n", "#", ";", "$HOME", "%s", "{}", "../x",
)  # fmt: skip
"""Texts that programs stumble over: at caps and beyond, in other notations, not numbers, not printable."""


@dataclass
class Tally:
    """Records of files: all, those that were mutated, and what became of them. Damage to the bytes of a whole file
    counts as one mutated record."""

    files: int = 0
    records: int = 0
    mutated: int = 0
    kept: int = 0
    set_aside: int = 0
    refused: int = 0
    """Records of files that were refused as a whole."""
    refused_files: int = 0

    def add(self, other: Tally) -> None:
        for one in fields(self):
            setattr(self, one.name, getattr(self, one.name) + getattr(other, one.name))

    def check(self) -> None:
        assert self.records == self.kept + self.set_aside + self.refused, f"records are lost: {self}"


def asked(reader: Callable[[], T]) -> tuple[T | None, InputError | None]:
    """What a reader gives, or how it refuses: in one line that a terminal can show. Other errors go through."""
    try:
        return reader(), None
    except InputError as error:
        text = str(error)
        assert text.isprintable(), f"not one printable line: {text!r}"
        assert len(text) < 2_000, f"{len(text):,} characters: {text[:300]!r}"
        return None, error


def written(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def worse_fields(texts: list[str], rng: random.Random) -> list[str]:
    """The fields of a record with one of them, or their number or order, made worse."""
    texts, place, way = list(texts), rng.randrange(len(texts)), rng.randrange(10)
    if way <= 3:
        texts[place] = rng.choice(NASTY)
    elif way == 4:
        texts[place] = "-" + texts[place]
    elif way == 5:
        del texts[place]
    elif way == 6:
        texts.insert(place, rng.choice((texts[place], "", "7")))
    elif way == 7:
        other = rng.randrange(len(texts))
        texts[place], texts[other] = texts[other], texts[place]
    elif way == 8:
        texts[place] = ""
    else:
        rng.shuffle(texts)
    return texts


def worse_bytes(data: bytes, rng: random.Random) -> bytes:
    """Bytes changed, lost or put in at one place."""
    at, way = rng.randrange(len(data) + 1), rng.randrange(5)
    if way == 0:
        return data[:at]
    if way == 1:
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
    if way == 2:
        return data[:at] + rng.randbytes(rng.randrange(1, 40)) + data[at:]
    if way == 3:
        return data[:at] + data[at + rng.randrange(1, 40) :]
    return data[:at] + data[max(0, at - rng.randrange(1, 40)) :]
