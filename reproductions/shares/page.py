"""Three accounts of unequal share: what each received by weeks, what its jobs waited, and what that cost all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import isfinite
from pathlib import Path
from statistics import fmean
from typing import Final

from dovetail.io.turns import read_turns
from dovetail.metrics.shares import by_owner, received
from dovetail.model.schedule import Schedule
from dovetail.units import DAY_S, WEEK_S
from reproductions.claims import NO, YES, Judged
from reproductions.runs import Points, Run, Runs
from reproductions.values import Content, Key, Values

TURNS: Final = read_turns(Path(__file__).with_name("three.toml"))
ACCOUNTS: Final = tuple(name for name, _ in TURNS.shares)
DUE: Final = {name: shares / sum(n for _, n in TURNS.shares) for name, shares in TURNS.shares}
LOGS: Final = ("generated, load 2.5", "generated", "KTH-SP2, load 1.1", "KTH-SP2", "SDSC-DS")
FULL: Final = LOGS[:3]
"""Where accounts ask for more than there is."""
SHORT_S: Final = 8 * WEEK_S
"""Shorter logs are looked at by days."""
FEW: Final = 20
"""Users with fewer jobs are not asked for their mean wait."""


def measure(schedule: Schedule, _: Callable[[str], Schedule]) -> dict[str, float | Points]:
    """What each account had by weeks, and what its jobs waited."""
    had = received(schedule, TURNS, WEEK_S if schedule.workload.span_s > SHORT_S else DAY_S)
    waits = {str(row["name"]): float(row["mean_wait_s"]) for row in by_owner(schedule, TURNS)}
    users = [float(row["mean_wait_s"]) for row in by_owner(schedule, "user") if float(row["jobs"]) >= FEW]
    day = [float(at - had.begins[0]) / DAY_S for at in had.begins.tolist()]
    ran = [had.share[:, i].tolist() for i in range(len(had.names))]
    curves = {
        name: [(at, share) for at, share in zip(day, ran[i], strict=True) if isfinite(share)]
        for i, name in enumerate(had.names)
    }
    return {
        "gap": had.gap, "worst_user_wait_s": max(users), **{f"{name}_wait_s": waits[name] for name in ACCOUNTS},
        **curves,
    }  # fmt: skip


def values(runs: Runs, _: Mapping[Key, Content]) -> dict[Key, Content]:
    """By log and policy."""
    found: dict[Key, Content] = {}
    for run in runs:
        table, row = run.cell.trace, run.cell.policy
        found |= {(table, row, f"{name} received"): _mean(run, name) for name in ACCOUNTS}
        found |= {(table, row, key): value for key, value in run.numbers.items()}
        found[table, row, "CPU, s"] = run.cpu_s
    return found


def _mean(run: Run, name: str) -> float:
    """The mean over weeks in which something ran."""
    return fmean(share for _, share in run.curves[name])


def rows(values: Values, log: str) -> list[list[str]]:
    """One line for each policy: what accounts received and waited, and what all did."""
    made = []
    for policy in _policies(values, log):
        number = partial(values.need, log, policy)
        received_ = " / ".join(f"{100 * number(f'{name} received'):.0f}" for name in ACCOUNTS)
        waits = " / ".join(f"{number(f'{name}_wait_s') / 3600:.1f}" for name in ACCOUNTS)
        rest = [f"{100 * number('gap'):.1f}", f"{number('mean_wait_s') / 3600:.2f}"]
        rest += [f"{number(key) / 3600:.1f}" for key in ("worst_user_wait_s", "awf_s", "p2sf_s")]
        made.append([f"`{policy}`", received_, waits, *rest])
    return made


def _policies(values: Values, log: str) -> Sequence[str]:
    return [row for _, row, _ in values.keys(log, column="gap")]


def nearer(values: Values, with_: str, without: str) -> Judged:
    """Whether a policy with shares is nearer to what is due than the one without, where accounts ask for enough."""
    gaps = {log: [100 * values.need(log, one, "gap") for one in (without, with_)] for log in FULL}
    words = "; ".join(f"{log}: {before:.1f} to {after:.1f} points away" for log, (before, after) in gaps.items())
    return Judged(words, YES if all(after < before for before, after in gaps.values()) else NO)


def waits_less(values: Values, with_: str, without: str) -> Judged:
    """Whether jobs of the account with the largest share wait less, on every log, and what the last waits."""
    words, good = [], True
    for log in LOGS:
        times = [[values.need(log, one, f"{name}_wait_s") / 3600 for one in (without, with_)] for name in ACCOUNTS]
        words.append(f"{log}: {times[0][0]:.1f} to {times[0][1]:.1f} h, the last account {times[-1][0]:.1f} to"
                     f" {times[-1][1]:.1f} h")  # fmt: skip
        good = good and times[0][1] < times[0][0]
    return Judged("; ".join(words), YES if good else NO)


def costs_less(values: Values, metric: str) -> Judged:
    """Whether shares cost less with the planner than with a list, each against itself without, on every log."""
    words, good = [], True
    for log in LOGS:
        changes = [
            100 * (values.need(log, with_, metric) / values.need(log, without, metric) - 1)
            for without, with_ in (("list-reg", "list:order=three.toml"), ("plan-awf", "plan-awf:favour=three.toml"))
        ]
        words.append(f"{log}: {changes[0]:+.0f} % list, {changes[1]:+.0f} % planner")
        good = good and changes[1] < changes[0]
    return Judged("; ".join(words), YES if good else NO)
