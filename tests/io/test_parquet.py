"""Parquet: all of a workload comes back; files of others are refused with a reason."""

from __future__ import annotations

import io
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings

from dovetail.engine.replay import replay
from dovetail.errors import InputError
from dovetail.io import parquet
from dovetail.io.parquet import read_parquet, write_parquet
from dovetail.io.read import read_workload
from dovetail.io.swf import read_swf, read_swf_stream
from dovetail.io.table import read_any
from dovetail.io.write import write
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Step, Workload
from dovetail.policies.registry import policy
from dovetail.workloads.filters import clean
from tests.conftest import TRACES, needs_traces
from tests.io.test_swf import GOOD, OTHER
from tests.io.test_swf_files import workloads


def small() -> Workload:
    header = "; free\n; MaxProcs: 8 (3, 5)\n; Note: a\n;   b é\n; Acknowledge: Ann\n"
    text = f"{header}{OTHER}\n{GOOD}\nbad line\n{GOOD}\n"
    return clean(read_swf_stream(io.BytesIO(text.encode()), "t", "t.swf"), ["users:exclude=99"])


def same(got: Workload, wanted: Workload) -> None:
    assert (got.name, got.processors, got.provenance) == (wanted.name, wanted.processors, wanted.provenance)
    assert (got.header, got.names) == (wanted.header, wanted.names)
    assert list(got.columns) == list(wanted.columns)
    for name in wanted.columns:
        assert np.array_equal(got[name], wanted[name]), name
        assert got[name].dtype == wanted[name].dtype
    for part in ("line", "id", "reason"):
        assert np.array_equal(getattr(got.set_aside, part), getattr(wanted.set_aside, part)), part
    assert got.set_aside.reasons == wanted.set_aside.reasons


def test_all_of_it_comes_back(tmp_path: Path) -> None:
    workload = replace(small(), names={"user": ("ann", "<script>"), "name": ("",)})
    assert len(workload.set_aside) == 2
    path = tmp_path / "w.parquet"
    write_parquet(workload, path)
    assert [p.name for p in tmp_path.iterdir()] == ["w.parquet"]
    same(read_parquet(path), workload)
    same(read_workload(path), workload)
    about = json.loads(pl.read_parquet_metadata(path)["dovetail"])
    assert about["set_aside"] == {"not 18 fields": 1, "a job number that an earlier line has": 1}


@given(workload=workloads())
@settings(max_examples=50, deadline=None)
def test_any_workload_survives_a_round_trip(workload: Workload, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "random.parquet"
    write_parquet(workload, path)
    same(read_parquet(path), workload)


@needs_traces
def test_a_real_log_with_thousands_set_aside(tmp_path: Path) -> None:
    workload = clean(read_swf(TRACES / "archive" / "UniLu-Gaia-2014-1.swf.gz"), ["standard", "queues:include=1"])
    assert len(workload.set_aside) > 5_000
    write_parquet(workload, tmp_path / "w.parquet")
    same(read_parquet(tmp_path / "w.parquet"), workload)


def test_more_set_aside_than_a_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parquet, "MOST_ASIDE", 1)
    with pytest.raises(ValueError, match="has 2 lines set aside; a Parquet file holds at most 1"):
        write_parquet(small(), tmp_path / "w.parquet")
    assert not list(tmp_path.iterdir())


def test_values_beyond_the_caps_are_neither_written_nor_read(tmp_path: Path) -> None:
    path = tmp_path / "w.parquet"
    with pytest.raises(ValueError, match="a time beyond"):
        write_parquet(small().with_columns(Step("t"), limit=np.array([1, 10**11])), path)
    write_parquet(small(), path)
    frame, metadata = pl.read_parquet(path), pl.read_parquet_metadata(path)
    frame.with_columns(limit=pl.lit(10**11)).write_parquet(path, metadata=metadata)
    with pytest.raises(InputError, match="a time beyond"):
        read_parquet(path)


def test_files_of_others(tmp_path: Path) -> None:
    path = tmp_path / "w.parquet"
    with pytest.raises(InputError, match="no such file"):
        read_parquet(path)
    for data in (b"", b"PAR1", b"hello" * 100):
        path.write_bytes(data)
        with pytest.raises(InputError, match="not a Parquet file, or damaged"):
            read_parquet(path)
    pl.DataFrame({"id": [1]}).write_parquet(path)
    with pytest.raises(InputError, match="lacks Dovetail's metadata"):
        read_parquet(path)


def test_a_power_that_sums_cannot_hold(tmp_path: Path) -> None:
    """A thousand processors of 10^16 mW would be more than 64 bits hold."""
    for power, good in ((10**9, True), (10**9 + 1, False)):
        frame = pl.DataFrame(
            {"id": [1], "submit": [0], "size": [1000], "runtime": [9], "limit": [9], "power_mw": [power]}
        )
        frame.write_parquet(tmp_path / "w.parquet")
        if good:
            assert read_parquet(tmp_path / "w.parquet")["power_mw"].tolist() == [power]
        else:
            with pytest.raises(InputError, match="a power beyond 1,000,000,000 mW"):
                read_parquet(tmp_path / "w.parquet")


