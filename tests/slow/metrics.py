"""All numbers of a schedule in the obvious way: exact fractions, and each stretch of time looked at job by job."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

from dovetail.energy.series import Hours
from dovetail.energy.site import Site
from dovetail.model.requests import requests_of
from dovetail.model.schedule import Schedule

Number = float | Fraction


class Row(NamedTuple):
    """A job that started."""

    job: int
    arrive: int
    start: int
    end: int
    size: int
    limit: int
    deadline_s: int

    @property
    def ran(self) -> int:
        return self.end - self.start

    @property
    def wait(self) -> int:
        return self.start - self.arrive


def slow_metrics(schedule: Schedule, site: Site | None = None, counting: str = "all") -> dict[str, float]:
    """The same keys and numbers as `summarize`, but for rounding."""
    started = rows_of(schedule)
    last = max(schedule.arrive.tolist(), default=-1)
    rows = [row for row in started if counting == "all" or row.end <= last]
    found: dict[str, Number] = {
        "jobs": len(schedule.start),
        "jobs_counted": len(rows),
        "jobs_unstarted": len(schedule.start) - len(started),
    }
    leaves = schedule.workload.get("leaves_s").tolist()
    if max(leaves, default=-1) >= 0:
        found["jobs_left"] = sum(at >= 0 > start for at, start in zip(leaves, schedule.start.tolist(), strict=True))
        found["jobs_unstarted"] -= found["jobs_left"]
    found |= _of_jobs(rows)
    for name, inside in _classes(rows).items():
        found |= {f"{name}_{key}": value for key, value in _of_class(inside).items()}
    found |= _of_time(started, schedule.cluster.processors)
    if schedule.placement is not None:
        found |= _of_nodes(schedule, started)
    if True in [outage.fails for outage in schedule.cluster.outages]:
        sizes = schedule.workload.size.tolist()
        seconds = [sizes[run.job] for run in schedule.lost for _ in range(run.start, run.end)]
        found |= {"lost_runs": len(schedule.lost), "lost_processor_s": sum(seconds)}
    if any(one >= 0 for one in schedule.workload.get("deadline_s").tolist()):
        found |= _of_deadlines(rows, schedule.accepted.tolist())
    if site is not None:
        found |= _of_energy(schedule, started, site)
    return {key: float(value) for key, value in found.items()}


def rows_of(schedule: Schedule) -> list[Row]:
    jobs = schedule.workload
    columns = (schedule.arrive, schedule.start, schedule.end, jobs.size, jobs.limit, jobs.get("deadline_s"))
    rows = [Row(job, *row) for job, row in enumerate(zip(*(column.tolist() for column in columns), strict=True))]
    return [row for row in rows if row.start >= 0]


def _ratio(over: Number, under: Number) -> Number:
    return over / under if under else math.nan


def _mean(values: Iterable[Number]) -> Number:
    listed = [Fraction(value) for value in values]
    return sum(listed, Fraction(0)) / len(listed) if listed else math.nan


def _slowdown(row: Row, bound_s: int) -> Fraction:
    return max(Fraction(1), Fraction(row.wait + row.ran, max(row.ran, bound_s, 1)))


def _spread(values: Sequence[Number], name: str, unit: str = "") -> dict[str, Number]:
    """Percentiles between neighbours, and the largest."""
    found: dict[str, Number] = {}
    ordered = sorted(values)
    for percent in (50, 90, 95, 99):
        value: Number = math.nan
        if ordered:
            at = Fraction(percent * (len(ordered) - 1), 100)
            low = math.floor(at)
            high = min(low + 1, len(ordered) - 1)
            value = ordered[low] + (at - low) * (ordered[high] - ordered[low])
        found[f"{name}_p{percent}{unit}"] = value
    return found | {f"max_{name}{unit}": ordered[-1] if ordered else math.nan}


def _of_jobs(rows: Sequence[Row]) -> dict[str, Number]:
    area = sum(row.size * row.ran for row in rows)
    powers = {m: sum(row.size * ((row.wait + row.ran) ** m - row.wait**m) for row in rows) for m in (3, 4)}
    responses = [row.wait + row.ran for row in rows]
    return {
        "bsld": _mean(_slowdown(row, 10) for row in rows),
        "slowdown": _mean(_slowdown(row, 1) for row in rows),
        "af_s": _mean(responses),
        "awf_s": _ratio(Fraction(sum(row.size * row.ran * (row.wait + row.ran) for row in rows)), area),
        "awq_s": _ratio(Fraction(sum(row.size * row.ran * row.wait for row in rows)), area),
        "p2sf_s": _ratio(Fraction(3 * powers[4], 4), powers[3]),
        "l2_response_s": math.sqrt(sum(one**2 for one in responses)) if rows else math.nan,
        "l3_response_s": sum(one**3 for one in responses) ** (1 / 3) if rows else math.nan,
        "mean_wait_s": _mean(row.wait for row in rows),
        **_spreads(rows),
    }


def _spreads(rows: Sequence[Row]) -> dict[str, Number]:
    waits: list[Number] = [row.wait for row in rows]
    return _spread(waits, "wait", "_s") | _spread([_slowdown(row, 10) for row in rows], "bsld")


def _classes(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Short: up to an hour. Narrow: up to 8 processors."""
    return {
        f"{length}_{width}": [row for row in rows if (row.ran <= 3600) == short and (row.size <= 8) == narrow]
        for length, short in (("short", True), ("long", False))
        for width, narrow in (("narrow", True), ("wide", False))
    }


