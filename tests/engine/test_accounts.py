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
from dovetail.engine.pass_times import timed_replay
from dovetail.engine.replay import replay, warm
from dovetail.engine.stepped import Stepper
from dovetail.errors import InputError, SettingError, StateError
from dovetail.io.turns import read_turns
from dovetail.model.cluster import Cluster, NodeKind, Outage, by_node
from dovetail.model.plan import Plan
from dovetail.model.shares import HALF, Tree
from dovetail.model.state import State
from dovetail.model.turns import Turns
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.base import Policy
from dovetail.policies.lists import ListPolicy
from dovetail.policies.planner import Planner
from dovetail.policies.published.switch import Switch
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from tests.model.test_shares import slowly
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
    """Jobs on nodes that fail; some come later than they were submitted."""
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


def slow_turns(
    turns: Turns, workload: Workload, state: State, ran: list[tuple[int, int, int]], came: dict[int, int]
) -> dict[int, float]:
    """Where each user stands at a state, second by second. `ran`: which job ran from when to when; `came`: when which
    did first."""
    names = [name for name, _ in turns.shares]
    users = sorted({str(user) for user in workload["user"].tolist()})
    above = (*[-1] * len(names), *[names.index(user) for user in users])
    shares = (*[shares for _, shares in turns.shares], *[1] * len(users))
    tree = Tree(above, shares, (*[False] * len(names), *[True] * len(users)))
    keeps, used = 1 - HALF / turns.half_life_s, [np.longdouble(0)] * len(above)
    total = np.longdouble(0)
    first = int(workload.submit[0])
    for at in range(first, state.now - turns.every_s + 1, turns.every_s):
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
    last = state.now - (state.now - first) % turns.every_s
    if last == first:  # nothing has been counted
        return dict.fromkeys(map(int, users), 1.0)
    seen = {str(workload["user"][job]) for job, at in came.items() if at <= last}
    found = {}
    for i, name in enumerate(users):
        own = stand[len(names) + i]
        among = [users.index(one) for one in seen | {name}]
        found[int(name)] = sum(stand[len(names) + one] <= own for one in among) / len(among)
    return found


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
        came = {job: at for job, at in enumerate(stepper.arrive.tolist()) if at >= 0} | stepper.first_arrive
        for state, _ in seen:
            if not len(state.waiting):
                continue
            wanted = slow_turns(THREE, workload, state, [one for one in ran if one[1] < state.now], came)
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
    (tmp_path / "s.toml").write_text('by = "account"\nevery = "3s"\n[shares]\nx = 3\ny = 1\n[members]\nx = [1, 2]\n')
    for name in ("list:order={}", "plan-awf:favour={},decodes=10", "switch:plain=easy;order={},mixed=easy,many=easy"):
        findings = check_policy(policy(name.format(tmp_path / "s.toml")), cases=15)
        assert not [one for one in findings if one.broken]


def test_users_to_come_change_nothing() -> None:
    """Who stands where is counted among those who have come."""
    differ = 0
    for seed in range(40):
        workload, cluster = random_workload(np.random.Generator(np.random.PCG64([11, seed])))
        n, last = len(workload), int(workload.submit[-1])
        more = {name: np.concatenate([values, values[:8]]) for name, values in workload.columns.items()}
        new = min(8, n)
        more["id"] = np.arange(1, n + new + 1)
        more["submit"] = np.concatenate([workload.submit, np.full(new, last + 10_000)])
        more["user"] = np.concatenate([workload["user"], 10 + np.arange(new)])
        turns = replace(THREE, others=1.0)
        for chosen in policies(turns)[:3]:
            alone = replay(workload, chosen, cluster=cluster)
            longer = replay(replace(workload, columns=more), chosen, cluster=cluster)
            assert longer.start[:n].tolist() == alone.start.tolist(), seed
        differ += longer.start[:n].tolist() != replay(workload, Planner(decodes=20), cluster=cluster).start.tolist()
    assert differ > 5


@pytest.mark.parametrize("how", [{"every_s": 5}, {"feedback": True}])
@pytest.mark.parametrize("which", [0, 2])
def test_with_feedback_and_periodic_passes_too(which: int, how: dict[str, Any]) -> None:
    for seed in range(25):
        workload, cluster = random_workload(np.random.Generator(np.random.PCG64([12, seed])))
        n = len(workload)
        rng = np.random.Generator(np.random.PCG64([13, seed]))
        after = np.where(rng.random(n) < 0.4, rng.integers(1, np.arange(n) + 2), -1)
        columns = {**workload.columns, "after": after, "think_s": rng.integers(0, 30, n)}
        columns |= {"leaves_s": np.where(rng.random(n) < 0.3, 40, -1)} if "every_s" in how else {}
        linked = replace(workload, columns=columns)
        chosen = policies(THREE)[which]
        whole, stepped = (replay(linked, chosen, cluster=cluster, event_by_event=way, **how) for way in (False, True))
        assert whole.start.tolist() == stepped.start.tolist(), seed


