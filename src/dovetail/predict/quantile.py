"""Our predictor: a quantile of the run time, blended from what jobs like this one did, and calibrated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from dovetail.errors import SettingError
from dovetail.kernels.learners.learner import QUANTILE, Learner, new_learner
from dovetail.model.workload import Workload
from dovetail.predict.base import AGAIN_TOO, CompiledPredictor, correction
from dovetail.predict.history import ALIKE, groups

LEVELS: Final = (ALIKE, ("user", "limit", "size"), ("user", "limit"), ("user", "size"), ("user",), ("limit",), ())
"""From the most to the least specific."""
JOBS: Final = 50
"""So many jobs of each group are looked at, at most."""


@dataclass(frozen=True)
class Quantile(CompiledPredictor):
    """The time that a share `level` of the jobs ends within (kernels/learners/quantile.py says how)."""

    level: float = 0.8
    correct: str = "limit"
    name: str = "quantile"

    def __post_init__(self) -> None:
        if not 0 < self.level < 1:
            raise SettingError(f"level={self.level:g}: must be above 0 and below 1")
        correction(self.correct, AGAIN_TOO)

    def learner(self, workload: Workload) -> Learner:
        return new_learner(
            workload.limit, QUANTILE, correction(self.correct, AGAIN_TOO), groups=groups(workload, LEVELS), many=JOBS,
            risk=1 - self.level, own=LEVELS.index(("user",)),
        )  # fmt: skip
