"""A trace of a study at a site: energy among the metrics, prices known to policies, and the site in a run's name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from dovetail.errors import InputError
from dovetail.io.sites import read_site
from dovetail.metrics.energy import of_energy
from dovetail.studies.grid import tasks_of
from dovetail.studies.spec import read_study
from dovetail.studies.task import plain
from dovetail.studies.worker import run_batch
from tests.studies.small import ran, written

STUDY = """\
name = "at a site"
policies = ["easy", "daily"]
estimates = ["runtime"]

[[traces]]
name = "made"
generate = {jobs = 100, processors = 32, load = 0.9}
site = "site.toml"
"""
SITE = """\
busy_w = 10
idle_w = 2
tariff = 0.02
[price]
file = "prices.csv"
column = "eur"
"""


def at_site(folder: Path, dear: int = 90) -> Path:
    (folder / "site.toml").write_text(SITE, encoding="utf-8")
    rows = "".join(f"2024-01-01 {hour:02d}:00,{dear if hour % 2 else 10}\n" for hour in range(24))
    (folder / "prices.csv").write_text(f"time,eur\n{rows}", encoding="utf-8")
    return folder / "site.toml"


def test_runs_say_what_energy_costs(tmp_path: Path) -> None:
    site = read_site(at_site(tmp_path))
    store, tasks = ran(tmp_path, STUDY)
    assert [task.cell.policy for task in tasks] == ["easy", "daily"]
    index = store.frame()
    for task in tasks:
        row = index.filter(index["run"] == task.name).to_dicts()[0]
        schedule = store.schedule(task.name)
        assert schedule is not None
        assert row["energy_cost"] == of_energy(schedule, site)["energy_cost"] > 0
        assert row["profit"] == pytest.approx(row["revenue"] - row["energy_cost"])
    assert index["energy_cost"].n_unique() == 2


def test_a_site_is_part_of_the_name_and_where_it_lies_is_not(tmp_path: Path) -> None:
    at_site(tmp_path)
    study = read_study(written(tmp_path, STUDY))
    first = tasks_of(study, tmp_path / "study.toml", lambda workload: None)
    other = tmp_path / "other"
    other.mkdir()
    at_site(other)
    written(other, STUDY)
    assert [task.name for task in tasks_of(study, other / "study.toml", lambda workload: None)] == [
        task.name for task in first
    ]
    at_site(other, dear=91)
    changed = tasks_of(study, other / "study.toml", lambda workload: None)
    assert not {task.name for task in changed} & {task.name for task in first}
    none = [replace(task, site="", site_sha256="").name for task in first]
    assert not {*none} & {task.name for task in first}


def test_a_site_that_changes_meanwhile_ends_the_cell(tmp_path: Path) -> None:
    at_site(tmp_path)
    store, tasks = ran(tmp_path, STUDY)
    at_site(tmp_path, dear=91)
    results = run_batch(str(store.path), [plain(task) for task in tasks])
    assert all("has changed since the study began" in result["error"] for result in results)


def test_a_site_that_is_not_there_is_named_with_its_line(tmp_path: Path) -> None:
    path = written(tmp_path, STUDY)
    with pytest.raises(InputError, match=r"site\.toml") as error:
        tasks_of(read_study(path), path, lambda workload: None)
    assert error.value.line in (5, 8)
