"""The case of the profit paper: 23 days of CEA-Curie on 9,600 cores, scheduled in its ways and in ours, and kept.

The paper does not say which days it took, nor how it left out jobs that are too large; it has 33,583 jobs. Two come
near. Its machine is 300 nodes of 32 cores and 128 GB; ours is their 9,600 cores, any of which will do, for every
scheduler alike. The log does not know the memory of jobs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, replace
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from time import process_time
from typing import Any, Final

import numpy as np

from dovetail.energy.cooling import ONE, PLANTS, plant_table
from dovetail.energy.series import Hours, always
from dovetail.energy.site import MILLION, Site
from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.io.series import read_hours
from dovetail.metrics.energy import energy, powers
from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.model.workload import Step, Workload
from dovetail.optimize.day.problem import Day, Searched
from dovetail.policies.base import Policy
from dovetail.policies.lists import ListPolicy
from dovetail.policies.published.daily import Daily
from dovetail.policies.registry import policy
from dovetail.studies.papers.kept import file_of, hash_of_code, keep, read_kept
from dovetail.studies.worker import worker_code
from dovetail.units import DAY_S
from dovetail.workloads.filters import clean
from dovetail.workloads.scenarios import apply

LOG: Final = "archive/CEA-Curie-2011-2.1-cln.swf.gz"
WEATHER: Final = "energy/dc-rl_epw_weather.tar.xz/ESP_Granada.084190_SWEC.epw"
PROCESSORS: Final = 300 * 32
DAYS: Final = 23
WATTS: Final = "7.8..11.11"
MEAN_MW: Final = 9455
STRETCHES: Final = {"1,200": (1200, 558.57), "2,400": (2400, 532.40)}
"""By the most cores of a job: that number, and the day of the log with which it begins."""
SEASONS: Final = {"winter": 0, "summer": 181}
"""Day of the year at which a stretch begins."""
NODES: Final = "nodes/"
RULES: Final = ("strict-est", "strict-wt", "strict-profit", "nonstrict-est", "nonstrict-wt", "nonstrict-profit")


@dataclass(frozen=True)
class Case:
    """One schedule of the case."""

    way: str
    """One of RULES, or a policy by its name. A rule after NODES runs on 300 nodes: each job unit on the first that has
    room."""
    season: str
    plant: str
    seed: int = 0
    """Of the power draw."""
    stretch: str = "1,200"
    length: str = "runtime"
    """How long jobs run: their run times, or, as in equation 2, their limits."""
    tariff: float = 0.02
    """K1: what a core earns in an hour, in EUR."""
    price: float = 120.0
    """K2: of a megawatt-hour, in EUR."""
    cooling: float = 1.0
    """So many times the energy for cooling of the plant that comes with Dovetail."""


@cache
def _stretch(traces: str, name: str, length: str) -> Workload:
    largest, first = STRETCHES[name]
    log = clean(replace(read_workload(Path(traces) / LOG), processors=PROCESSORS), ["standard"])
    inside = (log.submit >= first * DAY_S) & (log.submit < (first + DAYS) * DAY_S) & (log.size <= largest)
    chosen = log.take(inside, f"up to {largest} cores, days {first} to {first + DAYS}")
    if length == "limit":
        step = Step("run to the limit", changed=int((chosen.runtime != chosen.limit).sum()))
        chosen = chosen.with_columns(step, runtime=chosen.limit)
    return chosen


def workload_of(traces: Path, case: Case) -> Workload:
    """The jobs of a case."""
    return apply(_stretch(str(traces), case.stretch, case.length), f"power={WATTS}", seed=case.seed)


def site_of(traces: Path, case: Case, begin: int) -> Site:
    """The machine of a case: no idle power, weather of Granada from 1 January or 1 July on."""
    weather = read_hours(traces / WEATHER, "", "", 1000).values
    full_w = PROCESSORS * MEAN_MW // 1000
    table = plant_table(case.plant, PLANTS[case.plant], full_w)
    pue = np.rint(ONE + case.cooling * (table.pue - ONE)).astype(np.int64)
    temperature = Hours(weather, begin - SEASONS[case.season] * DAY_S)
    return Site(
        f"{case.plant}, {case.season}", MEAN_MW, cooling=replace(table, pue=pue), temperature_mc=temperature,
        price=always(round(case.price * MILLION)), tariff=round(case.tariff * MILLION),
    )  # fmt: skip


def policy_of(way: str, workload: Workload) -> Policy:
    """The scheduler of a case. Profit: the most revenue for the cost first; all jobs pay the same for a core-hour, so
    that is the fewest watts a core."""
    if way.removeprefix(NODES) not in RULES:
        return policy(way)
    kind, _, rule = way.removeprefix(NODES).partition("-")
    reserve: int | str = "strict" if kind == "strict" else 0
    if rule == "profit":
        return ListPolicy(_Thriftiest(workload["power_mw"]), reserve, place="first", name=way)
    return ListPolicy({"est": "fcfs", "wt": "sjf"}[rule], reserve, place="first", name=way)


class _Thriftiest:
    """An order: the fewest watts a core first."""

    static = True

    def __init__(self, power_mw: Any) -> None:
        self._power = power_mw

    def __call__(self, state: State) -> Any:
        return self._power[state.waiting]


def carried_out(workload: Workload, daily: Daily, site: Site, processors: int) -> Schedule:
    """What a replay of a policy that knows the day makes, morning by morning: nothing happens between two of them that
    was not planned."""
    daily = daily.at(site, workload, processors)
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


@dataclass(frozen=True)
class Result:
    """What became of a case; money in EUR."""

    jobs: int
    profit: float
    """Until the last submission."""
    used: float
    """The part of the machine in use until then."""
    pue: float
    """Until then."""
    watts: float
    """Of a core in use until then, cooling apart."""
    makespan_d: float
    all_profit: float
    profits: list[float]
    """At the end of each day, from the begin on."""
    days: list[dict[str, float]]
    """Of each day planned in a way of the paper, until the last submission: see `_Diary`."""
    cpu_s: float


class _Diary:
    """Notes on the plan of each day."""

    def __init__(self, last: int) -> None:
        self.last = last
        self.days: list[dict[str, float]] = []

    def __call__(self, day: Day, found: Searched) -> None:
        if day.begin <= self.last:
            gained = found.profit - found.begun_with if np.isfinite(found.begun_with) else 0.0
            notes = {"jobs": day.jobs, "profit": found.profit, "gained": gained, "improved": found.improved}
            self.days.append({**notes, "cpu_s": found.cpu_s, "best_cpu_s": found.best_cpu_s})


def run(traces: Path, case: Case) -> Result:
    """Make the schedule of a case, and measure it."""
    workload = workload_of(traces, case)
    first, last = int(workload.submit[0]), int(workload.submit[-1])
    site, way, diary = site_of(traces, case, first), policy_of(case.way, workload), _Diary(last)
    begun = process_time()
    if isinstance(way, Daily) and way.known == "day":
        made = carried_out(workload, replace(way, see=diary), site, PROCESSORS)
    elif case.way.startswith(NODES):
        nodes = by_node(("cores",), (NodeKind("node", 300, (32,)),))
        made = replay(apply(workload, "per-node=32"), way, cluster=nodes, estimate="runtime", site=site)
    else:
        made = replay(workload, way, estimate="runtime", site=site)
    spent = process_time() - begun
    whole, early = (energy(powers(made, site, until), site) for until in (None, last))
    ends = range(first + DAY_S, int(made.end.max()) + DAY_S, DAY_S)
    return Result(
        jobs=len(workload),
        profit=early.metrics()["profit"],
        used=early.processor_s / (PROCESSORS * (last - first)),
        pue=early.metrics()["pue"],
        watts=early.jobs_uj / 1e6 / early.processor_s,
        makespan_d=(int(made.end.max()) - first) / DAY_S,
        all_profit=whole.metrics()["profit"],
        profits=[energy(powers(made, site, end), site).metrics()["profit"] for end in ends],
        days=diary.days,
        cpu_s=spent,
    )


class Kept:
    """Results in a folder, a file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def found(self, case: Case) -> Result | None:
        """The result of a case; None if it is not there yet."""
        return read_kept(self._place(case), Result)

    def make(self, traces: Path, cases: Sequence[Case], say: Callable[[str], None]) -> None:
        """Make what is not there, one process for each processor. Break it off at any moment; it goes on from there."""
        missing = [case for case in cases if self.found(case) is None]
        if not missing:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        with ProcessPoolExecutor(os.cpu_count(), get_context("spawn")) as pool:
            waiting = {pool.submit(_made, str(traces), asdict(case)): case for case in missing}
            for done, future in enumerate(as_completed(waiting), 1):
                case, result = waiting[future], future.result()
                keep(self._place(case), result)
                say(
                    f"{done} of {len(missing)}: {case.way}, {case.season}, {case.plant}: {result['cpu_s']:.0f} s of CPU"
                )

    def _place(self, case: Case) -> Path:
        return file_of(self.folder, "profit", [asdict(case), _code()])


def _made(traces: str, case: Mapping[str, Any]) -> dict[str, Any]:
    return asdict(run(Path(traces), Case(**case)))


_SOURCES: Final = ("workloads/filters.py", "workloads/scenarios.py", "studies/papers/profit_runs.py")


@cache
def _code() -> str:
    return hash_of_code(map(Path(__file__).resolve().parents[2].joinpath, _SOURCES), worker_code())
