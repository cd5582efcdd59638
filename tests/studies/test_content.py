"""From runs to comparisons: the right values meet, and what is missing is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.metrics.comparison import block_length, compare
from dovetail.metrics.groups import by_group, users, weeks
from dovetail.metrics.jobs import outcomes
from dovetail.policies.registry import policy
from dovetail.studies.content import IN_RUNS, content, of_schedules
from dovetail.studies.grid import Task, plain
from dovetail.studies.store import Store
from dovetail.studies.work import run_batch
from dovetail.workloads.synthetic import lublin
from tests.studies.small import prepared, written

STUDY = """\
name = "small"
policies = ["list-reg", "easy", "easy-sjbf"]
baseline = "easy"
estimates = ["limit", "runtime"]
seeds = 7
scenarios = [[], "scale-load=1.2"]

[[traces]]
name = "made"
generate = {jobs = 200, processors = 16, load = 0.8}
"""


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, list[Task]]:
    folder = tmp_path_factory.mktemp("content")
    store = Store(folder / "a.store")
    tasks = prepared(written(folder, STUDY), store)
    run_batch(str(store.path), [plain(task) for task in tasks])
    return store, tasks


def test_cases_hold_the_means_and_comparisons_of_their_runs(filled: tuple[Store, list[Task]]) -> None:
    store, tasks = filled
    found = content(store)
    assert [(case.detail, case.estimate) for case in found.cases] == [
        ("", "limit"), ("", "runtime"), ("scale-load=1.2", "limit"), ("scale-load=1.2", "runtime"),
    ]  # fmt: skip
    assert (found.title, found.notes) == ("small", ())
    frame = store.frame()
    for case in found.cases:
        assert [entry.policy for entry in case.entries] == ["easy", "list-reg", "easy-sjbf"]
        assert (case.jobs, case.processors, case.pairing) == (200, 16, "7 seeds")
        mine = frame.filter(scenario=case.detail, estimate=case.estimate).sort("seed")
        columns = {p: mine.filter(policy=p) for p in ("easy", "list-reg", "easy-sjbf")}
        assert case.entries[0].versus == {}
        for entry in case.entries:
            assert entry.runs == 7
            assert entry.metrics["bsld"] == pytest.approx(columns[entry.policy]["bsld"].mean(), rel=1e-12)
            assert not {"seed", "cpu_s", "passes", "processors", "feedback"} & set(entry.metrics)
        for entry in case.entries[1:]:
            assert set(entry.versus) == set(IN_RUNS)
            for metric, got in entry.versus.items():
                sides = [columns[p][metric].to_numpy() for p in ("easy", entry.policy)]
                wanted = compare(*sides, lower_is_better=metric != "utilization")
                assert (got.change, got.low, got.verdict) == (wanted.change, wanted.low, wanted.verdict)
                assert got.p_holm >= wanted.p_value
    schedule = found.cases[0].entries[0].schedule
    assert schedule is not None
    assert schedule().policy == "easy"
    assert len(tasks) == 7 * 3 * 4


@pytest.mark.parametrize("pair", ["weeks", "users"])
def test_groups_of_all_runs_are_pairs(filled: tuple[Store, list[Task]], pair: str) -> None:
    store, tasks = filled
    case = content(store, pair).cases[0]
    sides = []
    for name in ("easy", "list-reg"):
        values = []
        for seed in range(7):
            cell = ("", "limit", name, seed)
            (task,) = (t for t in tasks if (t.cell.scenario, t.cell.estimate, t.cell.policy, t.cell.seed) == cell)
            schedule = store.schedule(task.name)
            assert schedule is not None
            group, names = (weeks if pair == "weeks" else users)(schedule)
            values.append(by_group(outcomes(schedule), group, len(names))["mean_wait_s"])
        sides.append(np.concatenate(values))
    block = block_length(len(sides[0])) if pair == "weeks" else 1
    wanted = compare(*sides, block=block)
    got = case.entries[1].versus["mean_wait_s"]
    assert (got.pairs, got.change) == (wanted.pairs, wanted.change)
    assert (np.isnan(got.low) and np.isnan(wanted.low)) or got.low == wanted.low


def shas(tasks: list[Task], gone: Task) -> set[str]:
    """The workloads as they are, without the one of a task."""
    return {t.workload_sha256 for t in tasks if not t.cell.scenario} - {gone.workload_sha256}


def test_what_is_missing_is_said_and_not_paired(filled: tuple[Store, list[Task]], tmp_path: Path) -> None:
    store = Store(tmp_path / "b.store")
    tasks = prepared(written(tmp_path, STUDY), store)
    with pytest.raises(SettingError, match="has no run of its study yet"):
        content(store)
    gone = next(t for t in tasks if (t.cell.policy, t.cell.estimate, t.cell.seed) == ("list-reg", "limit", 2))
    for task in tasks:
        if task.name != gone.name and not task.cell.scenario:
            source = filled[0].path / "runs" / f"{task.name}.parquet"
            (store.path / "runs" / source.name).write_bytes(source.read_bytes())
    found = content(store)
    assert found.notes == ("43 of 84 cells are missing: they failed or have not run yet.",)
    entries = {entry.policy: entry for entry in found.cases[0].entries}
    assert entries["list-reg"].runs == entries["list-reg"].versus["bsld"].pairs == 6
    assert entries["easy-sjbf"].versus["bsld"].pairs == 7
    by_users = content(store, "users").cases[0]  # of the six seeds that all policies have
    wanted = sum(len(users(replay(store.workload(sha), policy("easy")))[1]) for sha in shas(tasks, gone))
    assert [entry.versus["bsld"].pairs for entry in by_users.entries[1:]] == [wanted, wanted]
    other = pl.read_parquet(store.path / "runs" / f"{tasks[0].name}.parquet").with_columns(code=pl.lit("old"))
    other.write_parquet(store.path / "runs" / f"{tasks[0].name}.parquet")
    (store.path / "index.parquet").unlink()
    assert "The runs were made by 2 versions of the code" in content(store).notes[1]


def test_replays_without_a_store() -> None:
    workload = lublin(6_000, 16, seed=1, load=0.08)
    schedules = [replay(workload, policy(name)) for name in ("easy", "easy-sjbf")]
    case = of_schedules(schedules)
    number = len(np.unique(weeks(schedules[0])[0]))  # weeks with jobs
    assert number > 20
    assert case.pairing == f"{number} weeks"
    assert case.entries[1].versus["bsld"].pairs == number
    assert case.entries[0].schedule is not None
    assert case.entries[0].schedule() is schedules[0]
    with pytest.raises(SettingError, match="no pairing 'runs' of single replays"):
        of_schedules(schedules, "runs")


def test_unknown_pairing(filled: tuple[Store, list[Task]]) -> None:
    with pytest.raises(SettingError, match="no pairing 'days': choose one of runs, weeks, users"):
        content(filled[0], "days")
