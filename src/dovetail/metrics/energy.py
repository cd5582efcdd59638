"""Energy, money and carbon of a schedule: exact integrals of powers that stay the same from one event to the next.

Powers are whole milliwatts and times whole seconds. A PUE is in thousandths, so cooling is whole microwatts, energy is
whole microjoules, and sums are Python's integers: nothing is rounded before the last division.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.energy.cooling import MOST_PUE, ONE
from dovetail.energy.site import MILLION, Off, Site
from dovetail.errors import SettingError
from dovetail.metrics.exact import exact_dot
from dovetail.model.requests import Placement
from dovetail.model.schedule import Schedule

UJ_PER_KWH: Final = 3_600_000_000_000
UJ_PER_MWH: Final = 1000 * UJ_PER_KWH
_S_PER_H: Final = 3600


@dataclass(frozen=True)
class Powers:
    """Step functions of time in milliwatts: a value holds from its instant to the next; the last instant is the end."""

    times: Ints
    jobs_mw: Ints
    idle_mw: Ints
    off_mw: Ints
    pue: Ints
    """In thousandths."""
    price: Ints
    carbon: Ints
    temperature_mc: Ints
    busy: Ints
    """Processors that run jobs."""

    @property
    def it_mw(self) -> Ints:
        """What the machine draws, cooling apart."""
        return self.jobs_mw + self.idle_mw + self.off_mw

    @property
    def all_uw(self) -> Ints:
        """What is drawn in all, in microwatts."""
        return self.it_mw * self.pue


@dataclass(frozen=True)
class Energy:
    """What a schedule took and earned, exactly."""

    jobs_uj: int
    idle_uj: int
    """Of processors on which nothing ran, off or not."""
    cooling_uj: int
    cost: int
    """Millionths of the currency times UJ_PER_MWH."""
    carbon: int
    """Grams times UJ_PER_MWH."""
    processor_s: int
    """Processors times seconds that jobs had."""
    peak_uw: int
    tariff: int

    @property
    def total_uj(self) -> int:
        return self.jobs_uj + self.idle_uj + self.cooling_uj

    @property
    def revenue(self) -> int:
        """Millionths of the currency times seconds of an hour."""
        return self.processor_s * self.tariff

    def metrics(self) -> dict[str, float]:
        """In units for people. Money is in the site's currency."""
        it_uj = self.jobs_uj + self.idle_uj
        cost = self.cost / (UJ_PER_MWH * MILLION)
        revenue = self.revenue / (_S_PER_H * MILLION)
        profit = (self.revenue * UJ_PER_MWH - self.cost * _S_PER_H) / (_S_PER_H * UJ_PER_MWH * MILLION)
        return {
            "energy_kwh": self.total_uj / UJ_PER_KWH,
            "energy_jobs_kwh": self.jobs_uj / UJ_PER_KWH,
            "energy_idle_kwh": self.idle_uj / UJ_PER_KWH,
            "energy_cooling_kwh": self.cooling_uj / UJ_PER_KWH,
            "pue": self.total_uj / it_uj if it_uj else nan,
            "energy_cost": cost,
            "revenue": revenue,
            "profit": profit,
            "co2_kg": self.carbon / (UJ_PER_MWH * 1000),
            "peak_kw": self.peak_uw / 1e9,
        }


def of_energy(schedule: Schedule, site: Site) -> dict[str, float]:
    """The metrics of a schedule at a site, from its first arrival to its last end."""
    return energy(powers(schedule, site), site).metrics()


def powers(schedule: Schedule, site: Site, until: int | None = None) -> Powers:
    """What is drawn when, from the first arrival to the last end, or to an earlier instant."""
    if schedule.lost:
        raise SettingError("energy: what runs drew that failures of nodes ended is not counted yet: leave failures out")
    ran = schedule.start >= 0
    power_mw = schedule.workload.power_mw(site.busy_mw)
    start, end = schedule.start[ran], schedule.end[ran]
    size = schedule.workload.size[ran]
    job_mw = size * power_mw[ran]
    if not len(start):
        nothing = np.zeros(1, np.int64)
        return Powers(nothing, *(nothing[:0],) * 8)
    first, last = int(schedule.arrive[ran].min()), int(end.max())
    off_begin, off_end, off_count = _off(schedule, site.off, first, last)
    last = last if until is None else max(min(last, until), first)
    hours = [series.changes(first, last) for series in (site.temperature_mc, site.price, site.carbon)]
    instants = np.concatenate([[first, last], start, end, off_begin, off_end, *hours])
    times = np.unique(np.clip(instants, first, last))
    at = times[:-1]
    busy = _steps(times, start, end, size)
    most_mw = max(int(power_mw.max()), site.idle_mw, site.off.mw if site.off else 0)
    # A recorded history may use more processors than the cluster is known to have.
    if max(schedule.cluster.processors, int(busy.max(initial=0))) * most_mw * MOST_PUE >= 2**63:
        raise SettingError(
            f"{schedule.workload.name}: {most_mw:,} mW a processor are more than can be added up exactly"
        )
    off = _steps(times, off_begin, off_end, off_count)
    jobs_mw = _steps(times, start, end, job_mw)
    off_mw = off * (site.off.mw if site.off else 0)
    # Where more processors are in use than the cluster has, none is idle.
    idle_mw = np.maximum(schedule.cluster.processors - busy - off, 0) * site.idle_mw
    temperature = site.temperature_mc.at(at)
    pue = site.cooling.at(jobs_mw + idle_mw + off_mw, temperature)
    return Powers(times, jobs_mw, idle_mw, off_mw, pue, site.price.at(at), site.carbon.at(at), temperature, busy)


