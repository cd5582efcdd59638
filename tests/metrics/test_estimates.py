"""How good estimates are, by hand."""

from __future__ import annotations

from math import isnan

import numpy as np
import pytest

from dovetail.metrics.estimates import mean_error_s, outlived, pinball_s, r2


def test_by_hand() -> None:
    said, ran = np.array([10, 10, 40]), np.array([10, 20, 30])
    assert r2(said, ran) == 1 - 200 / 200
    assert r2(ran, ran) == 1
    assert r2(np.full(3, 20), ran) == 0
    assert mean_error_s(said, ran) == pytest.approx(20 / 3)
    assert outlived(said, ran) == 1 / 3
    assert pinball_s(said, ran, 0.9) == pytest.approx((0.9 * 10 + 0.1 * 10) / 3)


def test_nothing_to_say() -> None:
    none = np.empty(0, np.int64)
    assert all(isnan(value) for value in (r2(none, none), mean_error_s(none, none), outlived(none, none)))
    assert isnan(pinball_s(none, none, 0.5))
    assert isnan(r2(np.array([1, 2]), np.array([5, 5])))
