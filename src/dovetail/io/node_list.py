"""Lists of nodes in texts: by their numbers, 0-9,12, and by their names, c[1-3,07]."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import product
from math import prod
from typing import Final

from dovetail.units import printable

MOST_NAMED: Final = 3_000_000
"""Nodes that a file may name in all: 300 times 10,000."""
MOST_HOSTS: Final = 1_000_000
"""Hosts that a list may name."""
MOST_CHARACTERS: Final = 1 << 26
"""Of all names that a list stands for."""
MOST_TEXT: Final = 1 << 20
"""Characters of a list that is read."""
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)
_PIECE: Final = re.compile(r"(?:[^,\[\]]|\[[^\[\]]*\])+")
"""What stands between commas that are in no bracket."""
_NUMBERED: Final = re.compile(r"(.*?)(\d{1,9})", re.ASCII | re.DOTALL)


def node_list(text: str, nodes: int, between: str = ",") -> list[int]:
    """The nodes that a text names, in order. ValueError says what is wrong with it, to stand behind it."""
    ranges = [_RANGE.fullmatch(piece.strip()) for piece in text.split(between)]
    if not all(ranges):
        raise ValueError(f"must be numbers of nodes, as in 0-9{between}12")
    first_last = [(int(one[1]), int(one[2] or one[1])) for one in ranges if one]
    if not all(first <= last < nodes for first, last in first_last):
        raise ValueError(f"nodes go from 0 to {nodes - 1:,}, upwards")
    if sum(last - first + 1 for first, last in first_last) > MOST_NAMED:
        raise ValueError(f"more than {MOST_NAMED:,} nodes are named in all")
    return sorted({node for first, last in first_last for node in range(first, last + 1)})


def hosts(text: str) -> tuple[str, ...]:
    """The hosts of a list: `c[1-3,07],f1`, `r[0-1]n[0-3]`, from 24.11 on `n[1-2]-ib`. They stand in its order, but that
    Slurm turns the first of three or more brackets before the second."""
    if len(text) > MOST_TEXT:
        raise ValueError(f"{len(text):,} characters: at most {MOST_TEXT:,} are read")
    found: list[str] = []
    if text.lower() in ("", "(null)", "none assigned"):
        return ()
    pieces = _PIECE.findall(text)
    if sum(map(len, pieces)) + text.count(",") != len(text) + sum(piece.count(",") for piece in pieces):
        raise ValueError(f"{printable(text, 40)!r} is no list of hosts such as c[1-3,7]")
    for piece in pieces:
        if "[" not in piece:
            found.append(piece)
            continue
        parts = re.split(r"\[([^\[\]]*)\]", piece)
        if len(parts) > 9:
            raise ValueError(f"{printable(piece, 40)!r} is no host: more than four brackets")
        counted = [_numbers(part) if at % 2 else (part,) for at, part in enumerate(parts)]
        many = prod(map(len, counted))
        if many + len(found) > MOST_HOSTS or many * len(piece) > MOST_CHARACTERS:
            raise ValueError(f"{printable(piece, 40)!r}: more than {MOST_HOSTS:,} hosts")
        found += ("".join(one) for one in product(*counted))
    return tuple(found)


def _numbers(text: str) -> tuple[str, ...]:
    """`1-3,07` as texts, with the zeros in front that the first of a range has."""
    found: list[str] = []
    for piece in text.split(","):
        ends = _RANGE.fullmatch(piece)
        first, last = (int(ends[1]), int(ends[2] or ends[1])) if ends else (1, 0)
        if not ends or first > last or last - first + len(found) >= MOST_HOSTS:
            raise ValueError(f"{printable(piece, 40)!r} is no range such as 1-3")
        found += (f"{n:0{len(ends[1])}d}" for n in range(first, last + 1))
    return tuple(found)


def ran_on(text: str) -> tuple[str, ...]:
    """The nodes on which a log says that a job ran: by numbers with blanks between, or by a list of names; none, if it
    is neither."""
    if re.fullmatch(r"[0-9 ]*", text):
        return tuple(text.split())
    try:
        return hosts(text)
    except ValueError:
        return ()


def host_list(names: Iterable[str]) -> str:
    """The shortest list of that form, with one bracket, in the order of the names: `c[1-3,07],f1`."""
    runs = list[tuple[str, list[tuple[str, str]]]]()  # a prefix, and ranges of numbers as texts
    for name in names:
        found = _NUMBERED.fullmatch(name)
        front, digits = (found[1], found[2]) if found else (name, "")
        if not digits or not runs or runs[-1][0] != front or not runs[-1][1]:
            runs.append((front, [(digits, digits)] if digits else []))
            continue
        first, last = runs[-1][1][-1]
        if len(digits) == max(len(first), len(f"{int(last) + 1}")) and int(digits) == int(last) + 1:
            runs[-1][1][-1] = (first, digits)
        else:
            runs[-1][1].append((digits, digits))
    return ",".join(front + _bracket(ranges) for front, ranges in runs)


def _bracket(ranges: list[tuple[str, str]]) -> str:
    texts = [first if first == last else f"{first}-{last}" for first, last in ranges]
    return "".join(texts) if len(texts) < 2 and "-" not in "".join(texts) else f"[{','.join(texts)}]"
