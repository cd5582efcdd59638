"""What waiting for cheap hours saves: bill and carbon against the mean wait, on five logs with real hourly prices."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
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
from dovetail.io.swf import header_count
from dovetail.metrics.comparison import block_length, compare
from dovetail.metrics.energy import UJ_PER_MWH, Powers, energy, powers
from dovetail.metrics.groups import weeks
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.studies.task import Cell
from dovetail.units import DAY_S, WEEK_S
from dovetail.workloads.scenarios import apply, span
from reproductions.energy_fronts.bounds import HOLD_S, STEP_S, bounds
from reproductions.running import Work
from reproductions.runs import Points, Runs
from reproductions.values import Content, Key

LOGS: Final = {"KTH-SP2": 26, "CTC-SP2": 18, "SDSC-SP2": 26, "SDSC-BLUE": 26, "CEA-Curie": 18}
"""Weeks of each log, from its first submission on."""
BUSY_W: Final = 9.5
LIMITS: Final = {5: 3, 20: 3, 100: 1}
"""Per cent by which the mean wait may grow, and how many prices of wait are tried to come close to it."""
COARSE: Final = (8.0, 2.0, 0.5, 0.125)
"""What an hour of one job's wait costs, as a multiple of what the mean job's energy does; dear first, until the mean
wait is beyond all limits."""
WEEK: Final = Cell("SDSC-BLUE", "Germany 2021", "all", "week", "limit", 0)

Row = dict[str, Any]


@dataclass(frozen=True)
class Place:
    """Hours of a region; variants.toml says what each of these is."""

    region: str
    begins: str
    zone_h: int
    old: str = ""
    dear: int = 0


@dataclass(frozen=True)
class Variant:
    """What is replayed; variants.toml says what each of these is."""

    logs: tuple[str, ...] = ("KTH-SP2", "SDSC-SP2")
    steps: str = ""
    idle_w: float = 0.0
    place: str = "Germany 2021"
    options: str = ""
    base: str = "list-reg"
    held: str = ""
    planned: bool = False


_GIVEN: Final = tomllib.loads(Path(__file__).with_name("variants.toml").read_text(encoding="utf-8"))
PLACES: Final = {name: Place(**given) for name, given in _GIVEN["places"].items()}
VARIANTS: Final = {name: Variant(**given) for name, given in _GIVEN["variants"].items()}
PLAIN: Final = ("Germany 2021", "Texas 2023")


def cells(_: Work) -> list[Cell]:
    """The prices; the bounds of each log; its fronts; and one week."""
    found = [("prices", place, "none", "limit") for place in PLACES]
    found += [(log, "Germany 2021", kind, "runtime") for log in LOGS for kind in ("bounds", "bill")]
    found += [(log, name, "bill", "limit") for name, variant in VARIANTS.items() for log in variant.logs]
    found += [(log, name, "carbon", "limit") for name in PLAIN for log in VARIANTS[name].logs]
    return [*(Cell(log, name, "all", kind, estimate, 0) for log, name, kind, estimate in found), WEEK]


def solve(cell: Cell, work: Work) -> dict[str, float | Points]:
    """What is known of the prices, bounds, a front, or its best week."""
    if cell.trace == "prices":
        return about_prices(series(work.traces / "energy", PLACES[cell.scenario], "price"))
    front = Front(cell, read_log(work.log(f"papers/{cell.trace}.swf.gz"), LOGS[cell.trace]), work.traces / "energy")
    if cell.policy == "bounds":
        return dict(bounds(replay(front.jobs, policy("list-reg")), *paid_for(front.jobs, front.site)))
    rows = list(front.rows())
    if cell == WEEK:
        return one_week(front, best(rows, "bill", 20))
    drawn = cell.estimate == "limit" and cell.scenario in (*PLAIN, "planner")
    return {key: found for key, found in summary(rows, cell.policy).items() if key != "front" or drawn}


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """All metrics as they are, and the lines of the figures."""
    found: dict[Key, Content] = {}
    for run in runs:
        cell = run.cell
        known = ", run times known" if cell.estimate == "runtime" and cell.policy == "bill" else ""
        found |= {(f"{cell.policy}: {cell.scenario}{known}", cell.trace, key): x for key, x in run.numbers.items()}
        for name, points in run.curves.items():
            table, line = (f"front: {cell.trace}", f"{cell.policy}, {cell.scenario}") if name == "front" else (
                name.partition("_")[0], name.partition("_")[2])  # fmt: skip
            found |= {(table, line, f"{x:g}"): y for x, y in points}
    return found


@cache
def read_log(path: Path, count: int) -> Workload:
    """The first weeks of a log."""
    found = read_workload(path)
    first = int(found.submit[0])
    return span(found, first, first + count * WEEK_S)


@cache
def series(folder: Path, place: Place, what: str) -> Hours:
    """Real hours; second 0 is the start of the place's Monday, local time."""
    region, begins = place.region, "2021-01-04" if place.old and what != "price" else place.begins
    year = begins[:4]
    if what == "temperature":
        path = folder / f"sustain-cluster_weather_2020-2024.tar.xz/weather/{region}/{year}.json"
        return read_hours(path, "", begins, 1000)
    if what == "price" and place.dear:
        return Hours(50 * MILLION * np.where((np.arange(24) >= 9) & (np.arange(24) < 21), place.dear, 1))
    if what == "price" and place.old:
        return read_hours(folder / "epftoolbox_dayahead_real_prices.tar.xz" / place.old, "real_price", begins, MILLION)
    inside, column, times = {
        "price": (
            f"prices_2020-2024.tar.xz/electricity_prices/standardized/{region}/{year}/{region}_electricity_prices_{year}.csv",
            "Price (USD/MWh)", MILLION,
        ),
        "carbon": (
            f"carbon_2021-2024.tar.xz/carbon_intensity/{region}/{year}/{region}_{year}_hourly.csv",
            "Carbon Intensity gCO₂eq/kWh (direct)", 1000,
        ),
    }[what]  # fmt: skip
    found = read_hours(folder / f"sustain-cluster_{inside}", column, begins, times)
    return replace(found, begin=found.begin + place.zone_h * HOUR_S)  # prices and carbon are by UTC, weather is not


