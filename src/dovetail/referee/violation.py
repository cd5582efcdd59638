"""What is reported of a broken rule, and the two ways in which rules are looked at: job by job, and over time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Ints
from dovetail.errors import DovetailError

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Violation:
    """One broken rule: its name, the job (its position in the workload or state; -1: none), when, and how."""

    rule: str
    job: int
    at: int
    detail: str

    def __str__(self) -> str:
        who = f"job {self.job}: " if self.job >= 0 else ""
        return f"{self.rule}: {who}{self.detail}"


class RefereeError(DovetailError):
    """A schedule breaks the rules. `violations` holds all of them, the message the first few."""

    def __init__(self, violations: list[Violation], shown: int = 5) -> None:
        self.violations = violations
        lines = [f"  {v}" for v in violations[:shown]]
        if len(violations) > shown:
            lines.append(f"  and {len(violations) - shown} more")
        super().__init__(f"the schedule breaks the rules in {len(violations)} places:\n" + "\n".join(lines))


def broken(rule: str, flags: Flags, at: Ints, words: str, **columns: Ints) -> Iterator[Violation]:
    """One violation per flagged job; `words` is filled from the job's values in `columns`."""
    for j in np.flatnonzero(flags).tolist():
        values = {name: int(column[j]) for name, column in columns.items()}
        yield Violation(rule, j, int(at[j]), words.format(**values))


def overfull(
    jobs: Ints, begin: Ints, end: Ints, size: Ints, capacity: int, verb: str, rule: str = "capacity",
    unit: str = "processors",
) -> Iterator[Violation]:  # fmt: skip
    """One violation for each begin that lifts the use above the capacity. Ends free before begins take."""
    count = len(jobs)
    time = np.concatenate([end, begin])
    change = np.concatenate([-size, size])
    # A stable sort keeps the ends, which stand first, before the begins of the same second.
    order = np.argsort(time, kind="stable")
    use = np.cumsum(change[order])
    for i in np.flatnonzero((use > capacity) & (change[order] > 0) & (order >= count)).tolist():
        at, job = int(time[order[i]]), int(jobs[order[i] - count])
        detail = f"{verb} at {at}, which brings {use[i]} {unit} into use where there are {capacity}"
        yield Violation(rule, job, at, detail)
