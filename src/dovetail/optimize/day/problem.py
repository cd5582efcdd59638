"""A day planned for profit: which jobs start today, and when, so that revenue less energy and cooling is most.

After Optimizing Profit and Cooling Costs in HPC Cluster Scheduling (no author given): its equations 3 to 5, the
job-based heuristic (Algorithm 1), MultiSearch (Algorithm 2) and DelaySearch (Algorithm 3). RelaxationSearch and CP's
default search are in cpsat.py.

Where the paper leaves something open:

- Where nodes are known (`Day.on`), each unit of a job goes to the first node that has room for it all the way, and
  nodes are in their order: so the paper has it for its rules, and says nothing of it for the heuristic. Else processors
  are one pool, and `per_node` of them make a job unit; only two of the orders of MultiSearch look at units.
- The resources that MultiSearch sorts by are cores.
- S is the segments of today, as the paper assumes "for the sake of simplicity". Jobs that run when the day begins count
  in them to their ends. What a job does after midnight counts only with `tomorrow`, in one segment of its own: with it,
  a day is worth the profit of all that it starts, and there is little reason to start anything today.
- A job that would not start today is left for tomorrow. Algorithm 1 places it, after midnight; there it would only be
  in the way of jobs that run over midnight, and tomorrow it is placed anew.
- LUT is a PUE less 1: the energy of cooling per energy of the workload.
- The latest start of a job is the one that lets it end today.
- "Job profit" is the profit of the whole job at the PUE of the day's mean temperature and full load.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any, Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.energy.cooling import ONE
from dovetail.energy.site import MILLION, Site
from dovetail.kernels.planner.day import Anywhere, begin_day, place_day
from dovetail.model.cluster import Cluster, PowerCap
from dovetail.model.machine import new_machine
from dovetail.model.requests import Requests

WITHIN_MC: Final = 5000
"""Temperatures of a segment are within this many thousandths of a degree."""
_MWS_PER_MWH: Final = 3.6e12


@dataclass(frozen=True)
class Segments:
    """Stretches of time with about one temperature: their begins and one end, and in each a price and a temperature."""

    times: Ints
    temperature_mc: Ints
    price: Floats
    """Of a milliwatt for a second, in the site's currency."""


def segments_of(site: Site, begin: int, end: int) -> Segments:
    """The segments of a day: each as long as its temperatures are within 5 degrees. Temperature and price are means."""
    changes = (series.changes(begin, end) for series in (site.temperature_mc, site.price))
    times = np.unique(np.concatenate([[begin, end], *changes]))
    warm, price, length = site.temperature_mc.at(times[:-1]), site.price.at(times[:-1]), np.diff(times)
    cuts, low, high = [0], int(warm[0]), int(warm[0])
    for i, now in enumerate(warm.tolist()):
        low, high = min(low, now), max(high, now)
        if high - low > WITHIN_MC:
            cuts.append(i)
            low = high = now
    seconds = np.add.reduceat(length, cuts)
    mean_mc = np.rint(np.add.reduceat(warm * length, cuts) / seconds).astype(np.int64)
    paid = np.add.reduceat(price * length, cuts) / seconds / (MILLION * _MWS_PER_MWH)
    return Segments(np.append(times[cuts], end), mean_mc, paid)


@dataclass(frozen=True)
class OnNodes:
    """The nodes of a day: what each of its jobs asks of them, and which those that run have."""

    cluster: Cluster
    requests: Requests
    held: Ints
    """Of each unit of the jobs that run, in a row: the node, and its devices as bits."""


