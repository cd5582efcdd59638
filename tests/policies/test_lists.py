"""The list family as objects: what they refuse, a user's own order, and plans that can be carried out."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from dovetail.engine.contract import random_workload
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import PolicyError, SettingError
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import RulePolicy
from dovetail.policies.conservative import Conservative
from dovetail.policies.deadline import DeadlineBackfilling
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy
from dovetail.referee import check_plan
from tests.contract.cases import case

ORDERS_FILE = """
import numpy as np

seen = []


def saf(state):
    return state.size[state.waiting] * state.estimate[state.waiting]


def xfactor(state):
    estimate = state.estimate[state.waiting].astype(float)
    wait = (state.now - state.submit[state.waiting]).astype(float)
    return -((wait + estimate) / estimate)


def watch(state):
    seen.append([
        state.now, state.free, state.processors, state.seed, state.waiting.tolist(), state.running.tolist(),
        state.arrived.tolist(), state.ended.tolist(), state.submit[state.waiting].tolist(),
        state.start[state.running].tolist(), state.user[state.waiting].tolist(),
        state.limit[state.waiting].tolist(),
    ])
    return -state.waiting


def short(state):
    return state.waiting[1:]


def endless(state):
    return state.waiting / 0.0


def words(state):
    return ["a"] * len(state.waiting)


def vandal(state):
    state.start[:] = 0
    return state.waiting
