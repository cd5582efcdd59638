"""A cluster filled with pods drawn from a list until far more has come than it has room for, after FGD (ATC'23).

Pods come one after the other, in random order, and stay. One that does not fit when it comes is lost. What is free when
as much has come as the cluster has is what the placement could not allocate.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from math import nan
from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Floats, Ints
from dovetail.errors import SettingError
from dovetail.kernels.machine.nodes import Nodes
from dovetail.model.cluster import WHOLE, Cluster
from dovetail.model.machine import new_machine
from dovetail.model.requests import Placement, Requests, requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Step, Workload
from dovetail.referee import assert_valid
from reproductions.alibaba_gpus.kernel import all_fragmented, fill

Flags = npt.NDArray[np.bool_]

UPTO: Final = 130
"""Pods come until they have asked for this share of the shared resource, in per cent."""
POINTS: Final = tuple(range(5, UPTO + 1, 5))
"""Where fragmentation is measured: per cent of the shared resource that pods have asked for."""


@dataclass(frozen=True)
class Filled:
    """How one cluster filled up. Amounts are of the shared resource, in devices where nothing else is stated."""

    capacity: int
    asked: Ints
    """What each pod asked for, in order of their coming, in parts of devices."""
    stays: Ints
    """1 where it found a place."""
    fragments: Floats
    """What is free and of no use to typical pods, the mean over them, at POINTS."""
    pieces: float
    """What is free at the end on devices that are in use."""
    cpu_s: float
    """Processor time for all pods that came."""

    def at(self, percent: int) -> int:
        """How many pods had come when this share, in per cent, had been asked for."""
        return _within(self.asked, self.capacity, percent)

    def free(self, percent: int) -> float:
        """What was free then."""
        came = self.at(percent)
        return self.capacity - int(self.asked[:came] @ self.stays[:came]) / WHOLE

    def lost(self, percent: int, above: int = 0) -> float:
        """What the pods had asked for that were lost by then, of those that asked for more than `above` devices."""
        came = self.at(percent)
        some = self.asked[:came] * (self.asked[:came] > above * WHOLE)
        return int(some @ (1 - self.stays[:came])) / WHOLE

    @property
    def first_lost(self) -> float:
        """How many per cent had been asked for when the first pod was lost; nan if none was."""
        lost = np.flatnonzero(self.stays == 0)
        return 100 * int(self.asked[: lost[0] + 1].sum()) / (WHOLE * self.capacity) if len(lost) else nan


def shared_capacity(cluster: Cluster) -> int:
    """How many devices there are to share."""
    return sum(kind.count * kind.capacity[cluster.shared_at] for kind in cluster.kinds)


def shared_asked(requests: Requests, cluster: Cluster) -> Ints:
    """How much each job asks for of the shared resource, in parts of devices."""
    asked: Ints = requests.units * requests.need[:, cluster.shared_at] * requests.share
    return asked


def _within(asked: Ints, capacity: int, percent: int) -> int:
    """How many jobs, the first ones, ask for no more than this share of the devices."""
    return int(np.searchsorted(np.cumsum(asked), capacity * WHOLE * percent // 100, side="right"))


def drawn(pods: Workload, cluster: Cluster, seed: int, upto: int = UPTO) -> Workload:
    """Pods of a list, drawn with replacement until they ask for `upto` per cent of the shared resource. They come all
    at once, in the order drawn, and stay for a second: for the referee, all are there together."""
    asked = shared_asked(requests_of(pods, cluster), cluster)
    if asked.sum() <= 0:
        raise SettingError(f"{pods.name} asks for no {cluster.shared or 'shared resource'}: nothing would fill up")
    rng, capacity = np.random.default_rng(seed), shared_capacity(cluster)
    which: Ints = np.empty(0, np.int64)
    while _within(asked[which], capacity, upto) == len(which):
        which = np.concatenate([which, rng.integers(0, len(pods), len(pods))])
    which = which[: _within(asked[which], capacity, upto)]
    count = np.arange(len(which))
    columns = {name: values[which] for name, values in pods.columns.items()}
    columns |= {"id": count + 1, "submit": 0 * count, "runtime": 0 * count + 1, "limit": 0 * count + 1}
    step = Step(f"{upto} % of the {cluster.shared} drawn, seed {seed}")
    provenance = Provenance(pods.provenance.source, pods.provenance.sha256, steps=(*pods.provenance.steps, step))
    return Workload(pods.name, columns, cluster.processors, provenance, header=pods.header, names=pods.names)


def filled(pods: Workload, cluster: Cluster, place: str) -> Filled:
    """Place drawn pods one after the other by a rule of placement. The referee has checked that all have room."""
    requests, n = requests_of(pods, cluster), len(pods)
    cap = new_machine(cluster, pods.size, requests, cluster.takes(pods), place, n)
    if not isinstance(cap, Nodes) or not cluster.shared:
        raise SettingError("a cluster is filled node by node: it needs kinds of node and a shared resource")
    capacity, asked, fragments = shared_capacity(cluster), shared_asked(requests, cluster), np.zeros(len(POINTS))
    stays, came, cpu_s = np.zeros(n, np.bool_), 0, 0.0
    fill(cap, came, came, stays)  # compiled now, and not while the clock runs
    for i, percent in enumerate(POINTS):
        begin, until = time.process_time(), _within(asked, capacity, percent)
        fill(cap, came, until, stays)
        cpu_s, came = cpu_s + time.process_time() - begin, until
        fragments[i] = all_fragmented(cap)
    placement = Placement(requests.first, cap.placed[0].copy(), cap.placed[1].copy())
    assert_valid(_all_at_once(pods, cluster, place, placement, stays), expect_all_started=False)
    left = _left(cluster, requests, placement, stays)
    pieces = float(left[(left > 0) & (left < WHOLE)].sum()) / WHOLE
    return Filled(capacity, asked, stays.astype(np.int64), fragments, pieces, cpu_s)


def _all_at_once(pods: Workload, cluster: Cluster, place: str, placement: Placement, stays: Flags) -> Schedule:
    """All that stay, there at the same time."""
    start, none = np.where(stays, 0, -1), np.full(len(pods), -1, np.int64)
    return Schedule(pods, cluster, f"place={place}", "none", start, pods.submit, none, none, 0, placement=placement)


def _left(cluster: Cluster, requests: Requests, placement: Placement, stays: Flags) -> Ints:
    """Parts that are left of each device of each node."""
    left = cluster.vectors[cluster.kind_of]
    for job in np.flatnonzero(stays).tolist():
        nodes = placement.of(job)
        np.subtract.at(left, nodes, requests.taken(job, cluster, nodes.tolist(), placement.devices_of(job).tolist()))
    devices: Ints = left[:, len(cluster.resources) :]
    return devices
