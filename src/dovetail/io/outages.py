"""Outages of nodes, from a table (docs/nodes.md has the form)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import Final

from dovetail.errors import InputError
from dovetail.files import beside
from dovetail.io.csv import read_table
from dovetail.io.node_list import MOST_NAMED, node_list
from dovetail.model.cluster import Outage
from dovetail.units import parse_duration

FIELDS: Final = ("nodes", "begin", "end", "only", "known")
LONGEST_NAME: Final = 200
WIDEST: Final = 3000
"""Characters of the nodes of a line that is written."""
FAILS: Final = "fails"
"""In place of when it is known: nobody knows before, and what runs is lost."""


def read_outages(path: str | Path, nodes: int) -> tuple[Outage, ...]:
    """The outages of a cluster of so many nodes. InputError for a line that is not as it should be."""
    number, named = count(), 0

    def parse(texts: list[str]) -> tuple[int, Outage]:
        nonlocal named
        where, begin, end, only, known = (text.strip() for text in texts)
        if len(only) > LONGEST_NAME:
            raise ValueError(f"only: a name of more than {LONGEST_NAME} characters")
        begin_s, end_s = _instant("begin", begin), _instant("end", end)
        if end_s <= begin_s:
            raise ValueError(f"it ends at {end}, and begins at {begin}")
        known_s = _instant("known", known) if known not in ("", FAILS) else 0
        some = node_list(" ".join(where.split()), nodes, " ")
        one = Outage(tuple(some), begin_s, end_s, only, known_s, known == FAILS)
        named += len(one.nodes)
        if named > MOST_NAMED:
            raise InputError(path, 0, f"more than {MOST_NAMED:,} nodes are named in all")
        return next(number), one

    table = read_table(path, FIELDS, parse)
    if len(table.aside):
        first = int(table.aside.line.argmin())
        raise InputError(path, int(table.aside.line[first]), table.aside.reasons[table.aside.reason[first]])
    return tuple(one for _, one in table.rows)


def write_outages(outages: Sequence[Outage], path: str | Path) -> None:
    """Write them as they are read."""
    with beside(Path(path)) as new:
        rows = [
            f"{where},{one.begin},{one.end},{one.only},{FAILS if one.fails else one.known}"
            for one in outages
            for where in _listed(one.nodes)
        ]
        new.write_text("\n".join([",".join(FIELDS), *rows, ""]), encoding="utf-8")


def _listed(nodes: Sequence[int]) -> list[str]:
    """Nodes as ranges with spaces between, in texts that a line has room for."""
    found, first = [""], 0
    for at, node in enumerate(nodes, 1):
        if at == len(nodes) or nodes[at] != node + 1:
            text = f"{nodes[first]}-{node}" if at - first > 1 else f"{node}"
            if len(found[-1]) + len(text) > WIDEST:
                found.append("")
            found[-1] += f" {text}" if found[-1] else text
            first = at
    return found


def _instant(what: str, text: str) -> int:
    try:
        return parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from error
