"""What a study will cost, before it runs: from runs that are in the store, else from a short probe."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median

from dovetail.engine.replay import replay
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.studies.store import Store, cluster_of
from dovetail.studies.task import Task

PROBE = 500
"""Jobs of a probe, taken from the middle of a workload, where the queue is more like the usual one."""
PROBE_S = 5.0
"""CPU seconds after which a probe is broken off, while its jobs are still coming: a solver may take as long for one
pass."""
KEEP_S = 0.01
"""CPU seconds to measure and keep a run, however short."""
UNKNOWN_S = 1e-4
"""CPU seconds per job where a probe fails: the run itself will say why."""

Kind = tuple[str, str, str]
"""Trace, policy and estimate: within these the cost per job is taken to be the same."""


class _EnoughError(Exception):
    """A probe has taken long enough."""

    def __init__(self, started: int) -> None:
        self.started = started


def costs(tasks: Sequence[Task], store: Store) -> dict[str, float]:
    """Estimated CPU seconds of each task, by name. Deep queues cost more than a probe can see: a rough guide."""
    per_job = _from_runs(store)
    workloads: dict[str, Workload] = {}
    found = {}
    for task in sorted(tasks, key=lambda task: -task.jobs):  # probes see the largest workload of a kind
        kind = (task.cell.trace, task.cell.policy, task.cell.estimate)
        if kind not in per_job:
            if task.cell.trace not in workloads:
                workloads[task.cell.trace] = _middle(store.workload(task.workload_sha256))
            per_job[kind] = _probe(task, workloads[task.cell.trace])
        found[task.name] = KEEP_S + per_job[kind] * task.jobs
    return found


def _from_runs(store: Store) -> dict[Kind, float]:
    frame = store.frame()
    if not len(frame):
        return {}
    seen: dict[Kind, list[float]] = {}
    columns = ("trace", "policy", "estimate", "cpu_s", "jobs")
    for trace, name, estimate, cpu_s, jobs in frame.select(columns).iter_rows():
        seen.setdefault((trace, name, estimate), []).append(cpu_s / max(jobs, 1))
    return {kind: median(values) for kind, values in seen.items()}


def _middle(workload: Workload) -> Workload:
    import numpy as np

    keep = np.zeros(len(workload), np.bool_)
    begin = max(0, (len(workload) - PROBE) // 2)
    keep[begin : begin + PROBE] = True
    return workload.take(keep, "probe")


def _probe(task: Task, workload: Workload) -> float:
    """CPU seconds per job of a short replay. The kernels must be loaded: `runner.warm_up` does that."""
    clock = time.process_time()

    def tell(started: int) -> None:
        if time.process_time() - clock > PROBE_S:
            raise _EnoughError(started)

    try:
        replay(
            workload, policy(task.policy), cluster=cluster_of(task.processors, task.cluster), estimate=task.estimate,
            feedback=task.feedback, every_s=task.every_s, seed=task.cell.seed,
            progress=tell,
        )  # fmt: skip
    except _EnoughError as enough:
        return (time.process_time() - clock) / max(enough.started, 1)
    except (Exception, SystemExit):  # a policy is the user's code and may raise anything
        return UNKNOWN_S
    return (time.process_time() - clock) / max(len(workload), 1)
