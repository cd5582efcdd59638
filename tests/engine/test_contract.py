"""The checks of policies and predictors: who keeps the contract passes all of them, who breaks a clause is found."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.engine.contract import check_policy, check_predictor
from dovetail.kernels.learners.learner import Learner, new_learner
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.predict.base import CompiledPredictor
from tests.engine.first_fits import FirstFits


class KnowsTheLast(FirstFits):
    """Starts nothing once the last job of the workload has come: it sees from the rows that there is no other."""

    name = "knows-the-last"

    def decide(self, state: State) -> Plan:
        return Plan() if len(state.size) - 1 in state.waiting else super().decide(state)


class Given(CompiledPredictor):
    """Says numbers that are there from the beginning."""

    name = "given"

    def __init__(self, seconds: Callable[[Workload], Ints]) -> None:
        self.seconds = seconds

    def learner(self, workload: Workload) -> Learner:
        return new_learner(workload.limit, first=self.seconds(workload))


def test_a_policy_that_keeps_the_contract_passes_every_check() -> None:
    findings = check_policy(FirstFits(), cases=3)
    assert len(findings) == 7
    assert [one for one in findings if one.broken] == []


def test_a_start_in_the_very_second_of_the_last_known_job_may_not_depend_on_later_ones() -> None:
    broken = {one.clause.split(":")[0]: one.broken for one in check_policy(KnowsTheLast(), cases=3)}
    assert "depending on jobs submitted later" in broken["no peeking"]


@pytest.mark.parametrize(
    ("seconds", "wrong"),
    [
        (lambda jobs: np.zeros(len(jobs), np.int64), "is 0 s, its limit"),
        (lambda jobs: np.ones(len(jobs), np.int64), ""),
        (lambda jobs: jobs.limit, ""),
        (lambda jobs: jobs.limit + 1, "the estimate of job 0 is "),
    ],
    ids=["0 s", "1 s", "limit", "above the limit"],
)
def test_an_estimate_is_from_one_second_to_the_limit(seconds: Callable[[Workload], Ints], wrong: str) -> None:
    positive = check_predictor(Given(seconds), cases=1)[0]
    assert positive.clause.startswith("positive")
    assert wrong in positive.broken
    assert bool(positive.broken) == bool(wrong)
