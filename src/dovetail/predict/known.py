"""Estimates that need no learning: the run time itself, the user's limit, the run time times a factor."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import SettingError
from dovetail.kernels.learners.learner import Learner, new_learner
from dovetail.model.workload import Workload
from dovetail.predict.base import CompiledPredictor

_FACTOR: Final = re.compile(r"^runtime\*(\d+(?:\.\d+)?)$")


@dataclass(frozen=True)
class Known(CompiledPredictor):
    """Estimates that are there before the first job comes; one that is outlived is taken to end in the next second.

    `runtime`: the run time, as if it were known. `limit`: what the user asked for. `runtime*F`: the run time times
    F, rounded half up to whole seconds, not capped at the limit (Fig. 4 of packing-and-fairness-metrics).
    """

    name: str

    def learner(self, workload: Workload) -> Learner:
        return new_learner(workload.limit, first=estimates(workload, self.name))


def is_known(name: str) -> bool:
    """Whether an estimate of that name needs no learning."""
    return name in ("runtime", "limit") or _FACTOR.match(name) is not None


def estimates(workload: Workload, name: str) -> Ints:
    """One estimate per job, at least 1 s."""
    if name == "limit":
        return _at_least_one(workload.limit)
    if name == "runtime":
        return _at_least_one(workload.runtime)
    match = _FACTOR.match(name)
    if match is None:
        raise SettingError(f"{name!r} comes job by job, from a predictor: only runtime, limit and runtime*F are known")
    scaled = np.floor(workload.runtime * float(match[1]) + 0.5)
    if np.any(scaled >= 2.0**62):
        raise SettingError(f"{name}: the estimates would not fit into 64 bits; take a smaller factor")
    return _at_least_one(scaled.astype(np.int64))


def _at_least_one(seconds: Ints) -> Ints:
    result: Ints = np.maximum(seconds, 1)
    return result
