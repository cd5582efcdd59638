"""What each metric is called, its unit, and whether more of it is better: once, for tables, pages and verdicts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["seconds", "ratio", "share"]


@dataclass(frozen=True)
class Metric:
    """One number of `summarize`."""

    key: str
    """Its name in docs/metrics.md."""
    head: str
    """Over a column or a panel."""
    words: str
    """In a sentence, after `the`."""
    meaning: str = ""
    """What it measures, for a reader of a page; of those that no page shows, docs/metrics.md says it."""
    kind: Kind = "seconds"
    more_is_better: bool = False

    @property
    def unit(self) -> str:
        """In which the value is; empty for counts, ratios and shares, and for money, whose unit is the site's."""
        return next((unit for suffix, unit in _UNITS.items() if self.key.endswith(suffix)), "")


_UNITS: Final = {"_s": "s", "_kwh": "kWh", "_kw": "kW", "_kg": "kg"}
METRICS: Final = (
    Metric("mean_wait_s", "mean wait", "mean wait", "From arrival to start, averaged over jobs."),
    Metric(
        "regular_mean_wait_s", "wait without a deadline", "mean wait of jobs without a deadline",
        "The mean wait, of the jobs that have no deadline.",
    ),
    Metric(
        "wait_p95_s", "95 % waited up to", "95th percentile of the wait",
        "The wait that 19 of 20 jobs stayed below: what users may count on.",
    ),
    Metric("max_wait_s", "longest wait", "longest wait", "That of one job, the unluckiest. It says nothing of others."),
    Metric(
        "bsld", "BSLD", "mean bounded slowdown",
        "How many times longer jobs took, waiting included, than running alone would have; run times below 10 s count"
        " as 10 s. Small jobs rule it.",
        "ratio",
    ),
    Metric(
        "af_s", "AF", "mean response",
        "Response: from arrival to end, averaged over jobs. The mean wait plus the mean run time.",
    ),
    Metric(
        "awf_s", "AWF", "area-weighted response AWF",
        "Response weighted by area (processors times run time): how early computation gets done, no matter whose it is."
        " Large jobs rule it.",
    ),
    Metric(
        "p2sf_s", "P2SF", "unfairness measure P2SF",
        "Response of each piece of computation, with the long ones weighted up by their square: it grows where some"
        " wait much longer than others.",
    ),
    Metric(
        "utilization", "utilisation", "utilisation",
        "Share of the processors that ran jobs, from the first arrival to the last end. More is better here.",
        "share", more_is_better=True,
    ),
    Metric(
        "loss_of_capacity", "loss of capacity", "loss of capacity",
        "Share of the processors that stood idle while waiting jobs asked for them.",
        "share",
    ),
    Metric(
        "energy_cost", "bill", "electricity bill",
        "What the energy of jobs, idle processors and cooling costs, in the currency of the site.", "ratio",
    ),
    Metric("co2_kg", "CO2", "CO2 in kg", "What making that energy let into the air.", "ratio"),
)  # fmt: skip
"""Those that pages show, in their order."""
MAIN: Final = tuple(metric for metric in METRICS if metric.key in ("mean_wait_s", "bsld", "awf_s", "p2sf_s"))
"""The few that an overview of several cases shows."""
_ENTRIES: Final = {metric.key: metric for metric in METRICS}


def metric_of(key: str) -> Metric:
    """What is known of a metric: its entry, else what its name says."""
    if key in _ENTRIES:
        return _ENTRIES[key]
    suffix = next((suffix for suffix in _UNITS if key.endswith(suffix)), "")
    words = key.removesuffix(suffix).replace("_", " ")
    if key == "utilization_variance":
        return Metric(key, words, words, kind="ratio")
    share = key.startswith(("utilization_", "stranded_")) or key.endswith(("_at_once", "_share", "usage", "_above_80"))
    kind: Kind = "seconds" if suffix == "_s" else "share" if share else "ratio"
    more = key.startswith("utilization_") or key.endswith("_at_once") or key in ("revenue", "profit")
    return Metric(key, words, words, kind=kind, more_is_better=more)
