"""The machine that kernels work on, from a cluster: one that counts, or one of nodes."""

from __future__ import annotations

from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.kernels.machine.nodes import LEAVE, Nodes, new_nodes
from dovetail.kernels.machine.placement import BEST_FIT, CONSOLIDATE, FIRST_FIT, GRADIENT, SCARCE, WORST_FIT
from dovetail.kernels.machine.pooled import Pooled
from dovetail.kernels.machine.processors import Counted, new_counted
from dovetail.model.cluster import Cluster
from dovetail.model.requests import Requests

PLACES: Final = {
    "first": FIRST_FIT, "best": BEST_FIT, "worst": WORST_FIT, "consolidate": CONSOLIDATE, "scarce": SCARCE,
    "gradient": GRADIENT,
}  # fmt: skip
"""Rules of placement (docs/nodes.md)."""

Machine = Counted | Nodes | Pooled
BESIDE_NODES: Final = 4
"""Beside nodes, so many resources are counted at least: one kernel does for a cap on power and three licences."""


def nodes_of(cap: Machine) -> Nodes | None:
    """The nodes of a machine; None where it only counts."""
    if isinstance(cap, Pooled):
        return cap.nodes
    return cap if isinstance(cap, Nodes) else None


def new_machine(
    cluster: Cluster,
    size: Ints,
    requests: Requests | None,
    takes: Ints,
    place: str,
    jobs: int,
    foresight: int = 0,
) -> Machine:
    """An idle machine with room for `jobs` jobs that run and wait, and in plans for `foresight` more that may come.
    `size` and `requests` are what each job needs, `takes` its rows of `Cluster.takes`."""
    counted = np.array(list(cluster.counted.values()), np.int64)
    if takes.shape != (len(size), len(counted)):
        raise ValueError(f"what jobs take of {list(cluster.counted)} has the shape {takes.shape}")
    if requests is None:
        need, total = np.column_stack([size, takes]), np.concatenate([[cluster.processors], counted])
        return new_counted(*_widened(need, total), jobs, 2 * (jobs + foresight))
    known = cluster.typical
    one, none = np.ones(len(known), np.int64), np.zeros(len(known), np.int64)
    columns = (
        np.concatenate([requests.units, one]), np.concatenate([requests.per_node, none]),
        np.concatenate([requests.exclusive, none]),
        np.concatenate([requests.among, len(requests.sets) + np.arange(len(known))]),
        np.concatenate([requests.share, np.array([one.share for one in known], np.int64)]),
        np.vstack([requests.need, *(np.array([one.need], np.int64) for one in known)]),
    )  # fmt: skip
    parts = np.array([one.part for one in known])
    kinds = range(len(cluster.kinds))
    rows = [[one.kinds >> k & 1 > 0 for k in kinds] for one in known]
    sets = np.concatenate([requests.sets, np.array(rows, bool).reshape(-1, len(kinds))])
    vectors, outages, leave = cluster.vectors, cluster.out, 0
    if outages.shape[1]:
        # One more resource: leave to be on a node. And one for each reservation, for its jobs.
        leave, plain = 1 + len(cluster.reservations), len(cluster.resources)
        vectors = np.insert(vectors, [plain] * leave, LEAVE, axis=1)
        given = np.zeros((len(columns[0]), leave), np.int64)
        given[np.arange(len(requests.units)), 1 + requests.reservation] = 1
        columns = (*columns[:-1], np.hstack([columns[-1], given]))
        outages = outages.copy()
        outages[3] = np.where(outages[3] >= 0, plain + 1 + outages[3], -1)
    nodes = new_nodes(
        cluster.kind_of, np.ascontiguousarray(vectors), cluster.shared_at, columns, sets, parts, PLACES[place], jobs,
        foresight, leave, outages,
    )  # fmt: skip
    if not len(counted):
        return nodes
    room = 2 * jobs + 4
    return Pooled(nodes, new_counted(*_widened(takes, counted, BESIDE_NODES), room, room + 2 * foresight))


def _widened(need: Ints, total: Ints, least: int = 1) -> tuple[Ints, Ints]:
    """What jobs need and what there is, with resources added of which nobody needs any, to the next power of two:
    kernels are compiled for a number of resources, which takes a minute, so there are few such numbers."""
    width = least
    while width < len(total):
        width *= 2
    if more := width - len(total):
        need, total = np.pad(need, ((0, 0), (0, more))), np.pad(total, (0, more))
    return need.reshape(-1), total