"""


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    path = tmp_path / "orders.py"
    path.write_text(ORDERS_FILE)
    return path


@pytest.mark.slow
@pytest.mark.parametrize("order", ["saf", "xfactor"])
@pytest.mark.parametrize(
    "rest", ["reserve=1", "reserve=all", "reserve=strict,starve=20", "reserve=2,backfill=sjf", "slack=0.5"]
)
def test_a_users_order_equals_the_built_in_one_with_the_same_formula(orders: Path, order: str, rest: str) -> None:
    mine, built_in = policy(f"list:order={orders}:{order},{rest}"), policy(f"list:order={order},{rest}")
    assert isinstance(mine, ListPolicy)
    assert isinstance(built_in, ListPolicy)
    for seed in range(20):
        this = case(seed)
        for by_event in (False, True):
            got, wanted = (this.replay(p, event_by_event=by_event) for p in (mine, built_in))
            assert got.start.tolist() == wanted.start.tolist(), (seed, by_event)
            assert got.promised_first.tolist() == wanted.promised_first.tolist(), (seed, by_event)


def test_a_users_order_sees_the_same_in_both_engines(orders: Path) -> None:
    mine = policy(f"list:order={orders}:watch,reserve=1")
    assert isinstance(mine, ListPolicy)
    assert callable(mine.order)
    seen = mine.order.__globals__["seen"]
    calls = 0
    for seed in range(40):
        views = []
        for by_event in (False, True):
            seen.clear()
            replace(case(seed), every_s=0).replay(mine, event_by_event=by_event)
            views.append(list(seen))
        assert views[0] == views[1], seed
        calls += len(views[0])
    assert calls > 300


@pytest.mark.parametrize("by_event", [False, True])
@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        ("short", SettingError, "one finite number for each of the"),
        ("words", SettingError, "must give numbers"),
        ("vandal", PolicyError, "raised ValueError: .*read-only"),
    ],
)
def test_what_a_users_order_may_not_do(
    orders: Path, name: str, error: type[Exception], words: str, by_event: bool
) -> None:
    mine = policy(f"list:order={orders}:{name},reserve=1")
    assert isinstance(mine, ListPolicy)
    with pytest.raises(error, match=words):
        case(3).replay(mine, event_by_event=by_event)


def test_keys_must_be_finite(orders: Path) -> None:
    mine = policy(f"list:order={orders}:endless,reserve=1")
    assert isinstance(mine, ListPolicy)
    with np.errstate(all="ignore"), pytest.raises(SettingError, match="finite"):
        case(3).replay(mine)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ListPolicy("nonsense"),
        lambda: ListPolicy(backfill="nonsense"),
        lambda: ListPolicy(reserve=-1),
        lambda: ListPolicy(reserve="some"),
        lambda: ListPolicy(starve_s=-1),
        lambda: ListPolicy(relax=float("inf")),
        lambda: ListPolicy(slack=-0.1),
        lambda: ListPolicy(reserve=0, slack=0.1),
        lambda: ListPolicy(reserve="strict", relax=0.1),
        lambda: Conservative("nonsense"),
    ],
)
def test_settings_that_make_no_sense(make: type[ListPolicy]) -> None:
    with pytest.raises(SettingError):
        make()


def test_the_largest_slack_does_not_overflow() -> None:
    """So much slack that no reservation counts: greedy in the same order, but for who has been reserved."""
    for seed in range(50):
        this = case(seed)
        loose = this.replay(ListPolicy("fcfs", 1, relax=1e6, slack=1e6))
        assert loose.start.tolist() == this.replay(ListPolicy("fcfs", 0)).start.tolist(), seed


def test_a_backfill_order_equal_to_the_order_changes_nothing() -> None:
    for seed in range(30):
        this = case(seed)
        same = this.replay(ListPolicy("sjf", 1, "sjf")).start.tolist()
        assert same == this.replay(ListPolicy("sjf", 1)).start.tolist()


@pytest.mark.slow
def test_plans_can_be_carried_out() -> None:
    """What runs, starts and is reserved fits together: nothing stays in a plan from an earlier one."""
    plans = 0
    for seed in range(400):
        this = case(seed)
        if isinstance(this.policy, ListPolicy) and (this.policy.relax or this.policy.slack):
            continue  # their plans carry the first reservation of each job, from which slack is measured

        kept = this.bounded and not (isinstance(this.policy, DeadlineBackfilling) and not this.policy.guard)

        def see(state: State, plan: Plan, seed: int = seed, kept: bool = kept) -> None:
            nonlocal plans
            assert check_plan(state, plan, deadlines=kept) == [], seed
            plans += len(plan.promised) > 1

        cluster, every_s = Cluster(this.processors), this.every_s
        assert Stepper(this.workload, cluster, this.policy, this.estimate, every_s=every_s, see=see).advance()
    assert plans > 1000


def test_asked_twice_a_policy_says_the_same() -> None:
    for seed in range(100):
        this = case(seed)

        def see(state: State, plan: Plan, policy: RulePolicy = this.policy) -> None:
            assert policy.decide(state) == plan

        Stepper(this.workload, Cluster(this.processors), this.policy, this.estimate, see=see).advance()


@pytest.mark.slow
def test_a_large_relax_pushes_far_and_does_not_wrap() -> None:
    n, long = 1200, 10**10
    size = np.full(n, 4)
    size[0], size[-1] = 3, 1
    columns = {"id": np.arange(1, n + 1), "submit": np.arange(n), "size": size}
    columns |= {"runtime": np.full(n, long), "limit": np.full(n, long)}
    workload = Workload("long", columns, 4, Provenance("made here"))
    for relax in (1000.0, 1_000_000.0):
        assert replay(workload, ListPolicy("fcfs", "all", relax=relax)).start[-1] == n - 1


def test_a_static_user_key_gives_the_same_schedule_as_one_asked_at_each_pass() -> None:
    def per_pass(state: State) -> npt.NDArray[np.float64]:
        return np.asarray(state.estimate[state.waiting] * 1000 + state.size[state.waiting], np.float64)

    def once(state: State) -> npt.NDArray[np.float64]:
        return per_pass(state)

    once.static = True  # type: ignore[attr-defined]
    for seed in range(20):
        workload, cluster = random_workload(np.random.Generator(np.random.PCG64(seed)))
        for reserve in (0, 1, "all"):
            moving, static = ListPolicy(per_pass, reserve), ListPolicy(once, reserve)
            wanted = replay(workload, moving, cluster=cluster).start
            assert np.array_equal(replay(workload, static, cluster=cluster).start, wanted)
            assert np.array_equal(replay(workload, static, cluster=cluster, event_by_event=True).start, wanted)


def test_a_static_user_key_sees_the_submits() -> None:
    def last_first(state: State) -> npt.NDArray[np.int64]:
        return -state.submit[state.waiting]

    last_first.static = True  # type: ignore[attr-defined]
    columns = {"id": [1, 2, 3, 4], "submit": [0, 1, 2, 3], "size": [4] * 4, "runtime": [10] * 4, "limit": [10] * 4}
    four = Workload("four", {k: np.array(v) for k, v in columns.items()}, 4, Provenance("here"))
    for by_event in (False, True):
        assert replay(four, ListPolicy(last_first, 1), event_by_event=by_event).start.tolist() == [0, 30, 20, 10]


def test_jobs_come_in_the_order_of_their_priorities() -> None:
    rows = {"id": [1, 2, 3, 4], "submit": [0, 1, 2, 3], "size": [1] * 4, "runtime": [10] * 4, "limit": [10] * 4}
    columns = {name: np.array(values) for name, values in (rows | {"priority": [0, 5, -1, 7]}).items()}
    workload = Workload("four", columns, 1, Provenance("by hand"))
    for by_event in (False, True):
        made = replay(workload, policy("easy:order=priority"), event_by_event=by_event)
        assert made.start.tolist() == [0, 20, 30, 10]
    del columns["priority"]
    with pytest.raises(SettingError, match="says none for its jobs"):
        replay(Workload("four", columns, 1, Provenance("by hand")), policy("easy:order=priority"))
