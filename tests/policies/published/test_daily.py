"""Days planned for profit: plans are carried out to the second, whoever knows what."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from dovetail.energy.cooling import PLANTS, plant_table
from dovetail.energy.series import Hours
from dovetail.energy.site import MILLION, Off, Site
from dovetail.engine.contract import check_policy
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.model.cluster import Cluster, NodeKind, PowerCap, by_node
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Step, Workload
from dovetail.optimize.day.problem import Day, Searched
from dovetail.policies.published.daily import Daily
from dovetail.policies.registry import policy
from dovetail.referee import check_schedule
from dovetail.units import DAY_S


def busy_days(seed: int, jobs: int = 60) -> tuple[Workload, Site]:
    rng = random.Random(seed)
    submit = np.sort([500 + rng.randint(0, 3 * DAY_S) for _ in range(jobs)])
    runtime = np.array([rng.choice((1, 600, 7200, 30_000, 90_000)) for _ in range(jobs)])
    columns = {
        "id": np.arange(jobs), "submit": submit, "runtime": runtime,
        "limit": runtime * rng.choice((1, 1, 3)), "size": np.array([rng.randint(1, 8) for _ in range(jobs)]),
        "power_mw": np.array([rng.randint(7800, 11_110) for _ in range(jobs)]),
    }  # fmt: skip
    weather = Hours(np.array([rng.randint(0, 35) * 1000 for _ in range(50)]))
    cooling = plant_table("air", PLANTS["air"], 1000)
    site = Site(
        "s", 9500, cooling=cooling, temperature_mc=weather, price=Hours(np.array([200 * MILLION])), tariff=20_000
    )
    return Workload("case", {k: v.astype(np.int64) for k, v in columns.items()}, 8, Provenance("made")), site


def carried_out(workload: Workload, daily: Daily, site: Site, processors: int) -> Schedule:
    """What a replay of a policy that knows the day makes, morning by morning: nothing happens between two of them that
    was not planned."""
    daily = daily.at(site, workload, Cluster(processors))
    start, none = np.full(len(workload), -1, np.int64), np.empty(0, np.int64)
    now = int(workload.submit[0])
    while bool((start < 0).any()):
        running = np.flatnonzero((start >= 0) & (start + workload.runtime > now))
        state = State(
            now=now, processors=processors, free=processors - int(workload.size[running].sum()),
            waiting=np.flatnonzero((workload.submit <= now) & (start < 0)), running=running, arrived=none, ended=none,
            submit=workload.submit, size=workload.size, limit=workload.limit, estimate=workload.runtime,
            user=workload.get("user"), start=start.copy(), future=np.flatnonzero(workload.submit > now),
        )  # fmt: skip
        plan = daily.decide(state)
        start[list(plan.starts)] = now
        start[list(plan.expected)] = list(plan.expected.values())
        now += DAY_S
    promised = np.full(len(workload), -1, np.int64)
    return Schedule(
        workload, Cluster(processors), daily.name, "runtime", start, workload.submit, promised, promised, 0, 0, {},
        workload.runtime, clairvoyant=True,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("search", ["multi", "delay", "relax", "cp"])
@pytest.mark.parametrize("known", ["day", "submitted"])
def test_every_search_runs_and_is_carried_out(search: str, known: str) -> None:
    workload, site = busy_days(1)
    days: list[tuple[Day, Searched]] = []
    daily = Daily(known, search, decodes=30, deterministic=0.05, see=lambda day, found: days.append((day, found)))
    made = replay(workload, daily, site=site, estimate="limit")
    assert check_schedule(made) == []
    assert (made.start >= 0).all()
    assert made.clairvoyant == (known == "day")
    assert len(days) >= 4
    again = replay(workload, daily, site=site, estimate="limit")
    assert again.start.tolist() == made.start.tolist()


NODES = by_node(("cores", "memory_gb"), (NodeKind("a", 2, (3, 8)), NodeKind("b", 1, (2, 64))))


def on_nodes(workload: Workload, seed: int) -> Workload:
    rng = random.Random(seed)
    units = np.array([rng.randint(1, 3) for _ in range(len(workload))])
    cores = np.array([rng.randint(1, 2) for _ in range(len(workload))])
    memory = np.array([rng.randint(1, 4) for _ in range(len(workload))])
    columns = {"units": units, "unit_cores": cores, "unit_memory_gb": memory, "size": units * cores}
    return workload.with_columns(Step("units"), **columns)


@pytest.mark.parametrize("known", ["day", "submitted"])
@pytest.mark.parametrize("search", ["multi", "delay", "relax", "cp"])
def test_on_nodes_every_search_is_carried_out(search: str, known: str) -> None:
    """The referee agrees with every node of every unit, and jobs are where the plan of the morning says."""
    for seed in range(3):
        workload, site = busy_days(seed, 30)
        workload, days = on_nodes(workload, seed), list[tuple[Day, Searched]]()
        daily = Daily(known, search, decodes=20, deterministic=0.02, see=lambda *day: days.append(day))  # noqa: B023
        made = replay(workload, daily, site=site, estimate="runtime", cluster=NODES)
        assert check_schedule(made) == []
        assert (made.start >= 0).all()
        if known == "day":
            assert sum(int((found.starts >= 0).sum()) for _, found in days) == len(workload)


def test_rules_and_searches_by_name() -> None:
    workload, site = busy_days(5)
    names = ("strict-est", "strict-wt", "strict-profit", "nonstrict-est", "nonstrict-wt", "nonstrict-profit")
    plain = ("strict-fcfs", "strict-sjf", None, "greedy-fcfs", "greedy-sjf", None)
    for name, other in zip(names, plain, strict=True):
        found = policy(name)
        assert found.place == "first"
        for cluster, jobs in ((None, workload), (NODES, on_nodes(workload, 5))):
            made = replay(jobs, found, site=site, cluster=cluster, estimate="runtime")
            assert check_schedule(made) == []
            stepped = replay(jobs, found, site=site, cluster=cluster, estimate="runtime", event_by_event=True)
            assert made.start.tolist() == stepped.start.tolist()
            if other:
                same = replay(jobs, policy(f"{other}:place=first"), cluster=cluster, estimate="runtime")
                assert made.start.tolist() == same.start.tolist()
    for name, search in {"multisearch": "multi", "delaysearch": "delay", "relaxationsearch": "relax"}.items():
        named = policy(name)
        assert isinstance(named, Daily)
        assert (named.search, named.name) == (search, name)
    with pytest.raises(SettingError, match="--energy"):
        replay(workload, policy("strict-profit"))


def test_the_profit_rule_takes_those_first_that_draw_least() -> None:
    """One processor; all three wait when the first has ended. The last says nothing of its power: the site does."""
    columns = {"id": [0, 1, 2, 3], "submit": [0, 1, 1, 1], "size": [1] * 4, "runtime": [10] * 4, "limit": [10] * 4}
    columns["power_mw"] = [5000, 9000, 8000, -1]
    workload = Workload("c", {key: np.array(column) for key, column in columns.items()}, 1, Provenance("made"))
    for way in ("strict-profit", "nonstrict-profit"):
        made = replay(workload, policy(way), site=Site("s", 8500), estimate="runtime")
        assert made.start.tolist() == [0, 30, 10, 20]


@pytest.mark.parametrize("seed", range(10))
def test_the_plan_of_the_morning_is_what_happens(seed: int) -> None:
    """Where the day is known, no pass between two mornings changes anything."""
    workload, site = busy_days(seed)
    daily = Daily(search="delay", decodes=20)
    made = replay(workload, daily, site=site)
    assert carried_out(workload, daily, site, workload.processors).start.tolist() == made.start.tolist()


def test_who_knows_the_day_plans_for_who_will_come() -> None:
    """A job as wide as the machine comes after an hour: who knows that keeps the machine free for it."""
    columns = {"id": [0, 1], "submit": [0, 3600], "size": [1, 2], "runtime": [DAY_S, DAY_S - 3600]}
    columns["limit"] = columns["runtime"]
    workload = Workload("c", {k: np.array(v, np.int64) for k, v in columns.items()}, 2, Provenance("made"))
    site = Site("s", 1000, tariff=MILLION)
    assert replay(workload, policy("daily:known=day"), site=site).start.tolist() == [DAY_S, 3600]
    assert replay(workload, policy("daily:known=submitted"), site=site).start.tolist() == [0, DAY_S]


def test_a_power_cap_is_kept() -> None:
    workload, site = busy_days(2)
    cap = PowerCap(int((workload.size * workload["power_mw"]).max()), 0, site.busy_mw)
    for known in ("day", "submitted"):
        made = replay(workload, Daily(known), site=site, estimate="runtime", cluster=Cluster(8, cap=cap))
        assert check_schedule(made) == []
        assert (made.start >= 0).all()


def test_names_and_what_is_refused() -> None:
    found = policy("daily:known=submitted,search=delay,delay=30m,decodes=7,tomorrow=yes")
    assert isinstance(found, Daily)
    assert (found.delay_s, found.decodes, found.tomorrow, found.clairvoyant) == (1800, 7, True, False)
    huge = "per_node=99999999999999999999"
    for wrong in ("known=tomorrow", "search=best", "decodes=-1", "delay=0s", "window=0", "deterministic=0", huge):
        with pytest.raises(SettingError, match=wrong.partition("=")[0]):
            policy(f"daily:{wrong}")
    workload, site = busy_days(3, 2)
    with pytest.raises(SettingError, match="--energy"):
        replay(workload, policy("daily"))
    with pytest.raises(SettingError, match="tomorrow"):
        policy("daily:search=cp,tomorrow=yes")
    with pytest.raises(SettingError, match="tariff"):
        replay(workload, policy("daily"), site=replace(site, tariff=0))
    with pytest.raises(SettingError, match="every"):
        replay(workload, policy("daily"), site=site, every_s=60)
    shared = by_node(("cores", "gpus"), (NodeKind("n", 8, (1, 1)),), shared="gpus")
    with pytest.raises(SettingError, match="does not share gpus"):
        replay(workload, policy("relaxationsearch"), site=site, cluster=shared)
    with pytest.raises(SettingError, match="switch"):
        policy("switch:plain=daily;known=submitted")
    with pytest.raises(SettingError, match="prices of a site"):
        check_policy(policy("daily"))


def test_processors_that_are_switched_off_draw_nothing() -> None:
    workload, site = busy_days(4)
    site = replace(site, idle_mw=3000)
    assert (Daily().at(site, workload, Cluster(8)).draw_mw == workload.size * (workload["power_mw"] - 3000)).all()
    site = replace(site, off=Off(600, 300))
    assert (Daily().at(site, workload, Cluster(8)).draw_mw == workload.size * workload["power_mw"]).all()
