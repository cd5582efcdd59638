"""The compiled predictors: against obvious ones, in both engines, without a look into the future."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.engine.compiled import new_replay
from dovetail.engine.contract import busy_workload, check_predictor
from dovetail.engine.estimates import estimator_of
from dovetail.engine.replay import finished, replay
from dovetail.errors import SettingError
from dovetail.kernels.learners.learner import Learner, observe, outlived, predicted
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.policies.base import Asked
from dovetail.policies.registry import policy
from dovetail.predict.base import CORRECTIONS, Job, Predictor
from dovetail.predict.history import Recent, Survival
from dovetail.predict.online import Online
from dovetail.predict.registry import LEARNED, predictor
from dovetail.referee import check_schedule
from dovetail.workloads.lublin import lublin
from tests.slow import predict as slow

POLICIES = ("list-reg", "easy-sjbf", "list-laf", "conservative", "list:slack=0.5", "plan-af:decodes=3")
NAMES = [f"{name}:correct={correct}" for name in LEARNED for correct in CORRECTIONS] + ["quantile:correct=again"]


def busy(seed: int) -> tuple[Workload, Cluster]:
    return busy_workload(np.random.default_rng(seed))


def run(workload: Workload, cluster: Cluster, name: str, estimate: Any) -> tuple[Schedule, Ints]:
    """The schedule, and what was said of each job when it arrived."""
    estimator = estimator_of(workload, estimate)
    chosen = policy(name)
    rule = chosen.rule(Asked(bounded=estimator.bounded, stop_for_news=estimator.asked, keep=True))
    whole = new_replay(workload, cluster, rule, estimator.learner)
    whole.on_news = estimator.told
    whole.advance()
    return finished(whole, workload, cluster, chosen, estimate, 0), whole.learner.first


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_both_engines_say_and_do_the_same(name: str) -> None:
    for seed in range(12):
        workload, cluster = busy(seed)
        for chosen in POLICIES:
            every_s = 7 if seed % 3 == 0 and chosen != "conservative" else 0
            whole, stepped = (
                replay(workload, policy(chosen), cluster=cluster, estimate=name, every_s=every_s, event_by_event=by)
                for by in (False, True)
            )
            assert np.array_equal(whole.said, stepped.said), (chosen, seed)
            assert np.array_equal(whole.start, stepped.start), (chosen, seed)
            assert not check_schedule(whole), (chosen, seed)


OBVIOUS: dict[str, Callable[[str], Predictor]] = {
    "recent": slow.SlowRecent,
    "similar": slow.SlowSimilar,
    "hierarchy": slow.SlowHierarchy,
    "survival": lambda correct: slow.SlowSurvival(correct, 0.02, 0.15, 200),
    "survival:risk=0.3,share=0.2,jobs=4": lambda correct: slow.SlowSurvival(correct, 0.3, 0.2, 4),
    "quantile": lambda correct: slow.SlowQuantile(correct, 0.8),
    "quantile:level=0.35": lambda correct: slow.SlowQuantile(correct, 0.35),
}
"""Predictors, and the same in slow code."""


def as_said_by_an_obvious_predictor(name: str, correct: str, seed: int) -> None:
    workload, cluster = busy(seed)
    full, obvious = f"{name}{',' if ':' in name else ':'}correct={correct}", OBVIOUS[name](correct)
    for chosen in ("easy-sjbf", "list-laf"):
        ours, theirs = (run(workload, cluster, chosen, one) for one in (full, obvious))
        assert np.array_equal(ours[1], theirs[1]), (name, seed)
        assert np.array_equal(ours[0].start, theirs[0].start), (name, seed)


@pytest.mark.slow
@pytest.mark.parametrize("correct", CORRECTIONS)
def test_as_said_by_obvious_predictors(correct: str) -> None:
    for seed in range(20):
        for name in OBVIOUS:
            as_said_by_an_obvious_predictor(name, correct, seed)


def test_corrections_against_obvious_code() -> None:
    rng = random.Random(1)
    columns = {name: np.ones(1, np.int64) for name in ("id", "submit", "size", "runtime", "limit")}
    for _ in range(3000):
        correct = rng.choice(list(CORRECTIONS))
        limit, first = rng.choice([1, 10, 5000, 200_000]), rng.choice([1, 7, 60, 4000])
        first = min(first, limit)
        ran = first + rng.choice([0, 1, 59, 60, 359, 360, 10_000, 100_000])
        workload = Workload("one", columns | {"limit": np.array([limit])}, 1, None)  # type: ignore[arg-type]
        learner = predictor(f"recent:correct={correct}").learner(workload)
        learner.first[0] = first
        assert outlived(learner, workload.runtime, 0, ran) == slow.outlived(correct, first, limit, ran), (
            correct,
            first,
            limit,
            ran,
        )


@pytest.mark.slow
def test_what_the_past_says_of_jobs_that_have_run_so_long() -> None:
    rng = random.Random(2)
    for seed in range(41):
        workload, _ = busy(seed)
        if seed == 40:  # more than are looked at; and users of whom no job has ended
            workload = lublin(200, 16, seed=1, load=0.9)
            users = np.minimum(np.arange(200) // 60, 2) + (np.arange(200) == 199)
            workload = replace(workload, columns={**workload.columns, "user": users})
        both = [estimator_of(workload, one) for one in ("quantile:correct=again", slow.SlowQuantile("limit", 0.8))]
        for one in both:  # the same schedule for both
            for number in range(len(workload)):
                one.ask(np.arange(max(0, number - 3), max(0, number - 2)), np.array([number]))
                if not one.asked:
                    for ended in range(max(0, number - 3), max(0, number - 2)):
                        observe(one.learner, ended, int(workload.runtime[ended]))
                    one.learner.first[number] = predicted(one.learner, workload.runtime, number)
        obvious = both[1].predictor
        assert isinstance(obvious, slow.SlowQuantile)
        for number in range(len(workload)):
            job = both[1]._job(number)
            ran = rng.randint(1, job.limit + 1)
            assert outlived(both[0].learner, workload.runtime, number, ran) == obvious.again(job, ran), (seed, number)


def test_a_blend_of_guesses_that_do_unequally_well_is_that_of_the_best() -> None:
    """However unequally: weights are logarithms, and their powers may be larger than any number."""
    workload, _ = busy(1)
    learner = predictor("quantile").learner(workload)
    for job in range(len(workload) - 1):
        learner.first[job] = predicted(learner, workload.runtime, job)
        observe(learner, job, int(workload.runtime[job]))
    last = len(workload) - 1
    learner.guesses.shifts[:] = 0.0
    for best in range(learner.guesses.weights.shape[1]):
        learner.guesses.weights[:] = -2000.0
        learner.guesses.weights[:, best] = 2000.0
        said = predicted(learner, workload.runtime, last)
        assert said == max(1, int(learner.guesses.made[last, best] + 0.5)), best


def test_many_jobs_that_outlive_their_quantiles_at_once_are_soon_forgotten() -> None:
    """300 short jobs; 2,000 long ones that are all there before the first of them ends; and short ones again."""
    rng = np.random.default_rng(3)
    runtime = rng.integers(1800, 5400, 6300)
    runtime[300:2300] = 30_000
    columns = {name: np.ones(6300, np.int64) for name in ("id", "submit", "size", "user")}
    workload = Workload("one", columns | {"runtime": runtime, "limit": np.full(6300, 36_000)}, 1, None)  # type: ignore[arg-type]
    learner = predictor("quantile:level=0.8").learner(workload)
    for number in [*range(300), *range(2300, 6300)]:
        for job in range(number, 2300 if number == 299 else number + 1):
            learner.first[job] = predicted(learner, runtime, job)
        for job in range(number, 2300 if number == 299 else number + 1):
            observe(learner, job, int(runtime[job]))
    assert (learner.first[300:2300] < 30_000).all()
    assert np.mean(learner.first[2300:2500]) > 30_000
    assert np.mean(runtime[-1000:] <= learner.first[-1000:]) == pytest.approx(0.8, abs=0.05)
    assert np.abs(learner.guesses.shifts).max() <= 1


@pytest.mark.slow
@pytest.mark.parametrize("name", [*NAMES, "survival:risk=0.3"])
def test_the_contract_is_kept(name: str) -> None:
    assert [finding for finding in check_predictor(predictor(name), cases=20) if finding.broken] == []


class Peeks(Predictor):
    """Knows a run time before the job has ended, says nothing of some, and changes its mind."""

    name = "peeks"
    times: Ints

    def __init__(self, fault: str) -> None:
        self.fault, self.asked_so_far = fault, itertools.count()

    def __deepcopy__(self, memo: object) -> Peeks:
        return self  # so what it remembers is not forgotten

    def learner(self, workload: Workload) -> Learner:
        self.times = workload.runtime
        return super().learner(workload)

    def estimate(self, job: Job) -> float:
        if self.fault == "no peeking":
            return float(self.times[job.number])
        if self.fault == "deterministic":
            return 1.0 + next(self.asked_so_far)
        return -1.0

    def observe(self, job: Job, runtime_s: int) -> None:
        """Learns nothing."""


@pytest.mark.parametrize("fault", ["positive", "deterministic", "no peeking"])
def test_the_contract_is_seen_to_be_broken(fault: str) -> None:
    broken = [finding.clause.split(":")[0] for finding in check_predictor(Peeks(fault), cases=20) if finding.broken]
    assert fault in broken
    assert len(broken) <= (3 if fault == "deterministic" else 1)
    assert [one.broken != "" for one in check_predictor(predictor("runtime"), cases=20)] == [False, False, True, False]


def test_a_copy_has_learned_the_same() -> None:
    for seed in range(10):
        workload, cluster = busy(seed)
        middle = int(np.median(workload.submit))
        for name in ("quantile:correct=again", "online"):
            estimator = estimator_of(workload, name)
            rule = policy("list-reg").rule(Asked(stop_for_news=estimator.asked))
            one = new_replay(workload, cluster, rule, estimator.learner)
            one.on_news = estimator.told
            one.advance(middle)
            other = one.copy()
            one.advance()
            if estimator.asked and other.waiting.size + other.started < len(workload):
                with pytest.raises(SettingError, match="cannot go on as a copy"):
                    other.advance()
            elif not estimator.asked:
                other.advance()
                assert np.array_equal(one.run.jobs, other.run.jobs)
                assert np.array_equal(one.learner.first, other.learner.first)
                assert np.array_equal(one.learner.guesses.weights, other.learner.guesses.weights)


def test_a_predictor_begins_anew_in_each_replay() -> None:
    class Counts(Predictor):
        name = "counts"
        seen = 0

        def estimate(self, job: Job) -> float:
            return 1.0 + self.seen

        def observe(self, job: Job, runtime_s: int) -> None:
            self.seen += 1

    workload, cluster = busy(3)
    one = Counts()
    first, second = (replay(workload, policy("list-reg"), cluster=cluster, estimate=one) for _ in range(2))
    assert np.array_equal(first.start, second.start)
    assert (one.seen, first.estimate) == (0, "counts")


def test_settings_reach_the_learner() -> None:
    """The defaults are those of docs/predictors.md; the ends of a range are in it."""
    workload, _ = busy(1)
    for name, settings in {
        "survival": (200, 0.15, 0.02),
        "survival:risk=0,share=0,jobs=1": (1, 0, 0),
        "survival:risk=1,share=1,jobs=1000": (1000, 1, 1),
    }.items():
        learner = predictor(name).learner(workload)
        assert (learner.many, learner.share, learner.risk) == settings


def test_names_and_settings() -> None:
    assert predictor("survival:risk=0.03,jobs=9") == Survival(0.03, jobs=9, name="survival:risk=0.03,jobs=9")
    assert predictor("last2") == Recent(name="last2")
    assert predictor("SP:risk=0.03") == Survival(0.03, name="SP:risk=0.03")
    assert isinstance(predictor("cvh"), Online)
    for text, says in {
        "recently": r"no estimate 'recently'; did you mean recent\?",
        "nothing": "no estimate 'nothing': choose from runtime, limit",
        "recent:jobs=0": "jobs=0: must be from 1 to 1,000",
        "recent:share=0.5": "no setting 'share': choose from jobs, correct",
        "recent:jobs=two": "jobs=two: is not a whole number; it must be from 1 to 1,000",
        "survival:risk=high": "risk=high: is not a number; it must be from 0 to 1",
        "hierarchy:correct=soon": "correct=soon: choose from none, limit, steps, double",
        "survival:risk=2": "risk=2: must be from 0 to 1",
        "survival:correct=again": "correct=again: choose from none, limit, steps, double",
        "quantile:level=1": "level=1: must be above 0 and below 1",
    }.items():
        with pytest.raises(SettingError, match=says):
            predictor(text)
