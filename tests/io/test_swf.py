"""The SWF reader: every wart by a small literal case."""

from __future__ import annotations

import io

import pytest

from dovetail.errors import InputError
from dovetail.io import swf
from dovetail.io.swf import FIELDS, REASONS, read_swf_stream
from dovetail.kernels import swf as kernel
from dovetail.model.workload import Step, Workload

GOOD = "1 10 5 100 4 3.25 -1 4 200 -1 1 7 8 9 2 3 -1 -1"
OTHER = "2 20 5 100 4 -1 -1 4 200 -1 1 7 8 9 2 3 1 30"


def read(data: bytes | str) -> Workload:
    raw = data.encode() if isinstance(data, str) else data
    return read_swf_stream(io.BytesIO(raw), "t", "t.swf")


def with_field(place: int, text: str) -> str:
    fields = OTHER.split()
    fields[place - 1] = text
    return " ".join(fields)


def reason_of(line: str | bytes) -> str:
    """The reason for which a line is set aside that follows a good one, '' if it is kept."""
    raw = line.encode() if isinstance(line, str) else line
    workload = read(GOOD.encode() + b"\n" + raw + b"\n")
    assert workload.provenance.lines == 2
    if len(workload) == 2:
        return ""
    assert workload.set_aside.line.tolist() == [2]
    return workload.set_aside.reasons[int(workload.set_aside.reason[0])]


def test_fields_become_columns() -> None:
    workload = read(f"; MaxProcs: 16\n{GOOD}\n{OTHER}\n")
    got = {name: values.tolist() for name, values in workload.columns.items()}
    assert got == {
        "id": [1, 2], "submit": [10, 20], "wait": [5, 5], "runtime": [100, 100], "allocated": [4, 4],
        "cpu_s": [3.25, -1.0], "size": [4, 4], "limit": [200, 200], "status": [1, 1], "user": [7, 7],
        "group": [8, 8], "name": [9, 9], "queue": [2, 2], "partition": [3, 3], "after": [-1, 1],
        "think_s": [-1, 30], "line": [2, 3],
    }  # fmt: skip
    assert workload.processors == 16
    assert workload.provenance.lines == 2


def test_optional_columns_of_nothing_but_minus_one_are_dropped_and_required_ones_kept() -> None:
    workload = read("1 0 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1 -1")
    assert set(workload.columns) == {"id", "submit", "size", "runtime", "limit", "line"}
    assert workload["limit"].tolist() == [-1]


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (OTHER + " 5", kernel.FIELDS),
        (OTHER.rsplit(" ", 1)[0], kernel.FIELDS),
        ("x", kernel.FIELDS),
        ("1 " * 2000, kernel.FIELDS),
        (with_field(4, "1e5"), kernel.NUMBER),
        (with_field(4, "NaN"), kernel.NUMBER),
        (with_field(4, "inf"), kernel.NUMBER),
        (with_field(4, "0x10"), kernel.NUMBER),
        (with_field(4, "+5"), kernel.NUMBER),
        (with_field(4, "5."), kernel.NUMBER),
        (with_field(4, ".5"), kernel.NUMBER),
        (with_field(4, "-"), kernel.NUMBER),
        (with_field(4, "--1"), kernel.NUMBER),
        (with_field(4, "1.2.3"), kernel.NUMBER),
        (with_field(6, "1e5"), kernel.NUMBER),
        (with_field(18, "7;"), kernel.NUMBER),
        (with_field(4, "1\x002"), kernel.BYTES),
        (with_field(4, "é"), kernel.BYTES),
        (with_field(4, "5\r"), kernel.BYTES),
        (with_field(4, "5\x0b"), kernel.BYTES),
        (OTHER + "\x00", kernel.BYTES),
        ("\x00", kernel.BYTES),
        (with_field(12, "9223372036854775808"), kernel.HUGE),
        (with_field(12, "-9223372036854775808"), kernel.HUGE),
        (with_field(6, "9223372036854775808"), kernel.HUGE),
        (with_field(2, "1" * 40), kernel.HUGE),
        (with_field(2, "10000000001"), kernel.TIME),
        (with_field(3, "-10000000001"), kernel.TIME),
        (with_field(4, "10000000000.5"), kernel.TIME),
        (with_field(9, "9223372036854775807"), kernel.TIME),
        (with_field(9, "9223372036854775807.9"), kernel.TIME),
        (with_field(18, "10000000001"), kernel.TIME),
        (with_field(5, "1000000001"), kernel.SIZE),
        (with_field(8, "-1000000001"), kernel.SIZE),
        (with_field(8, "4.5"), kernel.FRACTION),
        (with_field(12, "7.01"), kernel.FRACTION),
        (with_field(1, "-1"), kernel.JOB),
        (with_field(11, "2"), kernel.PARTIAL),
        (with_field(11, "3"), kernel.PARTIAL),
        (with_field(11, "4"), kernel.PARTIAL),
        (with_field(1, "1"), kernel.DUPLICATE),
        (OTHER + " " * 4096, kernel.LONG),
        (" " * 5000, kernel.LONG),
        (" " * 4096 + ";", kernel.LONG),
    ],
)
def test_set_aside_with_a_reason(line: str, code: int) -> None:
    assert reason_of(line) == REASONS[code]


