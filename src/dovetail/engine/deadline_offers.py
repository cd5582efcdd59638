"""Which deadline a job could be promised now, and what its patience would save the others.

What comes is not known. So several futures are tried: each of the last weeks, come again. In each, the job comes once
without a deadline and once with it, and the waits of all others are compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from operator import mul
from typing import Final

import numpy as np

from dovetail.engine.compiled import Replay, new_replay
from dovetail.engine.estimates import estimator_of
from dovetail.engine.replay import Progress, check, replay
from dovetail.errors import SettingError
from dovetail.kernels import state as layout
from dovetail.model.cluster import Cluster
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Column, Provenance, Workload
from dovetail.policies.base import Asked, Policy
from dovetail.units import DAY_S, MOST_SECONDS, WEEK_S

PAST_S: Final = 30 * DAY_S
"""How much of the past is replayed to know which jobs run and wait now."""


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
    """What a user who is about to submit a job can be offered."""

    waiting: int
    """Others that wait."""
    running: int
    promised_s: int
    """Without a deadline: it starts no later than this many seconds from now."""
    wait_s: tuple[float, ...]
    """Without a deadline: how long it waits in each future."""
    earliest_s: int
    """The earliest deadline that can be promised, from now on."""
    offers: tuple[Offer, ...]


def check_asked(
    workload: Workload, cluster: Cluster, policy: Policy, *, now: int, size: int, limit_s: int, weeks: int
) -> None:
    """Refuse to say what could be offered where that cannot be known: before anything is compiled for it."""
    if not 1 <= size <= cluster.processors or limit_s < 1:
        raise SettingError(f"a job of {size} processors for {limit_s} s: no such job runs on {cluster.processors}")
    if cluster.kinds:
        raise SettingError("offers are made on a counted number of processors, and not on nodes yet")
    if cluster.counted or not workload.comes_and_stays:
        raise SettingError("offers know no power caps, licences, or jobs that come later or leave")
    if not policy.makes_offers:
        raise SettingError(f"{policy.name} makes no offers: choose dbf")
    submit = workload.submit
    first, last = (int(submit[0]), int(submit[-1])) if len(submit) else (0, -1)
    if now - weeks * WEEK_S < first or now > last:
        raise SettingError(
            f"the workload has jobs from {first} s to {last} s: it does not have the {weeks} weeks before {now} s"
        )


def offers(
    workload: Workload, cluster: Cluster, policy: Policy, *, now: int, size: int, limit_s: int,
    deadlines_s: Sequence[int], weeks: int = 8, progress: Progress | None = None,
) -> Offers:  # fmt: skip
    """What `policy` could offer a job at an instant of a workload's history. The job is taken to run to its limit.
    `progress` is called with the number of futures replayed so far: one for each week, with and without each deadline.
    """
    check_asked(workload, cluster, policy, now=now, size=size, limit_s=limit_s, weeks=weeks)
    submit = workload.submit
    past = (submit > now - max(PAST_S, weeks * WEEK_S)) & (submit <= now)
    position = int(past.sum())

    def there(deadline_s: int, week: int) -> Workload:
        """The past, the job, and a week to come."""
        again = (submit > now - week * WEEK_S) & (submit <= now - (week - 1) * WEEK_S)
        job = {"submit": now, "size": size, "runtime": limit_s, "limit": limit_s, "deadline_s": deadline_s, "user": -1}
        columns: dict[str, Column] = {}
        for name in job:
            old = workload.get(name)
            new = old[again] + (week * WEEK_S if name == "submit" else 0)
            columns[name] = np.concatenate([old[past], [job[name]], new])
        columns["id"] = np.arange(len(columns["submit"]))
        return Workload(workload.name, columns, cluster.processors, Provenance("offers"))

    def at_now(deadline_s: int) -> Replay:
        made = there(deadline_s, 1)
        check(made, cluster)
        estimator = estimator_of(made, "limit")
        going = new_replay(made, cluster, policy.rule(Asked(bounded=estimator.bounded)), estimator.learner)
        going.advance(now)
        return going

    earliest_s = int(at_now(MOST_SECONDS).run.jobs[layout.PROMISED_LAST, position]) + limit_s - now
    regular = at_now(-1)
    info, started = regular.run.info, int(regular.start[position]) >= 0

    def replayed(deadline_s: int) -> list[Schedule]:
        """One schedule for each future."""
        made = []
        for week in range(1, weeks + 1):
            made.append(replay(there(deadline_s, week), policy, cluster=cluster))
            if progress is not None:
                progress(next(done))
        return made

    done = count(1)
    base = replayed(-1)
    found = []
    for deadline_s in deadlines_s:
        made = replayed(deadline_s)
        less = [saved(one, other, position) for one, other in zip(base, made, strict=True)]
        found.append(
            Offer(
                deadline_s,
                bool(len(made[0].accepted) and made[0].accepted[position] == 1),  # given now: no future changes it
                tuple(float(seconds) for seconds, _ in less),
                tuple(float(processor_seconds) for _, processor_seconds in less),
                tuple(float(one.wait[position]) for one in made),
            )
        )
    return Offers(
        len(regular.waiting) - (not started), int(info[layout.RUNNING]) - started,
        int(regular.run.jobs[layout.PROMISED_FIRST, position]) - now,
        tuple(float(one.wait[position]) for one in base), earliest_s, tuple(found),
    )  # fmt: skip


def saved(base: Schedule, other: Schedule, but: int) -> tuple[int, int]:
    """What all jobs but one wait less in the other schedule: seconds, and seconds times processors. In Python integers:
    some jobs wait less and some more, and the large numbers of both keep their last digits."""
    less = np.delete(base.wait - other.wait, but).tolist()
    return sum(less), sum(map(mul, less, np.delete(base.workload.size, but).tolist()))
