"""The figures of papers: curves and clocks against slow code, and the committed pages against a new run of them."""

from __future__ import annotations

import json
import random
from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from typer.testing import CliRunner

from dovetail.cli.papers import app
from dovetail.errors import DovetailError, InputError, SettingError
from dovetail.metrics import Outcomes
from dovetail.studies.executors import engine
from dovetail.studies.papers.arrivals import arrivals, local, longest, periods, spans, winter
from dovetail.studies.papers.dbf_figure_1 import PAPERS, SOURCES, anomalies, in_experiments
from dovetail.studies.papers.packing_figure_3 import waiting
from dovetail.studies.papers.page import Runs, Statement, facts_of, filled, held, stated
from dovetail.studies.papers.registry import REPRODUCTIONS, find
from dovetail.studies.papers.reproduce import make_page, run_tasks, tasks_for, write
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store
from dovetail.workloads.source import read_workload
from tests.conftest import ROOT, TRACES, needs_traces

RESULTS = ROOT / "docs" / "results"
RUNNER = CliRunner()


def same_as_committed(folder: Path, name: str) -> None:
    """A page and its picture, byte for byte. If not: run the command that stands on the page, and look."""
    files = sorted(folder.iterdir())
    assert [file.name for file in files] == sorted(file.name for file in RESULTS.glob(f"{name}.*"))
    for file in files:
        assert file.read_bytes() == (RESULTS / file.name).read_bytes(), file.name


def test_wait_areas_are_sums_over_smaller_jobs() -> None:
    draw = random.Random(3)
    jobs = [(draw.randint(1, 4), draw.randint(1, 5), draw.randint(0, 9)) for _ in range(200)]
    size, runtime, wait = (np.array(column) for column in zip(*jobs, strict=True))
    found = waiting(Outcomes(size, runtime, wait))
    assert found.area.tolist() == sorted({r * d for r, d, _ in jobs})
    for at, x in enumerate(found.area):
        inside = [(r, d, q) for r, d, q in jobs if r * d <= x]
        assert found.by_size[at] == sum(q * r for r, _, q in inside)
        assert found.by_area[at] == sum(q * r * d for r, d, q in inside)
        assert found.area_share[at] == sum(r * d for r, d, _ in inside) / sum(r * d for r, d, _ in jobs)
    assert (len(found.small), len(found.large), len(found.rest)) == (160, 10, 40)
    assert found.small.area.max() <= found.rest.area.min()
    assert sorted(found.large.area) == sorted(r * d for r, d, _ in jobs)[-10:]


def test_the_gap_of_a_curve_is_where_the_shares_differ_most() -> None:
    # Areas 1, 1 and 2; waits 4, 0 and 2 at size 1: shares of Q r are 4/6 and 1, those of the area 1/2 and 1.
    found = waiting(Outcomes(np.array([1, 1, 1]), np.array([1, 1, 2]), np.array([4, 0, 2])))
    assert found.gap(found.by_size) == pytest.approx(4 / 6 - 1 / 2)
    assert found.gap(found.by_area) == pytest.approx(0)


@pytest.mark.parametrize("name", ["US/Pacific", "Europe/Stockholm", "America/Chicago"])
def test_local_time_is_that_of_the_datetime_library(name: str) -> None:
    zone, draw = ZoneInfo(name), random.Random(5)
    changes = [datetime(2001, 4, 1, 10, tzinfo=UTC), datetime(2001, 10, 28, 1, tzinfo=UTC)]
    near = [int(change.timestamp()) + draw.randint(-7200, 7200) for change in changes for _ in range(200)]
    at = np.array(sorted([*near, *(draw.randint(956_000_000, 1_140_000_000) for _ in range(500))]))
    for seconds, shown in zip(at.tolist(), local(at, zone).tolist(), strict=True):
        wall = datetime.fromtimestamp(seconds, zone)
        assert shown == int(wall.replace(tzinfo=UTC).timestamp())
    assert winter(zone).utcoffset(None) == datetime(2001, 1, 15, tzinfo=zone).utcoffset()


def test_arrivals_by_hand() -> None:
    # Two weeks from Monday 2001-01-01 0:00 UTC: a job each hour, and four more on each Tuesday from 9 to 10.
    begin = int(datetime(2001, 1, 1, tzinfo=UTC).timestamp())
    every = [begin + 3600 * hour for hour in range(14 * 24)]
    more = [begin + 86400 * day + 9 * 3600 + minute * 60 for day in (1, 8) for minute in range(1, 5)]
    found = arrivals(np.array(sorted(every + more)), UTC)
    assert found.mean == (14 * 24 + 8) / (14 * 24)
    assert found.hourly.tolist() == [1 + 8 / 14 if hour == 9 else 1 for hour in range(24)]
    assert found.daily.tolist() == [24, 28, 24, 24, 24, 24, 24]
    assert found.peak == [9]
    assert found.rate(range(8, 12)) == 1 + 2 / 14
    assert found.quiet_nights == 1
    east = arrivals(np.array(sorted(every + more)), winter(ZoneInfo("Europe/Stockholm")))
    assert east.peak == [10]


def test_a_night_with_many_arrivals_is_not_quiet() -> None:
    begin = int(datetime(2001, 1, 1, tzinfo=UTC).timestamp())
    noon = [begin + 86400 * day + 43200 for day in range(12)]
    night = [begin + 86400 * 3 + 7200 + second for second in range(5)]
    assert arrivals(np.array(sorted(noon + night)), UTC).quiet_nights == 9 / 10


