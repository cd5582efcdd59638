"""What limit to ask for: how long jobs like this one have run, and how many would have been stopped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Ints
from dovetail.errors import SettingError
from dovetail.model.workload import Workload

LEVELS: Final = (("user", "name", "size"), ("user", "name"), ("user", "size"), ("user",))
"""Jobs that agree in these are like each other, the most like first."""
ENOUGH: Final = 20
"""Jobs that are enough to judge by; if fewer are alike, a wider group is taken."""
RISKS: Final = (0.2, 0.1, 0.05, 0.02, 0.01)


@dataclass(frozen=True)
class Advice:
    """Limits, each with the share of jobs that would be stopped by it."""

    alike: tuple[str, ...]
    """What the jobs have in common with the one asked about."""
    jobs: int
    censored: int
    """Of them: jobs that ran to their limits, of which it is not known how long they would have run."""
    median_limit_s: int
    """What users have asked for so far."""
    limits: tuple[tuple[float, int | None], ...]
    """Risk of being stopped, and the limit that has it; None: too few jobs say how long they run."""


def survival(ran: Ints, ended: npt.NDArray[np.bool_]) -> tuple[Ints, npt.NDArray[np.float64]]:
    """Kaplan and Meier: the instants at which jobs ended by themselves, and the share that runs on beyond each."""
    times, ends = np.unique(ran[ended], return_counts=True)
    there = len(ran) - np.searchsorted(np.sort(ran), times)
    left: npt.NDArray[np.float64] = np.cumprod(1 - ends / there, dtype=np.float64)
    return times, left


def advise(workload: Workload, *, user: int, name: int | None = None, size: int | None = None) -> Advice:
    """Of the most specific group of the user's jobs that is large enough; SettingError if the user has no job."""
    wanted = {"user": user, "name": name, "size": size}
    found = np.empty(0, np.int64)
    alike: tuple[str, ...] = ()
    for level in LEVELS:
        if any(wanted[column] is None for column in level):
            continue
        same = [workload.get(column) == wanted[column] for column in level]
        found, alike = np.flatnonzero(np.all(same, axis=0)), level
        if len(found) >= ENOUGH:
            break
    if not len(found):
        raise SettingError(f"{workload.name}: user {user} has no job there to learn from")
    ran, limit = workload.runtime[found], workload.limit[found]
    never = np.iinfo(np.int64).max  # as if one more job never ended: few jobs promise little
    times, left = survival(np.append(ran, never), np.append(ran < limit, False))
    limits = []
    for risk in RISKS:
        enough = np.flatnonzero(left <= risk)
        limits.append((risk, _rounded_up(int(times[enough[0]])) if len(enough) else None))
    return Advice(alike, len(found), int(np.count_nonzero(ran >= limit)), int(np.median(limit)), tuple(limits))


def _rounded_up(seconds: int) -> int:
    """A limit that a person would write: to whole minutes, above an hour to five of them."""
    unit = 60 if seconds < 3600 else 300
    return -(-(seconds + 1) // unit) * unit
