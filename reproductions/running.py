"""Run what runs.csv lacks: cells of a folder's studies by the package, its other cells by `solve` of its page.py."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import cache
from glob import escape
from math import isclose, isnan, nan
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, TypeVar

from dovetail import __version__
from dovetail.cli.study import shown
from dovetail.errors import DovetailError, InputError
from dovetail.files import beside
from dovetail.io.read import read_workload
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.process import cpu_s
from dovetail.studies.cost import costs
from dovetail.studies.executors import Engine, engine
from dovetail.studies.grid import tasks_of
from dovetail.studies.identity import worker_code
from dovetail.studies.runner import Standing, run_missing, warm_up
from dovetail.studies.spec import Match, Study, read_study
from dovetail.studies.store import Store
from dovetail.studies.task import Cell, Task, plain
from dovetail.studies.worker import run_batch
from dovetail.workloads.filters import clean
from dovetail.workloads.scenarios import apply
from reproductions.folders import Folder
from reproductions.runs import CELL, Points, Run, Runs, code_of, read_runs, write_runs

VARIABLE: Final = "DOVETAIL_TRACES"

Measures = Mapping[str, float | Points]
"""Numbers for runs.csv and lists of points for figure.csv, by name."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class Work:
    """What functions of page.py are given to work with."""

    folder: Folder
    traces: Path
    store: Store
    tasks: dict[Cell, Task] = field(default_factory=dict)
    """Of the folder's studies."""

    def log(self, name: str) -> Path:
        """The path of a file in the folder of the traces. InputError says where to get one that is not there."""
        path = self.traces / name
        if not path.is_file():
            rule = f"no such log: set --traces or {VARIABLE} to a folder that has it"
            raise InputError(path, 0, f"{rule}; reproductions/README.md says where each log comes from")
        return path

    def jobs(self, name: str, scenario: str = "") -> Workload:
        """The cleaned jobs of a log, as a scenario has them: `papers/KTH-SP2`, `span=0d..120d`. It is read once."""
        return _jobs(self.log(f"{name}.swf.gz"), scenario)

    def schedule(self, cell: Cell) -> Schedule:
        """The schedule of a cell of the studies; it is run here if the store does not have it."""
        found = self.store.schedule(self.there(cell).name)
        if found is None:
            raise InputError(self.store.path, 0, f"{code_of(cell)} has no starts: the study must have keep = 'starts'")
        return found

    def there(self, cell: Cell) -> Task:
        """The task of a cell of the studies, whose run is in the store then."""
        task = self.tasks.get(cell) or prepare(self.folder, self.traces, self.store, [cell]).tasks[cell]
        if task.name not in self.store.names():
            (how,) = run_batch(str(self.store.path), [plain(task)])
            if how["error"]:
                raise DovetailError(f"{code_of(cell)}: {how['error']}")
        return task

    def memo(self, kind: str, matters: object, make: Callable[[], _T]) -> _T:
        """What `make` returns, kept beside the store as JSON under what matters for it and the code: a list, a
        dictionary, numbers or texts. It is there as a whole or not at all, so that work can be broken off."""
        text = json.dumps([kind, matters, worker_code()], sort_keys=True)
        path = self.store.path / "memo" / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
        try:
            kept: _T = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = make()
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside(path) as new:
                new.write_text(json.dumps(kept), encoding="utf-8")
        return kept


@cache
def _jobs(path: Path, scenario: str) -> Workload:
    return apply(_jobs(path, ""), scenario) if scenario else clean(read_workload(path), ["standard"])


def prepare(folder: Folder, traces: Path, store: Store, cells: Sequence[Cell] | None = None, only: str = "*") -> Work:
    """The tasks of a folder's studies with their workloads in the store; of some cells, or one trace, only."""
    store.create()
    os.environ[VARIABLE] = str(traces.resolve())  # studies name their logs with it
    work = Work(folder, traces, store, {})
    for path in folder.studies:
        study = _of_trace(_only(read_study(path), cells), only.partition("|")[0])
        for trace in study.traces:
            if trace.path.startswith(f"${VARIABLE}/"):
                work.log(trace.path.removeprefix(f"${VARIABLE}/"))
        if study.traces:
            work.tasks.update((task.cell, task) for task in tasks_of(study, path, store.keep))
    return work


def _only(study: Study, cells: Sequence[Cell] | None) -> Study:
    """A study of some of its cells: of those logs alone, so that no other is read."""
    if cells is None:
        return study
    labels, scenarios = [trace.label for trace in study.traces], [" ".join(steps) for steps in study.scenarios]
    inside = [
        cell
        for cell in cells
        if cell.trace in labels and cell.scenario in scenarios and cell.policy in study.policies
        and cell.estimate in study.estimates and cell.seed in study.seeds
    ]  # fmt: skip
    rules = [Match(seed=one.seed, **{key: [escape(getattr(one, key))] for key in CELL[:-1]}) for one in inside]
    some = [trace for trace in study.traces if trace.label in {cell.trace for cell in inside}]
    return study.model_copy(update={"traces": some, "include": rules, "exclude": []})


def _of_trace(study: Study, name: str) -> Study:
    """A study of one of its traces, with the rules that are about it; the whole study if it has none of that name."""
    some = [trace for trace in study.traces if trace.label == name]
    rules = {
        kind: [rule for rule in getattr(study, kind) if any(fnmatchcase(name, one) for one in rule.trace)]
        for kind in ("include", "exclude")
    }
    return study.model_copy(update={"traces": some, **rules}) if some else study


