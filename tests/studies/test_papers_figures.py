"""The figures of papers: curves and clocks against slow code, and the committed pages against a new run of them."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from dovetail.cli.papers import app
from dovetail.errors import InputError, SettingError
from dovetail.metrics import Outcomes
from dovetail.studies.executors import engine
from dovetail.studies.papers.packing_figure_3 import waiting
from dovetail.studies.papers.page import Runs, Statement, facts_of, filled, held, stated
from dovetail.studies.papers.registry import REPRODUCTIONS, find
from dovetail.studies.papers.reproduce import make_page, run_tasks, tasks_for, write
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store
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
    of_benchmarks = {"windows.md", "cp-week.md", "errors.md", "nodes-scale.md", "energy-fronts.md"}
    assert pages == {found.page for found in REPRODUCTIONS.values()} | of_benchmarks
    about = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    for name, found in REPRODUCTIONS.items():
        assert f"\n```\ndovetail papers run {name}\n```\n" in (RESULTS / found.page).read_text(encoding="utf-8")
        assert f"`{name}`" in about
        if found.study:
            assert read_study(found.study).name == name
    without = [name for name, found in REPRODUCTIONS.items() if found.study is None]
    assert without == ["profit", "alibaba-gpus"]


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
    with pytest.raises(InputError, match=r"papers/KTH-SP2.swf.gz.*DOVETAIL_TRACES.*docs/papers.md"):
        RUNNER.invoke(app, ["run", "cp-table-2", *where], catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []
