"""Whose turn it is in a replay: by shares and by priorities, in lists and in plans, whole and event by event."""

from __future__ import annotations

import random
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.engine.contract import check_policy, random_workload
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import InputError, SettingError, StateError
from dovetail.io.turns import read_turns
from dovetail.model.cluster import Cluster, NodeKind, Outage, by_node
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.turns import Turns
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import Policy
from dovetail.policies.lists import ListPolicy
from dovetail.policies.planner import Planner
from dovetail.policies.registry import policy
from dovetail.policies.shares import HALF, Tree
from dovetail.referee import check_schedule
from tests.policies.test_shares import slowly
from tests.slow import planning as slow

THREE = Turns("user", shares=(("1", 3), ("2", 1), ("3", 1)), half_life_s=50, every_s=7)
RANKED = Turns("user", priority=(("1", 2.5), ("3", 9.0)), others=1.0)


def policies(turns: Turns) -> list[Policy]:
    return [
        ListPolicy(turns), ListPolicy(turns, reserve=1), Planner(favour=turns, decodes=20),
        Planner("awf+wait", decodes=20, favour=turns, strength=2, patient=0.1), Planner("p2sf", 20, favour=turns),
    ]  # fmt: skip


@pytest.mark.parametrize("turns", [THREE, RANKED])
@pytest.mark.parametrize("which", range(5))
def test_whole_and_event_by_event_are_the_same(turns: Turns, which: int) -> None:
    chosen, differ = policies(turns)[which], 0
    plain = [ListPolicy(), ListPolicy(reserve=1), Planner(decodes=20), None, Planner("p2sf", 20)][which]
    for seed in range(60):
        workload, cluster = random_workload(np.random.Generator(np.random.PCG64([7, seed])))
        whole = replay(workload, chosen, cluster=cluster, seed=seed)
        stepped = replay(workload, chosen, cluster=cluster, seed=seed, event_by_event=True)
        assert whole.start.tolist() == stepped.start.tolist(), seed
        assert not check_schedule(whole)
        if plain is not None:
            differ += whole.start.tolist() != replay(workload, plain, cluster=cluster, seed=seed).start.tolist()
    assert plain is None or differ > 10


def on_nodes(seed: int) -> tuple[Workload, Cluster]:
    """Jobs on nodes that fail, some of them after others, some leaving."""
    rng = np.random.Generator(np.random.PCG64([8, seed]))
    n = 24
    limit = rng.integers(2, 40, n)
    columns = {
        "id": np.arange(1, n + 1), "submit": np.sort(rng.integers(0, 120, n)), "size": rng.integers(1, 5, n),
        "runtime": rng.integers(1, limit + 1), "limit": limit, "user": rng.integers(1, 4, n),
        "not_before_s": np.where(rng.random(n) < 0.2, rng.integers(0, 30, n), -1),
    }  # fmt: skip
    fails = Outage((0, 1), 40, 60, fails=True)
    cluster = by_node(("cores",), (NodeKind("one", 4, (2,)),))
    cluster = Cluster(cluster.processors, cluster.resources, cluster.kinds, outages=(fails,))
    return Workload("drawn", columns, cluster.processors, Provenance("drawn")), cluster


@pytest.mark.parametrize("which", [0, 1, 2])
def test_on_nodes_that_fail_too(which: int) -> None:
    chosen, lost = policies(THREE)[which], 0
    for seed in range(25):
        workload, cluster = on_nodes(seed)
        whole, stepped = (replay(workload, chosen, cluster=cluster, event_by_event=way) for way in (False, True))
        assert whole.start.tolist() == stepped.start.tolist(), seed
        assert not check_schedule(whole)
        lost += len(whole.lost)
    assert lost > 5


def _keep(seen: list[tuple[State, Plan]], state: State, plan: Plan) -> None:
    seen.append((state, plan))


