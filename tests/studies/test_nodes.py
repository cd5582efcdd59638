"""Studies on nodes: what a cell carries, how its run is called, and that it is the replay's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dovetail as dt
from dovetail.engine.replay import replay
from dovetail.errors import InputError, SettingError
from dovetail.io.clusters import cluster_named
from dovetail.metrics import summarize
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.reports.page import write
from dovetail.studies.cases import content
from dovetail.studies.grid import tasks_of
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store, cluster_of, nodes_text
from tests.cli.test_nodes import NODES
from tests.studies.small import prepared, ran, run, written

STUDY = """\
name = "nodes"
policies = [{name = "easy", place = ["first", "worst", "gradient"]}, "greedy-saf"]
estimates = ["limit", "runtime"]

[[traces]]
name = "made"
generate = {jobs = 200, processors = 64, load = 0.9}
scenarios = ["per-node=8"]
cluster = "mine.toml"

[[traces]]
name = "counted"
generate = {jobs = 50, processors = 64}
"""


def placed(folder: Path, text: str = STUDY) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "mine.toml").write_text(NODES)
    return written(folder, text)


@pytest.mark.slow
def test_run_twice_it_is_the_same_and_it_is_the_replays(tmp_path: Path) -> None:
    path, store = placed(tmp_path / "one"), Store(tmp_path / "one" / "store")
    assert run(path, store).done == 16
    other = Store(tmp_path / "two" / "store")
    placed(tmp_path / "two")
    other, tasks = ran(tmp_path / "two", STUDY)
    assert store.digest() == other.digest()
    cluster = cluster_named(str(tmp_path / "one" / "mine.toml"))
    for task in tasks:
        schedule = store.schedule(task.name)
        assert schedule is not None
        if task.cell.trace == "counted":
            assert task.cluster == ""
            assert schedule.placement is None
            continue
        assert cluster_of(task.processors, task.cluster) == cluster
        assert schedule.workload.provenance.steps[-1].name == "does not fit on the idle nodes"
        wanted = replay(schedule.workload, policy(task.policy), cluster=cluster, estimate=task.estimate)
        assert schedule.placement is not None
        assert wanted.placement is not None
        assert schedule.start.tolist() == wanted.start.tolist()
        assert schedule.placement.node.tolist() == wanted.placement.node.tolist()
        row = store.frame({task.name}).row(0, named=True)
        assert row["stranded_gpus"] == summarize(wanted)["stranded_gpus"]
    frame = store.frame().filter(trace="made", policy="easy:place=first", estimate="limit")
    worst = store.frame().filter(trace="made", policy="easy:place=worst", estimate="limit")
    assert frame["mean_wait_s"][0] != worst["mean_wait_s"][0]


@pytest.mark.slow
def test_a_report_of_such_runs(tmp_path: Path) -> None:
    placed(tmp_path)
    store, _ = ran(tmp_path, STUDY)
    shown = content(store)
    assert [case.machine for case in shown.cases] == [*["15 nodes with 64 cores"] * 2, *["64 processors"] * 2]
    write(shown, tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "15 nodes with 64 cores" in page


def test_the_nodes_are_in_the_name_and_the_file_is_not(tmp_path: Path) -> None:
    path = placed(tmp_path)
    first, *_, counted = tasks_of(read_study(path), path, lambda _: None)
    assert first.cluster == nodes_text(cluster_named(str(tmp_path / "mine.toml")))
    assert not counted.cluster
    moved = written(tmp_path, STUDY.replace("mine.toml", "yours.toml"))
    (tmp_path / "mine.toml").rename(tmp_path / "yours.toml")
    assert tasks_of(read_study(moved), moved, lambda _: None)[0].name == first.name
    (tmp_path / "yours.toml").write_text(NODES.replace("gpus = 2", "gpus = 4"))
    other = tasks_of(read_study(moved), moved, lambda _: None)[0]
    assert other.workload_sha256 == first.workload_sha256
    assert other.name != first.name


@pytest.mark.parametrize(
    ("old", "new", "line", "says"),
    [
        ('"mine.toml"', '"nix"', 9, "trace 'made': no cluster 'nix': choose from eurora, kit-fh2"),
        ('"mine.toml"', '"nix.toml"', 9, "nix.toml: no such file"),
        ('"mine.toml"', '"$NO_SUCH_PLACE/x.toml"', 9, "the environment has no such variable"),
        ('"mine.toml"', '"mine.toml"\nprocessors = 64', 5, "either `processors` or a `cluster`"),
    ],
)
def test_a_wrong_cluster_is_named_with_its_line(tmp_path: Path, old: str, new: str, line: int, says: str) -> None:
    path = placed(tmp_path, STUDY.replace(old, new))
    with pytest.raises(InputError) as caught:
        tasks_of(read_study(path), path, lambda _: None)
    assert says in str(caught.value)
    assert caught.value.line == line


def test_a_policy_that_cannot_run_on_nodes_is_refused_before_anything_runs(tmp_path: Path) -> None:
    path = placed(tmp_path, STUDY.replace("greedy-saf", "cp-af"))
    with pytest.raises(SettingError, match="cp-af counts processors"):
        prepared(path, Store(tmp_path / "store"))
    left_out = STUDY.replace("greedy-saf", "cp-af") + '\n[[exclude]]\ntrace = "made"\npolicy = "cp-af"\n'
    assert len(prepared(placed(tmp_path, left_out), Store(tmp_path / "store"))) == 14


def test_nodes_with_names_come_back_and_say_what_happened(tmp_path: Path) -> None:
    """Whose names matter to `recorded`: a run of it knows them."""
    (tmp_path / "named.toml").write_text('[[nodes]]\nkind = "c"\ncount = 2\nhosts = "c[1-2]"\ncores = 4\n')
    cluster = cluster_named(str(tmp_path / "named.toml"))
    assert cluster_of(8, nodes_text(cluster)) == cluster
    assert "hosts" not in nodes_text(replace(cluster, names=()))
    made = {name: np.array([1]) for name in ("id", "line", "runtime", "limit", "size")} | {"submit": np.array([0])}
    log = Workload("log", made | {"wait": np.array([0]), "ran_on": np.array([0])}, 8, names={"ran_on": ("c2",)})
    dt.write(log, tmp_path / "log.parquet")
    study = 'name = "s"\npolicies = ["recorded"]\n[[traces]]\npath = "log.parquet"\ncluster = "named.toml"\n'
    (tmp_path / "study.toml").write_text(study)
    store, tasks = ran(tmp_path, study)
    schedule = store.schedule(tasks[0].name)
    assert schedule is not None
    assert schedule.placement is not None
    assert schedule.placement.node.tolist() == [1]
