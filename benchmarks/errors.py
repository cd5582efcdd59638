"""Which errors of estimates harm which metric: replays in which run times are known but for errors that are made up.

python benchmarks/errors.py [--logs KTH-SP2 CTC-SP2 SDSC-SP2] [--seeds 2] [--page docs/results/errors.md]
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from dovetail.arrays import Floats
from dovetail.engine.replay import replay
from dovetail.io.read import read_workload
from dovetail.kernels.learners.learner import LIMIT, Learner, new_learner
from dovetail.metrics import summarize
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.predict.base import CompiledPredictor
from dovetail.studies.papers.page import LOGS, filled, grid
from dovetail.studies.papers.tables import METRICS
from dovetail.workloads.scenarios import nudge

TRACES: Final = Path(os.environ.get("DOVETAIL_TRACES", Path(__file__).resolve().parents[2] / "shared" / "traces"))
SERVES: Final = {"easy-sjbf": "bsld", "list-laf": "awf_s", "list-reg": "p2sf_s"}
SHARE: Final = 0.01

Errors = Callable[[Floats, Floats, np.random.Generator], Floats]
"""From run times and limits to what is said."""


def both_ways(runtime: Floats, _: Floats, rng: np.random.Generator) -> Floats:
    return runtime * np.exp(0.5 * rng.standard_normal(len(runtime)))


def upwards(runtime: Floats, _: Floats, rng: np.random.Generator) -> Floats:
    return runtime * np.exp(0.5 * np.abs(rng.standard_normal(len(runtime))))


def some_halved(share: float) -> Errors:
    """The limits, but for a share of the jobs."""
    return lambda runtime, limit, rng: np.where(rng.random(len(limit)) < share, runtime / 2, limit)


def some_known(runtime: Floats, limit: Floats, rng: np.random.Generator) -> Floats:
    return np.where(rng.random(len(limit)) < 0.5, runtime, limit)


ROWS: Final[dict[str, Errors]] = {
    "the run time": lambda runtime, _, __: runtime,
    "... of half of the jobs, of the others the limit": some_known,
    "... times 1.5": lambda runtime, _, __: 1.5 * runtime,
    "... times 3": lambda runtime, _, __: 3 * runtime,
    "... times e^\\|Z\\|, Z normal with deviation 0.5: never too short": upwards,
    "... times e^Z: too short for every other job": both_ways,
    "... times 0.9": lambda runtime, _, __: 0.9 * runtime,
    "... times 0.5": lambda runtime, _, __: 0.5 * runtime,
    "the limit, but of 1 % of the jobs half of the run time": some_halved(0.01),
    "the limit, but of 5 % of the jobs half of the run time": some_halved(0.05),
}


@dataclass(frozen=True)
class Said(CompiledPredictor):
    """What is said when jobs arrive, from 1 s to the limit; who outlives it is taken to run to the limit."""

    errors: Errors
    seed: int
    name: str = "said"

    def learner(self, workload: Workload) -> Learner:
        limit, rng = workload.limit.astype(np.float64), np.random.default_rng(self.seed)
        said = np.clip(np.ceil(self.errors(workload.runtime.astype(np.float64), limit, rng)), 1, limit)
        return new_learner(workload.limit, correction=LIMIT, first=said.astype(np.int64))


def changes(workload: Workload, name: str, seeds: int) -> dict[str, tuple[float, float, float]]:
    """By row: the change of the policy's metric against limits, in per cent; mean, least, most."""
    chosen, metric = policy(name), SERVES[name]
    alike = [nudge(workload, SHARE, seed) for seed in range(seeds)]
    base = np.array([summarize(replay(one, chosen))[metric] for one in alike])
    found = {}
    for row, errors in ROWS.items():
        made = [replay(one, chosen, estimate=Said(errors, seed)) for seed, one in enumerate(alike)]
        values = 100 * np.array([summarize(one)[metric] for one in made]) / base - 100
        found[row] = (float(values.mean()), float(values.min()), float(values.max()))
        print(f"{workload.name:10} {name:9} {metric:7} {found[row][0]:+7.1f} %  {row}", flush=True)
    return found


def page(logs: list[str], found: dict[tuple[str, str], dict[str, tuple[float, float, float]]], seeds: int) -> str:
    """docs/results/errors.md"""
    tables = []
    for name, metric in SERVES.items():
        rows = []
        for row in ROWS:
            cells = [found[log, name][row] for log in logs]
            rows.append([row, *(f"{mean:+.1f} ({low:+.1f} to {high:+.1f})" for mean, low, high in cells)])
        tables.append(grid([f"{METRICS[metric]}, {name}", *logs], rows))
    command = f"python benchmarks/errors.py --logs {' '.join(logs)} --seeds {seeds} --page docs/results/errors.md"
    how = HOW.format(seeds=seeds)
    made_with = f"## Made with\n\n```\n{command}\n```\n\n{LOGS}"
    return filled(["# Which errors of estimates do harm", how, *tables, SAYS, made_with])


HOW: Final = """
Known predictors lower slowdowns and spoil packing and fairness. Why? Here estimates are run times but for errors that
are made up, so that each kind of error stands alone. Per cent of change against limits, on whole traces; mean, least
and most of {seeds} replays, in each of which other errors are drawn and another one in a hundred limits is a second
longer; where nothing is drawn and limits do not matter, only the replay with limits differs. A job that outlives its
estimate is taken to run to its limit. Estimates never exceed limits.
"""
SAYS: Final = """
## What it says

**BSLD** under `easy-sjbf` bears errors of both kinds. Too long or too short by a factor, or for some jobs this and for
others that, it gains about as much as with the run times themselves (on SDSC-SP2 not with half of them), and less only
where some jobs alone are known.

**AWF** of `list-laf` and **P2SF** of `list-reg` gain with every estimate here that is never too short, the less the
longer it is. Where every other job is estimated too short they lose on all traces, where all are they mostly do. A job
that outlives its estimate is then taken to run to its limit: other corrections are not tried here.

**Few may be enough.** On CTC-SP2 limits that are right for all but 5 % of the jobs do clear harm to both, on SDSC-SP2
to AWF; on KTH-SP2 there is little to gain or to lose.

So a predictor that serves packing and fairness says less than the limit and is hardly ever outlived: a high quantile,
if the past tells it. At 99 % ours is about as far off as the limits are ([calibration](quantiles.md#calibration)).
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--logs", nargs="+", default=["KTH-SP2", "CTC-SP2", "SDSC-SP2"])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--page", type=Path)
    given = parser.parse_args()
    found: dict[tuple[str, str], dict[str, tuple[float, float, float]]] = {}
    for log in given.logs:
        workload = read_workload(TRACES / "papers" / f"{log}.swf.gz")
        found |= {(log, name): changes(workload, name, given.seeds) for name in SERVES}
    if given.page is not None:
        given.page.write_text(page(given.logs, found, given.seeds), encoding="utf-8")


if __name__ == "__main__":
    main()
