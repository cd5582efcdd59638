"""Running studies on this machine: stopped, killed and failing, and the store is right all the same."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dovetail.studies.executors import Engine, engine
from dovetail.studies.runner import batches
from dovetail.studies.store import Store
from dovetail.studies.task import Cell, Task
from tests.studies.small import prepared, run, written

DOVETAIL = Path(sys.executable).with_name("dovetail")


def study_run(path: Path, *options: str) -> subprocess.Popen[str]:
    command = [str(DOVETAIL), "study", "run", str(path), "--json", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True)


@pytest.mark.slow
def test_a_pool_gives_the_same_store(tmp_path: Path, undisturbed: str) -> None:
    store = Store(tmp_path / "study.store")
    outcome = run(written(tmp_path), store)
    assert (outcome.failed, outcome.deaths) == ({}, 0)
    assert outcome.done == len(store.names())
    assert store.digest() == undisturbed
    again = run(written(tmp_path), store)
    assert again.done == 0


@pytest.mark.slow
def test_killed_at_any_moment_it_goes_on_and_ends_the_same(tmp_path: Path, undisturbed: str) -> None:
    path, rng = written(tmp_path), random.Random(1)
    store = Store(tmp_path / "study.store")
    counts = []
    for _ in range(3):
        process = study_run(path)
        while process.poll() is None and not (store.path / "study.json").exists():
            time.sleep(0.02)
        time.sleep(rng.uniform(0.2, 2.5))
        process.kill()
        process.communicate()
        counts.append(len(store.names()))
        assert_alone(process.pid)
    assert counts == sorted(counts)
    out, error = study_run(path).communicate(timeout=100)
    result = json.loads(out)
    assert result["failed"] == {}, error
    assert result["ran"] == result["cells"] - counts[-1]  # nothing that was finished is done again
    assert result["sha256"] == store.digest() == undisturbed


def assert_alone(session: int) -> None:
    """Soon no process of that session is left: workers end with a parent that was killed."""
    for _ in range(100):
        left = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                state, *fields = stat.read_text().rpartition(") ")[2].split()
            except OSError:
                continue
            if int(fields[2]) == session and state != "Z":
                left.append(stat.parent.name)
        if not left:
            return
        time.sleep(0.1)
    raise AssertionError(f"still running: {left}")


POLICY = """
import os, signal
from pathlib import Path
from dovetail.policies.registry import policy

class Bad:
    name = "bad"
    def decide(self, state):
        {what}
        return policy("easy").decide(state)
"""


def with_policy(folder: Path, what: str) -> Path:
    (folder / "bad.py").write_text(POLICY.format(what=what))
    text = (
        'name = "x"\npolicies = ["easy", "bad.py:Bad", "list-reg"]\nseeds = 4\n'
        "[[traces]]\ngenerate = {jobs = 60, processors = 8, load = 0.9}\n"
    )
    return written(folder, text)


@pytest.mark.slow
def test_a_worker_that_dies_costs_nothing_but_a_repeat(tmp_path: Path) -> None:
    marker = tmp_path / "died"
    what = f"m = Path({str(marker)!r}); m.exists() or (m.touch(), os.kill(os.getpid(), signal.SIGKILL))"
    store = Store(tmp_path / "study.store")
    path = with_policy(tmp_path, what)
    marker.touch()  # while it is warmed up and probed here
    tasks = prepared(path, store)
    marker.unlink()
    from dovetail.studies.runner import run_missing

    outcome = run_missing(tasks, store, engine("local", 2, store.path), {task.name: 0.1 for task in tasks})
    assert outcome.deaths >= 1
    assert outcome.failed == {}
    assert store.names() == {task.name for task in tasks}
    bad, easy = (sorted(store.frame().filter(policy=p)["bsld"]) for p in ("bad.py:Bad", "easy"))
    assert bad == easy


@pytest.mark.slow
def test_a_cell_that_kills_its_worker_fails_alone(tmp_path: Path) -> None:
    store = Store(tmp_path / "study.store")
    what = "os.environ.get('DOVETAIL_TEST_PARENT') == str(os.getpid()) or os.kill(os.getpid(), signal.SIGKILL)"
    path = with_policy(tmp_path, what)
    os.environ["DOVETAIL_TEST_PARENT"] = str(os.getpid())
    try:
        outcome = run(path, store)
    finally:
        del os.environ["DOVETAIL_TEST_PARENT"]
    assert len(outcome.failed) == 4
    assert set(outcome.failed.values()) == {"its worker died 4 times"}
    assert set(store.frame()["policy"]) == {"easy", "list-reg"}
    assert len(store.names()) == 8


@pytest.mark.slow
@pytest.mark.parametrize("what", ["raise KeyError('oh \\x1b[31m no')", "raise SystemExit('oh')"])
def test_a_policy_that_raises_fails_its_own_cells(tmp_path: Path, what: str) -> None:
    path = with_policy(tmp_path, what)
    process = study_run(path)
    out, _ = process.communicate(timeout=100)
    result = json.loads(out)
    assert process.returncode == 1
    assert (result["cells"], result["done"], len(result["failed"])) == (12, 8, 4)
    assert all("oh" in why and "\x1b" not in why for why in result["failed"].values())


@pytest.mark.slow
def test_ctrl_c_keeps_what_is_done(tmp_path: Path) -> None:
    path = written(tmp_path)
    process = study_run(path)
    store = Store(tmp_path / "study.store")
    while process.poll() is None and not ((store.path / "study.json").exists() and store.names()):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to the whole group
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "The same command goes on from there." in error
    assert "Traceback" not in error
    assert_alone(process.pid)


def test_batches_hold_each_task_once_and_share_a_workload() -> None:
    rng = random.Random(3)
    tasks = [
        Task(
            Cell("t", "", "all", "easy", "limit", n),
            "",
            str(rng.randrange(5)),
            1,
            1,
            "easy",
            "",
            "limit",
            "",
            "all",
            False,
            0,
            "",
            False,
        )
        for n in range(200)
    ]
    costs = {task.name: rng.uniform(0.01, 0.4) for task in tasks}
    for batch_s, workers, few in ((0.5, 2, False), (30.0, 2, True)):
        made = batches(tasks, costs, Engine(None, workers, batch_s, 4, few))  # type: ignore[arg-type]
        assert sorted(task.name for batch in made for task in batch) == sorted(costs)
        totals = [sum(costs[task.name] for task in batch) for batch in made]
        assert totals == sorted(totals, reverse=True)
        assert max(totals) <= max(batch_s, sum(totals) / (4 * workers)) + 1e-9
        assert all(len({task.workload_sha256 for task in batch}) == 1 for batch in made)
    assert len(made) < 20
