"""Estimates that need no learning: the run time itself, the user's limit, the run time times a factor."""

from __future__ import annotations

import re

import numpy as np

from dovetail.errors import SettingError
from dovetail.model.workload import Ints, Workload

_FACTOR = re.compile(r"^runtime\*(\d+(?:\.\d+)?)$")


def estimates(workload: Workload, name: str) -> Ints:
    """One estimate per job, at least 1 s.

    `runtime`: the run time, as if it were known. `limit`: what the user asked for. `runtime*F`: the run time times
    F, rounded half up to whole seconds, not capped at the limit (Fig. 4 of packing-and-fairness-metrics).
    """
    if name == "runtime":
        return _at_least_one(workload.runtime)
    if name == "limit":
        return _at_least_one(workload.limit)
    if match := _FACTOR.match(name):
        scaled = np.floor(workload.runtime * float(match[1]) + 0.5)
        if np.any(scaled >= 2.0**62):
            raise SettingError(f"{name}: the estimates would not fit into 64 bits; take a smaller factor")
        return _at_least_one(scaled.astype(np.int64))
    raise SettingError(f"no estimate {name!r}: choose runtime, limit, or runtime*FACTOR (runtime*1.5)")


def _at_least_one(seconds: Ints) -> Ints:
    result: Ints = np.maximum(seconds, 1)
    return result
