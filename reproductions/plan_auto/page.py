"""plan-auto beside the planners that it chooses from."""

from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Final

from dovetail.policies.auto import CANDIDATES, written
from reproductions.claims import NO, PART, YES, Judged
from reproductions.runs import Runs
from reproductions.values import Content, Key, NotRunError, Values

LOGS: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie")
GOALS: Final = {"AF": "af", "AWF": "awf"}
WITHIN: Final = 2.0
"""Per cent above the best that are allowed, or what seeds make."""
MOST_CPU: Final = 4.0
SEEDS: Final = 3


def candidates(goal: str) -> list[str]:
    """What it chooses from, by name."""
    return [f"plan-{goal}{written(settings)}" for settings in CANDIDATES[goal]]


def auto(goal: str) -> str:
    return "plan-auto" if goal == "af" else f"plan-auto:goal={goal}"


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """By goal and log: the metric of each in hours, and how far plan-auto is from the best and the mean in per cent."""
    found: dict[Key, Content] = {}
    for metric, goal in GOALS.items():
        key = f"{goal}_s"
        for log in LOGS:
            of = {name: runs.get(log, name) for name in (*candidates(goal), auto(goal))}
            known = {name: run.numbers[key] for name, run in of.items() if run}
            found |= {(metric, log, name): value / 3600 for name, value in known.items()}
            if len(known) < len(of):
                continue
            chosen = known.pop(auto(goal))
            best, mean = min(known.values()), fmean(known.values())
            seeds = [run.numbers[key] for seed in range(SEEDS) if (run := runs.get(log, f"plan-{goal}", seed=seed))]
            cpu = {name: run.cpu_s for name, run in of.items() if run}
            found |= {
                (metric, log, "above the best, %"): 100 * (chosen / best - 1),
                (metric, log, "against the mean, %"): 100 * (chosen / mean - 1),
                (metric, log, "CPU, x"): cpu[auto(goal)] / fmean(cpu[name] for name in known),
                (metric, log, "worst, %"): 100 * (max(known.values()) / best - 1),
            }
            if len(seeds) == SEEDS:
                found[metric, log, "spread of seeds, %"] = 100 * (max(seeds) - min(seeds)) / fmean(seeds)
    return found


def rows(values: Values, metric: str) -> list[list[str]]:
    """A line for each log."""
    goal, made = GOALS[metric], []
    for log in LOGS:
        each = [values.text(metric, log, name, ".2f", "not run") for name in (*candidates(goal), auto(goal))]
        rest = [values.text(metric, log, column, ".1f") for column in COLUMNS]
        made.append([log, *each, *rest])
    return made


COLUMNS: Final = ("above the best, %", "against the mean, %", "worst, %", "spread of seeds, %", "CPU, x")


def heads(metric: str) -> list[str]:
    goal = GOALS[metric]
    return ["log", *(f"`{name}`" for name in (*candidates(goal), auto(goal))), *COLUMNS]


def near_best(values: Values, metric: str) -> Judged:
    """No worse than the best by more than 2 % or what seeds make, on every log."""
    above = _all(values, metric, "above the best, %")
    spread = _all(values, metric, "spread of seeds, %")
    good = [log for log in LOGS if above[log] <= max(WITHIN, spread[log])]
    words = ", ".join(f"{log} {above[log]:+.1f} %" for log in LOGS)
    return Judged(words, YES if len(good) == len(LOGS) else PART if len(good) > len(LOGS) // 2 else NO)


def above_mean(values: Values, metric: str) -> Judged:
    """Better than the mean of its candidates on at least four of five."""
    against = _all(values, metric, "against the mean, %")
    good = sum(one < 0 for one in against.values())
    return Judged(f"better on {good} of {len(LOGS)}", YES if good >= len(LOGS) - 1 else NO)


def cheap(values: Values, metric: str) -> Judged:
    """At most four times the CPU of one planner."""
    cpu = _all(values, metric, "CPU, x")
    return Judged(f"at most {max(cpu.values()):.1f} times", YES if max(cpu.values()) <= MOST_CPU else NO)


def _all(values: Values, metric: str, column: str) -> dict[str, float]:
    found = {log: values.number(metric, log, column) for log in LOGS}
    known = {log: one for log, one in found.items() if one is not None}
    if len(known) < len(LOGS):
        raise NotRunError(metric)
    return known
