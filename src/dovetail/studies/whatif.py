"""What if: a history, replayed as its Slurm is set up today and as it could be, from several phases of the backfill.

A Slurm's cycles are shifted by chance, and starts with them: so each alternative is replayed from the same phases, and
a change is told only where it is larger than what the phases alone make.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, Final

import numpy as np

from dovetail.arrays import Floats, Ints, Mask
from dovetail.engine.recorded import recorded_times
from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.io.local_times import zone_of
from dovetail.io.swf import header_count
from dovetail.metrics.comparison import block_length, compare
from dovetail.metrics.groups import weeks_of
from dovetail.metrics.history import clock_s
from dovetail.metrics.whatif import Answer, Trust, Waits, Weeks, WhatIf, change, started_in
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.names import settings_of
from dovetail.policies.base import Policy
from dovetail.policies.registry import policy as policy_named
from dovetail.slurm.limits import COUNTED
from dovetail.studies.executors import Engine
from dovetail.studies.questions import Site

PHASES: Final = 20
TODAY: Final = "today"
CLASSES: Final = ((1, "up to 1 node"), (4, "up to 4 nodes"), (16, "up to 16 nodes"), (None, "more nodes"))
_BETWEEN: Final = re.compile(rf",(?!\s*(?:{'|'.join(COUNTED)})=)")
"""Between changes of a question, not between the resources of a limit."""
MOST_NAMED: Final = 20
PART_OF_DAY_H: Final = 6
_LOOKED_AT: Final = {"bf_max_job_test": "", "bf_max_job_user": "user", "bf_max_job_part": "partition"}
"""Settings that bound how many jobs a cycle looks at, and the column of whose; '': of all."""
NEAR_S: Final = 3600


@dataclass(frozen=True)
class Alternative:
    """A site, by what is asked of it."""

    name: str
    site: Site
    policy: Policy | str = ""
    """Another policy than its Slurm, or its name; empty: that."""

    @property
    def decides(self) -> Policy:
        return policy_named(self.policy or self.site.policy)


def alternatives(
    site: Site, questions: Iterable[str], named: Mapping[str, str] | None = None
) -> list[Alternative]:  # fmt: skip
    """Today's settings, and one alternative for each question: changes with commas between them. Some have names."""
    every = [
        *((text, text) for text in questions),
        *((f"{name} ({text})", text) for name, text in (named or {}).items()),
    ]
    asked = [Alternative(name, site.asked(filter(str.strip, _BETWEEN.split(text)))) for name, text in every]
    return [Alternative(TODAY, site), *asked]


def waits(
    asked: Sequence[Alternative], engine: Engine, phases: int = PHASES, progress: Callable[[int], None] | None = None
) -> list[Waits]:
    """Replay all of them from each phase, side by side."""
    if len({one.name for one in asked}) < len(asked):
        raise SettingError("a question is asked twice")
    rows: dict[tuple[int, int], tuple[Floats, float, float]] = {}
    with engine.open() as executor:
        coming = {
            executor.submit(_replayed, one, phase, phases): (at, phase)
            for phase in range(phases)
            for at, one in enumerate(asked)
        }
        for done in as_completed(coming):
            rows[coming[done]] = done.result()
            if progress is not None:
                progress(len(rows))
    found = []
    for at, one in enumerate(asked):
        seconds, busy, unseen = (
            np.array(its) for its in zip(*(rows[at, phase] for phase in range(phases)), strict=True)
        )
        found.append(Waits(one.name, seconds, busy, unseen, one.site.notes))
    return found


def _replayed(one: Alternative, phase: int, phases: int) -> tuple[Floats, float, float]:
    site = one.site
    policy = shifted(one.decides, phase, phases)
    made = replay(site.workload, policy, cluster=site.cluster)
    started = made.start >= 0
    busy = _busy(site.workload, made.start, site.cluster.processors)
    return np.where(started, made.wait, np.nan), busy, _unseen(policy, made)


def _unseen(policy: Policy, made: Schedule) -> float:
    """The part of all waiting behind so many jobs, in all, of a user or of a partition, as a cycle tries. A job that
    none of its nodes are left for counts as tried, here alone."""
    started = made.start >= 0
    total = float(made.wait[started].sum())
    found = [0.0]
    for name, column in _LOOKED_AT.items():
        most = getattr(policy, name, 0)
        if most and total:
            group = made.workload.get(column)[started] if column else np.zeros(int(started.sum()), np.int64)
            found.append(behind(made.arrive[started], made.start[started], group, most) / total)
    return max(found)


def behind(arrive: Ints, start: Ints, group: Ints, most: int) -> float:
    """Seconds that all jobs together waited while so many others of their group, or more, waited before them."""
    when, who = np.concatenate([arrive, start]), np.concatenate([group, group])
    change = np.repeat([1, -1], len(arrive))
    order = np.lexsort((when, who))
    waiting = np.cumsum(change[order])[:-1]  # nobody is left of one group where the next begins
    return float(np.dot(np.maximum(waiting - most, 0), np.diff(when[order])))


