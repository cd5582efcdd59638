"""Dispatch problems out of kept replays, and what the models of the dispatcher paper make of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cache
from math import isnan
from pathlib import Path
from typing import Final

import numpy as np

from dovetail.arrays import Ints
from dovetail.io.streams import beside
from dovetail.model.requests import requests_of
from dovetail.model.schedule import Schedule
from dovetail.model.state import State
from dovetail.optimize.dispatch.contiguous import positions_lost
from dovetail.optimize.dispatch.cpsat import solve_dispatch
from dovetail.optimize.dispatch.instances import load_problem, save_problem
from dovetail.optimize.dispatch.problem import WINDOW, DispatchProblem, Limits, dispatch_problem
from dovetail.studies.papers.kept import file_of, hash_of_code, keep, read_kept

SEED: Final = 2021


@dataclass(frozen=True)
class Moments:
    """The passes of a replay at which somebody waited: when, and how many waited."""

    at: Ints
    waiting: Ints


def moments(schedule: Schedule) -> Moments:
    """A pass is whenever a job arrived or ended; who starts in it still waits."""
    at = np.unique(np.concatenate([schedule.arrive, schedule.end]))
    came = np.searchsorted(np.sort(schedule.arrive), at, side="right")
    waiting = came - np.searchsorted(np.sort(schedule.start), at, side="left")
    return Moments(at[waiting > 0], waiting[waiting > 0])


@dataclass(frozen=True)
class Chosen:
    """A moment that was chosen: one of `of` whose queues are of the same class, which begins with `least` jobs."""

    at: int
    waiting: int
    least: int
    of: int
    place: int
    """The how manieth that was drawn of its class, from 0."""


def chosen(found: Moments, least: Sequence[int], each: int, seed: int = SEED) -> list[Chosen]:
    """So many moments of each class of queues, drawn with a seed; the first of all classes, then the second, and so on.

    A class begins with `least` jobs and ends where the next begins; one with fewer moments is taken whole.
    """
    rng, picked = np.random.default_rng(seed), list[Chosen]()
    for first, after in zip(least, [*least[1:], np.inf], strict=True):
        inside = np.flatnonzero((found.waiting >= first) & (found.waiting < after))
        drawn = rng.permutation(inside)[:each].tolist()
        picked += [
            Chosen(int(found.at[i]), int(found.waiting[i]), first, len(inside), place) for place, i in enumerate(drawn)
        ]
    return sorted(picked, key=lambda one: (one.place, one.least))


class Instants:
    """A replay on nodes, as its policy saw it at any of its passes."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._requests = requests_of(schedule.workload, schedule.cluster)
        self._order = np.argsort(schedule.arrive, kind="stable")

    def state(self, now: int) -> State:
        """What was to be decided then. Needs a replay whose estimates stay as they were said at first."""
        made, workload, placement = self.schedule, self.schedule.workload, self.schedule.placement
        if placement is None or not len(made.said):
            raise ValueError("a replay on nodes, with what was said of run times, is needed")
        waits = (made.arrive <= now) & (made.start >= now)
        running = np.flatnonzero((made.start < now) & (made.end > now))
        used = int((self._requests.units * self._requests.need[:, 0])[running].sum())
        none = np.empty(0, np.int64)
        return State(
            now=now, processors=made.cluster.processors, free=made.cluster.processors - used,
            waiting=self._order[waits[self._order]], running=running, arrived=none, ended=none,
            submit=made.arrive, size=workload.size, limit=workload.limit, estimate=made.said,
            user=workload.get("user"), start=np.where(made.start < now, made.start, -1), cluster=made.cluster,
            requests=self._requests, nodes={job: placement.of(job) for job in running.tolist()},
        )  # fmt: skip

    def problem(self, now: int, window: int = WINDOW) -> DispatchProblem:
        """The problem of a pass, as the dispatchers make it."""
        return dispatch_problem(self.state(now), window)


# Solved and kept --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Way:
    """A model of the paper, and how long it may search."""

    model: str
    limits: Limits = Limits()  # noqa: RUF009 - it is frozen


@dataclass(frozen=True)
class Answer:
    """What a model made of a problem, without the plan itself; `lost`: jobs that wait because of positions only."""

    status: str
    objective: float
    variables: int
    constraints: int
    conflicts: int
    branches: int
    modelling_s: float
    solving_s: float
    extensions: int
    rounds: int
    lost: int

    @property
    def cpu_s(self) -> float:
        """The model and the search, as the paper counts a decision."""
        return self.modelling_s + self.solving_s

    @property
    def planned(self) -> bool:
        """Whether there is a plan for the whole window."""
        return not isnan(self.objective)


class Kept:
    """Problems and answers in a folder: a file each, there as a whole or not at all, so that work can be broken off."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(self, problem: DispatchProblem, name: str) -> Path:
        """Keep a problem, as models are to be given it."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / f"{name}.json"
        with beside(path) as new:
            save_problem(problem, new)
        return path

    def answer(self, path: Path, way: Way) -> Answer | None:
        """The answer to a kept problem; None if it is not there yet."""
        return read_kept(self._place(path, way), Answer)

    def solve(self, path: Path, way: Way) -> Answer:
        """The answer to a kept problem, made if it is not there."""
        if (kept := self.answer(path, way)) is not None:
            return kept
        problem = load_problem(path)
        found = solve_dispatch(problem, way.model, way.limits)
        made = Answer(
            **{key: getattr(found, key) for key in Answer.__dataclass_fields__ if key != "lost"},
            lost=len(positions_lost(problem, found)),
        )
        keep(self._place(path, way), asdict(made))
        return made

    def _place(self, path: Path, way: Way) -> Path:
        return file_of(self.folder, way.model, (path.read_bytes().decode(), way.model, asdict(way.limits), _code()))


@cache
def _code() -> str:
    return hash_of_code(sorted((Path(__file__).resolve().parents[2] / "optimize").rglob("*.py")))
