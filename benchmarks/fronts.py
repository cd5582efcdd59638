"""What waiting for cheap hours saves: bill and carbon against the mean wait, on five traces with real hourly prices.

python benchmarks/fronts.py --json fronts.jsonl [--logs KTH-SP2] [--only planner]
python benchmarks/fronts_page.py --results fronts.jsonl

One line for each replay: mean wait, bill and carbon, also week by week; and for each trace the least that energy could
cost. About 45 CPU minutes, two thirds of them for the planner. docs/results/energy-fronts.md says how.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Final
from zoneinfo import ZoneInfo

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.energy.cooling import PLANTS, plant_table
from dovetail.energy.rates import rates_of
from dovetail.energy.series import HOUR_S, Hours
from dovetail.energy.site import MILLION, Site
from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.io.series import read_hours
from dovetail.metrics.energy import UJ_PER_MWH, Powers, energy, powers
from dovetail.metrics.groups import weeks
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.studies.papers.arrivals import local, submitted_at
from dovetail.units import DAY_S, WEEK_S
from dovetail.workloads.scenarios import apply, span

TRACES: Final = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
LOGS: Final = {"KTH-SP2": 26, "CTC-SP2": 18, "SDSC-SP2": 26, "SDSC-BLUE": 26, "CEA-Curie": 18}
"""Weeks of each log, from its first submission on."""
CLOSER: Final = ("KTH-SP2", "SDSC-SP2")
"""Where other settings, machines and prices are tried."""
ELSEWHERE: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE")
"""Which are replayed in Texas, too."""
PLANNED: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2")
"""Which are replayed with the planner, too."""
BUSY_W: Final = 9.5
LIMITS: Final = {0.05: 3, 0.20: 3, 1.00: 1}
"""So much longer a mean wait is allowed, and how many prices of wait are tried to come close to it."""
COARSE: Final = (8.0, 2.0, 0.5, 0.125)
"""What an hour of one job's wait costs, as a multiple of what the mean job's energy does; dear first, until the mean
wait is beyond all limits."""
HOLD_S: Final = DAY_S
STEP_S: Final = 1800
"""Between starts that are tried where no policy decides."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Real hours: prices, weather and carbon of a region from a Monday on."""

    name: str
    region: str
    begins: str
    zone_s: int
    """Local winter time less UTC: prices and carbon are kept by UTC, weather by local time."""
    old: str = ""
    """A file of epftoolbox with the prices, by local time; weather and carbon are then those of 2021."""
    dear: int = 0
    """From 9 to 21 o'clock the price is so many times that of the other hours, every day."""


GERMANY: Final = Place("Germany 2021", "DE-LU", "2021-01-04", HOUR_S)
TEXAS: Final = Place("Texas 2023", "US-TEX-ERCO", "2023-01-02", -6 * HOUR_S)
GERMANY_2024: Final = Place("Germany 2024", "DE-LU", "2024-01-01", HOUR_S)
GERMANY_2016: Final = Place("Germany 2016", "DE-LU", "2016-01-04", HOUR_S, "DE_real_price.csv")
TWO_PRICES: Final = Place("two prices, 3 to 1", "DE-LU", "2021-01-04", HOUR_S, dear=3)


@dataclass(frozen=True)
class Variant:
    """One thing changed: the jobs, the machine, the prices, or a setting of thrift."""

    name: str
    scenario: str = ""
    idle_w: float = 0.0
    place: Place = GERMANY
    options: str = ""
    base: str = "list-reg"
    held: str = ""
    """In place of thrift: jobs are held on arrival, and then come to this policy."""
    planned: bool = False
    """In place of thrift: the planner, with money as its objective."""


VARIANTS: Final = (
    Variant("half of the jobs", scenario="sample=0.5"),
    Variant("jobs draw 4.75 to 14.25 W a processor", scenario="power=4.75..14.25"),
    Variant("idle processors draw 3 W", idle_w=3.0),
    Variant("two prices, 3 to 1", place=TWO_PRICES),
    Variant("two prices, jobs draw 4.75 to 14.25 W", scenario="power=4.75..14.25", place=TWO_PRICES),
    Variant("two prices, half of the jobs", scenario="sample=0.5", place=TWO_PRICES),
    Variant("prices of 2016", place=GERMANY_2016),
    Variant("prices of 2024", place=GERMANY_2024),
    Variant("hold=7d", options=",hold=7d"),
    Variant("window=10", options=",window=10"),
    Variant("window=200", options=",window=200"),
    Variant("order=saf", options=",order=saf"),
    Variant("order=saf, against list-saf", options=",order=saf", base="list-saf"),
    Variant("order=laf", options=",order=laf"),
    Variant("order=laf, against list-laf", options=",order=laf", base="list-laf"),
)
HELD: Final = (
    Variant("held on arrival, then list-reg", held="list-reg"),
    Variant("held on arrival, then easy", held="easy"),
    Variant("held on arrival, then easy, against easy", held="easy", base="easy"),
)


