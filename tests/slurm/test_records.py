"""Records that sacct prints: the fast way and the slow one agree, and nothing is lost without a word."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from dovetail.errors import InputError
from dovetail.slurm.records import FIELDS, Layout, Stretch, layout_of, of_json, slowly, stretches

NAMES = ("run", "a|b", "two\nlines", "\n", "", "x\ny\n", "a\x1fb", "é", 'quote"d', "'", "\r", "tab\t", "~x~", "a,b")
FIVE = ("JobIDRaw", "Submit", "State", "User", "JobName")


def dump(rows: list[list[str]], delimiter: str, closed: bool, fields: tuple[str, ...] = FIVE) -> bytes:
    end = delimiter * closed + "\n"
    return "".join(delimiter.join(row) + end for row in [list(fields), *rows]).encode()


def rows_of(made: list[Stretch]) -> list[list[str]]:
    return [list(row) for one in made for row in one.frame.rows()]


@pytest.mark.parametrize(
    ("head", "layout"),
    [
        (b"JobIDRaw|Submit|State|\n1|", Layout(b"|", True, ("JobIDRaw", "Submit", "State"))),
        (b"JobID|Submit|State\n", Layout(b"|", False, ("JobID", "Submit", "State"))),
        (b"JobID~a1~Reserved~a1~State~a1~\n", Layout(b"~a1~", True, ("JobID", "Planned", "State"))),
        (b"JobID~x y~State~x y~Submit\n", Layout(b"~x y~", False, ("JobID", "State", "Submit"))),
    ],
)
def test_the_header_tells_the_layout(head: bytes, layout: Layout) -> None:
    assert layout_of(head) == layout


@pytest.mark.parametrize(
    "head", [b"", b"\n", b"id,submit\n", b"JobID\n", b"JobID|foo\n", b"JobID|JobID\n", b"\xff\xfe|\n"]
)
def test_other_headers_are_not_sacct_s(head: bytes) -> None:
    assert layout_of(head) is None


def test_what_no_record_can_do_without() -> None:
    for head, words in ((b"JobID|State\n1|x\n", "Submit"), (b"Submit|State\n1|x\n", "JobIDRaw"), (b"a,b\n", "header")):
        with pytest.raises(InputError, match=words):
            list(stretches(iter([head]), "dump.txt"))


@pytest.mark.parametrize("seed", range(200))
def test_any_name_comes_back_whatever_the_blocks(seed: int) -> None:
    """With a delimiter that is in no text and at the end of records, every name is what it was."""
    draw = random.Random(seed)
    rows = [
        [str(at), str(at), "COMPLETED", draw.choice(("ann", "")), draw.choice(NAMES if seed % 2 else ("run", "b c"))]
        for at in range(draw.randrange(1, 40))
    ]
    data = dump(rows, "~5f~", True)
    wide = draw.randrange(1, 60)
    blocks = [data[at : at + wide] for at in range(0, len(data), wide)]
    made = list(stretches(iter(blocks), "dump", draw.choice((1, 50, 300, 1 << 20))))
    assert rows_of(made) == rows
    assert not any(one.broken for one in made)


@pytest.mark.parametrize("seed", range(200))
def test_fast_is_slow(seed: int) -> None:
    """Bars, with and without one at the end: what is split at once is what is split record by record."""
    draw = random.Random(seed)
    closed = bool(seed % 2)
    clean = [[str(at), "5", "FAILED", "eve", draw.choice(("run", "é", 'say "a"', "", "'"))] for at in range(30)]
    data = dump(clean, "|", closed)
    layout = layout_of(data)
    assert layout is not None
    slow, many, left = slowly(data.partition(b"\n")[2], layout, 0)
    (fast,) = stretches(iter([data]), "dump")
    assert rows_of([slow]) == rows_of([fast]) == clean
    assert (many, left) == (30, b"")


def test_a_bar_in_a_name_stays_in_it_where_one_field_is_free_text() -> None:
    data = dump([["1", "5", "FAILED", "eve", "a|b"], ["2", "5", "FAILED", "eve", "plain"]], "|", False)
    assert rows_of(list(stretches(iter([data]), "dump")))[0][4] == "a|b"


def test_what_has_too_many_fields_is_counted() -> None:
    two = (*FIVE, "Comment")
    rows = [["1", "5", "FAILED", "eve", "a|b", "c"], ["2", "5", "FAILED", "eve", "plain", "fine"]]
    (made,) = stretches(iter([dump(rows, "|", True, two)]), "dump")
    assert rows_of([made]) == rows[1:]
    assert made.broken == (0,)


def test_a_record_that_is_cut_is_counted() -> None:
    data = dump([["1", "5", "FAILED", "eve", "a"]], "~5f~", True) + b"2~5f~7"
    (made,) = stretches(iter([data]), "dump")
    assert len(made.frame) == 1
    assert made.broken == (1,)


def test_random_bytes_end_in_records_or_in_an_error() -> None:
    draw = random.Random(3)
    whole = dump([[str(at), "5", "FAILED", "eve", draw.choice(NAMES)] for at in range(8)], "|", True)
    for _ in range(2_000):
        data = bytearray(whole)
        for _ in range(draw.randrange(1, 6)):
            at = draw.randrange(len(data))
            data[at : at + draw.randrange(3)] = bytes(draw.randrange(256) for _ in range(draw.randrange(4)))
        try:
            made = list(stretches(iter([bytes(data)]), "dump", draw.choice((1, 100, 1 << 20))))
        except InputError:
            continue
        layout = layout_of(bytes(data))
        assert layout is not None
        slow, _, left = slowly(bytes(data).partition(b"\n")[2].removesuffix(layout.end) + layout.end, layout, 0)
        assert rows_of(made) == rows_of([slow])
        assert sum(len(one.broken) for one in made) == len(slow.broken) + bool(left)


def test_json_that_is_none_is_refused() -> None:
    for text in (
        "",
        "[]",
        "{}",
        '{"jobs": 5}',
        '{"jobs": [5]}',
        '{"jobs": [{}]}',
        '{"jobs": [{"time": 5}]}',
        "[" * 10**5,
    ):
        with pytest.raises(InputError, match="sacct --json"):
            of_json(text.encode(), "dump.json")


def test_json_without_jobs_has_the_fields() -> None:
    columns = of_json(json.dumps({"jobs": []}).encode(), "x").frame.columns
    assert set(FIELDS) - set(columns) == {"DBIndex", "ReqNodes"}


def test_a_block_bounds_what_is_held(tmp_path: Path) -> None:
    rows = [[str(at), "5", "FAILED", "eve", "run"] for at in range(20_000)]
    data = dump(rows, "~5f~", True)
    made = list(stretches((data[at : at + 4096] for at in range(0, len(data), 4096)), "dump", 8192))
    assert max(len(one.frame) for one in made) < 600
    assert rows_of(made) == rows


def test_more_fields_than_are_known_and_ends_of_lines_of_windows() -> None:
    head = b"JobID|JobIDRaw|Submit|Start|End|State|NCPUS|MaxRSSNode|AllocGRES|TRESUsageInAve"
    assert layout_of(head) is not None
    (made,) = stretches(iter([b"JobIDRaw|Submit|State|\r\n1|5|FAILED|\r\n2|5|FAILED|\r\n"]), "dump")
    assert rows_of([made]) == [["1", "5", "FAILED"], ["2", "5", "FAILED"]]


def test_a_record_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.slurm.records.MOST_RECORD", 20_000)
    lines = b"\n" * 200_000
    made = list(stretches(iter([b"JobIDRaw|Submit|State|JobName\n1|", lines, b"2|5|FAILED|x\n"]), "dump", 50_000))
    assert rows_of(made) == [["2", "5", "FAILED", "x"]]
    with pytest.raises(InputError, match="a record of more than"):
        list(stretches(iter([b"JobIDRaw|Submit|State|\n1|", b"x" * 100_000]), "dump", 50_000))


def test_a_name_with_an_end_of_a_line_costs_no_other_record() -> None:
    data = dump([["1", "5", "FAILED", "eve", "two\nlines"], ["2", "5", "FAILED", "eve", "x"]], "|", False)
    (made,) = stretches(iter([data]), "dump")
    assert [row[0] for row in rows_of([made])] == ["1", "2"]
    assert len(made.broken) == 1


def test_fields_that_are_not_wanted_are_counted_all_the_same() -> None:
    fields = (*FIVE, "Comment")
    rows = [["1", "5", "FAILED", "eve", "a", ""], ["2", "5", "FAILED", "eve", "a\n||||||x", ""]]
    (made,) = stretches(iter([dump(rows, "|", True, fields)]), "dump", only=("JobIDRaw", "Submit"))
    assert made.frame.rows() == [("1", "5")]
    assert len(made.broken) >= 1


@pytest.mark.parametrize("text", ['{"jobs": [{"job_id": Infinity, "time": {}, "state": {}}]}', '{"jobs": "\\ud800"}'])
def test_odd_json_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="sacct --json"):
        of_json(text.encode(), "dump.json")


@pytest.mark.parametrize(("delimiter", "closed"), [("~5f~", True), ("~5f~", False), ("|", True), ("|", False)])
@pytest.mark.parametrize("name", ["x", "~", "~~", "\n", "\n~~x", "~5f~", "5f~", "\n~~~~~~~~", "|", "\n||||"])
def test_lines_that_look_like_records(name: str, delimiter: str, closed: bool) -> None:
    """What stands between delimiters, behind the last one, or makes up for one that is missing: the same to both ways.
    Who does not know the delimiter makes no record."""
    row = ["1", "5", "FAILED", "eve", "run"]
    for some in (
        [[*row[:4], name]], [[*row[:3], "x~~", name], row], [row[:-1], [*row, name]], [row, [*row, name], row[:-1]],
        [[*row[:2], name, *row[3:]], row], [[*row, name] if closed else row, row],
    ):  # fmt: skip
        head, body = dump([], delimiter, closed), dump(some, delimiter, closed).partition(b"\n")[2]
        end = delimiter.encode() * closed + b"\n"
        for text in (body, body.replace(end, end[:-1] + b"y\n", 1)):
            layout = layout_of(head)
            assert layout is not None
            slow, _, left = slowly(text.removesuffix(end) + end, layout, 0)
            made = list(stretches(iter([head + text]), "dump"))
            few = list(stretches(iter([head + text]), "dump", only=FIVE[1:2]))
            assert rows_of(made) == rows_of([slow])
            assert [one.frame["Submit"].to_list() for one in few] == [one.frame["Submit"].to_list() for one in made]
            assert sum(len(one.broken) for one in made) == len(slow.broken) + bool(left)
            assert delimiter in name or len(rows_of(made)) <= len(some)
