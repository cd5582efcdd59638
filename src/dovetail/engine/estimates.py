"""Estimates of run times in a replay: numbers that are given, or a predictor that is asked on the way."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from math import isfinite

import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.compiled import Replay
from dovetail.errors import PolicyError, SettingError
from dovetail.kernels.learners.learner import GIVEN, Learner, new_learner
from dovetail.model.workload import Workload
from dovetail.names import of_user
from dovetail.predict.base import Job, Predictor
from dovetail.predict.registry import predictor

Estimate = str | Ints | Predictor
"""A predictor, its name, or one number per job."""

_MOST_S = 1 << 60
"""Estimates may add up to this at most: the end of any plan is then an integer of 64 bits."""


@dataclass
class Estimator:
    """The learner of a replay, and the predictor behind it if it is one that is written in Python."""

    workload: Workload
    learner: Learner
    predictor: Predictor | None = None

    def __post_init__(self) -> None:
        self._columns = [self.workload.get(name) for name in Job._fields[1:]]

    @property
    def asked(self) -> bool:
        """Whether the replay has to stop for it."""
        return self.predictor is not None

    @property
    def bounded(self) -> bool:
        """Whether all estimates are known to be upper bounds of the run times."""
        given = self.learner.kind == GIVEN and not self.asked
        return given and bool(np.all(self.learner.first >= self.workload.runtime))

    def told(self, replay: Replay, ended: Ints, arrived: Ints) -> None:
        """Let the predictor observe what ended, and estimate what arrived."""
        if replay.learner.first is not self.learner.first:
            raise SettingError("a replay whose predictor is asked in Python cannot go on as a copy")
        self.ask(ended, arrived)
        replay.estimate[arrived] = self.learner.first[arrived]

    def ask(self, ended: Ints, arrived: Ints) -> None:
        """Ask the predictor; its answers are in `learner.first`."""
        if self.predictor is None:
            return
        for number in ended.tolist():
            with of_user(f"{self.predictor.name}.observe"):
                self.predictor.observe(self._job(number), int(self.workload.runtime[number]))
        for number in arrived.tolist():
            job = self._job(number)
            with of_user(f"{self.predictor.name}.estimate"):
                value = float(self.predictor.estimate(job))
            if not isfinite(value):
                raise PolicyError(f"{self.predictor.name} estimates {value} for job {number}: it must be finite")
            self.learner.first[number] = max(1, min(job.limit, int(value + 0.5)))

    def _job(self, number: int) -> Job:
        return Job(number, *(int(column[number]) for column in self._columns))


def estimator_of(workload: Workload, estimate: Estimate) -> Estimator:
    """What gives a replay its estimates, before the first job. A predictor begins anew: what it learns stays here."""
    if isinstance(estimate, np.ndarray):
        given = np.asarray(estimate, np.int64)
        if given.shape != (len(workload),) or np.any(given < 1):
            raise SettingError(f"estimates must be one number per job ({len(workload)}), each at least 1 s")
        estimator = Estimator(workload, new_learner(workload.limit, first=given))
    else:
        made = predictor(estimate) if isinstance(estimate, str) else deepcopy(estimate)
        estimator = Estimator(workload, made.learner(workload), made if made.asked else None)
    most = np.maximum(estimator.learner.first, workload.limit)
    if np.sum(most, dtype=np.float64) > _MOST_S:
        raise SettingError(f"the estimates add up to more than {_MOST_S:,} s: a plan of all jobs needs 64 bits")
    return estimator
