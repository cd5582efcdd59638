"""Estimates that need no learning."""

from __future__ import annotations

import re

import numpy as np
import pytest

from dovetail.errors import SettingError
from dovetail.model.workload import Provenance, Workload
from dovetail.predict.known import estimates
from dovetail.predict.registry import predictor


@pytest.fixture
def workload() -> Workload:
    runtime = np.array([1, 3, 10, 0, 7])
    one = np.ones(5, np.int64)
    columns = {
        "id": one.cumsum(),
        "submit": one,
        "size": one,
        "runtime": runtime,
        "limit": np.array([5, 3, 9, 4, -1]),
    }
    return Workload("five", columns, 4, Provenance("made here"))


@pytest.mark.parametrize(
    ("name", "wanted"),
    [
        ("runtime", [1, 3, 10, 1, 7]),
        ("limit", [5, 3, 9, 4, 1]),
        ("runtime*1", [1, 3, 10, 1, 7]),
        ("runtime*1.5", [2, 5, 15, 1, 11]),  # 1.5, 4.5 and 10.5 go up
        ("runtime*0.5", [1, 2, 5, 1, 4]),  # 0.5, 1.5 and 3.5 too; never below 1 s, and the limit is no cap
        ("runtime*100", [100, 300, 1000, 1, 700]),
    ],
)
def test_estimates(workload: Workload, name: str, wanted: list[int]) -> None:
    got = estimates(workload, name)
    assert got.tolist() == wanted
    assert got.dtype == np.int64


@pytest.mark.parametrize(
    ("name", "says"),
    [("", "choose from runtime, limit, runtime*FACTOR, recent"), ("Runtime", "did you mean runtime?")]
    + [(one, "runtime*FACTOR") for one in ("runtime*", "runtime*-1", "runtime*1e3", "limit*2", "runtime * 2")],
)
def test_errors_list_the_choices(workload: Workload, name: str, says: str) -> None:
    with pytest.raises(SettingError, match=re.escape(says)):
        predictor(name)
    with pytest.raises(SettingError, match=r"only runtime, limit and runtime\*F are known"):
        estimates(workload, name)


def test_a_factor_that_leaves_64_bits_is_refused(workload: Workload) -> None:
    with pytest.raises(SettingError, match="64 bits"):
        estimates(workload, "runtime*1000000000000000000")
