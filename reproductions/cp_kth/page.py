"""CP-SAT as a policy over all of KTH-SP2, and week by week as one problem that knows all its jobs."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Final, cast

import numpy as np

from dovetail.arrays import Ints
from dovetail.engine.replay import replay
from dovetail.metrics import summarize
from dovetail.model.workload import Workload
from dovetail.optimize.window.bounds import lower_bound
from dovetail.optimize.window.cpsat import solve as search
from dovetail.optimize.window.objective import parse
from dovetail.optimize.window.problem import Problem, Solution
from dovetail.policies.registry import policy
from dovetail.studies.task import Cell
from dovetail.units import WEEK_S
from reproductions.claims import NO, PART, YES, Judged, verdict
from reproductions.running import Work
from reproductions.runs import Run, Runs
from reproductions.values import Content, Key, NotRunError, Values

if TYPE_CHECKING:
    from dovetail.policies.published.solver import Solver

LOG: Final = "KTH-SP2"
METRICS: Final = {"AF": "af_s", "AWF": "awf_s", "BSLD": "bsld", "P2SF": "p2sf_s"}
TERMS: Final = ("af", "awf", "bsld", "p2sf")
SOLVERS: Final = {"CP-SAT": "deterministic=0.05", "CP Optimizer": "deterministic=0.05,solver=cpoptimizer"}
LONGER: Final = "cp-af:deterministic=0.2"
OFFLINE: Final = "off-line"
OFFLINE_S: Final = 5.0
"""CP-SAT's own seconds for a week."""


def cells(work: Work) -> list[Cell]:
    """The replays with a solver, each of which may take an hour, then the weeks. CP Optimizer where it is found."""
    found = [
        Cell(LOG, "", "all", f"cp-{term}:{SOLVERS[solver]}", estimate, 0)
        for solver in (SOLVERS if shutil.which("cpoptimizer") else ["CP-SAT"])
        for estimate in ("runtime", "limit") for term in TERMS
    ]  # fmt: skip
    found.append(Cell(LOG, "", "all", LONGER, "runtime", 0))
    weeks = range(int(_weeks(work.jobs(f"papers/{LOG}"))[-1]) + 1)
    return found + [Cell(LOG, f"week {week:02d}", "all", OFFLINE, "runtime", 0) for week in weeks]


def _weeks(log: Workload) -> Ints:
    """The week of each job, from the first submission on."""
    found: Ints = (log.submit - log.submit[0]) // WEEK_S
    return found


def solve(cell: Cell, work: Work) -> dict[str, float]:
    """A replay with CP-SAT, and what it proved; or a week."""
    if cell.scenario:
        log = work.jobs(f"papers/{LOG}")
        return offline(log.take(_weeks(log) == int(cell.scenario.split()[1]), cell.scenario))
    chosen, seen = cast("Solver", policy(cell.policy)), list[tuple[bool, bool]]()
    objective = parse(chosen.objective)

    def see(problem: Problem, begin: Ints, found: Solution) -> None:
        proved = found.status == "optimal"
        seen.append((proved, found.value < objective.value(problem, begin) * (1 - 1e-9)))

    made = replay(work.jobs(f"papers/{LOG}"), replace(chosen, see=see), estimate=cell.estimate)
    proved, better = np.array(seen).T
    return {
        **summarize(made), "passes": made.passes, "searches": len(seen), "proved": float(proved.mean()),
        "better": float(better.mean()),
    }  # fmt: skip


