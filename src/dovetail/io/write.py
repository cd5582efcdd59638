"""One door for all files that are written: workloads and schedules, by the name of the file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.errors import SettingError
from dovetail.files import beside
from dovetail.io.parquet import write_parquet
from dovetail.io.perfetto import SUFFIXES, write_perfetto
from dovetail.io.schedules import write_schedule_parquet, write_schedule_swf
from dovetail.io.swf import write_swf
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload

if TYPE_CHECKING:
    import polars as pl


def write(what: Workload | Schedule, path: str | Path, note: str = "") -> None:
    """Write a workload or a schedule: Parquet or CSV if the file is to be called so, a schedule as a Perfetto trace if
    that is .perfetto.json or .perfetto.json.gz, else SWF, packed as its name says. `note`: a line for the header of a
    workload's SWF."""
    parquet = Path(path).suffix == ".parquet"
    if Path(path).name.endswith(SUFFIXES):
        if not isinstance(what, Schedule):
            raise SettingError(
                f"{Path(path).name}: a Perfetto trace shows a schedule, and this is a workload: replay it first"
            )
        write_perfetto(what, path)
    elif Path(path).suffix == ".csv":
        _write_csv(what, Path(path))
    elif isinstance(what, Schedule):
        (write_schedule_parquet if parquet else write_schedule_swf)(what, path)
    elif parquet:
        write_parquet(what, path)
    else:
        write_swf(what, path, note=note)


def _write_csv(what: Workload | Schedule, path: Path) -> None:
    """The columns of `jobs()`, one row per job; nodes with blanks between them."""
    import polars as pl

    frame = what.jobs()
    if "nodes" in frame.columns:
        frame = frame.with_columns(pl.col("nodes").cast(pl.List(pl.String)).list.join(" "))
    write_frame(frame, path)


def write_frame(frame: pl.DataFrame, path: Path) -> None:
    """A frame as CSV. A text that a spreadsheet would take for a formula gets an apostrophe before it."""
    import polars as pl

    texts = [pl.col(name) for name, kind in frame.schema.items() if kind == pl.String]
    formula = r"^[=+\-@\t\r]"
    safe = [pl.when(one.str.contains(formula)).then(pl.concat_str(pl.lit("'"), one)).otherwise(one) for one in texts]
    with beside(path) as new:
        frame.with_columns(one.name.keep() for one in safe).write_csv(new)
