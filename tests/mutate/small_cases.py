"""Small contract cases one by one, so that a mutant is found by the first that differs. Not collected by pytest on its
own: tests/contract runs the same in bundles."""

from __future__ import annotations

import pytest

from dovetail.policies import lists
from tests.contract.cases import case, disagreements
from tests.contract.test_long_queues import tree_case


@pytest.mark.parametrize("seed", range(120))
def test_a_case(seed: int) -> None:
    assert disagreements(case(seed)) == []


@pytest.mark.parametrize("seed", range(60))
def test_a_case_in_a_tree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "TREE_ABOVE", 1 + seed % 2)
    assert disagreements(tree_case(seed)) == []
