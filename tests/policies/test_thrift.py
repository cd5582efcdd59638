"""Thrift: each job where its energy and its wait cost least, against a loop over all seconds; both engines agree."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dovetail.energy.cooling import PLANTS, plant_table
from dovetail.energy.rates import rates_of
from dovetail.energy.series import Hours
from dovetail.energy.site import MILLION, Site
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.registry import policy
from dovetail.policies.thrift import Thrift
from dovetail.referee import check_schedule

ROOT = Path(__file__).parents[2]
JOULES_PER_MWH = 3.6e9


def jobs_of(rows: list[tuple[int, int, int, int]], processors: int) -> Workload:
    """Of jobs: submit, size, run time, milliwatts a processor; limits are right."""
    submit, size, runtime, power = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    columns = {
        "id": np.arange(len(rows)), "submit": submit, "size": size, "runtime": runtime, "limit": runtime,
        "power_mw": power,
    }  # fmt: skip
    return Workload("case", columns, processors, Provenance("made"))


STEP = 6
"""Seconds between changes of the price."""


def slow_thrift(workload: Workload, site: Site, thrift: Thrift) -> list[int]:
    """Second by second, where run times are known: at each arrival and end, and at each planned start, all who wait are
    placed anew."""
    n, size, length = len(workload), workload.size.tolist(), workload.runtime.tolist()
    start: list[int] = [-1] * n
    watts = [max(int(power) - site.idle_mw, 0) / 1000 for power in workload["power_mw"]]
    events = {int(at) for at in workload.submit}
    while events:
        now = min(events)
        events.remove(now)
        used: dict[int, int] = {}

        def take(job: int, at: int, used: dict[int, int] = used) -> None:
            for second in range(at, at + length[job]):
                used[second] = used.get(second, 0) + size[job]

        for job in range(n):
            if start[job] >= 0 and start[job] + length[job] > now:
                take(job, start[job])
        for job in [j for j in range(n) if workload.submit[j] <= now and start[j] < 0]:
            fits = [
                at for at in range(now, now + 4 * sum(length) + thrift.hold_s)
                if all(used.get(s, 0) + size[job] <= workload.processors for s in range(at, at + length[job]))
            ]  # fmt: skip
            seconds = np.arange(now, fits[-1] + length[job])
            price = site.price.at(seconds) / MILLION / JOULES_PER_MWH * size[job] * watts[job]
            paid = np.concatenate([[0.0], np.cumsum(price)])

            def cost(at: int, job: int = job, paid: object = paid, now: int = now) -> float:
                assert isinstance(paid, np.ndarray)
                return float(paid[at + length[job] - now] - paid[at - now]) + thrift.wait / 3600 * (at - now)

            last = int(workload.submit[job]) + thrift.hold_s
            changes = [at for at in range(now + 1, last + length[job] + 1) if (at - site.price.begin) % STEP == 0]
            tried = sorted([at for change in changes for at in (change - length[job], change)] + [last])
            found = [next(at for at in fits if at >= one) for one in tried if fits[0] < one <= last]
            chosen, little = fits[0], 1e-6 * abs(cost(fits[0]))
            for at in found:
                if at <= last and cost(at) < cost(chosen) - little:
                    chosen = at
            take(job, chosen)
            if chosen == now:
                start[job] = now
                events.add(now + length[job])
            else:
                events.add(chosen)
        events = {at for at in events if at > now}
    return start


def random_case(seed: int) -> tuple[Workload, Site, Thrift]:
    rng = random.Random(seed)
    processors, at, rows = rng.randint(1, 6), 0, []
    for _ in range(rng.randint(1, 6)):
        at += rng.choice((0, 1, 5, 12))
        rows.append((at, rng.randint(1, processors), rng.randint(1, 9), rng.randint(0, 9) * 10**6))
    price = Hours(np.array([rng.randint(-1, 5) * 1000 for _ in range(6)]) * MILLION, rng.randint(-9, 9), STEP)
    thrift = Thrift(wait=rng.choice((0.0, 0.02, 0.5, 5.0)), hold_s=rng.choice((0, 10, 30)))
    return jobs_of(rows, processors), Site("s", 1, rng.choice((0, 2 * 10**6)), price=price), thrift


def made(workload: Workload, site: Site, thrift: Thrift, stepwise: bool = False, every_s: int = 0) -> Schedule:
    return replay(
        workload,
        thrift,
        cluster=Cluster(workload.processors),
        estimate="runtime",
        site=site,
        event_by_event=stepwise,
        every_s=every_s,
    )


def differences(first: int, last: int) -> list[str]:
    """What is dearer than in the slow replay, or breaks a rule."""
    found = []
    for seed in range(first, last):
        workload, site, thrift = random_case(seed)
        whole, stepwise = (made(workload, site, thrift, way) for way in (False, True))
        wanted = slow_thrift(workload, site, thrift)
        if whole.start.tolist() != wanted or stepwise.start.tolist() != wanted:
            found.append(f"seed {seed}: {whole.start.tolist()} {stepwise.start.tolist()} {wanted}")
        found += [f"seed {seed}: {wrong}" for wrong in check_schedule(whole)]
    return found


@pytest.mark.slow
def test_thrift_equals_a_loop_over_seconds() -> None:
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    script = "from tests.policies.test_thrift import differences; print(differences(0, 300))"
    done = subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True, check=False)
    assert done.stdout == "[]\n", done.stdout + done.stderr


def test_a_job_waits_for_a_cheap_hour_if_that_is_worth_it() -> None:
    """A kilowatt for an hour costs 0.3 now, 0.1 in two hours."""
    workload = jobs_of([(0, 1, 3600, 10**6), (0, 1, 3600, 10**6)], 2)
    site = Site("s", 1, price=Hours(np.array([300, 300, 100, 300]) * MILLION))
    assert made(workload, site, Thrift(wait=0.05)).start.tolist() == [7200, 7200]
    assert made(workload, site, Thrift(wait=0.11)).start.tolist() == [0, 0]
    assert made(workload, site, Thrift(wait=0.05, hold_s=3600)).start.tolist() == [0, 0]
    one = jobs_of([(0, 1, 3600, 10**6), (0, 1, 3600, 10**6)], 1)  # there is room for one: who comes second starts now
    assert sorted(made(one, site, Thrift(wait=0.05)).start.tolist()) == [0, 7200]


def test_settings() -> None:
    found = policy("thrift:saves=carbon,wait=0.5,hold=12h,window=7,order=sjf")
    assert isinstance(found, Thrift)
    assert (found.saves, found.wait, found.hold_s, found.window, found.order) == ("carbon", 0.5, 43_200, 7, "sjf")
    for wrong in ("thrift:saves=time", "thrift:wait=-1", "thrift:order=best", "thrift:window=-1", "thrift:hold=9999d"):
        with pytest.raises(SettingError):
            policy(wrong)
    with pytest.raises(SettingError, match="--energy"):
        replay(jobs_of([(0, 1, 1, 1)], 1), found)
    for never in (lambda: found.rule(), lambda: found.decide(State(0, 1, 1, *(np.zeros(0, np.int64),) * 10))):
        with pytest.raises(SettingError, match="--energy"):
            never()
    with pytest.raises(SettingError, match="nothing to wait for"):
        replay(jobs_of([(0, 1, 1, 1)], 1), found, site=Site("s", 1))
    with pytest.raises(SettingError, match="--every"):
        made(jobs_of([(0, 1, 1, 1)], 1), Site("s", 1, price=Hours(np.array([1, 2]))), Thrift(), every_s=3)


@pytest.mark.parametrize("order", ["given", "given-per-pass"])
def test_an_order_that_nobody_gives_keys_for_is_refused(order: str) -> None:
    with pytest.raises(SettingError, match=r"choose from fcfs, sjf, .*, xfactor$"):
        policy(f"thrift:order={order}")


def test_jobs_that_draw_what_idle_processors_draw_wait_for_nothing() -> None:
    workload = jobs_of([(0, 1, 3600, 10**6)], 1)
    site = Site("s", 1, idle_mw=10**6, price=Hours(np.array([300, 300, 100, 300]) * MILLION))
    assert made(workload, site, Thrift(wait=0.001)).start.tolist() == [0]


def test_hours_that_begin_at_any_second() -> None:
    """Steps stay as long as they are in the file."""
    site = Site("s", 1, price=Hours(np.array([300, 100, 300]) * MILLION, -26_007))
    bound = Thrift().at(site, jobs_of([(0, 1, 3600, 10**6)], 1), Cluster(1))
    assert (bound.rates.step_s, (bound.rates.begin + 26_007) % 3600) == (3600, 0)


def test_weather_alone_is_worth_a_wait() -> None:
    """The price is always the same; at noon cooling takes more."""
    warm = Hours(np.array([35_000, 0]), 0)
    site = Site("s", 10**6, cooling=plant_table("air", PLANTS["air"], 1000), temperature_mc=warm,
                price=Hours(np.array([100 * MILLION])))  # fmt: skip
    workload = jobs_of([(0, 1, 3600, 10**6)], 1)
    assert Thrift(wait=0.001).at(site, workload, Cluster(1)).rates.step_s == 3600
    with pytest.raises(SettingError, match="nothing to wait for"):
        Thrift().at(Site("s", 1, price=Hours(np.array([100 * MILLION]))), workload, Cluster(1))


def test_steps_of_a_constant_price_are_those_of_the_weather() -> None:
    site = Site("s", 1, temperature_mc=Hours(np.array([0, 9000]), 1001), price=Hours(np.array([100 * MILLION])))
    found = rates_of(site, jobs_of([(0, 1, 3600, 10**6)], 1), 1, "cost", 3600, "test")
    assert (found.step_s, (found.begin - 1001) % 3600) == (3600, 0)
