"""Exact sums against Python's own integers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dovetail.metrics import exact

LARGE = st.integers(0, 2**63 - 1)


@given(st.lists(st.tuples(LARGE, LARGE), max_size=30))
def test_sums_of_any_int64(pairs: list[tuple[int, int]]) -> None:
    a = np.array([x for x, _ in pairs], np.int64)
    b = np.array([y for _, y in pairs], np.int64)
    assert exact.exact_sum(a) == sum(x for x, _ in pairs)
    assert exact.exact_dot(a, b) == sum(x * y for x, y in pairs)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), max_size=30))
def test_sums_may_be_of_negative_values(values: list[int]) -> None:
    assert exact.exact_sum(np.array(values, np.int64)) == sum(values)


@given(st.lists(LARGE, min_size=1, max_size=30))
def test_running_sums_are_rounded_not_accumulated(values: list[int]) -> None:
    found = exact.running_sum(np.array(values, np.int64))
    total = 0
    for value, got in zip(values, found, strict=True):
        total += value
        assert abs(int(got) - total) <= total * 2**-52


@pytest.mark.parametrize("n", [0, 1, exact.BLOCK - 1, exact.BLOCK, exact.BLOCK + 1])
def test_full_blocks_of_the_largest_limbs_do_not_wrap(n: int) -> None:
    top = (1 << 21) - 1
    assert exact.exact_dot(np.full(n, top), np.full(n, top)) == n * top * top
    assert exact.exact_dot(np.full(n, 2**63 - 1), np.full(n, 2**63 - 1)) == n * (2**63 - 1) ** 2
    assert exact.exact_sum(np.full(n, 2**63 - 1)) == n * (2**63 - 1)


def test_blocks_cover_everything_once() -> None:
    assert [list(range(10))[part] for part in exact.blocks(10, 4)] == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
    assert list(exact.blocks(0)) == []
