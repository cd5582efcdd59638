"""Schedules out: as SWF whose wait column is the simulated wait, and as Parquet with everything."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from dovetail.arrays import Ints
from dovetail.io.sealed import write_sealed
from dovetail.io.swf import write_swf
from dovetail.model.schedule import Schedule


def write_schedule_swf(schedule: Schedule, path: str | Path) -> None:
    """The workload with its simulated waits; a job that never started has -1."""
    wait = _wait(schedule)
    note = (
        f"simulated: policy {schedule.policy}, estimate {schedule.estimate}, dovetail {schedule.versions['dovetail']}"
    )
    write_swf(schedule.workload, path, wait=wait, note=note)


def _wait(schedule: Schedule) -> Ints:
    """Seconds from submit to start, also where a job came into the queue later; with feedback, from what brought it."""
    return np.where(schedule.start >= 0, schedule.wait + schedule.workload.held_s, -1)


def write_schedule_parquet(schedule: Schedule, path: str | Path) -> None:
    """One row per job: its columns, arrival, start, end, wait and promises. How it was made is in the metadata."""
    import polars as pl

    columns = {name: values for name, values in schedule.workload.columns.items() if name != "wait"}
    started = schedule.start >= 0
    columns |= {
        "arrive": schedule.arrive,
        "start": schedule.start,
        "end": np.where(started, schedule.end, -1),
        "wait": _wait(schedule),
        "promised_first": schedule.promised_first,
        "promised_last": schedule.promised_last,
    }
    if len(schedule.accepted):
        columns["deadline_accepted"] = schedule.accepted
    about = {
        "trace": schedule.workload.name, "workload_sha256": schedule.workload.digest(), "policy": schedule.policy,
        "estimate": schedule.estimate, "processors": schedule.cluster.processors, "passes": schedule.passes,
        "seed": schedule.seed, "versions": schedule.versions, "clairvoyant": schedule.clairvoyant,
    }  # fmt: skip
    write_sealed(pl.DataFrame(columns), Path(path), {"dovetail.schedule": json.dumps(about)})
