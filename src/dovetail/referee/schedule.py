"""Is a schedule valid? Starts, arrivals, capacity, promises, deadlines."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.cluster import POWER
from dovetail.model.requests import Requests, fit_idle, requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.referee.nodes import Units, check_outages, check_units, first_of_each
from dovetail.referee.violation import Flags, RefereeError, Violation, broken, overfull


def assert_valid(schedule: Schedule, *, promises: bool = False, expect_all_started: bool = True) -> None:
    """Raise RefereeError unless the schedule keeps all rules of `check_schedule`."""
    found = check_schedule(schedule, promises=promises, expect_all_started=expect_all_started)
    if found:
        raise RefereeError(found)


def check_schedule(schedule: Schedule, *, promises: bool = False, expect_all_started: bool = True) -> list[Violation]:
    """All rules that the schedule breaks, in plain words; empty for a valid one.

    Ask for `promises` where they must hold: estimates are upper bounds, and the policy protects whom it
    promises (conservative and deadline-based backfilling; EASY in FCFS order). Accepted deadlines are promises.
    """
    n = len(schedule.workload)
    for column in ("start", "arrive", "promised_first", "promised_last"):
        have = len(getattr(schedule, column))
        if have != n:
            return [Violation("one start per job", -1, -1, f"{have} values of {column!r} for {n} jobs")]
    cluster = schedule.cluster
    if cluster.kinds:
        asked = requests_of(schedule.workload, cluster)
        fits, capacity = fit_idle(cluster, asked), _nodes(schedule, asked)
    else:
        fits, capacity = schedule.workload.size <= cluster.processors, _capacity(schedule)
    takes = cluster.takes(schedule.workload)
    if takes.shape[1]:
        fits = fits & (takes <= np.array(list(cluster.counted.values()))).all(axis=1)
        capacity = chain(capacity, _counted(schedule, takes))
    found = [*_starts(schedule, fits, expect_all_started), *_arrivals(schedule), *capacity]
    if promises:
        found.extend(_promises(schedule))
        found.extend(_deadlines(schedule))
    return found


def _starts(schedule: Schedule, fits: Flags, expect_all_started: bool) -> Iterator[Violation]:
    """Which jobs must start, which must not, and for how long. `fits`: on the idle cluster."""
    jobs, start, machine = schedule.workload, schedule.start, schedule.cluster.processors
    started = start >= 0
    yield from broken("start", start < -1, start, "start {start} is no time and not -1 (never)", start=start)
    leaves = jobs.leaves
    leaves[[one.job for one in schedule.lost if 0 <= one.job < len(jobs)]] = -1  # who has run stays
    if expect_all_started:
        words = "never started, though its {size} processors fit"
        stays = (start == -1) & fits & (leaves < 0)
        yield from broken("every job starts", stays, schedule.arrive, words, size=jobs.size)
    words = "started at {start}, and had left the queue at {leaves}"
    gone = started & (leaves >= 0) & (start >= leaves)
    yield from broken("left the queue", gone, start, words, start=start, leaves=leaves)
    words = f"started at {{start}} with {{size}} processors on a cluster of {machine}"
    yield from broken("jobs fit the cluster", started & ~fits, start, words, start=start, size=jobs.size)
    words = "started with {size} processors"
    yield from broken("size", started & (jobs.size < 0), start, words, size=jobs.size)
    words = "ran for {runtime} s"
    yield from broken("run time", started & (jobs.runtime < 0), start, words, runtime=jobs.runtime)


def _arrivals(schedule: Schedule) -> Iterator[Violation]:
    """No start before arrival; arrival is the submit, or end of the job it followed plus the pause."""
    start, arrive = schedule.start, schedule.arrive
    submit = schedule.workload.submit + schedule.workload.held_s
    started = start >= 0
    words = "started at {start}, before its arrival at {arrive}"
    early = started & (start < arrive)
    yield from broken("arrival", early, start, words, start=start, arrive=arrive)
    words = "arrived at {arrive}, neither at its submit ({submit}) nor held back by the job that it followed"
    known = started | (arrive >= 0)
    followed = _feedback_arrival(schedule)
    wrong = known & (arrive != submit) & ((followed < 0) | (arrive != followed))
    yield from broken("submit", wrong, arrive, words, arrive=arrive, submit=submit)


def _feedback_arrival(schedule: Schedule) -> Ints:
    """End of the job that each one followed, plus the pause after it; -1 where it followed none."""
    jobs: Workload = schedule.workload
    expected = np.full(len(jobs), -1, np.int64)
    if "after" not in jobs:
        return expected
    position = {job_id: j for j, job_id in enumerate(jobs["id"].tolist())}
    start, end = schedule.start.tolist(), schedule.end.tolist()
    think, held_s = np.maximum(jobs.get("think_s"), 0), jobs.held_s
    for j, job_id in enumerate(jobs["after"].tolist()):
        before = position.get(job_id, -1)
        if before >= 0 and start[before] >= 0:
            expected[j] = end[before] + think[j] + held_s[j]
    return expected


def _capacity(schedule: Schedule) -> Iterator[Violation]:
    """Never more processors in use than there are."""
    jobs, machine = schedule.workload, schedule.cluster.processors
    ran = np.flatnonzero((schedule.start >= 0) & (jobs.runtime > 0))
    begin, end, size = schedule.start[ran], schedule.end[ran], jobs.size[ran]
    yield from overfull(ran, begin, end, size, machine, "started")


def _counted(schedule: Schedule, takes: Ints) -> Iterator[Violation]:
    """Never more taken than there is of what is counted for all jobs together: power, licences. Runs that a failure
    ended count too."""
    ran = np.flatnonzero((schedule.start >= 0) & (schedule.workload.runtime > 0))
    lost = np.array([(one.job, one.start, one.end) for one in schedule.lost], np.int64).reshape(-1, 3)
    jobs, begin, end = np.vstack([np.column_stack([ran, schedule.start[ran], schedule.end[ran]]), lost]).T
    for k, (what, room) in enumerate(schedule.cluster.counted.items()):
        rule, unit = ("power cap", "mW") if what == POWER else ("licences", what)
        yield from overfull(jobs, begin, end, takes[jobs, k], room, "started", rule, unit)


def _nodes(schedule: Schedule, asked: Requests) -> Iterator[Violation]:
    """Every unit of a job that started is on a node, and every node has room for those that are on it."""
    cluster, placement, started = schedule.cluster, schedule.placement, schedule.start >= 0
    rule, count = "one node per unit", int(asked.units.sum())
    if placement is None:
        yield Violation(
            rule, -1, -1, f"the cluster has {cluster.nodes} nodes, and the schedule does not say which job has which"
        )
        return
    if (asked.units < 0).any():
        yield from broken("units", asked.units < 0, schedule.arrive, "it has {units} units", units=asked.units)
        return
    if not np.array_equal(placement.first, asked.first) or len(placement.node) != count:
        yield Violation(
            rule, -1, -1, f"{len(placement.node)} nodes, in other places than the {count} units of the jobs"
        )
        return
    devices = placement.devices if len(placement.devices) or cluster.shared else np.zeros(count, np.int64)
    if len(devices) != count:
        yield Violation("devices", -1, -1, f"{len(devices)} sets of devices for {count} units")
        return
    job = np.repeat(np.arange(len(asked.units)), asked.units)
    units = Units(job, placement.node, devices, schedule.start[job], schedule.end[job])
    there = (placement.node >= 0) & (placement.node < cluster.nodes)
    for row in first_of_each(units, started[job] & ~there):
        at, node = int(units.begin[row]), int(units.node[row])
        yield Violation(rule, int(job[row]), at, f"started at {at} on node {node}; nodes are 0 to {cluster.nodes - 1}")
    for row in first_of_each(units, ~started[job] & (placement.node != -1)):
        yield Violation(rule, int(job[row]), -1, f"never started, and has node {units.node[row]}")
    for one in schedule.lost:
        fits = 0 <= one.job < len(started) and len(one.nodes) == len(one.devices) == asked.units[one.job]
        if not fits or min(one.nodes) < 0 or max(one.nodes) >= cluster.nodes:
            yield Violation("lost run", one.job, one.end, f"was lost on nodes {list(one.nodes)[:9]}: it had no such")
            return
    ran = _with_lost(units.where(started[job] & there), schedule)
    yield from check_units(cluster, asked, ran, "started")
    yield from _runs_again(schedule)
    if cluster.outages:
        said = schedule.said if len(schedule.said) else schedule.workload.limit
        length = said[ran.job]
        of_lost = [np.full(len(one.nodes), one.estimate) for one in schedule.lost]
        length[len(length) - sum(map(len, of_lost)) :] = np.concatenate([*of_lost, length[:0]])
        yield from check_outages(cluster, asked, replace(ran, end=ran.begin + length), "started")


def _with_lost(units: Units, schedule: Schedule) -> Units:
    """The units, and those of runs that a failure ended."""
    rows = [units]
    for one in schedule.lost:
        job, start, end = (np.full(len(one.nodes), value) for value in (one.job, one.start, one.end))
        rows.append(Units(job, one.nodes, one.devices, start, end))
    columns = ("job", "node", "devices", "begin", "end")
    return Units(*(np.concatenate([getattr(one, column) for one in rows]) for column in columns))


def _runs_again(schedule: Schedule) -> Iterator[Violation]:
    """A run is lost when one of its nodes fails and not before, and the next one of the job begins later."""
    failed = {(node, one.begin) for one in schedule.cluster.outages if one.fails for node in one.nodes}
    ready = dict[int, int]()
    for one in schedule.lost:
        if not any((node, one.end) in failed for node in one.nodes.tolist()):
            yield Violation("lost run", one.job, one.end, f"was lost at {one.end}, and no node of it failed then")
        if one.start < max(ready.get(one.job, 0), int(schedule.arrive[one.job])) or one.end <= one.start:
            yield Violation("lost run", one.job, one.start, f"ran from {one.start} to {one.end}, and not before that")
        ready[one.job] = one.end
    for job, at in ready.items():
        if 0 <= schedule.start[job] < at:
            start = int(schedule.start[job])
            yield Violation("lost run", job, start, f"started at {start}, and was lost at {at}")
    yield from _survivors(schedule, failed)


def _survivors(schedule: Schedule, failed: set[tuple[int, int]]) -> Iterator[Violation]:
    """Nobody runs on through a failure of its node."""
    placement = schedule.placement
    if not failed or placement is None:
        return
    job = np.repeat(np.arange(len(schedule.start)), np.diff(placement.first))
    in_turn = np.argsort(placement.node, kind="stable")
    sorted_nodes = placement.node[in_turn]
    for node, at in sorted(failed):
        there = job[in_turn[slice(*np.searchsorted(sorted_nodes, [node, node + 1]))]]
        for one in there[(schedule.start[there] < at) & (schedule.end[there] > at)].tolist():
            yield Violation("lost run", one, at, f"runs on node {node}, which fails at {at}, and goes on")


def _promises(schedule: Schedule) -> Iterator[Violation]:
    """No start later than first promised, no promise before arrival, and the last promise is the start."""
    start, first, last = schedule.start, schedule.promised_first, schedule.promised_last
    promised = (first >= 0) & (start >= 0)
    words = "started at {start}, later than its first promise {first}"
    yield from broken("promise kept", promised & (start > first), start, words, start=start, first=first)
    words = "started at {start}, but its last promise was {last}"
    yield from broken("last promise", promised & (start != last), start, words, start=start, last=last)
    words = "was promised {first}, before its arrival at {arrive}"
    early = (first >= 0) & (first < schedule.arrive)
    yield from broken("promise after arrival", early, first, words, first=first, arrive=schedule.arrive)


def _deadlines(schedule: Schedule) -> Iterator[Violation]:
    """A job whose deadline was accepted has ended by it; only one that has a deadline can be accepted or refused."""
    accepted, due = schedule.accepted, schedule.deadline_at
    if not len(accepted):
        return
    words = "was to end by {due}, which was accepted, and ended at {end}"
    missed = (accepted == 1) & (schedule.start >= 0) & (due >= 0) & (schedule.end > due)
    yield from broken("deadline kept", missed, due, words, due=due, end=schedule.end)
    words = "its deadline was answered with {accepted}, but it has none"
    unasked = (accepted >= 0) & (due < 0)
    yield from broken("deadline asked for", unasked, schedule.arrive, words, accepted=accepted)
    words = "its deadline was neither accepted nor refused"
    unanswered = (accepted < 0) & (due >= 0) & (schedule.start >= 0)
    yield from broken("deadline answered", unanswered, due, words)
