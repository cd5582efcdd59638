"""Whether jobs can run at all, in slow and obvious code."""

from __future__ import annotations

from dovetail.model.cluster import WHOLE, Cluster
from dovetail.model.requests import requests_of
from dovetail.model.workload import Workload


def units_on_idle(cluster: Cluster, need: list[int], share: int, kind: int) -> int:
    """How many units fit on one idle node of a kind."""
    fits = []
    for resource, has, wants in zip(cluster.resources, cluster.kinds[kind].capacity, need, strict=True):
        if wants == 1 and resource == cluster.shared:
            fits.append(has * (WHOLE // share))
        elif wants:
            fits.append(has // wants)
    return min(fits)


def cannot_run(workload: Workload, cluster: Cluster) -> list[int]:
    """The ids of the jobs that do not fit on the idle cluster."""
    asked = requests_of(workload, cluster)
    found = []
    for job in range(len(workload)):
        need, share, units = asked.need[job].tolist(), int(asked.share[job]), int(asked.units[job])
        room = 0
        for number, kind in enumerate(cluster.kinds):
            if asked.sets[asked.among[job], number]:
                room += kind.count * units_on_idle(cluster, need, share, number)
        if room < units:
            found.append(int(workload["id"][job]))
    return found
