"""Which deadline a job could be promised now, and what its patience would save the others.

Nobody knows what comes. So several futures are tried: each of the last weeks, come again. In each, the job comes once
without a deadline and once with it, and the waits of all others are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.engine.replay import check, replay
from dovetail.engine.said import said_by
from dovetail.engine.whole import Replay, new_replay
from dovetail.errors import SettingError
from dovetail.kernels import run as layout
from dovetail.kernels.rules import DeadlineRule
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Column, Provenance, Workload
from dovetail.policies.base import RulePolicy
from dovetail.units import DAY_S, MOST_SECONDS, WEEK_S

PAST_S: Final = 30 * DAY_S
"""So much of the past is replayed to know who runs and waits now."""


@dataclass(frozen=True)
class Offer:
    """A deadline, whether it is accepted, and what it would do: one number for each future."""

    deadline_s: int
    """From now on."""
    accepted: bool
    saved_s: tuple[float, ...]
    """What all others together wait less because the job has this deadline and is not a regular one."""
    saved_processor_s: tuple[float, ...]
    """The same, each wait times the processors asked for."""
    wait_s: tuple[float, ...]
    """How long the job itself waits."""


@dataclass(frozen=True)
class Offers:
    """What can be said to somebody who is about to submit a job."""

    waiting: int
    """Others that wait."""
    running: int
    promised_s: int
    """Without a deadline: it starts no later than so long from now."""
    wait_s: tuple[float, ...]
    """Without a deadline: how long it waits in each future."""
    earliest_s: int
    """The earliest deadline that can be promised, from now on."""
    offers: tuple[Offer, ...]


def offers(
    workload: Workload, cluster: Cluster, policy: RulePolicy, *, now: int, size: int, limit_s: int,
    deadlines_s: Sequence[int], weeks: int = 8,
) -> Offers:  # fmt: skip
    """What `policy` could offer a job at an instant of a workload's history. The job is taken to run to its limit."""
    if not 1 <= size <= cluster.processors or limit_s < 1:
        raise SettingError(f"a job of {size} processors for {limit_s} s: no such job runs on {cluster.processors}")
    submit = workload.submit
    if not isinstance(policy.rule(), DeadlineRule):
        raise SettingError(f"{policy.name} makes no offers: choose dbf")
    first, last = (int(submit[0]), int(submit[-1])) if len(submit) else (0, -1)
    if now - weeks * WEEK_S < first or now > last:
        raise SettingError(
            f"the workload has jobs from {first} s to {last} s: it does not have the {weeks} weeks before {now} s"
        )
    past = (submit > now - max(PAST_S, weeks * WEEK_S)) & (submit <= now)

    def there(deadline_s: int, week: int) -> tuple[Workload, int]:
        """The past, the job, and a week to come; the second number is the job's position."""
        again = (submit > now - week * WEEK_S) & (submit <= now - (week - 1) * WEEK_S)
        job = {"submit": now, "size": size, "runtime": limit_s, "limit": limit_s, "deadline_s": deadline_s, "user": -1}
        columns: dict[str, Column] = {}
        for name in job:
            old = workload.get(name)
            new = old[again] + (week * WEEK_S if name == "submit" else 0)
            columns[name] = np.concatenate([old[past], [job[name]], new])
        columns["id"] = np.arange(len(columns["submit"]))
        return Workload(workload.name, columns, cluster.processors, Provenance("offers")), int(past.sum())

    def at_now(deadline_s: int) -> tuple[Replay, int]:
        made, position = there(deadline_s, 1)
        check(made, cluster)
        said = said_by(made, "limit")
        going = new_replay(made, cluster, policy.rule(bounded=said.bounded), said.learner)
        going.advance(now)
        return going, position

    patient, position = at_now(MOST_SECONDS)
    earliest_s = int(patient.run.jobs[layout.PROMISED_LAST, position]) + limit_s - now
    regular = at_now(-1)[0]
    info, started = regular.run.info, int(regular.start[position]) >= 0

    def replayed(deadline_s: int, week: int) -> tuple[Workload, np.ndarray[tuple[int], np.dtype[np.int64]], bool]:
        made, position = there(deadline_s, week)
        schedule = replay(made, policy, cluster=cluster)
        accepted = len(schedule.accepted) > 0 and int(schedule.accepted[position]) == 1
        return made, schedule.wait, accepted

    base = {week: replayed(-1, week) for week in range(1, weeks + 1)}
    found = []
    for deadline_s in deadlines_s:
        saved, weighted, own, accepted = [], [], [], False
        for week, (made, wait, _) in base.items():
            _, other, accepted = replayed(deadline_s, week)
            less = np.delete(wait - other, position)
            saved.append(float(less.sum()))
            weighted.append(float(np.dot(less.astype(np.float64), np.delete(made.size, position))))
            own.append(float(other[position]))
        found.append(Offer(deadline_s, accepted, tuple(saved), tuple(weighted), tuple(own)))
    return Offers(
        int(info[layout.WAITING]) - (not started), int(info[layout.RUNNING]) - started,
        int(regular.run.jobs[layout.PROMISED_FIRST, position]) - now,
        tuple(float(wait[position]) for _, wait, _ in base.values()), earliest_s, tuple(found),
    )  # fmt: skip
