"""Tables of any origin: a spreadsheet's CSV, a pandas Parquet; and what is wrong with some."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dovetail.errors import InputError, SettingError
from dovetail.io.table import parse_columns, read_any
from dovetail.model.workload import Workload
from tests.command import run

SACCT = """JobID|User|Account|Partition|Submit|Start|End|NCPUS|Timelimit|State|JobName
101|ann|bio|long|2026-03-01T08:00:00|2026-03-01T08:00:10|2026-03-01T09:00:10|16|1-02:03:04|COMPLETED|fold
101.batch|||||||16|||batch
102|bob|cfd|long|2026-03-01T08:01:00|2026-03-01T09:00:10|2026-03-01T09:30:10|32|02:00:00|FAILED|flow
103|ann|bio|short|2026-03-01T08:02:00|Unknown|Unknown|8|30:00|PENDING|later
104|ann|bio|short|2026-03-01T08:03:00|2026-03-01T08:30:00|Unknown|8|UNLIMITED|RUNNING|now
105|bob|cfd|short|2026-03-01T07:59:00|2026-03-01T08:00:00|2026-03-01T08:00:30|4|10|CANCELLED by 7|gone
"""


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_what_a_program_made_of_sacct_s(tmp_path: Path) -> None:
    log, told = read_any(write(tmp_path / "jobs.csv", SACCT.replace("|", ",")))
    assert log["line"].tolist() == [7, 2, 4]
    assert log.submit.tolist() == [0, 60, 120]
    assert log["wait"].tolist() == [60, 10, 3550]
    assert log.runtime.tolist() == [30, 3600, 1800]
    assert log.size.tolist() == [4, 16, 32]
    assert log.limit.tolist() == [10, 93784, 7200]
    assert log["status"].tolist() == [5, 1, 0]
    assert [log.names["user"][n] for n in log["user"]] == ["bob", "ann", "bob"]
    assert log.names["partition"] == ("long", "short")
    assert log.set_aside.counts() == {
        "a step of a job, not a job": 1, "never started": 1, "no end: it still ran, or its end is not known": 1,
    }  # fmt: skip
    assert log.provenance.lines == len(log) + len(log.set_aside) == 6
    assert log.processors == 32  # one ended as the other began
    assert any("32 processors" in text for text in told.guesses)
    assert log.header["UnixStartTime"] == ("1772351940",)


def test_a_spreadsheet(tmp_path: Path) -> None:
    text = (
        "\ufeffJob;Queued at;Begin;Elapsed (min);Slots;Owner\n"
        'a;31.01.2026 08:00;31.01.2026 09:00;90;4;"Ann; B."\n'
        "b;31.01.2026 08:30;31.01.2026 08:30;0.5;8;Bob\n"
    )
    log, told = read_any(write(tmp_path / "jobs.csv", text), parse_columns("submit=Queued at"), tz="Europe/Berlin")
    assert log["wait"].tolist() == [3600, 0]
    assert log.runtime.tolist() == [5400, 30]
    assert log.names["user"] == ("Ann; B.", "Bob")
    assert log.limit.tolist() == [-1, -1]
    assert any(text.startswith("limits") for text in told.missing)
    assert log.processors == 8
    assert log.header["UnixStartTime"] == ("1769842800",)


def test_a_frame_of_pandas(tmp_path: Path) -> None:
    at = [datetime(2026, 1, 1, 12, 0), datetime(2026, 1, 1, 13, 0)]
    frame = pl.DataFrame({
        "submit_time": at, "start_time": [at[0], None], "duration": [timedelta(hours=1)] * 2, "cpus": [2, 4],
        "walltime_hours": [1.5, 2.0],
    })  # fmt: skip
    frame.write_parquet(tmp_path / "jobs.parquet")
    log, told = read_any(tmp_path / "jobs.parquet", processors=64)
    assert (log.limit.tolist(), log.runtime.tolist(), log.processors) == ([5400], [3600], 64)
    assert log.set_aside.counts() == {"never started": 1}
    assert not told.guesses


@pytest.mark.parametrize("form", ["{:.0f}", "{:.3f}", "ms"])
def test_epochs(tmp_path: Path, form: str) -> None:
    def text(seconds: float) -> str:
        return f"{1000 * seconds:.0f}" if form == "ms" else form.format(seconds)

    rows = "".join(f"{text(1.7e9 + n)},{text(1.7e9 + n + 5)},{text(1.7e9 + n + 65)},2\n" for n in range(3))
    log, _ = read_any(write(tmp_path / "jobs.csv", f"submit,start,end,cores\n{rows}"))
    assert (log.submit.tolist(), log["wait"].tolist(), log.runtime.tolist()) == ([0, 1, 2], [5] * 3, [60] * 3)


def test_the_hour_that_comes_twice(tmp_path: Path) -> None:
    """In Berlin 02:30 comes twice on 25 October 2026: at 00:30 and at 01:30 UTC."""
    text = (
        "submit,start,end,cores\n"
        "2026-10-25T02:10:00,2026-10-25T02:50:00,2026-10-25T02:20:00,1\n"
        "2026-10-25T01:10:00,2026-10-25T01:50:00,2026-10-25T02:20:00,1\n"
        "2026-10-25T02:40:00+02:00,2026-10-25T02:30:00,2026-10-25T04:00:00,1\n"
    )
    log, _ = read_any(write(tmp_path / "jobs.csv", text), tz="Europe/Berlin")
    assert log["line"].tolist() == [3, 2, 4]
    assert log.runtime.tolist() == [1800, 1800, 5400]
    assert log["wait"].tolist() == [2400, 2400, 3000]
    assert [(step.name[:42], step.changed) for step in log.provenance.steps] == [
        ("times in the hour that the clock shows twi", 5)
    ]


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ("start,end,cores\n1,2,1\n", 1, "no column says when jobs were submitted"),
        ("submit,start,end\n1,2,3\n", 1, "no column says how many processors"),
        ("submit,start,cores\n1,2,3\n", 1, "no column says how long jobs ran"),
        ("submit,start,end,cores\n1,soon,3,1\n", 2, "'soon' in start is no time"),
        ("submit,start,end,cores,limit\n1,2,3,1,long\n", 2, "'long' in limit is no duration"),
        ("submit,start,elapsed,cores\n1,2,1e300,1\n", 2, "'1e300' in elapsed is no duration"),
        ("submit,start,elapsed,cores\n1,2,-5,1\n", 2, "'-5' in elapsed is no duration"),
        ("submit,start,end,cores\n1e300,2,3,1\n", 2, "'1e300' in submit is no time"),
        ("submit,start,end,cores\n1,2,3,99999999999\n", 0, "size"),
        ("submit,start,end,cores\n1,2,3,1e40\n", 2, "'1e40' in cores is no whole number"),
        ("submit,start,end,cores\n1,2,3,2K\n", 2, "'2K' in cores is no whole number"),
        ("submit,start,end,cores\n1,2,3,0\n", 0, "no processors"),
        ("submit,start,end,cores\n9,10,3,1\n", 0, "ended before it started"),
        ("submit,start,end,cores\n24-01-01T00:00:00,2,3,1\n", 2, "is no time"),
        ("submit_min,start,end,cores\n1,2,3,1\n", 1, "no column says when jobs were submitted"),
        ("\x00\x01,\x02\n\x03", 1, "no column says"),
        ("submit,start,end,cores\n", 0, "no row"),
        ("", 0, "not a table"),
        ("submit,start,end,cores\n5,2,3,1\n", 0, "started before it was submitted"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, text: str, line: int, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        read_any(write(tmp_path / "jobs.csv", text))
    assert caught.value.line == line


def only(tmp_path: Path, text: str, tz: str = "UTC") -> Workload:
    return read_any(write(tmp_path / "jobs.csv", text), tz=tz)[0]


def test_who_still_runs_has_no_end_whatever_elapsed_says(tmp_path: Path) -> None:
    head = "JobID|Submit|Start|End|Elapsed|NCPUS|State\n"
    text = f"{head}1|10|20|Unknown|00:05:00|4|RUNNING\n2|10|20|50|00:00:30|4|COMPLETED\n"
    assert only(tmp_path, text)["id"].tolist() == [2]
    rows = "1|10|20|00:05:00|4|RUNNING\n2|10|20|00:00:30|4|DONE\n3|1|2|9|1|odd\n"
    log = only(tmp_path, f"JobID|Submit|Start|Elapsed|NCPUS|State\n{rows}")
    assert (log["id"].tolist(), log["status"].tolist()) == ([3, 2], [-1, 1])


@pytest.mark.parametrize(
    ("ids", "kept"),
    [
        (["1.0", "2.0"], [1, 2]),  # what pandas makes of numbers with a gap among them
        (["123.srv", "124.srv"], [1, 2]),  # PBS: numbered by row
        (["101", "101.batch"], [101]),
        (["101", "101.0", "102"], [101, 102]),  # the first step of srun, not 101 as pandas writes it
        (["101_1", "101_1.0"], [1]),
        (["7+0", "7+0.batch"], [1]),
        (["5", "5"], [1, 2]),
    ],
)
def test_ids_and_steps(tmp_path: Path, ids: list[str], kept: list[int]) -> None:
    log = only(tmp_path, "id,submit,start,end,cores\n" + "".join(f"{one},1,2,3,1\n" for one in ids))
    assert log["id"].tolist() == kept


def test_names_of_columns_that_nearly_match(tmp_path: Path) -> None:
    text = "cpus_min,cpus,submit_h,submit,start,end,walltime,requested_walltime\n1,8,3,100,101,150,49,3600\n"
    log = only(tmp_path, text)
    assert (log.size.tolist(), log["wait"].tolist(), log.limit.tolist()) == ([8], [1], [3600])


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1-02:03", 93780), ("1-02", 93600), ("1-02:03:04", 93784), ("03:04", 184), ("90", 90), ("-1", -1), ("", -1)],
)
def test_durations(tmp_path: Path, text: str, seconds: int) -> None:
    assert only(tmp_path, f"submit,start,end,cores,limit\n1,2,3,1,{text}\n").limit.tolist() == [seconds]


def test_hours_with_a_fraction(tmp_path: Path) -> None:
    assert only(tmp_path, "submit,start,runtime_h,cores\n1,2,1.1,1\n").runtime.tolist() == [3960]


def test_elapsed_says_which_of_two_hours(tmp_path: Path) -> None:
    row = "2025-10-26T01:00:00,2025-10-26T02:30:00,2025-10-26T03:30:00,01:00:00,1"
    log = only(tmp_path, f"Submit,Start,End,Elapsed,NCPUS\n{row}\n", "Europe/Berlin")
    assert (log["wait"].tolist(), log.runtime.tolist()) == ([9000], [3600])


def test_an_hour_that_was_skipped_sets_one_row_aside(tmp_path: Path) -> None:
    rest = "2026-03-29T04:00:00,2026-03-29T05:00:00,1"
    text = f"submit,start,end,cores\n2026-03-29T02:30:00,{rest}\n20260329,{rest}\n"
    log = only(tmp_path, text, "Europe/Berlin")
    assert log.set_aside.counts() == {"a time that the clock skipped in spring: is --tz right?": 1}
    assert log["wait"].tolist() == [3 * 3600]


def test_a_column_of_lists_is_refused_with_its_name(tmp_path: Path) -> None:
    pl.DataFrame({"submit": [1], "start": [2], "end": [3], "nodes": [["a", "b"]]}).write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match="nodes: List"):
        read_any(tmp_path / "x.parquet")


def test_settings_are_checked(tmp_path: Path) -> None:
    path = write(tmp_path / "jobs.csv", "submit,start,end,cores\n1,2,3,1\n")
    with pytest.raises(SettingError, match="did you mean submit"):
        parse_columns("submitt=x")
    with pytest.raises(SettingError, match="did you mean cores"):
        read_any(path, {"size": "corse"})
    with pytest.raises(SettingError, match="no time zone"):
        read_any(path, tz="Mars/Olympus")


def test_the_command_and_a_comparison_after_it(tmp_path: Path) -> None:
    chance = np.random.default_rng(1)
    submit = np.sort(chance.integers(0, 10**6, 300))
    rows = "".join(
        f"{n},{1.7e9 + at:.0f},{1.7e9 + at + 60:.0f},{1.7e9 + at + 60 + run_s:.0f},{cores},2-00:00:00,u{n % 5}\n"
        for n, (at, run_s, cores) in enumerate(
            zip(submit, chance.integers(60, 80_000, 300), chance.integers(1, 9, 300), strict=True)
        )
    )
    table = write(tmp_path / "own.csv", f"JobID,Submit,Start,End,NCPUS,Timelimit,User\n{rows}")
    out = tmp_path / "own.parquet"
    done = run("workload", "import", table, "-o", out, "--json")
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert (facts["jobs"], facts["lines"], facts["users"]) == (300, 300, 5)
    assert facts["understood"]["columns"]["size"] == "NCPUS"
    shown = run("workload", "import", table, "-o", out, "--processors", "16").stdout
    assert "size          NCPUS" in shown
    assert max(map(len, shown.splitlines())) <= 80
    assert "300 read = 300 kept + 0 set aside" in shown
    page = run("compare", out, "easy", "sjf-easy", "conservative", "--no-open", "-o", tmp_path / "page.html")
    assert page.returncode == 0, page.stderr


def test_a_table_without_limits_is_told_how_to_be_replayed(tmp_path: Path) -> None:
    rows = "".join(
        f"{n},{1.7e9 + 60 * n:.0f},{1.7e9 + 60 * n + 9:.0f},{1.7e9 + 60 * n + 99:.0f},4\n" for n in range(50)
    )
    table = write(tmp_path / "own.csv", f"JobID,Submit,Start,End,NCPUS\n{rows}")
    out = tmp_path / "own.parquet"
    done = run("workload", "import", table, "-o", out, "--processors", "8")
    command = done.stderr.partition("dovetail compare ")[2].split()
    assert run("replay", out).returncode == 2
    assert " ".join(command[4:]) in run("replay", out).stderr
    page = run("compare", *command, "--no-open", "-o", tmp_path / "page.html")
    assert page.returncode == 0, page.stderr
    assert "limit " not in done.stdout.partition("own: 50 jobs")[2]
