"""The rule of a planner: in each pass, the best plan that a search finds for its planning window."""

from __future__ import annotations

from typing import Any

import numpy as np

from dovetail.kernels.capacity import earliest_fit, fits_now, open_plan, recall_plan, reserve, start
from dovetail.kernels.compile import inner
from dovetail.kernels.profile import Profile, entries_most, new_profile
from dovetail.kernels.rules import PlanRule, sort_waiting
from dovetail.kernels.run import (
    BACK_KEY,
    ESTIMATE,
    ORDER,
    PLACE,
    QUEUE,
    STARTED,
    WAITING,
    Run,
)
from dovetail.kernels.seam import answers
from dovetail.kernels.search import (
    BEST_AT,
    BEST_ORDER,
    FLOAT_ROWS,
    INT_ROWS,
    JOBS,
    OTHER,
    SLOT,
    STRIDE,
    Space,
    search,
    seeded,
)


def new_space(window: int) -> Space:
    """Working space for windows of up to so many jobs; `fitted` adds the snapshots."""
    window = max(window, 8)
    ints = np.zeros((INT_ROWS, window + 1), np.int64)
    slots = window // STRIDE + 1
    ints[SLOT, :slots] = np.arange(slots)
    ints[OTHER, :slots] = np.arange(slots, 2 * slots)
    floats = np.zeros((FLOAT_ROWS, window + 1))
    return Space(ints, floats, np.zeros((2 * slots, 0), np.int64), np.zeros(1, np.uint64), np.zeros(3, np.int64))


def fitted(rule: Any, plan: Profile) -> Any:
    """The rule with room for snapshots of such a plan; other rules as they are."""
    if not isinstance(rule, PlanRule):
        return rule
    memory = new_profile(entries_most(plan), len(plan.width)).mem
    plans = np.repeat(memory[np.newaxis], len(rule.space.plans), axis=0)
    return rule._replace(space=rule.space._replace(plans=plans))


@inner
def _decide_plan(rule: PlanRule, cap: Any, run: Run, now: int) -> int:
    n = run.info[WAITING]
    queue = run.lists[QUEUE]
    fits = False
    for i in range(n):
        fits = fits or fits_now(cap, queue[i])
    if not fits:
        return 0
    window = min(n, rule.window)
    order = queue
    if n > window:
        order = run.lists[ORDER]
        sort_waiting(run, rule, now, rule.first, run.keys[BACK_KEY], order)
    ints = rule.space.ints
    for i in range(window):
        ints[JOBS, i] = order[i]
    open_plan(cap, now)
    seeded(rule.space, rule.seed, now)
    search(
        rule.space, cap, run, now, window, rule.weights, rule.level, rule.starve_s, rule.decodes, rule.hot, rule.cold
    )
    recall_plan(cap, rule.space.plans[ints[SLOT, 0]])
    started = 0
    for i in range(n):
        if i < window:
            job, at = ints[JOBS, ints[BEST_ORDER, i]], ints[BEST_AT, i]
        else:
            job = order[i]
            at = earliest_fit(cap, job, now, run.jobs[ESTIMATE, job])
        reserve(cap, job, at, run.jobs[ESTIMATE, job])
        run.jobs[PLACE, job] = at
        if at == now:
            start(cap, job, now, now + run.jobs[ESTIMATE, job])
            run.lists[STARTED, started] = job
            started += 1
    return started


answers(PlanRule, decide=_decide_plan)
