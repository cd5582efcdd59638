"""Timed replays: the same schedules, one duration per pass, and the passes in which a job fitted told apart."""

from __future__ import annotations

import time

import numpy as np
import pytest

from dovetail.engine.contract import random_workload
from dovetail.engine.pass_times import timed_replay
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import SettingError
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import Policy
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy
from tests.engine.first_fits import first_fits


class Slow(Policy):
    """Starts whatever fits, in order of arrival, and burns some CPU time when three jobs wait."""

    name = "slow"

    def decide(self, state: State) -> Plan:
        if len(state.waiting) == 3:
            begin = time.thread_time()
            while time.thread_time() - begin < 0.02:
                pass
        return first_fits(state)


POLICIES = [
    policy("easy"), policy("list-reg"), policy("list-sjf"), policy("conservative"), policy("list:relax=0.2"),
    policy("plan-awf:decodes=5"), Slow(),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("chosen", POLICIES, ids=lambda one: one.name)
@pytest.mark.parametrize("estimate", ["limit", "runtime"])
def test_the_schedule_is_that_of_a_replay(chosen: Policy, estimate: str) -> None:
    for case in range(10):
        workload, cluster = random_workload(np.random.Generator(np.random.PCG64([7, case])))
        wanted = replay(workload, chosen, cluster=cluster, estimate=estimate, seed=3)
        got, times = timed_replay(workload, chosen, cluster=cluster, estimate=estimate, seed=3)
        for column in ("start", "arrive", "promised_first", "promised_last"):
            assert getattr(got, column).tolist() == getattr(wanted, column).tolist()
        assert (got.policy, got.estimate, got.seed) == (wanted.policy, wanted.estimate, wanted.seed)
        assert got.versions == wanted.versions
        assert got.passes == wanted.passes == len(times.seconds) == len(times.searched)
        assert np.all(times.seconds >= 0)
        assert 0 <= times.overhead_s < 0.001


@pytest.mark.parametrize("name", ["list-reg", "plan-af:decodes=5"])
def test_searched_are_the_passes_in_which_a_job_fits(name: str) -> None:
    fitted: list[bool] = []

    def see(state: State, plan: Plan) -> None:
        fitted.append(any(state.size[job] <= state.free for job in state.waiting))

    for case in range(10):
        workload, cluster = random_workload(np.random.Generator(np.random.PCG64([8, case])))
        fitted.clear()
        Stepper(workload, cluster, policy(name), np.array(workload.limit), see=see).advance()
        assert timed_replay(workload, policy(name), cluster=cluster)[1].searched.tolist() == fitted


def test_a_slow_pass_is_the_one_that_took_long() -> None:
    # Three jobs arrive together at 10 s, when one runs: the second pass of four.
    columns = {
        "id": np.arange(4), "submit": np.array([0, 10, 10, 10]), "size": np.array([1, 1, 1, 1]),
        "runtime": np.full(4, 20), "limit": np.full(4, 20),
    }  # fmt: skip
    workload = Workload("four", columns, 4, Provenance("by hand"))
    schedule, times = timed_replay(workload, Slow())
    assert schedule.passes == 4
    assert times.searched.tolist() == [True, True, False, False]
    assert times.seconds[1] >= 0.02
    assert max(times.seconds[[0, 2, 3]]) < 0.02


def test_feedback_is_timed_too() -> None:
    columns = {
        "id": np.array([1, 2]), "submit": np.array([0, 1]), "size": np.array([1, 1]), "runtime": np.array([5, 5]),
        "limit": np.array([5, 5]), "after": np.array([-1, 1]), "think_s": np.array([-1, 3]),
    }  # fmt: skip
    workload = Workload("two", columns, 1, Provenance("by hand"))
    schedule, times = timed_replay(workload, policy("easy"), feedback=True)
    assert schedule.arrive.tolist() == [0, 8]
    assert len(times.seconds) == schedule.passes == 4
    assert times.searched.tolist() == [True, False, True, False]


def test_an_order_of_the_users_is_refused() -> None:
    workload, _ = random_workload(np.random.Generator(np.random.PCG64(1)))
    for keyed in (ListPolicy(order=lambda state: state.waiting), policy("plan:objective=wait")):
        with pytest.raises(SettingError, match="asked for on the way"):
            timed_replay(workload, keyed)


def test_more_decodes_take_longer() -> None:
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64([9, 9])))
    few, many = (timed_replay(workload, policy(f"plan-af:decodes={n}"), cluster=cluster)[1] for n in (1, 20_000))
    assert many.seconds.sum() > 5 * few.seconds.sum()


def test_a_policy_that_knows_the_future_is_still_shown_it() -> None:
    from tests.policies.published.test_solver import jobs_of
    from tests.policies.test_offline import Knows

    workload = jobs_of([0, 0, 3, 9], [1, 1, 1, 1], [5, 4, 2, 2], 2)
    chosen = Knows()
    timed_replay(workload, chosen)
    assert [state.future.tolist() for state in chosen.seen][:2] == [[2, 3], [3]]
