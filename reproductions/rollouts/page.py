"""The planner with more search, and with its proposals followed into drawn futures: the metric against the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from statistics import fmean
from typing import Final

from dovetail.engine.pass_times import timed_replay
from dovetail.engine.replay import replay
from dovetail.metrics import summarize
from dovetail.policies.planner import PLANNED, Planner
from dovetail.studies.task import Cell
from reproductions.claims import NO, YES, Judged
from reproductions.rollouts.rollout import Rollout
from reproductions.running import Work
from reproductions.runs import Run, Runs
from reproductions.values import Content, Key, Values

LOGS: Final = {"SDSC-DS": ("SDSC-DS-2004-2.1-cln", "294d..315d"), "HPC2N": ("HPC2N-2002-2.2-cln", "70d..119d")}
METRICS: Final = {"AF": "af", "AWF": "awf"}
SEARCH: Final = {1: 3, 4: 3, 16: 3, 64: 1}
"""So many times the decodes of the planner, and how many seeds."""
DRAWS: Final = {1: 3, 6: 3, 30: 1}
"""Futures, and how many seeds."""


def cells(_: Work) -> list[Cell]:
    """The cheapest first."""
    found = []
    for kind, budgets in (("search", SEARCH), ("draws", DRAWS)):
        for budget, seeds in budgets.items():
            found += [
                Cell(log, "", span, f"{goal}, {kind} {budget}", "limit", seed)
                for log, (_, span) in LOGS.items()
                for goal in METRICS.values()
                for seed in range(seeds)
            ]
    return sorted(found, key=lambda cell: ("draws" in cell.policy, cell.seed, int(cell.policy.split()[-1])))


def solve(cell: Cell, work: Work) -> dict[str, float]:
    """One replay, and how long its passes take in which some waiting job fits."""
    goal, kind, budget = cell.policy.replace(",", "").split()
    log = work.jobs(f"archive/{LOGS[cell.trace][0]}", f"span={cell.span}")
    own = Planner(**PLANNED[goal], name=f"plan-{goal}")
    if kind == "search":
        own = replace(own, decodes=int(budget) * own.decodes)
        schedule, times = timed_replay(log, own, seed=cell.seed)
        told = {"pass_ms": 1000 * float(times.seconds[times.searched].mean()), "passes": float(times.searched.sum())}
    else:
        rolled = Rollout(own, int(budget), known=False)
        schedule = replay(log, rolled, seed=cell.seed)
        told = {
            "pass_ms": 1000 * rolled.spent_s / rolled.passes, "passes": rolled.passes, "looked": rolled.looked,
            "changed": rolled.changed,
        }  # fmt: skip
    return {**summarize(schedule), **told}


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """In per cent of the planner as it is, the mean of its seeds; of one seed each where there are several."""
    found: dict[Key, Content] = {}
    for log, (_file, span) in LOGS.items():
        for metric, goal in METRICS.items():
            base = _seeds(runs, log, span, f"{goal}, search 1")
            if not base:
                continue
            usual = fmean(run.numbers[f"{goal}_s"] for run in base)
            for kind, budgets in (("search", SEARCH), ("draws", DRAWS)):
                for budget in budgets:
                    some = _seeds(runs, log, span, f"{goal}, {kind} {budget}")
                    shares = [100 * run.numbers[f"{goal}_s"] / usual for run in some]
                    if some:
                        row = f"{kind} {budget}"
                        found |= {
                            (f"{log}, {metric}", row, "metric"): fmean(shares),
                            (f"{log}, {metric}", row, "low"): min(shares),
                            (f"{log}, {metric}", row, "high"): max(shares),
                            (f"{log}, {metric}", row, "seeds"): float(len(some)),
                            (f"{log}, {metric}", row, "ms"): fmean(run.numbers["pass_ms"] for run in some),
                            (f"{log}, {metric}", row, "looked"): _part(some, "looked"),
                            (f"{log}, {metric}", row, "changed"): _part(some, "changed"),
                        }
    return found


def _seeds(runs: Runs, log: str, span: str, policy: str) -> list[Run]:
    found = (runs.get(log, policy, span=span, seed=seed) for seed in range(3))
    return [run for run in found if run is not None]


def _part(runs: list[Run], key: str) -> float:
    """In per cent of the passes."""
    return fmean(100 * run.numbers[key] / run.numbers["passes"] for run in runs)


def rows(values: Values, table: str) -> list[list[str]]:
    """A line for each budget."""
    made = []
    for _, row, _ in values.keys(table, column="metric"):
        spread = ""
        if values.need(table, row, "seeds") > 1:
            spread = f" ({values.text(table, row, 'low', '.2f')} to {values.text(table, row, 'high', '.2f')})"
        made.append([
            row, values.text(table, row, "ms", ".1f"), values.text(table, row, "metric", ".2f") + spread,
            values.text(table, row, "looked", ".0f"), values.text(table, row, "changed", ".1f"),
        ])  # fmt: skip
    return made


def better(values: Values) -> Judged:
    """Whether following proposals beats the planner as it is, on average over logs and metrics, at every budget."""
    words, good = [], True
    for budget in DRAWS:
        shares = [values.need(f"{log}, {metric}", f"draws {budget}", "metric") for log in LOGS for metric in METRICS]
        words.append(f"{budget} futures: {fmean(shares):.1f} % of the planner's")
        good = good and fmean(shares) < 100
    return Judged("; ".join(words), YES if good else NO)
