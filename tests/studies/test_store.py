"""The store: whole files or none, an index that can be made again, the same bytes each time."""

from __future__ import annotations

import json
import os
import shutil
import time
from concurrent.futures import Executor, Future
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import polars as pl
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import InputError
from dovetail.metrics import summarize
from dovetail.policies.registry import policy
from dovetail.referee import assert_valid
from dovetail.studies.cases import content
from dovetail.studies.runner import run_study, tell_of_earlier
from dovetail.studies.store import PASS_TIMES, STARTS, VOLATILE, Store
from dovetail.studies.task import Task, plain
from dovetail.studies.worker import run_batch
from tests.reports.nodes import MIXED, placed, random_jobs
from tests.studies.small import SMALL, prepared, ran, written


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[Task]]:
    folder = tmp_path_factory.mktemp("study")
    store = Store(folder / "a.store")
    tasks = prepared(written(folder), store)
    results = run_batch(str(store.path), [plain(task) for task in tasks])
    assert [result["name"] for result in results] == [task.name for task in tasks]
    assert not [result for result in results if result["error"]]
    return store, tasks


def copied(store: Store, to: Path) -> Store:
    shutil.copytree(store.path, to)
    return Store(to)


def test_a_run_holds_what_a_replay_gives(filled: tuple[Store, list[Task]]) -> None:
    store, tasks = filled
    frame = store.frame()
    assert set(frame["run"]) == {task.name for task in tasks}
    assert not set(STARTS) & set(frame.columns)
    assert set(VOLATILE) <= set(frame.columns)
    for task in tasks[::7]:
        workload = store.workload(task.workload_sha256)
        assert workload.digest() == task.workload_sha256
        wanted = replay(workload, policy(task.policy), estimate=task.cell.estimate, seed=task.cell.seed)
        got = store.schedule(task.name)
        assert got is not None
        assert got.start.tolist() == wanted.start.tolist()
        assert got.arrive.tolist() == wanted.arrive.tolist()
        assert got.promised_first.tolist() == wanted.promised_first.tolist()
        assert (got.policy, got.estimate, got.seed) == (task.cell.policy, task.cell.estimate, task.cell.seed)
        assert_valid(got)
        row = frame.row(by_predicate=pl.col("run") == task.name, named=True)
        assert {key: row[key] for key in wanted_metrics(got)} == pytest.approx(wanted_metrics(got), rel=0, nan_ok=True)


def wanted_metrics(schedule: object) -> dict[str, float]:
    return summarize(schedule)  # type: ignore[arg-type]


def test_the_index_is_made_again_from_the_files(filled: tuple[Store, list[Task]], tmp_path: Path) -> None:
    store = copied(filled[0], tmp_path / "b.store")
    whole = store.frame()
    index = store.path / "index.parquet"
    for spoil in (
        index.unlink,
        lambda: index.write_bytes(b"PAR1 not"),
        lambda: pl.DataFrame({"x": [1]}).write_parquet(index),
    ):
        spoil()
        assert store.frame().equals(whole, null_equal=True)
    gone = filled[1][0].name
    (store.path / "runs" / f"{gone}.parquet").unlink()
    assert store.frame().equals(whole.filter(pl.col("run") != gone), null_equal=True)
    assert set(store.frame({filled[1][3].name})["run"]) == {filled[1][3].name}


@pytest.mark.slow
def test_equal_stores_have_equal_digests(filled: tuple[Store, list[Task]], tmp_path: Path) -> None:
    store, tasks = filled
    again = Store(tmp_path / "again.store")
    prepared(written(tmp_path), again)
    run_batch(str(again.path), [plain(task) for task in reversed(tasks)])
    assert again.digest() == store.digest()
    run = again.path / "runs" / f"{tasks[5].name}.parquet"
    row = pl.read_parquet(run)
    row.with_columns(pl.col("metrics").struct.with_fields(pl.field("bsld") + 1e-9)).write_parquet(run)
    assert again.digest() != store.digest()
    row.with_columns(cpu_s=pl.lit(9.0)).write_parquet(run)
    assert again.digest() == store.digest()
    moved = row.with_columns(start=pl.col("start").list.eval(pl.element() + 1))
    moved.write_parquet(run)
    assert again.digest() != store.digest()


