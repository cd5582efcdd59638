"""How good estimates are, by hand."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from dovetail.metrics.estimates import calibration, mean_error_s, outlived, pinball_s, r2
from dovetail.model.workload import Step
from dovetail.workloads.lublin import lublin


def test_by_hand() -> None:
    said, ran = np.array([10, 10, 40]), np.array([10, 20, 30])
    assert r2(said, ran) == 1 - 200 / 200
    assert r2(ran, ran) == 1
    assert r2(np.full(3, 20), ran) == 0
    assert mean_error_s(said, ran) == pytest.approx(20 / 3)
    assert outlived(said, ran) == 1 / 3
    assert pinball_s(said, ran, 0.9) == pytest.approx((0.9 * 10 + 0.1 * 10) / 3)


def test_calibration_by_user() -> None:
    """After the first tenth: 300 jobs of one user of whom 3 in 4 end by what is said, and 100 of another, of whom all
    end before; 50 of a third are too few to count."""
    jobs = 500
    user = np.array([9] * 50 + [1] * 300 + [2] * 100 + [3] * 50)
    said = np.full(jobs, 100)
    ran = np.array([500] * 50 + [500, 100, 50, 50] * 75 + [50] * 100 + [500] * 50)
    work = lublin(jobs, 8, seed=0)
    work = work.with_columns(Step("made up"), user=user, runtime=ran)
    found = calibration(0.5, said, said, said, work)
    assert (found.ended_before, found.ended_by) == (250 / 450, 325 / 450)
    assert found.off_by_user == pytest.approx((300 * 0.0 + 100 * 0.5) / 400)
    assert calibration(0.9, said, said, said, work).off_by_user == pytest.approx((300 * 0.15 + 100 * 0.1) / 400)


def test_nothing_to_say() -> None:
    none = np.empty(0, np.int64)
    assert all(isnan(value) for value in (r2(none, none), mean_error_s(none, none), outlived(none, none)))
    assert isnan(pinball_s(none, none, 0.5))
    assert isnan(r2(np.array([1, 2]), np.array([5, 5])))
