"""SWF with 19 to 21 fields: used GPUs, soft wall time, and a descriptor whose N x M are nodes and cores."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from dovetail.errors import InputError
from dovetail.io import swf
from dovetail.io.parquet import read_parquet, write_parquet
from dovetail.io.swf import read_swf, read_swf_stream, write_swf
from dovetail.io.swf_wide import UNREADABLE
from dovetail.model.workload import Step, Workload
from dovetail.workloads.filters import clean

HEAD = "; MaxProcs: 1000000\n; Note: a log with more fields\n"


def job(number: int, *more: object, size: int = 7) -> str:
    first = [number, 10 * number, 5, 100, size, -1, -1, size, 200, -1, 1, 3, 4, 5, 1, 1, -1, -1]
    return " ".join(str(value) for value in [*first, *more])


def read(*lines: str) -> Workload:
    text = HEAD + "\n".join(lines) + "\n"
    return read_swf_stream(io.BytesIO(text.encode()), "log", "log.swf")


def test_fields_behind_the_standard_ones_are_columns() -> None:
    log = read(
        job(1, 8, 3600, "frontier:excl:2500x112"), job(2, 0, -1, "frontier:shared:1x56"), job(3, -1, 60, "-1"), job(4)
    )
    assert log["gpus"].tolist() == [8, 0, -1, -1]
    assert log["soft_limit"].tolist() == [3600, -1, 60, -1]
    assert [log.called("descriptor", at) for at in log["descriptor"]] == [
        "frontier:excl:2500x112", "frontier:shared:1x56", "", "",
    ]  # fmt: skip
    assert log["units"].tolist() == [2500, 1, -1, -1]
    assert log["unit_cores"].tolist() == [112, 56, -1, -1]
    assert log["exclusive"].tolist() == [1, 0, -1, -1]
    assert log.size.tolist() == [280_000, 56, 7, 7]  # fields 5 and 8 are unreliable beside a descriptor
    assert [step.changed for step in log.provenance.steps if "descriptor" in step.name] == [2]
    assert log.provenance.lines == 4
    assert clean(log, ["standard"]).size.tolist() == [280_000, 56, 7, 7]


@pytest.mark.parametrize(("more", "columns"), [((2,), {"gpus"}), ((2, 50), {"gpus", "soft_limit"})])
def test_fewer_of_them(more: tuple[int, ...], columns: set[str]) -> None:
    log = read(job(1, *more), job(2, *more))
    assert {"gpus", "soft_limit", "descriptor", "units"} & set(log.columns) == columns
    assert log.size.tolist() == [7, 7]


def test_what_stands_before_the_first_job_does_not_matter() -> None:
    text = "\ufeff; MaxProcs: 10\nnot a job\n" + job(1, 8, 60, "a:excl:1x2") + "\n"
    log = read_swf_stream(io.BytesIO(text.encode()), "log", "log.swf")
    assert (log["gpus"].tolist(), log.size.tolist(), len(log.set_aside)) == ([8], [2], 1)


@pytest.mark.parametrize("text", ["f:excl:2x0", "f:excl:0x8", "2x4+3x8", "f:excl", "x"])
def test_a_descriptor_of_another_form_says_nothing_of_the_size(text: str) -> None:
    log = read(job(1, 8, 60, text), job(2, 8, 60, "f:2x4"), job(3, 8, 60, "3x4"))
    assert log.size.tolist() == [7, 8, 12]
    assert log.called("descriptor", log["descriptor"][0]) == text


def test_the_first_job_decides_which_log_it_is() -> None:
    log = read(job(1), job(2, 8))
    assert len(log) == 1
    assert log.set_aside.counts() == {"not 18 fields": 1}


def test_a_wide_log_without_a_job_says_what_it_wants() -> None:
    with pytest.raises(InputError, match="not 18 to 21 fields"):
        read_swf_stream(io.BytesIO(b"! " * 18 + b":"), "log", "log")


@pytest.mark.parametrize(
    "more",
    [(8, 60, "a:1x2", 5), ("x", 60, "a:1x2"), (8, "1e9", "a:1x2"), (8, 60, "a:99999x99999"), (8, 10**11, "a:1x1"),
     (8, 60, "a:\x071x1")],
)  # fmt: skip
def test_what_cannot_be_read_is_set_aside(more: tuple[object, ...]) -> None:
    log = read(job(1, 8, 60, "a:excl:1x2"), job(2, *more))
    assert log["id"].tolist() == [1]
    assert sum(log.set_aside.counts().values()) == 1
    assert log.set_aside.line.tolist() == [4]
    assert set(log.set_aside.counts()) <= {UNREADABLE, "a byte that is not printable ASCII"}


def test_round_trips(tmp_path: Path) -> None:
    log = read(*(job(n, n % 3 - 1, 60 * n, f"f:excl:{n}x4", size=n) for n in range(1, 50)))
    for name, write, back in (("a.swf.gz", write_swf, read_swf), ("a.parquet", write_parquet, read_parquet)):
        write(log, tmp_path / name)
        again = back(tmp_path / name)
        assert again.digest() == log.digest(), name
    halved = log.with_columns(Step("halved"), size=log.size // 2 + 1)
    write_swf(halved, tmp_path / "b.swf")
    assert read_swf(tmp_path / "b.swf").size.tolist() == halved.size.tolist()


def test_the_pieces_in_which_it_comes_do_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [job(n, n % 5, n, f"f:excl:{n}x2") for n in range(1, 400)]
    lines[100] = "junk " * 2000  # longer than a line may be
    whole = read(*lines)
    text = (HEAD + "\n".join(lines)).encode()
    for size in (1, 7, 100, 5000):
        parts = [text[at : at + size] for at in range(0, len(text), size)]
        monkeypatch.setattr(swf, "unpacked", lambda *_args, parts=parts: iter(parts))
        again = read_swf_stream(io.BytesIO(b""), "log", "log.swf")
        assert again.digest() == whole.digest()
        assert np.array_equal(again["line"], whole["line"])
        assert again.set_aside.counts() == whole.set_aside.counts() == {"a line longer than 4,096 bytes": 1}


def test_a_long_line_is_long_wherever_a_block_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was held back of a line between two blocks was cut to 18 fields before it was found to be too long."""
    long = job(2, 8).replace(" ", " " * 300, 18)
    text = f"{HEAD}{job(1, 8)}\n{long}\n\ufeff{job(3, 8)}\n".encode()
    found = []
    for piece in (10_000, 100):
        monkeypatch.setattr(swf, "PIECE", piece)
        log = read_swf_stream(io.BytesIO(text), "log", "log.swf")
        found.append((log["id"].tolist(), log.set_aside.counts()))
    wanted = {"a line longer than 4,096 bytes": 1, "a byte that is not printable ASCII": 1}
    assert found == [([1], wanted)] * 2
