"""Small cases one by one, so that a mutant is found by the first that differs. Not collected by pytest on its own:
other tests run the same in bundles."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dovetail.policies import lists
from tests.contract import test_nodes as on_nodes
from tests.contract.cases import case, disagreements
from tests.contract.test_long_queues import depth_and_groups, tree_case
from tests.engine import test_power_cap as power_cap
from tests.kernels.test_nodes import what_is_taken_out_of_a_plan_is_free_again
from tests.policies import test_energy_planner as money
from tests.policies import test_planner as planners
from tests.predict import test_history as history


@pytest.mark.parametrize("seed", range(120))
def test_a_case(seed: int) -> None:
    assert disagreements(case(seed)) == []


@pytest.mark.parametrize("seed", range(60))
def test_a_case_in_a_tree(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "TREE_ABOVE", 1 + seed % 2)
    assert disagreements(tree_case(seed)) == []


@pytest.mark.parametrize("seed", range(99))
def test_a_case_on_nodes(seed: int) -> None:
    assert on_nodes.disagreement(seed) == []


@pytest.mark.parametrize("seed", range(40))
def test_a_case_under_a_power_cap(seed: int) -> None:
    assert power_cap.differences(seed, seed + 1) == []
    assert power_cap.corrections(seed, seed + 1) == []


@pytest.mark.parametrize("seed", range(40))
def test_a_plan_for_money(seed: int) -> None:
    money.plans_of_one_case(seed)
    money.both_engines_agree_in_one_case(seed)


@pytest.mark.parametrize("check", money.CHECKS[4:])
def test_a_small_example_of_money(check: Callable[[], None]) -> None:
    check()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("name", history.OBVIOUS)
def test_estimates_of_one_workload(name: str, seed: int) -> None:
    history.as_said_by_an_obvious_predictor(name, "limit", seed)


@pytest.mark.parametrize("seed", range(30))
def test_starving_jobs_of_one_workload(seed: int) -> None:
    planners.starving_come_first(seed)


@pytest.mark.parametrize("seed", range(30))
def test_long_waits_in_one_workload(seed: int) -> None:
    planners.long_waits_count(seed)


@pytest.mark.parametrize("seed", range(24))
def test_a_planner_with_a_depth_or_groups(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    depth_and_groups(seed, monkeypatch)


@pytest.mark.parametrize("seed", range(80))
def test_promises_of_one_workload(seed: int) -> None:
    planners.promises_are_kept_as_well_as_by_lists(seed)


@pytest.mark.parametrize("seed", range(12))
def test_what_is_taken_out_of_one_plan(seed: int) -> None:
    what_is_taken_out_of_a_plan_is_free_again(seed)
