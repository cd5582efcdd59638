"""Sealed Parquet: any cut and any changed bit is noticed, and other programs read it as any other."""

from __future__ import annotations

from pathlib import Path

import duckdb
import polars as pl
import pytest

from dovetail.io.sealed import is_whole, write_sealed

FRAME = pl.DataFrame({"start": [[1, 2, 3]], "policy": ["easy"], "bsld": [1.5]})


@pytest.fixture
def data(tmp_path: Path) -> bytes:
    write_sealed(FRAME, tmp_path / "a.parquet", {"more": "text"}, compression="zstd")
    return (tmp_path / "a.parquet").read_bytes()


def test_any_cut_and_any_bit(data: bytes) -> None:
    assert is_whole(data)
    assert not any(is_whole(data[:at]) for at in range(len(data)))
    for at in range(len(data)):
        for bit in range(8):
            assert not is_whole(data[:at] + bytes([data[at] ^ (1 << bit)]) + data[at + 1 :])
    assert not is_whole(data + b"x")
    assert not is_whole(bytes(len(data)))


def test_any_program_reads_it(data: bytes, tmp_path: Path) -> None:
    assert pl.read_parquet(data).equals(FRAME)
    assert pl.read_parquet_metadata(tmp_path / "a.parquet")["more"] == "text"
    with duckdb.connect() as database:
        assert database.execute(f"select bsld from '{tmp_path}/a.parquet'").fetchall() == [(1.5,)]  # noqa: S608


def test_a_text_like_a_seal_is_only_a_text(tmp_path: Path) -> None:
    text = f"dovetail.seal:{'0' * 64}"
    write_sealed(pl.DataFrame({"a": [text]}), tmp_path / "a.parquet", compression="uncompressed")
    data = (tmp_path / "a.parquet").read_bytes()
    assert is_whole(data)
    assert pl.read_parquet(data)["a"].to_list() == [text]


def test_one_of_an_earlier_version_is_taken_by_its_ends(tmp_path: Path) -> None:
    FRAME.write_parquet(tmp_path / "a.parquet")
    data = (tmp_path / "a.parquet").read_bytes()
    assert is_whole(data)
    assert not any(is_whole(data[:at]) for at in range(len(data)))
