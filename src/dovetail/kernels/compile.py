"""How kernels are compiled and where the compiled code is kept.

A kernel is compiled together with those that it calls, in other files. So the folder of compiled code carries a hash of
this whole room, of the constants in arrays.py, and of what compiles them: any edit starts from an empty folder.
"""

from __future__ import annotations

import hashlib
import os
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import llvmlite
import llvmlite.binding
import numba
import numpy as np
from numba.core import event

from dovetail.cache import cache_home
from dovetail.kernels.kept import Kept
from dovetail.kernels.shipped import OWN_CODE, Shipped, read_manifest
from dovetail.kernels.watch import Watch

_F = TypeVar("_F", bound=Callable[..., Any])


def source_hash(room: Path = Path(__file__).parent) -> str:
    """Hash of all sources that kernels are compiled from."""
    h = hashlib.sha256()
    for path in sorted([room.parent / "arrays.py", *room.rglob("*.py")]):
        h.update(path.relative_to(room.parent).as_posix().encode())
        h.update(path.read_bytes())
    return h.hexdigest()[:16]


def made_with() -> dict[str, str]:
    """What compiled kernels depend on, but for the processor. Patches of Python and NumPy change nothing for them."""
    return {
        "python": sys.implementation.cache_tag,
        "platform": sysconfig.get_platform(),
        "numba": numba.__version__,
        "llvmlite": llvmlite.__version__,
        "numpy": ".".join(np.__version__.split(".")[:2]),
        "sources": source_hash(),
    }


def _processor() -> str:
    """The processor that Numba compiles for, with its features, and what else was asked of its code."""
    name, features = numba.config.CPU_NAME, numba.config.CPU_FEATURES  # type: ignore[attr-defined]
    if features is None:
        features = llvmlite.binding.get_host_cpu_features().flatten()
    asked = [os.environ.get(name) for name in OWN_CODE]
    return f"{name or llvmlite.binding.get_host_cpu_name()} {features} {asked}"


MADE_WITH: Final = made_with()
CACHE: Final = cache_home() / f"kernels-{hashlib.sha256(f'{MADE_WITH} {_processor()}'.encode()).hexdigest()[:16]}"
SHIPPED: Final[Shipped] = read_manifest(MADE_WITH)
WATCH: Final = Watch(SHIPPED, CACHE)
event.register("numba:compile", WATCH)  # type: ignore[no-untyped-call]

# Loops here move a few dozen entries: vectorising them gains nothing at run time and takes a fifth of the compilation.
numba.config.LOOP_VECTORIZE = 0  # type: ignore[attr-defined]
numba.config.SLP_VECTORIZE = 0  # type: ignore[attr-defined]


_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": False}
"""No global lock held, no fast-math, and no reference counts: a kernel allocates nothing, and counting the
references to the arrays it was given took most of the time of short functions."""


INNER: Any = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True, **_OPTIONS}


def jit(function: _F) -> _F:
    """Compile a kernel that Python calls; kept on disk."""
    compiled: Any = numba.njit(**_OPTIONS)(function)
    if compiled is not function:  # as it is where Numba is switched off
        compiled._cache = Kept(function, SHIPPED, CACHE)
    kernel: _F = compiled
    return kernel


def inner(function: _F) -> _F:
    """Compile a kernel that only kernels call: without an entrance for Python, which takes a third of the time."""
    compiled: _F = numba.njit(**INNER)(function)
    return compiled