def _of_class(rows: Sequence[Row]) -> dict[str, Number]:
    every = _of_jobs(rows)
    return {"jobs": len(rows), **{key: every[key] for key in ("bsld", "mean_wait_s")}, **_spreads(rows)}


def _pieces(instants: Iterable[int]) -> list[tuple[int, int]]:
    """Stretches of time between neighbouring instants: begin and seconds."""
    times = sorted(set(instants))
    return [(begin, end - begin) for begin, end in pairwise(times)]


def _of_time(rows: Sequence[Row], processors: int) -> dict[str, Number]:
    pieces = _pieces(at for row in rows for at in (row.arrive, row.start, row.end))
    busy = [sum(row.size for row in rows if row.start <= at < row.end) for at, _ in pieces]
    queues = [[row.size for row in rows if row.arrive <= at < row.start] for at, _ in pieces]
    span = sum(seconds for _, seconds in pieces)

    def over_time(values: Sequence[int]) -> Number:
        total = sum(value * seconds for value, (_, seconds) in zip(values, pieces, strict=True))
        return _ratio(Fraction(total), span)

    used = over_time(busy)
    free = [max(processors - one, 0) for one in busy]
    variance = _ratio(over_time([one * one for one in busy]) - used * used, processors**2) if span else math.nan
    return {
        "utilization": _ratio(used, processors),
        "utilization_variance": variance,
        "loss_of_capacity": _ratio(over_time([min(sum(q), f) for q, f in zip(queues, free, strict=True)]), processors),
        "makespan_s": span if rows else math.nan,
        "mean_queue_jobs": over_time([len(queue) for queue in queues]),
        "max_queue_jobs": max(map(len, queues), default=0) if rows else math.nan,
        "mean_queue_processors": over_time([sum(queue) for queue in queues]),
        "max_queue_processors": max(map(sum, queues), default=0) if rows else math.nan,
    }


def _of_nodes(schedule: Schedule, rows: Sequence[Row]) -> dict[str, Number]:
    """What jobs had of each resource, and what lay idle on nodes without a free core while a job waited."""
    cluster, placement = schedule.cluster, schedule.placement
    assert placement is not None
    asked = requests_of(schedule.workload, cluster)
    nodes = {row.job: placement.of(row.job).tolist() for row in rows}
    has = [cluster.kinds[kind].capacity for kind in cluster.kind_of.tolist()]
    times = _pieces(at for row in rows for at in (row.arrive, row.start, row.end))
    waited = [(at, s) for at, s in times if any(row.arrive <= at < row.start for row in rows)]
    span, waited_s = sum(s for _, s in times), sum(s for _, s in waited)

    def unit(row: Row, node: int, r: int) -> Fraction:
        if asked.exclusive[row.job]:
            return Fraction(has[node][r])
        share = Fraction(int(asked.share[row.job]), 1000) if cluster.resources[r] == cluster.shared else 1
        return int(asked.need[row.job, r]) * Fraction(share)

    def used(node: int, r: int, at: int) -> Fraction:
        units = [row for row in rows if row.start <= at < row.end for x in nodes[row.job] if x == node]
        return sum((unit(row, node, r) for row in units), Fraction(0))

    utilized: dict[str, Number] = {}
    stranded: dict[str, Number] = {}
    for r, name in enumerate(cluster.resources):
        total = sum(have[r] for have in has)
        taken = sum((unit(row, node, r) * row.ran for row in rows for node in nodes[row.job]), Fraction(0))
        utilized[f"utilization_{name}"] = _ratio(taken, total * span)
        if r:
            idle = Fraction(0)
            for at, seconds in waited:
                full = [node for node in range(len(has)) if has[node][0] - used(node, 0, at) <= 0]
                idle += seconds * sum((has[node][r] - used(node, r, at) for node in full), Fraction(0))
            stranded[f"stranded_{name}"] = _ratio(idle, total * waited_s)
    return utilized | stranded


