"""Kernels that were compiled ahead, for any processor of a platform, and lie in this package.

They are code, so a manifest beside them has the SHA-256 of each: a file that differs is never loaded. The manifest
itself is as safe as the sources around it. It also says what they were compiled from and with: where that is not what
is here, none of them is used.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from dovetail.kernels.announce import remark

FOLDER: Final = Path(__file__).parent / "compiled"
MANIFEST: Final = "manifest.json"
GENERIC: Final = {"NUMBA_CPU_NAME": "generic", "NUMBA_CPU_FEATURES": ""}
"""What makes Numba compile for any processor of the platform."""
OWN_CODE: Final = (*GENERIC, "NUMBA_OPT", "NUMBA_BOUNDSCHECK", "NUMBA_DEBUGINFO")
"""Who sets one of these asks for other code than what is shipped."""


@dataclass(frozen=True)
class Shipped:
    """What lies in the folder; `trouble` is why none of it is used, if so."""

    folder: Path
    files: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 by name of file."""
    parts: Mapping[str, list[str]] = field(default_factory=dict)
    """The files of each part (engine/ahead.py)."""
    functions: Mapping[str, int] = field(default_factory=dict)
    """How many functions were compiled for a part, by the words that announce it."""
    trouble: str = ""

    def read(self, name: str) -> bytes | None:
        """The bytes of a compiled kernel; None if it is not there, or is not what was shipped, which is said."""
        known = None if self.trouble else self.files.get(name)
        if known is None:
            return None
        try:
            data = (self.folder / name).read_bytes()
        except OSError as error:
            remark(f"The shipped kernel {name} cannot be read ({error.strerror}): it is compiled here.")
            return None
        if hashlib.sha256(data).hexdigest() != known:
            remark(f"The shipped kernel {name} is not as it was shipped, so it is not loaded: it is compiled here.")
            return None
        return data


def read_manifest(here: Mapping[str, str], folder: Path = FOLDER, asked: Sequence[str] = OWN_CODE) -> Shipped:
    """What is shipped. `here`: what kernels would be compiled from and with. `asked`: variables that, set, ask for
    other code."""
    try:
        text = (folder / MANIFEST).read_bytes()
    except FileNotFoundError:
        return Shipped(folder)
    except OSError as error:
        return Shipped(folder, trouble=f"{MANIFEST} cannot be read ({error.strerror})")
    try:
        found: dict[str, Any] = json.loads(text)
        made, files, parts, functions = (dict(found[key]) for key in ("made", "files", "parts", "functions"))
    except (ValueError, KeyError, TypeError, RecursionError):
        return Shipped(folder, trouble=f"{MANIFEST} is damaged")
    own = [name for name in asked if os.environ.get(name) is not None]
    differs = [f"{key} was {made.get(key)}, here it is {mine}" for key, mine in here.items() if made.get(key) != mine]
    trouble = f"{own[0]} is set" if own else "; ".join(differs)
    return Shipped(folder, files, parts, functions, trouble)
