"""Lists of nodes in texts: 0-9,12."""

from __future__ import annotations

import re
from typing import Final

MOST_NAMED: Final = 3_000_000
"""Nodes that a file may name in all: 300 times 10,000."""
_RANGE: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?", re.ASCII)


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
