"""Tables III and IV and Fig. 4 of Packing from the runs: changes in per cent, R2, and metrics by factor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Ints
from dovetail.io.read import read_workload
from dovetail.metrics import outcomes, slowdowns
from dovetail.metrics.estimates import r2
from dovetail.model.schedule import Schedule
from dovetail.studies.task import Cell
from dovetail.units import duration
from reproductions.claims import Judged, verdict
from reproductions.folders import find
from reproductions.list_tables import FORMULAS, counts
from reproductions.packing_table_3.last2 import RULES, Told, replayed
from reproductions.running import Measures, Work
from reproductions.runs import Runs, read_runs
from reproductions.values import Content, Key, NotRunError, Values

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

THEIRS: Final = "theirs"
"""Last2 by all rules of the authors' program; `theirs but RULE`, and `recent and RULE`: our Last2 with one of them."""
WITH_RULES: Final = ("KTH-SP2", "CTC-SP2", "SDSC-SP2", "SDSC-BLUE", "CEA-Curie")
ONE_BY_ONE: Final = ("CTC-SP2", "easy-sjbf")
"""Where each rule is tried alone and left out."""
READ_IN: Final = {
    "anew": "easy_prediction_backfill_scheduler.py, pure_b_f_scheduler.py: _schedule_jobs",
    "two": "predictor_tsafrir.py: predict",
    "cut": "predictor_tsafrir.py: predict",
    "by-start": "prototype.py: JobEvent._cmp_tuple",
    "arrivals-first": "prototype.py: EVENTS_ORDER",
    "fits": "easy_backfill_scheduler.py: new_events_on_job_submission",
}
MOST: Final = 8
"""How many of the jobs that decide a difference are shown."""


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
    return {**found, **_last2(runs)}


# Last2 by the authors' rules ---------------------------------------------------------------------------------


def cells(work: Work) -> list[Cell]:
    """Last2 as the authors' program has it: all policies and traces of Table III, and each rule on one."""
    every = [Cell(trace, "", "all", policy, THEIRS, 0) for trace in WITH_RULES for policy, _ in POLICIES.values()]
    trace, policy = ONE_BY_ONE
    names = [f"{words} {rule}" for words in ("recent and", "theirs but") for rule in RULES]
    return [*every, *(Cell(trace, "", "all", policy, name, 0) for name in names)]


def rules_of(cell: Cell) -> list[str]:
    """The rules that a cell goes by."""
    rules = [rule for rule in RULES if rule != "fits" or cell.policy == "easy-sjbf"]
    kind, _, one = cell.estimate.partition(" ")
    word, _, rule = one.partition(" ")
    return [rule] if kind == "recent" else [other for other in rules if word != "but" or other != rule]


def solve(cell: Cell, work: Work) -> Measures:
    """Replay a trace so, beside `recent`: how many jobs differ, where first, and which make the difference in BSLD."""
    workload = read_workload(work.log(f"papers/{cell.trace}.swf.gz"))
    theirs, teller = replayed(workload, cell.policy, rules_of(cell))
    ours = teller.beside
    found: dict[str, float | Sequence[tuple[float, float]]] = {
        **{metric: formula(outcomes(theirs)) for metric, formula in FORMULAS.items()},
        "r2": r2(teller.first, workload.runtime),
        "other_first": int((teller.first != ours.said).sum()),
        "other_at_start": int((teller.at_start != ours.said).sum()),
        "other_starts": int((theirs.start != ours.start).sum()), "compared": len(workload),
    }  # fmt: skip
    if cell.estimate == THEIRS:
        kept = counts(theirs, "but last")
        metric = next(metric for policy, metric in POLICIES.values() if policy == cell.policy)
        found["but_last"] = FORMULAS[metric](outcomes(theirs).where(kept))
        found |= _first_pass(ours, teller)
        found |= _deciding(ours, theirs, teller)
    return found


