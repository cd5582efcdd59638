"""What is in use on every node while policies in Python are asked: it says what is wrong with a start."""

from __future__ import annotations

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.requests import Placement, Requests


class NodeUse:
    """The free numbers of every node (rows as in `Cluster.vectors`), and where each job is or was."""

    def __init__(self, cluster: Cluster, requests: Requests) -> None:
        self.cluster, self.requests = cluster, requests
        self._free = cluster.vectors[cluster.kind_of]
        first = requests.first
        self.placement = Placement(first, np.full(first[-1], -1), np.full(first[-1] if cluster.shared else 0, -1))

    def of(self, job: int) -> Ints:
        """The nodes of a job's units."""
        return self.placement.of(job)

    def devices_of(self, job: int) -> Ints:
        """The shared devices of a job's units."""
        return self.placement.devices_of(job) if self.cluster.shared else np.zeros(self.requests.units[job], np.int64)

    def cores(self, job: int) -> int:
        """How many cores a job takes; one that takes whole nodes takes all of theirs."""
        if self.requests.exclusive[job]:
            return int(self.cluster.vectors[self.cluster.kind_of[self.of(job)], 0].sum())
        return int(self.requests.units[job] * self.requests.need[job, 0])

    def start(self, job: int, plan: Plan, now: int, end: int) -> str:
        """Put a job on the nodes that a plan names, until `end` by its estimate. Returns what is wrong with them, else
        nothing."""
        asked, units = self.requests, int(self.requests.units[job])
        nodes = np.asarray(plan.nodes.get(job, ()), np.int64)
        devices = np.asarray(plan.devices.get(job, [0] * units), np.int64)
        if len(nodes) != units or len(devices) != units:
            return f"on {len(nodes)} nodes: it has {units} units, and its plan must name the node of each (Plan.nodes)"
        if bool((nodes < 0).any()) or bool((nodes >= self.cluster.nodes).any()):
            return f"on a node that does not exist: they are numbered from 0 to {self.cluster.nodes - 1}"
        if not asked.sets[asked.among[job], self.cluster.kind_of[nodes]].all():
            return "on a node of a kind that will not do"
        held, counts = np.unique(nodes, return_counts=True)
        most = 1 if asked.exclusive[job] else asked.per_node[job] or units
        if counts.max() > most:
            return f"with {counts.max()} units on one node"
        has, shared = self.cluster.capacity[self.cluster.kind_of[nodes]], self.cluster.shared_at
        number = asked.need[job, shared] if self.cluster.shared else 0
        if bool(np.any((devices < 0) | (devices >> (has[:, shared] if self.cluster.shared else 0) != 0))):
            return "with devices that its nodes do not have"
        if bool(np.any(np.bitwise_count(devices) != number)):
            return f"with other than {number} devices for each unit"
        if bool((has < asked.need[job]).any()):
            return "on a node that has less than a unit needs"
        node, begin, until, leaves, known = self.cluster.out
        in_time = (known <= now) & (begin < end) & (until > now)
        if bool(np.isin(node[in_time & ((leaves < 0) | (leaves != asked.reservation[job]))], nodes).any()):
            return "on a node that is out before it would have ended"
        taken = asked.taken(job, self.cluster, nodes, devices)
        np.subtract.at(self._free, nodes, taken)
        if bool((self._free[held] < 0).any()):
            np.add.at(self._free, nodes, taken)
            return f"on nodes that have not enough free: {held.tolist()}"
        self.of(job)[:] = nodes
        if self.cluster.shared:
            self.placement.devices_of(job)[:] = devices
        return ""

    def end(self, job: int) -> None:
        """Give back what a job had."""
        nodes = self.of(job)
        taken = self.requests.taken(job, self.cluster, nodes, self.devices_of(job))
        np.add.at(self._free, nodes, taken)
