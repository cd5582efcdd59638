"""Kaplan and Meier's estimate, ours against that of lifelines."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

from dovetail.kernels.learners.learner import observe, predicted
from dovetail.model.workload import Provenance, Workload
from dovetail.predict.advise import survival
from dovetail.predict.base import Job
from dovetail.predict.history import Survival
from tests.slow.predict import SlowSurvival


def left(times: Any, ended: Any, weights: Any) -> Any:
    """The share that runs on beyond each instant, by lifelines."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # weights that are no whole numbers; its use of pandas
        from lifelines import KaplanMeierFitter

        fitted = KaplanMeierFitter().fit(times, ended, weights=weights)
    return fitted.survival_function_["KM_estimate"]


@pytest.mark.slow
def test_the_compiled_estimate_with_weights() -> None:
    rng = np.random.default_rng(3)
    limits = 0
    for _ in range(300):
        n, risk, share = int(rng.integers(1, 30)), float(rng.uniform(0.01, 0.6)), float(rng.uniform(0.02, 0.6))
        limit = int(rng.choice([20, 1000]))
        runtime = np.minimum(rng.integers(1, 30 if limit == 20 else 3000, n + 1), limit)
        columns = {name: np.ones(n + 1, np.int64) for name in ("id", "submit", "size", "user", "name")}
        workload = Workload("one", {**columns, "runtime": runtime, "limit": columns["id"] * limit}, 1, Provenance("t"))
        learner = Survival(risk, share, 100).learner(workload)
        for job in range(n):
            observe(learner, job, int(runtime[job]))
        last = runtime[:n][::-1]
        weights = share * (1 - share) ** np.arange(n)
        curve = left([*last, 10**9], [*(last < limit), False], [*weights, 1 - weights.sum()])
        enough = [int(at) for at, share_left in curve.items() if share_left < risk]
        limits += not enough
        assert predicted(learner, runtime, n) == (enough[0] if enough else limit)
    assert 30 < limits < 270


def test_the_compiled_estimate_by_the_book() -> None:
    """Of few run times with many ties, some of them at the limit, and no more than are looked at."""
    rng = np.random.default_rng(5)
    seen = set()
    for _ in range(60):
        n, most = int(rng.integers(1, 12)), int(rng.integers(1, 9))
        risk, share = float(rng.uniform(0.05, 0.6)), float(rng.uniform(0.05, 0.6))
        limit, columns = 9, {name: np.ones(n + 1, np.int64) for name in ("id", "submit", "size", "user", "name")}
        runtime = rng.integers(1, limit + 1, n + 1)
        workload = Workload("one", {**columns, "runtime": runtime, "limit": columns["id"] * limit}, 1, Provenance("t"))
        learner, slow = Survival(risk, share, most).learner(workload), SlowSurvival("limit", risk, share, most)
        for job in range(n):
            observe(learner, job, int(runtime[job]))
            slow.observe(Job(job, 0, 1, limit, 1, 0, 1, 0), int(runtime[job]))
        wanted = slow.estimate(Job(n, 0, 1, limit, 1, 0, 1, 0))
        assert predicted(learner, runtime, n) == wanted
        seen.add(wanted)
    assert len(seen) > limit // 2


@pytest.mark.slow
def test_the_estimate_that_advises() -> None:
    rng = np.random.default_rng(4)
    for _ in range(100):
        n = int(rng.integers(1, 60))
        ran, ended = rng.integers(1, 30, n), rng.random(n) < 0.7
        curve = left(ran, ended, np.ones(n))
        times, share = survival(ran, ended)
        assert np.allclose(share, curve.loc[times.astype(float)].to_numpy())
        assert np.isclose(share[-1] if len(share) else 1.0, curve.iloc[-1])