def slow_turns(turns: Turns, workload: Workload, state: State, ran: list[tuple[int, int, int]]) -> dict[int, float]:
    """Where each user stands at a state, second by second; `ran`: which job ran from when to when."""
    names = [name for name, _ in turns.shares]
    users = sorted({str(user) for user in workload["user"].tolist()})
    above = (*[-1] * len(names), *[names.index(user) for user in users])
    shares = (*[shares for _, shares in turns.shares], *[1] * len(users))
    tree = Tree(above, shares, (*[False] * len(names), *[True] * len(users)))
    keeps, used = 1 - HALF / turns.half_life_s, [np.longdouble(0)] * len(above)
    total = np.longdouble(0)
    for at in range(int(workload.submit[0]), state.now - turns.every_s + 1, turns.every_s):
        used = [amount * keeps ** float(turns.every_s) for amount in used]
        total *= np.longdouble(keeps ** float(turns.every_s))
        for job, begin, end in ran:
            seconds = sum(begin <= second < end for second in range(at, at + turns.every_s))
            if seconds:
                amount = np.longdouble(seconds * keeps ** float(seconds) * float(workload.size[job]))
                user = len(names) + users.index(str(workload["user"][job]))
                used[user] += amount
                used[above[user]] += amount
                total += amount
    stand = slowly(tree, used, total)  # type: ignore[arg-type]
    return {int(user): stand[len(names) + i] for i, user in enumerate(users)}


@pytest.mark.parametrize("nodes", [False, True])
def test_the_turn_is_that_of_slow_code(nodes: bool) -> None:
    passes, places = 0, set[float]()
    for seed in range(30):
        rng = np.random.Generator(np.random.PCG64([9, seed]))
        workload, cluster = on_nodes(seed) if nodes else random_workload(rng)
        seen = list[tuple[State, Plan]]()
        see = partial(_keep, seen)
        stepper = Stepper(workload, cluster, ListPolicy(THREE), np.array(workload.limit), see=see)
        stepper.advance()
        ran = [(job, at, at + int(workload.runtime[job])) for job, at in enumerate(stepper.start.tolist()) if at >= 0]
        ran = sorted([*ran, *((one.job, one.start, one.end) for one in stepper.lost)])
        for state, _ in seen:
            if not len(state.waiting):
                continue
            wanted = slow_turns(THREE, workload, state, [one for one in ran if one[1] < state.now])
            found = {int(workload["user"][job]): float(state.turn[job]) for job in state.waiting.tolist()}
            assert found == {user: pytest.approx(wanted[user], rel=1e-12) for user in found}, (seed, state.now)
            places |= set(found.values())
            passes += 1
    assert passes > 200
    assert len(places) >= 3


def favoured_count(seed: int) -> int:
    """No list plan is better where a job's wait counts by whose turn it is."""
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64([10, seed])))
    seen = list[tuple[State, Plan]]()
    chosen = Planner("af", decodes=20, long_s=None, favour=THREE, strength=2)
    Stepper(workload, cluster, chosen, np.array(workload.limit), see=lambda s, p: seen.append((s, p))).advance()
    passes = 0
    for state, plan in seen:
        if not any(state.size[job] <= state.free for job in state.waiting.tolist()):
            continue

        def value(starts: dict[int, int], state: State = state) -> float:
            return sum(
                float(state.turn[job]) ** 2 * (at - int(state.submit[job]) + int(state.estimate[job]))
                for job, at in starts.items()
            )

        got = {job: state.now if job in plan.starts else plan.expected[job] for job in state.waiting.tolist()}
        best = min(value(slow.placed(state, order)) for order in slow.list_orders(state))
        assert value(got) <= best * (1 + 1e-12), (seed, state.now)
        passes += 1
    return passes


def test_in_a_plan_a_wait_counts_by_whose_it_is() -> None:
    assert sum(map(favoured_count, range(40))) > 150


