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
from dovetail.metrics.history import clock_s
from dovetail.model.workload import Workload
from dovetail.names import settings_of
from dovetail.policies.base import Policy
from dovetail.slurm.limits import COUNTED
from dovetail.studies.executors import Engine
from dovetail.studies.questions import Site

PHASES: Final = 20
TODAY: Final = "today"
CLASSES: Final = ((1, "to 1 node"), (4, "to 4 nodes"), (16, "to 16 nodes"), (None, "more nodes"))
MIDDLE: Final = (0.025, 0.975)
"""What an interval holds of the pairs of phases."""
_BETWEEN: Final = re.compile(rf",(?!\s*(?:{'|'.join(COUNTED)})=)")
"""Between changes of a question, not between the resources of a limit."""
MOST_NAMED: Final = 20
PART_OF_DAY_H: Final = 6
NEAR_S: Final = 3600
FAR, FAR_S = 0.25, 60
"""A replay whose mean wait is off by more than this part of the recorded one, and by more seconds, is warned of."""


@dataclass(frozen=True)
class Alternative:
    """A site, by what is asked of it."""

    name: str
    site: Site
    policy: Policy | None = None
    """Another policy than its Slurm; None: that."""


@dataclass(frozen=True)
class Waits:
    """Of one alternative: seconds from when each job could have started to its start; a row for each phase. nan: it
    left before."""

    name: str
    seconds: Floats
    busy: Floats
    """The part of all cores that was in use from the first arrival to the last, by phase."""
    notes: tuple[str, ...] = ()

    @property
    def left(self) -> float:
        """How many jobs left before they started, on average."""
        return float(np.isnan(self.seconds).sum(axis=1).mean())

    def means(self, jobs: Mask | None = None) -> Floats:
        """Of each phase, of all jobs or of some."""
        chosen = self.seconds if jobs is None else self.seconds[:, jobs]
        many = (~np.isnan(chosen)).sum(axis=1)
        found: Floats = np.divide(np.nansum(chosen, axis=1), many, out=np.full(len(chosen), np.nan), where=many > 0)
        return found


@dataclass(frozen=True)
class Change:
    """Of the mean wait, against today's settings; of the jobs that start in each replay of both."""

    today_s: float
    then_s: float
    low_s: float
    high_s: float
    """Of the difference: what pairs of phases say, 95 % of them."""

    @property
    def told(self) -> bool:
        """Whether it is more than the phases alone make."""
        return self.low_s > 0 or self.high_s < 0


@dataclass(frozen=True)
class Answer:
    """What becomes of waits under one alternative."""

    waits: Waits
    all: Change
    left_today: float
    groups: Mapping[str, Change]
    """By partition, account, size and part of the day."""


@dataclass(frozen=True)
class Trust:
    """What happened, beside a replay with today's settings."""

    jobs: int
    recorded_s: float
    replayed_s: float
    low_s: float
    high_s: float
    """The least and the largest mean wait of a phase."""
    within_hour: float
    """The part of jobs that start within an hour of when they did."""
    recorded_busy: float
    replayed_busy: float
    groups: tuple[tuple[str, int, float, float], ...]
    """The same parts: name, jobs, mean wait as recorded, and replayed."""

    @property
    def far(self) -> bool:
        """Whether the replay is so far from what happened that an answer says little."""
        return abs(self.replayed_s - self.recorded_s) > max(FAR * self.recorded_s, FAR_S)


def alternatives(site: Site, questions: Iterable[str]) -> list[Alternative]:
    """Today's settings, and one alternative for each question: changes with commas between them."""
    found = [Alternative(TODAY, site)]
    found += [Alternative(text, site.asked(filter(str.strip, _BETWEEN.split(text)))) for text in questions]
    return found


def waits(
    asked: Sequence[Alternative], engine: Engine, phases: int = PHASES, progress: Callable[[int], None] | None = None
) -> list[Waits]:
    """Replay all of them from each phase, side by side."""
    if len({one.name for one in asked}) < len(asked):
        raise SettingError("a question is asked twice")
    rows: dict[tuple[int, int], tuple[Floats, float]] = {}
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
    return [
        Waits(
            one.name, np.array([rows[at, phase][0] for phase in range(phases)]),
            np.array([rows[at, phase][1] for phase in range(phases)]), one.site.notes,
        )
        for at, one in enumerate(asked)
    ]  # fmt: skip


def _replayed(one: Alternative, phase: int, phases: int) -> tuple[Floats, float]:
    site = one.site
    policy = shifted(one.policy or site.policy, phase, phases)
    made = replay(site.workload, policy, cluster=site.cluster)
    started = made.start >= 0
    busy = _busy(site.workload, made.start, site.cluster.processors)
    return np.where(started, made.wait, np.nan), busy


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


def change(today: Waits, then: Waits, jobs: Mask | None = None) -> Change:
    """What becomes of the mean wait of all jobs, or of some. All pairs of a phase of one and a phase of the other: two
    Slurms are not in step, whatever their settings."""
    start = np.asarray(~np.isnan(np.vstack([today.seconds, then.seconds])).any(axis=0))
    chosen = start if jobs is None else start & jobs
    before, after = today.means(chosen), then.means(chosen)
    differences = (after[:, None] - before[None, :]).reshape(-1)
    low, high = np.quantile(differences, MIDDLE)
    return Change(float(before.mean()), float(after.mean()), float(low), float(high))


def answer(site: Site, today: Waits, then: Waits) -> Answer:
    """Of all jobs of a site, and of each of its groups."""
    by_group = {name: change(today, then, jobs) for name, jobs in groups(site).items()}
    return Answer(then, change(today, then), today.left, by_group)


def trust(site: Site, today: Waits) -> Trust | None:
    """What happened beside the replay; None where the log does not say when its jobs started."""
    workload = site.workload
    try:
        start, arrive = recorded_times(workload, "recorded")
    except SettingError:
        return None
    happened = np.where(start >= 0, start - arrive, np.nan)
    both = ~np.isnan(happened) & ~np.isnan(today.seconds).all(axis=0)
    if not both.any():
        return None
    ours = np.full(len(both), np.nan)
    ours[both] = np.nanmean(today.seconds[:, both], axis=0)
    means = today.means(both)
    near = np.abs(today.seconds[:, both] - happened[both]) <= NEAR_S
    return Trust(
        int(both.sum()), float(happened[both].mean()), float(means.mean()), float(means.min()), float(means.max()),
        float(near.mean()), _busy(workload, start, site.cluster.processors), float(today.busy.mean()),
        tuple(
            (name, int((jobs & both).sum()), float(happened[jobs & both].mean()), float(ours[jobs & both].mean()))
            for name, jobs in groups(site).items() if (jobs & both).any()
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
