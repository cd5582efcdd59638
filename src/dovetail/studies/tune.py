"""Which policy suits a cluster: candidates are tried on its past, and the choice is judged on what came after.

The past is the first half of the log, of which a few stretches are replayed. After one, two and four of them the worse
half of the candidates is left out (successive halving); who is left is replayed on all. The second half of the log
chooses nothing: it says what the choice is worth.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp, fsum, inf, isnan, log
from pathlib import Path
from typing import Any, Final

import numpy as np

from dovetail.errors import SettingError
from dovetail.files import beside, folder
from dovetail.io.clusters import as_toml
from dovetail.metrics.catalog import metric_of
from dovetail.model.workload import Workload
from dovetail.names import spoken, unknown
from dovetail.policies.auto import CANDIDATES, written
from dovetail.policies.slurm import Slurm
from dovetail.reports.columns import percent
from dovetail.reports.page_data import Case, Content
from dovetail.studies.cases import content
from dovetail.studies.executors import Engine
from dovetail.studies.runner import prepare, run_missing
from dovetail.studies.store import Store
from dovetail.studies.task import Task
from dovetail.units import DAY_S, duration, parse_duration

GOALS: Final = {"af": "af_s", "awf": "awf_s", "bsld": "bsld", "p2sf": "p2sf_s"}
"""What may be asked to be good, and its metric."""
BASE: Final = "easy"
"""What others are compared with, where nobody says how the site's own Slurm decides."""
USUAL: Final = "list-reg"
"""Whose longest wait those of others are multiples of."""
LISTS: Final = (BASE, USUAL, "easy-sjbf", "easy-safbf", "list-sjf", "list-saf", "list-laf", "list-spf", "conservative")
STRETCHES: Final = 8
"""Of the past, that are replayed: a power of two."""
FEWEST: Final = 4
"""Candidates that are left, at least, to be tried on all of them."""
LONGEST_S: Final = 30 * DAY_S
"""A stretch is no longer than this."""
SHORTEST_S: Final = DAY_S
FILE: Final = "tune.toml"
MOST_WINDOW, MOST_TESTED, MOST_INTERVAL_S = 43_200, 10**6, 10_800
"""Of bf_window in minutes, bf_max_job_test, and bf_interval."""
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Tried:
    """How a candidate did on the past."""

    policy: str
    stretches: int
    """On how many it was tried."""
    change: float
    """Of the metric against that of the base: the geometric mean over the stretches, less 1."""
    longest: float
    """Its longest wait, as a multiple of that of `list-reg`."""
    unfair: float
    """Change of P2SF, as `change`."""
    cpu_s: float
    """Of one stretch."""
    allowed: bool
    """No job waits longer than was asked."""


