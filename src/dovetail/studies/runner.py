"""Run what is missing of a study. The store says what is there; a worker that dies costs only what it held."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, CancelledError, Executor, Future, wait
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dovetail.engine.replay import warm
from dovetail.errors import SettingError
from dovetail.policies.registry import policy
from dovetail.process import cores
from dovetail.studies.cost import costs as costs_of
from dovetail.studies.executors import RETRIES, Engine, ExecutorError, engine
from dovetail.studies.grid import tasks_of
from dovetail.studies.spec import Study, read_study
from dovetail.studies.store import Store
from dovetail.studies.task import Task, plain
from dovetail.studies.worker import run_batch

Batch = list[Task]


@dataclass(frozen=True)
class Standing:
    """How far a run is. Costs are estimated CPU seconds."""

    done: int
    total: int
    failed: int
    rate: float
    """Cells per second since this run began; 0 before the first."""
    left_s: float | None
    """Seconds that the rest will take at the pace so far; None before anything is known."""


@dataclass
class Outcome:
    """What became of the missing cells: how many are there now, and why others are not."""

    done: int = 0
    failed: dict[str, str] = field(default_factory=dict)
    deaths: int = 0
    """Batches that were lost with their worker and tried again."""


def warm_up(tasks: Sequence[Task]) -> None:
    """Compile the kernels that the policies need, once, here: workers then find them in the cache."""
    wanted = dict.fromkeys((task.policy, bool(task.cluster), bool(task.site)) for task in tasks)
    policies = [(policy(text), nodes, site) for text, nodes, site in wanted]
    for one, nodes, site in policies:  # before any is compiled
        if nodes:
            one.refuse("nodes")
        if one.needs_site and not site:
            raise SettingError(f"{one.name} must know prices: give its trace a `site`")
    for one, nodes, _ in policies:
        warm(one, nodes)


def tell_of_earlier(store: Store, say: Callable[[str], None]) -> None:
    """Say which runs of a store are of no use any more."""
    if old := len(store.earlier()):
        say(
            f"{store.path} has {old:,} {'run' if old == 1 else 'runs'} by an earlier version of Dovetail. They are not"
            " used: their cells are run anew. docs/store.md says how to delete them."
        )


def prepare(path: Path, store: Store, say: Callable[[str], None]) -> tuple[Study, list[Task], dict[str, float]]:
    """Read a study, put its workloads into the store, compile what is needed, and estimate what each cell costs."""
    study = read_study(path)
    store.create()
    if broken := store.mend():
        say(f"{store.path}: {broken:,} {'run was' if broken == 1 else 'runs were'} damaged: run again")
    tasks = tasks_of(study, path, store.keep)
    there = store.names()
    tell_of_earlier(store, say)
    warm_up([task for task in tasks if task.name not in there])
    return study, tasks, costs_of(tasks, store)


def run_study(
    path: Path, folder: Path | None, on: str | Executor, workers: int | None, say: Callable[[str], None]
) -> tuple[Store, Outcome]:
    """Run what is missing of a study on an engine that is named, or on an executor; None: the store beside it."""
    store = Store(folder or path.with_suffix(".store"))
    if isinstance(on, str):
        chosen = engine(on, workers, store.path.resolve())
    else:
        count = workers or cores()
        chosen = Engine(lambda: nullcontext(on), count, 0.5, 2 * count)
    study, tasks, costs = prepare(path, store, say)
    store.write_study(study, path.read_text(encoding="utf-8"), [task.name for task in tasks])
    return store, run_missing(tasks, store, chosen, costs)


def run_missing(
    tasks: Sequence[Task],
    store: Store,
    engine: Engine,
    costs: Mapping[str, float],
    tell: Callable[[Standing], None] = lambda standing: None,
) -> Outcome:
    """Run the tasks whose runs are not in the store. `costs` has the estimated CPU seconds of each by name."""
    there = store.names()
    missing = [task for task in tasks if task.name not in there]
    round_ = _Round(store, missing, costs, tell)
    together, alone = deque(batches(missing, costs, engine)), deque[Batch]()
    while together or alone:
        queue, most = (together, engine.batches) if together else (alone, 1)
        with engine.open() as executor:
            lost, broken = round_.flow(executor, queue, most)
        # A pool that broke does not say which task did it. Those it held go on one at a time, after all others.
        for batch in lost:
            (alone if broken else together).extend([task] for task in round_.to_repeat(batch))
    round_.tell()
    return round_.outcome


def batches(tasks: Sequence[Task], costs: Mapping[str, float], engine: Engine) -> list[Batch]:
    """Tasks in batches, the costliest batch first. A batch shares one workload, so that it is read once."""
    total = sum(costs[task.name] for task in tasks)
    most_s = max(engine.batch_s, total / (4 * engine.workers)) if engine.few else engine.batch_s
    made: list[Batch] = []
    cost_s: list[float] = []
    last: dict[str, int] = {}  # the batch that a workload's next task may join
    for task in tasks:
        at = last.get(task.workload_sha256, -1)
        if at < 0 or cost_s[at] + costs[task.name] > most_s:
            at = last[task.workload_sha256] = len(made)
            made.append([])
            cost_s.append(0.0)
        made[at].append(task)
        cost_s[at] += costs[task.name]
    return [made[at] for at in sorted(range(len(made)), key=lambda at: -cost_s[at])]


class _Round:
    """Hands out batches, takes in how they went, and knows how far it is."""

    def __init__(
        self, store: Store, missing: list[Task], costs: Mapping[str, float], tell: Callable[[Standing], None]
    ) -> None:
        self.store, self.costs, self._tell = store, costs, tell
        self.wanted = {task.name for task in missing}
        self.outcome = Outcome()
        self.tries: dict[str, int] = {}
        self.began = self.told = time.monotonic()

    def flow(self, executor: Executor, queue: deque[Batch], most: int) -> tuple[list[Batch], bool]:
        """Until the queue is empty or the executor is broken: which batches were lost, and whether it broke."""
        flying: dict[Future[Any], Batch] = {}
        lost: list[Batch] = []
        path = str(self.store.path.resolve())
        while queue or flying:
            try:
                while queue and len(flying) < most:
                    flying[executor.submit(run_batch, path, [plain(task) for task in queue[0]])] = queue[0]
                    queue.popleft()
            except BrokenExecutor:
                return [*lost, *flying.values()], True
            ended, _ = wait(flying, timeout=0.5, return_when=FIRST_COMPLETED)
            for future in ended:
                try:
                    self._note(future.result())
                except BrokenExecutor:
                    return [*lost, *flying.values()], True
                except ExecutorError:
                    raise
                except CancelledError:  # nothing here cancels: the other side is gone
                    raise ExecutorError("the executor dropped the work: is its scheduler still there?") from None
                except Exception:
                    lost.append(flying[future])
                del flying[future]
            if time.monotonic() - self.told > 0.5:
                self.tell()
        return lost, False

    def to_repeat(self, batch: Batch) -> Batch:
        """Of a lost batch, what is not in the store and has tries left."""
        there, again = self.store.names(), []
        self.outcome.deaths += 1
        for task in batch:
            if task.name in there:
                continue
            self.tries[task.name] = self.tries.get(task.name, 0) + 1
            if self.tries[task.name] > RETRIES:
                self.outcome.failed[task.name] = f"its worker died {RETRIES + 1} times"
            else:
                again.append(task)
        return again

    def tell(self) -> None:
        self.told = time.monotonic()
        there = self.store.names() & self.wanted
        self.outcome.done = len(there)
        elapsed = self.told - self.began
        total, done = (sum(self.costs[name] for name in names) for names in (self.wanted, there))
        left_s = (total - done) / done * elapsed if done else None
        failed = len(self.outcome.failed)
        self._tell(Standing(len(there), len(self.wanted), failed, len(there) / max(elapsed, 1e-9), left_s))

    def _note(self, results: list[dict[str, Any]]) -> None:
        self.outcome.failed |= {result["name"]: result["error"] for result in results if result["error"]}
