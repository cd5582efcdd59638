"""Energy of schedules: by hand, and random ones against a loop over seconds and processors."""

from __future__ import annotations

import random
from fractions import Fraction

import numpy as np
import pytest

from dovetail.energy.cooling import ONE, PLANTS, STEP_W, Cooling, constant, plant_table
from dovetail.energy.series import Hours, always
from dovetail.energy.site import MILLION, Off, Site
from dovetail.errors import SettingError
from dovetail.metrics.energy import UJ_PER_KWH, UJ_PER_MWH, energy, of_energy, powers
from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.requests import Placement
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload


def schedule_of(
    jobs: list[tuple[int, int, int, int, int]], cluster: Cluster, placement: Placement | None = None
) -> Schedule:
    """Of jobs: submit, start (-1: never), run time, size, milliwatts a processor (-1: not known)."""
    submit, start, runtime, size, power = (np.array(column, np.int64) for column in zip(*jobs, strict=True))
    columns = {
        "id": np.arange(len(jobs)), "submit": submit, "size": size, "runtime": runtime, "limit": runtime,
        "power_mw": power,
    }  # fmt: skip
    workload = Workload("case", columns, cluster.processors, Provenance("made"))
    none = np.full(len(jobs), -1)
    return Schedule(workload, cluster, "p", "limit", start, submit, none, none, 0, placement=placement)


def test_by_hand() -> None:
    """Two of four processors at 10 W for an hour, then all idle at 2 W for the half hour until one runs for a second
    half hour at 20 W. The second hour costs twice as much. PUE 1.5."""
    site = Site(
        "hand", busy_mw=20_000, idle_mw=2_000, cooling=constant(1500), tariff=300_000,
        price=Hours(np.array([100, 200]) * MILLION), carbon=always(500_000),
    )  # fmt: skip
    schedule = schedule_of([(0, 0, 3600, 2, 10_000), (0, 5400, 1800, 1, -1), (7, -1, 10, 4, 1)], Cluster(4))
    found = of_energy(schedule, site)
    first_kwh, second_kwh = (20 + 4) / 1000, (8 * 0.5 + (20 + 6) * 0.5) / 1000
    assert found["energy_jobs_kwh"] == pytest.approx(0.020 + 0.010)
    assert found["energy_kwh"] == pytest.approx(1.5 * (first_kwh + second_kwh))
    assert found["energy_idle_kwh"] == pytest.approx(first_kwh + second_kwh - 0.030)
    assert found["energy_cooling_kwh"] == pytest.approx(0.5 * (first_kwh + second_kwh))
    assert found["energy_cost"] == pytest.approx(1.5 * (first_kwh * 0.1 + second_kwh * 0.2))
    assert found["revenue"] == pytest.approx(0.3 * 2.5)
    assert found["profit"] == pytest.approx(found["revenue"] - found["energy_cost"])
    assert found["co2_kg"] == pytest.approx(0.5 * found["energy_kwh"])
    assert found["peak_kw"] == pytest.approx(1.5 * 26 / 1000)
    assert found["pue"] == 1.5


@pytest.mark.parametrize(("until", "times"), [(-5, [0]), (60, [0, 60]), (130, [0, 100, 130]), (999, [0, 100, 150])])
def test_powers_to_an_earlier_instant_end_there(until: int, times: list[int]) -> None:
    """At 5 W a processor: one of two for 100 s, then both for 50 s."""
    schedule = schedule_of([(0, 0, 150, 1, -1), (0, 100, 50, 1, -1)], Cluster(2))
    drawn = powers(schedule, Site("part", busy_mw=5_000, idle_mw=1_000), until)
    assert drawn.times.tolist() == times
    assert drawn.jobs_mw.tolist() == [5_000, 10_000][: len(times) - 1]
    assert drawn.idle_mw.tolist() == [1_000, 0][: len(times) - 1]