def test_duckdb_reads_the_files_as_they_are(filled: tuple[Store, list[Task]]) -> None:
    store, tasks = filled
    files = str(store.path / "runs" / "*.parquet")
    with duckdb.connect() as database:
        query = "select policy, avg(metrics.mean_wait_s), count(*) from read_parquet(?) group by policy order by policy"
        rows = database.execute(query, [files]).fetchall()
        starts = database.execute("select sum(len(start)) from read_parquet(?)", [files]).fetchone()
    wanted = store.frame().group_by("policy").agg(pl.col("mean_wait_s").mean(), pl.len()).sort("policy").rows()
    assert [(name, count) for name, _, count in rows] == [(name, count) for name, _, count in wanted]
    assert [mean for _, mean, _ in rows] == pytest.approx([mean for _, mean, _ in wanted], rel=1e-12)
    assert starts == (sum(task.jobs for task in tasks),)


def test_half_written_files_are_no_runs_and_go_when_old(filled: tuple[Store, list[Task]], tmp_path: Path) -> None:
    store = copied(filled[0], tmp_path / "c.store")
    left = store.path / "runs" / ".abc.parquet.0011aaff.new"
    left.write_bytes(b"half")
    before = store.names()
    store.create()
    assert left.exists()  # it may have a writer
    os.utime(left, (time.time() - 3600, time.time() - 3600))
    store.create()
    assert not left.exists()
    assert store.names() == before


def test_metrics_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "d.store")
    text = 'name = "x"\nkeep = "metrics"\npolicies = ["easy"]\n[[traces]]\ngenerate = {jobs = 50, processors = 8}\n'
    (task,) = prepared(written(tmp_path, text), store)
    run_batch(str(store.path), [plain(task)])
    assert store.schedule(task.name) is None
    assert store.frame()["jobs"].to_list() == [50]


def test_times_of_passes_are_kept_where_they_are_asked_for(filled: tuple[Store, list[Task]], tmp_path: Path) -> None:
    assert filled[0].frame().select(PASS_TIMES).null_count().row(0) == (len(filled[1]),) * len(PASS_TIMES)
    text = 'name = "x"\npolicies = ["easy"]\nestimates = "runtime"\n{}[[traces]]\n{}'
    made = 'name = "made"\ngenerate = {jobs = 600, processors = 32, load = 0.9}\n'
    stores, names = [], []
    for folder, line in (("plain", ""), ("timed", "pass_times = true\n"), ("again", "pass_times = true\n")):
        (tmp_path / folder).mkdir()
        stores.append(Store(tmp_path / folder / "store"))
        (task,) = prepared(written(tmp_path / folder, text.format(line, made)), stores[-1])
        assert [result["error"] for result in run_batch(str(stores[-1].path), [plain(task)])] == [""]
        names.append(task.name)
    assert names[0] != names[1] == names[2]  # a run without times does not stand for one with them
    assert stores[1].digest() == stores[2].digest()
    plain_row, row = (store.frame().row(0, named=True) for store in stores[:2])
    same = set(row) - set(VOLATILE) - {"run"}
    assert {key: row[key] for key in same} == {key: plain_row[key] for key in same}
    assert 0 < row["pass_p50_ms"] <= row["pass_p99_ms"] <= row["pass_max_ms"]
    assert row["pass_p50_ms"] < 1000
    assert 0 < row["search_p50_ms"] <= row["search_p99_ms"] <= row["pass_max_ms"]
    assert 0 < row["search_share"] < 1
    assert 0 < row["pass_overhead_ms"] < 1
    schedules = [store.schedule(name) for store, name in zip(stores, names, strict=True)]
    assert schedules[0] is not None
    assert schedules[1] is not None
    assert schedules[0].start.tolist() == schedules[1].start.tolist()