def monday(jobs: Workload) -> int:
    """When the week of the first submission began, by the clock on the wall."""
    first = int(jobs.submit[0])
    at = datetime.fromtimestamp(
        header_count(jobs.header, "UnixStartTime") + first, ZoneInfo(jobs.header["TimeZoneString"][0])
    )
    return first - at.weekday() * DAY_S - at.hour * HOUR_S - at.minute * 60 - at.second


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
        "mean_wait_s": float(wait.mean()), "bill": found["energy_cost"], "carbon": found["co2_kg"],
        "bill_weeks": [x / (UJ_PER_MWH * MILLION) for x in bill],
        "carbon_weeks": [x / (UJ_PER_MWH * 1000) for x in carbon],
    }  # fmt: skip


def best(rows: Sequence[Row], key: str, most: float) -> Row:
    """The replay that saves most of those with no longer a wait than allowed; at worst the baseline, which is first."""
    tried = [row for row in rows[1:] if row["policy"] != "easy" and row["longer"] <= most / 100]
    return min([rows[0], *tried], key=lambda row: float(row[key]))


def summary(rows: Sequence[Row], key: str) -> dict[str, float | Points]:
    """What a front comes to: what is saved at each limit, with its interval over weeks, in per cent."""
    base, found = rows[0], dict[str, float | Points]()
    for most in LIMITS:
        found_weeks = (np.array(row[f"{key}_weeks"]) for row in (base, best(rows, key, most)))
        less = compare(*found_weeks, block=block_length(len(base[f"{key}_weeks"])))
        change = {"": less.change, "_low": less.high, "_high": less.low}
        found |= {f"saved_{most}{end}": -100 * number for end, number in change.items()}
    front: list[tuple[float, float]] = []
    for x, y in sorted((100 * r["longer"], 100 - 100 * r[key] / base[key]) for r in rows if r["policy"] != "easy"):
        if not front or y > front[-1][1]:
            front.append((round(x, 2), round(y, 3)))
    found["front"] = front
    dearest = max(rows[1:], key=lambda row: float(row["wait"]))
    found |= {"base_wait_h": base["mean_wait_s"] / HOUR_S, "most_cpu_s": max(row["cpu_s"] for row in rows[1:])}
    found |= {"dear_longer": 100 * dearest["longer"], "dear_saved": 100 - 100 * dearest[key] / base[key]}
    easy = [100 * row["longer"] for row in rows[1:] if row["policy"] == "easy"]
    return found | ({"easy_longer": easy[0]} if easy else {})


