"""One door for all files that hold a workload."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

from dovetail.io.alibaba import POD_FIELDS, read_pods
from dovetail.io.csv import first_line
from dovetail.io.eurora import FIELDS, read_eurora
from dovetail.io.parquet import read_parquet
from dovetail.io.swf import read_swf
from dovetail.model.workload import Workload

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
