"""Who is told that kernels are compiled. Light to import: the command line sets it before it knows what is needed."""

from __future__ import annotations

import sys


class Teller:
    """Told of compilations that take longer than a second. This one writes a line for each to standard error."""

    def begin(self, part: str, functions: int) -> None:
        """A part is compiled. `functions`: how many it had when it was last compiled; 0: not known."""
        self.remark(f"Compiling {part}, once on this machine. It may take a minute.")

    def done(self, functions: int) -> None:
        """So many functions of the part are compiled."""

    def end(self) -> None:
        """The part is compiled."""

    def remark(self, text: str) -> None:
        """One line about compiled kernels, to be read by people."""
        print(text, file=sys.stderr, flush=True)


teller = Teller()
"""The one who is told."""


def tell(other: Teller) -> Teller:
    """Let another be told from now on; returns the one so far."""
    global teller
    before, teller = teller, other
    return before


def remark(text: str) -> None:
    teller.remark(text)
