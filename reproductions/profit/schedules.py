"""Schedules of the profit paper's case: 23 days of CEA-Curie on 9,600 cores, scheduled in its ways and in ours.

The paper does not say which days it took, nor how it left out jobs that are too large; it has 33,583 jobs. Three
stretches come near, by the widest job that is let in. Its machine is 300 nodes of 32 cores and 128 GB: ours is that, or
a pool of as many cores, any of which will do. The log does not know the memory of jobs.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from math import ceil
from pathlib import Path
from typing import Final

import numpy as np

from dovetail.energy.cooling import ONE, PLANTS, plant_table
from dovetail.energy.series import Hours, always
from dovetail.energy.site import MILLION, Site
from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.io.series import read_hours
from dovetail.metrics.energy import energy, powers
from dovetail.model.cluster import NodeKind, by_node
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Step, Workload
from dovetail.optimize.day.problem import Day, Searched
from dovetail.policies.published.daily import Daily
from dovetail.policies.registry import policy
from dovetail.studies.task import Cell
from dovetail.units import DAY_S
from dovetail.workloads.filters import clean
from dovetail.workloads.scenarios import apply
from reproductions.running import Work
from reproductions.runs import Points

LOG: Final = "archive/CEA-Curie-2011-2.1-cln.swf.gz"
WEATHER: Final = "energy/dc-rl_epw_weather.tar.xz/ESP_Granada.084190_SWEC.epw"
PROCESSORS: Final = 300 * 32
DAYS: Final = 23
MEAN_MW: Final = 9455
STRETCHES: Final = {"1,200": (1200, 558.57), "2,400": (2400, 532.40), "9,600": (9600, 532.04)}
"""By the most cores of a job: that number, and the day of the log with which it begins."""
SEASONS: Final = {"winter": 0, "summer": 181}
"""Day of the year at which a stretch begins."""
NODES: Final = "nodes/"
"""A scheduler after this runs on 300 nodes: each job unit on the first that has room."""
RULES: Final = ("strict-est", "strict-wt", "strict-profit", "nonstrict-est", "nonstrict-wt", "nonstrict-profit")
USUAL: Final = {"tariff": 0.02, "price": 120.0, "cooling": 1.0}
"""K1, what a core earns in an hour, and K2, of a megawatt-hour, in EUR; and the factor of the energy for cooling."""
MAIN: Final = "K1: 1.1 EUR a core-hour"
HIGH: Final = "K1: 4.6 EUR a core-hour"
VARIED: Final = {
    MAIN: {"tariff": 1.1},
    HIGH: {"tariff": 4.6},
    "K1: 0.005 EUR a core-hour": {"tariff": 0.005},
    "K1: 0.08 EUR a core-hour": {"tariff": 0.08},
    "K2: 60 EUR a MWh": {"price": 60.0},
    "K2: 240 EUR a MWh": {"price": 240.0},
    "cooling: 0.5 times the energy": {"cooling": 0.5},
    "cooling: 2 times the energy": {"cooling": 2.0},
}


@cache
def _stretch(log: Path, name: str, length: str) -> Workload:
    """The jobs; they run for their run times or, as in equation 2, for their limits."""
    largest, first = STRETCHES[name]
    whole = clean(replace(read_workload(log), processors=PROCESSORS), ["standard"])
    inside = (whole.submit >= first * DAY_S) & (whole.submit < (first + DAYS) * DAY_S) & (whole.size <= largest)
    chosen = whole.take(inside, f"up to {largest} cores, days {first} to {first + DAYS}")
    if length == "limit":
        step = Step("run to the limit", changed=int((chosen.runtime != chosen.limit).sum()))
        chosen = chosen.with_columns(step, runtime=chosen.limit)
    return chosen


def _site(weather: Path, scenario: str, begin: int) -> Site:
    """The machine: no idle power, weather of Granada from 1 January or 1 July on."""
    place, _, varied = scenario.partition("; ")
    plant, season = place.split(", ")
    given = USUAL | VARIED.get(varied, {})
    table = plant_table(plant, PLANTS[plant], PROCESSORS * MEAN_MW // 1000)
    pue = np.rint(ONE + given["cooling"] * (table.pue - ONE)).astype(np.int64)
    temperature = Hours(read_hours(weather, "", "", 1000).values, begin - SEASONS[season] * DAY_S)
    return Site(
        place, MEAN_MW, cooling=replace(table, pue=pue), temperature_mc=temperature,
        price=always(round(given["price"] * MILLION)), tariff=round(given["tariff"] * MILLION),
    )  # fmt: skip


def _scheduled(workload: Workload, way: str, site: Site, notes: list[tuple[Day, Searched]]) -> Schedule:
    """The schedule, and into `notes` each day planned in a way of the paper."""
    chosen, nodes = policy(way.removeprefix(NODES)), None
    if isinstance(chosen, Daily):
        chosen = replace(chosen, see=lambda day, found: notes.append((day, found)))
    if way.startswith(NODES):
        workload = apply(workload, "per-node=32")
        nodes = by_node(("cores", "memory_gb"), (NodeKind("node", 300, (32, 128)),))
    return replay(workload, chosen, cluster=nodes, estimate="runtime", site=site)


def solve(cell: Cell, work: Work) -> dict[str, float | Points]:
    """Make a schedule and measure it; money in EUR, and `profit` to `watts` until the last submission."""
    jobs = apply(_stretch(work.log(LOG), cell.trace, cell.estimate), "power=7.8..11.11", seed=cell.seed)
    first, last = int(jobs.submit[0]), int(jobs.submit[-1])
    site, notes = _site(work.traces / WEATHER, cell.scenario, first), list[tuple[Day, Searched]]()
    made = _scheduled(jobs, cell.policy, site, notes)
    whole, early = (energy(powers(made, site, until), site) for until in (None, last))
    makespan_d = (int(made.end.max()) - first) / DAY_S
    shown = cell == Cell("1,200", site.name, "all", cell.policy, "runtime", 0) and not cell.policy.startswith(NODES)
    ends = [first + day * DAY_S for day in range(1, ceil(makespan_d) + 1)] if shown else []
    profits = [energy(powers(made, site, end), site).metrics()["profit"] for end in ends]
    return {
        "jobs": len(jobs), "profit": early.metrics()["profit"], "pue": early.metrics()["pue"],
        "used": early.processor_s / (PROCESSORS * (last - first)), "watts": early.jobs_uj / 1e6 / early.processor_s,
        "work_d": float((jobs.size * jobs.runtime).sum()) / PROCESSORS / DAY_S, "makespan_d": makespan_d,
        "profit_a_day": whole.metrics()["profit"] / makespan_d,
        "profits": [(day, round(profit, 2)) for day, profit in enumerate(profits, 1)],
        **_of_days([found for day, found in notes if day.begin <= last], cell.policy.endswith("search=cp")),
    }  # fmt: skip


def _of_days(days: list[Searched], own: bool) -> dict[str, float]:
    """Sums over the days that were planned in a way of the paper. Searched are those on which the search itself found a
    plan, if it began with none (`own`)."""
    times = [day.cpu_s for day in days if day.best_cpu_s or not own]
    if not days:
        return {}
    return {
        "days": len(days), "searched": len(times), "search_s": sum(times), "search_most_s": max(times, default=0.0),
        "best_s": sum(day.best_cpu_s for day in days), "improved": sum(day.improved for day in days),
        "gained": sum(day.profit - day.begun_with for day in days if np.isfinite(day.begun_with)),
        "day_profit": sum(day.profit for day in days),
    }  # fmt: skip