def one_by_one(users: list[int], submits: list[int], sizes: list[int], lengths: list[int], processors: int) -> Workload:
    columns = {
        "id": np.arange(1, len(users) + 1), "submit": np.array(submits), "size": np.array(sizes),
        "runtime": np.array(lengths), "limit": np.array(lengths), "user": np.array(users),
    }  # fmt: skip
    return Workload("few", columns, processors, Provenance("few"))


def test_nobody_waits_for_a_copy_of_itself_that_may_come() -> None:
    few = one_by_one([2, 1, 2], [0, 100, 100], [1, 2, 1], [1000, 10, 20], 2)
    turns = Turns("user", shares=(("1", 6), ("2", 3)), every_s=7)
    chosen = Planner(favour=turns, strength=4, foresight=1, long_s=None, decodes=20)
    assert replay(few, chosen).start.tolist() == [0, 1000, 100]


@pytest.mark.parametrize("window", [5, 50])
def test_who_is_favoured_comes_first_in_a_long_queue_too(window: int) -> None:
    few = one_by_one([2] * 12 + [1], [0] * 13, [1] * 13, [10] * 13, 1)
    ranked = Turns("user", priority=(("1", 9.0), ("2", 1.0)))
    chosen = Planner(favour=ranked, strength=20, decodes=300, long_s=None, window=window)
    assert replay(few, chosen).start[12] == 0


def test_strength_is_of_favour() -> None:
    with pytest.raises(SettingError, match="give favour too"):
        Planner(strength=4)


@pytest.mark.parametrize("strength", [0.0, 1.0, 40.0, 100.0])
def test_no_strength_is_too_large(strength: float) -> None:
    few = one_by_one([2, 2, 1], [0, 0, 0], [1, 1, 1], [10, 10, 10], 1)
    ranked = Turns("user", priority=(("1", 1e9), ("2", 1.0)))
    chosen = Planner(favour=ranked, strength=strength, decodes=50, long_s=None)
    assert (replay(few, chosen).start[2] == 0) == (strength > 0)


def test_priorities_as_weights_and_kernels_made_beforehand(tmp_path: Path) -> None:
    few = one_by_one([2, 2, 1], [0, 0, 0], [1, 1, 1], [10, 10, 10], 1)
    few = replace(few, columns={**few.columns, "priority": np.array([-1, 1, 5])})
    (tmp_path / "mine.py").write_text(
        "def weights(state):\n    return state.columns['priority'][state.waiting] + 1.0\n"
    )
    for name in ("plan-af:favour=priority", f"plan-af:favour={tmp_path}/mine.py:weights", "easy:order=priority"):
        chosen = policy(name)
        warm(chosen)
        assert replay(few, chosen).start.tolist() == [20, 10, 0]
    with pytest.raises(SettingError, match="priority: the workload says none"):
        replay(one_by_one([1], [0], [1], [1], 1), "plan-af:favour=priority")


def test_shares_of_two_files_do_not_go_together() -> None:
    two = [ListPolicy(turns, name=name) for name, turns in (("a", THREE), ("b", RANKED))]
    with pytest.raises(SettingError, match="different shares"):
        _ = Switch(plain=two[0], mixed=two[1], many=ListPolicy()).turns

    class Weighs(Planner):
        def weigh(self, state: State) -> Any:
            return np.ones(len(state.waiting))

    with pytest.raises(SettingError, match="`weigh` and favour"):
        Weighs("wait", favour=THREE)
    with pytest.raises(SettingError, match="`turns` says whose turn it is"):
        policy(type("Mine", (), {"turns": 3, "decide": lambda self, state: Plan()}))


def test_passes_are_timed_of_a_policy_that_knows_turns() -> None:
    workload, cluster = random_workload(np.random.Generator(np.random.PCG64(3)))
    made, times = timed_replay(workload, Planner(favour=THREE, ms=5), cluster=cluster)
    assert not check_schedule(made)
    assert len(times.seconds)


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
    planned = replay(workload, Planner("awf", decodes=20, favour=turns, strength=4))
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
        ('by = "user"\n[shares]\na = 1\nb = 1\n[members]\na = ["b"]', "named twice"),
        ('by = "user"\n[shares]\na = 1\n[members]\na = [true]', "must be a list of names"),
        (f'by = "user"\n[shares]\na = 0x{"f" * 5000}', "a: must be a whole number"),
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
    with pytest.raises(SettingError, match="give it a number, or set `others` for all that are not named"):
        replay(workload, ListPolicy(Turns("user", shares=(("1", 3),))), cluster=cluster)
    with pytest.raises(SettingError, match="does not say of its jobs; it says user"):
        replay(workload, ListPolicy(Turns("qos", priority=(("high", 3),))), cluster=cluster)
    with pytest.raises(SettingError, match="give one of them"):
        Turns("user")
    several: list[dict[str, Any]] = [{"every_s": 0}, {"half_life_s": -1}, {"others": -1}, {"others": 0.5}]
    for wrong in several:
        with pytest.raises(SettingError, match=r"must be a number|is counted"):
            Turns("user", shares=(("1", 1),), **wrong)
    with pytest.raises(InputError, match="home"):
        read_turns("~nobody-of-that-name/shares.toml")


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
