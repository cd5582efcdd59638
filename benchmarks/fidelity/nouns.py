"""A run as our own nouns: the machine that its Slurm would tell of, its nodes, and its jobs."""

from __future__ import annotations

from itertools import groupby

import numpy as np
from benchmarks.fidelity.agree import MEMORY_OF_A_CORE, Run
from benchmarks.fidelity.collect import EXTRA, PARAMETERS
from benchmarks.fidelity.digest import OF_ARRAY
from benchmarks.fidelity.workloads import KINDS

from dovetail.model.cluster import PARTITION, Cluster, NodeKind, Outage, by_node, with_features
from dovetail.model.workload import Workload
from dovetail.slurm.machine import Machine


def machine_of(run: Run) -> Machine:
    """What `scontrol` and `sacctmgr` would say of it."""
    digest = run.digest
    nodes = {
        name: {"NodeName": name, "CPUTot": str(cores), "RealMemory": str(memory)}
        for name, cores, memory, _ in digest.nodes
    }
    partitions = {
        name: {"PartitionName": name, "Nodes": told, "PriorityTier": str(tier)}
        for name, (told, tier, _) in digest.partitions.items()
    }
    kind = KINDS[digest.workload]
    lines = [line for line in (*EXTRA, *kind.extra) if not line.startswith("PartitionName")]
    config = dict(line.split("=", 1) for line in lines) | {
        "SchedulerType": "sched/backfill", "SchedulerParameters": PARAMETERS, "PriorityType": "priority/multifactor",
        "SLURM_VERSION": digest.version,
    }  # fmt: skip
    return Machine("", nodes, partitions, config, qos=kind.qos(), associations=kind.associations())


def came(run: Run, job: int) -> float:
    """When it was submitted."""
    return run.submitted[job // OF_ARRAY * OF_ARRAY]


def first_of(run: Run) -> int:
    """When the first job came."""
    return int(min(run.submitted.values()))


def cluster_of(run: Run) -> Cluster:
    """The nodes of a run."""
    resources = ("cores", "memory_mb", "gpus")
    alike = groupby(run.digest.nodes, key=lambda node: node[1:])
    kinds = tuple(NodeKind(f"kind {at}", len(list(nodes)), tuple(has)) for at, (has, nodes) in enumerate(alike))
    cluster = by_node(resources, kinds)
    cluster = with_features(cluster, {f"{PARTITION}{name}": sorted(one.nodes) for name, one in run.partitions.items()})
    begin = first_of(run)
    outages = tuple(
        Outage(tuple(sorted(one.nodes)), one.begin - begin, one.end - begin) for one in run.reservations
    )  # fmt: skip
    return Cluster(cluster.processors, cluster.resources, cluster.kinds, outages=outages)


def workload_of(run: Run) -> Workload:
    """The jobs of a run, which ran for as long as they did there."""
    names, begin = list(run.partitions), first_of(run)
    users, accounts = ((*sorted({texts[key] for texts in run.digest.jobs.values()}),) for key in ("UserId", "Account"))
    rows = []
    for number, job in sorted(run.jobs.items(), key=lambda pair: (int(came(run, pair[0])), pair[0])):
        made = run.digest.seconds[number // OF_ARRAY * OF_ARRAY]
        texts = run.digest.jobs.get(number) or run.digest.jobs[number // OF_ARRAY * OF_ARRAY]
        ran = run.ended[number] - run.started[number] if number in run.ended and number in run.started else made
        per_node = job.tasks_per_node > 0 or job.whole or job.most_nodes == 1
        units = job.least_nodes if per_node else job.tasks
        cores = job.cores // units if not job.whole else 1
        rows.append((
            number, int(came(run, number)) - begin, units * cores, min(max(round(ran), 1), job.limit_s), job.limit_s,
            units, cores, cores * MEMORY_OF_A_CORE, job.gpus_per_node, int(per_node and not job.whole),
            int(job.whole), names.index(job.partition), job.array or -1, users.index(texts["UserId"]),
            accounts.index(texts["Account"]), 0,
        ))  # fmt: skip
    columns = dict(zip((
        "id", "submit", "size", "runtime", "limit", "units", "unit_cores", "unit_memory_mb", "unit_gpus", "per_node",
        "exclusive", "partition", "array", "user", "account", "qos",
    ), np.array(rows, np.int64).T, strict=True))  # fmt: skip
    cores = sum(cores for _, cores, *_ in run.digest.nodes)
    called = {
        "partition": (*names,), "user": (*(one.partition("(")[0] for one in users),), "account": accounts,
        "qos": ("normal",),
    }  # fmt: skip
    return Workload(run.digest.workload, columns, cores, names=called)
