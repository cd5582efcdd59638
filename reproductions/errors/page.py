"""Which errors of estimates harm which metric: replays in which run times are known but for errors that are made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import Final

import numpy as np

from dovetail.arrays import Floats
from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.kernels.learners.learner import LIMIT, Learner, new_learner
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.predict.base import CompiledPredictor
from dovetail.studies.task import Cell
from dovetail.workloads.scenarios import nudge
from reproductions.running import Work
from reproductions.runs import Runs
from reproductions.values import Content, Key

LOGS: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2")
SERVES: Final = {"easy-sjbf": "bsld", "list-laf": "awf_s", "list-reg": "p2sf_s"}
TITLES: Final = {"easy-sjbf": "BSLD, easy-sjbf", "list-laf": "AWF, list-laf", "list-reg": "P2SF, list-reg"}
SEEDS: Final = (0, 1)
SHARE: Final = 0.01
"""Of the limits, which are a second longer: others in each replay."""

Errors = Callable[[Floats, Floats, np.random.Generator], Floats]
"""From run times and limits to estimates."""


def both_ways(runtime: Floats, _: Floats, rng: np.random.Generator) -> Floats:
    return runtime * np.exp(0.5 * rng.standard_normal(len(runtime)))


def upwards(runtime: Floats, _: Floats, rng: np.random.Generator) -> Floats:
    return runtime * np.exp(0.5 * np.abs(rng.standard_normal(len(runtime))))


def some_halved(share: float) -> Errors:
    """The limits, but for a share of the jobs."""
    return lambda runtime, limit, rng: np.where(rng.random(len(limit)) < share, runtime / 2, limit)


def some_known(runtime: Floats, limit: Floats, rng: np.random.Generator) -> Floats:
    return np.where(rng.random(len(limit)) < 0.5, runtime, limit)


ROWS: Final[dict[str, tuple[str, Errors]]] = {
    "known": ("the run time", lambda runtime, _, __: runtime),
    "half known": ("... of half of the jobs, of the others the limit", some_known),
    "times 1.5": ("... times 1.5", lambda runtime, _, __: 1.5 * runtime),
    "times 3": ("... times 3", lambda runtime, _, __: 3 * runtime),
    "upwards": ("... times e^\\|Z\\|, Z normal with deviation 0.5: never too short", upwards),
    "both ways": ("... times e^Z: too short for every other job", both_ways),
    "times 0.9": ("... times 0.9", lambda runtime, _, __: 0.9 * runtime),
    "times 0.5": ("... times 0.5", lambda runtime, _, __: 0.5 * runtime),
    "1 % halved": ("the limit, but of 1 % of the jobs half of the run time", some_halved(0.01)),
    "5 % halved": ("the limit, but of 5 % of the jobs half of the run time", some_halved(0.05)),
}
"""What cells call an estimate, what the page calls it, and how it is made."""


@dataclass(frozen=True)
class Made(CompiledPredictor):
    """An estimate for each job at its arrival, from 1 s to the limit; a job that outlives it is taken to run to the
    limit."""

    errors: Errors
    seed: int
    name: str = "made"

    def learner(self, workload: Workload) -> Learner:
        limit, rng = workload.limit.astype(np.float64), np.random.default_rng(self.seed)
        made = np.clip(np.ceil(self.errors(workload.runtime.astype(np.float64), limit, rng)), 1, limit)
        return new_learner(workload.limit, correction=LIMIT, first=made.astype(np.int64))


def cells(_: Work) -> list[Cell]:
    """Each error, and the limits, with each policy on each log."""
    every = [(log, name, row, seed) for log in LOGS for name in SERVES for row in ("limit", *ROWS) for seed in SEEDS]
    return [Cell(log, f"nudge={SHARE}", "all", name, row, seed) for log, name, row, seed in every]


def solve(cell: Cell, work: Work) -> Schedule:
    """One replay."""
    log = nudge(_log(work.log(f"papers/{cell.trace}.swf.gz")), SHARE, cell.seed)
    made = "limit" if cell.estimate == "limit" else Made(ROWS[cell.estimate][1], cell.seed)
    return replay(log, policy(cell.policy), estimate=made)


@cache
def _log(path: Path) -> Workload:
    return read_workload(path)


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """A table for each policy: the change of its metric against limits, in per cent; mean, least and most."""
    metrics = {run.cell: run.numbers for run in runs}
    found: dict[Key, Content] = {}
    for name, metric in SERVES.items():
        for row, (title, _errors) in ROWS.items():
            for log in LOGS:
                pairs = [
                    [metrics.get(Cell(log, f"nudge={SHARE}", "all", name, one, seed)) for one in (row, "limit")]
                    for seed in SEEDS
                ]
                changes = [100 * ours[metric] / base[metric] - 100 for ours, base in pairs if ours and base]
                if len(changes) == len(SEEDS):
                    text = f"{fmean(changes):+.1f} ({min(changes):+.1f} to {max(changes):+.1f})"
                    found[TITLES[name], title, log] = text
    return found
