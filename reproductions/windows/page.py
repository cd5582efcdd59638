"""One planning window, several solvers: how good is the best plan after how many CPU seconds? And is it the optimum?"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from functools import cache
from math import fsum, inf, isfinite
from statistics import median
from time import process_time
from typing import Final, cast

import numpy as np

from dovetail.arrays import Ints
from dovetail.errors import DovetailError
from dovetail.optimize.window.bounds import lower_bound
from dovetail.optimize.window.cpsat import solve as proved_by_cpsat
from dovetail.optimize.window.objective import OBJECTIVES
from dovetail.optimize.window.problem import Problem, check, decode
from dovetail.studies.task import Cell
from reproductions.running import Measures, Work
from reproductions.runs import Run, Runs
from reproductions.values import Content, Key
from reproductions.windows.cutting import ESTIMATES, LOGS, SEED, passes, small, windows
from reproductions.windows.search import METHODS, Method, search
from reproductions.windows.solvers import Answer, by_cpoptimizer, by_cpsat

WORDS: Final = {
    "anneal": "search (annealing)", "tabu": "tabu search", "genetic": "genetic search", "random": "random orders",
    "cpsat": "CP-SAT alone", "cpsat-hinted": "CP-SAT, hinted", "cpoptimizer": "CP Optimizer",
}  # fmt: skip
OTHERS: Final = tuple(WORDS)[:-1]
BOUND: Final = "bound"
"""A solver too: the value that no plan of the window can beat."""
OBJECTIVE: Final = ("af", "awf")
CPU_S: Final = 5.0
SHOWN_S: Final = (0.05, 0.2, 1.0, 5.0)
COUNT: Final = 97
"""Tables are made from runs when all solvers have seen this many windows."""
SAME: Final = 1e-5
"""Values that differ by less are the same: the log of CP Optimizer has six digits."""
SMALL: Final = "small windows"
EACH: Final = 125
"""Small windows of each log and estimate."""
DECODES: Final = {"anneal": 3000, "more": 20_000, "tabu": 3000, "genetic": 3000, "random": 3000}
"""On small windows; `more` is the annealing once more."""

Seen = Sequence[Mapping[str, Run]]
"""Windows under one objective: the run of each solver."""


def cells(work: Work) -> list[Cell]:
    """Small windows by log, estimate and objective; then each window with each objective and solver, that of CP
    Optimizer if its program is in the PATH."""
    kinds = [(log, estimate, name) for log in LOGS for estimate in ESTIMATES for name in (*OBJECTIVE, "bsld", "p2sf")]
    found = [Cell(log, SMALL, "all", name, estimate, 0) for log, estimate, name in kinds]
    paths = {log: work.log(f"papers/{log}.swf.gz") for log in LOGS}
    solvers = [*(WORDS if shutil.which("cpoptimizer") else OTHERS), BOUND]
    for log, estimate, now in work.memo("windows", SEED, lambda: windows(paths)):
        found += [Cell(log, name, f"at {now}", one, estimate, SEED) for name in OBJECTIVE for one in solvers]
    return found


def solve(cell: Cell, work: Work) -> Measures:
    """One window with one solver, or all small windows of a log under one objective. Every schedule is checked."""
    known = passes(work.log(f"papers/{cell.trace}.swf.gz"), cell.estimate)
    if cell.scenario == SMALL:
        return beside_proofs(list(small(known, EACH, seed=0)), cell.policy)
    problem = known.problem(int(cell.span.removeprefix("at ")))
    objective = OBJECTIVES[cell.scenario]
    if cell.policy == BOUND:
        begun = process_time()
        return {"value": lower_bound(problem, objective), "took_s": process_time() - begun}
    history, starts, proved = answer(problem, cell.scenario, cell.policy)
    _checked(problem, starts)
    kept = [one for i, one in enumerate(history) if i == 0 or one[1] < history[i - 1][1]]
    fcfs = objective.value(problem, decode(problem, np.argsort(problem.arrive, kind="stable").tolist()))
    value = {} if starts is None else {"value": objective.value(problem, starts)}
    return {"jobs": len(problem), "fcfs": fcfs, "proved": proved, **value, "history": kept}


def answer(problem: Problem, name: str, solver: str, cpu_s: float = CPU_S) -> Answer:
    """One solver. Compilation, loading and the building of models are not counted."""
    if solver == "cpoptimizer":
        return by_cpoptimizer(problem, name, cpu_s)
    if solver in METHODS:
        _compiled(solver)
        found = search(problem, OBJECTIVES[name], decodes=50, cpu_s=cpu_s, seed=SEED, method=solver)
        history = [(one.cpu_s, one.value) for one in found.history]
        return history, found.solution.starts, found.solution.status == "optimal"
    hint = search(problem, OBJECTIVES[name], decodes=0).solution.starts if solver == "cpsat-hinted" else None
    return by_cpsat(problem, name, cpu_s, hint)


@cache
def _compiled(method: str) -> None:
    two = np.array([2, 2])
    tiny = Problem(0, 2, np.array([0]), np.array([2]), np.array([0, 0]), two, two)
    search(tiny, OBJECTIVES["af"], decodes=5, method=cast(Method, method))


def beside_proofs(problems: Sequence[Problem], name: str) -> Measures:
    """How often each search has the optimum that CP-SAT proves over all whole starts; and by which share of the best
    value of all searches it is lower, since jobs may idle on purpose there (for P2SF)."""
    hits, gaps, reached = dict.fromkeys(DECODES, 0), [], 0
    for seed, problem in enumerate(problems):
        values, first = {}, None
        for method, decodes in DECODES.items():
            of = cast(Method, "anneal" if method == "more" else method)
            found = search(problem, OBJECTIVES[name], decodes=decodes, seed=seed, method=of).solution
            _checked(problem, found.starts)
            values[method], first = found.value, found.starts if first is None else first
        least = proved_by_cpsat(problem, OBJECTIVES[name], deterministic_s=1, hint=first)
        if least.status == "optimal":
            for method, value in values.items():
                hits[method] += value <= least.value * (1 + 1e-9)
            best = min(values.values())
            reached += values["anneal"] <= best * (1 + 1e-9)
            gaps.append(1 - least.value / best)
    points = [(float(place), gap) for place, gap in enumerate(gaps)] if name == "p2sf" else []
    return {"windows": len(problems), "proved": len(gaps), **hits, "reached": reached, "gaps": points}


def _checked(problem: Problem, starts: Ints | None) -> None:
    if starts is not None and (wrong := check(problem, starts)):
        raise DovetailError(f"a solver's schedule breaks a rule: {'; '.join(wrong)}")


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """The tables, each from the moment on at which all of its runs are there."""
    found: dict[Key, Content] = {}
    by_window: dict[tuple[str, str, str, str], dict[str, Run]] = {}
    for run in runs:
        cell = run.cell
        by_window.setdefault((cell.scenario, cell.trace, cell.span, cell.estimate), {})[cell.policy] = run
    for name in OBJECTIVE:
        seen = {key: one for key, one in by_window.items() if key[0] == name and len(one) == len(WORDS) + 1}
        if len(seen) >= COUNT:
            limits = sum(key[3] == "limit" for key in seen)
            found |= _tables(name.upper(), list(seen.values())) | {("windows", "with limits", "count"): limits}
    for name in (*OBJECTIVE, "bsld", "p2sf"):
        some = [run for run in runs if (run.cell.scenario, run.cell.policy) == (SMALL, name)]
        if len(some) == len(LOGS) * len(ESTIMATES):
            found |= _small(name, some)
    return found


def _best_at(run: Run, seconds: float) -> float:
    """The value of the best plan at that instant, relative to the FCFS list plan; infinity if there is none."""
    known = (value for at, value in run.curves.get("history", ()) if at <= seconds)
    return min(known, default=inf) / run.numbers["fcfs"]


def _mean_at(seen: Seen, solver: str, seconds: float) -> float:
    return fsum(_best_at(window[solver], seconds) for window in seen) / len(seen)


def _share_best(seen: Seen, solver: str, solvers: Sequence[str], seconds: float) -> float:
    """The share of the windows in which none of the solvers is better."""
    won = 0
    for window in seen:
        mine = _best_at(window[solver], seconds)
        won += isfinite(mine) and mine <= min(_best_at(window[one], seconds) for one in solvers) * (1 + SAME)
    return won / len(seen)


def _tables(title: str, seen: Seen) -> dict[Key, Content]:
    found: dict[Key, Content] = {}
    some = [window for window in seen if window["cpoptimizer"].curves.get("history")]
    for table, here, solvers in ((f"{title}: all", seen, OTHERS), (f"{title}: taken", some, tuple(WORDS))):
        for solver in solvers:
            for s in SHOWN_S:
                share, mean = _share_best(here, solver, solvers, s), _mean_at(here, solver, s)
                found[table, WORDS[solver], f"best at {s:g} s"] = f"{100 * share:.0f} %"
                found[table, WORDS[solver], f"mean at {s:g} s"] = mean if isfinite(mean) else "none"
    for solver in ("anneal", "cpsat-hinted", "cpsat", "cpoptimizer"):
        means = {s: _mean_at(some, solver, s) for s in (10 ** (k / 40 - 2) for k in range(109))}
        found |= {(f"Figure: {title}", WORDS[solver], f"{s:.4g}"): mean for s, mean in means.items() if isfinite(mean)}
    best = [min(_best_at(window[solver], CPU_S) for solver in WORDS) for window in seen]
    low = [window[BOUND].numbers["value"] / window["anneal"].numbers["fcfs"] for window in seen]
    above = [100 * (value / bound - 1) for value, bound in zip(best, low, strict=True)]
    if min(above) < 0:
        raise DovetailError(f"a plan is below the bound of its window ({title})")
    jobs = [window["anneal"].numbers["jobs"] for window in seen]
    facts = {
        "bound, ms": 1000 * max(window[BOUND].numbers["took_s"] for window in seen),
        "proved": sum(any(window[one].numbers["proved"] for one in WORDS) for window in seen),
        "gap, mean": fsum(above) / len(above), "gap, median": median(above), "gap, most": max(above),
    }  # fmt: skip
    sizes = {"all": len(seen), "taken": len(some), "least": min(jobs), "most": max(jobs)}
    found |= {("windows", key, "count"): value for key, value in sizes.items()}
    return found | {("facts", title, key): value for key, value in facts.items()}


def _small(name: str, runs: Sequence[Run]) -> dict[Key, Content]:
    sums = {key: sum(run.numbers[key] for run in runs) for key in ("windows", "proved", "reached", *DECODES)}
    found: dict[Key, Content] = {("Small windows", name, key): total for key, total in sums.items()}
    if gaps := sorted(gap for run in runs for _, gap in run.curves.get("gaps", ())):
        shares = {"mean": fsum(gaps) / len(gaps), "median": gaps[len(gaps) // 2], "most": gaps[-1]}
        found |= {("Small windows", name, f"gap, {key}"): 100 * share for key, share in shares.items()}
        found["Small windows", name, "idle"] = sum(gap > 1e-9 for gap in gaps)
    return found
