"""From runs to comparisons: the right values meet, and what is missing is said."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.io.swf import write_swf
from dovetail.metrics.comparison import block_length, compare
from dovetail.metrics.groups import by_group, users, weeks
from dovetail.metrics.jobs import outcomes
from dovetail.policies.registry import policy
from dovetail.studies.cases import IN_RUNS, content, of_schedules, write_page
from dovetail.studies.store import Store
from dovetail.studies.task import Task, plain
from dovetail.studies.worker import run_batch
from dovetail.workloads.lublin import lublin
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


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
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
    case = found.cases[0]
    assert case.remarks == ("Only the 6 of 7 spans and seeds that all policies have are counted.",)
    frame = store.frame().filter(estimate="limit").filter(pl.col("seed") != 2)
    for entry in case.entries:  # means and pairs are over the same runs
        assert entry.runs == 6
        assert entry.metrics["bsld"] == pytest.approx(frame.filter(policy=entry.policy)["bsld"].mean(), rel=1e-12)
        assert [one.pairs for one in entry.versus.values()] == [6] * len(entry.versus)
    by_users = content(store, "users").cases[0]
    wanted = sum(len(users(replay(store.workload(sha), policy("easy")))[1]) for sha in shas(tasks, gone))
    assert [entry.versus["bsld"].pairs for entry in by_users.entries[1:]] == [wanted, wanted]


def ran(folder: Path, text: str) -> Store:
    store = Store(folder / "c.store")
    tasks = prepared(written(folder, text), store)
    assert not [one for one in run_batch(str(store.path), [plain(task) for task in tasks]) if one["error"]]
    return store


FIXED = """\
name = "small"
policies = ["easy", "list-saf"]
spans = ["all", "each 2h"]
seeds = {seeds}

[[traces]]
path = "made.swf"
"""


@pytest.mark.slow
@pytest.mark.parametrize("pair", ["runs", "weeks", "users"])
def test_a_seed_that_changes_nothing_is_no_further_pair(tmp_path: Path, pair: str) -> None:
    write_swf(lublin(400, 16, seed=2, load=0.8), tmp_path / "made.swf")
    found = []
    for seeds in (1, 5):
        folder = tmp_path / str(seeds)
        folder.mkdir()
        (folder / "made.swf").symlink_to(tmp_path / "made.swf")
        found.append(content(ran(folder, FIXED.format(seeds=seeds)), pair))
    once, often = ([[repr(entry.versus) for entry in case.entries] for case in one.cases] for one in found)
    assert once == often
    # the whole trace and its stretches overlap: they are never in one case
    assert [case.detail.partition(" ")[2] for case in found[0].cases] == ["", "spans"]
    assert [case.jobs == 400 for case in found[0].cases] == [True, False]


def test_a_missing_baseline_and_a_lonely_policy_are_said(tmp_path: Path) -> None:
    rules = '[[exclude]]\npolicy = "easy"\n[[exclude]]\npolicy = "list-reg"\nseed = [0, 1]\n'
    rules += '[[exclude]]\npolicy = "list-saf"\nseed = 2\n'
    text = 'name = "x"\npolicies = ["easy", "list-saf", "list-reg", "list-sjf"]\nseeds = 3\n'
    store = ran(tmp_path, text + "[[traces]]\ngenerate = {jobs = 90, processors = 8}\n" + rules)
    (case,) = content(store).cases
    assert [entry.policy for entry in case.entries] == ["list-saf", "list-sjf"]
    assert case.remarks == (
        "The baseline easy has no run here: changes are against list-saf.",
        "list-reg is left out: it has no run with the same span and seed as the others.",
        "Only the 2 of 3 spans and seeds that all policies have are counted.",
    )


@pytest.mark.parametrize(
    ("setting", "why"),
    [
        ('keep = "metrics"', "the study kept metrics only, not the starts of jobs"),
        ('counting = "ended"', "under the rule `ended`, policies count different jobs"),
    ],
)
def test_groups_that_are_no_pairs_are_not_compared(tmp_path: Path, setting: str, why: str) -> None:
    text = f'name = "x"\n{setting}\npolicies = ["easy", "list-saf"]\n[[traces]]\n'
    found = content(ran(tmp_path, text + "generate = {jobs = 90, processors = 8}\n"))
    assert found.cases[0].remarks == (f"Nothing was compared by weeks: {why}.",)
    assert [entry.versus for entry in found.cases[0].entries] == [{}, {}]
    assert [note for note in found.notes if "counting" in note or "ended" in note] == [
        note for note in ["Metrics over jobs count by the rule `ended`; pictures show all jobs."] if "ended" in setting
    ]


def test_who_knows_the_future_is_named(tmp_path: Path) -> None:
    text = 'name = "x"\npolicies = ["easy", "offline-af:decodes=5"]\n[[traces]]\n'
    store = ran(tmp_path, text + "generate = {jobs = 40, processors = 8}\n")
    (from_store,) = content(store).cases
    work = lublin(40, 8, seed=1)
    alone = of_schedules([replay(work, policy(name)) for name in ("easy", "offline-af:decodes=5")])
    words = "Clairvoyant: offline-af:decodes=5. The run times and the submissions to come are known there."
    assert from_store.remarks == alone.remarks == (words,)
    assert [entry.schedule().clairvoyant for entry in from_store.entries if entry.schedule] == [False, True]


def test_what_was_recorded_is_the_baseline_of_a_study(tmp_path: Path) -> None:
    """Also of a log that has more in use than its machine has."""
    made = lublin(200, 8, seed=1)
    write_swf(made, tmp_path / "log.swf", wait=np.zeros(len(made), np.int64))
    text = f'name = "x"\npolicies = ["easy", "recorded"]\n[[traces]]\npath = "{tmp_path / "log.swf"}"\n'
    store = ran(tmp_path, text)
    (case,) = content(store).cases
    assert case.policies == ("recorded", "easy")
    assert [entry.recorded for entry in case.entries] == [True, False]
    assert [entry.schedule().recorded for entry in case.entries if entry.schedule] == [True, False]
    assert case.entries[0].metrics["rules_broken"] > 0
    assert len(write_page(store, tmp_path / "page.html").cases) == 1


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
    with pytest.raises(SettingError, match="two of these policies have the same name"):
        of_schedules([schedules[0], schedules[0]])


def test_unknown_pairing(filled: tuple[Store, list[Task]]) -> None:
    with pytest.raises(SettingError, match="no pairing 'days': choose one of runs, weeks, users"):
        content(filled[0], "days")