PLANNER: Final = Variant("planner", options=",decodes=50", planned=True)


@cache
def read_log(log: str) -> Workload:
    """The first weeks of a log."""
    found = read_workload(TRACES / "papers" / f"{log}.swf.gz")
    first = int(found.submit[0])
    return replace(span(found, first, first + LOGS[log] * WEEK_S), name=log)


@cache
def series(place: Place, what: str) -> Hours:
    """Real hours; second 0 is the begin of the place's Monday, local time."""
    year = place.begins[:4] if not place.old or what == "price" else "2021"
    begins = place.begins if year == place.begins[:4] else "2021-01-04"
    region, folder = place.region, TRACES / "energy"
    if what == "temperature":
        path = folder / f"sustain-cluster_weather_2020-2024.tar.xz/weather/{region}/{year}.json"
        return read_hours(path, "", begins, 1000)
    if what == "price" and place.dear:
        hour = np.arange(24)
        return Hours(50 * MILLION * np.where((hour >= 9) & (hour < 21), place.dear, 1))
    if what == "price" and place.old:
        return read_hours(folder / "epftoolbox_dayahead_real_prices.tar.xz" / place.old, "real_price", begins, MILLION)
    inside = {
        "price": f"prices_2020-2024.tar.xz/electricity_prices/standardized/{region}/{year}/"
        f"{region}_electricity_prices_{year}.csv",
        "carbon": f"carbon_2021-2024.tar.xz/carbon_intensity/{region}/{year}/{region}_{year}_hourly.csv",
    }
    column = {"price": "Price (USD/MWh)", "carbon": "Carbon Intensity gCO₂eq/kWh (direct)"}[what]
    path = folder / f"sustain-cluster_{inside[what]}"
    found = read_hours(path, column, begins, MILLION if what == "price" else 1000)
    return replace(found, begin=found.begin + place.zone_s)


def monday(workload: Workload) -> int:
    """When the week of the first submission began, by the clock on the wall."""
    zone = ZoneInfo(workload.header["TimeZoneString"][0])
    began = int(local(submitted_at(workload)[:1], zone)[0]) + 3 * DAY_S  # 1 January 1970: Thursday
    return int(workload.submit[0]) - began % WEEK_S


def site_for(place: Place, workload: Workload, idle_w: float = 0.0) -> Site:
    """The place, as if the log began in its first week, on the weekday and at the hour at which it did begin."""
    later = monday(workload)
    price, warm, carbon = (series(place, what) for what in ("price", "temperature", "carbon"))
    return Site(
        place.name,
        busy_mw=round(1000 * BUSY_W),
        idle_mw=round(1000 * idle_w),
        cooling=plant_table("air", PLANTS["air"], round(workload.processors * BUSY_W)),
        temperature_mc=replace(warm, begin=warm.begin + later),
        price=replace(price, begin=price.begin + later),
        carbon=replace(carbon, begin=carbon.begin + later),
        currency="USD",
    )


def by_week(drawn: Powers, rate: Ints, begins: Ints) -> list[float]:
    """What is paid in each week, in units of rate times microjoules; the last goes on to the end of the replay."""
    each = drawn.all_uw.astype(np.float64) * rate * np.diff(drawn.times)
    paid = np.concatenate([[0.0], np.cumsum(each)])
    found: list[float] = np.diff(np.interp([*begins.tolist(), drawn.times[-1]], drawn.times, paid)).tolist()
    return found


def measured(schedule: Schedule, site: Site) -> Row:
    """Mean wait, bill and carbon of a schedule; the two also by week of the calendar."""
    drawn, begins = powers(schedule, site), weeks(schedule)[1]
    found, wait = energy(drawn, site).metrics(), schedule.start - schedule.arrive
    bill, carbon = (by_week(drawn, rate, begins) for rate in (drawn.price, drawn.carbon))
    return {
        "mean_wait_s": float(wait.mean()), "bill": found["energy_cost"], "co2_kg": found["co2_kg"],
        "bill_weeks": [x / (UJ_PER_MWH * MILLION) for x in bill],
        "co2_weeks": [x / (UJ_PER_MWH * 1000) for x in carbon],
    }  # fmt: skip