@pytest.mark.parametrize(
    "line",
    [
        with_field(12, "9223372036854775807"),
        with_field(4, "10000000000"),
        with_field(4, "10000000000.4"),
        with_field(8, "1000000000"),
        with_field(8, "4.000"),
        with_field(2, "-1"),
        with_field(4, "007"),
        "\t " + OTHER.replace(" ", " \t "),
        OTHER + " " * (4096 - len(OTHER)),
        OTHER + " " * (4096 - len(OTHER)) + "\r",
    ],
)
def test_kept(line: str) -> None:
    assert reason_of(line) == ""


ROUNDED = {
    "1.4": 1, "1.5": 2, "1.49999999999999999999": 1, "2.5": 3, "0.5": 1, "9999999999.5": 10**10,
    "-1": -1, "-1.0": -1, "-0.5": 0, "-1.5": -1, "-1.50001": -2, "-1.6": -2, "-0": 0,
}  # fmt: skip


@pytest.mark.parametrize(("text", "seconds"), ROUNDED.items())
@pytest.mark.parametrize("place", [2, 3, 4, 9, 18])
def test_times_are_rounded_half_up(place: int, text: str, seconds: int) -> None:
    assert read(with_field(place, text)).get(FIELDS[place - 1]).tolist() == [seconds]


FLOATS = (
    "3.25", "142.00", "0.1", "0.30000000000000004", "123456789.123456789012", "9007199254740993", "-2.5",
    "9223372036854775807.25", "0." + "0" * 30 + "7", "1" * 15 + "." + "3" * 300,
)  # fmt: skip


@pytest.mark.parametrize("text", FLOATS)
def test_processor_time_is_the_nearest_float(text: str) -> None:
    assert read(with_field(6, text))["cpu_s"].tolist() == [float(text)]


def test_line_ends_and_byte_order_mark() -> None:
    plain = read(f"; MaxProcs: 8\n{GOOD}\n{OTHER}\n")
    crlf = read(f"; MaxProcs: 8\r\n{GOOD}\r\n{OTHER}\r\n")
    cut = read(f"; MaxProcs: 8\n{GOOD}\n{OTHER}")
    marked = read(b"\xef\xbb\xbf" + f"; MaxProcs: 8\n{GOOD}\n{OTHER}\n".encode())
    assert plain.digest() == crlf.digest() == cut.digest() == marked.digest()
    assert plain.processors == crlf.processors == cut.processors == marked.processors == 8
    assert read(b"\xef\xbb\xbf" + GOOD.encode()).digest() == read(GOOD).digest()
    with pytest.raises(InputError, match=r"t\.swf:1: a byte that is not printable ASCII"):
        read(f"{GOOD}\r{OTHER}\r")


def test_blank_lines_and_later_comments_are_no_records() -> None:
    workload = read(f"\n{GOOD}\n\n \t\r\n; MaxProcs: 99\n   ; more\n{OTHER}\n\n")
    assert workload["line"].tolist() == [2, 7]
    assert workload.provenance.lines == 2
    assert workload.processors == 0
    assert workload.header == {}


def test_the_first_of_equal_job_numbers_is_kept_also_out_of_order() -> None:
    workload = read("\n".join([with_field(1, "5"), with_field(1, "3"), with_field(1, "5"), with_field(1, "3")]))
    assert workload["line"].tolist() == [1, 2]
    assert workload.set_aside.line.tolist() == [3, 4]
    assert workload.set_aside.id.tolist() == [5, 3]