def test_idle_nodes_are_off_between_jobs_and_woken_in_time() -> None:
    """Two nodes of two processors. The second is idle from 0 to 100: off from 10 to 80."""
    site = Site("off", busy_mw=5_000, idle_mw=1_000, off=Off(after_s=10, wake_s=20, processors=2, mw=100))
    schedule = schedule_of([(0, 0, 200, 1, -1), (0, 100, 50, 3, -1)], Cluster(4))
    drawn = powers(schedule, site)
    off = {int(at): int(mw) for at, mw in zip(drawn.times, drawn.off_mw, strict=False)}
    assert [at for at in off if off[at] == 200] == [10, 160]  # and after the second job, to the end
    assert off[80] == 0
    assert drawn.idle_mw.tolist()[0] == 3_000


def random_case(rng: random.Random) -> tuple[Schedule, Site]:
    processors = rng.randint(1, 9)
    jobs: list[tuple[int, int, int, int, int]] = []
    free_at = [0] * processors
    node: list[int] = []
    for submit in sorted(rng.randint(0, 40) for _ in range(rng.randint(1, 8))):
        size = rng.randint(1, processors)
        lanes = sorted(range(processors), key=free_at.__getitem__)[:size]
        start = max([submit, *(free_at[lane] for lane in lanes)]) + rng.choice((0, 0, 9))
        runtime = rng.randint(1, 30)
        if rng.random() < 0.1:
            jobs.append((submit, -1, runtime, size, -1))
            node += [-1] * size
            continue
        for lane in lanes:
            free_at[lane] = start + runtime
        node += lanes
        jobs.append((submit, start, runtime, size, rng.choice((-1, rng.randint(1, 10**6)))))
    cluster, placement = Cluster(processors), None
    if rng.random() < 0.5:
        cluster = by_node(("cores",), (NodeKind("n", processors, (1,)),))
        sizes = [job[3] for job in jobs]
        placement = Placement(np.cumsum([0, *sizes]), np.array(node, np.int64), np.empty(0, np.int64))
    table = np.array([[rng.randint(ONE, 2 * ONE) for _ in range(4)] for _ in range(5)], np.int64)
    off = Off(rng.randint(0, 5), rng.randint(0, 5), rng.choice((1, 2, 4)), rng.randint(0, 50))
    warm, price, carbon = (
        Hours(np.array([rng.randint(low, high) for _ in range(5)]), rng.randint(-50, 50), rng.randint(1, 20))
        for low, high in ((5_000, 20_000), (-(10**8), 10**9), (0, 10**6))
    )
    site = Site(
        "random", rng.randint(0, 10**6), rng.randint(0, 10**5), off if rng.random() < 0.7 else None,
        Cooling("t", table, 10), warm, price, carbon, tariff=rng.randint(0, 10**6),
    )  # fmt: skip
    return schedule_of(jobs, cluster, placement), site


