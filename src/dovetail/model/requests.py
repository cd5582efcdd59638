"""Requests: what jobs ask of nodes; Placement: which nodes they got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np

from dovetail.arrays import NEVER, Ints, Mask
from dovetail.errors import SettingError
from dovetail.model.cluster import PARTITION, WHOLE, Cluster, Typical
from dovetail.model.workload import UNIT, Workload

MOST_NEED: Final = 1 << 40
"""What a unit may need of a resource: sums over the units on a node are numbers of 64 bits."""


@dataclass(frozen=True)
class Requests:
    """One row per job. A job is `units` alike, each on one node, that start and end together.

    `need[job, r]` is what a unit takes of resource r of the cluster. Where a resource is shared, it is a number of
    devices, and `share` is how many thousandths the unit takes of each. `per_node`: most units on one node; 0: as many
    as fit. `exclusive`: 1 if a unit takes all of its node. `among`: the row of `sets` that says which kinds will do.
    `reservation`: the number of the cluster's reservation that the job may use; -1: none.
    """

    units: Ints
    need: Ints
    share: Ints
    per_node: Ints
    exclusive: Ints
    among: Ints
    sets: Mask
    reservation: Ints

    def taken(
        self, job: int | Ints, cluster: Cluster, nodes: Sequence[int] | Ints, devices: Sequence[int] | Ints
    ) -> Ints:
        """What each unit takes of its node, as rows like `Cluster.vectors`: units of one job, or of a job each."""
        node, resources = np.asarray(nodes), self.need.shape[1]
        rows = np.zeros((len(node), cluster.vectors.shape[1]), np.int64)
        rows[:, :resources] = self.need[job]
        if cluster.shared:
            rows[:, cluster.shared_at] = 0
            bits = np.asarray(devices)[:, np.newaxis] >> np.arange(rows.shape[1] - resources) & 1
            rows[:, resources:] = np.reshape(self.share[job], (-1, 1)) * bits
        whole = np.broadcast_to(self.exclusive[job] > 0, len(node))
        rows[whole] = cluster.vectors[cluster.kind_of[node[whole]]]
        return rows

    def wrong(self, jobs: Ints) -> dict[str, Mask]:
        """Which of these jobs ask for what cannot be, by what is wrong."""
        units, need, share = self.units[jobs], self.need[jobs], self.share[jobs]
        among, exclusive = self.among[jobs], self.exclusive[jobs]
        return {
            "asks for nodes of a set that is not there": (among < 0) | (among >= len(self.sets)),
            "asks for no unit": units < 1,
            "allows less than no unit on a node": self.per_node[jobs] < 0,
            "is neither exclusive (1) nor not (0)": (exclusive != 0) & (exclusive != 1),
            f"needs less than 0 or more than {MOST_NEED:,} of a resource": ((need < 0) | (need > MOST_NEED)).any(
                axis=1
            ),
            f"has no share of devices from 1 to {WHOLE}": (share < 1) | (share > WHOLE),
            "needs nothing of its nodes": (need == 0).all(axis=1) & (exclusive == 0),
        }

    def of(self, jobs: Ints) -> Requests:
        """What these jobs ask for, in their order."""
        rows = ("units", "need", "share", "per_node", "exclusive", "among", "reservation")
        return replace(self, **{name: getattr(self, name)[jobs] for name in rows})

    @cached_property
    def first(self) -> Ints:
        """Where the units of each job begin, if those of all jobs stand in a row; one more for the end."""
        return np.concatenate([[0], np.cumsum(self.units)])


def joined(one: Requests, other: Requests) -> Requests:
    """What the jobs of one ask for, then those of the other."""
    rows = ("units", "need", "share", "per_node", "exclusive", "reservation")
    both = {name: np.concatenate([getattr(one, name), getattr(other, name)]) for name in rows}
    among = np.concatenate([one.among, len(one.sets) + other.among])
    return Requests(**both, among=among, sets=np.concatenate([one.sets, other.sets]))


@dataclass(frozen=True)
class Placement:
    """The node of each unit of each job, in a row: those of job i from first[i] to first[i + 1]; -1: it never ran.

    `devices`: which of its node's shared devices a unit has, bit d for device d; empty where nothing is shared.
    """

    first: Ints
    node: Ints
    devices: Ints

    def of(self, job: int) -> Ints:
        """The nodes of a job's units."""
        return self.node[self.first[job] : self.first[job + 1]]

    def devices_of(self, job: int) -> Ints:
        """The devices of a job's units."""
        return self.devices[self.first[job] : self.first[job + 1]]