@dataclass(frozen=True)
class Tuned:
    """What suits a cluster, and how sure that is."""

    goal: str
    base: str
    """What others are compared with."""
    asked: tuple[float, float]
    """How long a job may wait (`longest_wait`)."""
    tried: tuple[Tried, ...]
    """The best first; those that let jobs wait too long last."""
    best_in: int
    """In how many of the stretches none of those that were tried on all is better."""
    page: Content
    """What came after, then the past."""
    cpu_s: float

    @property
    def choice(self) -> str:
        """The policy that suits."""
        return self.tried[0].policy

    @property
    def after(self) -> Case:
        """What came after the past that chose."""
        return self.page.cases[0]

    @property
    def waits_s(self) -> tuple[float, float]:
        """The longest waits after the past: under the choice, and under `list-reg`."""
        waits = {entry.policy: entry.metrics["max_wait_s"] for entry in self.after.entries}
        return waits[self.choice], waits[USUAL]

    @property
    def kept(self) -> bool:
        """No job waited longer than was asked after the past, either."""
        return _kept(self.choice, *self.waits_s, self.asked)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What was found, in words."""
        metric, after = metric_of(GOALS[self.goal]), {entry.policy: entry for entry in self.after.entries}
        best, many = self.tried[0], self.tried[0].stretches
        if not best.allowed:
            return (
                f"No candidate keeps waits as short as was asked: {spoken(best.policy)} is the best of those tried.",
            )
        if all(one.stretches == many and one.change == 0 for one in self.tried) and not any(self.waits_s):
            return (f"All candidates are alike, on the past and after it: no job waits under {spoken(best.policy)}.",)
        past = f"{metric.head} is {percent(best.change)} against {spoken(self.base)}; "
        said = [f"{spoken(best.policy)} suits best: {past * (best.policy != self.base)}in {self.best_in} of {many}"
                " stretches of the past none of those tried on all is better."]  # fmt: skip
        own, base = after[best.policy], after[self.base]
        if best.policy != self.base:
            change, seen = own.metrics[metric.key] / base.metrics[metric.key] - 1, own.versus.get(metric.key)
            sure = "; there are too few weeks to say how sure that is"
            if seen is not None and not isnan(seen.low):
                sure = f"; the mean over {seen.pairs} weeks changes by {percent(seen.low)} to {percent(seen.high)}"
            said.append(f"On the second half of the log, which chose nothing, it is {percent(change)}{sure}.")
        wait, usual_s = self.waits_s
        times = f", {wait / usual_s:.2f} times that of {USUAL}" if usual_s else ""
        warned = "" if self.kept else ": longer than was asked, though none was in the past"
        return (*said, f"The longest wait in the second half is {duration(round(wait))}{times}{warned}.")


def candidates(goal: str) -> tuple[str, ...]:
    """Lists, variants of EASY, and planners with their terms."""
    own = [f"plan-{goal}{written(settings)}" for settings in CANDIDATES.get(goal, ({},))]
    return tuple(dict.fromkeys((*LISTS, *own, *(f"plan-{one}" for one in GOALS))))


def slurm_candidates(kept: Path, today: Slurm, workload: Workload) -> tuple[str, ...]:
    """A site's own Slurm, as it is set up today and with other lines of slurm.conf: a window as long as the longest
    limit, more or fewer jobs looked at, in all or of each user, and other times between cycles."""
    longest = -(-int(workload.limit.max(initial=0)) // 60)
    window = {"bf_window": min(max(longest, today.bf_window), MOST_WINDOW)}
    more = {"bf_max_job_test": min(4 * today.bf_max_job_test, MOST_TESTED)}
    changes: tuple[dict[str, int], ...] = (
        {}, window, more, window | more, {"bf_max_job_test": max(today.bf_max_job_test // 4, 1)},
        {"bf_max_job_user": 10}, {"bf_max_job_user": 0}, {"bf_interval": min(4 * today.bf_interval, MOST_INTERVAL_S)},
        {"default_queue_depth": 1000},
    )  # fmt: skip
    names = (
        "".join(f",{key}={value}" for key, value in one.items() if getattr(today, key) != value) for one in changes
    )
    return tuple(dict.fromkeys(f"slurm:conf={kept}{one}" for one in names))


def longest_wait(text: str) -> tuple[float, float]:
    """How long a job may wait: a multiple of what it waits at most under `list-reg` (`2x`), and seconds (`5d`); one of
    them is infinite. `none`: both."""
    if text == "none":
        return inf, inf
    if many := re.fullmatch(r"(\d+(?:\.\d+)?)x", text):
        return float(many[1]), inf
    try:
        if not text.isdecimal():  # 2: a multiple, or seconds?
            return inf, float(parse_duration(text))
    except ValueError:
        pass
    raise SettingError(f"longest wait {text!r}: write a multiple of that under {USUAL} (2x), a duration (5d), or none")


def write_study(
    path: Path, trace: Mapping[str, Any], workload: Workload, policies: Sequence[str], estimate: str, seed: int
) -> None:
    """Write the study whose cells are tried. The first policy is what others are compared with. `trace`: the log as a
    study has it."""
    first, last = int(workload.submit[0]), int(workload.submit[-1])
    half = (last + 1 - first) // 2
    length_s = min(LONGEST_S, half // STRETCHES)
    if length_s < SHORTEST_S:
        raise SettingError(
            f"the log is too short: it must cover {2 * STRETCHES} days to be looked at in {STRETCHES} parts"
        )
    whole = half // length_s
    wanted = [f"{length_s}s {number}" for number in _spread(whole, len(str((last + 1 - first) // length_s)))]
    about: dict[str, Any] = {
        "name": f"What suits {workload.name}", "policies": list(policies), "baseline": policies[0],
        "estimates": [estimate], "seeds": [seed], "spans": [f"each {length_s}s", f"{first + half}s..{last + 1}s"],
    }  # fmt: skip
    lines = [f"{key} = {as_toml(value)}" for key, value in about.items()]
    lines += ["", "[[traces]]", *(f"{key} = {as_toml(value)}" for key, value in trace.items())]
    lines += ["", "[[include]]", f"span = {as_toml([*wanted, '*..*'])}", ""]
    folder(path.parent)
    with beside(path) as new:
        new.write_text("\n".join(lines), encoding="utf-8")


def _spread(whole: int, digits: int) -> list[str]:
    """Which of the stretches of the past are replayed, evenly spread, as a study numbers them."""
    return [f"{1 + k * whole // STRETCHES:0{digits}d}" for k in range(STRETCHES)]


def tune(
    store: Store,
    goal: str,
    longest: tuple[float, float],
    engine: Engine,
    say: Callable[[str], None],
    shown: Callable[[Sequence[Task]], Any],
) -> Tuned:
    """Run what is missing of the study in the store's folder (`write_study`), round by round, and choose. `shown` is
    told of each round, and gives who is to be told how far it is, as a context."""
    if goal not in GOALS:
        raise SettingError(unknown("goal", goal, GOALS))
    path = store.path / FILE
    study, tasks, costs = prepare(path, store, say)
    against = study.base
    by_span: dict[str, dict[str, Task]] = {}
    for task in tasks:
        by_span.setdefault(task.cell.span, {})[task.cell.policy] = task
    past = [span for span in by_span if ".." not in span]
    past = [past[k] for k in _halving(len(past))]
    busiest = max(past, key=lambda span: _area(store.workload(by_span[span][against].workload_sha256)))
    past = [busiest, *(span for span in past if span != busiest)]  # on an idle machine all are alike
    after = next(span for span in by_span if ".." in span)

    def run(spans: Iterable[str], policies: Iterable[str]) -> None:
        wanted = [by_span[span][policy] for span in spans for policy in policies]
        with shown(wanted) as tell:
            outcome = run_missing(wanted, store, engine, costs, tell)
        failed = {task.cell.policy: outcome.failed[task.name] for task in wanted if task.name in outcome.failed}
        for name, why in failed.items():
            if name in (against, USUAL):
                raise SettingError(f"{name} failed: {why}")
            say(f"{name} is left out: {why}")
            tried.pop(name, None)
        left[:] = [name for name in left if name not in failed]

    left, tried, used = list(study.policies), dict[str, Tried](), 1
    run(past, [USUAL])  # a wait is measured by its longest of all stretches, from the first on
    while True:
        run(past[:used], left)
        rows = {row["run"]: row for row in store.frame().iter_rows(named=True)}
        usual_s = max(rows[by_span[span][USUAL].name]["max_wait_s"] for span in past)
        found = {name: [rows[by_span[span][name].name] for span in past[:used]] for name in left}
        tried |= {name: _tried(name, against, goal, longest, found, usual_s) for name in left}
        left.sort(key=lambda name: _rank(tried[name]))
        if used >= len(past):
            break
        last = _rank(tried[left[min(max(FEWEST, (len(left) + 1) // 2), len(left)) - 1]])
        left = [name for name in left if _rank(tried[name]) <= last or name in (against, USUAL)]
        used = min(2 * used, len(past))
    there = 0
    while there != len(left):  # who fails after the past is not chosen: then it is the next one's turn
        there, judged = len(left), list(dict.fromkeys((against, USUAL, *left[:3])))
        run([after], judged)
    out = sorted(
        (one for one in tried.values() if one.policy not in left), key=lambda one: (-one.stretches, *_rank(one))
    )
    ranked = [*(tried[name] for name in left), *out]
    best, key = left[0], GOALS[goal]
    best_in = sum(found[best][k][key] <= min(found[one][k][key] for one in left) for k in range(len(past)))
    cells = [by_span[after][name] for name in judged] + [by_span[span][name] for span in past for name in left]
    store.write_study(study, path.read_text(encoding="utf-8"), [task.name for task in cells])
    page = content(store)
    ran = store.frame({task.name for task in tasks})
    details = ("the second half, which chose nothing", f"the past: {len(past)} stretches of the first half")
    cases = [
        replace(case, axes=(key, "max_wait_s"), detail=detail) for case, detail in zip(page.cases, details, strict=True)
    ]
    made = Tuned(
        goal, against, longest, tuple(ranked), best_in, replace(page, cases=tuple(cases)), float(ran["cpu_s"].sum())
    )
    return replace(made, page=replace(made.page, sentences=made.sentences))


def _area(workload: Workload) -> float:
    """Processor-seconds of all jobs."""
    return float((workload.size.astype(np.float64) * workload.runtime).sum())


def _halving(many: int) -> list[int]:
    """An order of that many stretches whose beginnings are spread as evenly as can be: 0, 4, 2, 6, 1, 5, 3, 7."""
    bits = max(many - 1, 1).bit_length()
    turned = [int(f"{k:0{bits}b}"[::-1], 2) for k in range(1 << bits)]
    return [k for k in turned if k < many]


def _rank(one: Tried) -> tuple[bool, float]:
    return (not one.allowed, one.change)


def _times(wait: float, usual: float) -> float:
    """A wait as a multiple of that under `list-reg`."""
    return wait / usual if usual > 0 else (inf if wait > 0 else 1.0)


def _kept(name: str, wait: float, usual: float, longest: tuple[float, float]) -> bool:
    """No job waits longer than was asked; `list-reg` itself is never too long by its own measure."""
    return (name == USUAL or _times(wait, usual) <= longest[0]) and wait <= longest[1]


def _tried(
    name: str,
    against: str,
    goal: str,
    longest: tuple[float, float],
    found: Mapping[str, Sequence[Row]],
    usual_s: float,
) -> Tried:
    """How a candidate did, of its runs, those of the base, and the longest wait under `list-reg`."""

    def change(key: str) -> float:
        pairs = zip(found[name], found[against], strict=True)
        ratios = [log(max(own[key], 1e-9) / max(base[key], 1e-9)) for own, base in pairs]
        return exp(fsum(ratios) / len(ratios)) - 1

    wait = max(row["max_wait_s"] for row in found[name])
    allowed = not any(row["jobs_unstarted"] for row in found[name]) and _kept(name, wait, usual_s, longest)
    cpu_s = fsum(row["cpu_s"] for row in found[name]) / len(found[name])
    return Tried(name, len(found[name]), change(GOALS[goal]), _times(wait, usual_s), change("p2sf_s"), cpu_s, allowed)
