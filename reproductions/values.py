"""What a page shows: values by table, row and column, ours beside the printed ones."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from math import isnan
from pathlib import Path
from typing import Final, Literal

from dovetail.errors import DovetailError, InputError

Key = tuple[str, str, str]
"""Table, row, column."""
Content = float | str
Pattern = str | Sequence[str]
"""A name with * and ?, or several."""
KEY: Final = ("table", "row", "column")


class NotRunError(DovetailError):
    """A number that is wanted has no run. A claim that meets it is `not run`."""


@dataclass(frozen=True)
class Value:
    """One number or text that a page may show, and which version of Dovetail it comes from."""

    content: Content
    version: str
    source: Literal["run", "carried"]


@dataclass(frozen=True)
class Pair:
    """A cell with our number and the printed one."""

    key: Key
    ours: float
    printed: float


@dataclass(frozen=True)
class Values:
    """All values of a page. Tables, claims and figures read these and do not care where they come from."""

    ours: Mapping[Key, Value]
    printed: Mapping[Key, Content]

    def number(self, table: str, row: str, column: str) -> float | None:
        """Our number in a cell; None if there is none."""
        found = self.ours.get((table, row, column))
        return None if found is None else _number(found.content)

    def need(self, table: str, row: str, column: str) -> float:
        """Our number in a cell; NotRunError if there is none."""
        found = self.number(table, row, column)
        if found is None:
            raise NotRunError(f"no number in table {table!r}, row {row!r}, column {column!r}")
        return found

    def text(self, table: str, row: str, column: str, form: str = "", missing: str = "") -> str:
        """Our value in a cell as a text, a number in that format."""
        found = self.ours.get((table, row, column))
        if found is None or found.content != found.content:
            return missing
        return found.content if isinstance(found.content, str) else format(found.content, form)

    def printed_number(self, table: str, row: str, column: str) -> float | None:
        """The printed number of a cell; None if there is none, or it is not legible."""
        found = self.printed.get((table, row, column))
        return None if found is None else _number(found)

    def keys(self, table: Pattern = "*", row: Pattern = "*", column: Pattern = "*") -> Iterator[Key]:
        """The cells that match, those of the printed tables first, each in the order of its source."""
        wanted = [[one] if isinstance(one, str) else list(one) for one in (table, row, column)]
        for key in dict.fromkeys((*self.printed, *self.ours)):
            if all(any(fnmatchcase(part, one) for one in some) for part, some in zip(key, wanted, strict=True)):
                yield key

    def numbers(self, table: Pattern = "*", row: Pattern = "*", column: Pattern = "*") -> dict[Key, float]:
        """Our numbers in the cells that match."""
        found = ((key, self.number(*key)) for key in self.keys(table, row, column))
        return {key: number for key, number in found if number is not None}

    def pairs(self, table: Pattern = "*", row: Pattern = "*", column: Pattern = "*") -> list[Pair]:
        """The cells that match and have both numbers."""
        found = ((key, ours, self.printed_number(*key)) for key, ours in self.numbers(table, row, column).items())
        return [Pair(key, ours, printed) for key, ours, printed in found if printed is not None]

    def carried(self, keys: Sequence[Key]) -> list[str]:
        """The versions that carried values among some cells come from; empty where all have runs."""
        known = (self.ours[key] for key in keys if key in self.ours)
        return sorted({value.version for value in known if value.source == "carried"})


def _number(content: Content) -> float | None:
    return None if isinstance(content, str) or isnan(content) else content


def read_lines(path: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """The lines of a CSV file that has just these columns. A file that is not there has none."""
    if not path.is_file():
        return
    with path.open(encoding="utf-8", newline="") as file:
        lines = csv.DictReader(file)
        if tuple(lines.fieldnames or ()) != tuple(columns):
            raise InputError(path, 1, f"the columns are to be {', '.join(columns)}")
        for line in lines:
            if None in line or None in line.values():
                raise InputError(path, lines.line_num, f"not {len(columns)} fields")
            yield line


def content_of(text: str) -> Content:
    """A field of a CSV file: a number where it is one."""
    try:
        return float(text)
    except ValueError:
        return text


def read_printed(folder: Path) -> dict[Key, Content]:
    """The printed numbers of a folder: all of its CSV files but those of runs."""
    files = [path for path in sorted(folder.glob("*.csv")) if path.stem not in ("runs", "figure", "carried")]
    found: dict[Key, Content] = {}
    for path in files:
        for line in read_lines(path, (*KEY, "printed")):
            if (key := _key(line)) in found:
                raise InputError(path, 0, f"{key} is there twice")
            found[key] = content_of(line["printed"])
    return found


def read_carried(folder: Path) -> dict[Key, Value]:
    """Values of a folder whose runs were not kept, with the version that made them."""
    lines = read_lines(folder / "carried.csv", (*KEY, "value", "version"))
    return {_key(line): Value(content_of(line["value"]), line["version"], "carried") for line in lines}


def _key(line: Mapping[str, str]) -> Key:
    return line["table"], line["row"], line["column"]