def test_a_log_of_days_is_refused() -> None:
    with pytest.raises(DovetailError, match="less than a week"):
        arrivals(np.array([0, 86400]), UTC)


def test_hours_in_words() -> None:
    assert spans([8, 9, 10]) == "8 to 11"
    assert spans([0, 1, 5, 22, 23]) == "5 to 6 and 22 to 2"
    assert spans([18, 23]) == "18 to 19 and 23 to 24"
    assert spans(list(range(24))) == "0 to 24"
    assert periods([]) == []
    assert longest([0, 5, 6, 23]) == (5, 2)
    assert longest([0, 1, 5, 6, 23]) == (23, 3)


def test_statements_are_counted_and_shown() -> None:
    said = [Statement("a", "1", True), Statement("b", "2", "in part"), Statement("c", "3", False)]
    assert facts_of(said) == {"statements": 3, "yes": 1, "in_part": 1, "no": 1}
    assert held(said) == "1 of 3 statements hold, 1 in part"
    assert stated("x", said).splitlines()[2:] == ["| a | 1 | yes |", "| b | 2 | **in part** |", "| c | 3 | **no** |"]


def test_paragraphs_are_filled_and_tables_are_not() -> None:
    long = "word " * 40
    assert [len(line) <= 110 for line in filled([long]).splitlines()] == [True, True]
    assert filled(["\na\nb\n\n", f"| {long}|"]) == f"a b\n\n| {long}|\n"


@needs_traces
@pytest.mark.parametrize("name", PAPERS)
def test_the_logs_have_the_numbers_that_the_paper_prints(name: str) -> None:
    source = SOURCES[name]
    log = read_workload(TRACES / "archive" / f"{source.file}.swf.gz")
    assert anomalies(log) == source.anomalies
    assert int(in_experiments(name, log).sum()) == source.jobs


@needs_traces
def test_the_page_on_arrivals_is_the_committed_one(tmp_path: Path) -> None:
    options = ["--traces", str(TRACES), "--store", str(tmp_path / "store"), "-o", str(tmp_path / "out"), "--json"]
    done = RUNNER.invoke(app, ["run", "dbf-figure-1", *options], catch_exceptions=False)
    facts = json.loads(done.stdout)
    assert (facts["name"], facts["runs"], facts["statements"]) == ("dbf-figure-1", 0, 7)
    assert facts["files"] == [str(tmp_path / "out" / f"dbf-figure-1.{kind}") for kind in ("md", "svg")]
    assert not (tmp_path / "store").exists()
    same_as_committed(tmp_path / "out", "dbf-figure-1")


@needs_traces
def test_the_page_on_wait_areas_goes_on_from_what_is_there_and_is_the_committed_one(tmp_path: Path) -> None:
    found, store = find("packing-figure-3"), Store(tmp_path / "store")
    runs = tasks_for(found, TRACES, store)
    assert len(runs.tasks) == 4
    local = engine("local", 1, store.path)
    assert run_tasks(Runs(TRACES, store, runs.tasks[:2]), local, print) == 2
    assert run_tasks(runs, local, print) == 2
    page = make_page(found, runs)
    assert page.facts == {"statements": 9, "yes": 7, "in_part": 1, "no": 1}
    write(found, page, tmp_path / "out")
    same_as_committed(tmp_path / "out", found.name)
    assert store.study()["runs"] == [task.name for task in runs.tasks]


def test_each_name_has_a_page_a_valid_study_and_its_command() -> None:
    pages = {page.name for page in RESULTS.glob("*.md")}
    of_benchmarks = {"windows.md", "cp-week.md", "errors.md"}
    assert pages == {found.page for found in REPRODUCTIONS.values()} | of_benchmarks
    about = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    for name, found in REPRODUCTIONS.items():
        assert f"\n```\ndovetail papers run {name}\n```\n" in (RESULTS / found.page).read_text(encoding="utf-8")
        assert f"`{name}`" in about
        if found.study:
            assert read_study(found.study).name == name
    without = [name for name, found in REPRODUCTIONS.items() if found.study is None]
    assert without == ["dbf-figure-1"]


def test_the_list_has_every_name() -> None:
    lines = RUNNER.invoke(app, ["list", "--json"], catch_exceptions=False).stdout.splitlines()
    assert [json.loads(line)["name"] for line in lines] == list(REPRODUCTIONS)
    assert json.loads(lines[0])["study"].endswith("packing-table-2.toml")
    words = RUNNER.invoke(app, ["list"], catch_exceptions=False).stdout
    assert all(found.shows in words and found.extent in words for found in REPRODUCTIONS.values())


def test_an_unknown_name_and_a_missing_log_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="choose from packing-table-2"):
        RUNNER.invoke(app, ["run", "table-9"], catch_exceptions=False)
    where = ["--traces", str(tmp_path), "--store", str(tmp_path / "s"), "-o", str(tmp_path / "o")]
    for name, log in (("cp-table-2", "papers/KTH-SP2.swf.gz"), ("dbf-figure-1", "archive/SDSC-BLUE-2000")):
        with pytest.raises(InputError, match=rf"{log}.*DOVETAIL_TRACES.*docs/papers.md"):
            RUNNER.invoke(app, ["run", name, *where], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []
