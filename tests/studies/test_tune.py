"""`dovetail tune`: the past chooses, what came after judges."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dovetail.errors import SettingError
from dovetail.io.clusters import write_cluster
from dovetail.io.write import write
from dovetail.model.workload import Step, Workload
from dovetail.policies.registry import policy
from dovetail.policies.slurm import as_told
from dovetail.slurm.scheduling import parameters_line
from dovetail.studies.executors import Engine
from dovetail.studies.store import Store
from dovetail.studies.tune import (
    BASE,
    FILE,
    GOALS,
    STRETCHES,
    USUAL,
    Tuned,
    candidates,
    longest_wait,
    slurm_candidates,
    tune,
    write_study,
)
from dovetail.workloads.lublin import lublin
from tests.command import run
from tests.policies.test_slurm import jobs, kept, machine

HERE = Engine(lambda: nullcontext(ThreadPoolExecutor(1)), 1, 0.5, 2)
"""In this process: a pool of others takes seconds to start for each round."""
NAMES = [BASE, USUAL, "list-sjf", "list-saf", "list-laf", "easy-sjbf"]


def log(seed: int = 5, first_day: int = 0) -> Workload:
    """Forty days of a busy machine."""
    workload = lublin(2500, 32, seed=seed, load=0.9)
    first, last = int(workload.submit[0]), int(workload.submit[-1])
    submit = first_day * 86400 + first + (workload.submit - first) * (40 * 86400) // (last - first)
    return workload.with_columns(Step("stretched"), submit=submit, size=np.minimum(2 * workload.size, 32))


def tuned(
    folder: Path,
    workload: Workload,
    longest: tuple[float, float] = (inf, inf),
    goal: str = "af",
    names: Sequence[str] = NAMES,
) -> Tuned:
    folder.mkdir(exist_ok=True)
    path = folder / "log.swf.gz"
    write(workload, path)
    store = Store(folder / "store")
    write_study(store.path / FILE, {"path": str(path), "name": "log"}, workload, names, "limit", 0)
    return tune(store, goal, longest, HERE, print, lambda tasks: nullcontext(print_nothing))


def print_nothing(standing: Any) -> None:
    pass


def test_candidates_are_policies() -> None:
    for goal in GOALS:
        names = candidates(goal)
        assert {BASE, USUAL, f"plan-{goal}"} <= set(names)
        assert len({repr(replace(policy(name), name="")) for name in names}) == len(names)  # type: ignore[type-var]


@pytest.mark.parametrize(
    ("text", "wanted"), [("2x", (2, inf)), ("1.5x", (1.5, inf)), ("5d", (inf, 432_000)), ("none", (inf, inf))]
)
def test_how_long_a_job_may_wait(text: str, wanted: tuple[float, float]) -> None:
    assert longest_wait(text) == wanted


@pytest.mark.parametrize("text", ["soon", "2", "x"])
def test_how_long_a_job_may_wait_must_be_said_so(text: str) -> None:
    with pytest.raises(SettingError, match="write a multiple"):
        longest_wait(text)


def test_the_best_of_the_past_is_chosen(tmp_path: Path) -> None:
    found = tuned(tmp_path, log())
    rows = Store(tmp_path / "store").frame()
    mean: dict[str, float] = {}
    for name in NAMES:
        own, base = (
            {row["span"]: row["af_s"] for row in rows.iter_rows(named=True) if row["policy"] == one}
            for one in (name, BASE)
        )
        past = [span for span in own if ".." not in span]
        if len(past) == STRETCHES:
            mean[name] = float(np.mean([np.log(own[span] / base[span]) for span in past]))
    assert found.choice == min(mean, key=lambda name: mean[name]) != BASE
    best = found.tried[0]
    assert best.change == pytest.approx(np.exp(mean[best.policy]) - 1)
    assert [entry.policy for entry in found.after.entries][:2] == [BASE, USUAL]
    assert best.policy in [entry.policy for entry in found.after.entries]
    assert {one.policy for one in found.tried} == set(NAMES)
    ran = len(rows)
    again = tuned(tmp_path, log())
    assert (again.choice, len(Store(tmp_path / "store").frame())) == (found.choice, ran)  # nothing was run again


def test_halves_are_of_the_log_whenever_it_begins(tmp_path: Path) -> None:
    """Jobs of the past and of what came after, by day: none is in both, and the last is there."""
    for day in (0, 30, 100):
        workload = log(first_day=day)
        found = tuned(tmp_path / f"{day}", workload)
        store = Store(tmp_path / f"{day}" / "store")
        after = store.workload(
            next(row["workload_sha256"] for row in store.frame().iter_rows(named=True) if ".." in row["span"])
        )
        middle = (int(workload.submit[0]) + int(workload.submit[-1])) // 2
        assert middle <= after.submit[0] < middle + 86400
        assert after.submit[-1] == workload.submit[-1]
        assert found.after.jobs == len(after)


def test_ties_are_not_cut_by_the_order_of_names(tmp_path: Path) -> None:
    """Where nobody waits at first, all are alike: none is left out for it."""
    workload = log()
    quiet = workload.submit < workload.submit[0] + 20 * 86400 // STRETCHES
    workload = workload.with_columns(Step("idle at first"), size=np.where(quiet, 1, workload.size))
    found = tuned(tmp_path, workload)
    assert found.tried[0].change < 0


def test_who_fails_after_the_past_is_not_chosen(tmp_path: Path) -> None:
    """The shortest job first is the best of the past; this one fails later."""
    file = tmp_path / "late.py"
    late = f"    if state.now > {32 * 86400}:\n        raise ValueError('too late')\n"
    file.write_text(f"def order(state):\n{late}    return state.estimate[state.waiting]\n", encoding="utf-8")
    fails = f"list:order={file}:order"
    found = tuned(tmp_path, log(), names=[BASE, USUAL, "conservative", fails])
    assert fails in set(Store(tmp_path / "store").frame()["policy"])
    assert fails not in [one.policy for one in found.tried]
    assert found.choice in [entry.policy for entry in found.after.entries]


def test_a_multiple_is_of_the_longest_wait_of_all_stretches(tmp_path: Path) -> None:
    """A candidate that is too slow by the stretch that comes first alone is tried on the others."""
    free = tuned(tmp_path, log())
    waits = {row["span"]: row["max_wait_s"] for row in _runs(tmp_path, USUAL) if ".." not in row["span"]}
    assert len(waits) == STRETCHES
    for one in free.tried:
        own = [row["max_wait_s"] for row in _runs(tmp_path, one.policy) if row["span"] in waits]
        assert one.longest == max(own) / max(waits.values())


def test_where_nobody_waits_there_is_nothing_to_choose(tmp_path: Path) -> None:
    found = tuned(tmp_path, replace(log(), processors=10_000))
    assert found.page.sentences == (f"All candidates are alike, on the past and after it: no job waits under {BASE}.",)
    assert found.kept


def test_the_usual_policy_is_there_to_the_end(tmp_path: Path) -> None:
    """With a bound that nobody else keeps, it is what is left."""
    found = tuned(tmp_path, log(), (1e-6, inf))
    assert (found.choice, found.tried[0].stretches) == (USUAL, STRETCHES)
    nobody = tuned(tmp_path, log(), (inf, 1.0))
    assert not nobody.tried[0].allowed
    assert "No candidate keeps waits as short" in nobody.page.sentences[0]


def test_a_slurm_is_judged_against_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a cluster says how its Slurm decides, that is what others are compared with; a choice of its own settings
    is told as a line of slurm.conf."""
    monkeypatch.chdir(tmp_path)
    workload, cluster = jobs(random.Random(1), 400)
    slower = {name: 40 * workload[name] for name in ("submit", "runtime", "limit")}
    write(workload.with_columns(Step("slower"), **slower), tmp_path / "jobs.parquet")
    write_cluster(cluster, tmp_path / "c.toml", "c", "")
    path = kept(tmp_path, machine("bf_window=10,defer,bf_max_job_test=8"))
    more = "slurm:conf=c.slurm.json,bf_window=1200,bf_max_job_test=500"
    words = ["tune", "jobs.parquet", "--cluster", "c.toml", "--policy", more, "--longest-wait", "none"]
    words += ["--workers", "1"]
    done = run(*words)
    assert not done.returncode, done.stderr
    text = " ".join(done.stdout.split())
    assert "Metrics against slurm:conf=c.slurm.json;" in text
    assert str(tmp_path) not in text.partition("To replay it")[0]
    told = [json.loads(line) for line in run(*words, "--json").stdout.splitlines()]
    by_name = {one["policy"]: one for one in told if "longest" in one}
    better = f"slurm:conf={path},bf_window=1200,bf_max_job_test=500"
    assert set(by_name) == {f"slurm:conf={path}", better, USUAL}
    assert by_name[f"slurm:conf={path}"]["change"] == 0
    assert by_name[better]["chosen"], by_name
    assert told[-2]["slurm_conf"] == ["SchedulerParameters=bf_window=1200,defer,bf_max_job_test=500"]
    assert "In slurm.conf: SchedulerParameters=bf_window=1200,defer,bf_max_job_test=500" in done.stdout.splitlines()


def test_other_lines_of_slurm_conf(tmp_path: Path) -> None:
    path = kept(tmp_path, machine("bf_window=20,bf_max_job_user=30"))
    today = as_told(machine("bf_window=20,bf_max_job_user=30"))[0]
    first, *others = slurm_candidates(path, today, jobs(random.Random(1))[0])
    assert first == f"slurm:conf={path}"
    assert [one.removeprefix(f"{first},") for one in others] == [
        "bf_window=30", "bf_max_job_test=2000", "bf_window=30,bf_max_job_test=2000", "bf_max_job_test=125",
        "bf_max_job_user=10", "bf_max_job_user=0", "bf_interval=120", "default_queue_depth=1000",
    ]  # fmt: skip
    same = [repr(replace(policy(one), name="")) for one in (first, *others)]  # type: ignore[type-var]
    assert len(set(same)) == len(same)


@pytest.mark.parametrize("told", ["(null)", "bf_window=10, BF_Max_Job_Test=8,defer", "bf_window=3,defer,bf_window=4"])
def test_a_line_of_slurm_conf_is_read_back_as_it_was_meant(told: str) -> None:
    before, changes = as_told(machine(told))[0], {"bf_max_job_test": "99", "bf_interval": "7"}
    name, _, value = parameters_line(machine(told), changes).partition("=")
    assert name == "SchedulerParameters"
    after = as_told(machine(value))[0]
    assert after == replace(before, bf_max_job_test=99, bf_interval=7)
    assert ("defer" in value.split(",")) == ("defer" in told)


def test_a_slurm_that_cannot_be_replayed_is_not_the_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    workload, cluster = jobs(random.Random(1), 60)
    slower = {name: 400 * workload[name] for name in ("submit", "runtime", "limit")}
    write(workload.with_columns(Step("slower"), **slower), tmp_path / "jobs.parquet")
    write_cluster(cluster, tmp_path / "c.toml", "c", "")
    kept(tmp_path, machine(SchedulerType="sched/builtin"))
    done = run("tune", "jobs.parquet", "--cluster", "c.toml", "--policy", "easy", "--workers", "1")
    assert not done.returncode, done.stderr
    assert "not compared with the site's own Slurm" in " ".join(done.stderr.split())
    assert "Metrics against easy;" in " ".join(done.stdout.split())


def test_what_came_after_chooses_nothing(tmp_path: Path) -> None:
    one = log()
    first, last = int(one.submit[0]), int(one.submit[-1])
    later = one.submit > first + (last - first) // 2 + 86400
    runtime = np.where(later, np.maximum(one.runtime // 7, 1), one.runtime)
    other = one.with_columns(Step("another second half"), runtime=runtime)
    a, b = tuned(tmp_path / "a", one), tuned(tmp_path / "b", other)
    assert [(x.policy, x.change) for x in a.tried] == [(x.policy, x.change) for x in b.tried]
    assert a.after.entries[0].metrics["af_s"] != b.after.entries[0].metrics["af_s"]


def test_a_longer_wait_than_was_asked_after_the_past_is_said(tmp_path: Path) -> None:
    """The bound is between the longest wait of the past and that of what came after, then above both."""
    free = tuned(tmp_path, log())
    past = max(row["max_wait_s"] for row in _runs(tmp_path, free.choice) if ".." not in row["span"])
    after = free.waits_s[0]
    assert after > past, "a case in which the second half is the worse one"
    found = tuned(tmp_path, log(), (inf, (past + after) / 2))
    assert (found.choice, found.tried[0].allowed, found.kept) == (free.choice, True, False)
    assert "longer than was asked" in found.page.sentences[-1]
    found = tuned(tmp_path, log(), (inf, after))
    assert found.kept
    assert "longer than was asked" not in found.page.sentences[-1]


def _runs(where: Path, policy: str) -> list[dict[str, Any]]:
    rows = Store(where / "store").frame().iter_rows(named=True)
    return [row for row in rows if row["policy"] == policy]


def test_who_lets_jobs_wait_too_long_is_not_chosen(tmp_path: Path) -> None:
    free = tuned(tmp_path, log())
    strict = tuned(tmp_path, log(), (free.tried[0].longest - 1e-9, inf))
    assert strict.tried[0].allowed
    assert strict.choice != free.choice
    assert [one.allowed for one in strict.tried if one.policy == free.choice] == [False]


def test_a_log_must_be_long_enough(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="too short"):
        tuned(tmp_path, lublin(50, 32, seed=1))
