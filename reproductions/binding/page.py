"""What the planners gain over the best list, by metric, case and resources that bind, from the runs of all seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, log
from statistics import fmean
from typing import Final

from dovetail.metrics.comparison import mean_interval
from reproductions.claims import NO, YES, Judged
from reproductions.runs import Runs
from reproductions.values import Content, Key, Values

METRICS: Final = {"BSLD": ("bsld", "plan-bsld"), "mean wait": ("mean_wait_s", "plan-af"), "AF": ("af_s", "plan-af")}
"""What is shown: the metric, and the planner that plans for it."""
RESOURCES: Final = ("cores", "cores, memory", "cores, memory, GPUs")
GROWTH: Final = "growth: "

Seeds = Mapping[str, Mapping[int, float]]
"""A metric of each policy, by seed."""


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """For each metric a row per case and number of resources: the best list, both means, and the gain with its
    interval; and how what is left with all resources compares with what is left with the first, seed by seed."""
    found: dict[Key, Content] = {}
    for name, (metric, planner) in METRICS.items():
        for scenario, estimate in dict.fromkeys((run.cell.scenario, run.cell.estimate) for run in runs):
            logs = []
            for trace in RESOURCES:
                seeds: dict[str, dict[int, float]] = {}
                for run in runs:
                    cell = run.cell
                    if (cell.trace, cell.scenario, cell.estimate) == (trace, scenario, estimate):
                        seeds.setdefault(cell.policy, {})[cell.seed] = run.numbers[metric]
                if not (ratios := _ratios(seeds, planner)):
                    break
                best, plan, each = ratios
                logs.append(each)
                mean, low, high = mean_interval(each)
                means = [fmean(seeds[one].values()) for one in (best, plan)]
                row: dict[str, Content] = {"best": best, "list": means[0], "planner": means[1]}
                row |= {"gain": 100 * (1 - exp(mean)), "low": 100 * (1 - exp(high)), "high": 100 * (1 - exp(low))}
                found |= {(name, f"{_case(scenario, estimate)}: {trace}", key): one for key, one in row.items()}
            else:
                left = mean_interval([last - first for last, first in zip(logs[-1], logs[0], strict=True)])
                for key, one in zip(("times", "low", "high"), left, strict=True):
                    found[GROWTH + name, _case(scenario, estimate), key] = exp(one)
    return found | _figures(found)


def _figures(found: Mapping[Key, Content]) -> dict[Key, Content]:
    """The gains of a metric, with their intervals, by number of resources; and by the mean wait under the best list."""
    lines: dict[Key, Content] = {}
    for (name, row, key), number in found.items():
        case, _, trace = row.partition(": ")
        if key == "gain":
            lines[f"by wait: {name}", case, str(found["mean wait", row, "list"])] = number
        if trace and key in ("gain", "low", "high"):
            end = "" if key == "gain" else f" {key}"
            lines[f"by resources: {name}{end}", case, str(RESOURCES.index(trace) + 1)] = number
    return lines


def _case(scenario: str, estimate: str) -> str:
    return f"load {scenario.removeprefix('set-load=')}, {'run times known' if estimate == 'runtime' else 'limits'}"


def _ratios(seeds: Seeds, planner: str) -> tuple[str, str, Sequence[float]] | None:
    """The list whose mean over the seeds is lowest, the planner, and the logarithms of planner / list; None where a
    policy lacks a seed, or there is only one."""
    plan = next((name for name in seeds if name.startswith(planner)), None)
    # Equal on nodes of one kind are both placements: `scarce` comes first then, which is that of the planners.
    lists = sorted((name for name in seeds if not name.startswith("plan")), reverse=True)
    if plan is None or not lists or len(seeds[plan]) < 2 or len({tuple(sorted(one)) for one in seeds.values()}) > 1:
        return None
    best = min(lists, key=lambda name: fmean(seeds[name].values()))
    pairs = ((seeds[plan][seed], seeds[best][seed]) for seed in sorted(seeds[best]))
    return best, plan, [log(max(ours, 1) / max(other, 1)) for ours, other in pairs]


def grows(values: Values, metric: str, case: str) -> Judged:
    """Whether less is left of the best list's number with all resources than with the first: the whole interval of the
    ratio is below 1."""
    gains = ", ".join(f"{values.need(metric, f'{case}: {trace}', 'gain'):.0f} %" for trace in RESOURCES)
    times, low, high = (values.need(GROWTH + metric, case, key) for key in ("times", "low", "high"))
    ours = f"{gains}; last to first: what is left times {times:.2f} [{low:.2f}, {high:.2f}]"
    return Judged(ours, YES if high < 1 else NO)
