"""What this process may use of its machine, and what it has used. Not every system tells."""

from __future__ import annotations

import os
import sys
from time import process_time


def cpu_s() -> float:
    """CPU seconds of this process, and of the programs that it ran and that have ended."""
    ended = os.times()
    return process_time() + ended.children_user + ended.children_system


def cores() -> int:
    """How many cores it may use; all of the machine's where the system does not say."""
    if hasattr(os, "sched_getaffinity"):  # Linux
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def peak_mb() -> float | None:
    """The most memory that it has had, in MiB; None where the system does not say, as on Windows."""
    try:
        import resource
    except ModuleNotFoundError:
        return None
    unit = 2**20 if sys.platform == "darwin" else 2**10  # bytes on macOS, KiB elsewhere
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit, 1)