def _of_deadlines(rows: Sequence[Row], accepted: Sequence[int]) -> dict[str, Number]:
    driven, regular = [row for row in rows if row.deadline_s >= 0], [row for row in rows if row.deadline_s < 0]

    def stretch(row: Row) -> Fraction:
        return 1 + Fraction(row.wait, max(row.limit, 1))

    def usage(row: Row) -> float:
        return (row.end - row.arrive) / max(row.deadline_s, 1)

    late = [row for row in driven if row.end > row.arrive + row.deadline_s]
    refused: Number = math.nan
    missed: Number = math.nan
    if accepted:
        refused = len([row for row in driven if accepted[row.job] != 1])
        missed = len([row for row in late if accepted[row.job] == 1])
    return {
        "regular_jobs": len(regular),
        "regular_mean_wait_s": _mean(row.wait for row in regular),
        "regular_max_wait_s": max((row.wait for row in regular), default=0),
        "regular_stretch": _mean(map(stretch, regular)),
        "regular_max_stretch": max(map(stretch, regular), default=1),
        "regular_at_once": _mean(int(row.wait == 0) for row in regular),
        "stretch": _mean(map(stretch, rows)),
        "max_stretch": max(map(stretch, rows), default=1),
        "deadline_jobs": len(driven),
        "deadline_at_once": _mean(int(row.wait == 0) for row in driven),
        "deadline_usage": _mean(usage(row) for row in driven if row.wait > 0),
        "deadline_usage_above_80": _mean(int(usage(row) > 0.8) for row in driven),
        "deadlines_late": len(late),
        "deadlines_refused": refused,
        "deadlines_missed": missed,
    }


def _of_energy(schedule: Schedule, rows: Sequence[Row], site: Site) -> dict[str, Number]:
    """At a site without cooling whose idle nodes stay on."""
    own = schedule.workload.get("power_mw").tolist()
    begin, end = min((row.arrive for row in rows), default=0), max((row.end for row in rows), default=0)
    hours = (site.price, site.carbon)
    changes = [at for one in hours for at in range(begin, end) if (at - one.begin) % one.step_s == 0]
    jobs = idle = cost = carbon = peak = Fraction(0)
    for at, seconds in _pieces([begin, end, *changes, *(at for row in rows for at in (row.start, row.end))]):
        here = [row for row in rows if row.start <= at < row.end]
        busy_w = Fraction(sum(row.size * (own[row.job] if own[row.job] >= 0 else site.busy_mw) for row in here), 1000)
        idle_w = Fraction((schedule.cluster.processors - sum(row.size for row in here)) * site.idle_mw, 1000)
        mwh = (busy_w + idle_w) * seconds / 3_600_000_000
        jobs, idle = jobs + busy_w * seconds, idle + idle_w * seconds
        cost, carbon = cost + mwh * _at(site.price, at), carbon + mwh * _at(site.carbon, at)
        peak = max(peak, busy_w + idle_w)
    revenue = Fraction(sum(row.size * row.ran for row in rows) * site.tariff, 3600 * 10**6)
    per_kwh = 3_600_000
    return {
        "energy_kwh": (jobs + idle) / per_kwh,
        "energy_jobs_kwh": jobs / per_kwh,
        "energy_idle_kwh": idle / per_kwh,
        "energy_cooling_kwh": 0,
        "pue": 1 if jobs + idle else math.nan,
        "energy_cost": cost / 10**6,
        "revenue": revenue,
        "profit": revenue - cost / 10**6,
        "co2_kg": carbon / 1000,
        "peak_kw": peak / 1000,
    }


def _at(hours: Hours, at: int) -> int:
    """The value of a series at an instant; it repeats itself."""
    values: list[int] = hours.values.tolist()
    return values[(at - hours.begin) // hours.step_s % len(values)]
