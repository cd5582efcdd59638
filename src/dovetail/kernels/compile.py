"""How kernels are compiled and where the compiled code is kept.

Numba's file cache notices an edit in the file of the function that was called, not in a file that it calls.
So the cache directory carries a hash of this whole folder and of the constants in arrays.py: any edit in them starts
from an empty cache.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numba

from dovetail.cache import cache_home

_F = TypeVar("_F", bound=Callable[..., Any])


def source_hash(room: Path = Path(__file__).parent) -> str:
    """Hash of all sources that kernels are compiled from and of the versions that compile them."""
    h = hashlib.sha256(f"{numba.__version__} {platform.python_version()} {platform.machine()}".encode())
    for path in sorted([room.parent / "arrays.py", *room.rglob("*.py")]):
        h.update(path.relative_to(room.parent).as_posix().encode())
        h.update(path.read_bytes())
    return h.hexdigest()[:16]


CACHE = cache_home() / f"kernels-{source_hash()}"
numba.config.CACHE_DIR = str(CACHE)  # type: ignore[attr-defined]
# Loops here move a few dozen entries: vectorising them gains nothing at run time and takes a fifth of the compilation.
numba.config.LOOP_VECTORIZE = 0  # type: ignore[attr-defined]
numba.config.SLP_VECTORIZE = 0  # type: ignore[attr-defined]


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""No global lock held, no fast-math, and no reference counts: a kernel allocates nothing, and counting the
references to the arrays it was given took most of the time of short functions."""


INNER: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}


def jit(function: _F) -> _F:
    """Compile a kernel that Python calls; kept on disk."""
    compiled: _F = numba.njit(cache=True, **_OPTIONS)(function)
    return compiled


def inner(function: _F) -> _F:
    """Compile a kernel that only kernels call: without an entrance for Python, which takes a third of the time."""
    compiled: _F = numba.njit(**INNER)(function)
    return compiled
