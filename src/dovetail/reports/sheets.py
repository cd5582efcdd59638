"""A table of names and numbers, as the terminal and a page show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Cells:
    """A column of numbers as they are shown."""

    head: str
    cells: Sequence[str]
    unit: str = ""
    exact: Sequence[str] = ()
    """The same with more digits, where they were rounded."""
    rank: int = 0
    """Where there is no room, the columns of the highest rank are left out first; those of rank 0 stay."""


@dataclass(frozen=True)
class Sheet:
    """One table: what its rows are called, with a note below, and their numbers."""

    title: str
    head: str
    names: Sequence[str]
    numbers: Sequence[Cells]
    notes: Sequence[str] = ()
