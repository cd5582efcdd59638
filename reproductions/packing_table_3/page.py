"""Tables III and IV and Fig. 4 of Packing from the runs: changes in per cent, R2, and metrics by factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from dovetail.metrics.estimates import r2
from dovetail.model.schedule import Schedule
from reproductions.claims import Judged, verdict
from reproductions.runs import Runs
from reproductions.values import Content, Key, Values

METRICS: Final = {"bsld": "BSLD", "af_s": "AF", "awf_s": "AWF", "p2sf_s": "P2SF"}
POLICIES: Final = {
    "EASY-SJBF": ("easy-sjbf", "bsld"),
    "SAF-JustBF": ("list-saf", "bsld"),
    "LAF-JustBF": ("list-laf", "awf_s"),
    "JustBF": ("list-reg", "p2sf_s"),
}
"""The paper's names: ours, and the metric that each is judged by."""
PREDICTORS: Final = {
    "Runtime": "runtime", "Last2": "recent", "CVH": "online", "Hierarchy": "hierarchy", "SP-2%": "survival",
    "SP-3%": "survival:risk=0.03", "SP-4%": "survival:risk=0.04", "timelimit": "limit",
}  # fmt: skip
FACTORS: Final = tuple(k / 10 for k in range(5, 21))


def measure(schedule: Schedule, _: Callable[[str], Schedule]) -> dict[str, float]:
    """How far estimates are from run times."""
    return {"r2": r2(schedule.said, schedule.workload.runtime)}


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """The cells of both tables that have runs, and the curves of the figure."""
    found: dict[Key, Content] = {}
    for key in printed:
        table, _, name = key[0].partition(": ")
        policy, metric = POLICIES[name]
        ours, limit = (runs.get(key[2], policy, estimate) for estimate in (PREDICTORS[key[1]], "limit"))
        if ours and limit:
            change = 100 * ours.numbers[metric] / limit.numbers[metric] - 100
            found[key] = change if table == "Table III" else ours.numbers["r2"]
    for name in ("SAF-JustBF", "LAF-JustBF", "JustBF"):
        exact = runs.get("KTH-SP2", POLICIES[name][0], "runtime")
        for factor in FACTORS:
            one = runs.get("KTH-SP2", POLICIES[name][0], "runtime" if factor == 1 else f"runtime*{factor}")
            for metric, called in METRICS.items():
                if one and exact:
                    found[f"Fig. 4: {name}", called, f"{factor:g}"] = one.numbers[metric] / exact.numbers[metric]
    return found


def underprediction(values: Values) -> Judged:
    """What half and twice the run time as the estimate do to packing and fairness."""
    sides, steeper = [], []
    for name in ("LAF-JustBF", "JustBF"):
        for metric in ("AWF", "P2SF"):
            under, over = (values.need(f"Fig. 4: {name}", metric, factor) - 1 for factor in ("0.5", "2"))
            sides.append(f"{metric} of {name} {under:+.0%} and {over:+.0%}")
            steeper.append(under > over)
    return Judged("with half and twice the run time: " + ", ".join(sides), verdict(steeper))
