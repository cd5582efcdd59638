"""Can a plan be carried out at its instant, as far as estimates tell?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.requests import Requests
from dovetail.model.state import State
from dovetail.referee.nodes import Units, check_outages, check_units, has_of
from dovetail.referee.violation import Violation, overfull

Held = Mapping[int, Sequence[int]]
"""The node, or the devices, of each unit of some jobs."""


def check_plan(state: State, plan: Plan, *, deadlines: bool = False) -> list[Violation]:
    """All rules that a plan breaks at its instant, by estimates: empty for a plan that can be carried out.

    Starts are waiting jobs, each once; promised starts lie at or after now; running jobs until their expected
    ends, starts and promises together never exceed the capacity (what is free plus what runs). Where nodes are known,
    starts have nodes with room for them beside what runs, and so have promises whose nodes the plan names; the others
    are within all cores. Jobs with an accepted
    deadline count with their expected starts. Ask for `deadlines` where estimates are upper bounds: those that
    were accepted stay so, and are kept.
    """
    found: list[Violation] = []
    waiting = set(state.waiting.tolist())
    at: dict[int, int] = {}
    for job in plan.starts:
        if job not in waiting:
            found.append(Violation("starts wait", job, state.now, "is to start but does not wait"))
        elif job in at:
            found.append(Violation("one start per job", job, state.now, "is to start twice"))
        else:
            at[job] = state.now
    for job, promise in plan.promised.items():
        if job not in waiting:
            found.append(Violation("promises wait", job, promise, "has a promise but does not wait"))
        elif promise < state.now:
            words = f"is promised {promise}, which is before now ({state.now})"
            found.append(Violation("promise not past", job, promise, words))
        elif at.setdefault(job, plan.expected.get(job, promise)) > promise:
            words = f"is promised {promise} and planned to start at {at[job]}"
            found.append(Violation("promise planned", job, promise, words))
    for job, due in plan.deadlines.items():
        if job not in waiting:
            found.append(Violation("deadlines wait", job, due, "is given a deadline but does not wait"))
        elif due >= 0 and job in plan.expected:
            at.setdefault(job, plan.expected[job])
    if deadlines:
        found.extend(_plan_deadlines(state, plan, at))
    cluster, asked = state.cluster, state.requests
    if state.counted:
        found.extend(_plan_counted(state, at))
    if cluster is None or asked is None or not cluster.kinds:
        return [*found, *_plan_capacity(state, at)]
    starts = set(plan.starts)
    nodes = {job: plan.nodes.get(job, ()) for job in at if job in starts or job in plan.nodes}
    found.extend(_plan_nodes(state, cluster, asked, nodes, plan.devices, at))
    return [*found, *_plan_cores(state, cluster, asked, nodes, at)]


def _plan_deadlines(state: State, plan: Plan, at: dict[int, int]) -> Iterator[Violation]:
    """Whom the standing plan gave a deadline still has it, and every accepted one is kept by the start in `at`."""
    for job in state.waiting.tolist():
        stood, due = state.standing.deadlines.get(job, -1), plan.deadlines.get(job, -1)
        if stood >= 0 and due != stood:
            yield Violation("deadline stays", job, stood, f"was to end by {stood}, and now by {due}")
        if due >= 0 and job not in at:
            yield Violation("deadline planned", job, due, f"is to end by {due}, but the plan has no start for it")
        elif due >= 0 and at[job] + state.estimate[job] > due:
            end = at[job] + state.estimate[job]
            yield Violation("deadline kept", job, due, f"is to end by {due}, but would end at {end}")


def _in_time(state: State, at: dict[int, int]) -> tuple[Ints, Ints, Ints]:
    """The running jobs and everything in `at` (job to start): begins and ends, by estimates."""
    running = state.running.astype(np.int64)
    planned = np.fromiter(at, np.int64, len(at))
    begin = np.concatenate([np.full(len(running), state.now, np.int64), np.fromiter(at.values(), np.int64, len(at))])
    running_end = [state.expected_end(j) for j in running.tolist()]
    end = np.concatenate([np.array(running_end, np.int64), begin[len(running) :] + state.estimate[planned]])
    return np.concatenate([running, planned]), begin, end


def _plan_capacity(state: State, at: dict[int, int]) -> Iterator[Violation]:
    """What runs and what is planned, within the capacity."""
    jobs, begin, end = _in_time(state, at)
    capacity = state.free + int(state.size[state.running].sum())
    yield from overfull(jobs, begin, end, state.size[jobs], capacity, "is planned")


def _plan_counted(state: State, at: dict[int, int]) -> Iterator[Violation]:
    """The same for what is counted for all jobs together: power, licences."""
    jobs, begin, end = _in_time(state, at)
    takes = state.takes(jobs)
    for k, (what, room) in enumerate(state.counted.items()):
        yield from overfull(jobs, begin, end, takes[:, k], room, "is planned", what, what)


def _plan_nodes(
    state: State, cluster: Cluster, asked: Requests, nodes: Held, devices_of: Held, at: Mapping[int, int]
) -> Iterator[Violation]:
    """Every unit that starts has a node, and every node has room for what runs on it and what is to start on it."""
    held: list[tuple[int, Ints, Ints, int, int]] = []
    for job in state.running.tolist():
        node = np.asarray(state.nodes[job], np.int64)
        devices = np.asarray(state.devices.get(job, np.zeros(len(node))), np.int64)
        held.append((job, node, devices, state.now, state.expected_end(job)))
    for job, given in nodes.items():
        node, units = np.asarray(given, np.int64), int(asked.units[job])
        devices = np.asarray(devices_of.get(job, np.zeros(units)), np.int64)
        if len(node) != units or ((node < 0) | (node >= cluster.nodes)).any():
            words = f"is to start {units} units on nodes {node.tolist()}; nodes are 0 to {cluster.nodes - 1}"
            yield Violation("one node per unit", job, state.now, words)
        elif len(devices) != units:
            yield Violation("devices", job, state.now, f"is given {len(devices)} sets of devices for {units} units")
        else:
            held.append((job, node, devices, at[job], at[job] + int(state.estimate[job])))
    if held:
        counts = [len(node) for _, node, *_ in held]
        rows = Units(
            job=np.repeat([job for job, *_ in held], counts),
            node=np.concatenate([node for _, node, *_ in held]),
            devices=np.concatenate([devices for _, _, devices, *_ in held]),
            begin=np.repeat([begin for *_, begin, _ in held], counts),
            end=np.repeat([end for *_, end in held], counts),
        )
        yield from check_units(cluster, asked, rows, "is planned")
        starts = rows.where(~np.isin(rows.job, state.running))
        known = replace(cluster, outages=cluster.known(state.now))
        yield from check_outages(known, asked, starts, "is planned")


def _plan_cores(
    state: State, cluster: Cluster, asked: Requests, nodes: Held, at: dict[int, int]
) -> Iterator[Violation]:
    """Those of `at` that do not start now, by estimates, within all cores of the cluster beside what runs and starts.

    A plan does not say on which nodes they will be. An exclusive unit whose node is known holds all cores of it; of
    one that is only promised no more is sure than what it needs.
    """
    has = has_of(cluster)[:, 0]
    rows: list[tuple[int, int, int, int]] = []
    for job in [*state.running.tolist(), *at]:
        running = state.start[job] >= 0
        known = [int(x) for x in (state.nodes[job] if running else nodes.get(job, ())) if 0 <= x < cluster.nodes]
        begin = state.now if running else at[job]
        end = state.expected_end(job) if running else begin + int(state.estimate[job])
        alone = bool(asked.exclusive[job]) and len(known) > 0
        rows.append((job, begin, end, int(has[known].sum() if alone else asked.units[job] * asked.need[job, 0])))
    jobs, begins, ends, cores = np.array(rows, np.int64).reshape(-1, 4).T
    for violation in overfull(jobs, begins, ends, cores, cluster.processors, "is planned"):
        if violation.job not in nodes:
            yield violation