def _first_pass(ours: Schedule, teller: Told) -> Measures:
    """The first pass that differs: the waiting jobs that one of the two starts, or estimates otherwise by more than a
    second; and when the first job that stays in the queue could start in each, and what would then be left."""
    apart = teller.apart
    if apart is None:
        return {}
    log, waiting, running = ours.workload, apart.waiting, apart.running
    by_ours, by_theirs = (np.isin(waiting, some) for some in (apart.others, apart.starts))
    shown = by_ours | by_theirs | (np.abs(ours.said[waiting] - apart.told[waiting]) > 1)
    jobs = waiting[shown]
    columns: dict[str, npt.NDArray[np.generic]] = {
        "size": log.size[jobs], "limit": log.limit[jobs], "ours": ours.said[jobs], "first": teller.first[jobs],
        "theirs": apart.told[jobs], "by_ours": by_ours[shown], "by_theirs": by_theirs[shown],
    }  # fmt: skip
    found = {f"pass_{name}": _points(log["id"][jobs], column) for name, column in columns.items()}
    head = waiting[~by_ours & ~by_theirs][:1]
    began, said = ours.start[running], ours.said[running]
    ends = {
        "ours": began + np.where(began + said <= apart.now, log.limit[running], said),
        "theirs": began + apart.told[running],
    }
    for name, at in ends.items():
        for job in head:
            begins, left = shadow(int(log.size[job]), apart.free, log.size[running], at)
            found[f"head_wait_{name}"] = [(float(log["id"][job]), float(begins - apart.now))]
            found[f"head_left_{name}"] = [(float(log["id"][job]), float(left))]
    return {**found, "apart_at": apart.now, "apart_free": apart.free, "apart_waiting": len(waiting)}


def shadow(size: int, free: int, sizes: Ints, ends: Ints) -> tuple[int, int]:
    """When running jobs will have left as many processors as a job asks for, and how many are then left beside it."""
    order = np.argsort(ends, kind="stable")
    at = int(ends[order][np.flatnonzero(free + np.cumsum(sizes[order]) >= size)[0]])
    return at, free + int(sizes[ends <= at].sum()) - size


def _deciding(ours: Schedule, theirs: Schedule, teller: Told) -> Measures:
    """The jobs whose slowdowns differ most, and which part of the difference in BSLD they make."""
    log = ours.workload
    gap = slowdowns(outcomes(ours)) - slowdowns(outcomes(theirs))
    jobs = np.argsort(-np.abs(gap), kind="stable")[:MOST]
    columns: dict[str, npt.NDArray[np.generic]] = {
        "user": log["user"], "runtime": log.runtime, "limit": log.limit, "ours": ours.said, "theirs": teller.at_start,
        "wait_ours": ours.wait, "wait_theirs": theirs.wait, "part": gap / gap.sum(),
    }  # fmt: skip
    return {f"most_{name}": _points(log["id"][jobs], column[jobs]) for name, column in columns.items()}


def _points(jobs: Ints, column: npt.NDArray[np.generic]) -> list[tuple[float, float]]:
    return [(float(job), float(one)) for job, one in zip(jobs.tolist(), column.tolist(), strict=True)]


