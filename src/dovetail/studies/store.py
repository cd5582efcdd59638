"""The store: a folder with one Parquet file per run. The files are the truth; the index can be made from them.

    STORE/runs/NAME.parquet          one row: cell, provenance, metrics (a struct), the starts of all jobs, their nodes
    STORE/workloads/SHA256.parquet   the jobs that were replayed
    STORE/study.json                 the study that was run last, and the names of its runs
    STORE/index.parquet              all rows, flat and without the starts; remade whenever files came or went

Files are there as a whole or not at all, and say themselves whether they still are (io/sealed.py). docs/store.md has
every field.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from dataclasses import asdict, replace
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import DovetailError, InputError
from dovetail.files import beside, folder
from dovetail.io.node_list import host_list, hosts
from dovetail.io.parquet import read_parquet, write_parquet
from dovetail.io.sealed import is_whole, write_sealed
from dovetail.io.streams import polars_failures
from dovetail.model.cluster import Cluster, NodeKind, Outage
from dovetail.model.requests import Placement, requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.workload import SetAside, Workload
from dovetail.studies.identity import worker_code
from dovetail.studies.task import FORMAT

if TYPE_CHECKING:
    import polars as pl

    from dovetail.reports.page_data import Case
    from dovetail.studies.spec import Study

PASS_TIMES: Final = (
    "pass_p50_ms", "pass_p99_ms", "pass_max_ms", "search_share", "search_p50_ms", "search_p99_ms", "pass_overhead_ms",
)  # fmt: skip
"""Columns on the time of one pass; null where the study did not ask for it."""

VOLATILE: Final = ("cpu_s", "peak_mb", "made_at", "host", "versions", *PASS_TIMES)
"""Columns that differ from one execution to the next; all others are the same bytes each time."""

FACTS: Final = (
    "run", "format", "trace", "scenario", "span", "policy", "estimate", "seed", "code", "workload_sha256",
    "policy_sha256", "estimate_sha256", "ortools", "processors", "cluster", "counting",
    "feedback", "every_s", "keep", "clairvoyant", "recorded", "passes", *VOLATILE,
)  # fmt: skip
"""Columns that are no metrics."""

STARTS: Final = ("start", "arrive", "promised_first", "promised_last", "said", "accepted")
"""Columns with one number per job of the workload, in its order; null where there is nothing to say."""

PLACES: Final = ("node", "devices")
"""Columns with one number per unit of all jobs, in their order: only in runs on nodes."""


class Store:
    """The runs of a study, in a folder: `frame` has all of them, `cases` compares them, `report` writes their page."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)

    def __repr__(self) -> str:
        return f"Store: {self.path}, {len(self.names()) if self._runs.is_dir() else 0:,} runs"

    def create(self) -> None:
        """Make the folders, and clear away what a killed process left half written."""
        for one in (self.path, self._runs, self._workloads):
            folder(one)

    def mend(self) -> int:
        """Delete the runs that are damaged, so that they are run again: how many they were."""
        broken = [path for path in map(self._path, self.names()) if _damaged(path)]
        for path in broken:
            path.unlink(missing_ok=True)
        return len(broken)

    def names(self) -> set[str]:
        """The runs that are there."""
        if not self._runs.is_dir():
            raise InputError(self.path, 0, "not a store: it has no folder `runs` (`dovetail study run` makes one)")
        with os.scandir(self._runs) as files:
            return {f.name.removesuffix(".parquet") for f in files if f.name.endswith(".parquet") and f.name[0] != "."}

    def keep(self, workload: Workload) -> None:
        """Put a workload into the store, if it is not there."""
        path = self._workloads / f"{workload.digest()}.parquet"
        if not path.exists() or _damaged(path):
            # Without the list of lines set aside: the steps say how many, and spans would repeat it.
            write_parquet(replace(workload, set_aside=SetAside()), path)

    def workload(self, sha256: str) -> Workload:
        path = self._workloads / f"{sha256}.parquet"
        try:
            return _read(path)
        except InputError as error:
            raise InputError(path, 0, f"{error.rule}; run the study again") from error

    def write(self, name: str, row: dict[str, Any], metrics: dict[str, float], starts: dict[str, Ints | None]) -> None:
        """Keep a run: it is there, whole and on disk, when this returns."""
        import polars as pl

        frame = pl.from_dicts([row], schema={key: _kind(value) for key, value in row.items()})
        inside = pl.from_dicts([metrics], schema={key: _kind(value) for key, value in metrics.items()})
        lists = []
        for key in STARTS:
            values = starts.get(key)
            missing = pl.Series(key, [None], dtype=pl.List(pl.Int64))
            lists.append(missing if values is None else pl.Series(key, values, dtype=pl.Int64).implode())
        lists += [pl.Series(key, starts[key], dtype=pl.Int64).implode() for key in PLACES if key in starts]
        frame = frame.with_columns(inside.to_struct("metrics"), *lists)
        write_sealed(frame, self._path(name), compression="zstd", statistics=False)

    def frame(self, names: set[str] | None = None) -> pl.DataFrame:
        """One row per run (of all, or of those named), without the starts, in order of the names."""
        import polars as pl

        there = self.names()
        index = self.path / "index.parquet"
        known = _readable(index)
        if known is None or set(known["run"]) != there:
            old = set() if known is None else set(known["run"]) & there
            parts = [
                self._row(name).drop(*STARTS, *PLACES, strict=False).unnest("metrics") for name in sorted(there - old)
            ]
            if known is not None and old:
                parts.insert(0, known.filter(pl.col("run").is_in(list(old))))
            known = pl.concat(parts, how="diagonal_relaxed").sort("run") if parts else pl.DataFrame({"run": []})
            write_sealed(known, index)
        return known if names is None else known.filter(pl.col("run").is_in(list(names)))

    def earlier(self) -> set[str]:
        """The runs that were made by an earlier version: by other code than a worker's today, or named otherwise."""
        import polars as pl

        frame = self.frame()
        if "format" not in frame.columns:
            return set(frame["run"])
        now = (pl.col("format") == FORMAT).fill_null(False) & (pl.col("code") == worker_code())
        return set(frame.filter(~now)["run"])

    def schedule(self, name: str) -> Schedule | None:
        """The schedule of a run; None if its starts were not kept."""
        from dovetail.predict.known import estimates, is_known

        frame = self._row(name)
        row = frame.drop(*STARTS, *PLACES, strict=False).row(0, named=True)
        # Older runs have fewer starts, and those without nodes no places.
        row |= {key: _numbers(frame[key]) if key in frame.columns else None for key in STARTS + PLACES}
        if row["start"] is None:
            return None
        workload = self.workload(row["workload_sha256"])
        none = np.full(len(workload), -1, np.int64)
        known = estimates(workload, row["estimate"]) if is_known(row["estimate"]) else np.empty(0, np.int64)
        start, arrive, first, last, said, accepted = (
            default if row[key] is None else row[key]
            for key, default in zip(STARTS, (none, workload.submit, none, none, known, none[:0]), strict=True)
        )
        try:
            cluster = cluster_of(row["processors"], row.get("cluster") or "")
            placement = _placement(workload, cluster, row["node"], row["devices"])
        except (DovetailError, ValueError) as error:
            rule = f"its nodes are damaged: {error!r}; delete it and run the study again"
            raise InputError(self._path(name), 0, rule) from error
        return Schedule(
            workload, cluster, row["policy"], row["estimate"], start, arrive, first, last,
            row["passes"], row["seed"], json.loads(row["versions"]), said, bool(row.get("clairvoyant")),
            accepted, placement, recorded=bool(row.get("recorded")),
        )  # fmt: skip

    def cases(self, pair: str = "") -> tuple[Case, ...]:
        """What the study found, case by case: each shows as a table, and has `frame`, `versus`, `plot` and `report`.
        `pair`: `runs` (the same span and seed), `weeks` or `users`; empty: what fits best."""
        from dovetail.studies.cases import content

        return content(self, pair).cases

    def write_study(self, study: Study, text: str, runs: list[str]) -> None:
        """Write down what is run now: the study, its text, and the names of its runs."""
        about = {"name": study.name, "baseline": study.base, "text": text, "runs": runs}
        with beside(self.path / "study.json") as new:
            new.write_text(json.dumps(about, indent=1), encoding="utf-8")

    def study(self) -> dict[str, Any]:
        """What was run last: name, baseline, the study's text, and the names of its runs."""
        path = self.path / "study.json"
        try:
            about = json.loads(path.read_text(encoding="utf-8"))
            if not all(isinstance(text, str) for text in (about["name"], about["baseline"], *about["runs"])):
                raise TypeError("name, baseline and runs are texts")
            return {key: about[key] for key in ("name", "baseline", "text", "runs")}
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            raise InputError(path, 0, f"not a store's: {error!r}; `dovetail study run` writes it") from error

    def digest(self) -> str:
        """SHA-256 over all that is the same in every execution: equal stores have equal digests."""
        h = hashlib.sha256()
        for name in sorted(self.names()):
            frame = self._row(name).unnest("metrics")
            for key in sorted(set(frame.columns) - set(VOLATILE)):
                h.update(key.encode())
                h.update(_bytes(_numbers(frame[key]) if key in STARTS + PLACES else frame[key][0]))
        return h.hexdigest()

    def _row(self, name: str) -> pl.DataFrame:
        """A run as it is in its file."""
        import polars as pl

        path = self._path(name)
        try:
            data = path.read_bytes()
            if is_whole(data):
                return pl.read_parquet(BytesIO(data))
            why = "cut short, or changed"
        except polars_failures() as error:
            why = str(error)
        raise InputError(path, 0, f"not a run, or damaged: {why}; `dovetail study run` makes it again")

    def _path(self, name: str) -> Path:
        return self._runs / f"{name}.parquet"

    @property
    def _runs(self) -> Path:
        return self.path / "runs"

    @property
    def _workloads(self) -> Path:
        return self.path / "workloads"