@dataclass(frozen=True)
class Front:
    """One front: what is replayed where, and what thrift saves."""

    log: str
    place: Place
    saves: str = "cost"
    estimate: str = "limit"
    variant: Variant = Variant("")

    @property
    def key(self) -> Row:
        return {
            "log": self.log, "site": self.place.name, "saves": self.saves, "estimate": self.estimate,
            "variant": self.variant.name,
        }  # fmt: skip

    def workload(self) -> Workload:
        found = read_log(self.log)
        return apply(found, self.variant.scenario) if self.variant.scenario else found

    def rows(self) -> Iterator[Row]:
        """The baseline; coarse prices of wait from dear to cheap; then some between those next to each limit. `longer`
        is by how much the mean wait grew, as a part of that of the baseline on all jobs."""
        jobs = self.workload()
        site = site_for(self.place, jobs, self.variant.idle_w)

        def run(text: str, wait: float) -> Row:
            begun = time.process_time()
            if text.startswith("held"):
                made = held(jobs, site, self.variant.held, wait)
            else:
                made = replay(jobs, policy(text), site=site, estimate=self.estimate)
            spent, found = round(time.process_time() - begun, 1), measured(made, site)
            longer = (found["mean_wait_s"] - (base or found)["mean_wait_s"]) / of_s
            return {**self.key, "policy": text, "wait": wait, "cpu_s": spent, "longer": longer, **found}

        base: Row = {}
        whole = replay(read_log(self.log), policy(self.variant.base), estimate=self.estimate)
        of_s = float((whole.start - whole.arrive).mean())
        base = run(self.variant.base, 0.0)
        yield base
        if self.saves == "cost" and not self.variant.name:
            yield run("easy", 0.0)
        unit = base["bill" if self.saves == "cost" else "co2_kg"] / len(jobs)
        tried: dict[float, float] = {}

        def tries(wait: float) -> Row:
            name = "held:saves" if self.variant.held else "plan:objective" if self.variant.planned else "thrift:saves"
            row = run(f"{name}={self.saves},wait={wait:.6g}{self.variant.options}", wait)
            tried[wait] = row["longer"]
            return row

        for multiple in COARSE:
            yield tries(multiple * unit)
            if tried[multiple * unit] > max(LIMITS):
                break
        for most, times in LIMITS.items():
            for _ in range(times):
                yield tries(between(tried, most))


