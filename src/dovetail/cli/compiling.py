"""What a person at the terminal sees while kernels are compiled."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dovetail.kernels.announce import Teller, tell

if TYPE_CHECKING:
    from rich.progress import Progress


def show_compiling() -> None:
    """Where standard error is a terminal and no script listens: a line that moves. Else one that stays."""
    if sys.stderr.isatty() and "--json" not in sys.argv:
        tell(Spinner())


class Spinner(Teller):
    """Which part is compiled, how many of its functions are, and for how long it has been going on."""

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._part, self._functions = "", 0

    def begin(self, part: str, functions: int) -> None:
        from rich.console import Console
        from rich.progress import Progress, SpinnerColumn, TextColumn

        columns = (SpinnerColumn(), TextColumn("{task.description}, {task.elapsed:.0f} s", style="", markup=False))
        self._part, self._functions = part, functions
        self._bar = Progress(*columns, console=Console(stderr=True, highlight=False), transient=True)
        self._bar.add_task(f"compiling {part}, only once")
        self._bar.start()

    def done(self, functions: int) -> None:
        if self._bar is not None:
            of = f" of ~{self._functions}" if self._functions >= functions else " functions"
            text = f"compiling {self._part}, only once: {functions}{of}"  # with all of them it fits 80 columns
            self._bar.update(self._bar.task_ids[0], description=text)

    def end(self) -> None:
        if self._bar is not None:
            self._bar.stop()
        self._bar = None
