"""The rule of a planner: in each pass, the best plan that a search finds for what waits and what may come."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Floats
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import (
    ahead,
    back_to_kept,
    earliest_fit,
    fits_again,
    fits_now,
    fits_plan,
    keep_place,
    names_nodes,
    open_plan,
    reserve,
    reserve_again,
    spare,
    start,
    unreserve,
)
from dovetail.kernels.passes.conservative import start_beside
from dovetail.kernels.passes.lists import ALL
from dovetail.kernels.passes.rule import Common
from dovetail.kernels.planner.search import (
    BEST_AT,
    BEST_ORDER,
    CAME,
    DUE_AT,
    ENTRY,
    FROM,
    JOBS,
    NEW_AT,
    NEW_ORDER,
    PART,
    STOOD,
    WEIGHT,
    WIDE,
    Space,
    commitment,
    count_waits,
    earliest_spot,
    excess_wait,
    least_part,
    list_order,
    place,
    search,
    seeded,
    value,
    wait_value,
    widened,
)
from dovetail.kernels.queue import group_all, split_all
from dovetail.kernels.seam import answers
from dovetail.kernels.state import (
    AGREED,
    ARRIVE,
    BACK_QUEUE,
    BEHIND,
    DEADLINE,
    ESTIMATE,
    GROUPED,
    KEY,
    LAST,
    NEXT,
    PLACE,
    PROMISED_FIRST,
    QUEUE,
    RECENT,
    REFUSED,
    RUNNING,
    SEEN,
    SIZE,
    STARTED,
    SUBMIT,
    TENTATIVE,
    UNTIL,
    WAITING,
    Run,
    wake_at_next,
)

_0: int = np.int64(0)  # type: ignore[assignment]  # see timeline.py


class PlanRule(NamedTuple):
    """A planner: an objective, a budget, a window."""

    common: Common
    window: int
    decodes: int
    clairvoyant: bool
    """The jobs planned for ahead are those that will come, and not copies of those that came."""
    seed: int
    level: int
    """Of PaSF."""
    hot: float
    cold: float
    patient: float
    """What a job with an accepted deadline counts, of what it would without; below 0: deadlines are not looked at."""
    depth: int
    """This many jobs are planned, the first of the queue, and all with a deadline where promises are kept; the others
    start where they fit beside them."""
    favours: bool
    """What a job counts is the caller's, asked for before each pass."""
    groups_above: int
    """Where more jobs wait than this, alike jobs that came one behind the other in one moment are planned as a group:
    those of them that could start now, and one more."""
    long_s: float
    """A wait of this length counts twice its seconds, others more by the fourth power of theirs; infinite: none do."""
    wide: float
    """In AWF, the area of a job counts times its size to this power."""
    commit: float
    """What jobs that may come count, where they would wait for what a plan has started."""
    weights: Floats
    """Of the terms of the objective."""
    space: Space


@inner
def _decide_plan(rule: PlanRule, cap: Any, run: Run, now: int) -> int:
    info = run.info
    many = info[WAITING] + info[BEHIND] > rule.groups_above
    if many and info[GROUPED] == 0:
        split_all(run)
        group_all(rule, cap, run)
    elif not many and info[BEHIND] > 0:
        split_all(run)
    info[GROUPED] = many
    if many and info[WAITING] == 1 and rule.common.foresight == 0:
        return _start_alike(cap, run, now)
    n, fits = _to_plan(rule, cap, run)
    if rule.patient >= 0.0:
        _agree(rule, cap, run, now, n)
    started = _best_starts(rule, cap, run, now, n) if fits else _0
    if rule.patient >= 0.0:  # a start behind somebody who is only foreseen is at an instant at which nobody ends
        wake_at_next(run, now, run.jobs[PLACE], False)
    return started


@inner
def _start_alike(cap: Any, run: Run, now: int) -> int:
    """One group is all that waits: every plan starts as many of it as fit. Returns how many."""
    first, started = run.lists[QUEUE, 0], _0
    if names_nodes(cap) and fits_now(cap, first):
        open_plan(cap, now)
    for job in range(first, run.jobs[UNTIL, first]):
        if not fits_now(cap, job) or (ahead(cap) and not fits_plan(cap, job, now, run.jobs[ESTIMATE, job])):
            break
        if names_nodes(cap):
            reserve(cap, job, now, run.jobs[ESTIMATE, job])
        start(cap, job, now, now + run.jobs[ESTIMATE, job])
        run.lists[STARTED, started] = job
        started += 1
    return started


