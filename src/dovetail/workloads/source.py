"""One door for all files that hold a workload."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from dovetail.model.workload import Workload
from dovetail.workloads.alibaba import POD_FIELDS, read_pods
from dovetail.workloads.eurora import FIELDS, read_eurora
from dovetail.workloads.parquet import read_parquet
from dovetail.workloads.swf import read_swf
from dovetail.workloads.tables import first_line

_TABLES: Final[dict[str, Callable[[str | Path], Workload]]] = {
    ",".join(FIELDS): read_eurora,
    ",".join(POD_FIELDS): read_pods,
}
"""Readers of tables by the first line of the file."""


def read_workload(path: str | Path) -> Workload:
    """Read a workload: Parquet if the file is called .parquet, the Eurora days or Alibaba's pods if its first line
    names their fields, else SWF. All but Parquet plain or packed with gzip, xz or zstd."""
    if Path(path).suffix == ".parquet":
        return read_parquet(path)
    return _TABLES.get(first_line(path), read_swf)(path)