class Front:
    """What is replayed where."""

    def __init__(self, cell: Cell, log: Workload, hours: Path) -> None:
        self.cell, self.log, self.hours = cell, log, hours
        self.variant = VARIANTS[cell.scenario]
        self.saves = "carbon" if cell.policy == "carbon" else "cost"
        self.jobs = apply(log, self.variant.steps) if self.variant.steps else log
        later, place = monday(self.jobs), PLACES[self.variant.place]
        price, warm, carbon = (series(hours, place, what) for what in ("price", "temperature", "carbon"))
        self.site = Site(
            cell.scenario, busy_mw=round(1000 * BUSY_W), idle_mw=round(1000 * self.variant.idle_w),
            cooling=plant_table("air", PLANTS["air"], round(self.jobs.processors * BUSY_W)),
            temperature_mc=replace(warm, begin=warm.begin + later), price=replace(price, begin=price.begin + later),
            carbon=replace(carbon, begin=carbon.begin + later), currency="USD",
        )  # fmt: skip
        """The place, as if the log began in its first week, on the weekday and at the hour at which it did begin."""

    def run(self, text: str, wait: float = 0.0) -> Row:
        """One replay."""
        begun = time.process_time()
        if text.startswith("held"):
            made = held(self.jobs, self.site, self.variant.held, wait)
        else:
            made = replay(self.jobs, policy(text), site=self.site, estimate=self.cell.estimate)
        spent = time.process_time() - begun
        return {"policy": text, "wait": wait, "cpu_s": spent, **measured(made, self.site)}

    def rows(self) -> Iterator[Row]:
        """The baseline; coarse prices of wait from dear to cheap; then some between those next to each limit. `longer`
        is by how much the mean wait grew, as a part of that of the baseline on all jobs."""
        variant, tried = self.variant, dict[float, float]()
        whole = replay(self.log, policy(variant.base), estimate=self.cell.estimate)
        of_s, base = float((whole.start - whole.arrive).mean()), self.run(variant.base)
        kind = "held:saves" if variant.held else "plan:objective" if variant.planned else "thrift:saves"

        def row(text: str, wait: float = 0.0) -> Row:
            made = self.run(text, wait)
            return {**made, "longer": (made["mean_wait_s"] - base["mean_wait_s"]) / of_s}

        def tries(wait: float) -> Row:
            made = row(f"{kind}={self.saves},wait={wait:.6g}{variant.options}", wait)
            tried[wait] = made["longer"]
            return made

        yield {**base, "longer": 0.0}
        if self.saves == "cost" and self.cell.scenario in PLAIN:
            yield row("easy")
        unit = base["bill" if self.saves == "cost" else "carbon"] / len(self.jobs)
        for multiple in COARSE:
            yield tries(multiple * unit)
            if tried[multiple * unit] > max(LIMITS) / 100:
                break
        for most, times in LIMITS.items():
            for _ in range(times):
                yield tries(between(tried, most / 100))


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


def about_prices(price: Hours) -> dict[str, float | Points]:
    """Per cent by which the cheapest hours of each day are below the mean price, and how long a price stays below the
    median of its day; of the first 26 weeks."""
    day = price.at(HOUR_S * np.arange(26 * 7 * 24)).reshape(-1, 24)
    below = {f"cheap_{n}": 100 - 100 * float(np.sort(day)[:, :n].mean() / day.mean()) for n in (8, 12, 16, 20)}
    low = (day < np.median(day, axis=1, keepdims=True)).ravel()
    return {**below, "low_h": float(low.sum() / (int(low[0]) + int((low[1:] & ~low[:-1]).sum())))}


def one_week(front: Front, thrift: Row) -> dict[str, float | Points]:
    """Hours of the week, from Monday on, in which most is saved: what is drawn, price and temperature."""
    site, jobs = front.site, front.jobs
    drawn = [powers(replay(jobs, policy(text), site=site), site) for text in ("list-reg", thrift["policy"])]
    mondays = np.arange(monday(jobs), int(jobs.submit[-1]), WEEK_S)
    bills = np.array([by_week(one, one.price, mondays) for one in drawn])
    begin = int(mondays[1:-1][np.argmax((bills[0] - bills[1])[1:-1])])
    at = begin + HOUR_S * np.arange(WEEK_S // HOUR_S)
    kw = [np.array(by_week(one, np.ones_like(one.price), np.append(at, begin + WEEK_S)))[:-1] for one in drawn]
    curves = {"price_USD/MWh": site.price.at(at) / MILLION, "outside_°C": site.temperature_mc.at(at) / 1000}
    curves |= {"power_list-reg": kw[0] / HOUR_S / 1e9, "power_thrift": kw[1] / HOUR_S / 1e9}
    days = [hour / 24 for hour in range(len(at))]
    return {
        "week": (begin - int(mondays[0])) // WEEK_S + 1, "dear_longer": 100 * thrift["longer"], "wait": thrift["wait"],
        **{name: list(zip(days, np.round(ys, 3).tolist(), strict=True)) for name, ys in curves.items()},
    }  # fmt: skip
