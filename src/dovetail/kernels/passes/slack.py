"""Relaxed backfilling: a start may push reserved jobs back a little."""

from __future__ import annotations

from typing import Any, NamedTuple

from dovetail.arrays import Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import (
    back_to_kept,
    earliest_fit,
    fits_now,
    fits_plan,
    keep_place,
    open_plan,
    reserve,
    reserve_again,
    start,
    unreserve,
)
from dovetail.kernels.passes.lists import MOST_PUSH
from dovetail.kernels.passes.rule import Common, sort_if_moving
from dovetail.kernels.seam import answers
from dovetail.kernels.state import (
    ARRIVE,
    ESTIMATE,
    PLACE,
    PROMISED_FIRST,
    SEEN,
    SPARE,
    SPARE_2,
    SPARE_3,
    STARTED,
    WAITING,
    Run,
)


class SlackRule(NamedTuple):
    """List scheduling whose reservations may be pushed back a little."""

    common: Common
    depth: int
    relax: float
    slack: float


@inner
def slack_pass(
    cap: Any,
    now: int,
    estimate: Ints,
    arrive: Ints,
    queue: Ints,
    n: int,
    backfill: Ints,
    other: bool,
    depth: int,
    relax: float,
    slack: float,
    first_at: Ints,
    place: Ints,
    held: Ints,
    at_now: Ints,
    trial: Ints,
    seen: Ints,
    started: Ints,
) -> int:
    """Relaxed backfilling: a start may push the reserved jobs back, each up to its own latest start.

    The latest start is the first reservation that the job ever had (`first_at`, by job, -1: none yet) plus
    relax * (that - arrival) + slack * estimate. The reservations are written to `place`, by job. `held`,
    `at_now` and `trial` are working space.
    """
    n_started = 0
    for i in range(n):
        place[queue[i]] = -1
    open_plan(cap, now)
    blocked = 0
    j = 0
    phase = 0  # 0: in queue order while reservations are left; 1: the rest in backfill order
    while True:
        if phase == 0 and blocked >= depth:
            phase = 1
            if other:
                for i in range(j):
                    seen[queue[i]] = 1
                j = 0
        if j >= n:
            break
        job = backfill[j] if phase == 1 and other else queue[j]
        j += 1
        if phase == 1 and other and seen[job] != 0:
            continue
        if fits_now(cap, job) and _moves_over(
            cap, now, job, estimate, arrive, relax, slack, first_at, held, at_now, trial, blocked
        ):
            start(cap, job, now, now + estimate[job])
            started[n_started] = job
            n_started += 1
        elif phase == 0:
            at = earliest_fit(cap, job, now, estimate[job])
            reserve(cap, job, at, estimate[job])
            held[blocked] = job
            at_now[blocked] = at
            blocked += 1
            if first_at[job] < 0:
                first_at[job] = at
    for b in range(blocked):
        place[held[b]] = at_now[b]
    for i in range(n):
        seen[queue[i]] = 0
    return n_started


@inner
def _moves_over(
    cap: Any, now: int, job: int, estimate: Ints, arrive: Ints, relax: float, slack: float, first_at: Ints,
    held: Ints, at_now: Ints, trial: Ints, blocked: int,
) -> bool:  # fmt: skip
    """Try to start `job` now with the reserved jobs placed anew after it; undone if one of them gets too late."""
    if fits_plan(cap, job, now, estimate[job]):
        reserve(cap, job, now, estimate[job])
        return True
    for b in range(blocked):
        keep_place(cap, held[b])
        unreserve(cap, held[b], at_now[b], estimate[held[b]])
    good = fits_plan(cap, job, now, estimate[job])
    if good:
        reserve(cap, job, now, estimate[job])
        done = 0
        for b in range(blocked):
            other = held[b]
            at = earliest_fit(cap, other, now, estimate[other])
            latest = first_at[other]
            latest += int(min(relax * (first_at[other] - arrive[other]), MOST_PUSH))
            latest += int(min(slack * estimate[other], MOST_PUSH))
            if at > max(latest, at_now[b]):
                good = False
                break
            reserve(cap, other, at, estimate[other])
            trial[b] = at
            done += 1
        if good:
            for b in range(blocked):
                at_now[b] = trial[b]
            return True
        for b in range(done):
            unreserve(cap, held[b], trial[b], estimate[held[b]])
        unreserve(cap, job, now, estimate[job])
    for b in range(blocked):
        back_to_kept(cap, held[b])
        reserve_again(cap, held[b], at_now[b], estimate[held[b]])
    return False


@inner
def _decide_slack(rule: SlackRule, cap: Any, run: Run, now: int) -> int:
    n = run.info[WAITING]
    if n == 0:
        return 0
    queue, back = sort_if_moving(run, rule, now)
    return slack_pass(
        cap, now, run.jobs[ESTIMATE], run.jobs[ARRIVE], queue, n, back, rule.common.backfill >= 0, rule.depth,
        rule.relax, rule.slack, run.jobs[PROMISED_FIRST], run.jobs[PLACE], run.lists[SPARE], run.lists[SPARE_2],
        run.lists[SPARE_3], run.jobs[SEEN], run.lists[STARTED],
    )  # fmt: skip


answers(SlackRule, decide=_decide_slack)