def test_a_partial_execution_does_not_hide_the_summary_line_of_the_same_job() -> None:
    partial = GOOD.replace("-1 1 7", "-1 2 7")
    workload = read(f"{partial}\n{GOOD}\n")
    assert workload["line"].tolist() == [2]
    assert workload.set_aside.counts() == {REASONS[kernel.PARTIAL]: 1}
    assert workload.set_aside.id.tolist() == [1]


def test_rows_out_of_order_are_sorted_by_submit_then_line_and_counted() -> None:
    lines = [f"{i} {submit} " + OTHER.split(" ", 2)[2] for i, submit in enumerate([0, 30, 10, 10, 40, -1])]
    workload = read("\n".join(lines))
    assert workload["id"].tolist() == [5, 0, 2, 3, 1, 4]
    assert workload.provenance.steps == (Step("sorted by submit", changed=3),)


def test_header() -> None:
    workload = read(
        ";  --- converted ---\n"
        ";      Version: 2.2\n"
        "; Information: http://a.example/\n"
        ";              http://b.example/\n"
        ";\tsee: the site\n"
        "; Queue:  1  \n"
        "; Queue:  2 fast\n"
        ";\n"
        ";a loose remark \xff\n"
        "; MaxProcs: 1664 (72, 1368, 224)\n"
        "; Acknowledge: Ann\n"
        ";   and Bob\x1b[31m\n"
        "; Acknowledge: Carl\n" + GOOD
    )
    assert workload.header == {
        "": ("--- converted ---", "a loose remark \xff"),
        "Version": ("2.2",),
        "Information": ("http://a.example/\nhttp://b.example/\nsee: the site",),
        "Queue": ("1", "2 fast"),
        "MaxProcs": ("1664 (72, 1368, 224)",),
        "Acknowledge": ("Ann\nand Bob\ufffd[31m", "Carl"),
    }
    assert workload.processors == 1664
    assert workload.provenance.acknowledge == "Ann and Bob\ufffd[31m Carl"


@pytest.mark.parametrize(
    ("header", "processors"),
    [
        ("; MaxNodes: 9", 9),
        ("; MaxProcs: -1", 0),
        ("; MaxProcs: many", 0),
        ("; MaxProcs: 1000000001", 0),
        ("; MaxProcs: 99999999999999999999", 0),
        ("; MaxProcs:7", 7),
        ("; MaxProcs: x\n; MaxProcs: 5", 5),
        ("", 0),
    ],
)
def test_processors(header: str, processors: int) -> None:
    assert read(f"{header}\n{GOOD}").processors == processors


def test_header_caps() -> None:
    assert len(read("; x\n" * 10_000 + GOOD).header[""]) == 10_000
    with pytest.raises(InputError, match="more than 10,000 comment lines"):
        read("; x\n" * 10_001 + GOOD)
    workload = read(f"; Note: {'y' * 5_000_000}\n{GOOD}\n" + "; later\n" * 20_000)
    assert workload.header["Note"] == ("y" * (4096 - len("; Note: ")),)
    assert workload["line"].tolist() == [2]


def test_a_file_without_jobs() -> None:
    assert len(read("; MaxProcs: 4\n")) == 0
    assert read("; MaxProcs: 4\n").processors == 4
    with pytest.raises(InputError, match=r"^t\.swf: neither a header nor a job"):
        read("")
    with pytest.raises(InputError, match=r"^t\.swf:3: a field is not a plain decimal number; no line"):
        read(f"; MaxProcs: 4\n\n{with_field(4, 'a')}\nx y z\n")


def test_an_endless_line_is_one_set_aside_line() -> None:
    workload = read(f"{GOOD}\n{'9' * 5_000_000}\n{OTHER}\n{'; ' * 2_000_000}\n" + "8" * 3_000_000)
    assert workload["line"].tolist() == [1, 3]
    assert workload.set_aside.line.tolist() == [2, 5]
    assert workload.set_aside.counts() == {REASONS[kernel.LONG]: 2}


def test_lines_are_counted_through_one_that_comes_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(swf, "PIECE", kernel.HOLD + 1)
    workload = read(f"{GOOD}\n{'9' * 3 * kernel.HOLD}\n{OTHER}\n")
    assert workload["line"].tolist() == [1, 3]
    assert workload.set_aside.line.tolist() == [2]


def test_a_job_without_a_number_is_set_aside_as_unknown() -> None:
    """Whatever stood before it."""
    workload = read(f"{GOOD}\n{with_field(1, 'x')}\n{with_field(4, 'x')}\n{'9' * 5000}\n")
    assert workload.set_aside.id.tolist() == [-1, 2, -1]