@inner
def _to_plan(rule: PlanRule, cap: Any, run: Run) -> tuple[int, bool]:
    """List the jobs to plan. Returns how many, and whether any job that waits fits now."""
    queue, jobs = run.lists[QUEUE], run.jobs
    ints, floats = rule.space.ints, rule.space.floats
    n, counted, fits = _0, 0, False
    for i in range(run.info[WAITING]):
        first = queue[i]
        fits = fits or fits_now(cap, first)
        due = rule.patient >= 0.0 and jobs[DEADLINE, first] >= 0
        if counted >= rule.depth and not due:
            jobs[PLACE, first] = -1
            continue
        last = min(jobs[UNTIL, first], first + 1 + spare(cap) // max(jobs[SIZE, first], 1))
        for job in range(first, last):
            ints[JOBS, n], ints[ENTRY, n] = job, first
            ints[CAME, n] = jobs[ARRIVE, job]
            ints[STOOD, n] = jobs[PLACE, job]
            floats[WEIGHT, n] = 1.0 if rule.favours else run.keys[KEY, job]
            floats[PART, n] = run.keys[KEY, job] if rule.favours else 1.0
            n += 1
        if not due:
            counted += 1
    return n, fits


@inner
def _best_starts(rule: PlanRule, cap: Any, run: Run, now: int, n: int) -> int:
    """Search, and start the jobs whose turn has come in the best plan. Returns how many."""
    ints, seen = rule.space.ints, run.jobs[SEEN]
    planned, least = n + _foresee(rule, run, now, n), least_part(rule, n)
    for i in range(n, planned):
        ints[DUE_AT, i], rule.space.floats[PART, i] = NEVER, least
    for i in range(planned):
        rule.space.floats[WIDE, i] = widened(rule, run.jobs[SIZE, ints[JOBS, i]])
    open_plan(cap, now)
    seeded(rule.space, rule.seed, now, n)
    search(rule, cap, run, now, planned)
    again = names_nodes(cap) or rule.depth < ALL  # the plan that was searched last was another
    if again:
        open_plan(cap, now)
    started = _0
    if names_nodes(cap) and rule.patient >= 0.0:
        if value(rule, run, planned, ints[BEST_ORDER], ints[BEST_AT]) == np.inf:
            return _as_agreed(rule, cap, run, now, n)
    for i in range(planned):
        local, at = ints[BEST_ORDER, i], ints[BEST_AT, i]
        job = ints[JOBS, local]
        if local < n and run.info[GROUPED] == 1:  # alike jobs start in the order of their numbers
            first = ints[ENTRY, local]
            job = first + seen[first]
            seen[first] += 1
        if local >= n:  # only foreseen: a copy of a job that may wait itself, and has a place of its own
            keep_place(cap, job)
        if again:
            reserve(cap, job, at, run.jobs[ESTIMATE, job])
        if local >= n:
            back_to_kept(cap, job)
            continue
        run.jobs[PLACE, job] = at
        if at == now:
            start(cap, job, now, now + run.jobs[ESTIMATE, job])
            run.lists[STARTED, started] = job
            started += 1
    for i in range(n if run.info[GROUPED] == 1 else 0):
        seen[ints[ENTRY, i]] = 0
    if rule.depth < ALL:
        started = start_beside(cap, run, now, _0, run.jobs[PLACE], started)
    return started


@inner
def _as_agreed(rule: PlanRule, cap: Any, run: Run, now: int, n: int) -> int:
    """No plan that was found keeps all promises: on nodes the same order may need more time. The one that they were
    made by does. Returns how many start in it."""
    started = _0
    for local in range(n):
        job, at = rule.space.ints[JOBS, local], rule.space.ints[STOOD, local]
        back_to_kept(cap, job)
        reserve_again(cap, job, at, run.jobs[ESTIMATE, job])
        run.jobs[PLACE, job] = at
    for local in range(n):
        job = rule.space.ints[JOBS, local]
        if run.jobs[PLACE, job] == now:
            start(cap, job, now, now + run.jobs[ESTIMATE, job])
            run.lists[STARTED, started] = job
            started += 1
    if rule.depth < ALL:
        started = start_beside(cap, run, now, _0, run.jobs[PLACE], started)
    return started


@inner
def _stand(rule: PlanRule, cap: Any, run: Run, now: int, n: int) -> None:
    """On nodes: place everybody where it stood, as far as it can, then each in turn as early as it fits."""
    ints = rule.space.ints
    for i in range(n):
        local = ints[NEW_ORDER, i]
        job, at = ints[JOBS, local], ints[STOOD, local]
        ints[NEW_AT, i] = -1
        if at >= now and fits_again(cap, job, at, run.jobs[ESTIMATE, job]):
            reserve_again(cap, job, at, run.jobs[ESTIMATE, job])
            ints[NEW_AT, i] = at
    for i in range(n):
        job = ints[JOBS, ints[NEW_ORDER, i]]
        length = run.jobs[ESTIMATE, job]
        if ints[NEW_AT, i] >= 0:
            unreserve(cap, job, ints[NEW_AT, i], length)
        ints[NEW_AT, i] = earliest_fit(cap, job, now, length)
        reserve(cap, job, ints[NEW_AT, i], length)
        keep_place(cap, job)


@inner
def _agree(rule: PlanRule, cap: Any, run: Run, now: int, n: int) -> None:
    """Answer those who came, one by one, and say what has been promised to whom: an end by the deadline to a job whose
    deadline is accepted, to any other that it starts no later than it is first planned to.

    Everybody is placed in the order of the standing plan, the new ones behind. While estimates are upper bounds, those
    who stood start no later than they stood, so all promises can be kept. Where they are not and one cannot, as early
    as now is what counts. If nothing can start now, this is the plan.
    """
    ints, jobs = rule.space.ints, run.jobs
    for i in range(n):
        ints[FROM, i] = now
    list_order(rule, run, now, np.int64(-1), n)  # type: ignore[arg-type]
    open_plan(cap, now)
    if names_nodes(cap):
        _stand(rule, cap, run, now, n)
    else:
        place(rule, cap, run, np.int64(0), n)  # type: ignore[arg-type]
    for i in range(n):
        local = ints[NEW_ORDER, i]
        job, at = ints[JOBS, local], ints[NEW_AT, i]
        end, due = at + jobs[ESTIMATE, job], jobs[ARRIVE, job] + jobs[DEADLINE, job]
        if jobs[DEADLINE, job] >= 0 and jobs[AGREED, job] < 0:
            jobs[AGREED, job] = TENTATIVE if end <= due else REFUSED
        if jobs[AGREED, job] != TENTATIVE:
            if jobs[PROMISED_FIRST, job] < 0:
                jobs[PROMISED_FIRST, job] = at
            due = jobs[PROMISED_FIRST, job] + jobs[ESTIMATE, job]
        ints[DUE_AT, local] = max(due, end)
        if jobs[AGREED, job] == TENTATIVE:
            rule.space.floats[PART, local] *= rule.patient
        jobs[PLACE, job] = ints[STOOD, local] = at


@inner
def _foresee(rule: PlanRule, run: Run, now: int, n: int) -> int:
    """Add jobs that may come to those that wait: the last that came, once more, at the same distances from each other,
    the first of them after the mean time from one to the next; or those that will come, if the rule knows. They take
    part in the plan and never start. Returns how many.

    On an idle machine nobody waits for who may come: else a job could wait for ever for jobs that never do."""
    ints, floats = rule.space.ints, rule.space.floats
    if run.info[RUNNING] == 0 and not rule.clairvoyant:
        return 0
    found = min(run.info[RECENT], rule.common.foresight)
    for i in range(found):
        ints[JOBS, n + i] = run.lists[BACK_QUEUE, i]
    if run.info[RECENT] == 0:
        found = _listed(rule, run, n)
    if found == 0:
        return 0
    oldest, weight = now, 0.0
    for i in range(n):
        weight += floats[WEIGHT, i]
    for i in range(n, n + found):
        oldest = min(oldest, run.jobs[ARRIVE, ints[JOBS, i]])
    first = now + 1 + (now - oldest) // found
    for i in range(n, n + found):
        job = ints[JOBS, i]
        ints[CAME, i] = run.jobs[SUBMIT, job] if rule.clairvoyant else first + run.jobs[ARRIVE, job] - oldest
        ints[STOOD, i] = -1
        floats[WEIGHT, i] = weight / n
    return found


@inner
def _listed(rule: PlanRule, run: Run, n: int) -> int:
    """Write the next jobs to come, or the last that came, behind the n that wait. Returns how many."""
    found = 0
    job = run.info[NEXT]
    if rule.clairvoyant:
        while job < min(run.info[LAST], run.jobs.shape[1]) and found < rule.common.foresight:
            rule.space.ints[JOBS, n + found] = job
            found += 1
            job += 1
        return found
    if run.links.shape[1] > 0:
        job = run.jobs.shape[1]  # with feedback, jobs of any number may have come
    while job > 0 and found < rule.common.foresight:
        job -= 1
        if run.jobs[ARRIVE, job] >= 0:
            rule.space.ints[JOBS, n + found] = job
            found += 1
    return found


answers(
    PlanRule,
    decide=_decide_plan, spot=earliest_spot, excess=excess_wait, value=wait_value, count_costs=count_waits,
    price=commitment,
)  # fmt: skip
