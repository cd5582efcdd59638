"""Small, dense, random clusters of nodes and jobs that ask for every kind of thing there is to ask for."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from dovetail.model.cluster import Cluster, NodeKind, Outage, PowerCap, by_node
from dovetail.model.requests import Placement
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from tests.slow.nodes import NodeJob, SlowNodes, TypicalJob, machine_of
from tests.slow.policies import SlowResult
from tests.slow.workloads import drawn_licences, schedule_with, with_comings

FEATURES = ("", "thin", "fat", "thin|fat", "fat|new", "new")
"""What jobs may ask for, by number; -1: nothing."""

MOST_UNITS = 20


@dataclass(frozen=True)
class NodesCase:
    """The same jobs and nodes twice: for the slow program, and as the model has them."""

    jobs: list[NodeJob]
    machine: SlowNodes
    workload: Workload
    cluster: Cluster


RESERVATIONS = ("", "ours", "theirs")
"""Reservations of jobs, by number; -1: none."""


def with_counted(case: NodesCase, rng: random.Random) -> NodesCase:
    """The same case under a power cap, or with licences, or both, with room for each job alone."""
    which = rng.randrange(3)
    case = with_power(case, rng) if which < 2 else case
    return with_licences(case, rng) if which > 0 else case


def with_licences(case: NodesCase, rng: random.Random) -> NodesCase:
    """The same case with licences of one or two kinds."""
    columns, licences = drawn_licences(rng, len(case.jobs))
    workload = replace(case.workload, columns={**case.workload.columns, **columns})
    return _taking(case, workload, replace(case.cluster, licences=licences))


def _taking(case: NodesCase, workload: Workload, cluster: Cluster) -> NodesCase:
    takes = cluster.takes(workload).tolist()
    jobs = [replace(job, takes=tuple(taken)) for job, taken in zip(case.jobs, takes, strict=True)]
    return NodesCase(jobs, replace(case.machine, counted=tuple(cluster.counted.values())), workload, cluster)


def with_power(case: NodesCase, rng: random.Random) -> NodesCase:
    """The same case under a power cap that leaves room for each job alone."""
    power = np.array([rng.choice((-1, 0, 5, 9, 20)) for _ in case.jobs], np.int64)
    workload = replace(case.workload, columns={**case.workload.columns, "power_mw": power})
    cap = PowerCap(0, rng.choice((0, 3)), rng.randint(4, 9))
    draws = cap.draws(workload)
    most = int(draws.max(initial=0))
    room = most + rng.choice((0, 1, most // 2, 3 * most))
    cluster = replace(case.cluster, cap=replace(cap, mw=room + case.cluster.processors * cap.idle_mw))
    return _taking(case, workload, cluster)


def coming_and_going(case: NodesCase, rng: random.Random) -> NodesCase:
    """The same case in which some jobs may not start at once, or leave the queue."""
    jobs = with_comings(rng, case.jobs, leave=True)
    held, leaves = [job.not_before or -1 for job in jobs], [job.leaves for job in jobs]
    columns = {**case.workload.columns, "not_before_s": np.array(held), "leaves_s": np.array(leaves)}
    return replace(case, jobs=jobs, workload=replace(case.workload, columns=columns))


def with_deadlines(case: NodesCase, rng: random.Random) -> NodesCase:
    """The same case in which some jobs have a deadline."""
    jobs = [
        replace(job, deadline=job.estimate + rng.randint(0, 4 * job.estimate)) if rng.random() < 0.4 else job
        for job in case.jobs
    ]
    columns = {**case.workload.columns, "deadline_s": np.array([job.deadline for job in jobs], np.int64)}
    return replace(case, jobs=jobs, workload=replace(case.workload, columns=columns))


def with_outages(case: NodesCase, rng: random.Random) -> NodesCase:
    """The same case with a few outages, known before or not, some of them reservations of some of the jobs."""
    last = max(job.submit for job in case.jobs) + 2 * max(job.estimate for job in case.jobs)
    found = []
    for _ in range(rng.randint(1, 5)):
        begin = rng.randint(0, last)
        some = rng.sample(range(case.cluster.nodes), rng.randint(1, max(1, case.cluster.nodes // 2)))
        known = rng.choice((0, begin, rng.randint(0, begin)))
        end, fails = begin + rng.randint(1, last), rng.random() < 0.3
        only = "" if fails else rng.choice(RESERVATIONS)
        found.append(Outage(tuple(some), begin, end, only, known, fails))
    named = [rng.choice((-1, -1, 1, 2)) for _ in case.jobs]
    jobs = [replace(job, reservation=RESERVATIONS[max(which, 0)]) for job, which in zip(case.jobs, named, strict=True)]
    columns = {**case.workload.columns, "reservation": np.array(named, np.int64)}
    workload = replace(case.workload, columns=columns, names={**case.workload.names, "reservation": RESERVATIONS})
    cluster = replace(case.cluster, outages=tuple(found))
    return NodesCase(jobs, replace(case.machine, outages=tuple(found)), workload, cluster)


def random_nodes_case(rng: random.Random) -> NodesCase:
    """A small cluster and 3 to 25 jobs with many ties, each of which fits on the idle cluster.

    Limits are estimates; in every third case some run times exceed them. In some cases the workload has none of the
    columns of units: each processor of a job is then a unit. The same state of `rng` gives the same case.
    """
    cluster = _random_cluster(rng)
    machine = machine_of(cluster)
    plain = rng.random() < 0.1
    longest = rng.choice((3, 10, 40, 200))
    estimates = [rng.randint(1, longest) for _ in range(rng.randint(1, 5))]
    gaps = rng.choice(((0,), (0, 0, 1), (0, 1, 2, 3), (0, 0, 0, longest), (1, longest // 2 + 1)))
    exact, too_small = rng.random() < 0.3, rng.random() < 0.33
    submit = rng.randint(0, 3)
    jobs: list[NodeJob] = []
    features: list[int] = []
    for _ in range(rng.randint(3, 25)):
        submit += rng.choice(gaps)
        estimate = rng.choice(estimates) if rng.random() < 0.8 else rng.randint(1, longest)
        runtime = estimate if exact or rng.random() < 0.2 else rng.randint(1, estimate)
        if too_small and rng.random() < 0.3:
            runtime = estimate + rng.randint(1, longest)
        feature, job = _random_request(rng, cluster, machine, plain)
        features.append(feature)
        jobs.append(replace(job, submit=submit, runtime=runtime, estimate=estimate))
    machine = replace(machine, types=_random_types(rng, jobs))
    return NodesCase(jobs, machine, _workload_of(jobs, features, cluster, plain), cluster)


def _random_cluster(rng: random.Random) -> Cluster:
    """1 to 4 kinds of 1 to 6 nodes, of 1 to 4 resources, the last of them sometimes shared."""
    resources = ("cores", "memory", "licences", "gpus")[: rng.choice((1, 2, 2, 3, 4))]
    if rng.random() < 0.6:
        resources = (*resources[:3], "gpus")
    shared = "gpus" if "gpus" in resources and rng.random() < 0.7 else ""
    most, kinds = rng.choice((1, 2, 3, 6)), []
    for k in range(rng.choice((1, 2, 2, 3, 4))):
        have = [rng.choice((1, 2, 4, 8, 16))]
        have += [rng.choice((0, 1, 4, 16, 64)) for _ in resources[1:]]
        if "gpus" in resources:
            have[-1] = rng.choice((0, 1, 2, 2, 4))
        features = tuple(name for name in ("thin", "fat", "new") if rng.random() < 0.4)
        kinds.append(NodeKind(f"kind{k}", rng.randint(1, most), tuple(have), features))
    return by_node(resources, tuple(kinds), shared)


def _random_request(rng: random.Random, cluster: Cluster, machine: SlowNodes, plain: bool) -> tuple[int, NodeJob]:
    """What a job asks for, made for one of the kinds so that it fits at least there, and the number of its feature."""
    all_kinds = (1 << len(cluster.kinds)) - 1
    if plain:
        units = rng.choice((1, 1, min(2, cluster.processors), rng.randint(1, cluster.processors), cluster.processors))
        need = (1,) + (0,) * (len(cluster.resources) - 1)
        return -1, NodeJob(0, (units,), 0, 0, units=units, need=need, kinds=all_kinds)
    aim = rng.choice(cluster.kinds)
    need = tuple(rng.choice((0, 1, 1, (have + 1) // 2, have, rng.randint(0, have))) for have in aim.capacity)
    need = (max(need[0], 1), *(min(n, have) for n, have in zip(need[1:], aim.capacity[1:], strict=True)))
    kinds, feature = all_kinds, rng.randrange(1, len(FEATURES)) if rng.random() < 0.6 else -1
    if feature >= 0:
        wanted = set(FEATURES[feature].split("|"))
        kinds = sum(1 << k for k, kind in enumerate(cluster.kinds) if wanted & set(kind.features))
        if not wanted & set(aim.features):
            feature, kinds = -1, all_kinds
    job = NodeJob(
        submit=0,
        size=(0,),
        runtime=0,
        estimate=0,
        units=MOST_UNITS,
        need=need,
        share=rng.choice((1000, 1000, 500, 333, 300, 250, 100)) if machine.shared >= 0 else 1000,
        per_node=rng.choice((0, 0, 0, 1, 1, 2, 3)),
        exclusive=rng.random() < 0.12,
        kinds=kinds,
    )
    most = min(sum(machine.fit(x, m, job) for x, m in enumerate(machine.whole)), MOST_UNITS)
    units = rng.choice((1, 1, 1, 2, (most + 1) // 2, most, rng.randint(1, most)))
    units = min(units, most)
    return feature, replace(job, units=units, size=(units * need[0],))


def _random_types(rng: random.Random, jobs: Sequence[NodeJob]) -> tuple[TypicalJob, ...]:
    """Some of the jobs as typical ones, with parts of 1 as probabilities."""
    some = rng.sample(jobs, min(len(jobs), rng.randint(1, 5)))
    counts = [rng.randint(1, 7) for _ in some]
    return tuple(
        TypicalJob(count / sum(counts), job.need, job.share, job.kinds) for count, job in zip(counts, some, strict=True)
    )


def _workload_of(jobs: Sequence[NodeJob], features: Sequence[int], cluster: Cluster, plain: bool) -> Workload:
    """These jobs as a workload. The limit is the estimate; ids count from 1."""
    columns = {
        "id": list(range(1, len(jobs) + 1)),
        "submit": [job.submit for job in jobs],
        "size": [job.size[0] for job in jobs],
        "runtime": [job.runtime for job in jobs],
        "limit": [job.estimate for job in jobs],
    }
    if not plain:
        columns |= {f"unit_{name}": [job.need[r] for job in jobs] for r, name in enumerate(cluster.resources)}
        columns |= {
            "units": [job.units for job in jobs],
            "per_node": [job.per_node for job in jobs],
            "exclusive": [int(job.exclusive) for job in jobs],
            "feature": list(features),
            "gpu_share": [job.share for job in jobs],
        }
    names = {} if plain else {"feature": FEATURES}
    arrays = {name: np.array(values, np.int64) for name, values in columns.items()}
    return Workload("slow", arrays, cluster.processors, Provenance("made here"), names=names)


def schedule_on_nodes(case: NodesCase, result: SlowResult) -> Schedule:
    """What a slow replay gave, for the referee."""
    units = [job.units for job in case.jobs]
    nodes = [x for count, mine in zip(units, result.nodes, strict=True) for x in mine or (-1,) * count]
    devices = [mask for count, mine in zip(units, result.devices, strict=True) for mask in mine or (0,) * count]
    masks = np.array(devices if case.cluster.shared else [], np.int64)
    return schedule_with(case.workload, case.cluster, result, Placement(np.cumsum([0, *units]), np.array(nodes), masks))