def test_it_keeps_the_contract(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text('by = "user"\nothers = 1\n[shares]\n1 = 3\n')
    for name in ("list:order={}", "plan-awf:favour={},decodes=10"):
        findings = check_policy(policy(name.format(tmp_path / "s.toml")), cases=5)
        assert not [one for one in findings if one.broken]


def three_accounts(n: int = 3000) -> Workload:
    """A machine that is asked for a third more than it has, by three accounts alike."""
    rng = random.Random(5)
    limit = [rng.randint(600, 14400) for _ in range(n)]
    size = [rng.choice((1, 2, 4, 8, 16)) for _ in range(n)]
    gap = sum(s * d for s, d in zip(size, limit, strict=True)) / n / 64 / 1.35
    columns = {
        "id": np.arange(1, n + 1), "submit": np.cumsum([int(rng.expovariate(1 / gap)) for _ in range(n)]),
        "size": np.array(size), "runtime": np.array(limit), "limit": np.array(limit),
        "account": np.array([rng.randrange(3) for _ in range(n)]),
        "user": np.array([rng.randrange(9) for _ in range(n)]),
    }  # fmt: skip
    return Workload("three", columns, 64, Provenance("drawn"), names={"account": ("biology", "physics", "chemistry")})


def received(workload: Workload, start: np.ndarray) -> list[float]:
    """What each account has had of what all had while all of them had jobs waiting: until the last submit."""
    last = int(workload.submit[-1])
    had = np.clip(np.minimum(start + workload.runtime, last) - start, 0, None) * workload.size
    return [float(part) for part in np.bincount(workload["account"], weights=had) / had.sum()]


def test_accounts_receive_what_is_due_to_them() -> None:
    turns = Turns("account", shares=(("physics", 6), ("biology", 3), ("chemistry", 1)))
    workload = three_accounts()
    shared, alike = (replay(workload, one) for one in (ListPolicy(turns), ListPolicy()))
    assert received(workload, alike.start) == pytest.approx([1 / 3, 1 / 3, 1 / 3], abs=0.05)
    # Physics asks for 0.45 of the machine and gets it; the others share the rest three to one.
    assert received(workload, shared.start) == pytest.approx([0.41, 0.45, 0.14], abs=0.02)
    planned = replay(workload, Planner("awf", favour=turns, strength=4))
    assert received(workload, planned.start)[1] > received(workload, alike.start)[1] + 0.05
    waits = [np.bincount(workload["account"], weights=one.start - workload.submit)[1] for one in (shared, alike)]
    assert waits[0] < waits[1] / 4


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[shares]\na = 1", "says whose a job is"),
        ('by = "acount"\n[shares]\na = 1', "did you mean account"),
        ('by = "user"', r"write one section, \[shares\] or \[priority\]"),
        ('by = "user"\n[shares]\n1 = 1\n[priority]\n1 = 1', "write one section"),
        ('by = "user"\n[shares]\n1 = 1.5', "must be a whole number"),
        ('by = "user"\n[shares]\n1 = -1', "must be a whole number from 0"),
        ('by = "user"\n[priority]\n1 = inf', "must be a number from 0"),
        ('by = "user"\n[priority]\n1 = true', "must be a number from 0"),
        ('by = "user"\n[shares]\n1 = 0', "nobody has shares"),
        ('by = "user"\nhalflife = "7d"\n[shares]\n1 = 1', "did you mean half_life"),
        ('by = "user"\nhalf_life = 7\n[shares]\n1 = 1', "must be a duration"),
        ('by = "user"\nevery = "0s"\n[shares]\n1 = 1', "must be a duration"),
        ('by = "qos"\nevery = "5m"\n[priority]\nhigh = 1', "are of shares"),
        ('by = "user"\n[shares]\na = 1\n[members]\nb = [1]', "no name 'b'"),
        ('by = "user"\n[shares]\na = 1\n[members]\na = 1', "must be a list"),
        ('by = "user"\n[shares]\na = 1\nb = 1\n[members]\na = [1]\nb = ["1"]', "named twice"),
        ("by = [", "not TOML"),
    ],
)
def test_files_that_say_it_wrong(text: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "s.toml"
    file.write_text(text)
    with pytest.raises((InputError, SettingError), match=said):
        read_turns(file)
    with pytest.raises((InputError, SettingError), match=said):
        policy(f"list:order={file}")


def test_who_is_not_named() -> None:
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64(1)))
    with pytest.raises(SettingError, match="give it a number, or all that are not named one as others"):
        replay(workload, ListPolicy(Turns("user", shares=(("1", 3),))), cluster=cluster)
    with pytest.raises(SettingError, match="does not say of its jobs; it says user"):
        replay(workload, ListPolicy(Turns("qos", priority=(("high", 3),))), cluster=cluster)
    with pytest.raises(SettingError, match="give one of them"):
        Turns("user")


def test_a_state_that_does_not_say_it() -> None:
    seen = list[State]()
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64(1)))
    Stepper(workload, cluster, ListPolicy(), np.array(workload.limit), see=lambda s, _: seen.append(s)).advance()
    state = next(one for one in seen if len(one.waiting))
    with pytest.raises(SettingError, match="does not say whose turn it is"):
        ListPolicy(THREE).decide(state)
    n = len(state.submit)
    wrong: tuple[Any, ...] = (np.full(n, -1.0), np.full(n, np.nan), np.ones(n + 1), np.ones(n, np.int64))
    for turn in wrong:
        with pytest.raises(StateError, match="turn"):
            ListPolicy(THREE).decide(replace(state, turn=turn))