def _damaged(path: Path) -> bool:
    """Whether a file is there, and not as it was written."""
    try:
        return not is_whole(path.read_bytes())
    except FileNotFoundError:  # gone: another process has found it damaged too
        return False


@lru_cache(maxsize=4)
def _read(path: Path) -> Workload:
    """A workload; the last few are remembered, since neighbouring runs often share theirs."""
    if _damaged(path):
        raise InputError(path, 0, "damaged")
    return read_parquet(path)


_OUTAGE: Final = ("nodes", "begin", "end", "only", "known", "fails")


def nodes_of(cluster: Cluster) -> dict[str, Any]:
    """The nodes of a cluster as plain values."""
    said = {key: value for key, value in asdict(cluster).items() if key not in ("processors", "names")}
    return said | ({"hosts": host_list(cluster.names)} if cluster.names else {})


def nodes_text(cluster: Cluster) -> str:
    """The nodes of a cluster as JSON, for the column `cluster` of a run."""
    return json.dumps(nodes_of(cluster), sort_keys=True)


def cluster_of(processors: int, text: str) -> Cluster:
    """The cluster of a run: its processors; with the nodes that the text names, if there is one."""
    if not text:
        return Cluster(processors)
    try:
        said = json.loads(text)
        kinds = tuple(
            NodeKind(
                str(kind["name"]), int(kind["count"]), tuple(map(int, kind["capacity"])),
                tuple(map(str, kind["features"])),
            )
            for kind in said["kinds"]
        )  # fmt: skip
        outages = tuple(
            Outage(tuple(map(int, nodes)), int(begin), int(end), str(only), int(known), bool(fails))
            for nodes, begin, end, only, known, fails in (
                map(one.__getitem__, _OUTAGE) for one in said.get("outages", ())
            )
        )
        resources = tuple(map(str, said["resources"]))
        licences = tuple((str(name), int(count)) for name, count in said.get("licences", ()))
        names = hosts(str(said.get("hosts", "")))
        shared = str(said["shared"])
        return Cluster(processors, resources, kinds, shared, outages=outages, licences=licences, names=names)
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise DovetailError(f"the nodes of a run are damaged: {error!r}; delete it and run the study again") from error


