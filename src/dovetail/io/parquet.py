"""Workloads as Parquet: one column per column, and all that is known about them in the file's metadata.

Nothing is lost on the way: header, provenance and every set-aside line come back (docs/workloads.md).
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from dovetail.errors import InputError
from dovetail.io.sealed import write_sealed
from dovetail.io.streams import polars_failures, regular_file
from dovetail.io.swf import beyond_caps
from dovetail.kernels.swf import MOST_PROCESSORS
from dovetail.model.workload import (
    LICENCE,
    OPTIONAL,
    REQUIRED,
    UNIT,
    Column,
    Provenance,
    SetAside,
    Step,
    Workload,
    is_column,
)
from dovetail.units import printable

META: Final = "dovetail"
ASIDE: Final = "dovetail.set_aside"
FORMAT: Final = 1
MOST_JOBS: Final = 200_000_000
"""A small file can claim any number of equal rows; beyond this many it is not read."""
MOST_ASIDE: Final = 4_000_000
"""Set-aside lines that a file's metadata may hold: about 70 MB of JSON, tried with polars."""


def write_parquet(workload: Workload, path: str | Path) -> None:
    """Write a workload, all of it, to one file, as a whole or not at all."""
    import polars as pl

    if len(workload.set_aside) > MOST_ASIDE:
        raise ValueError(
            f"workload {workload.name!r} has {len(workload.set_aside):,} lines set aside; "
            f"a Parquet file holds at most {MOST_ASIDE:,}: read the log in parts"
        )
    if broken := beyond_caps(workload.columns):
        raise ValueError(f"workload {workload.name!r} cannot be written: {broken}")
    past, aside = workload.provenance, workload.set_aside
    about = {
        "format": FORMAT,
        "name": workload.name,
        "processors": workload.processors,
        "provenance": asdict(past),
        "header": dict(workload.header),
        "names": dict(workload.names),
        "set_aside": aside.counts(),
    }
    table = {
        "reasons": aside.reasons,
        "line": aside.line.tolist(),
        "id": aside.id.tolist(),
        "reason": aside.reason.tolist(),
    }
    metadata = {META: json.dumps(about), ASIDE: json.dumps(table, separators=(",", ":"))}
    frame = pl.DataFrame(dict(workload.columns))
    write_sealed(frame, Path(path), metadata)


def read_parquet(path: str | Path) -> Workload:
    """Read a workload that `write_parquet` wrote, or a file with the same columns and no more: such a one does not say
    how large its machine is. InputError for any other file and values beyond caps."""
    import polars as pl

    path = regular_file(Path(path))
    try:
        with path.open("rb") as stream:
            metadata = pl.read_parquet_metadata(stream)
            stream.seek(0)
            if META not in metadata or ASIDE not in metadata:
                return _without_metadata(path, pl.scan_parquet(stream))
            columns = _columns(path, pl.scan_parquet(stream))
    except polars_failures() as error:
        raise InputError(path, 0, f"not a Parquet file, or damaged: {printable(str(error))}") from error
    try:
        return _workload(columns, json.loads(metadata[META]), json.loads(metadata[ASIDE]))
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError, AttributeError) as error:
        raise InputError(path, 0, f"its metadata are not as Dovetail writes them: {printable(repr(error))}") from error


def _without_metadata(path: Path, frame: Any) -> Workload:
    """A file of any program whose columns are called as ours: jobs in any order, whole numbers of any width, other
    columns left out."""
    import polars as pl

    schema = frame.collect_schema()
    if missing := [name for name in REQUIRED if name not in schema]:
        rule = f"a Parquet file, but not a workload: it lacks Dovetail's metadata and the columns {missing}"
        raise InputError(path, 0, f"{rule}. `dovetail workload import` makes one of a table of jobs")
    ours = [name for name in schema if is_column(name)]
    for name in ours:
        if not (schema[name].is_float() if name == "cpu_s" else schema[name].is_integer()):
            rule = f"column {name} has no whole numbers but {schema[name]}"
            raise InputError(path, 0, f"{rule}. `dovetail workload import` reads times and durations")
    kinds = [pl.Float64 if name == "cpu_s" else pl.Int64 for name in ours]
    plain = frame.select(pl.col(name).cast(kind) for name, kind in zip(ours, kinds, strict=True))
    others = [pl.col(name).fill_null(-1) for name in ours if name not in REQUIRED[:4]]
    columns = _columns(path, plain.with_columns(others).sort("submit", maintain_order=True))
    name = path.name.partition(".")[0]
    return Workload(name, columns, 0, Provenance(path.name, lines=len(columns["id"])))


def _columns(path: Path, frame: Any) -> dict[str, Column]:
    """The columns of a file after checks of their names, types, number and values."""
    import polars as pl

    schema = frame.collect_schema()
    for name, kind in schema.items():
        wanted = pl.Float64 if name == "cpu_s" else pl.Int64
        if not is_column(name) or kind != wanted:
            known = f"{REQUIRED + OPTIONAL}, {UNIT}RESOURCE and {LICENCE}NAME"
            raise InputError(path, 0, f"column {printable(name)!r} of type {kind}; a workload has {known}")
    if missing := [name for name in REQUIRED if name not in schema]:
        raise InputError(path, 0, f"lacks the columns {missing}")
    jobs = frame.select(pl.len()).collect().item()
    if jobs > MOST_JOBS:
        raise InputError(path, 0, f"{jobs:,} jobs; at most {MOST_JOBS:,} are read")
    table = frame.collect()
    if sum(table.null_count().row(0)):
        raise InputError(path, 0, "empty values; a workload writes -1 for what is not known")
    columns: dict[str, Column] = {name: table[name].to_numpy() for name in table.columns}
    if broken := beyond_caps(columns):
        raise InputError(path, 0, broken)
    return columns


def _workload(columns: dict[str, Column], about: Any, table: Any) -> Workload:
    """Put a workload together again. Raises one of a few built-in errors where the metadata are not ours."""
    if about["format"] != FORMAT:
        raise ValueError(f"format {about['format']!r}, this version reads format {FORMAT}")
    past = about["provenance"]
    steps = tuple(Step(_text(s["name"]), _count(s["removed"]), _count(s["changed"])) for s in past["steps"])
    provenance = Provenance(
        _text(past["source"]), _text(past["sha256"]), _count(past["lines"]), _text(past["acknowledge"]), steps
    )
    aside = SetAside(
        np.array(table["line"], np.int64),
        np.array(table["id"], np.int64),
        np.array(table["reason"], np.int16),
        tuple(_text(reason) for reason in table["reasons"]),
    )
    codes = aside.reason
    if not aside.line.shape == aside.id.shape == codes.shape == (len(codes),):
        raise ValueError("the lists of set-aside lines differ in length")
    if len(codes) and not 0 <= codes.min() <= codes.max() < len(aside.reasons):
        raise ValueError("a set-aside line without a reason")
    header = {_text(key): tuple(_text(v) for v in values) for key, values in about["header"].items()}
    names = {_text(key): tuple(_text(v) for v in values) for key, values in about.get("names", {}).items()}
    processors = _count(about["processors"])
    if processors > MOST_PROCESSORS:
        raise ValueError(f"{processors} processors; at most {MOST_PROCESSORS}")
    return Workload(_text(about["name"]), columns, processors, provenance, aside, header, names)


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise TypeError(f"{value!r} is not a count")
    return value
