"""How much of a machine was in use over time, and what waited for it, by a log alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.metrics.system import bin_edges, bin_length
from dovetail.model.cluster import Cluster
from dovetail.model.workload import UNIT, Workload

MOST_PLACES: Final = 50_000_000
"""Jobs times nodes up to which nodes in use are counted."""


@dataclass(frozen=True)
class OverTime:
    """Means over bins of time, the last of which may be shorter."""

    edges: Ints
    """Of the bins, in seconds of the log."""
    busy: Mapping[str, Floats]
    """The share in use, by resource; cores first."""
    queue_jobs: Floats
    """Jobs that could have started and had not."""
    backlog_core_h: Floats
    """Cores times run time of these; of those that never started nobody knows it, so they count nothing."""

    def coarser(self, most: int) -> OverTime:
        """The same in no more than `most` bins."""
        every = max(-(-len(self.queue_jobs) // most), 1)
        first = np.arange(0, len(self.queue_jobs), every)
        edges = np.append(self.edges[first], self.edges[-1])

        def mean(values: Floats) -> Floats:
            found: Floats = np.add.reduceat(values * np.diff(self.edges), first) / np.diff(edges)
            return found

        busy = {name: mean(values) for name, values in self.busy.items()}
        return OverTime(edges, busy, mean(self.queue_jobs), mean(self.backlog_core_h))


@dataclass(frozen=True)
class Places:
    """Which nodes the numbers of the column `ran_on` stand for: those of number v are node[first[v]:first[v + 1]]."""

    first: Ints
    node: Ints
    """From 0 on."""
    nodes: int
    """How many the machine has."""


def over_time(
    log: Workload, processors: int, bins: int, cluster: Cluster | None = None, places: Places | None = None
) -> OverTime:
    """From the first submission to the last end, in at most so many bins. `log`: jobs that ran, whose waits are
    recorded, and jobs that left the queue before they started."""
    ran = log["wait"] >= 0
    start = log.submit + log["wait"]
    begin, end, size = start[ran], (start + log.runtime)[ran], log.size[ran]
    ends = int(max(end.max(), log.submit[-1]))
    edges = bin_edges(np.array([int(log.submit[0]), ends]), bin_length(ends - int(log.submit[0]), bins))
    held = {"cores": (size, processors)}
    if cluster is not None and cluster.kinds and "units" in log:
        for at, name in enumerate(cluster.resources[1:], 1):
            there = sum(kind.count * kind.capacity[at] for kind in cluster.kinds)
            if f"{UNIT}{name}" in log and there > 0:
                held[name] = ((log["units"] * np.maximum(log[f"{UNIT}{name}"], 0))[ran], there)
    means = in_bins(begin, end, [values for values, _ in held.values()], edges)
    busy = {name: mean / there for (name, (_, there)), mean in zip(held.items(), means, strict=True)}
    if places is not None and (nodes := _nodes(begin, end, log["ran_on"][ran], places)) is not None:
        busy["nodes"] = in_bins(*nodes, [np.ones(len(nodes[0]))], edges)[0] / places.nodes
    comes = log.arrives
    leaves = np.where(ran, start, log.leaves)
    waits = (comes >= 0) & (leaves > comes)
    work_h = np.where(ran, log.size / 3600 * log.runtime, 0.0)
    queue, backlog = in_bins(comes[waits], leaves[waits], [np.ones(int(waits.sum())), work_h[waits]], edges)
    return OverTime(edges, busy, queue, backlog)


def in_bins(begin: Ints, end: Ints, weights: Sequence[Ints | Floats], edges: Ints) -> list[Floats]:
    """For each kind of weight: the sum over the stretches of time that are open, as the mean within each bin. None
    begins before the first edge. Whole numbers add up exactly below 2^53."""
    times = np.concatenate([begin, end, edges])
    order = np.argsort(times, kind="stable")
    times = times[order]
    last, lengths = np.searchsorted(times, edges, side="right") - 1, np.diff(edges)
    nothing, found = np.zeros(len(edges)), list[Floats]()
    for weight in weights:
        level = np.cumsum(np.concatenate([weight, -weight, nothing])[order].astype(np.float64))
        done = np.concatenate([[0.0], np.cumsum(level[:-1] * np.diff(times))])
        found.append(np.maximum(np.diff(done[last]) / lengths, 0.0))
    return found


def _nodes(begin: Ints, end: Ints, ran_on: Ints, places: Places) -> tuple[Ints, Ints] | None:
    """When nodes are in use, by whomever: stretches of which no two of a node overlap. None: too many to count."""
    known = ran_on >= 0
    begin, end, ran_on = begin[known], end[known], ran_on[known]
    many = places.first[ran_on + 1] - places.first[ran_on]
    total = int(many.sum())
    if not total or total > MOST_PLACES:
        return None
    job = np.repeat(np.arange(len(begin)), many)
    node = places.node[np.arange(total) + np.repeat(places.first[ran_on] - (np.cumsum(many) - many), many)]
    beyond = int(end.max()) + 1
    order = np.lexsort((begin[job], node))
    opens, closes = (node * beyond + begin[job])[order], (node * beyond + end[job])[order]
    until = np.maximum.accumulate(closes)
    new = np.append(True, opens[1:] > until[:-1])
    at = np.flatnonzero(new)
    whose = node[order][at] * beyond
    return opens[at] - whose, until[np.append(at[1:], total) - 1] - whose
