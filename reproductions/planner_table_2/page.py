"""Table 2 of CP and what it says of its Figs. 2 to 7, with our planner where the paper has CP Optimizer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isnan
from typing import Final, NamedTuple

import numpy as np

from dovetail.metrics import Outcomes, af_s, awf_s, bsld, pasf_s, timeline
from dovetail.metrics.system import bin_edges
from dovetail.model.schedule import Schedule
from dovetail.optimize.window.bounds import awf_bound_s
from dovetail.reports.curves import DAY, binned, middles
from reproductions.claims import NO, NOT_RUN, YES, Judged, verdict
from reproductions.passes import passes_of
from reproductions.runs import Points, Run, Runs
from reproductions.values import Content, Key, NotRunError, Values

LOGS: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie")
ESTIMATES: Final = {"runtime": "run time known", "limit": "limit as the estimate"}
METRICS: Final = {"AF": "af_s", "AWF": "awf_s", "BSLD": "bsld", "P2SF": "p2sf_s"}
BASE: Final = "list-reg"
PAPER: Final = {
    "list-spf": "List-SPF", "list-saf": "List-SAF", "list-sjf": "List-SJF", "list-laf": "List-LAF", "easy": "EASY",
    "plan-af": "CP-AF", "plan-awf": "CP-AWF", "plan-bsld": "CP-BSLD", "plan-p2sf": "CP-P2SF",
}  # fmt: skip
"""Our policies, and the rows of the published table that they are compared with."""
MODES: Final = ("default", "free")
"""How the planner is set: so that no job waits very long; and as the published methods are, which bound no wait."""
CHOSEN: Final[dict[tuple[str, str], tuple[str, str]]] = {
    ("AF", "runtime"): ("plan-af:commit=0.5", "plan-af:commit=0.5"),
    ("AF", "limit"): ("plan-af", "plan-af:long=16d"),
    ("AWF", "runtime"): ("plan-awf:wide=0", "plan-awf:long=none,wide=0"),
    ("AWF", "limit"): ("plan-awf", "plan-awf:long=none"),
    ("BSLD", "runtime"): ("plan-bsld", "plan-bsld"),
    ("BSLD", "limit"): ("plan-af:commit=0.5", "plan-af:long=16d,commit=0.5"),
    ("P2SF", "runtime"): ("plan-p2sf", "plan-p2sf"),
    ("P2SF", "limit"): ("plan-p2sf", "plan-p2sf"),
}
"""What plans for a metric with an estimate in each mode, chosen on other logs before any of these runs was made
(docs/planner.md)."""
LOST: Final = {("AWF, runtime", "KTH-SP2"): ("CP-AWF", 90.0), ("BSLD, limit", "CTC-SP2"): ("CP-BSLD", 20.0)}
"""Published numbers with a lost digit, at their lowest reading."""
SEEDS: Final = 3
"""Of a cell that is near to what is published."""
LONGEST: Final = 2.0
"""The longest wait may be this multiple of that of the base."""
COSTS: Final = ("CPU, s", "pass p50, ms", "pass p99, ms", "search p50, ms", "search p99, ms")
OFFLINE: Final = {
    "KTH-SP2": ("af", "awf", "bsld", "p2sf"), "CTC-SP2": ("af", "awf", "bsld"), "SDSC-SP2": ("awf",),
    "SDSC-BLUE": ("af", "awf", "bsld"),
}  # fmt: skip
"""Planners that know the future: as in the paper, and on other logs beside cells that are not reached."""
LONG_QUEUE: Final = 30
"""Waiting jobs: KTH-SP2 mostly stays below, says the text of Fig. 7."""


def planners(metric: str, estimate: str = "runtime") -> list[str]:
    """The policies that plan for a metric, the default first."""
    return list(dict.fromkeys(CHOSEN[metric, estimate]))


# From schedules to numbers.


def measure(schedule: Schedule, _: Callable[[str], Schedule]) -> dict[str, float | Points]:
    """The metrics without the one job that ends last, as the authors' script has them; and what the figures need."""
    kept = schedule.end < schedule.end.max()
    jobs = Outcomes(schedule.workload.size[kept], schedule.workload.runtime[kept], schedule.wait[kept])
    found: dict[str, float | Points] = {
        "bsld_but_last": bsld(jobs), "af_s_but_last": af_s(jobs), "awf_s_but_last": awf_s(jobs),
        "p2sf_s_but_last": pasf_s(jobs),
    }  # fmt: skip
    if schedule.estimate == "runtime" and schedule.policy == BASE:
        found["awf_bound_s"] = awf_bound_s(schedule.workload, by_size=True)
    if schedule.estimate == "runtime" and schedule.policy in (BASE, "list-saf", "plan-af"):
        line = timeline(schedule)
        quarters = np.linspace(schedule.arrive.min(), schedule.arrive.max(), 5).astype(np.int64)
        means = binned(line.times, line.queue_jobs, quarters).tolist()
        found |= {f"queue_{place}": mean for place, mean in enumerate(means, 1)}
        weeks = bin_edges(line.times, 7 * DAY)
        days, jobs_waiting = middles(weeks) / DAY, binned(line.times, line.queue_jobs, weeks)
        found["queue"] = list(zip(days.tolist(), jobs_waiting.tolist(), strict=True))
    if schedule.estimate == "runtime" and schedule.policy == "plan-p2sf":
        waiting = np.sort(passes_of(schedule)[1])
        found["long_queue"] = float(np.mean(waiting >= LONG_QUEUE))
        at = np.unique(np.rint(np.geomspace(1, max(int(waiting[-1]), 100), 120)))
        shares = np.searchsorted(waiting, at, side="right") / len(waiting)
        found["lengths"] = list(zip(at.tolist(), (100 * shares).tolist(), strict=True))
    return found


