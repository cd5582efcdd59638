"""What CP says of its Figs. 2 to 7 in words, with our numbers beside it, from the runs that are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.metrics import timeline, utilization
from dovetail.model.schedule import Schedule
from dovetail.reports.curves import binned
from dovetail.studies.papers.page import Statement
from dovetail.studies.papers.planner_runs import METRIC_OF, Found, Key
from dovetail.studies.papers.tables import P2SF_PLUS

KNOWN: Final = "runtime"
"""All figures are with the run times known."""
KTH: Final = "KTH-SP2"
CTC: Final = "CTC-SP2"
SP2: Final = "SDSC-SP2"
LONG_QUEUE: Final = 30
"""Waiting jobs: KTH-SP2 mostly stays below, says the text of Fig. 7."""
SIMILAR: Final = 5
"""Per cent: what the paper calls similar or comparable."""
NOT_RUN: Final = "not run"

Values = Mapping[str, float]
"""By trace; only of those that were run."""


def values(shown: Found, policy: str | None, metric: str) -> Values:
    """Per cent of the base on each trace."""
    pairs = ((trace, shown.percent(Key(trace, policy, KNOWN), metric)) for trace in shown.traces if policy)
    return {trace: value for trace, value in pairs if value is not None}


def first(shown: Found, metric: str) -> str | None:
    """The planner's policy for a metric whose settings come first in the study."""
    return next(iter(shown.planners(metric)), None)


def offline(shown: Found, metric: str) -> Values:
    """The clairvoyant planner for a metric, of KTH-SP2 only."""
    return values(shown, "offline-" + next(name for name, one in METRIC_OF.items() if one == metric), metric)


def over(ours: Values, other: Values) -> Values:
    """One in per cent of the other, where both are there."""
    return {trace: 100 * value / other[trace] for trace, value in ours.items() if trace in other}


def listed(found: Values, unit: str = "", digits: int = 1) -> str:
    return ", ".join(f"{trace} {value:.{digits}f}{unit}" for trace, value in found.items()) or "-"


def held(shown: Found, found: Values, test: Callable[[float], bool], among: Sequence[str] | None = None) -> str:
    """Whether a test holds on every trace; `so far` where some were not run."""
    wanted = shown.traces if among is None else among
    good = [test(found[trace]) for trace in wanted if trace in found]
    said = "yes" if all(good) else "in part" if any(good) else "no"
    return NOT_RUN if not good else said if len(good) == len(wanted) else f"{said}, so far"


def about_packing(shown: Found, bound: Values) -> list[Statement]:
    """Fig. 2: AWF."""
    ours, laf = values(shown, first(shown, "awf_s"), "awf_s"), values(shown, "list-laf", "awf_s")
    further = over(ours, laf)
    return [
        Statement(
            "List-LAF improves AWF over List-REG by as much as 17 % (SDSC-SP2)",
            listed(laf),
            held(shown, laf, lambda value: round(100 - value) == 17, [SP2]),
        ),
        Statement(
            "CP-AWF improves AWF further, by as much as 10 % over List-LAF (CTC-SP2)",
            f"in per cent of `list-laf`: {listed(further)}",
            held(shown, further, lambda value: value < 100),
        ),
        Statement(
            "optimized all at once, off-line, KTH-SP2 comes to a similar AWF",
            f"{listed(offline(shown, 'awf_s'))} in per cent of `list-reg`; no schedule is below {listed(bound)}",
            held(shown, over(offline(shown, "awf_s"), ours), lambda value: abs(value - 100) < SIMILAR, [KTH]),
        ),
    ]


