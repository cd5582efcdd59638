"""The GPU cluster that Alibaba published in 2023 ("openb"): its nodes, and the pods that asked for them.

Cores are counted in thousandths, as the files do: `cores` of a node and `unit_cores` of a pod are milli-cores, and so
are `processors` of the cluster and `size` of a job. Memory is in MiB (`memory_mb`). GPUs are shared in thousandths.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Final

import numpy as np

from dovetail.errors import InputError
from dovetail.io.csv import Rows, count, read_table
from dovetail.model.cluster import WHOLE, Cluster, NodeKind, by_node
from dovetail.model.workload import Column, Provenance, Step, Workload
from dovetail.units import MOST_SECONDS

NODE_FIELDS: Final = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_FIELDS: Final = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
RESOURCES: Final = ("cores", "memory_mb", "gpus")
THANKS: Final = "Alibaba Group (cluster-trace-gpu-v2023; Weng and others, Beware of Fragmentation, USENIX ATC 2023)"


def read_nodes(path: str | Path) -> Cluster:
    """The cluster of a node list. Nodes with the same cores, memory, GPUs and model are one kind, which has the model
    as its feature; kinds are in order of first appearance. A line that cannot be read is an InputError."""
    table = read_table(path, NODE_FIELDS, _node)
    if len(table.aside):
        at = int(np.argmin(table.aside.line))
        raise InputError(path, int(table.aside.line[at]), table.aside.reasons[table.aside.reason[at]])
    kinds = []
    for (cores, memory, gpus, model), nodes in Counter(row[1:] for row in table.rows).items():
        name = f"{gpus}x{model}" if gpus else "cpu"
        features = (model,) if model else ()
        kinds.append(NodeKind(f"{name}-{cores}m-{memory}mb", nodes, (cores, memory, gpus), features))
    try:
        return by_node(RESOURCES, tuple(kinds), shared="gpus")
    except ValueError as error:
        raise InputError(path, 0, str(error)) from error


def read_pods(path: str | Path) -> Workload:
    """The workload of a pod list: each pod is a job of one unit.

    submit: creation_time. runtime: deletion_time - creation_time, how long the pod was there; pods that were never
    scheduled are kept too. limit: the run time, because nothing else is known. gpu_share: gpu_milli, of each of num_gpu
    devices. feature: gpu_spec, models of GPU of which any will do, with | between them. status: 1 succeeded, 0 failed,
    -1 neither. The machine's size is not in the file.
    """
    table = read_table(path, POD_FIELDS, _pod)
    names = ("id", "submit", "runtime", "size", "unit_memory_mb", "unit_gpus", "gpu_share", "status")
    columns: dict[str, Column] = {name: table.column(place) for place, name in enumerate(names)}
    columns |= {"limit": columns["runtime"], "unit_cores": columns["size"], "line": table.line}
    columns["units"] = np.ones(len(table.rows), np.int64)
    wanted = [row[len(names)] for row in table.rows]
    models = tuple(sorted(set(wanted) - {""}))
    if models:
        columns["feature"] = np.array([models.index(one) if one else -1 for one in wanted], np.int64)
    order = np.argsort(columns["submit"], kind="stable")
    moved = _out_of_order(table)
    path = Path(path)
    steps = (Step("sorted by submit", changed=moved),) if moved else ()
    provenance = Provenance(path.name, table.sha256, len(table.rows) + len(table.aside), THANKS, steps)
    return Workload(
        path.name.partition(".")[0], {name: values[order] for name, values in columns.items()}, 0, provenance,
        table.aside, {"Computer": ("Alibaba GPU cluster, 2023",)}, {"feature": models} if models else {},
    )  # fmt: skip


def _out_of_order(table: Rows) -> int:
    submit = table.column(1)
    return int(np.count_nonzero(submit < np.maximum.accumulate(submit)))


def _node(texts: list[str]) -> tuple[int | str, ...]:
    name, cores, memory, gpus, model = texts
    amounts = (count(cores, "cpu_milli", 1), count(memory, "memory_mib"), count(gpus, "gpu"))
    if "|" in model or bool(model) != bool(amounts[2]):
        raise ValueError("a node with GPUs has one model, and one without has none")
    return (_ordinal(name), *amounts, model)


def _pod(texts: list[str]) -> tuple[int | str, ...]:
    name, cores, memory, gpus, milli, models, _, phase, created, deleted, _ = texts
    submit = count(created, "creation_time", 0, MOST_SECONDS)
    end = count(deleted, "deletion_time", 0, MOST_SECONDS)
    if end < submit:
        raise ValueError("deletion_time is before creation_time")
    devices = count(gpus, "num_gpu")
    share = count(milli, "gpu_milli", 1 if devices else 0, WHOLE)
    return (
        _ordinal(name), submit, end - submit, count(cores, "cpu_milli", 1), count(memory, "memory_mib"), devices, share,
        {"Succeeded": 1, "Failed": 0}.get(phase, -1), "|".join(filter(None, models.split("|"))),
    )  # fmt: skip


def _ordinal(name: str) -> int:
    """The number at the end of a name: `openb-pod-0017` is 17."""
    return count(name.rpartition("-")[2], "what the name ends in")