def requests_of(workload: Workload, cluster: Cluster) -> Requests:
    """What the jobs of a workload ask of the nodes of a cluster.

    Columns: `units`, `unit_RESOURCE`, `per_node`, `exclusive`, `feature`, `partition` (where the cluster knows it),
    `gpu_share`, `reservation`. Without `units`, every processor of a job is a unit of one core that may run anywhere.
    """
    names = [f"{UNIT}{resource}" for resource in cluster.resources]
    unknown = [name for name in workload.columns if name.startswith(UNIT) and name not in names]
    if stray := [name for name in unknown if bool((workload[name] > 0).any())]:
        raise SettingError(
            f"{workload.name} asks for {stray[0].removeprefix(UNIT)!r}, which no node of the cluster has:"
            f" its resources are {', '.join(cluster.resources)}"
        )
    units = workload.columns.get("units", workload.size)
    need = np.stack([np.maximum(workload.get(name), 0) for name in names], axis=1)
    if "units" not in workload:
        need[:, 0] = 1
    share = workload.get("gpu_share")
    feature = workload.get("feature")
    partition = workload.get("partition") if cluster.partitions else np.full(len(workload), -1)
    both = 2 + int(partition.max(initial=-1))
    asked, which = np.unique((feature + 1) * both + partition + 1, return_inverse=True)
    will_do = [
        cluster.having(workload.called("feature", one // both - 1))
        & _within(cluster, workload.called("partition", one % both - 1))
        for one in asked.tolist()
    ]
    # In order of the numbers that they are as bits.
    rows, among = np.unique(np.array(will_do).reshape(-1, len(cluster.kinds))[:, ::-1], axis=0, return_inverse=True)
    return Requests(
        np.asarray(units, np.int64), np.ascontiguousarray(need), np.where(share > 0, share, WHOLE),
        np.maximum(workload.get("per_node"), 0), workload.get("exclusive").clip(0, 1),
        among.reshape(-1)[which.reshape(-1)], np.ascontiguousarray(rows[:, ::-1]), _reservations(workload, cluster),
    )  # fmt: skip


def _within(cluster: Cluster, partition: str) -> Mask:
    """Which kinds jobs of a partition may have, or of one of several, with commas between; all, where the cluster knows
    none of these."""
    known = [f"{PARTITION}{name}" for name in partition.split(",") if name in cluster.partitions]
    return cluster.having("|".join(known))


def _reservations(workload: Workload, cluster: Cluster) -> Ints:
    """The number of each job's reservation among those of the cluster; -1: it has none there."""
    asked, which = np.unique(workload.get("reservation"), return_inverse=True)
    names = [workload.called("reservation", one) if one >= 0 else "" for one in asked.tolist()]
    number = {name: r for r, name in enumerate(cluster.reservations)}
    return np.array([number.get(name, -1) for name in names], np.int64)[which.reshape(-1)]


def fit_idle(cluster: Cluster, asked: Requests) -> Mask:
    """Which jobs fit on the idle cluster."""
    return room_idle(cluster, asked) >= asked.units


def room_idle(cluster: Cluster, asked: Requests) -> Ints:
    """How many units of each job the idle nodes of all kinds that will do hold; of each node no more than it has. A
    node that is out and whose end is not known has room for none."""
    room = np.zeros(len(asked.units), np.int64)
    alike, which = np.unique(cluster.capacity, axis=0, return_inverse=True)
    node, _, end, leaves, _ = cluster.out
    for named in np.unique(asked.reservation).tolist():
        gone = np.unique(node[(end >= NEVER) & ((leaves != named) | (leaves < 0))])
        count = np.bincount(np.delete(cluster.kind_of, gone), minlength=len(cluster.kinds))
        jobs = asked.reservation == named
        for i, capacity in enumerate(alike):
            nodes = asked.sets @ np.where(which.reshape(-1) == i, count, 0)
            room[jobs] += (nodes[asked.among] * _most(cluster, asked, capacity.tolist()))[jobs]
    return room


def most_on_idle(cluster: Cluster, asked: Requests, kind: int) -> Ints:
    """How many units of each job an idle node of a kind holds."""
    return np.where(asked.sets[asked.among, kind], _most(cluster, asked, cluster.kinds[kind].capacity), 0)


def _most(cluster: Cluster, asked: Requests, capacity: Sequence[int]) -> Ints:
    """How many units of each job an idle node with so much holds, where it will do; no more than the job has."""
    fit = np.where(asked.per_node > 0, asked.per_node, asked.units)
    for r, have in enumerate(capacity):
        need = asked.need[:, r]
        count = have // np.maximum(need, 1)
        if cluster.resources[r] == cluster.shared:
            on_one = WHOLE // asked.share
            count = np.where(need == 1, have * on_one, np.where(on_one > 0, count, 0))
        fit = np.where(need > 0, np.minimum(fit, count), fit)
    fit = np.where(asked.exclusive > 0, np.minimum(fit, 1), fit)
    found: Ints = np.clip(fit, 0, np.maximum(asked.units, 0))
    return found


def typical(requests: Requests, most: int = 64, weigh: int = -1) -> tuple[Typical, ...]:
    """What the most frequent requests ask for, and how large a part of these jobs each is.

    `weigh`: the shared resource; the part is then that of all that is asked for of it; only jobs that want it count.
    """
    asked, counts = np.unique(
        np.column_stack([requests.need, requests.share, requests.among]), axis=0, return_counts=True
    )
    weights = counts if weigh < 0 else counts * asked[:, weigh] * asked[:, -2]
    kept = np.argsort(-weights, kind="stable")[:most]
    kept = kept[weights[kept] > 0]
    total = int(weights[kept].sum())
    kinds = [sum(1 << k for k in np.flatnonzero(row).tolist()) for row in requests.sets]
    return tuple(
        Typical(int(weights[i]) / total, tuple(asked[i, :-2].tolist()), int(asked[i, -2]), kinds[asked[i, -1]])
        for i in kept
    )
