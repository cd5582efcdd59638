"""The benchmark: entries are judged by what their schedules are, whatever they say."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dovetail as dt
from dovetail.errors import InputError, SettingError
from dovetail.io.archive import find
from dovetail.io.schedules import write_schedule_parquet, write_schedule_swf
from dovetail.metrics import summarize
from dovetail.model.workload import Workload
from dovetail.studies.bench import (
    BOUND,
    METRICS,
    VALID,
    Suite,
    bounds,
    enter,
    judge,
    lines,
    read_scores,
    read_starts,
    read_suite,
    verdict_on,
    with_scores,
    write_scores,
)
from tests.command import run
from tests.conftest import ROOT, TRACES, needs_traces

PLAIN = ROOT / "examples" / "plain_easy.py"
SCORES = ROOT / "docs" / "bench.csv"
SUITE = """name = "small"
[budgets]
"10 ms" = 0.01
"1 s" = 1.0
[[case]]
name = "first"
log = "log.swf"
begins_d = 0
days = 1
[[case]]
name = "second"
log = "log.swf"
begins_d = 1
days = 1
held_out = true
"""


@pytest.fixture
def suite(tmp_path: Path) -> Suite:
    dt.write(dt.generate(900, 64, seed=3, load=0.9), tmp_path / "log.swf")
    (tmp_path / "suite.toml").write_text(SUITE)
    return read_suite(tmp_path / "suite.toml")


@pytest.fixture
def workloads(suite: Suite) -> dict[str, Workload]:
    return {case.name: suite.workload(case) for case in suite.cases}


def entry(folder: Path, text: str = 'name = "mine"\nprogram = "mine 1"\n') -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "entry.toml").write_text(text)
    return folder


def plain(cases: Path, folder: Path, *words: str) -> Path:
    subprocess.run([sys.executable, "-I", str(PLAIN), str(cases), str(folder), *words], check=True)
    return folder


def test_our_entry_is_what_a_replay_gives(suite: Suite, workloads: dict[str, Workload], tmp_path: Path) -> None:
    made = enter("easy", tmp_path / "easy", suite, workloads)
    assert (made.how, made.budget) == ("measured", "10 ms")
    assert 0 < made.p999_ms < 10
    for score in judge(tmp_path / "easy", suite, workloads):
        assert score.verdict == VALID
        found = summarize(dt.replay(workloads[score.case], "easy", estimate=score.estimate))
        assert {key: getattr(score, key) for key in METRICS} == {key: found[key] for key in METRICS}


def test_a_program_that_knows_nothing_of_us_enters(
    suite: Suite, workloads: dict[str, Workload], tmp_path: Path
) -> None:
    """By the command: exported, scheduled by another program, judged, in the table; and the careless one is refused."""
    assert "dovetail" not in {line.split()[1] for line in PLAIN.read_text().splitlines() if line.startswith("import")}
    given = ("--suite", str(tmp_path / "suite.toml"))
    assert run("bench", "export", str(tmp_path / "cases"), *given).returncode == 0
    mine, careless = (
        plain(tmp_path / "cases", tmp_path / "mine"),
        plain(tmp_path / "cases", tmp_path / "bad", "--careless"),
    )
    enter("easy", tmp_path / "easy", suite, workloads)
    scores = str(tmp_path / "scores.csv")
    assert (
        run("bench", "judge", str(mine), str(tmp_path / "easy"), "--ours", "--scores", scores, *given).returncode == 0
    )
    done = run("bench", "judge", str(careless), "--scores", scores, *given)
    assert done.returncode == 3
    assert "refused: capacity: job" in done.stdout
    text = Path(scores).read_text()
    rows = {(row["entry"], row["case"], row["estimate"]): row for row in csv.DictReader(text.splitlines())}
    assert len(rows) == 4 * 4
    for case in ("first", "second"):
        for estimate in ("limit", "runtime"):
            ours, theirs = rows["easy", case, estimate], rows["plain EASY", case, estimate]
            assert ours["starts_sha256"] == theirs["starts_sha256"]  # the same rule, to the second
            assert rows["plain EASY, careless", case, estimate]["mean_wait_s"] == ""
            assert float(rows[BOUND, case, estimate]["awf_s"]) <= float(ours["awf_s"])
    shown = run("bench", "table", scores, *given)
    assert shown.returncode == 0
    assert "plain EASY, careless: first: refused" in shown.stdout
    told = [json.loads(line) for line in run("bench", "table", scores, *given, "--json").stdout.splitlines()]
    assert {(one["entry"], one["values"].get("bsld")) for one in told if one["estimate"] == "limit"} >= {
        ("easy", 1.0),
        ("plain EASY", 1.0),
        ("plain EASY, careless", None),
    }


def test_schedules_are_joined_by_id(suite: Suite, workloads: dict[str, Workload], tmp_path: Path) -> None:
    """In any order, from SWF or Parquet, by start or wait."""
    workload = workloads["second"]
    schedule = dt.replay(workload, "list-saf")
    write_schedule_swf(schedule, tmp_path / "one.swf.zst")
    write_schedule_parquet(schedule, tmp_path / "two.parquet")
    mixed = np.random.default_rng(1).permutation(len(workload))
    frame = pl.DataFrame({"id": workload["id"], "wait": schedule.wait})[mixed]
    frame.write_parquet(tmp_path / "three.parquet")
    for name in ("one.swf.zst", "two.parquet", "three.parquet"):
        assert read_starts(tmp_path / name, workload).tolist() == schedule.start.tolist(), name


def wrong_files(workload: Workload) -> dict[str, tuple[pl.DataFrame, str]]:
    ids, start = workload["id"], workload.submit
    none = [*start[:-1]]
    return {
        "short": (pl.DataFrame({"id": ids[:-2], "start": start[:-2]}), "2 are missing"),
        "strange": (pl.DataFrame({"id": ids + 1, "start": start}), "are not of this case"),
        "twice": (pl.DataFrame({"id": [*ids, ids[0]], "start": [*start, 0]}), "one is there twice"),
        "text": (pl.DataFrame({"id": ids, "start": ["soon"] * len(ids)}), "start is String"),
        "parts": (pl.DataFrame({"id": ids, "wait": [0.5] * len(ids)}), "wait is Float64"),
        "instants": (pl.DataFrame({"id": ids, "start": start}).cast({"start": pl.Datetime("us")}), "start is Datetime"),
        "nested": (pl.DataFrame({"id": ids, "start": [{"at": 1}] * len(ids)}), "start is Struct"),
        "late": (pl.DataFrame({"id": ids, "start": [*none, 2**63 - 1]}), "ends before"),
        "long": (pl.DataFrame({"id": ids, "wait": [*none, 2**63 - 2]}), "ends before"),
        "larger": (
            pl.DataFrame({"id": ids, "wait": [*none, 2**64 - 1]}, schema_overrides={"wait": pl.UInt64}),
            "no sch",
        ),
        "columns": (pl.DataFrame({"job": ids}), "no columns id, and start or wait"),
    }


@pytest.mark.parametrize("which", list(wrong_files(dt.generate(9, 4))))
def test_what_is_no_schedule_is_refused(workloads: dict[str, Workload], tmp_path: Path, which: str) -> None:
    frame, told = wrong_files(workloads["first"])[which]
    frame.write_parquet(tmp_path / "x.parquet")
    with pytest.raises(InputError, match=told):
        read_starts(tmp_path / "x.parquet", workloads["first"])


@pytest.mark.parametrize("wait", ["0.4", "-0.4", "7.9"])
def test_parts_of_seconds_are_refused_in_swf_too(workloads: dict[str, Workload], tmp_path: Path, wait: str) -> None:
    write_schedule_swf(dt.replay(workloads["first"], "easy"), tmp_path / "x.swf")
    lines = (tmp_path / "x.swf").read_text().splitlines()
    number, submit, _, *rest = lines[-1].split()
    (tmp_path / "x.swf").write_text("\n".join([*lines[:-1], " ".join([number, submit, wait, *rest])]))
    with pytest.raises(InputError, match="whole seconds"):
        read_starts(tmp_path / "x.swf", workloads["first"])


def test_a_bad_schedule_does_not_stop_the_others(suite: Suite, workloads: dict[str, Workload], tmp_path: Path) -> None:
    enter("easy", tmp_path / "easy", suite, workloads)
    (tmp_path / "easy" / "first.limit.swf.gz").write_bytes(b"no gzip")
    verdicts = [score.verdict for score in judge(tmp_path / "easy", suite, workloads)]
    assert [one == VALID for one in verdicts] == [False, True, True, True]


def test_nobody_else_is_measured(suite: Suite, workloads: dict[str, Workload], tmp_path: Path) -> None:
    text = 'name = "x"\nprogram = "p"\nbudget = "10 ms"\nhow = "measured"\np999_ms = 0.1\n'
    found = list(judge(entry(tmp_path / "x", text), suite, workloads))
    assert {one.how for one in found} == {"declared"}
    assert all(math.isnan(one.p999_ms) for one in found)
    enter("easy", tmp_path / "easy", suite, workloads)
    assert {one.how for one in judge(tmp_path / "easy", suite, workloads, ours=True)} == {"measured"}


def test_who_knows_what_comes_does_not_enter(suite: Suite, workloads: dict[str, Workload], tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="knows what comes"):
        enter("offline-af", tmp_path / "x", suite, workloads)


def test_names_stand_for_one_entry(suite: Suite, workloads: dict[str, Workload], tmp_path: Path) -> None:
    """Not two at once, not the baseline of another; and a table may have several suites."""
    given = ("--suite", str(tmp_path / "suite.toml"), "--scores", str(tmp_path / "scores.csv"))
    one, two = entry(tmp_path / "one"), entry(tmp_path / "two")
    assert "two of these entries are called 'mine'" in run("bench", "judge", str(one), str(two), *given).stderr
    easy = entry(tmp_path / "three", 'name = "easy"\nprogram = "p"\n')
    assert "give the entry another name" in run("bench", "judge", str(easy), *given).stderr
    other = replace(suite, name="other")
    scores = with_scores(read_scores(tmp_path / "none"), judge(one, suite, workloads))
    assert len(with_scores(scores, judge(one, other, workloads))) == 2 * len(scores)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("days = 1", 'days = "x"', "whole numbers of days"),
        ("begins_d = 1", "begins_d = -99999999999999999", "whole numbers of days"),
        ('"first"', '"../first"', "is not the name"),
        ('"second"', '"first"', "a name of its own"),
        ('name = "small"', 'name = "small"\nestimates = "limit"', "a name of its own"),
        ('name = "small"', "name = 3", "are texts"),
        ("[budgets]", "[budget]", "budgets"),
        ("held_out", "held", "held"),
    ],
)
def test_a_suite_is_checked(suite: Suite, tmp_path: Path, old: str, new: str, told: str) -> None:
    (tmp_path / "bad.toml").write_text(SUITE.replace(old, new))
    with pytest.raises(InputError, match=told):
        read_suite(tmp_path / "bad.toml")
    (tmp_path / "bad.toml").write_bytes(b"\xff")
    with pytest.raises(InputError, match="no suite"):
        read_suite(tmp_path / "bad.toml")


@pytest.mark.parametrize("value", ["-5", "inf", "nan"])
def test_a_table_that_was_changed_by_hand_is_checked(
    suite: Suite, workloads: dict[str, Workload], tmp_path: Path, value: str
) -> None:
    enter("easy", tmp_path / "easy", suite, workloads)
    path = tmp_path / "scores.csv"
    write_scores(with_scores(read_scores(path), judge(tmp_path / "easy", suite, workloads)), path)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    kept = rows[0]["mean_wait_s"]
    path.write_text(path.read_text().replace(kept, value, 1))
    with pytest.raises(InputError, match="below 0, or no number"):
        read_scores(path)
    path.write_text(path.read_text().replace(value, kept, 1).replace("easy,", "ea\x1b[31msy,", 1))
    assert "\x1b" not in "".join(read_scores(path)["entry"])
    with pytest.raises(SettingError, match="no valid schedule of the baseline easy for first, limit"):
        lines(read_scores(path), suite, "limit", held_out=False)


def test_the_referee_refuses_what_is_no_schedule(workloads: dict[str, Workload]) -> None:
    workload = workloads["first"]
    good = dt.replay(workload, "easy").start
    assert verdict_on(workload, good, "limit")[0] == VALID
    early, never = good.copy(), good.copy()
    early[5] = workload.submit[5] - 1
    never[7] = -1
    assert verdict_on(workload, early, "limit")[0].startswith(f"refused: arrival: job {workload['id'][5]} started at")
    assert "every job starts" in verdict_on(workload, never, "limit")[0]
    assert "capacity" in verdict_on(workload, workload.submit, "limit")[0]


def test_one_that_lacks_a_schedule_has_no_line_of_numbers(
    suite: Suite, workloads: dict[str, Workload], tmp_path: Path
) -> None:
    enter("easy", tmp_path / "easy", suite, workloads)
    mine = entry(tmp_path / "mine")
    for name in ("first.limit.swf.gz", "first.runtime.swf.gz", "second.limit.swf.gz"):
        (mine / name).write_bytes((tmp_path / "easy" / name).read_bytes())
    (mine / "first.runtime.parquet").write_bytes(b"")
    scores = with_scores(read_scores(tmp_path / "none"), [one for at in ("easy", "mine") for one in
                         judge(tmp_path / at, suite, workloads)])  # fmt: skip
    problems = {
        (estimate, held): {line.entry: line.problem for line in lines(scores, suite, estimate, held_out=held)}["mine"]
        for estimate in suite.estimates for held in (False, True)
    }  # fmt: skip
    assert problems["limit", False] == problems["limit", True] == ""
    assert "two files for one schedule" in problems["runtime", False]
    assert "no schedule" in problems["runtime", True]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('name = "x"', "program is missing"),
        ('name = "x"\nprogram = "p"\nfast = "yes"', "fast"),
        ('name = "x"\nprogram = "p"\nbudget = "3 s"', "budget class"),
        ('name = "lower bound"\nprogram = "p"', "not the name"),
        ('name = "x"\nprogram = 3', "not what it should be"),
        ("name = ", "no TOML"),
    ],
)
def test_what_an_entry_says_is_checked(
    suite: Suite, workloads: dict[str, Workload], tmp_path: Path, text: str, told: str
) -> None:
    with pytest.raises((InputError, SettingError), match=told):
        list(judge(entry(tmp_path / "mine", text), suite, workloads))


def test_names_are_no_markup(suite: Suite, workloads: dict[str, Workload], tmp_path: Path) -> None:
    entry(tmp_path / "bad", 'name = "a|b<script>\\u001b[31m *b*"\nprogram = "[red]p"\n')
    enter("easy", tmp_path / "easy", suite, workloads)
    scores = with_scores(read_scores(tmp_path / "none"), [one for at in ("bad", "easy") for one in
                         judge(tmp_path / at, suite, workloads)])  # fmt: skip
    write_scores(scores, tmp_path / "scores.csv")
    shown = run("bench", "table", str(tmp_path / "scores.csv"), "--suite", str(tmp_path / "suite.toml"), "--markdown")
    assert "\x1b" not in shown.stdout
    assert "<script>" not in shown.stdout.replace("\\<", "")
    assert "a\\|b" in shown.stdout
    assert "\\*b\\*" in shown.stdout


def test_scores_come_back_as_they_were_and_take_the_place_of_older_ones(
    suite: Suite, workloads: dict[str, Workload], tmp_path: Path
) -> None:
    enter("easy", tmp_path / "easy", suite, workloads)
    path = tmp_path / "scores.csv"
    found = [*judge(tmp_path / "easy", suite, workloads), *bounds(suite, workloads)]
    write_scores(with_scores(read_scores(path), found), path)
    first = path.read_bytes()
    write_scores(with_scores(read_scores(path), judge(tmp_path / "easy", suite, workloads)), path)
    assert path.read_bytes() == first
    assert len(read_scores(path)) == 8


def test_other_jobs_than_those_that_were_frozen_are_noticed(suite: Suite, tmp_path: Path) -> None:
    frozen = suite.workload(suite.cases[0])
    text = SUITE.replace(
        "days = 1\n", f'days = 1\njobs = {len(frozen)}\nprocessors = 64\nsha256 = "{frozen.digest()}"\n', 1
    )
    (tmp_path / "suite.toml").write_text(text)
    again = read_suite(tmp_path / "suite.toml")
    assert again.workload(again.cases[0]).digest() == frozen.digest()
    log = (tmp_path / "log.swf").read_text().splitlines()
    first = next(at for at, line in enumerate(log) if not line.startswith(";"))
    del log[first + 4]
    (tmp_path / "log.swf").write_text("\n".join(log))
    with pytest.raises(InputError, match="not those of the case first"):
        again.workload(again.cases[0])


@pytest.mark.slow
@needs_traces
def test_the_committed_scores_are_those_of_today(tmp_path: Path) -> None:
    """All of EASY again, by our replay and by the program that knows nothing of it; and the bounds."""
    suite, kept = read_suite(), read_scores(SCORES)
    rows = {(row["entry"], row["case"], row["estimate"]): row for row in kept.iter_rows(named=True)}
    for case in suite.cases:
        workload = suite.workload(case, TRACES / "archive")
        assert find(case.log).name == case.name
        dt.write(workload, tmp_path / f"{case.name}.swf")
        for estimate in suite.estimates:
            schedule = dt.replay(workload, "easy", estimate=estimate)
            digest = hashlib.sha256(np.stack([workload["id"], schedule.start]).astype("<i8").tobytes()).hexdigest()
            assert rows["easy", case.name, estimate]["starts_sha256"] == digest
            assert rows["plain EASY", case.name, estimate]["starts_sha256"] == digest
            found = summarize(schedule)
            for key in METRICS:
                assert rows["easy", case.name, estimate][key] == pytest.approx(found[key], abs=1e-6)
    plain(tmp_path, tmp_path / "mine")
    workloads = {case.name: suite.workload(case, TRACES / "archive") for case in suite.cases}
    for score in judge(tmp_path / "mine", suite, workloads):
        assert score.starts_sha256 == rows["easy", score.case, score.estimate]["starts_sha256"]


def test_the_page_has_the_table_and_what_must_be_there() -> None:
    """`dovetail bench table docs/bench.csv --markdown` writes it again."""
    page = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
    table = run("bench", "table", str(SCORES), "--markdown").stdout
    assert page.partition("<!-- table -->\n")[2].partition("<!-- end of table -->")[0] == table
    kept = read_scores(SCORES)
    ours = kept.filter(pl.col("how") == "measured")
    assert ours["entry"].n_unique() >= 10
    assert ours.group_by("entry").agg(pl.col("cpu_s").first())["cpu_s"].sum() < 4 * 3600
    assert set(ours["verdict"]) == {VALID}
    assert kept.filter(pl.col("verdict").str.starts_with("refused"))["entry"].n_unique() == 1
    assert "dovetail" not in kept.filter(pl.col("entry") == "plain EASY")["program"][0].lower()
