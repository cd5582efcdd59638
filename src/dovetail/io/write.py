"""One door for all files that are written: workloads and schedules, by the name of the file."""

from __future__ import annotations

from pathlib import Path

from dovetail.io.parquet import write_parquet
from dovetail.io.schedules import write_schedule_parquet, write_schedule_swf
from dovetail.io.swf import write_swf
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload


def write(what: Workload | Schedule, path: str | Path, note: str = "") -> None:
    """Write a workload or a schedule: Parquet if the file is to be called .parquet, else SWF, packed as its name says.
    `note`: a line for the header of a workload's SWF."""
    parquet = Path(path).suffix == ".parquet"
    if isinstance(what, Schedule):
        (write_schedule_parquet if parquet else write_schedule_swf)(what, path)
    elif parquet:
        write_parquet(what, path)
    else:
        write_swf(what, path, note=note)
