"""Run what runs.csv lacks: cells of a folder's studies by the package, its other cells by `solve` of its page.py."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from fnmatch import fnmatchcase
from glob import escape
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any, Final, TypeVar

from dovetail import __version__
from dovetail.errors import DovetailError, InputError
from dovetail.model.schedule import Schedule
from dovetail.studies.cost import costs
from dovetail.studies.executors import Engine
from dovetail.studies.grid import Cell, Task, code_hash, plain, tasks_of
from dovetail.studies.runner import Standing, run_missing, warm_up
from dovetail.studies.spec import Match, Study, read_study
from dovetail.studies.store import Store
from dovetail.studies.work import run_batch
from dovetail.workloads.streams import beside
from reproductions.folders import Folder, find
from reproductions.runs import CELL, Points, Run, Runs, code_of, read_runs, write_runs

VARIABLE: Final = "DOVETAIL_TRACES"
"""Studies name their logs with it."""

Measures = Mapping[str, float | Points]
"""Numbers for runs.csv and lists of points for figure.csv, by name."""
_T = TypeVar("_T")


@dataclass(frozen=True)
class Work:
    """What functions of page.py are given to work with."""

    folder: Folder
    traces: Path
    store: Store
    tasks: Mapping[Cell, Task] = field(default_factory=dict)
    """Of the folder's studies."""

    def log(self, name: str) -> Path:
        """The path of a file in the folder of the traces."""
        path = self.traces / name
        if not path.is_file():
            rule = f"no such log: set --traces or {VARIABLE} to a folder that has it"
            raise InputError(path, 0, f"{rule}; reproductions/README.md says where each log comes from")
        return path

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
        text = json.dumps([kind, matters, code_hash()], sort_keys=True)
        path = self.store.path / "memo" / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.json"
        try:
            kept: _T = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            kept = make()
            path.parent.mkdir(parents=True, exist_ok=True)
            with beside(path) as new:
                new.write_text(json.dumps(kept), encoding="utf-8")
        return kept


def prepare(folder: Folder, traces: Path, store: Store, cells: Iterable[Cell] | None = None, only: str = "*") -> Work:
    """The tasks of a folder's studies with their workloads in the store; of some cells, or one trace, only."""
    store.create()
    wanted = None if cells is None else list(cells)
    tasks: dict[Cell, Task] = {}
    with _variable(str(traces.resolve())):
        for path in folder.studies:
            study = _of_trace(_only(read_study(path), wanted), only.partition("|")[0])
            if study.traces:
                tasks |= {task.cell: task for task in tasks_of(study, path, store.keep)}
    return Work(folder, traces, store, tasks)


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


@dataclass(frozen=True)
class Wanted:
    """Which runs are to be made."""

    only: str = "*"
    """A pattern with * and ? that the text of a cell (trace|scenario|span|policy|estimate|seed) matches."""
    again: bool = False
    """Whether those of other code than today's are repeated."""

    def replays(self, work: Work) -> list[Task]:
        """The tasks of the studies that are to be run, or found in the store."""
        return [work.tasks[cell] for cell in self.among(work.tasks, {run.cell: run for run in read_runs(work.folder)})]

    def among(self, cells: Iterable[Cell], there: Mapping[Cell, Run]) -> list[Cell]:
        """The cells that match and are not there, or not by today's code."""
        found = (cell for cell in cells if fnmatchcase(code_of(cell), self.only))
        code = code_hash()
        return [cell for cell in found if cell not in there or (self.again and there[cell].code != code)]


def run(
    work: Work,
    engine: Engine,
    wanted: Wanted,
    say: Callable[[str], None],
    tell: Callable[[Standing], None] = lambda standing: None,
) -> int:
    """Run what is wanted and keep it in runs.csv; how many runs that were."""
    folder = work.folder
    there = {one.cell: one for one in read_runs(folder)}
    tasks = wanted.replays(work)
    _replay(tasks, work.store, engine, say, tell)
    there |= {task.cell: _measured(work, task.cell) for task in tasks}
    if tasks:
        write_runs(folder, there.values())
    own = folder.hook("cells")
    others = wanted.among(own(work), there) if own else []
    for done, found in enumerate(solved(work, others, engine.workers), 1):
        there[found.cell] = found
        write_runs(folder, there.values())
        say(f"{done} of {len(others)}: {code_of(found.cell)}: {found.cpu_s:.1f} s of CPU")
    return len(tasks) + len(others)


def _replay(
    tasks: Sequence[Task], store: Store, engine: Engine, say: Callable[[str], None], tell: Callable[[Standing], None]
) -> None:
    names = store.names()
    missing = [task for task in tasks if task.name not in names]
    if not missing:
        return
    warm_up(missing, say)
    outcome = run_missing(missing, store, engine, costs(missing, store), tell)
    if outcome.failed:
        name, why = next(iter(outcome.failed.items()))
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
    return Run(cell, numbers, cpu_s, code_hash(), __version__, curves)


def solved(work: Work, cells: Sequence[Cell], workers: int) -> Iterator[Run]:
    """Cells that are no replays of a study, each as soon as it is done."""
    if work.folder.about.alone or min(workers, len(cells)) < 2:
        yield from (_solve(work, cell) for cell in cells)
        return
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        plainly = (work.folder.name, str(work.traces), str(work.store.path))
        futures = [pool.submit(_solved, *plainly, asdict(cell)) for cell in cells]
        yield from (future.result() for future in as_completed(futures))


def _solved(name: str, traces: str, store: str, cell: Mapping[str, Any]) -> Run:
    """In a worker."""
    return _solve(Work(find(name), Path(traces), Store(store)), Cell(**cell))


def _solve(work: Work, cell: Cell) -> Run:
    clock = process_time()
    found = work.folder.function("solve")(cell, work)
    spent = process_time() - clock
    if isinstance(found, Schedule):
        from dovetail.metrics import summarize

        found = {**summarize(found), **_measure(work, cell, found)}
    return _line(work.folder, cell, found, spent)


def older(runs: Runs) -> list[Cell]:
    """The runs that other code than today's made."""
    return [run.cell for run in runs if run.code != code_hash()]


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
                old, new = run.numbers[key], again.numbers.get(key, float("nan"))
                if old != new and not (old != old and new != new) and abs(old - new) > 1e-9 * abs(old):
                    differ.append(f"{code_of(run.cell)}: {key} is {new!r}, and {old!r} in runs.csv")
            if any(list(again.curves.get(key, ())) != list(run.curves.get(key, ())) for key in folder.about.curves):
                differ.append(f"{code_of(run.cell)}: its curves are not those of figure.csv")
    return len(cheapest), differ


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
