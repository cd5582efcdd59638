"""Does the library see every write? The kernel's own view of a command, by strace, against what the library counted."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Final

_BY_FILE: Final = (
    "write", "pwrite64", "writev", "pwritev", "pwritev2", "ftruncate", "fallocate", "fsync", "fdatasync",
    "copy_file_range", "sendfile", "io_uring_enter",
)  # fmt: skip
_BY_PATH: Final = (
    "open", "openat", "openat2", "creat", "mkdir", "mkdirat", "rename", "renameat", "renameat2", "link", "linkat",
    "symlink", "symlinkat", "truncate", "mknod", "mknodat",
)  # fmt: skip
_CALL: Final = re.compile(r"^\d+ +(\w+)\((.*)")
_TEXT: Final = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"((?:[^"\\]|\\.)*)"')
_FILE: Final = re.compile(r"\d+<([^>]*)>")


def attach(process: int, report: Path) -> subprocess.Popen[bytes]:
    """Begin to watch a process, which waits for that, and all that it starts."""
    calls = ",".join(f"?{name}" for name in (*_BY_FILE, *_BY_PATH, "mmap"))
    command = ["strace", "-f", "-qq", "-y", "-s", "32", "-e", f"trace={calls}", "-o", str(report), "-p", str(process)]
    return subprocess.Popen(command)


def is_watched() -> bool:
    return "TracerPid:\t0\n" not in Path("/proc/self/status").read_text()


def writes(report: Path, box: Path) -> list[str]:
    """The calls that write to a folder, or change names in it."""
    return [line for line in report.read_text(errors="replace").splitlines() if _counts(line, str(box))]


def _counts(line: str, box: str) -> bool:
    found = _CALL.match(line)
    if found is None:
        return False
    name, rest = found.groups()
    if name in _BY_FILE:
        files = _FILE.findall(rest)
        file = files[-1] if name in ("copy_file_range",) else files[0] if files else ""
        return _within(file, box)
    if name == "mmap":
        return "MAP_SHARED" in rest and "PROT_WRITE" in rest and any(_within(one, box) for one in _FILE.findall(rest))
    if name.startswith("open") and "O_CREAT" not in rest:
        return False
    paths = [os.path.join(base, path) if base else path for base, path in _TEXT.findall(rest)]
    return bool(paths) and _within(paths[-1], box)


def _within(path: str, box: str) -> bool:
    return path == box or path.startswith(f"{box}/")
