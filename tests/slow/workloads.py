"""Small, dense, random workloads with many ties: where two implementations would part, if anywhere."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.cluster import Cluster
from dovetail.model.requests import Placement
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from tests.slow.policies import Size, SlowJob, SlowResult

Job = TypeVar("Job", bound=SlowJob)


def random_jobs(
    rng: random.Random, *, resources: int = 1, too_small: bool = False, feedback: bool = False
) -> tuple[list[SlowJob], Size]:
    """3 to 40 jobs in order of submit, often some alike, and a cluster of 1 to 32 of each resource that every job fits.

    `too_small` lets some run times exceed their estimates; `feedback` makes some jobs follow earlier ones.
    The same state of `rng` gives the same workload.
    """
    capacity = tuple(rng.choice((1, 2, 3, 4, 5, 8, 16, 32)) for _ in range(resources))
    longest = rng.choice((3, 10, 40, 200))
    estimates = [rng.randint(1, longest) for _ in range(rng.randint(1, 6))]
    gaps = rng.choice(((0,), (0, 0, 1), (0, 1, 2, 3), (0, 0, 0, longest), (1, longest // 2 + 1)))
    exact, alike = rng.random() < 0.3, rng.choice((0.0, 0.0, 0.0, 0.5, 0.9))
    jobs: list[SlowJob] = []
    submit = rng.randint(0, 3)
    for j in range(rng.randint(3, 40)):
        submit += rng.choice(gaps)
        estimate = rng.choice(estimates) if rng.random() < 0.8 else rng.randint(1, longest)
        runtime = estimate if exact or rng.random() < 0.2 else rng.randint(1, estimate)
        if too_small and rng.random() < 0.3:
            runtime = estimate + rng.randint(1, longest)
        jobs.append(SlowJob(submit, _size(rng, capacity), runtime, estimate))
        if j and rng.random() < alike:  # one more of an array
            submit, least = jobs[j - 1].submit, jobs[j - 1].estimate
            runtime = least + runtime - estimate if runtime >= estimate else min(runtime, least)
            jobs[j] = replace(jobs[j - 1], runtime=runtime, after=-1, think=0)
        if feedback and j and rng.random() < 0.5:
            jobs[j] = replace(jobs[j], after=rng.randrange(j), think=rng.choice((0, 0, 1, 5, longest)))
    return jobs, capacity


def with_deadlines(rng: random.Random, jobs: Sequence[SlowJob]) -> list[SlowJob]:
    """The same jobs, a part of them with deadlines: from impossible to easy to keep."""
    share, longest = rng.choice((0.2, 0.5, 0.8, 1.0)), max(job.estimate for job in jobs)
    slack = rng.choice((longest, 3 * longest, 10 * longest))
    return [
        replace(job, deadline=job.estimate + rng.randint(-1, slack)) if rng.random() < share else job for job in jobs
    ]


def _size(rng: random.Random, capacity: Size) -> Size:
    """Often 1, a half or all; any resource but the first may be asked for not at all."""
    size = []
    for k, most in enumerate(capacity):
        some = rng.choice((1, 1, (most + 1) // 2, most, rng.randint(1, most), 0 if k else 1))
        size.append(some)
    return tuple(size)


def drawn_comings(rng: random.Random, n: int, longest: int, *, leave: bool) -> tuple[list[int], list[int]]:
    """How long after its submit each of n jobs may start, and leaves the queue (`leave`); -1: at once, never."""
    often = rng.choice((0.1, 0.4))
    held = [rng.randint(0, longest) if rng.random() < often else -1 for _ in range(n)]
    leaves = [rng.randint(0, 4 * longest) if rng.random() < often else -1 for _ in range(n if leave else 0)]
    return held, leaves or [-1] * n


def with_comings(rng: random.Random, jobs: Sequence[Job], *, leave: bool) -> list[Job]:
    """The same jobs, some of which may not start at once, or leave the queue."""
    drawn = drawn_comings(rng, len(jobs), max(job.estimate for job in jobs), leave=leave)
    rows = zip(jobs, *drawn, strict=True)
    return [replace(job, not_before=max(held, 0), leaves=leaves) for job, held, leaves in rows]


def drawn_licences(rng: random.Random, n: int) -> tuple[dict[str, Ints], tuple[tuple[str, int], ...]]:
    """Columns of licences of one or two kinds for n jobs, and how many there are: enough for each job alone."""
    columns, totals = dict[str, Ints](), list[tuple[str, int]]()
    for name in ("a", "b")[: rng.randint(1, 2)]:
        held = np.array([rng.choice((-1, 0, 1, 1, 2, 5)) for _ in range(n)], np.int64)
        columns[f"licence_{name}"] = held
        totals.append((name, max(int(held.max(initial=0)), 0) + rng.choice((0, 1, 3, 20))))
    return columns, tuple(totals)


def workload_of(jobs: Sequence[SlowJob], capacity: Size, resource: int = 0) -> Workload:
    """The same jobs as a Workload of one resource. The limit is the estimate; ids count from 1."""
    columns = {
        "id": np.arange(len(jobs)) + 1,
        "submit": np.array([job.submit for job in jobs]),
        "size": np.array([job.size[resource] for job in jobs]),
        "runtime": np.array([job.runtime for job in jobs]),
        "limit": np.array([job.estimate for job in jobs]),
        "after": np.array([job.after + 1 if job.after >= 0 else -1 for job in jobs]),
        "think_s": np.array([job.think for job in jobs]),
        "deadline_s": np.array([job.deadline for job in jobs]),
        "not_before_s": np.array([job.not_before or -1 for job in jobs]),
        "leaves_s": np.array([job.leaves for job in jobs]),
    }
    return Workload("slow", columns, capacity[resource], Provenance("made here"))


def schedule_of(jobs: Sequence[SlowJob], capacity: Size, result: SlowResult, resource: int = 0) -> Schedule:
    """What a slow replay gave, for the referee."""
    return schedule_with(workload_of(jobs, capacity, resource), Cluster(capacity[resource]), result)


def schedule_with(
    workload: Workload, cluster: Cluster, result: SlowResult, placement: Placement | None = None
) -> Schedule:
    """The same of a workload and a cluster that are at hand."""
    return Schedule(
        workload=workload,
        cluster=cluster,
        policy="slow",
        estimate="limit",
        start=np.array(result.start),
        arrive=np.array(result.arrive),
        promised_first=np.array(result.promised_first),
        promised_last=np.array(result.promised_last),
        passes=result.passes,
        accepted=np.array(result.accepted, np.int64),
        placement=placement,
    )