def _placement(workload: Workload, cluster: Cluster, node: Ints | None, devices: Ints | None) -> Placement | None:
    """Where the units of all jobs were; None where the run does not say."""
    if node is None:
        return None
    first = requests_of(workload, cluster).first
    devices = np.empty(0, np.int64) if devices is None else devices
    if len(node) != first[-1] or len(devices) != (len(node) if cluster.shared else 0):
        raise ValueError(f"{len(node)} nodes and {len(devices)} sets of devices for {first[-1]} units")
    if node.min(initial=-1) < -1 or node.max(initial=-1) >= cluster.nodes:
        raise ValueError(f"a node that is none of the {cluster.nodes}")
    return Placement(first, node, devices)


def _kind(value: Any) -> Any:
    import polars as pl

    kinds = {bool: pl.Boolean, int: pl.Int64, float: pl.Float64, str: pl.String, type(None): pl.Float64}
    return kinds[type(value)]


def _bytes(value: Any) -> bytes:
    """A value as bytes, a float to its last bit."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, np.ndarray):
        return value.astype("<i8", copy=False).tobytes()
    return repr(value).encode()


def _numbers(column: pl.Series) -> Ints | None:
    """The one list in a column of STARTS or PLACES, as an array."""
    return None if column[0] is None else column[0].to_numpy()


def _readable(index: Path) -> pl.DataFrame | None:
    """The index, or None where it is missing or damaged: it is then made again."""
    import polars as pl

    try:
        data = index.read_bytes()
        found = pl.read_parquet(BytesIO(data if is_whole(data) else b""))
    except polars_failures():
        return None
    return found if "run" in found.columns else None
