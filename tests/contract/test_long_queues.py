"""What is only for long queues changes nothing that is decided: a tree in place of a scan, groups in place of jobs.

The bounds above which they are used are set so low here that small cases reach them.
"""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from dovetail.engine.compiled import new_replay
from dovetail.engine.fair_starts import fair_starts
from dovetail.engine.replay import replay
from dovetail.kernels import state as layout
from dovetail.model.cluster import Cluster, PowerCap
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from dovetail.policies import lists, planner
from dovetail.policies.base import Asked, Policy
from dovetail.policies.lists import ListPolicy
from dovetail.policies.planner import Planner
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from tests.conftest import CASES
from tests.contract.cases import Case, case, disagreements
from tests.slow import policies as slow
from tests.slow.workloads import random_jobs, with_deadlines, workload_of

STILL = ("fcfs", "sjf", "ljf", "saf", "laf", "spf", "small", "large")
"""Orders that do not change while a job waits."""


def tree_case(seed: int) -> Case:
    """A case for policies that may have a tree."""
    rng = random.Random(seed)
    drawn = case(seed)
    order, backfill, reserve = rng.choice(STILL), rng.choice((None, *STILL)), rng.choice((0, 1, 1))
    policies = ListPolicy(order, reserve, backfill), slow.ListPolicy(order, reserve, backfill)
    return Case(seed, drawn.jobs, drawn.processors, *policies, drawn.feedback, rng.choice((0, 0, 3)))


