"""Notices when kernels are compiled, and tells: which part, and how many of its functions so far."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numba.core import event

from dovetail.errors import InputError
from dovetail.kernels import announce
from dovetail.kernels.kept import Kept, write
from dovetail.kernels.shipped import Shipped

_SOON_S = 1.0
"""What is compiled within this is not worth a word."""
_FUNCTIONS = "functions.json"


class Watch(event.Listener):
    """Numba tells it when the compilation of any function begins and ends; those of functions called are within."""

    def __init__(self, shipped: Shipped, folder: Path) -> None:
        self.shipped, self.folder = shipped, folder
        self.compiled = 0
        """Functions of ours compiled by this process, those that they call included."""
        self._depth, self._done, self._began = 0, 0, 0.0
        self._part = ""
        self._told = self._excused = False

    def on_start(self, event: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            kernel, args = event.data["dispatcher"], event.data["args"]
            self._part = part_of(kernel, args) if isinstance(getattr(kernel, "_cache", None), Kept) else ""
            self._done, self._began, self._told = 0, time.monotonic(), False

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if not self._part:
            return
        self._done += 1
        self.compiled += 1
        if self._depth:
            self._tell()
            return
        if self._told:
            announce.teller.end()
            if tuple(event.data["args"]) in event.data["dispatcher"].overloads:  # it was not broken off
                self._remember()
        self._part = ""

    def _tell(self) -> None:
        if not self._told and time.monotonic() - self._began > _SOON_S:
            self._told = True
            if self.shipped.trouble and not self._excused:
                self._excused = True
                announce.remark(f"The shipped kernels are not used: {self.shipped.trouble}.")
            announce.teller.begin(self._part, self._known())
        if self._told:
            announce.teller.done(self._done)

    def _known(self) -> int:
        """How many functions the part had when it was last compiled, here or where kernels were shipped; 0: unknown."""
        files = self.folder.parent.glob(f"kernels-*/{_FUNCTIONS}")
        for path in sorted(files, key=lambda path: path.stat().st_mtime, reverse=True):
            if count := _read(path).get(self._part):
                return count
        return self.shipped.functions.get(self._part, 0)

    def _remember(self) -> None:
        path = self.folder / _FUNCTIONS
        try:
            write(path, json.dumps(_read(path) | {self._part: self._done}, indent=1, sort_keys=True).encode())
        except InputError:
            return  # who cannot keep this cannot keep the kernel, which has been said


def functions_in(folder: Path) -> dict[str, int]:
    """How many functions each part had that was compiled into a folder."""
    return _read(folder / _FUNCTIONS)


def part_of(kernel: Any, args: Sequence[Any]) -> str:
    """What is compiled, in words: the policies that it is for are told by the types of the arguments."""
    names = [getattr(one, "instance_class", object).__name__ for one in args]
    rule = next((name.removesuffix("Rule").lower() for name in names if name.endswith("Rule")), "")
    if not rule:
        return f"the kernel {kernel.py_func.__name__}"
    what = "the kernels" if kernel.py_func.__name__ == "replay" else "one pass"
    return f"{what} of {rule} policies{' on nodes' if 'Nodes' in names else ''}"


def _read(path: Path) -> dict[str, int]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {key: value for key, value in found.items() if isinstance(value, int)} if isinstance(found, dict) else {}
