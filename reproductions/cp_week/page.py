"""CP-SAT as a policy over one week of two machines: metrics in per cent of list-reg, and how the weeks were chosen."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np

from dovetail.engine.replay import replay
from dovetail.policies.registry import policy
from dovetail.studies.task import Cell
from dovetail.units import DAY_S, WEEK_S
from reproductions.running import Work
from reproductions.runs import Run, Runs
from reproductions.values import Content, Key

LOGS: Final = ("KTH-SP2", "CTC-SP2")
LEAST: Final = 300
"""Jobs of a week that may be chosen."""
COLUMNS: Final = {"af_s": "AF", "awf_s": "AWF", "bsld": "BSLD", "p2sf_s": "P2SF", "max_wait_s": "longest wait"}


def cells(_: Work) -> list[Cell]:
    """The choice of the weeks, from the whole logs."""
    return [Cell(log, "choice of the week", "all", "list-reg", "runtime", 0) for log in LOGS]


def solve(cell: Cell, work: Work) -> dict[str, float]:
    """The week in the first half of the log with the fewest jobs, of those with at least LEAST: its first day, its
    jobs, and its mean queue in a replay of the whole log."""
    log = work.jobs(f"papers/{cell.trace}")
    first = int(log.submit[0])
    week = (log.submit - first) // WEEK_S
    jobs = np.bincount(week)[: int(week[-1]) // 2]
    chosen = min((count, at) for at, count in enumerate(jobs.tolist()) if count >= LEAST)[1]
    begin = first + chosen * WEEK_S
    start = replay(log, policy(cell.policy), estimate=cell.estimate).start
    waited = np.clip(np.minimum(start, begin + WEEK_S) - np.maximum(log.submit, begin), 0, None)
    return {"first_day": begin // DAY_S, "jobs": int(jobs[chosen]), "queue": float(waited.sum() / WEEK_S)}


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """A table for each week and estimate, and the weeks."""
    found: dict[Key, Content] = {}
    weeks = {run.cell.trace: run.numbers for run in runs if run.cell.scenario}
    for log, week in weeks.items():
        day = int(week["first_day"])
        found["weeks", log, "span"] = f"{day}d..{day + 7}d"
        found["weeks", log, "jobs"] = f"{week['jobs']:.0f}"
        found["weeks", log, "mean queue in the whole log under `list-reg`"] = week["queue"]
    there = {(run.cell.trace, run.cell.estimate, run.cell.policy): run for run in runs if not run.cell.scenario}
    for (log, estimate, name), run in there.items():
        if base := there.get((log, estimate, "list-reg")):
            shares = _percent(run, base)
            found |= {(f"{log}, {estimate}", name, COLUMNS[key]): share for key, share in shares.items()}
            found[f"{log}, {estimate}", name, "CPU (s)"] = run.cpu_s
        if other := there.get((log, estimate, name.replace("idle=yes", "idle=no"))) if "idle=yes" in name else None:
            shares = _percent(run, other)
            found |= {("idling", f"{log}, {estimate}", COLUMNS[key]): share for key, share in shares.items()}
    return found


def _percent(run: Run, of: Run) -> dict[str, float]:
    return {key: 100 * run.numbers[key] / of.numbers[key] for key in COLUMNS}
