"""A replay that is stopped, copied, grown and resumed equals one that nobody touched. And: predictors."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from dovetail.arrays import Ints
from dovetail.engine.compiled import Replay, new_replay
from dovetail.io.swf import read_swf
from dovetail.kernels import state as layout
from dovetail.kernels.machine.processors import Counted
from dovetail.kernels.machine.timeline import LEAVES, LEAVES_MOST
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Workload
from dovetail.policies.base import Asked
from dovetail.policies.conservative import Conservative
from dovetail.policies.lists import ListPolicy
from dovetail.policies.registry import policy
from dovetail.workloads.lublin import lublin
from tests.conftest import CASES, TRACES, needs_traces
from tests.contract.cases import Case, case

ROWS = (layout.START, layout.ARRIVE, layout.PROMISED_FIRST, layout.PROMISED_LAST)
SEEDS = range(CASES * 3 // 10)
Told = list[tuple[int, list[int], list[int]]]
"""Instant, jobs that ended, jobs that arrived."""
KTH = [
    "easy",
    "list:order=saf,reserve=4,backfill=sjf",
    "conservative:sweep=by-start",
    "list:order=wfp3,slack=0.5,starve=1d",
]


def outcome(engine: Replay) -> tuple[list[list[int]], int]:
    assert engine.advance()
    assert not len(engine.waiting)
    return [engine.run.jobs[row].tolist() for row in ROWS], engine.passes


def begun(this: Case, *, room: int = 1024, stop_for_news: bool = False) -> Replay:
    rule = this.policy.rule(Asked(this.every_s, this.bounded, stop_for_news, this.seed % 2 == 0))
    cluster = Cluster(this.processors)
    return new_replay(this.workload, cluster, rule, this.estimate, feedback=this.feedback, room=room)


def instants(rng: random.Random, last: int) -> list[int]:
    """Some instants to stop at, some of them twice, one long after the end."""
    some = [rng.randint(-1, last) for _ in range(rng.randint(1, 12))]
    return sorted([*some, some[0]])


def test_stopping_changes_nothing() -> None:
    for seed in SEEDS:
        this = case(seed)
        undisturbed = outcome(begun(this))
        stopped = begun(this)
        for until in instants(random.Random(seed), max(undisturbed[0][0]) + 10):
            done = stopped.advance(until)
            assert stopped.now <= max(until, 0)
            started = stopped.start[stopped.start >= 0]
            assert len(started) == stopped.started
            assert (started <= until).all()
            assert stopped.advance(until) == done
        assert outcome(stopped) == undisturbed, seed


def test_every_stop_shows_what_would_have_happened_by_then() -> None:
    for seed in SEEDS:
        this = case(seed)
        undisturbed = np.array(outcome(begun(this))[0][0])
        stopped = begun(this)
        for until in instants(random.Random(seed), int(undisturbed.max())):
            stopped.advance(until)
            assert stopped.start.tolist() == np.where(undisturbed <= until, undisturbed, -1).tolist(), seed


def test_a_copy_goes_on_alone() -> None:
    """The original gets other estimates and run times after it was copied; a copy of a copy is one too."""
    differ = 0
    for seed in SEEDS:
        this = case(seed)
        undisturbed = outcome(begun(this))
        original = begun(this)
        original.advance(undisturbed[0][0][len(this.jobs) // 2])
        copy, left = original.copy(), original.copy()
        unseen = original.run.jobs[layout.ARRIVE] < 0
        original.estimate[unseen] += 1 + np.arange(unseen.sum()) % 7
        original.run.jobs[layout.RUNTIME, unseen] += 5
        original.rule = this.policy.rule(Asked(every_s=this.every_s))  # estimates are no upper bounds any more
        differ += outcome(original) != undisturbed
        assert outcome(copy) == undisturbed, seed
        assert outcome(left.copy()) == undisturbed, seed
        assert outcome(left) == undisturbed, seed
    assert 3 * differ > len(SEEDS)


def test_growing_changes_nothing() -> None:
    grown = 0
    for seed in SEEDS:
        tiny = begun(case(seed), room=4)
        assert outcome(tiny) == outcome(begun(case(seed))), seed
        grown += tiny.run.lists.shape[1] > 4
    assert 3 * grown > len(SEEDS)


@pytest.mark.parametrize(
    "name", ["list-saf", "conservative", "conservative:sweep=repeat", "list:reserve=200,slack=0.5"]
)
def test_growing_in_a_long_queue(name: str) -> None:
    """A queue of hundreds of jobs: profiles of several leaves grow while a plan is kept in them."""
    workload = lublin(600, 64, seed=3, load=40.0)
    rule = policy(name).rule(Asked(bounded=True, keep=True))
    runs = [new_replay(workload, Cluster(64), rule, np.array(workload.limit), room=room) for room in (4, 100_000)]
    until = int(workload.submit[0])
    longest = most = 0
    while not runs[0].advance(until):
        until += 5000
        longest = max(longest, int(runs[0].run.info[layout.WAITING]))
        cap = runs[0].cap
        assert isinstance(cap, Counted)
        for p in (cap.running, cap.plan):
            most = max(most, int(p.mem[LEAVES]))
            assert p.mem[LEAVES] <= p.mem[LEAVES_MOST]
    assert outcome(runs[0]) == outcome(runs[1])
    assert longest > 200
    assert most > 1


@needs_traces
@pytest.mark.parametrize("name", KTH)
def test_a_real_trace_resumed(name: str) -> None:
    workload = read_swf(TRACES / "papers" / "KTH-SP2.swf.gz")
    rule = policy(name).rule(Asked(bounded=True, keep=True))

    def fresh(room: int) -> Replay:
        return new_replay(workload, Cluster(100), rule, np.array(workload.limit), room=room)

    undisturbed = outcome(fresh(1024))
    stopped = fresh(4)
    rng = random.Random(1)
    for until in sorted(rng.randint(0, int(workload.submit[-1])) for _ in range(100)):
        stopped.advance(until)
        if rng.random() < 0.2:
            stopped, other = stopped.copy(), stopped
            other.estimate[other.run.jobs[layout.ARRIVE] < 0] += 86400
            other.advance(until + 86400)
    assert outcome(stopped) == undisturbed


# Predictors -------------------------------------------------------------------------------------------------


def test_estimates_that_come_with_the_arrival_equal_those_known_before() -> None:
    """A replay without estimates asks for them in each moment; who arrived and who ended is told truly."""
    for seed in SEEDS:
        this = case(seed)
        known = begun(this)
        told: Told = []
        truth = this.estimate

        def on_news(engine: Replay, ended: Ints, arrived: Ints, told: Told = told, truth: Ints = truth) -> None:
            if len(ended) or len(arrived):  # else it is a pass that was asked for, and there is no news
                told.append((engine.now, ended.tolist(), arrived.tolist()))
            assert (engine.estimate[arrived] == 1 << 40).all()
            engine.estimate[arrived] = truth[arrived]

        asking = begun(this, stop_for_news=True)
        asking.estimate[:] = 1 << 40
        asking.on_news = on_news
        assert outcome(asking) == outcome(known), seed
        assert told == _news(asking), seed


def _news(engine: Replay) -> Told:
    """Who ended and who arrived in each moment, from the finished schedule."""
    arrive, start = engine.run.jobs[layout.ARRIVE], engine.start
    end = np.where(start >= 0, start + engine.run.jobs[layout.RUNTIME], -1)
    moments = sorted({*arrive.tolist(), *end.tolist()} - {-1})
    return [(at, np.flatnonzero(end == at).tolist(), np.flatnonzero(arrive == at).tolist()) for at in moments]


def test_estimates_may_change_in_the_middle() -> None:
    """A predictor that knows better from some instant on: as if stopped there and given the new estimates."""
    workload = lublin(300, 32, seed=5, load=1.5)
    other = np.maximum(np.array(workload.limit) // 2, 1)
    half = int(workload.submit[150])
    for name in ("easy", "list-saf", "conservative"):
        rule = policy(name).rule(Asked(keep=True))
        stopped = _with(workload, rule)
        stopped.advance(half)
        later = workload.submit > half
        stopped.estimate[later] = other[later]
        asking = _with(workload, rule._replace(common=rule.common._replace(stop_for_news=True)))

        def on_news(engine: Replay, ended: Ints, arrived: Ints) -> None:
            if engine.now > half:
                engine.estimate[arrived] = other[arrived]

        asking = replace(asking, on_news=on_news)
        changed, plain = outcome(asking), outcome(_with(workload, rule))
        assert changed == outcome(stopped)
        assert changed != plain


def _with(workload: Workload, rule: object) -> Replay:
    return new_replay(workload, Cluster(32), rule, np.array(workload.limit))


def test_the_cases_here_use_all_kinds_of_rule() -> None:
    kinds = [case(seed).policy for seed in range(300)]  # drawn, not run: as many as CI runs
    assert sum(isinstance(kind, Conservative) for kind in kinds) > 30
    assert sum(isinstance(kind, ListPolicy) and kind.relax + kind.slack > 0 for kind in kinds) > 30
