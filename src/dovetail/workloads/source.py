"""One door for all files that hold a workload."""

from __future__ import annotations

from pathlib import Path

from dovetail.model.workload import Workload
from dovetail.workloads.parquet import read_parquet
from dovetail.workloads.swf import read_swf


def read_workload(path: str | Path) -> Workload:
    """Read a workload: Parquet if the file is called .parquet, else SWF (plain, gzip, xz or zstd)."""
    return read_parquet(path) if Path(path).suffix == ".parquet" else read_swf(path)
