"""HCP'19's second half: jobs that its schedule on pools starts now get nodes by best fit. Section 1.2 of the paper.

The pool has all that the nodes have together, so a job that starts there may find no nodes. As in the authors' program
it waits for the next pass then.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from dovetail.arrays import Ints
from dovetail.optimize.dispatch.problem import Dispatched, DispatchProblem, Queued, units_by_node


def allocated(problem: DispatchProblem, pool: Dispatched) -> Dispatched:
    """A schedule on pools with nodes for the jobs that start now, in order of priority. A job that was to start now and
    has none is without a start too, -1; the sum of slowdowns is that of the schedule."""
    free, starts = problem.free_now.copy(), list(pool.starts)
    places: list[tuple[int, ...]] = [()] * len(starts)
    for i, (job, at) in enumerate(zip(problem.queue if starts else (), pool.starts, strict=True)):
        if at > problem.now:
            continue
        places[i] = best_fit(problem, free, job)
        if places[i]:
            np.subtract.at(free, list(places[i]), np.array(job.need, np.int64))
        else:
            starts[i] = -1
    return replace(pool, starts=tuple(starts), nodes=tuple(places), positions=())


def best_fit(problem: DispatchProblem, free: Ints, job: Queued) -> tuple[int, ...]:
    """The nodes of the units, from the node with the least left of all resources, each by its share of the cluster's;
    ties go to the first. Empty if they do not fit."""
    fits = units_by_node(problem.cluster, free, job)
    if fits.sum() < job.units:
        return ()
    total = problem.capacity.sum(axis=0)
    known = total > 0
    left = (free[:, known] / total[known]).sum(axis=1)
    where: list[int] = []
    for node in np.lexsort((np.arange(len(left)), left)).tolist():
        where.extend([node] * min(int(fits[node]), job.units - len(where)))
    return tuple(where)