def about_slowdown(shown: Found) -> list[Statement]:
    """Fig. 3: BSLD."""
    ours = values(shown, first(shown, "bsld"), "bsld")
    spf, saf, sjf = (values(shown, f"list-{order}", "bsld") for order in ("spf", "saf", "sjf"))
    both = [trace for trace in spf if trace in saf]
    means = [float(np.mean([one[trace] for trace in both])) if both else np.nan for one in (spf, saf)]
    beaten = over(ours, {trace: min(spf[trace], saf[trace]) for trace in both})
    above = sum(value > 100 for value in beaten.values())
    return [
        Statement(
            "List-SAF outperforms List-SJF",
            f"in per cent of `list-sjf`: {listed(over(saf, sjf))}",
            held(shown, over(saf, sjf), lambda value: value < 100),
        ),
        Statement(
            "List-SPF is lower than List-SAF on average",
            f"means of {means[0]:.1f} and {means[1]:.1f}" if both else "-",
            held(shown, dict.fromkeys(both, means[0] - means[1]), lambda value: value < 0),
        ),
        Statement(
            "CP-BSLD often is worse than List-SPF and List-SAF",
            f"in per cent of the better of the two: {listed(beaten)}",
            held(shown, dict.fromkeys(beaten, 2.0 * above), lambda value: value > len(beaten)),
        ),
        Statement(
            "CP-BSLD+, which begins with the list plans (as our planner always does), is above List-SPF everywhere",
            f"in per cent of `list-spf`: {listed(over(ours, spf))}",
            held(shown, over(ours, spf), lambda value: value > 100),
        ),
        Statement(
            "off-line, BSLD is lower by an order of magnitude",
            f"in per cent of `list-reg`: {listed(offline(shown, 'bsld'))}",
            held(shown, over(offline(shown, "bsld"), ours), lambda value: value < 10, [KTH]),
        ),
    ]


def about_response(shown: Found) -> list[Statement]:
    """Fig. 4: AF, and AWF of the same schedules."""
    plan = first(shown, "af_s")
    af, awf = ({name: values(shown, name, m) for name in ("list-saf", "list-sjf")} for m in ("af_s", "awf_s"))
    ours, packing = values(shown, plan, "af_s"), values(shown, plan, "awf_s")
    high = {name: found[SP2] for name, found in af.items() if SP2 in found}
    return [
        Statement(
            "on SDSC-SP2 List-SAF and List-SJF have a higher AF than List-REG",
            listed(high),
            held(shown, high, lambda value: value > 100, list(af)),
        ),
        Statement(
            "List-SAF packs worse than List-SJF: its AWF is higher",
            f"in per cent of that of `list-sjf`: {listed(over(awf['list-saf'], awf['list-sjf']), digits=0)}",
            held(shown, over(awf["list-saf"], awf["list-sjf"]), lambda value: value > 100),
        ),
        Statement(
            "CP-AF improves AF over List-REG on all traces", listed(ours), held(shown, ours, lambda value: value < 100)
        ),
        Statement(
            "CP-AF preserves the packing better than List-SAF",
            f"AWF {listed(packing)}; in per cent of that of `list-saf`"
            f" {listed(over(packing, awf['list-saf']), digits=0)}",
            held(shown, over(packing, awf["list-saf"]), lambda value: value < 100),
        ),
        Statement(
            "off-line, AF of KTH-SP2 is comparable with CP-AF's",
            f"in per cent of `list-reg`: {listed(offline(shown, 'af_s'))}",
            held(shown, over(offline(shown, "af_s"), ours), lambda value: abs(value - 100) < SIMILAR, [KTH]),
        ),
    ]


def quarters(made: Schedule) -> Floats:
    """Mean number of waiting jobs in each quarter of the span from the first to the last arrival."""
    line = timeline(made)
    at = np.linspace(made.arrive.min(), made.arrive.max(), 5).astype(np.int64)
    return binned(line.times, line.queue_jobs, at)


