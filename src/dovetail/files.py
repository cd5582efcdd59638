"""Files that are there as a whole or not at all, whatever happens while they are written: a full disk, a crash, a kill.

Every file that Dovetail writes is written by `beside`, into folders that `folder` made.
"""

from __future__ import annotations

import os
import re
import secrets
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EDQUOT, EIO, ENOSPC
from pathlib import Path
from typing import Final

from dovetail.errors import InputError

_OLD_S: Final = 600
"""A file of that age that is half written has no writer any more."""
_HALF: Final = re.compile(r"\..+\.[0-9a-f]{8}\.new")
"""The names of files that are being written."""
_NATIVE: Final = re.compile(r"\(os error (\d+)\)")
"""How native code words what the system said: polars has errors of its own for it."""


@contextmanager
def beside(path: Path, *, follow: bool = True) -> Iterator[Path]:
    """A new path in the same folder, becoming `path` at the end, when it is on disk: readers see the old file or the
    new one, even after a crash. A link stays one, and what it leads to is written; with `follow=False`, where others
    may have put it, it is replaced. InputError where that cannot be."""
    target = Path(os.path.realpath(path)) if follow else path
    new = target.with_name(f".{target.name}.{secrets.token_hex(4)}.new")
    try:
        if (follow or not target.is_symlink()) and target.exists() and not target.is_file():
            raise InputError(path, 0, "cannot be written: it is a folder, a pipe or a device")
        yield new
        with new.open("r+b") as written:  # Windows puts only on disk what it may write
            os.fsync(written.fileno())
        os.replace(new, target)
        _sync(target.parent)
    except Exception as error:
        if why := _refused(error):
            raise InputError(path, 0, f"cannot be written: {why}") from error
        raise
    finally:
        with suppress(OSError):
            new.unlink(missing_ok=True)


def folder(path: Path, mode: int = 0o777) -> None:
    """Make a folder, and those above it, where they are missing; clear away what killed processes left half written."""
    try:
        missing = [one for one in (path, *path.parents) if not one.exists()]
        path.mkdir(mode, parents=True, exist_ok=True)
        for one in missing:
            _sync(one.parent)
    except OSError as error:
        raise InputError(path, 0, f"cannot be made: {_refused(error)}") from error
    for left in path.glob(".*.new"):
        with suppress(OSError):
            if _HALF.fullmatch(left.name) and time.time() - left.stat().st_mtime > _OLD_S:
                left.unlink()


def _sync(folder: Path) -> None:
    """Have the names in a folder on disk: until then a crash can undo a rename. Where that cannot be asked for, as of a
    folder that may not be read, the file is there all the same."""
    try:
        number = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(number)
        finally:
            os.close(number)
    except OSError as error:
        if error.errno in (EIO, ENOSPC, EDQUOT):
            raise


def _refused(error: Exception) -> str:
    """What the system said; empty if this is another error."""
    native = _NATIVE.search(str(error))
    if native is not None:
        return os.strerror(int(native[1]))
    return error.strerror or str(error) if isinstance(error, OSError) else ""
