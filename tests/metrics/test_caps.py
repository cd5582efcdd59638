"""Every metric of schedules whose values are as large as a log may have them, against slow code in fractions.

A log has up to 10^9 processors and 10^10 s in a field; waits may pile up to 2^60 s. What is a ratio of sums of integers
is rounded once: it must be the float nearest to the fraction. What sums up floats must be within LOOSE of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise
from math import isnan
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from dovetail import metrics
from dovetail.energy.cooling import MOST_PUE, ONE, STEP_W, Cooling
from dovetail.energy.series import MOST_STEPS, Hours
from dovetail.energy.site import MILLION, Site
from dovetail.engine.deadline_offers import saved
from dovetail.errors import SettingError
from dovetail.metrics import estimates
from dovetail.metrics.energy import UJ_PER_MWH, energy, of_energy, powers
from dovetail.metrics.exact import exact_dot, exact_mean, exact_sum, products, running_sum
from dovetail.metrics.groups import by_group
from dovetail.metrics.nodes import of_nodes
from dovetail.model.cluster import Cluster, NodeKind, by_node
from dovetail.model.requests import Placement
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from dovetail.reports import curves

SECONDS, PROCESSORS, LONGEST_WAIT = 10**10, 10**9, 2**60
LOOSE = Fraction(1, 10**13)
fewer = settings(max_examples=40)
Exact = Fraction | int | None
"""None: there is nothing to measure."""


@dataclass(frozen=True)
class Job:
    arrive: int
    wait: int
    size: int
    runtime: int
    limit: int
    started: bool = True
    deadline_s: int = -1
    accepted: int = -1
    power_mw: int = -1

    @property
    def start(self) -> int:
        return self.arrive + self.wait

    @property
    def end(self) -> int:
        return self.start + self.runtime

    @property
    def response(self) -> int:
        return self.wait + self.runtime

    @property
    def area(self) -> int:
        return self.size * self.runtime


def upto(top: int, least: int = 0) -> st.SearchStrategy[int]:
    """Small numbers, numbers of any size, and those next to the largest."""
    near = st.integers(max(least, top - 3), top)
    return st.one_of(st.integers(least, min(least + 5, top)), st.integers(least, top), near)


def jobs_strategy(longest_wait: int = LONGEST_WAIT) -> st.SearchStrategy[list[Job]]:
    deadlines = st.one_of(st.just(-1), upto(SECONDS))
    job = st.builds(
        Job, upto(SECONDS), upto(longest_wait), upto(PROCESSORS, 1), upto(SECONDS), upto(SECONDS, 1),
        st.sampled_from([True, True, True, False]), deadlines, st.sampled_from([0, 1]),
        st.one_of(st.just(-1), upto(10**6)),
    )  # fmt: skip
    return st.lists(job, min_size=1, max_size=9).map(lambda some: sorted(some, key=lambda one: one.arrive))


def schedule_of(jobs: Sequence[Job], processors: int = PROCESSORS) -> Schedule:
    names = ("arrive", "start", "size", "runtime", "limit", "deadline_s", "accepted", "power_mw")
    column = {name: np.array([getattr(one, name) for one in jobs], np.int64) for name in names}
    arrive, accepted = column.pop("arrive"), column.pop("accepted")
    start = np.where([one.started for one in jobs], column.pop("start"), -1)
    work = Workload("caps", {"id": np.arange(len(jobs)), "submit": arrive, **column}, processors, Provenance("caps"))
    none = np.full(len(jobs), -1, np.int64)
    return Schedule(work, Cluster(processors), "caps", "limit", start, arrive, none, none, 0, accepted=accepted)


def agree(found: float, wanted: Exact, within: Fraction | int = 0, name: object = "") -> None:
    """Within 0: `found` is the float nearest to the fraction."""
    if wanted is None:
        assert isnan(found), name
    elif not within:
        assert found == (wanted if isinstance(found, int) else float(wanted)), name
    else:
        assert abs(Fraction(found) - wanted) <= abs(Fraction(wanted)) * within, name


def mean(values: Sequence[Fraction | int]) -> Exact:
    return Fraction(sum(values)) / len(values) if values else None


def ratio(over: Fraction | int, under: Fraction | int) -> Exact:
    return Fraction(over) / under if under else None


def percentile(values: Sequence[Fraction | int], p: int) -> Exact:
    if not values:
        return None
    ranked, at = sorted(values), Fraction((len(values) - 1) * p, 100)
    low = int(at)
    return ranked[low] + (ranked[min(low + 1, len(ranked) - 1)] - ranked[low]) * (at - low)


def slowdown(job: Job, bound: int) -> Fraction:
    return max(Fraction(1), Fraction(job.response, max(job.runtime, bound, 1)))


def pasf(jobs: Sequence[Job], level: int) -> Exact:
    over, under = (sum(j.size * (j.response**m - j.wait**m) for j in jobs) for m in (level + 2, level + 1))
    return ratio((level + 1) * over, (level + 2) * under)


def steps(jobs: Sequence[Job], cuts: Sequence[int] = ()) -> Iterator[tuple[int, int, list[Job], list[Job]]]:
    """From one event to the next: the instant, the seconds, which jobs run and which wait."""
    first, last = min(j.arrive for j in jobs), max(j.end for j in jobs)
    instants = {t for j in jobs for t in (j.arrive, j.start, j.end)} | {t for t in cuts if first < t < last}
    ordered = sorted(instants)
    for begin, end in pairwise(ordered):
        running = [j for j in jobs if j.start <= begin < j.end]
        yield begin, end - begin, running, [j for j in jobs if j.arrive <= begin < j.start]


def sizes(jobs: Sequence[Job]) -> int:
    return sum(j.size for j in jobs)


ROUNDED_ONCE = (
    "jobs", "jobs_counted", "jobs_unstarted", "af_s", "awf_s", "awq_s", "mean_wait_s", "max_wait_s", "utilization",
    "utilization_variance", "loss_of_capacity", "makespan_s", "mean_queue_jobs", "max_queue_jobs",
    "mean_queue_processors", "max_queue_processors", "regular_jobs", "regular_mean_wait_s", "regular_max_wait_s",
    "regular_at_once", "deadline_jobs", "deadline_at_once", "deadline_usage_above_80", "deadlines_late",
    "deadlines_refused", "deadlines_missed",
)  # fmt: skip


def slowly(jobs: Sequence[Job], processors: int) -> dict[str, Exact]:
    """All of `summarize`, but for the norms: those are not fractions."""
    ran = [j for j in jobs if j.started]
    areas = sum(j.area for j in ran)
    found: dict[str, Exact] = {
        "jobs": len(jobs), "jobs_counted": len(ran), "jobs_unstarted": len(jobs) - len(ran),
        "bsld": mean([slowdown(j, 10) for j in ran]), "slowdown": mean([slowdown(j, 0) for j in ran]),
        "af_s": mean([j.response for j in ran]), "awf_s": ratio(sum(j.area * j.response for j in ran), areas),
        "awq_s": ratio(sum(j.area * j.wait for j in ran), areas), "p2sf_s": pasf(ran, 2),
        **waits(ran),
    }  # fmt: skip
    parts = {"short_narrow": (True, True), "short_wide": (True, False), "long_narrow": (False, True)}
    for name, kind in {**parts, "long_wide": (False, False)}.items():
        some = [j for j in ran if (j.runtime <= 3600, j.size <= 8) == kind]
        inside = {"jobs": len(some), "bsld": mean([slowdown(j, 10) for j in some]), **waits(some)}
        found |= {f"{name}_{key}": value for key, value in inside.items()}
    found |= of_system(ran, processors)
    return found | (of_deadlines(ran) if any(j.deadline_s >= 0 for j in jobs) else {})


def waits(jobs: Sequence[Job]) -> dict[str, Exact]:
    found: dict[str, Exact] = {"mean_wait_s": mean([j.wait for j in jobs])}
    slow = [slowdown(j, 10) for j in jobs]
    for name, unit, values in (("wait", "_s", [j.wait for j in jobs]), ("bsld", "", slow)):
        found |= {f"{name}_p{p}{unit}": percentile(values, p) for p in (50, 90, 95, 99)}
        found[f"max_{name}{unit}"] = max(values, default=None)
    return found


def of_system(jobs: Sequence[Job], processors: int) -> dict[str, Exact]:
    span = max(j.end for j in jobs) - min(j.arrive for j in jobs) if jobs else 0
    held = [(seconds, sizes(running), waiting) for _, seconds, running, waiting in steps(jobs)] if span else []
    busy = ratio(sum(seconds * used for seconds, used, _ in held), span * processors)
    squares = ratio(sum(seconds * used * used for seconds, used, _ in held), span * processors**2)
    lost = sum(seconds * min(sizes(waiting), max(processors - used, 0)) for seconds, used, waiting in held)
    return {
        "utilization": busy,
        "utilization_variance": squares - busy**2 if busy is not None and squares is not None else None,
        "loss_of_capacity": ratio(lost, span * processors),
        "makespan_s": span if jobs else None,
        "mean_queue_jobs": ratio(sum(seconds * len(waiting) for seconds, _, waiting in held), span),
        "max_queue_jobs": max((len(waiting) for _, _, waiting in held), default=0) if jobs else None,
        "mean_queue_processors": ratio(sum(seconds * sizes(waiting) for seconds, _, waiting in held), span),
        "max_queue_processors": max((sizes(waiting) for _, _, waiting in held), default=0) if jobs else None,
    }


def of_deadlines(ran: Sequence[Job]) -> dict[str, Exact]:
    regular, driven = [j for j in ran if j.deadline_s < 0], [j for j in ran if j.deadline_s >= 0]
    stretch = {id(j): 1 + Fraction(j.wait, j.limit) for j in ran}
    usage = {id(j): Fraction(j.response, max(j.deadline_s, 1)) for j in driven}
    late = [j for j in driven if j.response > j.deadline_s]
    return {
        "regular_jobs": len(regular), "regular_mean_wait_s": mean([j.wait for j in regular]),
        "regular_max_wait_s": max((j.wait for j in regular), default=0),
        "regular_stretch": mean([stretch[id(j)] for j in regular]),
        "regular_max_stretch": max((stretch[id(j)] for j in regular), default=1),
        "regular_at_once": mean([int(j.wait == 0) for j in regular]),
        "stretch": mean(list(stretch.values())), "max_stretch": max(stretch.values(), default=1),
        "deadline_jobs": len(driven), "deadline_at_once": mean([int(j.wait == 0) for j in driven]),
        "deadline_usage": mean([usage[id(j)] for j in driven if j.wait]),
        "deadline_usage_above_80": mean([int(usage[id(j)] > Fraction(4, 5)) for j in driven]),
        "deadlines_late": len(late), "deadlines_refused": sum(j.accepted != 1 for j in driven),
        "deadlines_missed": sum(j.accepted == 1 for j in late),
    }  # fmt: skip


def full(n: int, size: int, runtime: int) -> list[Job]:
    """The same job n times at once."""
    return [Job(0, 0, size, runtime, runtime) for _ in range(n)]


@given(jobs_strategy(), st.sampled_from([6, PROCESSORS, PROCESSORS - 1]))
@example(full(2, PROCESSORS // 2, SECONDS), PROCESSORS)  # its variance of 0 was -0.99984
@example(full(1, PROCESSORS, SECONDS), PROCESSORS)  # its area of 10^19 was an error
@example([Job(0, SECONDS * i, PROCESSORS, SECONDS, SECONDS) for i in range(9)], PROCESSORS)
@example([Job(0, wait, 1, 1, 1) for wait in (2**53, 1, 1)] + [Job(0, 0, 1, 1, 1, deadline_s=1)], 6)  # 2^53 + 1 + 1
def test_all_of_summarize(jobs: list[Job], processors: int) -> None:
    found, wanted = metrics.summarize(schedule_of(jobs, processors)), slowly(jobs, processors)
    norms = {f"l{p}_response_s": (p, [j.response for j in jobs if j.started]) for p in (2, 3)}
    assert set(found) == set(wanted) | set(norms)
    for name, value in wanted.items():
        agree(found[name], value, 0 if name.endswith(ROUNDED_ONCE) else LOOSE, name)
    for name, (p, responses) in norms.items():
        if not responses:
            assert isnan(found[name])
        else:
            agree(float(Fraction(found[name]) ** p), sum(f**p for f in responses), 10 * LOOSE, name)


@fewer
@given(jobs_strategy(), st.sampled_from([6, PROCESSORS]), st.integers(1, 40))
@example(full(2, PROCESSORS // 2, SECONDS), PROCESSORS, 1)
@example([Job(0, 0, PROCESSORS, SECONDS, 1), Job(0, SECONDS, PROCESSORS - 1, SECONDS, 1)], PROCESSORS, 3)
def test_bins(jobs: list[Job], processors: int, bins: int) -> None:
    ran = [j for j in jobs if j.started]
    line = metrics.timeline(schedule_of(jobs, processors))
    assume(line.span_s)
    bin_s = max(1, line.span_s // bins)
    first, last = int(line.times[0]), int(line.times[-1])
    cuts = [*range(first, last, bin_s), last]
    used, queued = [0] * (len(cuts) - 1), [0] * (len(cuts) - 1)
    for begin, seconds, running, waiting in steps(ran, cuts):
        at = (begin - first) // bin_s
        used[at] += seconds * sizes(running)
        queued[at] += seconds * len(waiting)
    lengths = [b - a for a, b in pairwise(cuts)]
    share = [Fraction(area, processors * length) for area, length in zip(used, lengths, strict=True)]
    edges, found = metrics.utilization_by_bin(line, bin_s)
    assert edges.tolist() == cuts
    for one, wanted in zip(found.tolist(), share, strict=True):
        agree(one, wanted, LOOSE)
    for one, area, length in zip(curves.binned(line.times, line.queue_jobs, edges), queued, lengths, strict=True):
        agree(float(one), Fraction(area, length), LOOSE)
    middle = Fraction(sum(used), processors * line.span_s)
    variance = sum((one - middle) ** 2 * length for one, length in zip(share, lengths, strict=True)) / line.span_s
    agree(metrics.binned_variance(line, bin_s), variance)


@fewer
@given(jobs_strategy(), st.sampled_from([0, 1, 2, 5, 15, 40]), st.lists(upto(10**9), min_size=9, max_size=9))
def test_fairness_and_weights(jobs: list[Job], level: int, weights: list[int]) -> None:
    ran = [j for j in jobs if j.started]
    measured = metrics.outcomes(schedule_of(jobs))
    agree(metrics.pasf_s(measured, level), pasf(ran, level), LOOSE)
    by = weights[: len(ran)]
    wanted = ratio(sum(w * j.wait for w, j in zip(by, ran, strict=True)), sum(by))
    for factor in (1.0, 2.0**990):  # 10^9 x 2^60 x 2^990 is no float
        agree(metrics.weighted_wait_s(measured, np.array(by, np.float64) * factor), wanted, LOOSE)
    curve = metrics.wait_area_curve(measured)
    assert curve.area.tolist() == sorted({j.area for j in ran})
    for at, area in enumerate(curve.area.tolist()):
        below = [j for j in ran if j.area <= area]
        agree(curve.job_fraction[at], Fraction(len(below), len(ran)))
        agree(curve.area_fraction[at], ratio(sum(j.area for j in below), sum(j.area for j in ran)), LOOSE)
        agree(curve.wait_area[at], sum(j.size * j.wait for j in below), LOOSE)


@fewer
@given(jobs_strategy(), st.lists(upto(LONGEST_WAIT), min_size=9, max_size=9))
@example([Job(0, LONGEST_WAIT, 1, 1, 1)] * 9, [1] * 9)  # 2^63 s saved
def test_unfairness_and_what_a_deadline_saves(jobs: list[Job], fair: list[int]) -> None:
    fair = [instant - 1 for instant in fair[: len(jobs)]]  # -1: not known
    late = [max(0, j.start - at) for j, at in zip(jobs, fair, strict=True) if j.started and at >= 0]
    found = metrics.unfairness(schedule_of(jobs), np.array(fair, np.int64))
    assert found["fair_start_jobs"] == len(late)
    agree(found["fair_start_miss_total_s"], sum(late) if late else None)
    agree(found["fair_start_miss_mean_s"], mean(late))
    agree(found["fair_start_miss_max_s"], max(late, default=None))
    agree(found["fair_start_missed_share"], mean([int(one > 0) for one in late]))
    jobs = [replace(j, started=True) for j in jobs]
    other = [replace(j, wait=abs(at)) for j, at in zip(jobs, fair, strict=True)]
    less = [(a.wait - b.wait, a.size) for a, b in zip(jobs, other, strict=True)][1:]
    wanted = (sum(s for s, _ in less), sum(s * size for s, size in less))
    assert saved(schedule_of(jobs), schedule_of(other), 0) == wanted


@fewer
@given(jobs_strategy(), st.lists(st.integers(0, 2), min_size=9, max_size=9))
def test_groups(jobs: list[Job], group: list[int]) -> None:
    jobs = [replace(j, started=True) for j in jobs]
    found = by_group(metrics.outcomes(schedule_of(jobs)), np.array(group[: len(jobs)], np.int64), 3)
    for number in range(3):
        some = [j for j, own in zip(jobs, group, strict=False) if own == number]
        wanted = slowly(some, 6) if some else dict.fromkeys(found)
        agree(found["jobs"][number], len(some))
        for name in ("bsld", "af_s", "awf_s", "p2sf_s", "mean_wait_s"):
            agree(found[name][number], wanted[name], LOOSE, name)


SAID = st.tuples(upto(SECONDS, 1), upto(SECONDS, 1))


@given(st.lists(SAID, min_size=1, max_size=9), st.sampled_from([0.5, 0.8, 0.95, 0.99]))
@example([(SECONDS - 1, SECONDS - 1), (SECONDS, SECONDS - 1), (SECONDS, SECONDS)], 0.5)  # nearly alike: nothing cancels
@example([(1, SECONDS - 1)] * 7, 0.5)  # all alike: there is nothing to explain
def test_estimates(pairs: list[tuple[int, int]], level: float) -> None:
    said, runtime = (np.array(column, np.int64) for column in zip(*pairs, strict=True))
    off, middle = [d - s for s, d in pairs], mean([d for _, d in pairs])
    assert middle is not None
    missed = ratio(sum(e * e for e in off), sum((d - middle) ** 2 for _, d in pairs))
    agree(estimates.r2(said, runtime), None if missed is None else 1 - missed)
    agree(estimates.mean_error_s(said, runtime), mean([abs(e) for e in off]))
    agree(estimates.outlived(said, runtime), mean([int(e > 0) for e in off]))
    losses = [Fraction(level) * e if e > 0 else (Fraction(level) - 1) * e for e in off]
    agree(estimates.pinball_s(said, runtime, level), mean(losses), LOOSE)


def test_many_run_times_that_are_all_alike_have_no_r2() -> None:
    """Their sum is no float, so a mean taken as one is not their value: R2 was -10^12, and not nan."""
    runtime = np.full(2**20 + 3, 2**33 - 1)
    assert isnan(estimates.r2(runtime - 1, runtime))


hours = st.builds(
    lambda values, begin, step: Hours(np.array(values, np.int64), begin, step),
    st.lists(st.integers(-(10**15), 10**15), min_size=1, max_size=4), st.integers(-SECONDS, SECONDS),
    st.integers(10**9, SECONDS),
)  # fmt: skip


@fewer
@given(
    jobs_strategy(SECONDS),
    st.sampled_from([6, PROCESSORS]),
    upto(3 * 10**6),
    upto(3 * 10**6),
    hours,
    hours,
    upto(10**12),
)
@example(
    full(9, PROCESSORS, SECONDS), 6, 3 * 10**6, 0, Hours(np.array([1])), Hours(np.array([1])), 0
)  # 64 bits wrapped
def test_energy(
    jobs: list[Job], processors: int, busy: int, idle: int, price: Hours, carbon: Hours, tariff: int
) -> None:
    table = np.array([[1000, 1234], [3000, 2999]], np.int64)
    site = Site("caps", busy, idle, cooling=Cooling("t", table, 20), price=price, carbon=carbon, tariff=tariff)
    ran = [j for j in jobs if j.started]
    assume(ran)
    cuts = [t for hour in (price, carbon) for t in range(hour.begin % hour.step_s, 3 * SECONDS, hour.step_s)]
    it_uj = jobs_uj = cost = grams = area = peak = most = total = 0
    for begin, seconds, running, _ in steps(ran, [] if price.constant and carbon.constant else cuts):
        used = sizes(running)
        jobs_mw = sum(j.size * (j.power_mw if j.power_mw >= 0 else busy) for j in running)
        it_mw = jobs_mw + max(processors - used, 0) * idle
        uw = it_mw * int(table[min((it_mw + 500 * STEP_W) // (1000 * STEP_W), 1), 0])
        at = np.array([begin])
        it_uj, jobs_uj, total = it_uj + ONE * it_mw * seconds, jobs_uj + ONE * jobs_mw * seconds, total + uw * seconds
        cost, grams = cost + uw * seconds * int(price.at(at)[0]), grams + uw * seconds * int(carbon.at(at)[0])
        area, peak, most = area + used * seconds, max(peak, uw), max(most, used)
    schedule = schedule_of(jobs, processors)
    draws = max(idle, *(j.power_mw if j.power_mw >= 0 else busy for j in jobs))
    if max(processors, most) * draws * MOST_PUE >= 2**63:
        with pytest.raises(SettingError, match="exactly"):
            of_energy(schedule, site)
        return
    found = energy(powers(schedule, site), site)
    assert (found.jobs_uj, found.idle_uj, found.total_uj) == (jobs_uj, it_uj - jobs_uj, total)
    assert (found.cost, found.carbon, found.processor_s, found.peak_uw) == (cost, grams, area, peak)
    shown, revenue = found.metrics(), Fraction(area * tariff, 3600 * MILLION)
    agree(shown["pue"], ratio(total, it_uj))
    agree(shown["energy_cost"], Fraction(cost, UJ_PER_MWH * MILLION))
    agree(shown["profit"], revenue - Fraction(cost, UJ_PER_MWH * MILLION))


def test_more_hours_than_can_be_added_up_are_refused() -> None:
    site = Site("caps", 1, price=Hours(np.array([1, 2])))
    with pytest.raises(SettingError, match=f"more than {MOST_STEPS:,} steps of 3600 s"):
        of_energy(schedule_of([Job(0, LONGEST_WAIT, 1, 1, 1)]), site)


@st.composite
def on_nodes(draw: st.DrawFn) -> tuple[Schedule, list[tuple[Job, list[int], list[int], bool]], list[list[int]]]:
    """A schedule on nodes; its jobs, each with its nodes, what a unit takes, and whether that is all; the nodes."""
    kinds = tuple(
        NodeKind(f"k{i}", draw(st.integers(1, 2)), (draw(upto(10**6)), draw(upto(10**9)), draw(st.integers(0, 62))))
        for i in range(draw(st.integers(1, 2)))
    )
    kinds = (NodeKind("first", 1, (PROCESSORS // 2, 10**9, 62)), *kinds)
    cluster = by_node(("cores", "memory", "gpus"), kinds, shared="gpus")
    has = [[c, m, 1000 * g] for kind in kinds for c, m, g in [kind.capacity] * kind.count]
    jobs = draw(jobs_strategy())
    nodes = [draw(st.lists(st.integers(0, len(has) - 1), min_size=1, max_size=3)) for _ in jobs]
    need = [[draw(upto(10**9)) for _ in range(2)] + [draw(st.integers(0, 62))] for _ in jobs]
    share, whole = [draw(st.integers(1, 1000)) for _ in jobs], [draw(st.booleans()) for _ in jobs]
    made = schedule_of(jobs, cluster.processors)
    columns = {"units": [len(one) for one in nodes], "gpu_share": share, "exclusive": whole}
    columns |= {f"unit_{name}": [row[r] for row in need] for r, name in enumerate(cluster.resources)}
    work = replace(made.workload, columns={**made.workload.columns, **{k: np.array(v) for k, v in columns.items()}})
    first, node = np.cumsum([0, *map(len, nodes)]), np.concatenate([np.array(one) for one in nodes])
    placement = Placement(first, node, np.zeros(len(node), np.int64))
    takes = [[c, m, g * part] for (c, m, g), part in zip(need, share, strict=True)]
    return (
        replace(made, workload=work, cluster=cluster, placement=placement),
        list(zip(jobs, nodes, takes, whole, strict=True)),
        has,
    )


@fewer
@given(on_nodes())
def test_nodes(case: Any) -> None:
    schedule, jobs, has = case
    ran = [one for one in jobs if one[0].started]
    found = of_nodes(schedule)
    assume(ran)
    used, stranded, waited, span = [0] * 3, [0] * 3, 0, 0
    for _, seconds, running, waiting in steps([job for job, *_ in ran]):
        free = [list(row) for row in has]
        span, waited = span + seconds, waited + (seconds if waiting else 0)
        for job, nodes, takes, whole in ran:
            for node in nodes if any(job is one for one in running) else ():
                for r in range(3):
                    taken = has[node][r] if whole else takes[r]
                    free[node][r] -= taken
                    used[r] += taken * seconds
        for row in free:
            for r in range(3):
                stranded[r] += max(row[r], 0) * seconds if waiting and row[0] <= 0 else 0
    for r, name in enumerate(schedule.cluster.resources):
        total = sum(row[r] for row in has)
        agree(found[f"utilization_{name}"], ratio(used[r], total * span), name=name)
        if r:
            agree(found[f"stranded_{name}"], ratio(stranded[r], total * waited), name=name)


LARGE = st.integers(0, 2**63 - 1)


@given(st.lists(st.tuples(LARGE, LARGE, LARGE), max_size=20), st.sampled_from([1, 2**20, 2**40]))
def test_products_of_any_size(rows: list[tuple[int, int, int]], part: int) -> None:
    a, b, c = (np.array([row[i] // part for row in rows], np.int64) for i in range(3))
    areas = products(a, b)
    exact = [x * y for x, y in zip(a.tolist(), b.tolist(), strict=True)]
    assert areas.tolist() == exact
    assert exact_sum(areas) == sum(exact)
    assert exact_dot(areas, c) == exact_dot(c, areas) == sum(x * y for x, y in zip(exact, c.tolist(), strict=True))
    agree(exact_mean(areas), mean(exact))
    total = 0
    for one, got in zip(exact, running_sum(areas), strict=True):
        total += one
        agree(float(got), total, Fraction(1, 2**52))


def test_running_sums_of_large_products_do_not_add_up_roundings() -> None:
    size, runtime = 999_999_937, 9_999_999_967
    for count, got in enumerate(running_sum(products(np.full(1000, size), np.full(1000, runtime))), 1):
        agree(float(got), count * size * runtime)


def changed(jobs: Sequence[Job], **rules: Callable[[int], int]) -> list[Job]:
    values: list[dict[str, Any]] = [{name: rule(getattr(j, name)) for name, rule in rules.items()} for j in jobs]
    return [replace(j, **new) for j, new in zip(jobs, values, strict=True)]


@fewer
@given(jobs_strategy(2**55), st.integers(0, SECONDS))
def test_a_later_clock_changes_nothing(jobs: list[Job], by: int) -> None:
    later = changed(jobs, arrive=lambda t: t + by)
    np.testing.assert_equal(metrics.summarize(schedule_of(later)), metrics.summarize(schedule_of(jobs)))


@fewer
@given(jobs_strategy(2**55), st.integers(0, 5))
def test_longer_seconds_scale_what_is_in_seconds(jobs: list[Job], bits: int) -> None:
    """By a power of two, so that floats scale exactly."""
    jobs = [replace(j, deadline_s=-1) for j in jobs]
    k = 2**bits
    names = ("arrive", "wait", "runtime", "limit")
    longer = schedule_of(changed(jobs, **dict.fromkeys(names, lambda t: k * t)))
    base = metrics.summarize(schedule_of(jobs), bound_s=10)
    found = metrics.summarize(longer, bound_s=10 * k, short_s=3600 * k)
    scaled = {name: value * k if name.endswith("_s") else value for name, value in base.items()}
    if any(j.runtime == 0 for j in jobs):  # a run time of 0 s counts as 1 s, however long a second is
        del found["slowdown"], scaled["slowdown"]
    np.testing.assert_equal(found, scaled)


@fewer
@given(jobs_strategy(), st.integers(0, 5))
def test_smaller_processors_change_only_the_demand(jobs: list[Job], bits: int) -> None:
    k = 2**bits
    jobs = changed(jobs, size=lambda size: 1 + size // 64)
    base = metrics.summarize(schedule_of(jobs, PROCESSORS))
    found = metrics.summarize(schedule_of(changed(jobs, size=lambda size: size * k), PROCESSORS * k), narrow=8 * k)
    scaled = {name: value * k if name.endswith("queue_processors") else value for name, value in base.items()}
    np.testing.assert_equal(found, scaled)
