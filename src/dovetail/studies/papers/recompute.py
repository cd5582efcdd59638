"""The list-scheduling rows of two published tables from kept runs, under several rules for ties and counting."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.arrays import Mask
from dovetail.errors import InputError
from dovetail.metrics import Outcomes, af_s, awf_s, bsld, counted, pasf_s
from dovetail.model.schedule import Schedule
from dovetail.studies.papers.tables import ESTIMATES, TRACES, UNAVAILABLE, Place, Table
from dovetail.studies.store import Store
from dovetail.studies.task import Task

OURS: Final = tuple(name for name in TRACES if name != UNAVAILABLE)
"""The traces that can be replayed."""

TIES: Final = ("submit", "authors")
"""How equal keys of an order are told apart. `submit`: earlier submit, then earlier line, for all orders.
`authors`: SJF by size, SPF by area, and then the same."""
WITH_TIES: Final = {
    "list-sjf": "list:order=ties.py:sjf",
    "greedy-sjf": "list:order=ties.py:sjf,reserve=none",
    "list-spf": "list:order=ties.py:spf",
}
"""The policies that change with the rule for ties, and what they are under `authors`."""
COUNTS: Final = ("all", "ended", "but last", "middle")
"""Which jobs a metric counts. `all` and `ended` are Dovetail's rules. `but last` leaves out the job that ends
last, `middle` the first 1 % to end and those that do not end before the last submission: both are in the
authors' script."""

Rule = tuple[str, str]
"""Ties and counting."""
OWN: Final[Rule] = ("submit", "all")
ENDED: Final[Rule] = ("submit", "ended")
AUTHORS: Final[Rule] = ("authors", "but last")


def counts(schedule: Schedule, rule: str) -> Mask:
    """Which jobs count under one of COUNTS."""
    end = schedule.end
    if rule == "but last":
        kept: Mask = end < end.max()
        return kept
    if rule == "middle":
        first = np.sort(end)[len(end) // 100]
        inside: Mask = (end > first) & (end < schedule.arrive.max())
        return inside
    return counted(schedule, rule)


_FORMULAS: Final[Mapping[str, Callable[[Outcomes], float]]] = {
    "bsld": bsld,
    "af_s": af_s,
    "awf_s": awf_s,
    "p2sf_s": pasf_s,
}


def measured(schedule: Schedule) -> dict[str, dict[str, float]]:
    """The four metrics of the papers, by counting rule and key."""
    found = {}
    for rule in COUNTS:
        mask = counts(schedule, rule)
        jobs = Outcomes(schedule.workload.size[mask], schedule.workload.runtime[mask], schedule.wait[mask])
        found[rule] = {metric: formula(jobs) for metric, formula in _FORMULAS.items()}
    return found


@dataclass(frozen=True)
class Results:
    """Metrics of runs by trace, policy and estimate; then by counting rule and metric."""

    values: Mapping[tuple[str, str, str], Mapping[str, Mapping[str, float]]]

    def percent(self, table: Table, place: Place, rule: Rule) -> float:
        """Our number for a cell of a table."""
        ours, base = (self._value(place, table.policies[row], rule) for row in (place.row, table.base))
        return 100 * ours / base

    def _value(self, place: Place, policy: str, rule: Rule) -> float:
        ties, counting = rule
        name = WITH_TIES.get(policy, policy) if ties == "authors" else policy
        return self.values[place.trace, name, place.estimate][counting][place.metric]

    def on(self, inputs: Mapping[str, str]) -> Results:
        """The same with other inputs in place of some traces: each is named with the trace that stands for it."""
        named = {other: trace for trace, other in inputs.items()}
        moved = {(named[key[0]], *key[1:]): value for key, value in self.values.items() if key[0] in named}
        return Results({**self.values, **moved})


def results(store: Store, tasks: Iterable[Task]) -> Results:
    """The metrics of runs that are in the store, from the starts that it keeps."""
    return Results({(t.cell.trace, t.cell.policy, t.cell.estimate): measured(schedule(store, t)) for t in tasks})


def schedule(store: Store, task: Task) -> Schedule:
    """The schedule of a run."""
    found = store.schedule(task.name)
    if found is None:
        raise InputError(store.path, 0, f"run {task.name} has no starts: the study must have keep = 'starts'")
    return found


def places(table: Table, names: Sequence[str] = OURS, known: Sequence[str] = ESTIMATES) -> list[Place]:
    """The cells that can be compared: printed legibly, on these traces, not 100 % by definition."""
    return [p for p in table.percent if p.trace in names and p.estimate in known and p.row != table.base]


@dataclass(frozen=True)
class Fit:
    """How well a set of rules meets a table."""

    cells: int
    near: int
    """Cells at most one point off."""
    equal: int
    """Cells that round to the printed number."""
    mean_off: float
    """Mean absolute difference, in points."""


def fit(table: Table, at: Iterable[Place], found: Results, rule: Rule) -> Fit:
    """Compare cells of a table with ours."""
    pairs = [(found.percent(table, place, rule), table.percent[place]) for place in at]
    off = [abs(ours - printed) for ours, printed in pairs]
    equal = sum(np.floor(ours + 0.5) == printed for ours, printed in pairs)
    return Fit(len(off), sum(o <= 1 for o in off), int(equal), float(np.mean(off)))