def held(jobs: Workload, site: Site, then: str, wait: float) -> Schedule:
    """Each job is held on arrival until the half hour at which its energy, if it runs to its limit, and its wait cost
    least, were it alone; and then comes to a policy. Nothing is reserved for it before."""
    paid = paid_for(jobs, site)[0]
    delay = STEP_S * np.arange(HOLD_S // STEP_S + 1)
    watts = jobs.size * jobs.power_mw(site.busy_mw) / 1000
    best, least = np.zeros(len(jobs), np.int64), np.full(len(jobs), np.inf)
    for one in delay.tolist():
        at = jobs.submit + one
        cost = watts * (paid(at + jobs.limit) - paid(at)) + wait / HOUR_S * one
        best, least = np.where(cost < least, one, best), np.minimum(cost, least)
    comes = jobs.submit + best
    order = np.argsort(comes, kind="stable")
    columns = {name: np.asarray(jobs[name])[order] for name in ("id", "size", "runtime", "limit")}
    later = Workload(jobs.name, {**columns, "submit": comes[order]}, jobs.processors, jobs.provenance)
    made = replay(later, policy(then))
    start = np.empty(len(jobs), np.int64)
    start[order] = made.start
    return replace(replay(jobs, policy("list-reg")), start=start)


def paid_for(jobs: Workload, site: Site) -> tuple[Callable[[Ints], Floats], int]:
    """What a watt has cost by an instant, at the PUE of full load; and when the hours begin."""
    rates = rates_of(site, jobs, jobs.processors, "cost", WEEK_S, "fronts")
    assert rates.step_s == HOUR_S
    grid = rates.begin + rates.step_s * np.arange(len(rates.paid))

    def paid(at: Ints) -> Floats:
        found: Floats = np.interp(at, grid, rates.paid)
        return found

    return paid, rates.begin


def between(tried: dict[float, float], most: float) -> float:
    """A price of wait between the least that keeps within the limit, all dearer ones too, and the next."""
    dear_first = sorted(tried, reverse=True)
    beyond = next((at for at, wait in enumerate(dear_first) if tried[wait] > most), len(dear_first))
    if beyond == 0:
        return 4 * dear_first[0]
    if beyond == len(dear_first):
        return dear_first[-1] / 4
    return float(np.sqrt(dear_first[beyond - 1] * dear_first[beyond]))


def about_prices(place: Place) -> Row:
    """By how much so many hours, the cheapest of each day, are below the mean price, and how long a price stays below
    the median of its day; of the first 26 weeks."""
    day = series(place, "price").at(HOUR_S * np.arange(26 * 7 * 24)).reshape(-1, 24)
    below = {str(hours): 1 - float(np.sort(day)[:, :hours].mean() / day.mean()) for hours in (8, 12, 16, 20)}
    low = (day < np.median(day, axis=1, keepdims=True)).ravel()
    begun = int(low[0]) + int((low[1:] & ~low[:-1]).sum())
    return {"site": place.name, **below, "low_h": float(low.sum() / begun)}


def bounds(log: str, place: Place) -> Row:
    """What could be saved of list-reg's bill if less stood in the way, at the PUE of full load."""
    jobs = read_log(log)
    site, base = site_for(place, jobs), replay(jobs, policy("list-reg"))
    paid, first = paid_for(jobs, site)
    size, last = jobs.size.astype(np.float64), np.maximum(base.start, base.arrive + HOLD_S)
    costs = float(size @ (paid(base.end) - paid(base.start)))
    found: Row = {"log": log, "site": place.name, "jobs": len(jobs), "weeks": LOGS[log]}
    found["utilization"] = float(size @ jobs.runtime) / jobs.processors / (int(base.end.max()) - int(base.arrive[0]))
    found["wait_free"] = whole_jobs(paid, size, base, last, None) / costs
    for most in LIMITS:
        found[f"wait_{most:g}"] = whole_jobs(paid, size, base, last, most) / costs
    week = np.maximum(base.start, base.arrive + WEEK_S)
    for name, processors, latest in (
        ("split", jobs.processors, last), ("split_week", jobs.processors, week), ("split_free", np.inf, last),
    ):  # fmt: skip
        found[name] = split_jobs(paid, size, base, latest, first, float(processors)) / costs
    long = (base.end - base.start).astype(np.float64)
    shortest_first = np.argsort(long)
    work = np.cumsum((size * long)[shortest_first])
    found["work_median_h"] = float(long[shortest_first][np.searchsorted(work, work[-1] / 2)]) / HOUR_S
    return found


def whole_jobs(paid: Callable[[Ints], Floats], size: Floats, base: Schedule, last: Ints, most: float | None) -> float:
    """The cost if each job may start later than under list-reg, until `last`, with nobody in its way and its run time
    known; `most`: the mean wait grows by no more than so much. Starts are 30 min apart."""
    length = base.end - base.start
    steps = int((last - base.start).max()) // STEP_S + 1
    delay = STEP_S * np.arange(steps, dtype=np.int64)
    cost = np.stack([
        np.where(base.start + d <= last, size * (paid(base.start + d + length) - paid(base.start + d)), np.inf)
        for d in delay
    ])  # fmt: skip

    def chosen(wait: float) -> tuple[float, float]:
        best = np.argmin(cost + wait * delay[:, None], axis=0)
        return float(cost[best, np.arange(len(size))].sum()), float(delay[best].mean())

    if most is None:
        return chosen(0.0)[0]
    allowed = most * float((base.start - base.arrive).mean())
    dear, cheap = float(np.ptp(cost[np.isfinite(cost)])), 0.0  # nobody waits; all do
    for _ in range(30):
        middle = (dear + cheap) / 2
        dear, cheap = (middle, cheap) if chosen(middle)[1] <= allowed else (dear, middle)
    return chosen(dear)[0]


def split_jobs(
    paid: Callable[[Ints], Floats], size: Floats, base: Schedule, last: Ints, first: int, processors: float
) -> float:
    """No less can be paid if jobs start by `last`: work may be split and moved at will, once it has come and before it
    would be late, on so many processors. A linear program over the work done by the end of each hour from `first` on,
    within which the price is the same."""
    from scipy.optimize import linprog
    from scipy.sparse import eye_array, vstack

    length = base.end - base.start
    end = int((last + length).max())
    hours = np.arange(first, end + HOUR_S, HOUR_S)

    def done(start: Ints) -> Floats:
        return _ramp(hours, start, size) - _ramp(hours, start + length, size)

    rate = np.diff(paid(hours)) / HOUR_S
    n, unit, scale = len(rate), float(np.abs(rate).mean()), float(size @ length)  # the solver likes numbers near 1
    steps: Any = eye_array(n, format="csr") - eye_array(n, k=-1, format="csr")
    low, high = (done(start)[1:] / scale for start in (last, base.arrive))
    room = np.full(n, min(processors * HOUR_S / scale, 1.0))
    found: Any = linprog(
        steps.T @ rate / unit,
        A_ub=vstack([steps, -steps]),
        b_ub=np.concatenate([room, np.zeros(n)]),
        bounds=list(zip(low.tolist(), np.maximum(low, high).tolist(), strict=True)),
    )
    assert found.status == 0, found.message
    return float(found.fun) * scale * unit


def _ramp(at: Ints, start: Ints, size: Floats) -> Floats:
    """The sum of size times what has passed since start, at each instant."""
    order = np.argsort(start)
    before = np.searchsorted(start[order], at, side="right")
    sizes, moments = (np.concatenate([[0.0], np.cumsum(x[order])]) for x in (size, size * start))
    found: Floats = at * sizes[before] - moments[before]
    return found


def one_week(front: Front, base: Row, thrift: Row) -> Row:
    """Hours of the week, from Monday on, in which most is saved: what is drawn, price and temperature."""
    jobs = front.workload()
    site = site_for(front.place, jobs)
    drawn = [powers(replay(jobs, policy(row["policy"]), site=site), site) for row in (base, thrift)]
    mondays = np.arange(monday(jobs), int(jobs.submit[-1]), WEEK_S)
    bills = np.array([by_week(one, one.price, mondays) for one in drawn])
    begin = int(mondays[1:-1][np.argmax((bills[0] - bills[1])[1:-1])])
    at = begin + HOUR_S * np.arange(WEEK_S // HOUR_S)
    kw = [np.array(by_week(one, np.ones_like(one.price), np.append(at, begin + WEEK_S)))[:-1] for one in drawn]
    return {
        "log": front.log, "site": front.place.name, "policy": thrift["policy"], "longer": thrift["longer"],
        "number": (begin - int(mondays[0])) // WEEK_S, "price": (site.price.at(at) / MILLION).tolist(),
        "temperature": (site.temperature_mc.at(at) / 1000).tolist(),
        "kw": [(uj / HOUR_S / 1e9).tolist() for uj in kw],
    }  # fmt: skip


def fronts(logs: list[str]) -> Iterator[Front]:
    """All that is replayed."""
    for log in logs:
        for place in (GERMANY, TEXAS) if log in ELSEWHERE else (GERMANY,):
            yield Front(log, place)
            yield Front(log, place, saves="carbon")
        yield Front(log, GERMANY, estimate="runtime")
        yield from (Front(log, GERMANY, variant=variant) for variant in HELD)
    yield from (Front(log, GERMANY, variant=PLANNER) for log in logs if log in PLANNED)
    for log in logs:
        if log in CLOSER:
            yield from (Front(log, variant.place, variant=variant) for variant in VARIANTS)


WEEK: Final = Front("SDSC-BLUE", GERMANY)
WEEK_LIMIT: Final = 0.20


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", nargs="+", default=list(LOGS), choices=list(LOGS))
    parser.add_argument("--json", type=Path, required=True, help="one line for each replay")
    parser.add_argument("--only", default=None, help="fronts of this variant alone")
    given = parser.parse_args()
    todo = [front for front in fronts(given.logs) if given.only in (None, front.variant.name)]
    with given.json.open("w", encoding="utf-8") as out:

        def write(row: Row) -> None:
            out.write(json.dumps(row) + "\n")
            out.flush()

        for place in (GERMANY_2016, GERMANY, GERMANY_2024, TEXAS, TWO_PRICES) if given.only is None else ():
            write({"prices": about_prices(place)})
        for log in given.logs if given.only is None else ():
            write({"bounds": bounds(log, GERMANY)})
            print(f"{log}: bounds, {time.process_time():.0f} s", file=sys.stderr, flush=True)
        for at, front in enumerate(todo, 1):
            base: Row = {}
            best: Row = {}
            for row in front.rows():
                write(row)
                base = base or row
                if row["policy"] != "easy" and row["longer"] <= WEEK_LIMIT:
                    best = min(best or row, row, key=lambda one: float(one["bill"]))
                changes = [100 * row[key] / base[key] - 100 for key in ("mean_wait_s", "bill", "co2_kg")]
                print(
                    f"[{at}/{len(todo)}, {time.process_time():.0f} s] {front.log} {front.place.name} {front.estimate}"
                    f" {front.variant.name} {row['policy']}: wait {changes[0]:+.1f} %, bill {changes[1]:+.2f} %,"
                    f" carbon {changes[2]:+.2f} %, {row['cpu_s']} s",
                    file=sys.stderr, flush=True,
                )  # fmt: skip
            if front == WEEK:
                write({"week": one_week(front, base, best)})


if __name__ == "__main__":
    main()