def shifted(policy: Policy, phase: int, phases: int) -> Policy:
    """The same with cycles that begin later, by one of so many parts of the time between them, if it has cycles."""
    if not is_dataclass(policy) or not {"phase", "bf_interval"} <= settings_of(policy).keys():
        return policy
    changed: dict[str, Any] = {"phase": phase * policy.bf_interval // phases}
    return replace(policy, **changed)


def _busy(workload: Workload, start: np.ndarray, cores: int) -> float:
    """The part of all cores in use from the first submission to the last."""
    first, last = int(workload.submit[0]), int(workload.submit[-1])
    here = start >= 0
    begin, end = start[here], start[here] + workload.runtime[here]
    seconds = np.clip(np.minimum(end, last) - np.maximum(begin, first), 0, None)
    return float(np.dot(seconds.astype(np.float64), workload.size[here])) / (cores * max(last - first, 1))


def answered(site: Site, found: Sequence[Waits], not_followed: Sequence[str] = ()) -> WhatIf:
    """What replays say: of today's settings first, then of each question."""
    today, *others = found
    happened, busy = _recorded(site)
    started, parts = started_in(found), groups(site)
    answers = tuple(_answer(site, today, one, started, parts) for one in others)
    trust = _trust(today, happened, busy, parts)
    return WhatIf(
        site.workload, site.short_sighted, trust, happened, started, today, answers, tuple(not_followed),
    )  # fmt: skip


def _answer(site: Site, today: Waits, then: Waits, started: Mask, parts: Mapping[str, Mask]) -> Answer:
    """Of some jobs of a site, of each of its groups, and of each week."""
    by_group = {name: change(today, then, jobs & started) for name, jobs in parts.items()}
    return Answer(today, then, change(today, then, started), by_group, _weeks(site, today, then, started))


def _weeks(site: Site, today: Waits, then: Waits, started: Mask) -> Weeks | None:
    """Weeks without jobs are not there."""
    of, begins = weeks_of(site.workload.submit)
    there = [week for week in range(len(begins)) if (started & (of == week)).any()]
    if len(there) < 2:
        return None
    changes = tuple(change(today, then, started & (of == week)) for week in there)
    before, after = (np.array([getattr(one, side) for one in changes]) for side in ("today_s", "then_s"))
    return Weeks(tuple(begins[there].tolist()), changes, compare(before, after, block=block_length(len(there))))


def _recorded(site: Site) -> tuple[Floats, float]:
    """The wait of each job as it happened, nan where the log does not say when it started, and what was in use."""
    try:
        start, arrive = recorded_times(site.workload, "recorded")
    except SettingError:
        return np.full(len(site.workload), np.nan), np.nan
    return np.where(start >= 0, start - arrive, np.nan), _busy(site.workload, start, site.cluster.processors)


def _trust(today: Waits, happened: Floats, busy: float, parts: Mapping[str, Mask]) -> Trust | None:
    """What happened beside the replay; None where the log does not say when its jobs started."""
    both = ~np.isnan(happened) & ~np.isnan(today.seconds).all(axis=0)
    if not both.any():
        return None
    ours = np.full(len(both), np.nan)
    ours[both] = np.nanmean(today.seconds[:, both], axis=0)
    means = today.means(both)
    near = np.abs(today.seconds[:, both] - happened[both]) <= NEAR_S
    return Trust(
        int(both.sum()), float(happened[both].mean()), float(means.mean()), float(means.min()), float(means.max()),
        float(near.mean()), busy, float(today.busy.mean()),
        tuple(
            (name, int((jobs & both).sum()), float(happened[jobs & both].mean()), float(ours[jobs & both].mean()))
            for name, jobs in parts.items() if (jobs & both).any()
        ),
    )  # fmt: skip


def groups(site: Site) -> Mapping[str, Mask]:
    """The jobs of each partition, of each class of size, of the accounts with the most core hours, and of each part of
    the day, by the clock of the site, in which jobs were submitted. One that has all jobs tells nothing, nor one
    that has none."""
    return {name: jobs for name, jobs in _groups(site) if jobs.any() and not jobs.all()}


def _groups(site: Site) -> Iterator[tuple[str, Mask]]:
    workload = site.workload
    used = workload.size * workload.runtime.astype(np.float64)
    for column in ("partition", "account"):
        codes, of = np.unique(workload.get(column), return_inverse=True)
        order = np.argsort(-np.bincount(of.reshape(-1), weights=used, minlength=len(codes)), kind="stable")
        for code in np.sort(codes[order[:MOST_NAMED]]).tolist():
            if name := workload.called(column, code):
                yield f"{column} {name}", workload.get(column) == code
    if epoch := header_count(workload.header, "UnixStartTime"):
        hours = clock_s(epoch + workload.submit, zone_of(workload.header)) // 3600 % 24
        for first in range(0, 24, PART_OF_DAY_H):
            yield f"submitted {first}-{first + PART_OF_DAY_H} h", hours // PART_OF_DAY_H * PART_OF_DAY_H == first
    yield from of_sizes(workload.size, site.cluster.processors / max(site.cluster.nodes, 1))


def of_sizes(cores: Ints, of_node: float) -> Iterator[tuple[str, Mask]]:
    """Which jobs are in which class, by the cores of a node."""
    below = 0.0
    for most, name in CLASSES:
        above = np.inf if most is None else most * of_node
        yield name, (cores > below) & (cores <= above)
        below = above
