"""SWF files: packed, damaged, written, read back; bytes of any kind; every archive log."""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from dovetail.errors import InputError
from dovetail.io import swf
from dovetail.io.read import read_workload
from dovetail.io.swf import FIELDS, REASONS, read_swf, read_swf_stream, write_swf
from dovetail.kernels import swf as kernel
from dovetail.model.workload import REQUIRED, Provenance, Step, Workload
from tests.conftest import TRACES, needs_traces
from tests.fuzz.swf_fuzz import HEADER, check
from tests.io.test_swf import GOOD, OTHER, read

PACKERS: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.mark.parametrize("kind", PACKERS)
def test_packed_files_are_known_by_their_bytes(kind: str, tmp_path: Path) -> None:
    text = f"; MaxProcs: 8\n{GOOD}\n{OTHER}\n".encode()
    pack = PACKERS[kind]
    path = tmp_path / "log.data"
    path.write_bytes(pack(text[:40]) + pack(text[40:]))  # two members make one file
    workload = read_swf(path)
    assert workload.provenance.sha256 == hashlib.sha256(text).hexdigest()
    assert workload.provenance.source == "log.data"
    assert workload.digest() == read(text).digest()
    assert read_swf(path, name="mine").name == "mine"


@pytest.mark.parametrize("kind", PACKERS)
def test_damaged_and_cut_off_files(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    lines = "".join(f"{i} {rng.integers(10**9)} {OTHER.split(' ', 2)[2]}\n" for i in range(5_000))
    whole = PACKERS[kind](lines.encode())
    path = tmp_path / f"log{kind}"
    for cut in (10, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises(InputError, match=r"damaged or cut-off .* fetch the file again") as caught:
            read_swf(path)
        assert str(path) in str(caught.value)
    path.write_bytes(whole + b"garbage")
    with pytest.raises(InputError, match="damaged or cut-off"):
        read_swf(path)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [".xz", ".zst"])
def test_a_bomb_is_refused(kind: str) -> None:
    with pytest.raises(InputError, match="unpacks to more than 1,000 times its size"):
        read(PACKERS[kind](b"; x\n" + bytes(24 << 20)))


def test_the_cap_on_unpacked_bytes() -> None:
    text = f"{GOOD}\n{OTHER}\n".encode()
    for data in (text, gzip.compress(text)):
        assert len(read_swf_stream(io.BytesIO(data), "t", "t", most_bytes=len(text))) == 2
        with pytest.raises(InputError, match="more than 50 bytes unpacked"):
            read_swf_stream(io.BytesIO(data), "t", "t", most_bytes=50)


def test_what_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        read_swf(tmp_path / "none.swf")
    with pytest.raises(InputError, match="a directory"):
        read_swf(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(InputError, match="a pipe, socket or device"):
        read_swf(tmp_path / "pipe")
    with pytest.raises(InputError, match="cannot be read"):
        read_swf("x" * 5000)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_write_and_read_back(suffix: str, tmp_path: Path) -> None:
    workload = read(f"; free\n; Version: 2.2\n; MaxProcs: 8 (3, 5)\n; Note: a\n;   b\n; MaxJobs: 7\n{OTHER}\n{GOOD}")
    path, again = tmp_path / f"w.swf{suffix}", tmp_path / f"v.swf{suffix}"
    write_swf(workload, path, note="for a test\nMaxProcs: 3")
    write_swf(workload, again, note="for a test\nMaxProcs: 3")
    assert path.read_bytes() == again.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([path.name, again.name])
    back = read_workload(path)
    assert back.name == "w"
    same_columns(back, workload)
    assert back.header == {
        "": ("free",),
        "Version": ("2.2",),
        "MaxProcs": ("8 (3, 5)",),
        "Note": (
            "a\nb",
            "written by Dovetail 0.2.0; sorted by submit (0 removed, 1 changed)",
            "for a test MaxProcs: 3",
        ),
        "MaxJobs": ("2",),
        "MaxRecords": ("2",),
    }


def test_write_with_the_waits_of_a_schedule(tmp_path: Path) -> None:
    workload = read(f"{GOOD}\n{OTHER}")
    write_swf(workload, tmp_path / "w.swf", wait=np.array([77, 0]))
    assert read_swf(tmp_path / "w.swf")["wait"].tolist() == [77, 0]
    with pytest.raises(ValueError, match="wait has 1 values for 2 jobs"):
        write_swf(workload, tmp_path / "w.swf", wait=np.array([77]))


@pytest.mark.parametrize(
    ("column", "values", "rule"),
    [
        ("id", [1, 1], "an earlier line has"),
        ("id", [-1, 1], "below 0"),
        ("limit", [1, 10**11], "a time beyond"),
        ("size", [-(2**63), 1], "a size beyond"),
        ("status", [1, 3], "partial"),
    ],
)
def test_what_could_not_be_read_back_is_not_written(column: str, values: list[int], rule: str, tmp_path: Path) -> None:
    workload = read(f"{GOOD}\n{OTHER}").with_columns(Step("t"), **{column: np.array(values)})
    with pytest.raises(ValueError, match=rule):
        write_swf(workload, tmp_path / "w.swf")
    nan = read(f"{GOOD}\n{OTHER}").with_columns(Step("t"), cpu_s=np.array([np.nan, 1.0]))
    with pytest.raises(ValueError, match="not a plain decimal number"):
        write_swf(nan, tmp_path / "w.swf")
    assert not list(tmp_path.iterdir())


def test_write_into_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be written"):
        write_swf(read(GOOD), tmp_path / "none" / "w.swf")


def same_columns(got: Workload, wanted: Workload) -> None:
    """Equal in all columns but `line`; a column of nothing but -1 equals none."""
    for name in FIELDS:
        assert got.get(name).tolist() == wanted.get(name).tolist(), name


seconds = st.integers(-(10**10), 10**10)
number = st.integers(-(2**63) + 1, 2**63 - 1)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    """Any workload that fits the caps."""
    n = draw(st.integers(0, 5))
    kinds = {**dict.fromkeys(FIELDS, number), **dict.fromkeys(swf.TIMES, seconds)}
    kinds |= dict.fromkeys(swf.SIZES, st.integers(-(10**9), 10**9))
    kinds["status"] = st.sampled_from([-1, 0, 1, 5])
    columns: dict[str, object] = {}
    for name in FIELDS:
        if name == "id":
            columns[name] = draw(st.lists(st.integers(0, 2**63 - 1), min_size=n, max_size=n, unique=True))
        elif name == "cpu_s":
            floats = st.floats(-(2.0**62), 2.0**62, allow_nan=False)
            columns[name] = draw(st.lists(floats, min_size=n, max_size=n))
        elif name in REQUIRED or draw(st.booleans()):
            columns[name] = draw(st.lists(kinds[name], min_size=n, max_size=n))
    columns["submit"] = sorted(columns["submit"])  # type: ignore[call-overload]
    arrays = {k: np.array(v, np.float64 if k == "cpu_s" else np.int64) for k, v in columns.items()}
    processors = draw(st.integers(0, 10**9))
    return Workload("random", arrays, processors, Provenance("random", lines=n))


@pytest.mark.slow
@given(workload=workloads())
@settings(max_examples=100, deadline=None)
def test_any_workload_survives_a_round_trip(workload: Workload, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "random.swf"
    write_swf(workload, path)
    back = read_swf(path)
    same_columns(back, workload)
    assert back.processors == workload.processors
    assert len(back.set_aside) == 0


soup = st.lists(
    st.one_of(
        st.binary(max_size=30),
        st.sampled_from([b"\n", b"\r\n", b"\r", b" ", b";", b"\0", b"\xef\xbb\xbf", GOOD.encode(), OTHER.encode()]),
        st.sampled_from([b"-1", b"1.5", b"9" * 19, b" " * 4090, b"1 " * 9, b"\n; MaxProcs: 3\n", b"\x1f\x8b\x08"]),
    ),
    max_size=30,
).map(b"".join)


@pytest.mark.slow
@given(data=soup)
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        workload = read(data)
    except InputError:
        return
    assert workload.provenance.lines == len(workload) + len(workload.set_aside)


@pytest.mark.slow
@given(data=soup)
@settings(max_examples=300, deadline=None)
def test_any_bytes_are_read_as_the_slow_reading_says(data: bytes) -> None:
    check(HEADER + data)


@pytest.mark.slow
@given(data=soup, cuts=st.lists(st.integers(1, 5_000), min_size=1, max_size=8))
@settings(max_examples=150, deadline=None)
def test_how_the_bytes_arrive_makes_no_difference(data: bytes, cuts: list[int]) -> None:
    def parts(sizes: list[int]) -> tuple[list[str], list[list[object]], dict[str, list[object]]]:
        lines = swf._Lines("t")
        start = 0
        for size in (*sizes, len(data)):
            lines.feed(data[start : start + size])
            start += size
        lines.feed(b"", final=True)
        aside = [row for part in lines.aside_parts for row in part.tolist()]
        return lines.header, aside, {name: values.tolist() for name, values in lines.columns().items()}

    assert parts([]) == parts(cuts)


JOBS = {
    "ALCF-Mira-2018": (22_508, 49_152), "ALCF-Theta-2023": (23_387, 4_392),
    "CEA-Curie-2011-2.1-cln": (312_826, 93_312), "CTC-SP2-1996-3.1-cln": (77_222, 338),
    "HPC2N-2002-2.2-cln": (202_871, 240), "KIT-FH2-2016-1.first25k": (25_326, 24_048),
    "KTH-SP2-1996-2": (28_489, 100), "LLNL-Atlas-2006-2.1-cln": (43_778, 9_216),
    "LLNL-Thunder-2007-1.1-cln": (121_039, 4_008), "LPC-EGEE-2004-1.2-cln": (234_889, 140),
    "NASA-iPSC-1993-3.1-cln": (18_239, 128), "RICC-2010-2": (447_794, 8_192),
    "SDSC-BLUE-2000-4.2-cln": (243_306, 1_152), "SDSC-DS-2004-2.1-cln": (96_069, 1_664),
    "SDSC-SP2-1998-4.2-cln": (59_715, 128), "UniLu-Gaia-2014-1": (51_860, 2_004),
}  # fmt: skip


@needs_traces
def test_all_archive_logs() -> None:
    paths = sorted((TRACES / "archive").glob("*.swf.gz"))
    logs = [read_swf(path) for path in paths]
    assert {w.name: (len(w), w.processors) for w in logs} == JOBS
    aside = {w.name: w.set_aside.counts() for w in logs if len(w.set_aside)}
    assert aside == {"UniLu-Gaia-2014-1": {REASONS[kernel.PARTIAL]: 127}}
    steps = {w.name: w.provenance.steps for w in logs if w.provenance.steps}
    assert steps == {"LLNL-Thunder-2007-1.1-cln": (Step("sorted by submit", changed=1_190),)}
    for workload in logs:
        assert workload.provenance.lines == len(workload) + len(workload.set_aside)
        assert "MaxProcs" in workload.header


@needs_traces
def test_archive_values_are_those_of_a_plain_reading() -> None:
    path = TRACES / "archive" / "SDSC-SP2-1998-4.2-cln.swf.gz"
    with gzip.open(path, "rt") as stream:
        rows = [line.split() for line in stream if not line.startswith(";")]
    workload = read_swf(path)
    for place, name in enumerate(FIELDS):
        wanted = [float(row[place]) for row in rows]
        got = workload[name].tolist() if name in workload else [-1.0] * len(rows)
        assert got == wanted, name
