"""Answers that pages need beside runs, kept in a folder of the store: a JSON file each, there as a whole or not at all,
so that work can be broken off."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from importlib.metadata import version
from pathlib import Path
from typing import Any, TypeVar

from dovetail.io.streams import beside

_T = TypeVar("_T")


def file_of(folder: Path, kind: str, matters: object) -> Path:
    """Where the answer to what matters is kept."""
    name = hashlib.sha256(json.dumps(matters, sort_keys=True).encode()).hexdigest()[:24]
    return folder / f"{kind}-{name}.json"


def read_kept(path: Path, kind: Callable[..., _T]) -> _T | None:
    """A kept answer; None if it is not there yet, or is none."""
    try:
        return kind(**json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def keep(path: Path, answer: dict[str, Any]) -> None:
    """Keep an answer."""
    with beside(path) as new:
        new.write_text(json.dumps(answer), encoding="utf-8")


def hash_of_code(files: Iterable[Path], more: str = "") -> str:
    """Hash of the code that an answer comes from, and the version of the solver."""
    sources = b"".join(path.read_bytes() for path in files)
    return hashlib.sha256(sources + more.encode() + version("ortools").encode()).hexdigest()[:16]