@pytest.mark.parametrize("above", [1, 8])
def test_a_tree_finds_what_a_scan_finds(above: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "TREE_ABOVE", above)
    for seed in range(CASES // 8):
        this = tree_case(seed)
        assert this.policy.rule(Asked()).common.tree_above == above
        assert disagreements(this) == []


def _begun(this: Workload, chosen: Policy) -> tuple[list[int], list[list[int]]]:
    """The starts, and who waits at each instant."""
    run = new_replay(this, Cluster(this.processors), chosen.rule(Asked(bounded=True)), this.limit)
    waiting = []
    for at in range(0, int(this.submit[-1]) + 60, 3):
        run = run.copy()
        run.advance(at)
        waiting.append(run.waiting.tolist())
    assert run.advance()
    return run.start.tolist(), waiting


@pytest.mark.parametrize("name", ["easy", "easy-sjbf", "sjf-easy", "greedy-saf", "list-reg", "conservative", "dbf"])
def test_who_waits_is_known_at_any_instant(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Stopped, copied, looked at: in a tree, in entries, and one by one."""
    for seed in range(40):
        jobs, capacity = random_jobs(random.Random(seed))
        this, chosen = workload_of(jobs, capacity), policy(name)
        found = []
        for above in (2, 1000):
            monkeypatch.setattr(lists, "TREE_ABOVE", above)
            found.append(_begun(this, chosen))
        assert found[0] == found[1]
        arrive, start = this.submit, np.array(found[0][0])
        for i, at in enumerate(range(0, int(this.submit[-1]) + 60, 3)):
            assert sorted(found[0][1][i]) == np.flatnonzero((arrive <= at) & (start > at)).tolist()


def test_fair_starts_of_a_queue_in_a_tree(monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in range(20):
        jobs, capacity = random_jobs(random.Random(seed))
        this = workload_of(jobs, capacity)
        found = []
        for above in (2, 1000):
            monkeypatch.setattr(lists, "TREE_ABOVE", above)
            found.append(fair_starts(this, "easy", Cluster(this.processors), this.limit).tolist())
        assert found[0] == found[1]


def test_a_tree_under_a_power_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tree knows processors only: it may find a job for which there is no power."""
    several = 0
    for seed in range(120):
        rng = random.Random(seed)
        jobs, capacity = random_jobs(rng)
        plain = workload_of(jobs, capacity)
        watts = {"power_mw": np.array([rng.choice((1000, 50_000, 200_000)) for _ in jobs])}
        this = Workload("hot", {**{c: plain[c] for c in plain.columns}, **watts}, capacity[0], Provenance("made here"))
        most = int((this["power_mw"] * this.size).max())
        cluster = Cluster(capacity[0], cap=PowerCap(most))
        found = []
        for above in (1, 1000):
            monkeypatch.setattr(lists, "TREE_ABOVE", above)
            found.append(replay(this, "easy-sjbf", cluster=cluster).start.tolist())
        assert found[0] == found[1]
        several += found[0] != replay(this, "easy-sjbf").start.tolist()
    assert several > 10, "the cap holds jobs back"


def _both(this: Workload, chosen: Policy) -> Schedule:
    whole = replay(this, chosen)
    stepped = replay(this, chosen, event_by_event=True)
    for row in ("start", "promised_first", "promised_last", "accepted"):
        assert getattr(whole, row).tolist() == getattr(stepped, row).tolist(), row
    assert (whole.start >= 0).all()
    assert check_schedule(whole) == []
    return whole


def depth_and_groups(seed: int, monkeypatch: pytest.MonkeyPatch) -> tuple[bool, bool]:
    """Both engines agree, the referee is content, and a bound that is not reached changes nothing. Whether a depth, and
    groups, change what is decided."""
    rng = random.Random(seed)
    jobs, capacity = random_jobs(rng, too_small=rng.random() < 0.3)
    patient = rng.choice((None, None, 0.1))
    if patient is not None:
        jobs = with_deadlines(rng, jobs)
    this = workload_of(jobs, capacity)
    chosen = Planner("af+0.1*p2sf", 8, rng.choice((4, 50)), rng.choice((0, 3)), patient=patient)
    monkeypatch.setattr(planner, "GROUPS_ABOVE", 1000)
    plain = _both(this, chosen)
    assert _both(this, replace(chosen, depth=len(jobs))).start.tolist() == plain.start.tolist()
    shallow = _both(this, replace(chosen, depth=rng.choice((1, 3))))
    monkeypatch.setattr(planner, "GROUPS_ABOVE", rng.choice((2, 5)))
    grouped = _both(this, chosen)
    return shallow.start.tolist() != plain.start.tolist(), grouped.start.tolist() != plain.start.tolist()


def test_a_planner_with_a_depth_or_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    differ = [depth_and_groups(seed, monkeypatch) for seed in range(24)]
    assert [any(column) for column in zip(*differ, strict=True)] == [True, True]


@pytest.mark.parametrize("foresight", [0, 2])
def test_an_array_alone_is_started_without_a_search(foresight: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless jobs that may come are to be planned for: then which of its jobs start now is a question."""
    monkeypatch.setattr(planner, "GROUPS_ABOVE", 3)
    n = 12
    columns = {name: np.ones(n, np.int64) for name in ("size", "limit", "runtime")} | {"id": np.arange(n)}
    this = Workload("array", {**columns, "submit": np.arange(n) // 6}, 2, Provenance("made here"))
    rule = Planner(decodes=5, foresight=foresight).rule(Asked(bounded=True))
    run = new_replay(this, Cluster(2), rule, this.limit)
    run.advance(0)
    assert run.start.tolist() == [0, 0] + [-1] * (n - 2)
    assert (run.rule.space.counts[0] == 0) == (foresight == 0)
    run.advance(1)  # four of the first array still wait, and there is another
    assert run.started == 4
    assert run.rule.space.counts[0] > 0
    assert run.advance()
    assert run.start.tolist() == (np.arange(n) // 2).tolist()


def arrays(seed: int) -> Workload:
    """Arrays of up to a dozen jobs, a few of which end early."""
    rng, rows, submit = random.Random(seed), list[tuple[int, int, int, int]](), 0
    for _ in range(rng.randint(4, 8)):
        submit += rng.choice((1, 2))
        size, limit = rng.randint(1, 8), rng.randint(2, 20)
        for _ in range(rng.choice((1, 9, 12))):
            rows.append((submit, size, rng.randint(1, limit) if rng.random() < 0.1 else limit, limit))
    names = ("submit", "size", "runtime", "limit")
    columns = dict(zip(names, np.array(rows).T, strict=True)) | {"id": np.arange(len(rows)) + 1}
    return Workload("arrays", columns, 8, Provenance("made here"))


@pytest.mark.parametrize("part", range(4))
@pytest.mark.parametrize("order", ["fcfs", "sjf", "saf", "laf"])
def test_a_plan_of_arrays_that_is_kept_is_the_one_made_anew(order: str, part: int) -> None:
    """Where promises are to be told a plan is complete and made in each pass; else only what is needed is planned, and
    it is kept as long as it holds."""
    chosen = ListPolicy(order, "all")
    for seed in range(10 * part, 10 * part + 10):
        anew, kept = (replay(arrays(seed), chosen, keep_promises=keep).start.tolist() for keep in (True, False))
        assert anew == kept, seed


def test_only_places_of_the_last_plan_are_kept() -> None:
    """The first ends early, so all is planned anew: but only as far as somebody might start, and not all nine wide jobs
    have a place then that had one before."""
    rows = [(2, 6, 12, 19), *[(5, 8, 12, 12)] * 9, *[(7, 1, 2, 2)] * 9]
    columns = dict(zip(("submit", "size", "runtime", "limit"), np.array(rows).T, strict=True))
    this = Workload("arrays", {**columns, "id": np.arange(len(rows)) + 1}, 8, Provenance("made here"))
    anew, kept = (replay(this, ListPolicy("fcfs", "all"), keep_promises=keep).start.tolist() for keep in (True, False))
    assert anew == kept


def test_jobs_of_an_array_start_in_turn_where_a_planner_moves_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planner, "GROUPS_ABOVE", 10)
    n, rng = 60, np.random.Generator(np.random.PCG64(1))
    columns = {"id": np.arange(1, n + 1), "submit": np.zeros(n, np.int64), "size": np.ones(n, np.int64)}
    columns |= {"limit": np.full(n, 100), "runtime": rng.integers(1, 101, n)}
    this = Workload("array", columns, 4, Provenance("made here"))
    starts = replay(this, "plan-af").start
    assert (np.diff(starts[: n - 10]) >= 0).all()  # the last ten are planned job by job
    assert starts.max() < columns["runtime"].sum() / 4 + 100


def _burst(n: int) -> Workload:
    rng = np.random.Generator(np.random.PCG64(1))
    limit = rng.integers(60, 90_000, n)
    columns = {"id": np.arange(1, n + 1), "submit": np.zeros(n, np.int64), "size": rng.integers(1, 64, n)}
    return Workload("burst", {**columns, "limit": limit, "runtime": np.full(n, 1)}, 64, Provenance("made here"))


def test_a_queue_that_will_take_minutes_is_told_of(capsys: pytest.CaptureFixture[str]) -> None:
    chosen = policy("list-reg")
    run = new_replay(_burst(2_500), Cluster(64), chosen.rule(Asked(bounded=True)), _burst(2_500).limit)
    told: list[int] = []
    run.on_long = told.append
    run.advance(-1)
    assert told == []
    run.advance(0)
    assert len(told) == 1
    assert 2_400 < told[0] <= 2_500
    few = new_replay(_burst(1_500), Cluster(64), chosen.rule(Asked(bounded=True)), _burst(1_500).limit)
    few.on_long = told.append
    few.advance(0)
    assert len(told) == 1
    # An array makes room for many: of the unlike jobs that come later the line is said all the same.
    burst, array = _burst(2_500), np.arange(5_000)
    columns = {
        "id": np.arange(1, 7_501), "submit": np.repeat([0, 1], [5_000, 2_500]),
        "size": np.concatenate([1 + 0 * array, burst.size]), "limit": np.concatenate([9 + 0 * array, burst.limit]),
        "runtime": np.full(7_500, 1),
    }  # fmt: skip
    both = Workload("both", columns, 64, Provenance("made here"))
    mixed = new_replay(both, Cluster(64), chosen.rule(Asked(bounded=True)), both.limit)
    mixed.on_long = told.append
    mixed.advance(0)
    assert len(told) == 1
    mixed.advance(1)
    assert len(told) == 2
    replay(_burst(2_500), "list:reserve=0")
    assert "unlike" not in capsys.readouterr().err
    replay(_burst(2_500), "plan-af:decodes=0,window=1,depth=10")
    assert "unlike" not in capsys.readouterr().err


@pytest.mark.parametrize("name", ["list-reg", "conservative", "dbf", "plan-af", "plan-deadline"])
def test_the_setting_that_is_named_is_one(name: str) -> None:
    chosen = policy(name)
    assert chosen.shorter
    assert not policy(f"{'list' if name == 'list-reg' else name}:{chosen.shorter}").shorter


def test_sorting_many_arrivals_in_is_inserting_each() -> None:
    """More than a few that come at once are sorted, in each order."""
    for seed in range(5):
        rng = random.Random(seed)
        n = 200
        columns = {"id": np.arange(1, n + 1), "submit": np.array([rng.choice((0, 40)) for _ in range(n)])}
        columns["submit"].sort()
        columns |= {
            name: np.array([rng.randint(1, most) for _ in range(n)]) for name, most in (("size", 8), ("limit", 9))
        }
        this = Workload("many", {**columns, "runtime": columns["limit"]}, 8, Provenance("made here"))
        for order in STILL:
            for reserve in (1, 3):
                chosen = ListPolicy(order, reserve, rng.choice((None, "saf")))
                assert replay(this, chosen).start.tolist() == replay(this, chosen, event_by_event=True).start.tolist()


def test_entries_are_arrays_that_came_together() -> None:
    """Same size, limit and second, numbers in a row, no deadline."""
    rows = [(0, 2, 5), (0, 2, 5), (0, 1, 5), (0, 2, 5), (0, 2, 6), (1, 2, 6), (1, 2, 6), (1, 2, 6)]
    submit, size, limit = np.array(rows).T
    columns = {"id": np.arange(1, 9), "submit": submit, "size": size, "limit": limit, "runtime": limit}
    this = Workload("entries", {**columns, "deadline_s": np.array([-1] * 7 + [50])}, 2, Provenance("made here"))
    run = new_replay(this, Cluster(2), policy("list-reg").rule(Asked(bounded=True)), this.limit)
    run.advance(1)
    queue = run.run.lists[layout.QUEUE, : run.run.info[layout.WAITING]].tolist()
    assert [(first, int(run.run.jobs[layout.UNTIL, first])) for first in queue] == [
        (1, 2), (2, 3), (3, 4), (4, 5), (5, 7), (7, 8),
    ]  # fmt: skip
    assert run.waiting.tolist() == [1, 2, 3, 4, 5, 6, 7]
