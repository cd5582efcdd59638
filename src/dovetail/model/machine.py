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


def nodes_of(cap: Machine) -> Nodes | None:
    """The nodes of a machine; None where it only counts."""
    if isinstance(cap, Pooled):
        return cap.nodes
    return cap if isinstance(cap, Nodes) else None


def new_machine(
    cluster: Cluster,
    size: Ints,
    requests: Requests | None,
    place: str,
    jobs: int,
    foresight: int = 0,
    draws: Ints | None = None,
) -> Machine:
    """An idle machine with room for `jobs` jobs that run and wait, and in plans for `foresight` more that may come.
    `size` and `requests` are what each job needs, `draws` what it draws, where there is a cap."""
    if requests is None:
        need, total = size, [cluster.processors]
        if cluster.cap is not None and draws is not None:
            need, total = np.column_stack([size, draws]).reshape(-1), [*total, cluster.cap.room(cluster.processors)]
        return new_counted(np.ascontiguousarray(need), np.array(total, np.int64), jobs, 2 * (jobs + foresight))
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
    if cluster.cap is None or draws is None:
        return nodes
    power = np.array([cluster.cap.room(cluster.processors)], np.int64)
    room = 2 * jobs + 4
    return Pooled(nodes, new_counted(np.ascontiguousarray(draws), power, room, room + 2 * foresight))