# From numbers to values.


def values(runs: Runs, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """A table for each trace and estimate with a row for each policy, and what the figures show."""
    found: dict[Key, Content] = {}
    whole = all(runs.get(log, one, how) for log, how, one in study_runs() if not one.startswith("offline-"))
    seeds: dict[tuple[str, str, str], list[Run]] = {}
    for run in sorted(runs, key=lambda run: run.cell.seed):
        seeds.setdefault((run.cell.trace, run.cell.policy, run.cell.estimate), []).append(run)
    for same in seeds.values():
        base = runs.get(same[0].cell.trace, BASE, same[0].cell.estimate)
        if base:
            found |= _row(same, base, printed)
            # Times of several machines do not compare: they are shown when all runs have been made again.
            found |= _times(same[0]) if whole else {}
    known = {
        (run.cell.trace, run.cell.policy): run for run in runs if run.cell.estimate == "runtime" and not run.cell.seed
    }
    for said, (metric, ours, *others) in SAID.items():
        for log in LOGS:
            one, *two = (known.get((log, policy)) for policy in (ours, *others))
            if one and all(two):
                least = min(other.numbers[METRICS[metric]] for other in two if other)
                found[said, "", log] = 100 * one.numbers[METRICS[metric]] / least
    for (log, policy), run in known.items():
        if policy == BASE:
            found["no schedule is below", "", log] = 100 * run.numbers["awf_bound_s"] / run.numbers["awf_s"]
        if policy == "plan-p2sf":
            found["passes with 30 or more", "", log] = 100 * run.numbers["long_queue"]
            found |= {("Fig. 7", log, f"{x:g}"): y for x, y in run.curves["lengths"]}
            plus = printed.get(("P2SF, runtime", "CP-P2SF+", log))
            if isinstance(plus, float) and (base := known.get((log, BASE))):
                share = 1e4 * run.numbers["p2sf_s"] / base.numbers["p2sf_s"] / plus
                found["P2SF of plan-p2sf over CP-P2SF+", "", log] = share
        if log == "SDSC-SP2" and policy in (BASE, "list-saf", "plan-af"):
            found |= {("Fig. 5", policy, repr(x)): y for x, y in run.curves["queue"]}
            found |= {("queue", policy, f"{part}"): run.numbers[f"queue_{part}"] for part in range(1, 5)}
            found["utilization", "", policy] = 100 * run.numbers["utilization"]
    return found


SAID: Final = {
    "AWF of plan-awf over list-laf": ("AWF", "plan-awf", "list-laf"),
    "BSLD of list-saf over list-sjf": ("BSLD", "list-saf", "list-sjf"),
    "BSLD of plan-bsld over list-spf": ("BSLD", "plan-bsld", "list-spf"),
    "BSLD of plan-bsld over the better list": ("BSLD", "plan-bsld", "list-spf", "list-saf"),
    "AWF of list-saf over list-sjf": ("AWF", "list-saf", "list-sjf"),
    "AWF of plan-af over list-saf": ("AWF", "plan-af", "list-saf"),
}
"""Ratios in per cent that claims are about: metric, policy, and what it is divided by, of two the better."""


def _row(same: Sequence[Run], base: Run, printed: Mapping[Key, Content]) -> dict[Key, Content]:
    """Of the runs of one policy, which differ in their seeds: the mean of each metric in per cent of the base, or as it
    is of the base itself, their spread, and the longest wait of all."""
    cell = same[0].cell
    table, own = f"{cell.trace}, {cell.estimate}", cell.policy != BASE
    found: dict[str, Content] = {"seeds": len(same)}
    for metric, key in METRICS.items():
        for title, name in ((f"{metric}, authors", f"{key}_but_last"), (metric, key)):
            every = [run.numbers[name] / (base.numbers[name] / 100 if own else 1) for run in same]
            found[title] = float(np.mean(every))
            found[f"{title}, spread"] = max(every) - min(every)
        found |= {f"{metric}, first seed": one for one, run in zip(every, same, strict=True) if run.cell.seed == 0}
    longest = max(run.numbers["max_wait_s"] for run in same)
    found["longest wait"] = longest / (base.numbers["max_wait_s"] if own else 1)
    for metric in METRICS:
        if cell.policy in CHOSEN[metric, cell.estimate]:
            known = best(printed, f"{metric}, {cell.estimate}", cell.trace).percent
            sides = [float(found[title]) for title in (metric, f"{metric}, authors")]
            found[f"{metric}, below"] = ", ".join(dict.fromkeys(below(ours, known) for ours in sides))
    return {(table, cell.policy, column): content for column, content in found.items()}


def _times(run: Run) -> dict[Key, Content]:
    times = [run.numbers[f"{kind}_{at}_ms"] for kind in ("pass", "search") for at in ("p50", "p99")]
    table = f"{run.cell.trace}, {run.cell.estimate}"
    return {(table, run.cell.policy, name): one for name, one in zip(COSTS, (run.cpu_s, *times), strict=True)}


def below(ours: float, published: float) -> str:
    """Whether ours is below a published whole number: `yes` if rounding cannot explain it."""
    return "yes" if ours < published - 0.5 else "by rounding" if ours < published else "no"


class Published(NamedTuple):
    """The lowest published value of a metric on a trace, of which method, and whether another is not legible."""

    percent: float
    method: str
    lost: bool


def best(printed: Mapping[Key, Content], table: str, log: str) -> Published:
    """Of all rows of Table 2 and, where the text gives its value, CP-P2SF+; the solver's at their lowest reading."""
    cells = {key[1]: one for key, one in printed.items() if (key[0], key[2]) == (table, log)}
    legible = {"List-REG": 100.0} | {row: one for row, one in cells.items() if isinstance(one, float)}
    legible |= dict([LOST[table, log]]) if (table, log) in LOST else {}
    method = min(legible, key=lambda row: legible[row])
    return Published(legible[method], method, len(legible) < len({"List-REG", *cells}))


# From values to the page.


def asked(log: str, estimate: str) -> list[str]:
    """All policies of the study but the base."""
    chosen = dict.fromkeys(one for metric in METRICS for one in planners(metric, estimate))
    offline = OFFLINE.get(log, ()) if estimate == "runtime" else ()
    return [*dict.fromkeys((*PAPER, *chosen)), *(f"offline-{one}" for one in offline)]


def study_runs() -> list[tuple[str, str, str]]:
    """All runs of the study: trace, estimate and policy."""
    return [(log, how, one) for log in LOGS for how in ESTIMATES for one in (BASE, *asked(log, how))]


def counts(values: Values) -> dict[str, int]:
    """Of all runs of the study, those that are not there; and how the planner fares in each mode."""
    missing = sum(values.number(f"{log}, {estimate}", one, "AF") is None for log, estimate, one in study_runs())
    alone = [
        (log, one, how) for log, one, how in more_seeds(values) if values.need(f"{log}, {how}", one, "seeds") < SEEDS
    ]
    found = {"runs": len(study_runs()), "missing": missing, "seeds": len(alone)}
    for mode in MODES:
        rows = [facts(values, metric, mode)[1:5] for metric in METRICS]
        totals = [sum(int(row[place]) for row in rows) for place in range(4)]
        found |= {f"{mode}: {word}": n for word, n in zip(("yes", "rounding", "no", "not run"), totals, strict=True)}
    return found


def facts(values: Values, metric: str, mode: str) -> list[str]:
    """A row of the summary: in how many cells a mode is below what is published, and the longest wait of all. By
    default, a cell counts as below only if no job waits much longer than under the base."""
    told, waits = [], []
    for log in LOGS:
        for estimate in ESTIMATES:
            table, policy = f"{log}, {estimate}", CHOSEN[metric, estimate][MODES.index(mode)]
            found = values.text(table, policy, f"{metric}, below")
            if found:
                wait = values.need(table, policy, "longest wait")
                waits.append(wait)
                told.append("no" if mode == "default" and wait > LONGEST else found.split(", ")[0])
    fared = [told.count(word) for word in ("yes", "by rounding", "no")]
    left = len(LOGS) * len(ESTIMATES) - len(told)
    return [metric, *map(str, fared), str(left), multiple(max(waits, default=None))]


def summary(values: Values, mode: str) -> list[list[str]]:
    """The summary of one mode."""
    return [facts(values, metric, mode) for metric in METRICS]


def more_seeds(values: Values) -> list[tuple[str, str, str]]:
    """Trace, policy and estimate of what is so near to the published number that two more seeds are to be run: the rule
    was fixed before any run."""
    found = []
    for (metric, estimate), policies in CHOSEN.items():
        for log in LOGS:
            known = best(values.printed, f"{metric}, {estimate}", log).percent
            for policy in dict.fromkeys(policies):
                ours = values.number(f"{log}, {estimate}", policy, f"{metric}, first seed")
                if ours is not None and abs(ours - known) <= (0.1 * known if metric == "BSLD" else 1.5):
                    found.append((log, policy, estimate))
    return list(dict.fromkeys(found))


def diagonal(values: Values, metric: str, estimate: str) -> list[list[str]]:
    """The planner's policies for one metric against what is published of it."""
    rows = []
    for log in LOGS:
        known = best(values.printed, f"{metric}, {estimate}", log)
        beside = [f"{known.percent:g} ({known.method}){'*' * known.lost}", _printed(values, metric, estimate, log)]
        for policy in planners(metric, estimate):
            table = f"{log}, {estimate}"
            shown = [values.text(table, policy, title, ".1f") for title in (metric, f"{metric}, authors")]
            if (values.number(table, policy, "seeds") or 1) > 1:
                shown = [f"{text} ± {values.need(table, policy, f'{title}, spread') / 2:.1f}"
                         for text, title in zip(shown, (metric, f"{metric}, authors"), strict=True)]  # fmt: skip
            rest = [*shown, values.text(table, policy, f"{metric}, below"), *_costs(values, table, policy)]
            rows.append([log, f"`{policy}`", *beside, *(rest if shown[0] else ["not run", *[""] * 6])])
    return rows


def _printed(values: Values, metric: str, estimate: str, log: str, row: str = "") -> str:
    found = values.printed.get((f"{metric}, {estimate}", row or f"CP-{metric}", log), "")
    return found if isinstance(found, str) else f"{found:g}"


def _costs(values: Values, table: str, policy: str) -> list[str]:
    cpu, *ms = (values.number(table, policy, title) for title in COSTS)
    times = [milliseconds(one) for one in ms]
    wait = multiple(values.number(table, policy, "longest wait"))
    return [wait, "" if cpu is None else f"{cpu:.1f}", f"{times[0]} / {times[1]}", f"{times[2]} / {times[3]}"]


def milliseconds(value: float | None) -> str:
    """With two digits that count."""
    if value is None or isnan(value):
        return "-"
    return f"{value:.0f}" if value >= 10 else f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def multiple(value: float | None) -> str:
    """Of the longest wait of the base; bold above LONGEST."""
    return "" if value is None else f"{value:.2f}" if value <= LONGEST else f"**{value:.2f}**"


def not_reached(values: Values) -> list[list[str]]:
    """The cells in which no mode is surely below what is published, or only with waits that are too long. Beside them
    what a planner that knows the future came to, and for AWF what no schedule is below: both in per cent of the base of
    the cell."""
    rows = []
    for metric in METRICS:
        for estimate, words in ESTIMATES.items():
            for log in LOGS:
                table, known = f"{log}, {estimate}", best(values.printed, f"{metric}, {estimate}", log).percent
                tried = [one for one in planners(metric, estimate) if values.number(table, one, metric) is not None]
                waits = {policy: values.need(table, policy, "longest wait") for policy in tried}
                safe = [values.text(table, one, f"{metric}, below") for one in tried if waits[one] <= LONGEST]
                if tried and not any(one.startswith("yes") for one in safe):
                    told = [f"`{p}` {values.need(table, p, metric):.1f} ({multiple(waits[p])})" for p in tried]
                    rows.append([metric, words, log, f"{known:g}", ", ".join(told), *_least(values, metric, table)])
    return rows


def _least(values: Values, metric: str, table: str) -> list[str]:
    """What a planner that knows the future came to, and a bound if there is one."""
    log = table.partition(",")[0]
    offline = values.number(f"{log}, runtime", f"offline-{metric.lower()}", metric)
    bound = values.number("no schedule is below", "", log) if metric == "AWF" else None
    bases = [values.need(one, BASE, metric) for one in (f"{log}, runtime", table)]
    return ["" if one is None else f"{one * bases[0] / bases[1]:.1f}" for one in (offline, bound)]


def matrix(values: Values, log: str, estimate: str) -> list[list[str]]:
    """Every policy on every metric: printed, ours with all jobs counted, and with the authors' counting."""
    table = f"{log}, {estimate}"
    rows = []
    for policy in asked(log, estimate):
        row = PAPER.get(policy, "")
        cells = []
        for metric in METRICS:
            known = _printed(values, metric, estimate, log, row or "-")
            ours = [values.text(table, policy, title, ".1f") for title in (metric, f"{metric}, authors")]
            cells.append(" · ".join(filter(None, [known and f"*{known}*", *(ours if ours[0] else ["not run"])])))
        rest = _costs(values, table, policy) if values.number(table, policy, "AF") is not None else [""] * 4
        rows.append([f"`{policy}` ({row})" if row else f"`{policy}`", *cells, *rest])
    return rows


# What the paper says of its figures: all with run times known.


def _by_log(values: Values, what: str) -> dict[str, float]:
    """`list-laf AWF`: a metric of a policy; else a table of values by trace."""
    policy, _, metric = what.partition(" ")
    keys = {log: (f"{log}, runtime", policy, metric) if metric in METRICS else (what, "", log) for log in LOGS}
    return {log: number for log, key in keys.items() if (number := values.number(*key)) is not None}


def listed(
    values: Values, what: str, words: str = "{}", above: float = -np.inf, below: float = np.inf,
    among: Sequence[str] = LOGS, shown: Sequence[str] = LOGS, over: str = "", also: str = "", digits: int = 1,
) -> Judged:  # fmt: skip
    """Whether numbers by trace are within bounds, those of `what` in per cent of `over`, if that is given."""
    found = _by_log(values, what)
    other = _by_log(values, over) if over else dict.fromkeys(found, 100.0)
    good = [above < 100 * found[log] / other[log] < below for log in among if log in found and log in other]
    if not good:
        raise NotRunError(what)
    text = words.replace("{}", _list(found, shown, digits)).replace("{also}", _list(_by_log(values, also), shown, 1))
    return Judged(text, verdict(good) + ("" if len(good) == len(among) else ", so far"))


def _list(found: Mapping[str, float], shown: Sequence[str], digits: int) -> str:
    return ", ".join(f"{name} {number:.{digits}f}" for name, number in found.items() if name in shown)


def averages(values: Values) -> Judged:
    """BSLD of list-spf and of list-saf on average."""
    tables = [f"{log}, runtime" for log in LOGS]
    spf, saf = (np.mean([values.need(table, name, "BSLD") for table in tables]) for name in ("list-spf", "list-saf"))
    return Judged(f"means of {spf:.1f} and {saf:.1f}", YES if spf < saf else NO)


def often(values: Values) -> Judged:
    """Whether plan-bsld is worse than the better list on more than half of the traces."""
    found = _by_log(values, "BSLD of plan-bsld over the better list")
    text = f"in per cent of the better of the two: {_list(found, LOGS, 1)}"
    worse = sum(number > 100 for number in found.values())
    return Judged(text, NOT_RUN if not found else YES if 2 * worse > len(found) else NO)


def higher(values: Values) -> Judged:
    """AF of two lists on SDSC-SP2."""
    found = {name: values.need("SDSC-SP2, runtime", name, "AF") for name in ("list-saf", "list-sjf")}
    return Judged(_list(found, list(found), 1), verdict([number > 100 for number in found.values()]))


def _quarters(values: Values, policy: str) -> list[float]:
    return [values.need("queue", policy, f"{part}") for part in range(1, 5)]


def grows(values: Values) -> Judged:
    """The queue of SDSC-SP2 under list-saf, by quarters of the trace."""
    saf = _quarters(values, "list-saf")
    text = "mean of waiting jobs in each quarter of the trace: " + ", ".join(f"{mean:.0f}" for mean in saf)
    return Judged(text, YES if bool(np.all(np.diff(saf) > 0)) else NO)


def prevents(values: Values) -> Judged:
    """The same under plan-af: in the last quarter below twice that of the base and half of that of list-saf."""
    ours, base, saf = (_quarters(values, name) for name in ("plan-af", BASE, "list-saf"))
    told = [", ".join(f"{mean:.0f}" for mean in means) for means in (ours, base)]
    good = ours[-1] < 2 * base[-1] and ours[-1] < saf[-1] / 2
    return Judged(f"likewise: {told[0]} (`list-reg`: {told[1]})", YES if good else NO)


def utilization(values: Values) -> Judged:
    """The share of the processors in use on SDSC-SP2."""
    found = {name: values.need("utilization", "", name) for name in (BASE, "list-saf")}
    good = [round(found[name] - known, 1) == 0 for name, known in ((BASE, 82.5), ("list-saf", 78.8))]
    return Judged(", ".join(f"{name} {share:.1f} %" for name, share in found.items()), verdict(good))


def longer(values: Values) -> Judged:
    """The share of passes with a long queue, on the others against KTH-SP2."""
    kth, *others = (values.need("passes with 30 or more", "", log) for log in LOGS)
    text = _list(dict(zip(LOGS[1:], others, strict=True)), LOGS, 1)
    return Judged(f"passes with 30 or more, %: {text}", verdict([share > kth for share in others]))
