"""Compiled kernels on disk: where they are looked for, and how they are kept.

Numba's own file cache has an index for each function, which processes that compile at the same time overwrite for each
other, and needs a folder that it may write to. Here each compiled kernel is one file, named after what it is compiled
from: looked for among those that are shipped, then in the cache of this machine.
"""

from __future__ import annotations

import hashlib
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from numba.core import serialize, sigutils, types
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult

from dovetail.errors import InputError
from dovetail.files import beside, folder
from dovetail.kernels.announce import remark
from dovetail.kernels.shipped import Shipped

_TYPES: Final = 6
"""Where in what Numba keeps of a kernel the text of its types stands: sources and paths that nobody reads."""
SEAL: Final = hashlib.sha256().digest_size
"""Bytes of the hash before what is sealed."""
used: dict[str, None] = {}
"""Names of the compiled kernels that this process has loaded or made, in turn."""
lost: list[str] = []
"""Why kernels that this process has made are not kept; empty: all are."""


class Kept(_Cache):
    """What Numba asks for the compiled code of one function."""

    def __init__(self, function: Callable[..., Any], shipped: Shipped, folder: Path) -> None:
        self._function, self._shipped, self._folder = function, shipped, folder
        self._source = _source_of(function)
        self._enabled, self._anew = True, False

    @property
    def cache_path(self) -> str:
        return str(self._folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        if not self._enabled or self._anew:
            return None
        target_context.refresh()
        name = self._name(sig)
        data = self._shipped.read(name)
        if data is None:
            data = own(self._folder / name)
            if data is None:
                return None
        used[name] = None
        parts = pickle.loads(data[SEAL:])  # noqa: S301 - our own code: checked by hash, and kept by this user
        return CompileResult._rebuild(target_context, *parts)  # type: ignore[no-untyped-call]

    def save_overload(self, sig: Any, data: Any) -> None:
        if not self._enabled or data.library.has_dynamic_globals:
            return
        parts = list(data._reduce())
        parts[_TYPES] = ""
        name = self._name(sig)
        used[name] = None
        try:
            write(self._folder / name, sealed(name, serialize.dumps(tuple(parts))))  # type: ignore[no-untyped-call]
        except InputError as error:
            if not lost:
                remark(f"Compiled kernels are not kept, so the next run compiles them again: {error}.")
            lost.append(str(error))

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Numba asks for this before it compiles anew: what is written then replaces what is there."""
        self._anew = True

    def _name(self, sig: Any) -> str:
        """The same wherever the package lies: what the kernel is, its source, and the types that it is given."""
        args, _ = sigutils.normalize_signature(sig)  # type: ignore[no-untyped-call]
        text = f"{self._source}({', '.join(map(_spelled, args))})"
        short = f"{self._function.__module__.rpartition('.')[2]}.{self._function.__qualname__}".replace("<locals>.", "")
        return f"{short}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.nbc"


def _source_of(function: Callable[..., Any]) -> str:
    """What says which function this is: its name, the file it is in, and what it has from around it."""
    code = function.__code__
    try:
        source = Path(code.co_filename).read_bytes()
    except OSError:  # typed at a prompt
        source = code.co_code + repr((code.co_consts, code.co_names)).encode()
    around = tuple(cell.cell_contents for cell in function.__closure__ or ())
    h = hashlib.sha256(source)
    h.update(serialize.dumps(around) if around else b"")  # type: ignore[no-untyped-call]
    return f"{function.__module__}.{function.__qualname__}:{code.co_firstlineno}:{h.hexdigest()}"


def _spelled(kind: Any) -> str:
    """A type in letters, with the module of each class: two of the same name may answer differently."""
    if not isinstance(kind, types.BaseTuple):
        return str(kind)
    own, within = getattr(kind, "instance_class", tuple), map(_spelled, kind)  # type: ignore[call-overload]
    return f"{own.__module__}.{own.__qualname__}({', '.join(within)})"


def sealed(name: str, data: bytes) -> bytes:
    """With a hash of it and its name before it: one that is cut short, changed or called otherwise is told by it."""
    return hashlib.sha256(name.encode() + data).digest() + data


def own(path: Path, what: str = "kernel", so: str = "is compiled anew") -> bytes | None:
    """A sealed file that this user alone can have written, whole: it is code, or what code trusts. None: there is none
    such. If one is there that is not loaded, that is said."""
    try:
        with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NOFOLLOW", 0))) as file:
            mine = _mine(os.fstat(file.fileno()))
            data = file.read() if mine else b""
        if not _mine(path.parent.stat()):
            _say(f"The {what}s in {path.parent} are not loaded: it must be your own, and chmod go-w.")
        elif not mine:
            _say(f"The {what} {path} is not loaded: another user can have written it. It {so}.")
        elif sealed(path.name, data[SEAL:]) == data:
            return data
        else:
            _say(f"The {what} {path} is damaged: it {so}.")
    except (FileNotFoundError, NotADirectoryError):
        pass
    except OSError as error:
        _say(f"The {what} {path} cannot be read ({error.strerror}): it {so}.")
    return None


def _mine(about: os.stat_result) -> bool:
    return not hasattr(os, "geteuid") or (about.st_uid == os.geteuid() and not about.st_mode & 0o022)


def own_folder(path: Path) -> None:
    """Make a folder where it is missing, in which nobody else may write."""
    folder(path, 0o755)
    if not _mine(path.stat()):
        raise InputError(path, 0, "other users can write there: nothing would be loaded from it")


def write(path: Path, data: bytes) -> None:
    """All of a file or nothing: others may be reading it. Nobody else may write there."""
    own_folder(path.parent)
    with beside(path, follow=False) as new:
        new.write_bytes(data)
        new.chmod(0o644)


_said: set[str] = set()


def _say(text: str) -> None:
    """Once, not for each kernel."""
    if text not in _said:
        _said.add(text)
        remark(text)
