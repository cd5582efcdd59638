"""Predictors in Python: what they are told, and which answers are taken."""

from __future__ import annotations

from math import inf, nan

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import PolicyError
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.registry import policy
from dovetail.predict.base import Job, Predictor

BOTH = pytest.mark.parametrize("by_event", [False, True], ids=["whole", "by event"])


class LastEnded(Predictor):
    """Says the run time of the job that ended last, times a factor; before that, the limit."""

    name = "last-ended"

    def __init__(self, factor: float = 1.0) -> None:
        self.factor, self.last = factor, 0

    def estimate(self, job: Job) -> float:
        return self.factor * (self.last or job.limit)

    def observe(self, job: Job, runtime_s: int) -> None:
        self.last = runtime_s


def one_by_one() -> Workload:
    """Four jobs, each submitted when the one before has ended; the third asks for less than the second ran."""
    columns = {
        "id": [1, 2, 3, 4], "submit": [0, 10, 30, 40], "size": [1] * 4, "runtime": [7, 20, 3, 5],
        "limit": [50, 60, 15, 40],
    }  # fmt: skip
    return Workload("four", {name: np.array(values) for name, values in columns.items()}, 1, Provenance("by hand"))


@BOTH
def test_a_predictor_learns_from_what_has_ended(by_event: bool) -> None:
    """Job 2 is submitted in the second in which job 1 ends: ends come first. Its limit is the most that is taken."""
    made = replay(one_by_one(), policy("easy"), estimate=LastEnded(), event_by_event=by_event)
    assert made.said.tolist() == [50, 7, 15, 3]


@BOTH
@pytest.mark.parametrize("factor", [nan, inf, -inf])
def test_an_estimate_is_a_finite_number(factor: float, by_event: bool) -> None:
    with pytest.raises(PolicyError, match=r"last-ended estimates -?(nan|inf) for job 0: it must be finite"):
        replay(one_by_one(), policy("easy"), estimate=LastEnded(factor), event_by_event=by_event)