@dataclass(frozen=True)
class Day:
    """The jobs that may start today, and behind them (from `jobs` on) those that run already."""

    site: Site
    segments: Segments
    processors: int
    jobs: int
    earliest: Ints
    """When each may start; for those that run: now."""
    length: Ints
    """How long each runs, or goes on running."""
    size: Ints
    draw_mw: Ints
    """What each draws beyond what its processors draw when idle."""
    per_node: int = 32
    room_mw: int = -1
    """What all together may draw so under a power cap; -1: no cap."""
    tomorrow: bool = False
    on: OnNodes | None = None
    """Where nodes are known. Else processors are counted, and any of them will do."""

    @property
    def begin(self) -> int:
        return int(self.segments.times[0])

    @property
    def end(self) -> int:
        return int(self.segments.times[-1])

    @property
    def earns(self) -> float:
        """What a processor earns in a second."""
        return self.site.tariff / (MILLION * 3600)

    def profit(self, starts: Ints) -> float:
        """Equation 3. `starts`: of each job that may start today; -1: it does not."""
        all_starts = np.concatenate([starts, self.earliest[self.jobs :]])
        there = all_starts >= 0
        at, length = all_starts[there], self.length[there]
        size, draw = self.size[there], self.draw_mw[there]
        done = np.clip(self.segments.times[:, None] - at, 0, length)  # seconds run until each border
        in_segment = np.diff(done, axis=0)
        seconds = np.diff(self.segments.times)
        busy_s, drawn = in_segment @ size, in_segment @ draw + self.processors * self.site.rest_mw * seconds
        pue = self.site.cooling.at(np.rint(drawn / seconds).astype(np.int64), self.segments.temperature_mc) / ONE
        total = float(self.earns * busy_s.sum() - (drawn * pue * self.segments.price).sum())
        if self.tomorrow:
            left = length - done[-1]
            total += float(self.earns * (left @ size) - (left @ draw) * self.mean_pue * self.mean_price)
        return total

    @property
    def mean_price(self) -> float:
        return float(np.average(self.segments.price, weights=np.diff(self.segments.times)))

    @property
    def mean_pue(self) -> float:
        """At full load and the day's mean temperature."""
        mean_mc = np.average(self.segments.temperature_mc, weights=np.diff(self.segments.times))
        full = np.array([self.processors * self.site.busy_mw])
        return float(self.site.cooling.at(full, np.rint([mean_mc]).astype(np.int64))[0] / ONE)

    @property
    def units(self) -> Ints:
        """How many units each job has."""
        return -(-self.size // self.per_node) if self.on is None else self.on.requests.units

    def orders(self) -> Iterator[Ints]:
        """The 11 criteria of MultiSearch, each rising and falling; ties by position."""
        n = slice(0, self.jobs)
        length, size, draw = self.length[n], self.size[n], self.draw_mw[n]
        units = self.units[n]
        margin = size * self.earns - draw * self.mean_price * self.mean_pue
        worth = margin * length
        ratio = np.divide(draw, worth, out=np.full(self.jobs, np.inf), where=worth != 0)
        keys: list[tuple[Ints | Floats, ...]] = [
            (self.earliest[n],), (self.end - length,), (length,), (units,), (-(-size // units),), (size,),
            (size * length,), (draw,), (ratio,), (length, ratio), (-length, ratio),
        ]  # fmt: skip
        for key in keys:
            yield np.lexsort(key)
            yield np.lexsort((*key[:-1], -key[-1]))


class Placer:
    """The job-based heuristic on one day: Algorithm 1, compiled. On nodes each unit goes to the first with room."""

    def __init__(self, day: Day) -> None:
        self.day = day
        size, cap = day.size, PowerCap(day.room_mw) if day.room_mw >= 0 else None
        running, room = np.arange(day.jobs, len(size)), 2 * len(size) + 4
        no_takes = np.empty((len(size), 0), np.int64)
        self._nodes: Any = Anywhere()
        if day.on is not None:
            asked, first = day.on.requests, day.on.requests.first
            size = asked.units * asked.need[:, 0]
            plain = replace(day.on.cluster, cap=None, licences=())
            self._nodes = new_machine(plain, size, asked, no_takes, "first", room)
            for job in running.tolist():
                units = slice(first[job] - first[day.jobs], first[job + 1] - first[day.jobs])
                self._nodes.hold(job, day.begin, *day.on.held[:, units])
        takes = day.draw_mw[:, np.newaxis] if cap is not None else no_takes
        self._pool = new_machine(Cluster(day.processors, cap=cap), size, None, takes, "", room)
        begin_day(self._pool, self._nodes, day.begin, running, day.begin + day.length[running])
        self._length = np.ascontiguousarray(day.length)
        self.decodes = 0

    @property
    def where(self) -> Ints:
        """The node of each unit of each job that was placed last, and its devices as bits; nothing in a pool."""
        found: Ints = self._nodes.picked()
        return found

    def place(
        self,
        order: Ints,
        earliest: Ints | None = None,
        fixed: Ints | None = None,
        until: int | None = None,
        where: Ints | None = None,
    ) -> Ints:
        """The start of each job, -1: not today, or not before `until`. Jobs with a start in `fixed` are placed there
        first, on nodes on those in `where`."""
        day = self.day
        if where is not None:
            self._nodes.pick_again(where)
        starts = np.full(day.jobs, -1, np.int64)
        fixed = starts.copy() if fixed is None else fixed
        place_day(
            self._pool, self._nodes, day.begin, day.end if until is None else until, order,
            day.earliest if earliest is None else earliest, self._length, fixed, starts,
        )  # fmt: skip
        self.decodes += 1
        return starts


@dataclass(frozen=True)
class Searched:
    """The best plan of a day, and how it was found."""

    starts: Ints
    profit: float
    order: Ints
    """Whose placing in turn the first plan was."""
    begun_with: float
    """Profit of the plan that the search began with."""
    cpu_s: float
    best_cpu_s: float
    """CPU seconds until the best was found."""
    where: Ints = field(default_factory=lambda: np.empty((2, 0), np.int64))
    """Of each unit of each job that starts, the node and its devices (`Placer.where`)."""

    @property
    def improved(self) -> bool:
        """Whether the search found more than it began with, beyond rounding."""
        return self.profit > self.begun_with + 1e-9 * abs(self.begun_with)


def multi_search(day: Day) -> Searched:
    """Algorithm 2: the best of the orders."""
    begun, placer = process_time(), Placer(day)
    nothing = np.full(day.jobs, -1, np.int64)
    best = Searched(nothing, -np.inf, nothing, -np.inf, 0.0, 0.0)
    for order in {order.tobytes(): order for order in day.orders()}.values():
        starts = placer.place(order)
        profit = day.profit(starts)
        if profit > best.profit:
            best = Searched(starts, profit, order, profit, 0.0, process_time() - begun, placer.where)
    return replace(best, cpu_s=process_time() - begun)


def in_order(day: Day) -> Searched:
    """Every job placed in order of submission."""
    begun = process_time()
    order = np.argsort(day.earliest[: day.jobs], kind="stable")
    placer = Placer(day)
    starts = placer.place(order)
    profit = day.profit(starts)
    return Searched(starts, profit, order, profit, process_time() - begun, 0.0, placer.where)


def delay_search(day: Day, begin: Searched, *, decodes: int, delay_s: int) -> Searched:
    """Algorithm 3: job after job, in the order that was best, is held back by `delay_s` more and more, until the day is
    over; from then on it stays where it is in the best plan, on nodes on those it has there. The paper says neither how
    long a delay is nor which job comes first. `decodes` plans are tried."""
    begun, placer, best = process_time(), Placer(day), begin
    at_best = 0.0
    fixed, earliest = np.full(day.jobs, -1, np.int64), day.earliest.copy()
    for job in begin.order.tolist():
        if best.starts[job] < 0:
            continue  # it is delayed until tomorrow already
        while placer.decodes < decodes:
            earliest[job] = max(earliest[job], begin.starts[job]) + delay_s
            if earliest[job] >= day.end:
                break
            starts = placer.place(begin.order, earliest, fixed, where=best.where)
            profit = day.profit(starts)
            if profit > best.profit + 1e-9 * abs(best.profit):
                best = replace(best, starts=starts, profit=profit, where=placer.where)
                at_best = process_time() - begun
        if placer.decodes >= decodes:
            break
        fixed[job] = best.starts[job]
        earliest[job] = day.end if fixed[job] < 0 else day.earliest[job]
    return replace(best, begun_with=begin.profit, cpu_s=process_time() - begun, best_cpu_s=at_best)