def about_overload(shown: Found) -> list[Statement]:
    """Fig. 5: the queue of SDSC-SP2 over time."""
    plan = first(shown, "af_s")
    made = {name: shown.read(Key(SP2, name, KNOWN)) for name in ("list-reg", "list-saf", *([plan] if plan else []))}
    queue = {name: quarters(one) for name, one in made.items() if one}
    busy = {name: 100 * utilization(timeline(one)) for name, one in made.items() if one}
    told = {name: ", ".join(f"{value:.0f}" for value in found) for name, found in queue.items()}
    saf, ours, base = queue.get("list-saf"), queue.get(plan or ""), queue.get("list-reg")
    fell = {name: value for name, value in busy.items() if name != plan}
    printed = {"list-reg": 82.5, "list-saf": 78.8}
    stable = NOT_RUN
    if ours is not None and saf is not None and base is not None:
        stable = "yes" if float(ours[-1]) < 2 * float(base[-1]) and float(ours[-1]) < float(saf[-1]) / 2 else "no"
    return [
        Statement(
            "under List-SAF the queue grows all the time",
            f"mean of waiting jobs in each quarter of the trace: {told.get('list-saf', '-')}",
            NOT_RUN if saf is None else bool(np.all(np.diff(saf) > 0)),
        ),
        Statement(
            "CP-AF prevents the overload",
            f"likewise: {told.get(plan or '', '-')} (`list-reg`: {told.get('list-reg', '-')})",
            stable,
        ),
        Statement(
            "utilization only falls from 82.5 % to 78.8 % under List-SAF",
            listed(fell, " %"),
            held(shown, {n: round(v - printed[n], 1) for n, v in fell.items()}, lambda off: off == 0, list(printed)),
        ),
    ]


def about_fairness(shown: Found) -> list[Statement]:
    """Fig. 6: P2SF."""
    ours = values(shown, first(shown, "p2sf_s"), "p2sf_s")
    others = [trace for trace in shown.traces if trace != KTH]
    plus = over(ours, P2SF_PLUS)
    return [
        Statement(
            "CP-P2SF improves on List-REG for KTH-SP2, by 8 %",
            listed({trace: value for trace, value in ours.items() if trace == KTH}),
            held(shown, ours, lambda value: value <= 92.5, [KTH]),
        ),
        Statement(
            "but not for the others",
            listed({trace: ours[trace] for trace in others if trace in ours}),
            held(shown, ours, lambda value: value >= 100, others),
        ),
        Statement(
            "CP-P2SF+, which begins with the plan of List-REG (as our planner always does), improves by about 10 % for"
            " KTH-SP2, 3 % for SDSC-SP2, less than 0.5 % for SDSC-BLUE; not for the others",
            f"in per cent of CP-P2SF+: {listed(plus)}",
            held(shown, plus, lambda value: value < 100.5, list(P2SF_PLUS)),
        ),
    ]


def queue_lengths(made: Schedule) -> Ints:
    """How many jobs wait in each pass: those that have arrived by then and have not started before."""
    moments = np.unique(np.concatenate([made.arrive, made.end]))
    arrived = np.searchsorted(np.sort(made.arrive), moments, side="right")
    return arrived - np.searchsorted(np.sort(made.start), moments, side="left")


def about_queues(queues: Mapping[str, Ints], shown: Found) -> list[Statement]:
    """Fig. 7: how many jobs wait in a pass."""
    long = {trace: 100 * float(np.mean(found >= LONG_QUEUE)) for trace, found in queues.items()}
    others = [trace for trace in shown.traces if trace != KTH]
    kth = {KTH: long[KTH]} if KTH in long else {}
    return [
        Statement(
            "on KTH-SP2 the queue mostly stays below 30 jobs",
            f"passes with 30 or more: {listed(kth, ' %')}",
            held(shown, long, lambda value: value < 50, [KTH]),
        ),
        Statement(
            "on the others it often gets larger",
            f"passes with 30 or more: {listed({trace: long[trace] for trace in others if trace in long}, ' %')}",
            held(shown, long, lambda value: value > long.get(KTH, 100.0), others),
        ),
    ]
