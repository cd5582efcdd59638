"""Objectives are the metrics, with estimates for run times; which of them are regular."""

from __future__ import annotations

import numpy as np
import pytest

from dovetail import metrics
from dovetail.errors import SettingError
from dovetail.metrics.jobs import Outcomes
from dovetail.optimize.window.objective import Af, Awf, Bsld, Makespan, Objective, Pasf, Sum, Wait, parse
from dovetail.optimize.window.problem import Problem, decode
from tests.optimize.brute import random_problem


def large_problem(rng: np.random.Generator, jobs: int) -> Problem:
    arrive = rng.integers(0, 10**6, jobs)
    return Problem(
        now=10**6,
        processors=1000,
        times=np.array([10**6]),
        free=np.array([1000]),
        arrive=arrive,
        size=rng.integers(1, 1001, jobs),
        estimate=np.maximum(1, (10 ** rng.uniform(0, 6, jobs)).astype(np.int64)),
        weight=rng.random(jobs),
    )


def test_formulas_are_those_of_the_metrics() -> None:
    rng = np.random.default_rng(1)
    for jobs in (1, 2, 10, 300):
        problem = large_problem(rng, jobs)
        starts = problem.earliest + rng.integers(0, 10**7, jobs)
        done = Outcomes(problem.size, problem.estimate, starts - problem.arrive)
        expected = {
            "af": metrics.af_s(done),
            "awf": metrics.awf_s(done),
            "bsld": metrics.bsld(done),
            "p2sf": metrics.pasf_s(done, 2),
            "pasf:3": metrics.pasf_s(done, 3),
            "pasf:0": metrics.pasf_s(done, 0),
            "pasf:1.37": metrics.pasf_s(done, 1.37),
            "pasf:100": metrics.pasf_s(done, 100),
            "wait": metrics.weighted_wait_s(done, problem.weight),
            "makespan": float((starts + problem.estimate).max() - problem.arrive.min()),
            "af + 0.5*p2sf": metrics.af_s(done) + 0.5 * metrics.pasf_s(done, 2),
            "2*bsld": 2 * metrics.bsld(done),
        }
        for name, value in expected.items():
            assert parse(name).value(problem, starts) == pytest.approx(value, rel=1e-12), name
        assert Bsld(60).value(problem, starts) == pytest.approx(metrics.bsld(done, 60), rel=1e-12)
        assert Bsld(0).value(problem, starts) == pytest.approx(metrics.bsld(done, 0), rel=1e-12)


def test_a_job_that_starts_at_once_and_no_jobs() -> None:
    one = Problem(0, 1, np.array([0]), np.array([1]), np.array([0]), np.array([1]), np.array([8]))
    assert Pasf(2).value(one, np.array([0])) == pytest.approx(6, rel=1e-15)  # 3/4 of 8
    none = np.empty(0, np.int64)
    empty = Problem(0, 1, np.array([0]), np.array([1]), none, none, none)
    for objective in (Af(), Awf(), Bsld(), Wait(), Makespan(), Pasf(2)):
        assert np.isnan(objective.value(empty, none))


REGULAR = (Af(), Awf(), Bsld(), Wait(), Makespan(), Pasf(0), parse("af+2*bsld"))


@pytest.mark.parametrize("objective", REGULAR, ids=str)
def test_regular_objectives_never_gain_by_a_delay(objective: Objective) -> None:
    assert objective.regular
    rng = np.random.default_rng(2)
    for _ in range(200):
        problem = random_problem(rng, 4, longest=30)
        starts = decode(problem, rng.permutation(4))
        later = starts.copy()
        later[rng.integers(4)] += rng.integers(1, 40)
        assert objective.value(problem, later) >= objective.value(problem, starts) * (1 - 1e-15)


@pytest.mark.parametrize("text", ["p2sf", "pasf:0.5", "pasf:3", "af+1000*p2sf"])
def test_pasf_can_gain_by_a_delay(text: str) -> None:
    objective = parse(text)
    assert not objective.regular
    # An old job that starts now, and a young one beside it that could start now too.
    old = Problem(1000, 2, np.array([1000]), np.array([2]), np.array([0, 1000]), np.array([1, 1]), np.array([100, 100]))
    assert objective.value(old, np.array([1000, 1100])) < objective.value(old, np.array([1000, 1000]))


def test_parsing() -> None:
    assert parse("af") == Af()
    assert parse("p2sf") == Pasf(2) == parse("pasf:2")
    assert parse("pasf:1.5") == Pasf(1.5)
    assert parse(" af + 0.5 * p2sf+makespan") == Sum(((1.0, Af()), (0.5, Pasf(2)), (1.0, Makespan())))
    assert parse("3*wait") == Sum(((3.0, Wait()),))


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("", "no objective ''; choose from af, awf, bsld, p2sf, makespan, wait, pasf:LEVEL"),
        ("AF", "no objective 'AF'"),
        ("af+", "no objective ''"),
        ("af:2", "no objective 'af:2'"),
        ("pasf", "no objective 'pasf'"),
        ("pasf:-1", "the level '-1' of PaSF is not a number from 0 to 100"),
        ("pasf:nan", "the level 'nan'"),
        ("pasf:x", "the level 'x'"),
        ("-1*af", "the weight '-1' is not a number above 0"),
        ("0*af", "the weight '0'"),
        ("inf*af", "the weight 'inf'"),
        ("2*3*af", r"the weight '2\*3'"),
        ("*af", "the weight ''"),
    ],
)
def test_what_is_no_objective(text: str, rule: str) -> None:
    with pytest.raises(SettingError, match=rule):
        parse(text)


def test_settings_of_constructors() -> None:
    for wrong in (-1, np.nan, np.inf):
        with pytest.raises(ValueError, match="the bound of the bounded slowdown"):
            Bsld(wrong)
        with pytest.raises(ValueError, match="the level of PaSF"):
            Pasf(wrong)
        with pytest.raises(ValueError, match="a weight above 0"):
            Sum(((wrong, Af()),))
    with pytest.raises(ValueError, match="at least one"):
        Sum(())