def _last2(runs: Runs) -> dict[Key, Content]:
    """What the rules change, in per cent of the metric with limits; and the jobs. The authors do not count the job that
    ends last: what limits and run times give so is in packing-table-2."""
    found: dict[Key, Content] = {}
    lists = read_runs(find("packing-table-2"))
    for trace in WITH_RULES:
        for name, (policy, metric) in POLICIES.items():
            exact, limit = (lists.get(trace, policy, estimate) for estimate in ("runtime", "limit"))
            if exact and limit:
                change = 100 * exact.numbers[f"{metric}_but_last"] / limit.numbers[f"{metric}_but_last"] - 100
                found["Runtime, but last", name, trace] = change
    for run in runs:
        cell = run.cell
        limit = runs.get(cell.trace, cell.policy)
        name, metric = next((name, one[1]) for name, one in POLICIES.items() if one[0] == cell.policy)
        kind, _, rule = cell.estimate.partition(" ")
        if limit is None or (kind != THEIRS and not rule.startswith("and ")):
            continue
        change = 100 * run.numbers[metric] / limit.numbers[metric] - 100
        if rule:
            found["Last2 rules", rule.partition(" ")[2], "alone" if kind == "recent" else "without it"] = change
            continue
        place = f"{name}, {cell.trace}"
        found |= {("Last2", place, column): run.numbers[column] for column in ("r2", "other_first", "other_at_start",
                  "other_starts", "compared", "apart_at", "apart_free", "apart_waiting")}  # fmt: skip
        found["Last2", place, "change"] = change
        if base := lists.get(cell.trace, cell.policy):
            change = 100 * run.numbers["but_last"] / base.numbers[f"{metric}_but_last"] - 100
            found["Last2", place, "but last"] = change
        for curve, points in run.curves.items():
            found |= {(f"Last2, {place}: {curve.partition('_')[0]}", f"{job:.0f}", curve.partition("_")[2]): one
                      for job, one in points}  # fmt: skip
    return found


# The text of cells -------------------------------------------------------------------------------------------


def beside_printed(values: Values, table: str, row: str, column: str) -> str:
    """Last2 as ours has it, by the authors' rules, and as printed."""
    name = table.removeprefix("Last2: ")
    kind, key, form = ("Table III", "but last", "+.1f") if row == "change, %" else ("Table IV", "r2", ".2f")
    cell = (f"{kind}: {name}", "Last2", column)
    theirs = values.need("Last2", f"{name}, {column}", key)
    return f"{values.need(*cell):{form}}, **{theirs:{form}}** ({values.printed_number(*cell):{form}})"


def rule_moves(values: Values, table: str, row: str, column: str) -> str:
    """What a rule does to BSLD of EASY-SJBF on CTC-SP2."""
    rule = row.strip("`")
    if column == "is":
        return RULES[rule]
    if column == "read in":
        return f"`{READ_IN[rule]}`"
    found = values.number(table, rule, column)
    return "not run" if found is None else f"{found:+.1f}"


def of_pass(values: Values, table: str, row: str, column: str) -> str:
    """A job of the first pass that differs."""
    if column == "started by":
        by = [name for name, key in (("ours", "by_ours"), ("theirs", "by_theirs")) if values.need(table, row, key)]
        return " and ".join(by) or "none"
    return f"{values.need(table, row, column):,.0f}"


def of_jobs(values: Values, table: str, row: str, column: str) -> str:
    """A job that decides the difference in BSLD."""
    if column.startswith("wait"):
        return duration(round(values.need(table, row, column)))
    found = values.need(table, row, column)
    return f"{100 * found:.1f} %" if column == "part" else f"{found:,.0f}"


# Claims ------------------------------------------------------------------------------------------------------


def as_printed(values: Values, table: str, column: str, decimals: int) -> Judged:
    """Whether Last2 by the authors' rules rounds to the printed numbers."""
    found = {key[1]: one for key, one in values.numbers("Last2", column=column).items()}
    if not found:
        raise NotRunError("no run by the authors' rules")
    good = []
    for place, one in found.items():
        name, _, trace = place.partition(", ")
        printed = values.printed_number(f"{table}: {name}", "Last2", trace)
        good.append(printed is not None and abs(round(one, decimals) - printed) < 0.1**decimals / 2)
    return Judged(f"{sum(good)} of {len(good)} cells equal", verdict(good))


def underprediction(values: Values) -> Judged:
    """What half and twice the run time as the estimate do to packing and fairness."""
    sides, steeper = [], []
    for name in ("LAF-JustBF", "JustBF"):
        for metric in ("AWF", "P2SF"):
            under, over = (values.need(f"Fig. 4: {name}", metric, factor) - 1 for factor in ("0.5", "2"))
            sides.append(f"{metric} of {name} {under:+.0%} and {over:+.0%}")
            steeper.append(under > over)
    return Judged("with half and twice the run time: " + ", ".join(sides), verdict(steeper))
