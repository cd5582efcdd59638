"""How long work took, in CPU seconds."""

from __future__ import annotations

import os
from time import process_time


def cpu_s() -> float:
    """Of this process, and of the programs that it ran and that have ended."""
    ended = os.times()
    return process_time() + ended.children_user + ended.children_system
