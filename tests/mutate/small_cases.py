"""Small contract cases one by one, so that a mutant is found by the first that differs. Not collected by pytest on its
own: tests/contract runs the same in bundles."""

from __future__ import annotations

import pytest

from tests.contract.cases import case, disagreements


@pytest.mark.parametrize("seed", range(120))
def test_a_case(seed: int) -> None:
    assert disagreements(case(seed)) == []