def offline(week: Workload) -> dict[str, float]:
    """All jobs of a week on an empty machine, known beforehand: by CP-SAT from the plan of list-saf on, with the bounds
    that it proved and that we have; and by our planner, which knows them too."""
    objective, now = parse("af"), int(week.submit[0])
    free = np.array([week.processors])
    problem = Problem(now, week.processors, np.array([now]), free, week.submit, week.size, week.runtime)
    mine, begin = (replay(week, policy(name), estimate="runtime").start for name in ("offline-af", "list-saf"))
    found = search(problem, objective, deterministic_s=OFFLINE_S, hint=begin)
    return {
        "jobs": len(week), "value": found.value, "bound": lower_bound(problem, objective), "proved_bound": found.bound,
        "proved": float(found.status == "optimal"), "planner": objective.value(problem, mine),
        "list": objective.value(problem, begin),
    }  # fmt: skip


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """A table for each estimate in per cent of list-reg, with what the solver proved; and the weeks."""
    found: dict[Key, Content] = {}
    for run in runs:
        if run.cell.scenario:
            found |= _week(run)
        elif base := runs.get(LOG, "list-reg", run.cell.estimate):
            found |= _row(run, base)
    weeks = [run.numbers for run in runs if run.cell.scenario]
    total = {key: sum(one[key] * one["jobs"] for one in weeks) for key in OFF}
    jobs = sum(one["jobs"] for one in weeks)
    found |= {("weeks", "all", OFF[key]): total[key] / jobs for key in OFF if weeks}
    if weeks:
        found["weeks", "all", "jobs"] = jobs
        found["weeks", "all", "proved best"] = f"{sum(one['proved'] for one in weeks):.0f} of {len(weeks)}"
    return found


def _row(run: Run, base: Run) -> dict[Key, Content]:
    table, numbers = f"KTH-SP2, {run.cell.estimate}", run.numbers
    found: dict[Key, Content] = {
        (table, run.cell.policy, name): 100 * numbers[key] / base.numbers[key] for name, key in METRICS.items()
    }
    found[table, run.cell.policy, "longest wait"] = 100 * numbers["max_wait_s"] / base.numbers["max_wait_s"]
    found[table, run.cell.policy, "CPU (s)"] = run.cpu_s
    if run.cell.policy.startswith("cp"):
        found[table, run.cell.policy, "searches"] = numbers["searches"]
        found |= {(table, run.cell.policy, f"{key} %"): 100 * numbers[key] for key in ("proved", "better")}
    return found


OFF: Final = {
    "list": "list-saf (s)", "value": "CP-SAT (s)", "planner": "offline-af (s)", "bound": "our bound (s)",
    "proved_bound": "its bound (s)",
}  # fmt: skip


def _week(run: Run) -> dict[Key, Content]:
    row = run.cell.scenario
    found: dict[Key, Content] = {("weeks", row, name): run.numbers[key] for key, name in OFF.items()}
    return found | {
        ("weeks", row, "jobs"): run.numbers["jobs"],
        ("weeks", row, "proved best"): "yes" if run.numbers["proved"] else "no",
    }


def shown(values: Values, table: str, row: str, column: str) -> str:
    """A cell: counts and seconds without digits."""
    whole = column in ("searches", "CPU (s)")
    missing = "" if row.startswith("plan") and column in ("searches", "proved %", "better %") else "not run"
    return values.text(table, row, column, ",.0f" if whole else ",.1f", missing)


# Claims ------------------------------------------------------------------------------------------------------

NEAR, IN_PART = 0.5, 2.0
"""Points by which a number may be above the printed one."""


def reached(values: Values, metric: str, printed: str, estimate: str) -> Judged:
    """Whether the better of the solvers comes as low as the printed number."""
    table = f"KTH-SP2, {estimate}"
    found = {
        name: number for name, setting in SOLVERS.items()
        if (number := values.number(table, f"cp-{metric.lower()}:{setting}", metric)) is not None
    }  # fmt: skip
    if not found:
        raise NotRunError(table)
    text = ", ".join(f"{name} {number:.1f}" for name, number in found.items())
    over = min(found.values()) - float(printed)
    return Judged(text, YES if over <= NEAR else PART if over <= IN_PART else NO)


def planned(values: Values, metric: str, estimate: str) -> Judged:
    """Whether the planner comes as low as CP-SAT."""
    table, term = f"KTH-SP2, {estimate}", metric.lower()
    mine, other = (values.need(table, row, metric) for row in (f"plan-{term}", f"cp-{term}:{SOLVERS['CP-SAT']}"))
    return Judged(f"{mine:.1f} against {other:.1f}", verdict([mine <= other]))