def test_a_run_on_nodes_keeps_its_nodes(
    filled: tuple[Store, list[Task]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = copied(filled[0], tmp_path / "nodes.store")
    jobs = random_jobs(200, MIXED, 1)
    kept = {name: jobs[name] for name in ("id", "submit", "size", "runtime", "limit")}  # a unit for each processor
    schedule = placed(replace(jobs, columns=kept, names={}), MIXED)
    assert schedule.placement is not None
    assert len(schedule.placement.devices) == schedule.workload.size.sum()
    store.keep(schedule.workload)
    task = replace(filled[1][0], workload_sha256=schedule.workload.digest(), processors=MIXED.processors)
    assert task.keep == "starts"
    monkeypatch.setattr("dovetail.studies.worker._replayed", lambda *_: (schedule, None))
    assert [result["error"] for result in run_batch(str(store.path), [plain(task)])] == [""]
    got = store.schedule(task.name)
    assert got is not None
    assert got.placement is not None
    assert got.cluster == MIXED
    assert got.start.tolist() == schedule.start.tolist()
    for field in ("first", "node", "devices"):
        assert getattr(got.placement, field).tolist() == getattr(schedule.placement, field).tolist()
    # Other runs have no such columns, and the index has them of none.
    path = store.path / "runs" / f"{task.name}.parquet"
    assert {"cluster", "node", "devices"} <= set(pl.read_parquet(path).columns)
    others = store.path / "runs" / f"{filled[1][0].name}.parquet"
    assert not {"cluster", "node", "devices"} & set(pl.read_parquet(others).columns)
    assert others.read_bytes() == (filled[0].path / "runs" / others.name).read_bytes()
    assert not {"node", "devices"} & set(store.frame().columns)
    # The digest covers them.
    before, frame = store.digest(), pl.read_parquet(path)
    other = schedule.placement.node.copy()
    other[len(other) // 2] += 1  # in the middle, which a list in words leaves out
    frame.with_columns(pl.Series("node", [other.tolist()])).write_parquet(path)
    assert store.digest() != before
    damaged = (
        pl.Series("node", [[64, *schedule.placement.node[1:].tolist()]]),
        pl.Series("node", [[1, 2, 3]]),
        pl.Series("devices", [[1]]),
        pl.Series("cluster", ["[1, 2"]),
        pl.Series("cluster", ['{"kinds": []}']),
    )
    for wrong in damaged:
        frame.with_columns(wrong).write_parquet(path)
        with pytest.raises(InputError, match=r"its nodes are damaged: .*; delete it and run the study again"):
            store.schedule(task.name)


def test_what_is_no_store_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a store: it has no folder `runs`"):
        Store(tmp_path).frame()
    with pytest.raises(InputError, match="not a store's"):
        Store(tmp_path).study()
    for wrong in ({"name": "x"}, {"name": 5, "baseline": "", "text": "", "runs": []}, {"name": "", "runs": 5}, [5]):
        (tmp_path / "study.json").write_text(json.dumps(wrong))
        with pytest.raises(InputError, match="not a store's"):
            Store(tmp_path).study()


def test_a_damaged_workload_is_named(filled: tuple[Store, list[Task]], tmp_path: Path) -> None:
    store = copied(filled[0], tmp_path / "f.store")
    sha256 = filled[1][0].workload_sha256
    (store.path / "workloads" / f"{sha256}.parquet").write_bytes(b"")
    with pytest.raises(InputError, match=r"damaged; run the study again"):
        store.workload(sha256)


def test_a_worker_refuses_what_is_not_what_it_was_sent(filled: tuple[Store, list[Task]], tmp_path: Path) -> None:
    store = copied(filled[0], tmp_path / "g.store")
    other = replace(filled[1][0], code="0")
    (result,) = run_batch(str(store.path), [plain(other)])
    assert "another version of Dovetail" in result["error"]
    (tmp_path / "mine.py").write_text("from dovetail.policies.registry import policy\neasy = policy('easy')\n")
    text = 'name = "x"\npolicies = ["mine.py:easy"]\n[[traces]]\ngenerate = {jobs = 50, processors = 8}\n'
    (task,) = prepared(written(tmp_path, text), store)
    (tmp_path / "mine.py").write_text("from dovetail.policies.registry import policy\neasy = policy('list-saf')\n")
    (result,) = run_batch(str(store.path), [plain(task)])
    assert "a file of the policy or the estimate has changed" in result["error"]
    assert task.name not in store.names()


def test_a_damaged_run_is_named(filled: tuple[Store, list[Task]], tmp_path: Path) -> None:
    store = copied(filled[0], tmp_path / "e.store")
    run = store.path / "runs" / f"{filled[1][0].name}.parquet"
    run.write_bytes(run.read_bytes()[:100])
    (store.path / "index.parquet").unlink(missing_ok=True)
    for read in (store.frame, store.digest, lambda: store.schedule(filled[1][0].name)):
        with pytest.raises(InputError, match="not a run, or damaged"):
            read()


def test_damaged_runs_and_workloads_are_found_and_made_again(
    filled: tuple[Store, list[Task]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Empty, cut short, one bit changed: whatever the index says of them."""
    (tmp_path / "a").mkdir()
    store = copied(filled[0], tmp_path / "a" / "study.store")
    wanted, rows = store.digest(), store.frame().drop(VOLATILE)
    path = written(tmp_path / "a")
    runs = [store.path / "runs" / f"{task.name}.parquet" for task in filled[1]]
    whole = runs[2].read_bytes()
    at = whole.index(b"PAR1", 4) // 2
    for run, data in zip(runs, (b"", whole[:-1], whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :]), strict=False):
        run.write_bytes(data)
    jobs = store.path / "workloads" / f"{filled[1][0].workload_sha256}.parquet"
    jobs.write_bytes(jobs.read_bytes()[:500])
    there, outcome = run_study(path, store.path, SameProcess(), None, print)
    assert f"{store.path}: 3 runs were damaged: run again" in capsys.readouterr().out
    assert (outcome.done, outcome.failed, there.digest()) == (3, {}, wanted)
    assert there.frame().drop(VOLATILE).equals(rows, null_equal=True)
    assert run_study(path, store.path, SameProcess(), None, print)[1].done == 0
    assert capsys.readouterr().out == ""


class SameProcess(Executor):
    """Does what it is given at once."""

    def submit(self, function: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(function(*args, **kwargs))
        return future


def test_a_changed_bit_in_the_index_is_no_number(filled: tuple[Store, list[Task]], tmp_path: Path) -> None:
    store = copied(filled[0], tmp_path / "h.store")
    whole = store.frame()
    index = store.path / "index.parquet"
    data = bytearray(index.read_bytes())
    for at in range(40, len(data), len(data) // 5):
        index.write_bytes(data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :])
        assert store.frame().equals(whole, null_equal=True)


def test_a_store_of_an_earlier_version_says_so(tmp_path: Path) -> None:
    """Runs by other code, and runs without a format, as they were before there was one."""
    store, tasks = ran(tmp_path, SMALL.replace('spans = ["all", "each 12h"]\n', ""))
    names = [task.name for task in tasks]
    said: list[str] = []
    tell_of_earlier(store, said.append)
    assert (store.earlier(), said) == (set(), [])
    assert not content(store).notes
    for name, change in ((names[0], {"code": "0" * 16}), (names[1], {"format": 1})):
        path = store.path / "runs" / f"{name}.parquet"
        pl.read_parquet(path).with_columns(**{key: pl.lit(value) for key, value in change.items()}).write_parquet(path)
    bare = store.path / "runs" / f"{names[2]}.parquet"
    pl.read_parquet(bare).drop("format").write_parquet(bare)
    (store.path / "index.parquet").unlink()
    assert store.earlier() == set(names[:3])
    tell_of_earlier(store, said.append)
    assert said == [
        f"{store.path} has 3 runs by an earlier version of Dovetail. They are not used: their cells are run anew."
        " docs/store.md says how to delete them."
    ]
    first = f"3 of {len(names)} runs were made by an earlier version of Dovetail. `dovetail study run` makes them anew."
    assert content(store).notes == (first,)
    for name in names[3:]:
        (store.path / "runs" / f"{name}.parquet").unlink()
    for name in names[:2]:
        path = store.path / "runs" / f"{name}.parquet"
        pl.read_parquet(path).drop("format").write_parquet(path)
    (store.path / "index.parquet").unlink()
    assert store.earlier() == set(names[:3])