def test_damaged_bytes_on_which_polars_panics(tmp_path: Path) -> None:
    """Its panics are no Exceptions. They begin at byte 92 of this file, as polars 2.1 writes it."""
    path = tmp_path / "w.parquet"
    write_parquet(small(), path)
    data = path.read_bytes()
    refused = []
    for at in range(85, 105):
        path.write_bytes(data[:at] + b"\0" + data[at + 1 :])
        for reader in (read_parquet, read_any):
            with suppress(InputError):
                reader(path)
                continue
            refused.append(at)
    assert refused


def test_changed_columns_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "w.parquet"
    write_parquet(small(), path)
    frame, metadata = pl.read_parquet(path), pl.read_parquet_metadata(path)
    for changed, rule in (
        (frame.drop("limit"), "lacks the columns"),
        (frame.with_columns(extra=pl.lit(1)), "column 'extra'"),
        (frame.with_columns(pl.col("limit").cast(pl.Int32)), "column 'limit' of type Int32"),
        (frame.with_columns(limit=pl.Series([1, None])), "empty values"),
        (frame.reverse(), "in order of submit"),
    ):
        changed.write_parquet(path, metadata=metadata)
        with pytest.raises(InputError, match=rule):
            read_parquet(path)
    frame.write_parquet(path, metadata=metadata)
    monkeypatch.setattr(parquet, "MOST_JOBS", 1)
    with pytest.raises(InputError, match="2 jobs; at most 1 are read"):
        read_parquet(path)


@pytest.mark.parametrize(
    ("key", "text"),
    [
        ("dovetail", "not json"),
        ("dovetail", "[]"),
        ("dovetail", '{"format": 2}'),
        ("dovetail", "[" * 100_000),
        ("dovetail.set_aside", '{"line": [1], "id": [1, 2], "reason": [0], "reasons": ["x"]}'),
        ("dovetail.set_aside", '{"line": [1], "id": [1], "reason": [1], "reasons": ["x"]}'),
        ("dovetail.set_aside", '{"line": [1], "id": [1], "reason": [-1], "reasons": ["x"]}'),
        (
            "dovetail.set_aside",
            '{"line": [99999999999999999999], "id": [1], "reason": [0], "reasons": ["x"]}',
        ),
        ("dovetail.set_aside", '{"line": [[1]], "id": [[1]], "reason": [[0]], "reasons": ["x"]}'),
    ],
)
def test_changed_metadata_are_refused(key: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / "w.parquet"
    write_parquet(small(), path)
    metadata = pl.read_parquet_metadata(path)
    pl.read_parquet(path).write_parquet(path, metadata={**metadata, key: text})
    with pytest.raises(InputError, match="not as Dovetail writes them"):
        read_parquet(path)


def test_a_file_of_another_program_with_our_columns(tmp_path: Path) -> None:
    path = tmp_path / "plain.parquet"
    frame = pl.DataFrame({
        "id": [1, 2], "submit": [50, 0], "size": [4, 2], "runtime": [10, 20], "limit": [60, None], "colour": ["a", "b"],
    }, schema_overrides={"size": pl.Int16})  # fmt: skip
    frame.write_parquet(path)
    log = read_parquet(path)
    assert (log["id"].tolist(), log.submit.tolist(), log.limit.tolist()) == ([2, 1], [0, 50], [-1, 60])
    assert (log.processors, log.provenance.lines) == (0, 2)
    frame.with_columns(size=pl.lit("many")).write_parquet(path)
    with pytest.raises(InputError, match="column size has no whole numbers but String"):
        read_parquet(path)
    frame.drop("limit").write_parquet(path)
    with pytest.raises(InputError, match="dovetail workload import"):
        read_parquet(path)


def test_csv_for_a_spreadsheet(tmp_path: Path) -> None:
    """A name that is a formula is not one any more."""
    columns = {"id": [1, 2], "submit": [0, 5], "size": [1, 2], "runtime": [3, 4], "limit": [9, -1], "user": [0, 1]}
    log = Workload("x", {k: np.array(v) for k, v in columns.items()}, 4, names={"user": ("=cmd()", "ann, b")})
    write(log, tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().splitlines() == [
        "id,user,size,submit,runtime_s,limit_s",
        "1,'=cmd(),1,0,3,9",
        '2,"ann, b",2,5,4,',
    ]
    ready = Workload("x", {**log.columns, "limit": np.array([9, 9])}, 4)
    schedule = replay(ready, policy("easy"), cluster=Cluster(4))
    write(schedule, tmp_path / "s.csv")
    assert pl.read_csv(tmp_path / "s.csv")["start"].to_list() == [0, 5]
