"""What a predictor is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Final, NamedTuple

from dovetail.errors import SettingError
from dovetail.kernels.learners.learner import AGAIN, AT_ONCE, DOUBLE, LIMIT, STEPS, Learner, new_learner
from dovetail.model.workload import Workload
from dovetail.names import check_settings, choice, setting

CORRECTIONS: Final = {"none": AT_ONCE, "limit": LIMIT, "steps": STEPS, "double": DOUBLE}
"""What is expected of a job that has outlived its estimate: that it ends in the next second; that it runs to its limit;
that it runs on for a minute, then five, fifteen, thirty, sixty, then for two hours again and again; that it runs twice
as long, and again."""
AGAIN_TOO: Final = CORRECTIONS | {"again": AGAIN}
"""A predictor that knows a distribution can also say what the past says of jobs that have run as long."""


def correct_setting(among: Mapping[str, int] = CORRECTIONS) -> Any:
    """The setting of every predictor: what is expected of a job that has outlived its estimate."""
    return setting("limit", "what is expected of a job that outlives its estimate", choice(*among))


class Job(NamedTuple):
    """What is known of a job when it is submitted. Numbers stand for names; -1: unknown."""

    number: int
    submit: int
    size: int
    limit: int
    user: int
    group: int
    name: int
    queue: int


class Predictor(ABC):
    """Says how long jobs will run, and learns from those that have ended.

    An estimate is at least 1 s and at most the limit, whatever a predictor says, and never stops a job.
    """

    name: str = ""
    correct: str = "limit"
    asked: ClassVar[bool] = True
    """Whether `estimate` and `observe` are called. A predictor of the compiled family answers by its learner alone."""

    def __post_init__(self) -> None:
        check_settings(self)

    @abstractmethod
    def estimate(self, job: Job) -> float:
        """Seconds that a job will run, estimated when it arrives."""

    @abstractmethod
    def observe(self, job: Job, runtime_s: int) -> None:
        """A job has ended."""

    def learner(self, workload: Workload) -> Learner:
        """This predictor as numbers, before the first job."""
        return new_learner(workload.limit, correction=correction(self.correct))


class CompiledPredictor(Predictor):
    """A predictor that the compiled replay knows."""

    asked = False

    def estimate(self, job: Job) -> float:
        raise NotImplementedError("compiled")

    def observe(self, job: Job, runtime_s: int) -> None:
        raise NotImplementedError("compiled")

    @abstractmethod
    def learner(self, workload: Workload) -> Learner:
        """This predictor as numbers, before the first job."""


def correction(name: str, among: Mapping[str, int] = CORRECTIONS) -> int:
    """The code of a correction."""
    if name not in among:
        raise SettingError(f"no correction {name!r}: choose from {', '.join(among)}")
    return among[name]
