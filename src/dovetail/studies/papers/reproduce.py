"""Make a published table or figure again: run what is missing of its study, then write its page and pictures."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from dovetail.errors import DovetailError
from dovetail.io.streams import beside
from dovetail.studies.cost import costs
from dovetail.studies.executors import Engine
from dovetail.studies.grid import tasks_of
from dovetail.studies.papers.page import Page, Runs, log_at
from dovetail.studies.papers.registry import Reproduction
from dovetail.studies.runner import Standing, run_missing, tell_of_earlier, warm_up
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store
from dovetail.studies.task import Task

VARIABLE = "DOVETAIL_TRACES"
"""The studies name their logs with it."""


def tasks_for(found: Reproduction, traces: Path, store: Store) -> Runs:
    """The tasks of a reproduction, with their workloads in the store. A missing log is an error before any work."""
    if found.study is None:
        return Runs(traces, store)
    study = read_study(found.study)
    for trace in study.traces:
        if trace.path:
            log_at(traces, trace.path.removeprefix(f"${VARIABLE}/"))
    store.create()
    with _variable(str(traces.resolve())):
        runs = Runs(traces, store, tasks_of(study, found.study, store.keep))
    more: Callable[[Runs], list[Task]] | None = getattr(_module(found), "more_tasks", None)
    runs = replace(runs, tasks=(*runs.tasks, *(more(runs) if more else ())))
    store.write_study(study, found.study.read_text(encoding="utf-8"), [task.name for task in runs.tasks])
    return runs


def run_tasks(
    runs: Runs, engine: Engine, say: Callable[[str], None], tell: Callable[[Standing], None] = lambda standing: None
) -> int:
    """Run the tasks whose runs are not in the store; how many they were."""
    there = runs.store.names()
    missing = [task for task in runs.tasks if task.name not in there]
    tell_of_earlier(runs.store, say)
    if missing:
        warm_up(missing, say)
        outcome = run_missing(missing, runs.store, engine, costs(missing, runs.store), tell)
        if outcome.failed:
            name, why = next(iter(outcome.failed.items()))
            cell = next(task.cell for task in missing if task.name == name)
            raise DovetailError(
                f"{len(outcome.failed)} runs failed; {cell.trace}, {cell.policy}, {cell.estimate}: {why}"
            )
    return len(missing)


def work_more(found: Reproduction, runs: Runs, say: Callable[[str], None]) -> None:
    """Do what a page needs beside runs, if it needs any; it is kept in the store too."""
    more: Callable[[Runs, Callable[[str], None]], None] | None = getattr(_module(found), "more_work", None)
    if more:
        more(runs, say)


def make_page(found: Reproduction, runs: Runs) -> Page:
    """The page, from runs that are all in the store."""
    page: Page = _module(found).page(runs)
    return page


def write(found: Reproduction, page: Page, folder: Path) -> list[Path]:
    """Write a page and its pictures into a folder, and say which files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = {found.page: page.text, **page.pictures}
    for name, text in files.items():
        with beside(folder / name) as new:
            new.write_text(text, encoding="utf-8")
    return [folder / name for name in files]


def _module(found: Reproduction) -> Any:
    return import_module(f"dovetail.studies.papers.{found.name.replace('-', '_')}")


@contextmanager
def _variable(value: str) -> Iterator[None]:
    """The environment variable of the studies set for a while."""
    old = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = value
    try:
        yield
    finally:
        if old is None:
            del os.environ[VARIABLE]
        else:
            os.environ[VARIABLE] = old
