"""The runs of `planner-table-2` that are in the store, and what is published beside them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from dovetail.model.schedule import Schedule
from dovetail.optimize.window.objective import OBJECTIVES, Sum, parse
from dovetail.policies.planner import Planner
from dovetail.policies.registry import policy
from dovetail.studies.papers.page import Runs
from dovetail.studies.papers.recompute import measured, schedule
from dovetail.studies.papers.tables import P2SF_PLUS, TABLE_2, TABLE_2_CP, Place
from dovetail.studies.task import Task

BASE: Final = "list-reg"
ALL: Final = "all"
AUTHORS: Final = "but last"
"""The two ways of counting that are shown: ours, and that of the authors' script."""
LONGEST: Final = 2.0
"""The longest wait may be so many times that of the base."""
ROUNDING: Final = 0.5
"""A printed whole number may stand for so much less."""
METRIC_OF: Final = {"af": "af_s", "awf": "awf_s", "bsld": "bsld", "p2sf": "p2sf_s"}
"""What each objective of the planner is called as a metric."""
ROWS: Final = {ours: row for table in (TABLE_2, TABLE_2_CP) for row, ours in table.policies.items()}
"""Our policies, and the rows of the published table that they are compared with."""


class Key(NamedTuple):
    """Which run: a cell without what all cells of the study share."""

    trace: str
    policy: str
    estimate: str


@dataclass(frozen=True)
class Measured:
    """One run, measured."""

    values: Mapping[str, Mapping[str, float]]
    """By counting rule and metric."""
    longest_s: int
    """The longest wait."""
    facts: Mapping[str, Any]
    """Its row in the store: CPU time and times of passes."""


@dataclass(frozen=True)
class Found:
    """All runs that the study asks for, and those that are there."""

    asked: tuple[Key, ...]
    there: Mapping[Key, Measured]
    read: Callable[[Key], Schedule | None]
    """The schedule of a run; None if it is not there."""

    def percent(self, key: Key, metric: str, counting: str = ALL) -> float | None:
        """A metric in per cent of the base; None if one of the two was not run."""
        ours, base = self.there.get(key), self.there.get(key._replace(policy=BASE))
        return 100 * ours.values[counting][metric] / base.values[counting][metric] if ours and base else None

    def longest(self, key: Key) -> float | None:
        """The longest wait as a multiple of the base's."""
        ours, base = self.there.get(key), self.there.get(key._replace(policy=BASE))
        return ours.longest_s / base.longest_s if ours and base and base.longest_s else None

    @property
    def policies(self) -> list[str]:
        """In the order of the study."""
        return list(dict.fromkeys(key.policy for key in self.asked))

    @property
    def traces(self) -> list[str]:
        return list(dict.fromkeys(key.trace for key in self.asked))

    def planners(self, metric: str) -> list[str]:
        """The policies that plan for a metric, in the order of the study: the default settings come first."""
        return [text for text in self.policies if metric_of(text) == metric]

    @property
    def missing(self) -> int:
        return len(self.asked) - len(self.there)


def metric_of(text: str) -> str | None:
    """The metric that a policy plans for: of a sum, its heaviest term. None if it is no planner."""
    made = policy(text) if text.startswith("plan") else None
    if not isinstance(made, Planner):
        return None
    found = parse(made.objective)
    heaviest = max(found.parts, key=lambda part: part[0])[1] if isinstance(found, Sum) else found
    return METRIC_OF.get(next((name for name, one in OBJECTIVES.items() if one == heaviest), ""))


def found(runs: Runs) -> Found:
    """Measure what is in the store. What is not there is left out and counted as missing."""
    names = runs.store.names()
    tasks = {Key(t.cell.trace, t.cell.policy, t.cell.estimate): t for t in runs.tasks}
    kept = {key: task for key, task in tasks.items() if task.name in names}
    rows = {row["run"]: row for row in runs.store.frame(names).iter_rows(named=True)}

    def read(key: Key) -> Schedule | None:
        return schedule(runs.store, kept[key]) if key in kept else None

    def measure(task: Task) -> Measured:
        made = schedule(runs.store, task)
        return Measured(measured(made), int(made.wait.max(initial=0)), rows[task.name])

    return Found(tuple(tasks), {key: measure(task) for key, task in kept.items()}, read)


@dataclass(frozen=True)
class Published:
    """The lowest published value of a metric on a trace, and of which method."""

    percent: float
    method: str
    lost: tuple[str, ...]
    """Methods whose value is printed and cannot be read: one of them may be lower."""


def best(metric: str, estimate: str, trace: str) -> Published:
    """Of all rows of Table 2 and, where the text gives its value, CP-P2SF+."""
    values = {TABLE_2.base: 100.0}
    lost = []
    for table in (TABLE_2, TABLE_2_CP):
        values |= {p.row: float(v) for p, v in table.percent.items() if _is(p, metric, estimate, trace)}
        lost += [p.row for p in table.misread if _is(p, metric, estimate, trace) and p not in table.percent]
    if (metric, estimate) == ("p2sf_s", "runtime") and trace in P2SF_PLUS:
        values["CP-P2SF+"] = P2SF_PLUS[trace]
    method = min(values, key=lambda row: values[row])
    return Published(values[method], method, tuple(lost))


def _is(place: Place, metric: str, estimate: str, trace: str) -> bool:
    return (place.metric, place.estimate, place.trace) == (metric, estimate, trace)


def printed(metric: str, row: str, estimate: str, trace: str) -> str:
    """A published cell as text: a number, what is left of one (`2?`), or nothing if the table has no such cell."""
    place = Place(metric, row, estimate, trace)
    for table in (TABLE_2, TABLE_2_CP):
        if place in table.percent:
            return str(table.percent[place])
        if place in table.misread:
            return table.misread[place].replace("%", "?")
    return ""


def verdict(ours: float, published: float) -> str:
    """Whether ours is below a published whole number: `yes` if rounding cannot explain it."""
    return "yes" if ours < published - ROUNDING else "by rounding" if ours < published else "no"


def below(shown: Found, metric: str, policies: Sequence[str]) -> list[str]:
    """The verdicts on a metric over all traces and estimates that were run."""
    keys = [key for key in shown.asked if key.policy in policies]
    pairs = [(shown.percent(key, metric), best(metric, key.estimate, key.trace).percent) for key in keys]
    return [verdict(ours, published) for ours, published in pairs if ours is not None]
