"""Lengthens the Eurora days to as many jobs as a year has, because the public record has only four days.

What is made up is called so: users are `synthetic-user-17`, job names `synthetic-job-42`.

What is drawn:
- A *session* is a run of recorded jobs of one profile (queue, limit, units and what a unit asks for), all of less than
  an hour or none, each submitted within ten minutes of the one before. Sessions are drawn whole, all equally likely,
  with replacement. So jobs keep their resources, limit and run time together; bursts keep their gaps.
- Half of the drawn sessions come once; the others come again on the following days, for a geometric number of days, 20
  on average, at most as many as all jobs would take at the recorded pace. So a profile has much the same run times
  for long stretches, which predictors by user and name live on, as the paper says of its data. A session comes at its
  time of day, half an hour earlier or later at most, on a first day that is drawn evenly.
- Each drawn session, with its repetitions, is of one user; user k gets a share like 1/k, one user per 100 draws. The
  name stands for the profile, so a user's jobs of one name are alike in all that they ask for.

Mixes:
- `recorded`: the recorded share of the jobs needs a GPU or a MIC (15 %), ends within an hour (72 %), and both (5 %).
- `reported`: 77.2 % and 93.14 %, as the paper says of its 400,000 jobs. It does not say how the two go together: here
  the second share is the same with and without accelerator. Only 288 recorded jobs are short and accelerated; each of
  them comes back a thousand times.
These shares are exact to a job. All else about the mix, as that of GPUs and MICs, is as recorded but for chance.

How long it lasts: load and number of jobs cannot both be kept over the paper's 17 months (400,000 jobs in the recorded
mix would be 25 % of the cores). By default the load is kept: the days are as many as make the load of the scarcest
resource (the largest of area asked / capacity, on the cluster `eurora`) that of the recorded days, to the nearest
day. `days=518` is the paper's 17 months (31 March 2014 to 31 August 2015) instead, and the load follows.

Not kept: the order of sessions, and which came together; weekdays (the record has a Monday to a Friday, and all days
are alike); that the record has the hours from 9 to 11 five times and others four; recorded waits; that users wait for
results before they submit again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import Ints
from dovetail.errors import SettingError
from dovetail.io.clusters import cluster_named
from dovetail.model.cluster import Cluster
from dovetail.model.workload import LICENCE, UNIT, Column, Step, Workload
from dovetail.units import DAY_S
from dovetail.workloads.lublin import zipf_users

MIXES: Final = ("recorded", "reported")
ACCELERATED: Final = 0.772
SHORT: Final = 0.9314
SHORT_S: Final = 3600
PAUSE_S: Final = 600
"""A session ends where the next job of its profile comes later than this."""
ONCE: Final = 0.5
MEAN_DAYS: Final = 20
AROUND_S: Final = 1800
"""How much earlier or later than at its time of day a session comes, at most."""
MOST_JOBS: Final = 10_000_000
MOST_DAYS: Final = 36_500
_KEPT: Final = ("size", "runtime", "limit", "queue", "units", "not_before_s", "leaves_s")


@dataclass(frozen=True)
class _Drawn:
    """Drawn jobs: of each the recorded job, the first of its session, and which draw and which repetition it is of."""

    job: Ints
    first: Ints
    draw: Ints
    again: Ints


def lengthen(workload: Workload, jobs: int, seed: int, *, mix: str = "recorded", days: int | None = None) -> Workload:
    """`jobs` jobs drawn from those of the Eurora days. The head of this file says how, and what is kept."""
    cluster = cluster_named("eurora")
    _check(workload, cluster, jobs, seed, mix, days)
    draw_seed, user_seed, day_seed = (
        np.random.Generator(np.random.PCG64(own)) for own in np.random.SeedSequence(seed).spawn(3)
    )
    span_s = max(1, int(workload.submit[-1] - workload.submit[0]))
    profile = _profiles(workload)
    longest = max(1, round(jobs / len(workload) * span_s / DAY_S))
    drawn = _draw(workload, profile, _quotas(workload, jobs, mix), longest, draw_seed)
    columns: dict[str, Column] = {
        name: workload[name][drawn.job]
        for name in workload.columns
        if name in _KEPT or name.startswith((UNIT, LICENCE))
    }
    if days is None:
        recorded = max(loads(workload.columns, cluster, span_s).values())
        days = max(1, round(max(loads(columns, cluster, DAY_S).values()) / recorded))
    columns["submit"] = _submits(workload, drawn, days, day_seed)
    columns["user"] = (zipf_users(int(drawn.draw[-1]) + 1, user_seed) - 1)[drawn.draw]
    columns["name"] = profile[drawn.job]
    order = np.argsort(columns["submit"], kind="stable")
    columns = {name: values[order] for name, values in columns.items()} | {"id": np.arange(1, jobs + 1)}
    names = {"queue": workload.names["queue"]} if "queue" in workload.names else {}
    for column, word in (("user", "user"), ("name", "job")):
        names[column] = tuple(f"synthetic-{word}-{number}" for number in range(int(columns[column].max()) + 1))
    step = Step(f"lengthen={jobs},mix={mix},days={days} seed={seed}", changed=jobs)
    return replace(workload, columns=columns, names=names).with_step(step)


def loads(columns: Mapping[str, Column], cluster: Cluster, span_s: int) -> dict[str, float]:
    """What jobs ask of each resource in a span (units x amount x run time), over what the cluster has of it then."""
    share = {}
    for place, resource in enumerate(cluster.resources):
        total = sum(kind.count * kind.capacity[place] for kind in cluster.kinds)
        if total and f"{UNIT}{resource}" in columns:
            each = (columns["units"] * columns[f"{UNIT}{resource}"]).astype(np.float64)
            share[resource] = float(np.dot(each, np.maximum(columns["runtime"], 0))) / (total * span_s)
    return share


def accelerated(workload: Workload) -> npt.NDArray[np.bool_]:
    """Which jobs need a GPU or a MIC."""
    return (workload.get("unit_gpus") > 0) | (workload.get("unit_mics") > 0)


def _quotas(workload: Workload, jobs: int, mix: str) -> list[tuple[npt.NDArray[np.bool_], int]]:
    """Which recorded jobs belong to each class of a mix, and how many jobs are to be drawn from them."""
    fast, short = accelerated(workload), workload.runtime < SHORT_S
    shares = (float(fast.mean()), float(short.mean()), float((fast & short).mean()))
    if mix == "reported":
        shares = (ACCELERATED, SHORT, ACCELERATED * SHORT)
    many, shorts, both = (round(jobs * share) for share in shares)
    both = max(both, many + shorts - jobs)  # each is rounded by itself: no class may be left with less than none
    classes = [
        (fast & short, both),
        (fast & ~short, many - both),
        (~fast & short, shorts - both),
        (~fast & ~short, jobs - many - shorts + both),
    ]
    if any(wanted and not members.any() for members, wanted in classes):
        raise SettingError(
            f"lengthen: {workload.name} lacks jobs with and without accelerator, below an hour and above"
        )
    return classes


def _profiles(workload: Workload) -> Ints:
    """A number for each set of jobs that ask for the same: queue, limit, units, and each resource of a unit."""
    asked = ["limit", "units", *sorted(name for name in workload.columns if name.startswith(UNIT))]
    together = np.stack([workload.get("queue"), *(workload[name] for name in asked)])
    found: Ints = np.unique(together, axis=1, return_inverse=True)[1].ravel()
    return found


def _sessions(workload: Workload, profile: Ints, members: npt.NDArray[np.bool_]) -> list[Ints]:
    """The sessions of some of the recorded jobs, as positions in the workload."""
    jobs = np.flatnonzero(members)
    jobs = jobs[np.argsort(profile[jobs], kind="stable")]
    pause = np.diff(workload.submit[jobs]) > PAUSE_S
    return np.split(jobs, np.flatnonzero(pause | (np.diff(profile[jobs]) != 0)) + 1)


def _draw(
    workload: Workload,
    profile: Ints,
    quotas: list[tuple[npt.NDArray[np.bool_], int]],
    longest: int,
    rng: np.random.Generator,
) -> _Drawn:
    """Sessions of each class, drawn until they have as many jobs as wanted; the last one is cut."""
    parts: list[tuple[Ints, ...]] = []
    for members, wanted in quotas:
        sessions = _sessions(workload, profile, members) if wanted else []
        while wanted:
            session = sessions[rng.integers(len(sessions))]
            times = 1 if rng.random() < ONCE else min(longest, int(rng.geometric(1 / MEAN_DAYS)))
            job = np.tile(session, times)[:wanted]
            again = np.repeat(np.arange(times), len(session))[:wanted]
            parts.append((job, np.full(len(job), session[0]), np.full(len(job), len(parts)), again))
            wanted -= len(job)
    return _Drawn(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _submits(workload: Workload, drawn: _Drawn, days: int, rng: np.random.Generator) -> Ints:
    """When each drawn job is submitted: its session on its day, at its time of day or near it."""
    first_day = rng.integers(days, size=int(drawn.draw[-1]) + 1)
    new = (np.diff(drawn.draw, prepend=-1) != 0) | (np.diff(drawn.again, prepend=-1) != 0)
    around = rng.integers(-AROUND_S, AROUND_S + 1, size=int(new.sum()))[np.cumsum(new) - 1]
    begins = workload.submit[drawn.first]
    at = (first_day[drawn.draw] + drawn.again) * DAY_S + begins % DAY_S + around
    submit: Ints = at % (days * DAY_S) + workload.submit[drawn.job] - begins
    return submit


def _check(workload: Workload, cluster: Cluster, jobs: int, seed: int, mix: str, days: int | None) -> None:
    if mix not in MIXES:
        raise SettingError(f"lengthen: no mix {mix!r}; there are {', '.join(MIXES)}")
    if not 1 <= jobs <= MOST_JOBS or not 1 <= (days or 1) <= MOST_DAYS or days == 0 or seed < 0:
        rule = f"jobs are from 1 to {MOST_JOBS:,}, days from 1 to {MOST_DAYS:,}, a seed is 0 or more"
        raise SettingError(f"lengthen={jobs},days={days} seed={seed}: {rule}")
    needed = ("units", *(f"{UNIT}{resource}" for resource in cluster.resources))
    if missing := [name for name in needed if name not in workload]:
        raise SettingError(f"lengthen is for the Eurora days; {workload.name} lacks the columns {', '.join(missing)}")
    if not len(workload) or not max(loads(workload.columns, cluster, 1).values()):
        raise SettingError(f"lengthen: {workload.name} has no work to draw from")