def energy(drawn: Powers, site: Site) -> Energy:
    """The integrals."""
    seconds = np.diff(drawn.times)
    jobs, idle = (1000 * exact_dot(mw, seconds) for mw in (drawn.jobs_mw, drawn.idle_mw + drawn.off_mw))
    step_uj = drawn.all_uw.astype(object) * seconds  # Python's integers: a step may pass 2^63
    return Energy(
        jobs, idle, exact_dot(drawn.it_mw * (drawn.pue - ONE), seconds),
        int((step_uj * drawn.price).sum()), int((step_uj * drawn.carbon).sum()),
        exact_dot(drawn.busy, seconds), int(drawn.all_uw.max(initial=0)), site.tariff,
    )  # fmt: skip


def _steps(times: Ints, begin: Ints, end: Ints, amount: Ints) -> Ints:
    """The sum of amounts that hold from `begin` to `end`, on each step."""
    change = np.zeros(len(times) + 1, np.int64)
    np.add.at(change, np.searchsorted(times, begin), amount)
    np.add.at(change, np.searchsorted(times, end), -amount)
    found: Ints = np.cumsum(change)[: len(times) - 1]
    return found


def _off(schedule: Schedule, off: Off | None, first: int, last: int) -> tuple[Ints, Ints, Ints]:
    """When how many processors are off."""
    if off is None:
        return (np.empty(0, np.int64),) * 3
    if schedule.placement is not None:
        gaps = _gaps_of_nodes(schedule, schedule.placement, first, last)
    else:
        gaps = _gaps_of_levels(schedule, off.processors, first, last)
    begin, end, count = np.array(gaps, np.int64).reshape(-1, 3).T
    begin, end = begin + off.after_s, np.where(end < last, end - off.wake_s, end)
    worth = end > begin
    return begin[worth], end[worth], count[worth]


Gaps = list[tuple[int, int, int]]
"""From when to when how many processors have nothing to run."""


def _gaps_of_levels(schedule: Schedule, per_node: int, first: int, last: int) -> Gaps:
    """Where it is not known which node a job ran on: jobs are taken to be on as few nodes as will do, and the node that
    became idle last is the first to be used again."""
    ran, processors = schedule.start >= 0, schedule.cluster.processors
    size = schedule.workload.size[ran]
    times, where = np.unique(np.concatenate([schedule.start[ran], schedule.end[ran]]), return_inverse=True)
    change = np.zeros(len(times), np.int64)
    np.add.at(change, where, np.concatenate([size, -size]))
    nodes = -(-processors // per_node)
    used, idle = 0, [(first, nodes)]  # since when, and how many nodes are idle; the last to become so at the end
    gaps: Gaps = []

    def gap(since: int, until: int, node: int, count: int) -> None:
        gaps.append((since, until, min((node + count) * per_node, processors) - node * per_node))

    for now, need in zip(times.tolist(), (-(-np.cumsum(change) // per_node)).tolist(), strict=True):
        if need < used:
            idle.append((now, used - need))
            used = need
        while used < need:
            since, count = idle.pop()
            taken = min(count, need - used)
            if taken < count:
                idle.append((since, count - taken))
            gap(since, now, used, taken)
            used += taken
    for since, count in reversed(idle):
        gap(since, last, used, count)
        used += count
    return gaps


def _gaps_of_nodes(schedule: Schedule, placement: Placement, first: int, last: int) -> Gaps:
    """Where the node of every unit is known."""
    cluster = schedule.cluster
    job = np.repeat(np.arange(len(schedule.start)), np.diff(placement.first))
    there = (placement.node >= 0) & (schedule.start[job] >= 0)
    node, start, end = placement.node[there], schedule.start[job[there]], schedule.end[job[there]]
    cores = cluster.capacity[cluster.kind_of, 0].tolist()
    busy_until = [first] * cluster.nodes
    gaps: Gaps = []
    for i in np.argsort(start, kind="stable").tolist():
        at = int(node[i])
        if start[i] > busy_until[at]:
            gaps.append((busy_until[at], int(start[i]), cores[at]))
        busy_until[at] = max(busy_until[at], int(end[i]))
    gaps += [(until, last, cores[at]) for at, until in enumerate(busy_until) if until < last]
    return gaps