def idle_nodes(schedule: Schedule, site: Site, second: int) -> list[int]:
    """Processors of each node on which nothing runs in that second, by the number of the node."""
    running = (schedule.start <= second) & (second < schedule.end) & (schedule.start >= 0)
    if schedule.placement is not None:
        used = {int(n) for j in np.flatnonzero(running) for n in schedule.placement.of(int(j))}
        return [node for node in range(schedule.cluster.nodes) if node not in used]
    per = site.off.processors if site.off else 1
    busy = int(schedule.workload.size[running].sum())
    return [node for node in range(-(-schedule.cluster.processors // per)) if node * per >= busy]


def processors_of(schedule: Schedule, site: Site, node: int) -> int:
    if schedule.placement is not None:
        return 1
    per = site.off.processors if site.off else 1
    return min(per, schedule.cluster.processors - node * per)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(300))
def test_random_schedules_balance(seed: int) -> None:
    """Second by second: what is on, what is off, what each draws, what it costs."""
    schedule, site = random_case(random.Random(seed))
    ran = schedule.start >= 0
    if not ran.any():
        assert of_energy(schedule, site)["energy_kwh"] == 0
        return
    first, last = int(schedule.arrive[ran].min()), int(schedule.end[ran].max())
    idle = [set(idle_nodes(schedule, site, second)) for second in range(first, last)]
    jobs = rest = cooling = cost = carbon = peak = area = 0
    for second in range(first, last):
        running = ran & (schedule.start <= second) & (second < schedule.end)
        size = schedule.workload.size[running]
        own = schedule.workload.get("power_mw")[running]
        jobs_mw = sum(int(s) * (int(p) if p >= 0 else site.busy_mw) for s, p in zip(size, own, strict=True))
        off = 0
        for node in idle[second - first] if site.off else ():
            begin = end = second
            while begin > first and node in idle[begin - 1 - first]:
                begin -= 1
            while end < last and node in idle[end - first]:
                end += 1
            assert site.off is not None
            woken = end if end == last else end - site.off.wake_s
            if begin + site.off.after_s <= second < woken:
                off += processors_of(schedule, site, node)
        rest_mw = (schedule.cluster.processors - int(size.sum()) - off) * site.idle_mw
        rest_mw += off * (site.off.mw if site.off else 0)
        at = np.array([second])
        load, warm = jobs_mw + rest_mw, int(site.temperature_mc.at(at)[0])
        row = min(int(Fraction(load, 1000 * STEP_W) + Fraction(1, 2)), 4)
        pue = int(site.cooling.pue[row, min(max(int(Fraction(warm, 1000) + Fraction(1, 2)) - 10, 0), 3)])
        jobs, rest, cooling = jobs + 1000 * jobs_mw, rest + 1000 * rest_mw, cooling + load * (pue - ONE)
        cost += load * pue * int(site.price.at(at)[0])
        carbon += load * pue * int(site.carbon.at(at)[0])
        peak, area = max(peak, load * pue), area + int(size.sum())
    found = energy(powers(schedule, site), site)
    assert (found.jobs_uj, found.idle_uj, found.cooling_uj) == (jobs, rest, cooling)
    assert (found.cost, found.carbon, found.peak_uw, found.processor_s) == (cost, carbon, peak, area)
    assert found.total_uj == jobs + rest + cooling
    half = (first + last) // 2
    parts = energy(powers(schedule, site, half), site)
    assert parts.total_uj <= found.total_uj


def test_a_large_machine_for_years_does_not_wrap() -> None:
    year = 365 * 86400
    site = Site("large", busy_mw=300_000, price=always(3_000 * MILLION), tariff=MILLION)
    found = energy(powers(schedule_of([(0, 0, 10 * year, 10**6, -1)], Cluster(10**6)), site), site)
    mwh = Fraction(300, 10**6) * 10**6 * 10 * 365 * 24
    assert Fraction(found.cost, UJ_PER_MWH * MILLION) == mwh * 3_000
    assert Fraction(found.total_uj, UJ_PER_KWH) == mwh * 1000


def test_powers_that_cannot_be_added_up_are_refused() -> None:
    with pytest.raises(SettingError, match="exactly"):
        of_energy(schedule_of([(0, 0, 10, 10**6, 10**13)], Cluster(10**6)), Site("s", 1))
    # A large machine with a small job, and a history with more in use than the machine has.
    with pytest.raises(SettingError, match="exactly"):
        of_energy(schedule_of([(0, 0, 10, 1, 1)], Cluster(10**6)), Site("s", 1, idle_mw=10**13))
    with pytest.raises(SettingError, match="exactly"):
        of_energy(schedule_of([(0, 0, 10, 10**6, 10**12)], Cluster(1)), Site("s", 1))


def test_plants_cool_better_when_it_is_cold_and_when_there_is_load() -> None:
    for name, plant in PLANTS.items():
        table = plant_table(name, plant, 100_000)
        assert (np.diff(table.pue, axis=1) >= 0).all()
        assert (np.diff(table.pue, axis=0) <= 0).all()
        assert (table.pue >= ONE).all()
        assert table.at(np.array([10**9]), np.array([-99_000]))[0] == table.pue[-1, 0]