def run(work: Work, on: str, workers: int | None, only: str, again: bool, say: Callable[[str], None]) -> int:
    """Run what runs.csv lacks; how many runs that were. `only` is a pattern that the text of a cell matches; `again`:
    also those that other code than today's made."""

    def wanted(cells: Iterable[Cell]) -> list[Cell]:
        found = (cell for cell in cells if fnmatchcase(code_of(cell), only))
        return [one for one in found if one not in there or (again and there[one].code != worker_code())]

    folder, store = work.folder, work.store
    there = {one.cell: one for one in read_runs(folder)}
    tasks = [work.tasks[cell] for cell in wanted(work.tasks)]
    runs_on = engine(on, workers, store.path.resolve())
    with shown({task.name for task in tasks}, store, on) as tell:
        _replay([task for task in tasks if task.name not in store.names()], store, runs_on, tell)
    there |= {task.cell: _measured(work, task.cell) for task in tasks}
    if tasks:
        write_runs(folder, there.values())
    own = folder.hook("cells")
    others = wanted(own(work)) if own else []
    for done, found in enumerate(_solved(work, others, runs_on.workers), 1):
        there[found.cell] = found
        write_runs(folder, there.values())
        say(f"{done} of {len(others)}: {code_of(found.cell)}: {found.cpu_s:.1f} s of CPU")
    return len(tasks) + len(others)


def _replay(missing: list[Task], store: Store, runs_on: Engine, tell: Callable[[Standing], None]) -> None:
    if missing:
        warm_up(missing)
        outcome = run_missing(missing, store, runs_on, costs(missing, store), tell)
        for name, why in outcome.failed.items():
            cell = next(task.cell for task in missing if task.name == name)
            raise DovetailError(f"{len(outcome.failed)} runs failed; {code_of(cell)}: {why}")


def _measured(work: Work, cell: Cell) -> Run:
    """A run of the store with the numbers that the page asks for."""
    row = next(work.store.frame({work.there(cell).name}).iter_rows(named=True))
    found: dict[str, float | Points] = {key: value for key, value in row.items() if isinstance(value, int | float)}
    if work.folder.hook("measure"):
        found |= _measure(work, cell, work.schedule(cell))
    return _line(work.folder, cell, found, row["cpu_s"])


def _measure(work: Work, cell: Cell, schedule: Schedule) -> Measures:
    """What `measure` of page.py says of a schedule; it can ask for those of other policies in the same cell."""
    measure = work.folder.hook("measure")
    found: Measures = measure(schedule, lambda policy: work.schedule(replace(cell, policy=policy))) if measure else {}
    return found


def _line(folder: Folder, cell: Cell, found: Measures, cpu_s: float) -> Run:
    numbers = {key: value for key in folder.about.metrics if isinstance(value := found.get(key), int | float)}
    curves = {key: value for key in folder.about.curves if isinstance(value := found.get(key), list | tuple)}
    return Run(cell, numbers, cpu_s, worker_code(), __version__, curves)


def _solved(work: Work, cells: Sequence[Cell], workers: int) -> Iterator[Run]:
    """Cells that are no replays of a study, each as soon as it is done."""
    if work.folder.about.alone or min(workers, len(cells)) < 2:
        yield from (_solve(work, cell) for cell in cells)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        futures = [pool.submit(_solve, replace(work, tasks={}), cell) for cell in cells]
        yield from (future.result() for future in as_completed(futures))


def _solve(work: Work, cell: Cell) -> Run:
    """In a worker, or here."""
    clock = cpu_s()
    found = work.folder.function("solve")(cell, work)
    spent = cpu_s() - clock
    if isinstance(found, Schedule):
        from dovetail.metrics import summarize

        found = {**summarize(found), **_measure(work, cell, found)}
    return _line(work.folder, cell, found, spent)


def older(runs: Runs) -> list[Cell]:
    """The runs that other code than today's made."""
    return [run.cell for run in runs if run.code != worker_code()]


def repeated(folder: Folder, traces: Path, runs: Runs) -> tuple[int, list[str]]:
    """Repeat the cheapest runs of a folder in an empty store: how many, and what differs from runs.csv."""
    steady = [key for key in folder.about.metrics if key not in folder.about.volatile]
    cheapest = sorted(runs, key=lambda run: (run.cpu_s, code_of(run.cell)))[: folder.about.cheap]
    differ = []
    with TemporaryDirectory() as place:
        work = prepare(folder, traces, Store(place), [run.cell for run in cheapest])
        for run in cheapest:
            again = (_measured if run.cell in work.tasks else _solve)(work, run.cell)
            for key in steady:
                old, new = run.numbers[key], again.numbers.get(key, nan)
                if not isclose(old, new, rel_tol=1e-9) and not (isnan(old) and isnan(new)):
                    differ.append(f"{code_of(run.cell)}: {key} is {new!r}, and {old!r} in runs.csv")
            if any(list(again.curves.get(key, ())) != list(run.curves.get(key, ())) for key in folder.about.curves):
                differ.append(f"{code_of(run.cell)}: its curves are not those of figure.csv")
    return len(cheapest), differ
