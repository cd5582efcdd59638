"""HCP'19: a schedule on pools, then nodes by best fit. Section 1.2 of the paper.

Importing this loads OR-Tools.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from time import process_time

import numpy as np

from dovetail.arrays import Ints
from dovetail.optimize.dispatch.cpsat_limits import WORK_PER_S, Ran, by_priority, restarted, scheduled
from dovetail.optimize.dispatch.greedy import listed
from dovetail.optimize.dispatch.problem import (
    Dispatched,
    DispatchProblem,
    Limits,
    Queued,
    Running,
    pooled,
    total_slowdown,
)


@dataclass(frozen=True)
class Pools:
    """One schedule on pools: the start of each job, empty where none was found."""

    starts: tuple[int, ...]
    ran: Ran
    variables: int
    constraints: int
    modelling_s: float


def on_pools(problem: DispatchProblem, limits: Limits, later: frozenset[int] = frozenset()) -> Pools:
    """The scheduling model alone: what all nodes have together. It is a relaxation of the problem."""
    begun = process_time()
    pool = pooled(problem)
    schedule = scheduled(pool, later)
    by_priority(schedule)
    for start, at in zip(schedule.starts, listed(pool, later=later).starts, strict=True):
        schedule.model.add_hint(start, at - problem.now)
    modelled = process_time() - begun
    ran = restarted(schedule.model, limits, WORK_PER_S["hcp19"])
    values = ran.values
    starts = () if values is None else tuple(problem.now + values[start.index] for start in schedule.starts)
    proto = schedule.model.proto
    return Pools(starts, ran, len(proto.variables), len(proto.constraints), modelled)


def hcp19(problem: DispatchProblem, limits: Limits) -> Dispatched:
    """Rounds of scheduling and allocation, until all that start now have their nodes.

    In a round, jobs that start now are allocated in order of priority, each on the nodes that best fit names. A job
    without nodes is an inconsistency of the pools: it may not start now, and all others are scheduled anew, with what
    has been allocated fixed. The paper says that such inconsistencies are fixed in several iterations, not how. A round
    without a schedule ends it; what has been allocated by then starts. The sizes are those of the first model, the
    largest; times, conflicts and extensions those of all rounds.
    """
    starts = [-1] * len(problem.queue)
    nodes: list[tuple[int, ...]] = [()] * len(problem.queue)
    left, later, running = list(range(len(problem.queue))), frozenset[int](), problem.running
    free, rounds = problem.free_now.copy(), list[Pools]()
    while left:
        part = replace(problem, queue=tuple(problem.queue[i] for i in left), running=running)
        found = on_pools(part, limits, frozenset(p for p, i in enumerate(left) if i in later))
        rounds.append(found)
        if not found.starts:
            break
        refused = set()
        for i, at in zip(left, found.starts, strict=True):
            starts[i], job = at, problem.queue[i]
            if at > problem.now:
                continue
            if where := best_fit(problem, free, job):
                nodes[i] = where
                np.subtract.at(free, list(where), np.array(job.need, np.int64))
                running = (*running, Running(job.job, job.duration, where, job.need))
            else:
                refused.add(i)
        if not refused:
            break
        later |= refused
        left = [i for i in left if not nodes[i]]
    return _answer(problem, starts, nodes, rounds)


def best_fit(problem: DispatchProblem, free: Ints, job: Queued) -> tuple[int, ...]:
    """The nodes of the units, from the node with the least left of all resources, each by its share of the cluster's;
    ties go to the first. Empty if they do not fit."""
    suitable = np.array([job.kinds >> k & 1 for k in range(len(problem.cluster.kinds))], np.int64)
    fits = np.min([free[:, r] // need for r, need in enumerate(job.need) if need], axis=0)
    fits = np.minimum(fits, job.per_node or job.units) * suitable[problem.cluster.kind_of]
    if fits.sum() < job.units:
        return ()
    total = problem.capacity.sum(axis=0)
    known = total > 0
    left = (free[:, known] / total[known]).sum(axis=1)
    where: list[int] = []
    for node in np.lexsort((np.arange(len(left)), left)).tolist():
        where.extend([node] * min(int(fits[node]), job.units - len(where)))
    return tuple(where)


def _answer(
    problem: DispatchProblem, starts: list[int], nodes: list[tuple[int, ...]], rounds: list[Pools]
) -> Dispatched:
    first, last = rounds[0], rounds[-1].ran
    whole = bool(first.starts)
    if not last.values:  # a job without nodes and schedule: no start either
        starts = [at if has else -1 for at, has in zip(starts, nodes, strict=True)]
    complete = whole and min(starts) >= problem.now
    return Dispatched(
        status=last.status,
        objective=total_slowdown(problem, tuple(starts)) if complete else float("nan"),
        starts=tuple(starts) if whole else (),
        nodes=tuple(nodes) if whole else (),
        variables=first.variables,
        constraints=first.constraints,
        conflicts=sum(one.ran.conflicts for one in rounds),
        branches=sum(one.ran.branches for one in rounds),
        modelling_s=sum(one.modelling_s for one in rounds),
        solving_s=sum(one.ran.solving_s for one in rounds),
        extensions=sum(one.ran.extensions for one in rounds),
        rounds=len(rounds),
    )
