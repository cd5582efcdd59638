"""A small study for tests: generated workloads, so that it runs anywhere."""

from __future__ import annotations

from pathlib import Path

from dovetail.studies.cost import costs
from dovetail.studies.executors import engine
from dovetail.studies.grid import tasks_of
from dovetail.studies.runner import Outcome, run_missing, warm_up
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store
from dovetail.studies.task import Task, plain
from dovetail.studies.worker import run_batch

SMALL = """\
name = "small"
policies = ["easy", "list-reg", "easy-sjbf"]
estimates = ["limit", "runtime"]
spans = ["all", "each 12h"]
seeds = 2

[[traces]]
name = "made"
generate = {jobs = 600, processors = 32, load = 0.9}
"""


def written(folder: Path, text: str = SMALL) -> Path:
    path = folder / "study.toml"
    path.write_text(text, encoding="utf-8")
    return path


def prepared(path: Path, store: Store) -> list[Task]:
    store.create()
    study = read_study(path)
    tasks = tasks_of(study, path, store.keep)
    store.write_study(study, "", [task.name for task in tasks])
    warm_up(tasks)
    return tasks


def ran(folder: Path, text: str) -> tuple[Store, list[Task]]:
    """All runs of a study, made in this process."""
    store = Store(folder / "store")
    tasks = prepared(written(folder, text), store)
    results = run_batch(str(store.path), [plain(task) for task in tasks])
    assert not [result["error"] for result in results if result["error"]]
    return store, tasks


def run(path: Path, store: Store, on: str = "local", workers: int | None = 2) -> Outcome:
    tasks = prepared(path, store)
    return run_missing(tasks, store, engine(on, workers, store.path.resolve()), costs(tasks, store))
