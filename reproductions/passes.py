"""The passes of a replay."""

from __future__ import annotations

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.schedule import Schedule


def passes_of(schedule: Schedule) -> tuple[Ints, Ints]:
    """When, and how many jobs wait: a pass is whenever a job arrived or ended, and a job that starts in it still
    waits."""
    at = np.unique(np.concatenate([schedule.arrive, schedule.end]))
    came = np.searchsorted(np.sort(schedule.arrive), at, side="right")
    return at, came - np.searchsorted(np.sort(schedule.start), at, side="left")
