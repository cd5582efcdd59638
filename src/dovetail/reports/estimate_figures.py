"""Pictures of estimates: how near to the run times, for which users, and which jobs gained from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.metrics.estimates import ended_within, mean_error_s, r2
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.reports.columns import named
from dovetail.reports.style import BETTER, GREY, INK, STROKES, WORSE, figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MOST_USERS: Final = 12
"""Users in the picture: those with the most jobs."""
FEWEST: Final = 20
"""Jobs of a user or class below which there is no number."""
LOWEST: Final = -1.0
"""A lower R2 is drawn here."""
RATIOS: Final = (0.01, 100.0)
"""From where to where run times are shown as multiples of the estimate."""
POINTS: Final = 121
USED: Final = (0.1, 0.25, 0.5, 0.75, 1.0)
"""Classes of jobs by the share of their limits that they used: up to each of these, the last from there on."""


@dataclass(frozen=True)
class Estimates:
    """How good estimates were, beside the limits."""

    r2: float
    limit_r2: float
    error_s: float
    limit_error_s: float
    before: float
    by: float
    """Shares of jobs that ended before, and no later than, estimated."""
    ratio: Floats
    within: Floats
    limit_within: Floats
    """Share of jobs that ended within `ratio` times the estimate, and within `ratio` times the limit."""
    users: tuple[tuple[str, float, float], ...]
    """Name, R2 of the estimates, R2 of the limits; those with the most jobs first."""


@dataclass(frozen=True)
class Gain:
    """Mean wait by the share of its limit that a job used, with limits as estimates and with others."""

    labels: tuple[str, ...]
    jobs: tuple[int, ...]
    limit_wait_s: Floats
    wait_s: Floats


def is_learned(schedule: Schedule) -> bool:
    """Whether estimates were other than the limits or the run times."""
    work = schedule.workload
    if len(schedule.said) != len(work):  # a schedule that was not replayed
        return False
    return not any(np.array_equal(schedule.said, np.maximum(of, 1)) for of in (work.limit, work.runtime))


def estimates_of(schedule: Schedule) -> Estimates:
    """All that the pictures need."""
    work, said = schedule.workload, schedule.said
    ratio = np.geomspace(*RATIOS, POINTS)
    user = work.get("user")
    numbers, counts = np.unique(user, return_counts=True)
    most = [int(numbers[i]) for i in np.argsort(-counts, kind="stable")[:MOST_USERS] if counts[i] >= FEWEST]
    masks = [user == number for number in most]
    return Estimates(
        r2(said, work.runtime), r2(work.limit, work.runtime),
        mean_error_s(said, work.runtime), mean_error_s(work.limit, work.runtime),
        *ended_within(said, work.runtime), ratio, _within(work, said, ratio), _within(work, work.limit, ratio),
        tuple(
            (_user(work, number), r2(said[mask], work.runtime[mask]), r2(work.limit[mask], work.runtime[mask]))
            for number, mask in zip(most, masks, strict=True)
        ),
    )  # fmt: skip


def _within(work: Workload, said: Ints, ratio: Floats) -> Floats:
    found: Floats = np.searchsorted(np.sort(work.runtime / said), ratio, "right") / len(work)
    return found


def _user(work: Workload, number: int) -> str:
    known = work.names.get("user", ())
    return known[number] if 0 <= number < len(known) else str(number)


def gain_of(limits: Schedule, other: Schedule) -> Gain:
    """Which jobs waited less: those that use little of their limits, or those that need them."""
    work = limits.workload
    at = np.searchsorted(USED[:-1], work.runtime / work.limit, "left")
    edges = (0.0, *USED)
    labels = tuple(f"{100 * edges[i]:.0f} to {100 * edges[i + 1]:.0f} %" for i in range(len(USED)))
    jobs = np.bincount(at, minlength=len(USED))
    means = [
        np.bincount(at, weights=one.wait, minlength=len(USED)) / np.maximum(jobs, 1) for one in (limits, other)
    ]  # fmt: skip
    return Gain(labels, tuple(int(n) for n in jobs), *means)


def within_figure(found: Estimates) -> Figure:
    """How far run times are from the estimates."""
    made = figure(440, 280)
    ax = made.subplots()
    ax.plot(found.ratio, 100 * found.within, **{**STROKES[0].line, "marker": ""})
    ax.plot(found.ratio, 100 * found.limit_within, **{**STROKES[1].line, "marker": ""})
    ax.axvline(1, color=GREY, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xlim(*RATIOS)
    ax.set_xticks([0.01, 0.1, 1, 10, 100], ["0.01", "0.1", "1", "10", "100"])
    ax.set_ylim(0, 101)
    ax.set_xlabel("run time / estimate")
    ax.set_ylabel("jobs, %")
    return made


def users_figure(found: Estimates) -> Figure:
    """R2 of each of the users with the most jobs, and of their limits."""
    made = figure(440, 60 + 20 * len(found.users))
    ax = made.subplots()
    for row, (_, ours, limit) in enumerate(found.users):
        values = [max(value, LOWEST) for value in (limit, ours)]
        ax.plot(values, [row, row], color=GREY, linewidth=1)
        ax.plot(values[:1], [row], marker="o", color=GREY, markerfacecolor="white", linestyle="")
        ax.plot(values[1:], [row], marker="o", color=BETTER if ours > limit else WORSE, linestyle="")
    ax.set_yticks(range(len(found.users)), [named(name, 20) for name, _, _ in found.users])
    ax.set_ylim(len(found.users) - 0.4, -0.6)
    ax.set_ylabel("user")
    ax.set_xlim(LOWEST - 0.08, 1.05)
    ax.set_xlabel(f"R2 ({LOWEST:g} or less at the left edge)")
    return made


def gain_figure(found: Gain) -> Figure:
    """Mean wait by class, with limits and with predictions as estimates."""
    made = figure(440, 280)
    ax = made.subplots()
    at = np.arange(len(found.labels))
    ax.bar(at - 0.2, found.limit_wait_s / 3600, 0.38, color=GREY)
    ax.bar(at + 0.2, found.wait_s / 3600, 0.38, color=INK)
    ax.set_xticks(at, [f"{label}\n{n:,} jobs" for label, n in zip(found.labels, found.jobs, strict=True)], fontsize=7)
    ax.set_xlabel("share of the limit that the job used")
    ax.set_ylabel("mean wait, h")
    return made
