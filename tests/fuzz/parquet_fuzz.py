"""Mutated Parquet against its readers: our own files with values, metadata or bytes made worse; plain ones with other
columns and types. What a file says is judged before it is written, value by value."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from dovetail.io.parquet import ASIDE, META, read_parquet
from dovetail.io.table import read_any
from dovetail.model.workload import OPTIONAL, REQUIRED, Workload
from tests.fuzz.common import NASTY, Tally, asked, worse_bytes, written

TIMES = ("submit", "wait", "runtime", "limit", "think_s", "deadline_s", "soft_limit")
COUNTS = ("size", "allocated", "units", "per_node", "gpu_share", "unit_cores", "gpus", "power_mw")
NAMES = (*REQUIRED, *OPTIONAL, "unit_cores")
HUGE = (-(2**63), 2**63 - 1, -2, -1, 0, 10**9, 10**9 + 1, 10**10, 10**10 + 1, -(10**10) - 1, 2**31, 2**53 + 1, 3)


def made(jobs: int, rng: random.Random) -> dict[str, list[Any]]:
    """Columns of a good workload."""
    chance = np.random.default_rng(rng.getrandbits(64))
    columns: dict[str, Any] = {"id": np.arange(1, jobs + 1), "submit": np.sort(chance.integers(0, 10**6, jobs))}
    columns |= {name: chance.integers(1, 99_999, jobs) for name in ("size", "runtime", "limit")}
    for name in rng.sample((*OPTIONAL, "unit_cores"), rng.randrange(6)):
        columns[name] = chance.random(jobs) * 99 if name == "cpu_s" else chance.integers(-1, 2, jobs)
    return {name: values.tolist() for name, values in columns.items()}


def good(columns: dict[str, list[Any]]) -> bool:
    """Whether every value is within the caps of a log and jobs are in order, each with its own number."""
    for name in columns:
        if name in TIMES and any(abs(value) > 10**10 for value in columns[name]):
            return False
        if name in COUNTS and any(abs(value) > 10**9 for value in columns[name]):
            return False
    if any(value != value or abs(value) >= 2.0**63 for value in columns.get("cpu_s", ())):
        return False
    if any(value in (2, 3, 4) for value in columns.get("status", ())) or any(value < 0 for value in columns["id"]):
        return False
    return len(set(columns["id"])) == len(columns["id"]) and columns["submit"] == sorted(columns["submit"])


def same(log: Workload, columns: dict[str, list[Any]]) -> None:
    assert set(log.columns) == set(columns)
    for name in columns:
        assert log[name].tolist() == columns[name], name


def about(columns: dict[str, list[Any]], aside: int, rng: random.Random) -> dict[str, Any]:
    """Metadata as a workload has them."""
    provenance = {"source": "a.swf", "sha256": "0" * 64, "lines": len(columns["id"]) + aside, "acknowledge": "",
                  "steps": [{"name": "cut", "removed": 1, "changed": 2}]}  # fmt: skip
    head = {"format": 1, "name": "made", "processors": rng.choice((0, 128)), "provenance": provenance,
            "header": {"Computer": ["x"]}, "names": {}, "set_aside": {}}  # fmt: skip
    lines = {"reasons": ["no"], "line": list(range(aside)), "id": [-1] * aside, "reason": [0] * aside}
    return {META: head, ASIDE: lines}


def worse_json(value: Any, rng: random.Random) -> Any:
    """A value of JSON with something in it replaced, left out or put in."""
    if isinstance(value, dict) and value and rng.random() < 0.9:
        key = rng.choice(list(value))
        if rng.random() < 0.15:
            return {k: v for k, v in value.items() if k != key}
        if rng.random() < 0.1:
            return {**value, rng.choice(NASTY): rng.choice(NASTY)}
        return {**value, key: worse_json(value[key], rng)}
    if isinstance(value, list) and value and rng.random() < 0.8:
        at = rng.randrange(len(value))
        return rng.choice((value[:at], [*value[:at], worse_json(value[at], rng), *value[at + 1 :]], value * 2))
    deep: Any = []
    for _ in range(rng.choice((1, 5, 2_000))):
        deep = [deep]
    options: tuple[Any, ...] = (
        rng.choice(NASTY),
        rng.choice(HUGE),
        10**30,
        -1,
        1.5,
        None,
        True,
        {},
        [],
        [None],
        {"a": [1]},
        float("nan"),
        deep,
    )
    return rng.choice(options)


def _text(value: Any) -> str:
    try:
        return json.dumps(value)
    except RecursionError:
        return "[" * 100_000


def one(rng: random.Random, folder: Path) -> Tally:
    kind = rng.choice(("values", "metadata", "bytes", "bytes", "plain", "types", "tables"))
    return {
        "values": values, "metadata": metadata, "bytes": damaged, "plain": plain, "types": types, "tables": tables,
    }[kind](rng, folder)  # fmt: skip


def _counted(log: Workload | None, jobs: int, mutated: int, aside: int = 0) -> Tally:
    if log is None:
        return Tally(1, jobs + aside, mutated, refused=jobs + aside, refused_files=1)
    assert (len(log), len(log.set_aside)) == (jobs, aside)
    return Tally(1, jobs + aside, mutated, jobs, aside)


def _spoiled(columns: dict[str, list[Any]], rng: random.Random) -> int:
    """Some values made worse: in half of the files none that must refuse it."""
    jobs, harmless = len(columns["id"]), rng.random() < 0.5
    many = rng.randrange(jobs) if harmless else rng.randrange(1, min(jobs, 5) + 1)
    changed = set[int]()
    for _ in range(many):
        name, at = rng.choice(list(columns)), rng.randrange(jobs)
        if not harmless:
            columns[name][at] = rng.choice((float("nan"), 1e300, -1.0)) if name == "cpu_s" else rng.choice(HUGE)
            changed.add(at)
        elif name not in ("id", "submit", "status", "cpu_s"):
            columns[name][at] = rng.choice((-1, 0, 10**9, 7, -(10**9)))
            changed.add(at)
    return len(changed)


def values(rng: random.Random, folder: Path) -> Tally:
    """Our own file with values that may be beyond caps, twice there, or out of order."""
    columns = made(jobs := rng.choice((1, 30, 1_000, 10_000)), rng)
    mutated = _spoiled(columns, rng)
    path, aside = folder / "own.parquet", rng.randrange(50)
    texts = {key: _text(value) for key, value in about(columns, aside, rng).items()}
    pl.DataFrame(columns).write_parquet(path, metadata=texts)
    log, refused = asked(lambda: read_parquet(path))
    assert (log is not None) == good(columns), f"refused: {refused}"
    if log is not None:
        same(log, columns)
        assert log.provenance.lines == len(log) + len(log.set_aside)
    return _counted(log, jobs, mutated, aside)


def metadata(rng: random.Random, folder: Path) -> Tally:
    """Our own file whose metadata are not ours."""
    columns = made(jobs := rng.choice((1, 30, 300)), rng)
    path, aside = folder / "own.parquet", rng.randrange(20)
    told = about(columns, aside, rng)
    key = rng.choice((META, ASIDE))
    texts = {one: _text(worse_json(value, rng) if one == key else value) for one, value in told.items()}
    if rng.random() < 0.3:
        texts[key] = worse_bytes(texts[key].encode(), rng).decode("utf-8", "replace").replace("\0", "?")
    pl.DataFrame(columns).write_parquet(path, metadata=texts)
    log, _ = asked(lambda: read_parquet(path))
    if log is not None:
        same(log, columns)
        assert 0 <= log.processors <= 10**9
        assert sum(log.set_aside.counts().values()) == len(log.set_aside)
        aside = len(log.set_aside)
    return _counted(log, jobs, 1, aside)


def damaged(rng: random.Random, folder: Path) -> Tally:
    """Our own file with bytes changed, lost or put in: refused, or a workload within caps."""
    columns = made(jobs := rng.choice((1, 30, 300)), rng)
    path = folder / "own.parquet"
    texts = {key: _text(value) for key, value in about(columns, 3, rng).items()}
    frame = pl.DataFrame(columns)
    frame.write_parquet(path, metadata=texts if rng.random() < 0.8 else None,
                        compression=rng.choice(("zstd", "uncompressed", "snappy", "gzip")))  # fmt: skip
    data = path.read_bytes()
    for _ in range(rng.randrange(1, 4)):
        at, way = rng.randrange(len(data)), rng.randrange(4)
        if way == 0:
            data = data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
        elif way == 1:
            at = max(0, len(data) - rng.randrange(1, 2_000))  # in the footer
            data = data[:at] + bytes([rng.randrange(256)]) + data[at + 1 :]
        else:
            data = worse_bytes(data, rng)
    path = written(folder, "own.parquet", data)
    reader = rng.choice((read_parquet, lambda path: read_any(path)[0]))
    log, _ = asked(lambda: reader(path))
    if log is not None:
        assert good({name: log[name].tolist() for name in log.columns})
        return Tally(1, len(log) + len(log.set_aside), 1, len(log), len(log.set_aside))
    return _counted(log, jobs, 1)


def plain(rng: random.Random, folder: Path) -> Tally:
    """A file of any program with our columns: shuffled, of other widths, empty values, others beside them."""
    columns = made(jobs := rng.choice((1, 30, 1_000, 10_000)), rng)
    order = rng.sample(range(jobs), jobs)
    columns = {name: [given[at] for at in order] for name, given in columns.items()}
    mutated = _spoiled(columns, rng)
    frame = pl.DataFrame(columns)
    narrow = [n for n in columns if n != "cpu_s" and min(columns[n]) >= -(2**31) and max(columns[n]) < 2**31]
    frame = frame.cast({name: rng.choice((pl.Int32, pl.Int64)) for name in narrow})
    frame = frame.select(rng.sample(frame.columns, len(frame.columns)))
    gaps = [name for name in columns if name not in ("id", "submit", "size", "runtime", "cpu_s") and rng.random() < 0.3]
    for name in gaps:
        at = rng.randrange(jobs)
        frame = frame.with_columns(pl.when(pl.int_range(jobs) == at).then(None).otherwise(pl.col(name)).alias(name))
        columns[name][at] = -1
        mutated += 1
    if rng.random() < 0.5:
        frame = frame.with_columns(pl.lit("x").alias("other"))
    path = folder / "plain.parquet"
    frame.write_parquet(path)
    log, refused = asked(lambda: read_parquet(path))
    back = sorted(range(jobs), key=lambda at: columns["submit"][at])
    columns = {name: [given[at] for at in back] for name, given in columns.items()}
    assert (log is not None) == good(columns), f"refused: {refused}"
    if log is not None:
        same(log, columns)
    return _counted(log, jobs, mutated)


KINDS = (
    pl.Int8, pl.UInt8, pl.UInt64, pl.Float32, pl.Float64, pl.String, pl.Boolean, pl.Date, pl.Datetime("ms", "UTC"),
    pl.Duration("ns"), pl.Time, pl.Categorical, pl.Binary, pl.List(pl.Int64), pl.Struct({"a": pl.Int64}), pl.Null,
    pl.Decimal(20, 2), pl.Int128, pl.Object, pl.Enum(["a", "b"]), pl.Array(pl.Int64, 2),
)  # fmt: skip


def _typed(name: str, jobs: int, rng: random.Random) -> pl.Series:
    kind = rng.choice(KINDS)
    if isinstance(kind, pl.List | pl.Array):
        return pl.Series(name, [[1, 2]] * jobs, kind)
    if isinstance(kind, pl.Struct):
        return pl.Series(name, [{"a": 1}] * jobs, kind)
    if kind in (pl.String, pl.Categorical):
        return pl.Series(name, [rng.choice(NASTY) for _ in range(jobs)], kind)
    if isinstance(kind, pl.Enum):
        return pl.Series(name, ["a"] * jobs, kind)
    if kind == pl.Binary:
        return pl.Series(name, [b"\xff\x00"] * jobs, kind)
    if kind in (pl.Null, pl.Object):
        return pl.Series(name, [None] * jobs, pl.Null)
    ints = pl.Series(name, [rng.choice((0, 1, 2, 100)) for _ in range(jobs)], pl.Int64)
    if rng.random() < 0.3:
        ints = ints.set(pl.Series([rng.random() < 0.5 for _ in range(jobs)], dtype=pl.Boolean), None)
    if kind in (pl.Float32, pl.Float64) and rng.random() < 0.5:
        return pl.Series(name, [rng.choice((float("nan"), float("inf"), 1e300, -1.5, 3.0)) for _ in range(jobs)], kind)
    return ints.cast(kind)


def types(rng: random.Random, folder: Path) -> Tally:
    """A file with our columns and any types."""
    jobs = rng.choice((0, 1, 30))
    names = [name for name in NAMES if rng.random() < (0.95 if name in REQUIRED else 0.1)] or ["id"]
    columns = {name: pl.Series(name, range(jobs), pl.Int64) for name in names}
    for name in rng.sample(names, rng.randrange(min(3, len(names)) + 1)):
        columns[name] = _typed(name, jobs, rng)
    frame = pl.DataFrame(columns)
    if rng.random() < 0.2:
        frame = frame.with_columns(pl.lit(1).alias(rng.choice(NASTY)))
    path = folder / "types.parquet"
    texts = {key: _text(value) for key, value in about({"id": [0] * jobs}, 0, rng).items()}
    frame.write_parquet(path, metadata=texts if rng.random() < 0.3 else None)
    log, _ = asked(lambda: read_parquet(path))
    if log is not None:
        assert good({name: log[name].tolist() for name in log.columns})
    return _counted(log, jobs, jobs)


def tables(rng: random.Random, folder: Path) -> Tally:
    """A table of jobs with any types, to be imported."""
    jobs, begin = rng.choice((1, 30, 300)), pl.datetime(2026, 1, 1)
    step = pl.int_range(jobs)
    frame = pl.select(
        (begin + pl.duration(minutes=step)).alias("submit"), (begin + pl.duration(minutes=step + 9)).alias("start"),
        (begin + pl.duration(minutes=step + 99)).alias("end"), (step % 7 + 1).alias("cores"), step.alias("id"),
        pl.duration(hours=step % 9).alias("timelimit"), pl.lit("COMPLETED").alias("state"), pl.lit("ann").alias("user"),
    )  # fmt: skip
    for name in rng.sample(frame.columns, rng.randrange(4)):
        frame = frame.with_columns(_typed(name, jobs, rng))
    if rng.random() < 0.3:
        frame = frame.drop(rng.choice(frame.columns))
    path = folder / "table.parquet"
    frame.write_parquet(path)
    log, _ = asked(lambda: read_any(path)[0])
    if log is None:
        return _counted(None, jobs, jobs)
    assert log.provenance.lines == len(log) + len(log.set_aside) == jobs
    assert good({name: log[name].tolist() for name in log.columns})
    return Tally(1, jobs, jobs, len(log), len(log.set_aside))
