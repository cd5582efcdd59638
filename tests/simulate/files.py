"""What goes through files: a workload written and read again, a study in a store, and faults on the way."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import sha256
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np

from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.io.swf import FIELDS
from dovetail.io.table import read_any
from dovetail.io.write import write
from dovetail.metrics import summarize
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.predict.known import is_known
from dovetail.studies.store import Store
from dovetail.studies.task import Task, plain
from dovetail.studies.worker import run_batch
from dovetail.workloads.filters import clean
from dovetail.workloads.scenarios import apply
from tests.conftest import ROOT
from tests.simulate.cases import Case
from tests.simulate.checks import Trial, check, differences
from tests.simulate.scenarios import drawn_scenario, possible
from tests.studies.small import prepared


@check(lambda case: not case.large and case.site is None, part=0.25)
def files(trial: Trial) -> Iterator[str]:
    """A workload that is written and read again is the same, and so is its schedule."""
    rng, case = trial.rng("files"), trial.case
    ending = rng.choice(("parquet", "swf", "swf.gz", "csv"))
    if {"units", "reservation"} & set(case.jobs) and ending != "parquet":
        return
    if ending.startswith("swf"):
        case = replace(case, jobs={name: values for name, values in case.jobs.items() if name in FIELDS})
    if ending == "csv":
        jobs = {name: case.jobs[name] for name in ("id", "submit", "size", "runtime", "limit")}
        jobs["submit"] = jobs["submit"] - jobs["submit"][0]
        case = replace(case, jobs=jobs, feedback=False, cluster=replace(case.cluster, cap=None))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"jobs.{ending}"
        write(case.workload, path)
        if ending == "csv":
            back, _ = read_any(path, processors=case.cluster.processors)
        else:
            back = read_workload(path)
    if back.processors != case.cluster.processors:
        yield f"{ending}: {back.processors} processors, written {case.cluster.processors}"
    for column in case.jobs:
        if column != "id" and not np.array_equal(back.get(column), case.jobs[column]):
            yield f"{ending}: {column} is {back.get(column).tolist()}, written {case.jobs[column].tolist()}"
    made = replay(
        back, case.policy, cluster=case.cluster, estimate=case.estimate, feedback=case.feedback, every_s=case.every_s,
        seed=case.seed, keep_promises=True,
    )  # fmt: skip
    yield from (f"{ending}: {said}" for said in differences(made, trial.replay(case, keep=True)))


# Studies ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Grid:
    """A small study of a case: its jobs as a trace in a file, its policy and others, scenarios, estimates, seeds."""

    text: str
    trace: Workload
    every_s: int
    feedback: bool

    def write(self, folder: Path) -> Path:
        """The file of the study, beside its trace."""
        folder.mkdir(exist_ok=True)
        write(self.trace, folder / "trace.parquet")
        path = folder / "study.toml"
        path.write_text(self.text, encoding="utf-8")
        return path


def grid_of(case: Case, rng: random.Random) -> Grid:
    every_s = case.every_s
    others = ["easy", "list-sjf"] if every_s else ["easy", "list-sjf", "conservative"]
    policies = [case.policy, *(one for one in rng.sample(others, 1) if one != case.policy)]
    estimates = list(dict.fromkeys(["limit", case.estimate if isinstance(case.estimate, str) else "runtime"]))
    scenarios = [text for text in (drawn_scenario(rng, case.workload) for _ in range(2)) if _replays(case, text)]
    lists = {
        "policies": policies,
        "estimates": estimates,
        "scenarios": list(dict.fromkeys(["", *scenarios])),
        "seeds": rng.sample(range(99), 2),
        "spans": ["all"],
    }
    # An empty scenario is written as an empty list.
    lines = [f"{key} = {value}" for key, value in lists.items()]
    text = 'name = "simulated"\n' + "\n".join(lines).replace("''", "[]").replace("'", '"') + "\n"
    text += f"feedback = {str(case.feedback).lower()}\n" + (f'every = "{every_s}s"\n' if every_s else "")
    text += '\n[[traces]]\npath = "trace.parquet"\nfilters = ["standard:overrun=run"]\n'
    return Grid(text, case.workload, every_s, case.feedback)


def _replays(case: Case, text: str) -> bool:
    """On processors a study replays what a scenario makes; deadlines of 0 s are answered only by some policies."""
    return possible(case, text) and not text.startswith(("per-node", "power"))


def studied(case: Case) -> bool:
    known = not isinstance(case.estimate, str) or is_known(case.estimate) or ".py" not in case.estimate
    plain = not case.cluster.kinds and not case.cluster.counted and case.site is None
    return plain and known and not case.large and not case.rule.by_solver


def completed(path: Path) -> tuple[Store, list[Task], list[str]]:
    """A study run in this process, as far as it is not in its store: the store, the tasks, and what went wrong."""
    store = Store(path.parent / "store")
    tasks = prepared(path, store)
    there = store.names()
    results = run_batch(str(store.path), [plain(task) for task in tasks if task.name not in there])
    return store, tasks, [result["error"] for result in results if result["error"]]


@check(studied, part=0.02)
def study(trial: Trial) -> Iterator[str]:
    """Every cell of a study is what a replay of its own would be, and each has a run of its own."""
    grid = grid_of(trial.case, trial.rng("study"))
    with tempfile.TemporaryDirectory() as folder:
        store, tasks, errors = completed(grid.write(Path(folder)))
        yield from (f"a cell failed: {error}" for error in errors)
        if not errors:
            yield from cells(trial, grid, store, tasks)


def cells(trial: Trial, grid: Grid, store: Store, tasks: list[Task]) -> Iterator[str]:
    """What is not in a store as a replay of its own would have it."""
    if len(store.names()) != len(tasks):
        yield f"{len(tasks)} cells have {len(store.names())} runs"
    rows = {row["run"]: row for row in store.frame().iter_rows(named=True)}
    for task in tasks:
        made, wanted = store.schedule(task.name), direct(grid, task)
        assert made is not None
        trial.events += 2 * len(wanted.start)
        yield from (f"{task.cell}: {said}" for said in differences(made, wanted))
        measured = summarize(wanted)
        for key, value in measured.items():
            if repr(rows[task.name][key]) != repr(value) and not (isnan(value) and rows[task.name][key] is None):
                yield f"{task.cell}: {key} is {rows[task.name][key]}, wanted {value}"


def direct(grid: Grid, task: Task) -> Schedule:
    """A cell without a study: cleaned, changed and replayed, one call after another."""
    workload = clean(grid.trace, ["standard:overrun=run"])
    for step in task.cell.scenario.split():
        workload = apply(workload, step, seed=task.cell.seed)
    return replay(
        workload, task.cell.policy, estimate=task.cell.estimate, seed=task.cell.seed, every_s=grid.every_s,
        feedback=grid.feedback,
    )  # fmt: skip


# Fresh processes --------------------------------------------------------------------------------------------

_AGAIN = """
import pickle, sys
from tests.simulate.files import bytes_of
print(bytes_of(pickle.load(sys.stdin.buffer).replay(keep=True)))
"""


def bytes_of(made: Schedule) -> str:
    """A hash of all that a replay made."""
    columns = (made.start, made.arrive, made.promised_first, made.promised_last, made.said, made.accepted)
    return sha256(b"".join(column.tobytes() for column in columns)).hexdigest()


def environment(**more: str) -> dict[str, str]:
    """Of a process that finds the tests and the package where this one did."""
    import dovetail

    path = os.pathsep.join((str(ROOT), str(Path(dovetail.__file__).parent.parent)))
    return {**os.environ, "PYTHONPATH": path, **more}


@check(lambda case: case.rule.compiled and not case.large, part=0.001)
def process(trial: Trial) -> Iterator[str]:
    """A fresh process with another hash seed makes the same bytes."""
    env = environment(PYTHONHASHSEED=str(trial.rng("process").randrange(1000)))
    command: list[Any] = [sys.executable, "-c", _AGAIN]
    done = subprocess.run(command, env=env, input=pickle.dumps(trial.case), capture_output=True, check=False)
    if done.stdout.decode().strip() != bytes_of(trial.made):
        yield f"another process makes other bytes: {done.stderr.decode()[-300:]}"
