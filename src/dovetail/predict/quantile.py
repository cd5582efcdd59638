"""Our predictor: a quantile of the run time, blended from what jobs like this one did, and calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dovetail.kernels.learners.learner import QUANTILE, Learner, new_learner
from dovetail.model.workload import Workload
from dovetail.names import Kind, setting
from dovetail.predict.base import AGAIN_TOO, CompiledPredictor, correct_setting, correction
from dovetail.predict.history import ALIKE, groups

LEVELS: Final = (ALIKE, ("user", "limit", "size"), ("user", "limit"), ("user", "size"), ("user",), ("limit",), ())
"""From the most to the least specific."""
_LEVEL: Final = Kind(float, "must be above 0 and below 1", lambda level: 0 < level < 1, show="{:g}".format)
JOBS: Final = 50
"""How many jobs of each group are looked at, at most."""


@dataclass(frozen=True)
class Quantile(CompiledPredictor):
    """The time that a share `level` of the jobs ends within (kernels/learners/quantile.py says how)."""

    level: float = setting(0.8, "share of the jobs that end within the estimate", _LEVEL)
    correct: str = correct_setting(AGAIN_TOO)
    name: str = "quantile"

    def learner(self, workload: Workload) -> Learner:
        return new_learner(
            workload.limit, QUANTILE, correction(self.correct, AGAIN_TOO), groups=groups(workload, LEVELS), many=JOBS,
            risk=1 - self.level, own=LEVELS.index(("user",)),
        )  # fmt: skip
