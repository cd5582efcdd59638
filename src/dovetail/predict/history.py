"""Predictors that look up what jobs like this one did: the last two of the user, a decaying mean, a survival time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.kernels.learners.learner import DECAYING, RECENT, SURVIVAL, Learner, new_learner
from dovetail.model.workload import Workload
from dovetail.names import number, setting, whole
from dovetail.predict.base import CompiledPredictor, correct_setting, correction

ALIKE: Final = ("name", "user", "limit", "size")
"""Jobs that agree in all of these are taken to be the same program, run again."""
LEVELS: Final = (ALIKE, ("user", "limit", "size"), ("name", "user"), ("user", "limit"), ("user",), ())
"""From the most to the least specific."""
PROFILES: Final = (
    ("user", "name", "queue", "limit", "size"),
    ("user", "name", "queue", "limit"),
    ("user", "name", "queue", "size"),
    ("user", "name", "queue"),
    ("user", "name"),
)
"""What a job has in common with one of a similar profile, the most similar first."""
MOST_JOBS: Final = 1000


def groups(workload: Workload, levels: Sequence[Sequence[str]]) -> Ints:
    """The number of each job's group at each level: jobs that agree in some columns."""
    rows = np.zeros((len(levels), len(workload)), np.int64)
    for row, columns in zip(rows, levels, strict=True):
        if columns and len(workload):
            together = np.stack([workload.get(column) for column in columns])
            row[:] = np.unique(together, axis=1, return_inverse=True)[1].ravel()
    return rows


@dataclass(frozen=True)
class Recent(CompiledPredictor):
    """The mean run time of the user's last jobs to have ended (two: Last2 of Packing, after Tsafrir and others)."""

    jobs: int = setting(2, "how many of the last jobs count", whole(1, MOST_JOBS))
    correct: str = correct_setting()
    name: str = "recent"

    def learner(self, workload: Workload) -> Learner:
        by_user = groups(workload, [("user",)])
        return new_learner(workload.limit, RECENT, correction(self.correct), groups=by_user, many=self.jobs)


@dataclass(frozen=True)
class Similar(CompiledPredictor):
    """The run time of the user's last job with the most similar profile (the data-driven heuristic of
    heterogeneous-dispatcher). The paper does not print its rules: ours compare name, queue, limit and size."""

    correct: str = correct_setting()
    name: str = "similar"

    def learner(self, workload: Workload) -> Learner:
        rows = groups(workload, PROFILES)
        return new_learner(workload.limit, RECENT, correction(self.correct), groups=rows)


@dataclass(frozen=True)
class Hierarchy(CompiledPredictor):
    """A decaying mean over the most specific group in which a job has ended (Hierarchy of Packing).

    `share` is the weight of the last job against all before it. Packing says which columns make the groups, but neither
    their order nor the weights: ours were chosen on other logs (docs/predictors.md).
    """

    share: float = setting(0.3, "weight of the job that ended last", number(0.001, 1))
    correct: str = correct_setting()
    name: str = "hierarchy"

    def learner(self, workload: Workload) -> Learner:
        rows = groups(workload, LEVELS)
        return new_learner(workload.limit, DECAYING, correction(self.correct), groups=rows, share=self.share)


@dataclass(frozen=True)
class Survival(CompiledPredictor):
    """The shortest time that no more than a share `risk` of the jobs alike has outlived (SP of Packing: 2, 3, 4 %).

    The Kaplan-Meier estimate with weights: the job that ended last has `share`, each before it less by that share, and
    what is left goes to a job that never ends, so the first estimates are limits. A job that ran to its limit would
    have run on. Packing does not say the weight: ours is where R2 comes near its Table IV.
    """

    risk: float = setting(0.02, "share of the jobs alike that may outlive the estimate", number(0, 1))
    share: float = setting(0.15, "weight of the job that ended last", number(0, 1))
    jobs: int = setting(200, "how many of the last jobs alike count", whole(1, MOST_JOBS))
    correct: str = correct_setting()
    name: str = "survival"

    def learner(self, workload: Workload) -> Learner:
        return new_learner(
            workload.limit, SURVIVAL, correction(self.correct), groups=groups(workload, [ALIKE]), many=self.jobs,
            share=self.share, risk=self.risk,
        )  # fmt: skip
