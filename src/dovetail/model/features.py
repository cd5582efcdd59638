"""Features of nodes by name, joined by & (and), | (or), ! (not) and parentheses: which kinds of node a job may have."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dovetail.arrays import Mask
from dovetail.errors import SettingError

_PIECES: Final = re.compile(r"[&|!()]|[^&|!()\s]+")
NAME: Final = re.compile(r"[^&|!()\s]+")
PLAIN: Final = "without spaces, &, |, !, ( and )"
_BINDS: Final = {"|": 1, "&": 2, "!": 3}


def chosen(text: str, having: Callable[[str], Mask]) -> Mask:
    """Where an expression holds; `having` says where a name does."""
    values, pending, complete = list[Mask](), list[str](), False
    for piece in _PIECES.findall(text):
        if piece in ("&", "|", ")") if not complete else piece not in ("&", "|", ")"):
            raise _unclear(text)
        if piece == ")":
            _apply(values, pending, 0)
            if not pending:
                raise _unclear(text)
            pending.pop()
        elif piece in ("&", "|"):
            _apply(values, pending, _BINDS[piece])
            pending.append(piece)
        elif piece in ("!", "("):
            pending.append(piece)
        else:
            values.append(having(piece))
        complete = piece not in ("&", "|", "!", "(")
    if complete:
        _apply(values, pending, 0)
    if pending or not complete:
        raise _unclear(text)
    return values[0]


def _apply(values: list[Mask], pending: list[str], binds: int) -> None:
    """Do what waits and binds at least so much, back to the last open parenthesis."""
    while pending and pending[-1] != "(" and _BINDS[pending[-1]] >= binds:
        word = pending.pop()
        last = values.pop()
        values.append(~last if word == "!" else values.pop() & last if word == "&" else values.pop() | last)


def _unclear(text: str) -> SettingError:
    return SettingError(f"feature {text!r}: names of features are joined by & and |, with ! for not, and parentheses")
