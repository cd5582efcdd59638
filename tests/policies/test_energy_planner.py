"""The planner of money: each plan against one made second by second; both engines agree. Uncompiled, to save time."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import replace
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest

from dovetail.arrays import NEVER
from dovetail.energy.series import Hours
from dovetail.energy.site import MILLION, Site
from dovetail.engine.replay import replay
from dovetail.engine.stepped import Stepper
from dovetail.errors import SettingError
from dovetail.model.cluster import Cluster, PowerCap
from dovetail.model.plan import Plan
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.policies.energy_planner import MoneyPlanner
from dovetail.policies.registry import policy
from dovetail.policies.thrift import Thrift
from dovetail.referee import check_schedule
from tests.policies.test_thrift import JOULES_PER_MWH, STEP, jobs_of
from tests.slow.node_cases import random_nodes_case, with_outages

ROOT = Path(__file__).parents[2]
FAR = 400
"""The last job of a random case comes so late that prices are known for all others."""


def random_case(seed: int) -> tuple[Workload, Site, MoneyPlanner]:
    rng = random.Random(seed)
    processors, at, rows = rng.randint(1, 6), 0, []
    for _ in range(rng.randint(1, 5)):
        at += rng.choice((0, 0, 1, 5, 12))
        rows.append((at, rng.randint(1, processors), rng.randint(1, 9), rng.randint(1, 9) * 10**6))
    rows.append((at + FAR, 1, 1, 10**6))
    price = Hours(np.array([rng.randint(-1, 5) * 1000 for _ in range(6)]) * MILLION, rng.randint(-9, 9), STEP)
    objective = rng.choice(("cost", "carbon", "profit"))
    carbon = Hours(np.array([rng.randint(0, 5) * 10**6 for _ in range(6)]), 0, STEP)
    tariff = rng.choice((100, 2000)) * MILLION
    site = Site("s", 1, rng.choice((0, 2 * 10**6)), price=price, carbon=carbon, tariff=tariff)
    planner = MoneyPlanner(
        objective, wait=rng.choice((0.0, 0.02, 0.5, 5.0)), hold_s=rng.choice((0, 10, 30)), decodes=120,
        horizon_s=rng.choice((5, 20, 60)) if objective == "profit" else None,
    )  # fmt: skip
    return jobs_of(rows, processors), site, planner


class Slow:
    """One pass, second by second."""

    def __init__(self, state: State, workload: Workload, site: Site, planner: MoneyPlanner) -> None:
        self.state, self.workload, self.planner, self.now = state, workload, planner, state.now
        self.profit = planner.objective == "profit"
        self.series = site.carbon if planner.objective == "carbon" else site.price
        self.unit = 1000 if planner.objective == "carbon" else MILLION
        self.watts = np.maximum(workload["power_mw"] - site.idle_mw, 0) * workload.size / 1000
        self.tariff = site.tariff / MILLION / 3600 if self.profit else 0.0
        self.until = 10**9
        if self.profit:
            assert planner.horizon_s is not None
            self.until = next(
                at for at in range(self.now + planner.horizon_s + 1, 10**9) if (at - site.price.begin) % STEP == 0
            )
        self.length = state.estimate.tolist()
        self.first = {job: self.fits(self.running(), job, self.now) for job in state.waiting.tolist()}
        self.low = {job: min(self.cost(job, at) for at in self.allowed(job)) for job in state.waiting.tolist()}

    def running(self) -> dict[int, int]:
        used: dict[int, int] = {}
        for job in self.state.running.tolist():
            end = max(int(self.state.start[job]) + self.length[job], self.now + 1)
            self.take(used, job, self.now, end)
        return used

    def take(self, used: dict[int, int], job: int, begin: int, end: int) -> None:
        for second in range(begin, end):
            used[second] = used.get(second, 0) + int(self.state.size[job])

    def fits(self, used: dict[int, int], job: int, at: int) -> int:
        most = self.state.processors - int(self.state.size[job])
        while any(used.get(second, 0) > most for second in range(at, at + self.length[job])):
            at += 1
        return at

    def last(self, job: int) -> int:
        return int(self.state.submit[job]) + self.planner.hold_s

    def allowed(self, job: int) -> range:
        return range(self.first[job], max(self.last(job), self.first[job]) + 1)

    def cost(self, job: int, at: int, waits: bool = True) -> float:
        seconds = np.arange(min(at, self.until), min(at + self.length[job], self.until))
        energy = float((self.series.at(seconds) / self.unit / JOULES_PER_MWH * self.watts[job]).sum())
        earned = self.tariff * int(self.state.size[job]) * len(seconds)
        assert self.planner.wait is not None
        wait = self.planner.wait / 3600 * (at - int(self.state.submit[job]))
        return energy - earned + (wait if waits else 0.0)

    def spot(self, used: dict[int, int], job: int, held: bool) -> int:
        first = chosen = self.fits(used, job, self.first[job])
        here = self.cost(job, first)
        little = 1e-6 * abs(here)
        if not held or here - self.low[job] <= little or (self.profit and self.cost(job, first, waits=False) <= 0):
            return first
        last, begin = self.last(job), self.series.begin
        for bend in range(first + 1, last + 1):
            if (bend - begin) % STEP and (bend + self.length[job] - begin) % STEP and bend != last:
                continue
            at = self.fits(used, job, bend)
            if at <= last and self.cost(job, at) < self.cost(job, chosen) - little:
                chosen = at
        return chosen

    def placed(self, order: Iterable[int], held: bool) -> dict[int, int]:
        used, starts = self.running(), {}
        for job in order:
            starts[job] = self.spot(used, job, held)
            self.take(used, job, starts[job], starts[job] + self.length[job])
        return starts

    def value(self, starts: dict[int, int]) -> float:
        return sum(max(0.0, self.cost(job, at) - self.low[job]) for job, at in starts.items())

    def lists(self) -> list[list[int]]:
        size, length, waiting = self.state.size, self.state.estimate, self.state.waiting.tolist()
        standing = self.state.standing.expected
        keys = (
            lambda job: int(self.state.submit[job]),
            lambda job: standing.get(job, 10**9),
            lambda job: int(length[job]),
            lambda job: int(size[job] * length[job]),
            lambda job: -int(size[job] * length[job]),
            lambda job: int(size[job] * length[job] ** 2),
            lambda job: self.watts[job] / size[job],
        )
        return [sorted(waiting, key=key) for key in keys]


def watched(workload: Workload, site: Site, planner: MoneyPlanner) -> list[tuple[State, Plan]]:
    """The passes in which somebody fits and all who wait are in the window."""
    seen: list[tuple[State, Plan]] = []
    bound = planner.at(site, workload, Cluster(workload.processors))
    Stepper(
        workload, Cluster(workload.processors), bound, np.asarray(workload.runtime),
        see=lambda state, plan: seen.append((state, plan)),
    ).advance()  # fmt: skip
    return [(s, p) for s, p in seen if any(s.size[job] <= s.free for job in s.waiting.tolist())]


def made(workload: Workload, site: Site, planner: MoneyPlanner, stepwise: bool = False, cap: int = 0) -> Schedule:
    cluster = Cluster(workload.processors, cap=PowerCap(cap, 0, site.busy_mw) if cap else None)
    return replay(workload, planner, cluster=cluster, estimate="runtime", site=site, event_by_event=stepwise)


def plans_of_one_case(seed: int) -> tuple[int, int, int]:
    """Each plan is as good as slow code says that it must be. How many there are; how many hold a job, and how many are
    better than all lists."""
    passes = held = better = 0
    workload, site, planner = random_case(seed)
    for state, plan in watched(workload, site, planner):
        slow = Slow(state, workload, site, planner)
        starts = {job: state.now if job in plan.starts else plan.expected[job] for job in state.waiting.tolist()}
        got = slow.value(starts)
        lists = [slow.value(slow.placed(order, way)) for order in slow.lists() for way in (False, True)]
        little = 1e-9 + 1e-6 * sum(abs(slow.cost(job, at)) for job, at in starts.items())
        assert got <= min(lists) + little, (seed, state.now, got, min(lists))
        if len(starts) <= 4:
            every = [slow.placed(order, True) for order in permutations(starts)]
            assert got <= min(map(slow.value, every)) + little, (seed, state.now)
            assert starts in every or starts in [slow.placed(order, False) for order in slow.lists()], seed
        passes += 1
        held += any(at > slow.first[job] for job, at in starts.items())
        better += got < min(lists) - little
    return passes, held, better


def plans_are_those_of_slow_code() -> None:
    passes, held, better = (sum(counts) for counts in zip(*map(plans_of_one_case, range(120)), strict=True))
    assert passes > 300, passes
    assert held > 60, held
    assert better > 2, better


def both_engines_agree_in_one_case(seed: int) -> None:
    workload, site, planner = random_case(seed)
    planner = replace(planner, window=1 + seed % 3, decodes=20)
    cap = int((workload["power_mw"] * workload.size).max()) if seed % 4 == 0 else 0
    whole, stepped = (made(workload, site, planner, way, cap) for way in (False, True))
    assert whole.start.tolist() == stepped.start.tolist(), seed
    assert whole.passes == stepped.passes, seed
    assert check_schedule(whole) == [], seed


def both_engines_agree() -> None:
    for seed in range(80):
        both_engines_agree_in_one_case(seed)


def a_dear_wait_holds_nobody() -> None:
    """Then all is as if nobody might be held."""
    for seed in range(50):
        workload, site, planner = random_case(seed)
        if planner.objective != "profit":
            dear, never = (
                made(workload, site, replace(planner, wait=1e9, hold_s=hold_s)).start.tolist() for hold_s in (30, 0)
            )
            assert dear == never, seed


def where_there_is_room_each_job_has_its_cheapest_start() -> None:
    for seed in range(50):
        workload, site, planner = random_case(seed)
        if planner.objective == "profit":
            continue
        wide = replace(workload, processors=100)
        planner = replace(planner, wait=0.0, decodes=5)
        schedule = made(wide, site, planner)
        for state, _ in watched(wide, site, planner):
            slow = Slow(state, wide, site, planner)
            for job in set(state.waiting.tolist()) & set(state.arrived.tolist()):
                cost = slow.cost(job, int(schedule.start[job]))
                assert cost <= slow.low[job] + 1e-5 * abs(cost) + 1e-12, seed


def profit_begins_with_those_that_draw_least() -> None:
    rows = [(0, 1, 100, 9 * 10**6), (0, 1, 100, 10**6), (0, 1, 100, 5 * 10**6)]
    site = Site("s", 1, price=Hours(np.array([100, 100]) * MILLION), tariff=MILLION)
    for window in (1, 2, 100):
        planner = MoneyPlanner("profit", window=window, horizon_s=150)
        assert made(jobs_of(rows, 1), site, planner).start.tolist() == [200, 0, 100]
        assert made(jobs_of(rows, 2), site, planner).start.tolist() == [100, 0, 0]  # no processor idles


def who_would_lose_money_waits() -> None:
    """A kilowatt for an hour earns 0.2, and costs 0.3 for two hours, then 0.1."""
    site = Site("s", 1, price=Hours(np.array([300, 300, 100, 300]) * MILLION), tariff=200_000)
    rows = [(0, 1, 3600, 10**6), (0, 1, 3600, 10**6), (0, 1, 3600, 10**5)]
    for window in (2, 100):
        found = made(jobs_of(rows, 3), site, MoneyPlanner("profit", window=window)).start.tolist()
        assert found == [7200, 7200, 0]


def those_beyond_the_window_do_not_delay_the_plan() -> None:
    """The second waits for the first to end; the third would be in its way, the fourth would not."""
    rows = [(0, 1, 10, 10**6), (1, 2, 10, 10**6), (1, 1, 100, 10**6), (1, 1, 5, 10**6)]
    site = Site("s", 1, price=Hours(np.array([100, 200]) * MILLION))
    assert made(jobs_of(rows, 2), site, MoneyPlanner(wait=1e9, window=1)).start.tolist() == [0, 10, 20, 1]


CHECKS = (
    plans_are_those_of_slow_code,
    both_engines_agree,
    a_dear_wait_holds_nobody,
    where_there_is_room_each_job_has_its_cheapest_start,
    profit_begins_with_those_that_draw_least,
    who_would_lose_money_waits,
    those_beyond_the_window_do_not_delay_the_plan,
)


@pytest.mark.slow
@pytest.mark.parametrize("check", CHECKS)
def test_uncompiled(check: object) -> None:
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
    name = getattr(check, "__name__", "")
    script = f"from tests.policies import test_energy_planner; test_energy_planner.{name}()"
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_settings() -> None:
    found = policy("plan:objective=profit,wait=0.5,hold=12h,horizon=2h,window=7,decodes=9,hot=1,cold=0.1")
    assert found == MoneyPlanner("profit", 0.5, 43_200, 7200, 9, 7, 1.0, 0.1, name=found.name)
    assert policy("plan:wait=2,objective=cost") == MoneyPlanner("cost", 2.0, name="plan:wait=2,objective=cost")
    for wrong, says in {
        "plan:objective=cost,wait=-1": "must be from 0 to",
        "plan:objective=cost,hold=9999d": "hold=9999 d: must be a duration from 0 s to 365 d",
        "plan:objective=cost,horizon=3h": "only for objective=profit",
        "plan:objective=profit,horizon=0": "must be a duration from 1 s",
        "plan:objective=carbon,patient=0.1": "no setting 'patient'",
        "plan:objective=carbon,starve=1d": "no setting 'starve'",
        "plan:objective=cost,window=0": "must be from 1",
        "plan:objective=cost,decodes=-1": "must be from 0",
        "plan:objective=cost,hot=0.1,cold=1": "hot must not be below cold",
        "plan:objective=af+0.1*cost": "stand alone",
        "plan:objective=2*profit": "stand alone",
        "plan:objective=af,wait=1": "no setting 'wait'",
        "offline:objective=cost": "stand alone",
    }.items():
        with pytest.raises(SettingError, match=says):
            policy(wrong)
    site = Site("s", 1, price=Hours(np.array([1, 2])), carbon=Hours(np.array([1, 2])), tariff=1)
    for objective, price, horizon_s in (("cost", 1.0, NEVER), ("carbon", 1.0, NEVER), ("profit", 0.0, 3600)):
        rule = MoneyPlanner(objective).at(site, jobs_of([(0, 1, 1, 1)], 1), Cluster(1)).rule()
        assert (rule.wait * 3600, rule.horizon_s) == (price, horizon_s)
    with pytest.raises(SettingError, match="choose from profit, cost, carbon"):
        MoneyPlanner("af")


def test_where_it_cannot_run() -> None:
    workload = jobs_of([(0, 1, 1, 1)], 1)
    hours = Site("s", 1, price=Hours(np.array([1, 2])))
    for objective in ("profit", "cost", "carbon"):
        planner = MoneyPlanner(objective)
        with pytest.raises(SettingError, match="--energy"):
            replay(workload, planner)
        with pytest.raises(SettingError, match="--energy"):
            planner.rule()
        with pytest.raises(SettingError, match="--energy"):
            planner.decide(State(0, 1, 1, *(np.zeros(0, np.int64),) * 10))
    with pytest.raises(SettingError, match="nothing to wait for"):
        replay(workload, MoneyPlanner("cost"), site=Site("s", 1))
    with pytest.raises(SettingError, match="nothing to wait for"):
        replay(workload, MoneyPlanner("carbon"), site=hours)
    with pytest.raises(SettingError, match="no profit without a tariff"):
        replay(workload, MoneyPlanner("profit"), site=hours)
    with pytest.raises(SettingError, match="--every"):
        replay(workload, MoneyPlanner("cost"), site=hours, every_s=3)


@pytest.mark.parametrize("chosen", [Thrift(), *(MoneyPlanner(one, decodes=20) for one in ("profit", "cost", "carbon"))])
def test_on_nodes(chosen: MoneyPlanner | Thrift) -> None:
    """Whole and event by event the same, and legal; jobs are held for better hours there too."""
    held = 0
    for seed in range(12):
        rng = np.random.Generator(np.random.PCG64(seed))
        case = random_nodes_case(random.Random(seed))
        case = with_outages(case, random.Random(seed)) if seed % 2 else case
        price, carbon = (Hours(rng.integers(1, 900, 6) * 1_000_000, 0, 7) for _ in range(2))
        site = Site("s", 900_000, price=price, carbon=carbon, tariff=int(rng.integers(1, 400)) * 1000)
        whole, stepped = (
            replay(case.workload, chosen, site=site, cluster=case.cluster, event_by_event=by_event)
            for by_event in (False, True)
        )
        assert whole.start.tolist() == stepped.start.tolist(), seed
        assert check_schedule(whole) == [], seed
        held += int((whole.start > replay(case.workload, "list-reg", cluster=case.cluster).start).sum())
    assert held > 5
