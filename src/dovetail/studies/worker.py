"""What a worker does: replay a cell, measure it, keep the run. Nothing is handed back but how it went."""

from __future__ import annotations

import json
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dovetail.process import cpu_s, peak_mb
from dovetail.studies.identity import worker_code

if TYPE_CHECKING:
    from dovetail.arrays import Ints
    from dovetail.energy.site import Site
    from dovetail.engine.pass_times import PassTimes
    from dovetail.model.schedule import Schedule
    from dovetail.model.workload import Workload
    from dovetail.studies.task import Task

_THREADS = ("POLARS_MAX_THREADS", "NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def run_batch(store: str, tasks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Run tasks one after another; each is kept as soon as it is done. Says for each its name, its CPU time in
    seconds, and the error that it ended with, if it did."""
    one_thread()
    return [_tried(store, task) for task in tasks]


def one_thread() -> None:
    """One thread per worker, for libraries that have not started theirs yet."""
    for name in _THREADS:
        os.environ.setdefault(name, "1")


def _tried(store: str, values: dict[str, Any]) -> dict[str, Any]:
    from dovetail.errors import DovetailError
    from dovetail.studies.task import from_plain

    task = from_plain(values)
    clock, error = cpu_s(), ""
    try:
        _run(Path(store), task)
    except DovetailError as wrong:
        error = str(wrong)
    except (Exception, SystemExit) as wrong:  # a policy is the user's code: what it raises ends its cell and no other
        error = f"{type(wrong).__name__}: {wrong}"
    return {"name": task.name, "cpu_s": cpu_s() - clock, "error": error}


def _run(path: Path, task: Task) -> None:
    from dataclasses import asdict

    import numpy as np

    from dovetail.errors import DovetailError
    from dovetail.io.sites import read_site
    from dovetail.metrics import summarize
    from dovetail.predict.known import estimates, is_known
    from dovetail.studies.identity import hash_of_files, ortools_version
    from dovetail.studies.store import Store, nodes_text
    from dovetail.studies.task import FORMAT

    if task.code != worker_code():
        raise DovetailError("this worker has another version of Dovetail than the command that sent it the cell")
    if (task.policy_sha256, task.estimate_sha256) != (hash_of_files(task.policy), hash_of_files(task.estimate)):
        raise DovetailError("a file of the policy or the estimate has changed since the study began; run it again")
    if task.ortools and task.ortools != ortools_version():
        here = ortools_version() or "not installed"
        raise DovetailError(f"this cell was made for OR-Tools {task.ortools}; where this worker runs, it is {here}")
    store = Store(path)
    workload = store.workload(task.workload_sha256)
    site = read_site(Path(task.site)) if task.site else None
    if site is not None and site.digest() != task.site_sha256:
        raise DovetailError("the site, or a file of its hours, has changed since the study began; run it again")
    clock = cpu_s()
    schedule, times = _replayed(workload, task, site)
    metrics = summarize(schedule, site, counting=task.counting)
    row = {
        "run": task.name,
        "format": FORMAT,
        **asdict(task.cell),
        **{
            key: getattr(task, key)
            for key in ("code", "workload_sha256", "policy_sha256", "estimate_sha256", "ortools")
        },
        **{key: getattr(task, key) for key in ("processors", "counting", "feedback", "every_s", "keep")},
        "clairvoyant": schedule.clairvoyant,
        "recorded": schedule.recorded,
        "passes": schedule.passes,
        "cpu_s": cpu_s() - clock,
        "peak_mb": peak_mb(),
        "made_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "host": platform.node(),
        "versions": json.dumps(schedule.versions, sort_keys=True),
        **_pass_times(times),
    }
    if schedule.cluster.kinds:
        row["cluster"] = nodes_text(schedule.cluster)
    starts: dict[str, Ints | None] = {}
    if task.keep == "starts":
        starts["start"] = schedule.start
        starts["arrive"] = None if np.array_equal(schedule.arrive, workload.submit) else schedule.arrive
        for key in ("promised_first", "promised_last"):
            promised = getattr(schedule, key)
            starts[key] = promised if bool(np.any(promised >= 0)) else None
        starts["accepted"] = schedule.accepted if len(schedule.accepted) else None
        # A policy that knows the future was told run times, whatever the estimate.
        told = estimates(workload, schedule.estimate) if is_known(schedule.estimate) else None
        starts["said"] = None if told is not None and np.array_equal(told, schedule.said) else schedule.said
        if schedule.placement is not None:
            starts |= {"node": schedule.placement.node, "devices": schedule.placement.devices}
    store.write(task.name, row, metrics, starts)


def _replayed(workload: Workload, task: Task, site: Site | None) -> tuple[Schedule, PassTimes | None]:
    """The schedule of a task, and the times of its passes if it asks for them."""
    from dovetail.engine.pass_times import timed_replay
    from dovetail.engine.replay import replay
    from dovetail.studies.store import cluster_of

    cluster = cluster_of(task.processors, task.cluster)
    cell, feedback = task.cell, task.feedback
    if task.pass_times:
        return timed_replay(
            workload, task.policy, cluster=cluster, estimate=task.estimate, feedback=feedback, seed=cell.seed, site=site
        )
    schedule = replay(
        workload, task.policy, cluster=cluster, estimate=task.estimate, feedback=feedback, every_s=task.every_s,
        seed=cell.seed, site=site,
    )  # fmt: skip
    return schedule, None


def _pass_times(times: PassTimes | None) -> dict[str, float | None]:
    """The columns of store.PASS_TIMES, in milliseconds; nan where no pass is of that kind."""
    import numpy as np

    from dovetail.studies.store import PASS_TIMES

    if times is None:
        return dict.fromkeys(PASS_TIMES)
    every, searched = 1e3 * times.seconds, 1e3 * times.seconds[times.searched]
    ms = [float(np.percentile(part, at)) if len(part) else np.nan for part in (every, searched) for at in (50, 99, 100)]
    share = len(searched) / max(len(every), 1)
    return dict(zip(PASS_TIMES, (*ms[:3], share, *ms[3:5], 1e3 * times.overhead_s), strict=True))
