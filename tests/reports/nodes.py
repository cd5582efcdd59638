"""Schedules on nodes to draw: jobs one after another, each on the first nodes that have room for its units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from heapq import heappop, heappush

import numpy as np

from dovetail.arrays import Ints
from dovetail.model.cluster import WHOLE, Cluster, NodeKind, by_node
from dovetail.model.requests import Placement, Requests, requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Provenance, Workload
from tests.reports.charts import EPOCH

MIXED = by_node(
    ("cores", "memory_gb", "gpus"),
    (NodeKind("gpu", 32, (16, 64, 2)), NodeKind("plain", 32, (32, 128, 0))),
    shared="gpus",
)

Held = list[tuple[int, Ints, list[int]]]
"""What the units of a job have: the node, what they took of each resource, and the devices."""


class Machine:
    """What is free on each node, resource by resource and device by device."""

    def __init__(self, cluster: Cluster) -> None:
        self.capacity = cluster.capacity[cluster.kind_of]
        self.shared = cluster.shared_at
        self.free = self.capacity.copy()
        self.devices = [[WHOLE] * int(row[self.shared]) if cluster.shared else [] for row in self.capacity]

    def _unit(self, node: int, asked: Requests, job: int) -> tuple[int, Ints, list[int]] | None:
        free, need, share = self.free[node], asked.need[job], int(asked.share[job])
        if asked.exclusive[job]:
            alone = bool((free == self.capacity[node]).all() and (need <= free).all())
            untouched = all(part == WHOLE for part in self.devices[node])
            return (node, free.copy(), list(range(len(self.devices[node])))) if alone and untouched else None
        taken = need.copy()
        chosen: list[int] = []
        if self.shared >= 0:
            left = self.devices[node]
            fits = sorted((part, d) for d, part in enumerate(left) if part >= share)
            if len(fits) < need[self.shared]:
                return None
            chosen = [d for _, d in fits[: need[self.shared]]]
            taken[self.shared] = 0
        return (node, taken, chosen) if bool((taken <= free).all()) else None

    def move(self, held: Held, share: int, sign: int) -> None:
        for node, taken, devices in held:
            self.free[node] += sign * taken
            for d in devices:
                self.devices[node][d] += sign * share

    def place(self, asked: Requests, job: int) -> Held | None:
        """The first nodes that have room for all units of a job; None if there are not enough."""
        held: Held = []
        share = WHOLE if asked.exclusive[job] else int(asked.share[job])
        for node in range(len(self.free)):
            while len(held) < asked.units[job] and (unit := self._unit(node, asked, job)) is not None:
                held.append(unit)
                self.move([unit], share, -1)
            if len(held) == asked.units[job]:
                return held
        self.move(held, share, +1)
        return None


def placed(workload: Workload, cluster: Cluster) -> Schedule:
    """First come, first served, strictly."""
    asked, machine, now = requests_of(workload, cluster), Machine(cluster), 0
    running: list[tuple[int, int, Held]] = []
    start, node, devices = [], [], []
    for job, (submit, runtime) in enumerate(zip(workload.submit.tolist(), workload.runtime.tolist(), strict=True)):
        now = max(now, submit)
        while True:
            while running and running[0][0] <= now:
                _, ended, back = heappop(running)
                machine.move(back, WHOLE if asked.exclusive[ended] else int(asked.share[ended]), +1)
            if (held := machine.place(asked, job)) is not None:
                break
            now = running[0][0]
        heappush(running, (now + runtime, job, held))
        start.append(now)
        node += [one for one, _, _ in held]
        devices += [sum(1 << d for d in chosen) for _, _, chosen in held]
    none = np.full(len(workload), -1, np.int64)
    placement = Placement(asked.first, np.array(node, np.int64), np.array(devices if cluster.shared else [], np.int64))
    return Schedule(
        workload, cluster, "first fit", "limit", np.array(start, np.int64), workload.submit, none, none, 0,
        placement=placement,
    )  # fmt: skip


def asking(columns: Mapping[str, Sequence[int] | Ints], cluster: Cluster, seed: int = 0) -> Workload:
    """A workload of jobs that ask for so many units of so much; size, limit and users are made up."""
    arrays = {name: np.asarray(values, np.int64) for name, values in columns.items()}
    jobs, rng = len(arrays["units"]), np.random.default_rng(seed)
    arrays |= {
        "id": np.arange(jobs) + 1, "size": arrays["units"] * arrays["unit_cores"], "limit": 2 * arrays["runtime"],
        "user": rng.integers(0, 9, jobs),
    }  # fmt: skip
    names = {"user": tuple(f"user{k}" for k in range(9))}
    header = {"UnixStartTime": (str(EPOCH),)}
    return Workload("nodes", arrays, cluster.processors, Provenance("test"), header=header, names=names)


def random_jobs(jobs: int, cluster: Cluster, seed: int, load: float = 0.8) -> Workload:
    """Jobs of a few units; a third has GPUs or parts of one, and one in twenty whole nodes."""
    rng = np.random.default_rng(seed)
    units = np.minimum(1 + rng.geometric(0.5, jobs), 8)
    cores = rng.choice([1, 2, 4, 8, 16], jobs, p=[0.2, 0.2, 0.25, 0.2, 0.15])
    exclusive = (rng.random(jobs) < 0.05).astype(np.int64)
    gpus = np.where(rng.random(jobs) < 0.35, rng.integers(1, 3, jobs), 0)
    runtime = rng.exponential(4_000, jobs).astype(np.int64) + 30
    gap = float(np.mean(units * np.where(exclusive > 0, 24, cores)) * np.mean(runtime)) / cluster.processors / load
    return asking(
        {
            "submit": np.cumsum(rng.exponential(gap, jobs)).astype(np.int64), "runtime": runtime, "units": units,
            "unit_cores": cores, "unit_memory_gb": cores * rng.integers(1, 4, jobs), "unit_gpus": gpus,
            "gpu_share": np.where((gpus == 1) & (rng.random(jobs) < 0.5), 500, 1000), "exclusive": exclusive,
        },
        cluster,
        seed,
    )  # fmt: skip
