"""One planning window, arranged outside of a replay: by the planner's own search, and by others to measure it against.

All of them use the same decoder and begin with the best list plan or the plan that stands. Each returns how many
candidates it decoded; the answer is in BEST_ORDER and BEST_AT. These are kernels outside of the package, and they are
kept on disk all the same: Numba notices an edit of this file, and the cache has a name made from all others.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.arrays import Floats, Ints
from dovetail.kernels.compile import inner, jit
from dovetail.kernels.machine import processors as counted
from dovetail.kernels.machine.capacity import open_plan, reserve
from dovetail.kernels.machine.timeline import Profile, earliest
from dovetail.kernels.passes.rule import fitted
from dovetail.kernels.planner.plan import PlanRule
from dovetail.kernels.planner.search import (
    BEST_AT,
    BEST_ORDER,
    CAME,
    JOBS,
    NEW_AT,
    NEW_ORDER,
    NOW_AT,
    NOW_ORDER,
    NOW_SUM,
    STOOD,
    WEIGHT,
    WIDE,
    Space,
    _accept,
    _below,
    _best_list,
    _move,
    _stand_at_best,
    decode,
    search,
    seeded,
    wait_value,
)
from dovetail.kernels.seam import answers
from dovetail.kernels.state import ARRIVE, ESTIMATE, INFO, LIST_ROWS, SIZE, Run

TRIES = 12
"""Moves that tabu search looks at before it makes one."""
TENURE = 10
"""For so many moves a job that was moved away may not come back."""
PARENTS = 24
"""Orders that the genetic search keeps."""
MEMORY = PARENTS + 1
"""Rows of what a search remembers from call to call."""

_0: int = np.int64(0)  # type: ignore[assignment]


class Released(NamedTuple):
    """A counted machine that knows when each job may start at the earliest."""

    need: Ints
    free: Ints
    running: Profile
    plan: Profile
    release: Ints


@inner
def _earliest_fit(cap: Released, job: int, at: int, length: int) -> int:
    return earliest(cap.plan, max(at, cap.release[job]), length, cap.need, job * len(cap.running.width))


# A search asks no more than this.
answers(
    Released,
    open_plan=counted._open_plan,
    earliest_fit=_earliest_fit,
    reserve=counted._reserve,
    remember_plan=counted._remember_plan,
    recall_plan=counted._recall_plan,
    spare=counted._spare,
)


class Window(NamedTuple):
    """All that a search works on. Jobs 0 to n - 1 are those of the window; the others are what is not free."""

    rule: PlanRule
    cap: Released
    run: Run
    now: int
    n: int
    blocks: Ints
    """When each of the others begins."""
    memory: Ints
    """MEMORY rows, one column per job; -1 in the first: nothing is remembered."""
    costs: Floats


def new_window(
    rule: PlanRule, now: int, processors: int, jobs: Ints, release: Ints, blocks: Ints, weight: Floats
) -> Window:
    """`jobs`: rows as in a Run, the first columns for the window, one per `weight`, the others for what is not free."""
    n = len(weight)
    width = jobs.shape[1]
    one = np.array([processors], np.int64)
    machine = counted.new_counted(np.ascontiguousarray(jobs[SIZE]), one, 8, 2 * width + 4)
    rule = fitted(rule, machine, n)
    rule.space.ints[JOBS, :n] = np.arange(n)
    rule.space.ints[CAME, :n] = jobs[ARRIVE, :n]
    rule.space.ints[STOOD, :n] = -1
    rule.space.floats[WEIGHT, :n], rule.space.floats[WIDE, :n] = weight, 1.0
    run = Run(
        np.zeros(INFO, np.int64), jobs, np.zeros((2, width)), np.zeros((4, 0), np.int64), np.zeros((2, 0), np.int64),
        np.zeros((LIST_ROWS, width), np.int64),
    )  # fmt: skip
    window = Window(
        rule, Released(*machine, release), run, now, n, blocks, np.full((MEMORY, max(n, 1)), -1),
        np.zeros(max(n, MEMORY)),
    )  # fmt: skip
    begin(rule.space, rule.seed, now, n)
    return window


@jit
def begin(space: Space, seed: int, now: int, n: int) -> None:
    """Seed the random numbers, as a pass does."""
    seeded(space, seed, now, n)


@inner
def _open(window: Window) -> None:
    """A plan with nothing in it but what is not free."""
    cap, run = window.cap, window.run
    open_plan(cap, window.now)
    for i in range(len(window.blocks)):
        reserve(cap, window.n + i, window.blocks[i], run.jobs[ESTIMATE, window.n + i])


@inner
def _first(window: Window) -> float:
    """Stand at the best list plan, or the plan that stands. Returns its value."""
    _open(window)
    best = _best_list(window.rule, window.cap, window.run, window.now, window.n)
    _stand_at_best(window.rule, window.cap, window.run, window.n)
    return best


@inner
def _keep(window: Window, order: Ints, at: Ints, best: float) -> float:
    """A plan is the best so far if its value is below `best`. Returns the value of the best."""
    ints = window.rule.space.ints
    found = wait_value(window.rule, window.run, window.n, order, at)
    if found >= best:
        return best
    for i in range(window.n):
        ints[BEST_ORDER, i] = order[i]
        ints[BEST_AT, i] = at[i]
    return found


@inner
def _try(window: Window, first: int, limit: float) -> float:
    """The cost of the candidate, infinity if it is above the limit."""
    return decode(window.rule, window.cap, window.run, window.n, first, limit)


@jit
def lists(window: Window) -> None:
    """The best list plan, or the plan that stands."""
    _first(window)


@jit
def anneal(window: Window) -> int:
    """The search of the planner, as in a pass, with the budget and the temperatures of the rule."""
    _open(window)
    before = window.rule.space.counts[0]
    search(window.rule, window.cap, window.run, window.now, window.n)
    return window.rule.space.counts[0] - before


@jit
def scatter(window: Window, decodes: int) -> int:
    """Random orders, each decoded until it must be worse than the best."""
    best = _first(window)
    n, ints = window.n, window.rule.space.ints
    least = window.rule.space.floats[NOW_SUM, n]
    for i in range(n):
        ints[NEW_ORDER, i] = i
    done = 0
    while done < decodes and least > 0.0:
        _shuffle(window.rule.space, n)
        found = _try(window, _0, least)
        done += 1
        if found < least:
            least = found
            best = _keep(window, ints[NEW_ORDER], ints[NEW_AT], best)
    return done


@inner
def _shuffle(space: Space, n: int) -> None:
    order = space.ints[NEW_ORDER]
    for i in range(n - 1, 0, -1):
        j = _below(space, np.int64(i + 1))  # type: ignore[arg-type]
        order[i], order[j] = order[j], order[i]


@jit
def tabu(window: Window, decodes: int) -> int:
    """Tabu search: the best of TRIES moves is made, even if it is for the worse. The job that it took from the first
    changed position may not come back to the first changed position of a move for TENURE moves, unless to a plan
    better than all before. Memory: the best candidate; for each job, the move up to which it may not come back."""
    best = _first(window)
    n, ints, space = window.n, window.rule.space.ints, window.rule.space
    least = space.floats[NOW_SUM, n]
    until, chosen = window.memory[1], window.memory[0]
    for i in range(n):
        until[i] = 0
    done = made = 0
    while done < decodes and n > 1 and least > 0.0:
        low, at = np.inf, n
        made += 1
        for _ in range(TRIES):
            for i in range(n):
                ints[NEW_ORDER, i] = ints[NOW_ORDER, i]
            first = _move(space, _0, n)
            done += 1
            if first >= n:
                continue
            forbidden = until[ints[NEW_ORDER, first]] > made
            found = _try(window, first, min(low, least) if forbidden else low)
            if found < low and (found < least or not forbidden):
                low, at = found, first
                for i in range(n):
                    chosen[i] = ints[NEW_ORDER, i]
        if at == n:
            continue
        until[ints[NOW_ORDER, at]] = made + TENURE
        for i in range(n):
            ints[NEW_ORDER, i] = chosen[i]
        _try(window, at, np.inf)
        done += 1
        _accept(space, n, at)
        if low < least:
            least = low
            best = _keep(window, ints[NOW_ORDER], ints[NOW_AT], best)
    return done


@jit
def genetic(window: Window, decodes: int) -> int:
    """Genetic search in a steady state: the child of two parents, each the better of two, takes the place of the worst
    if it is better and costs something else than all others. Parents are kept from call to call."""
    best = _first(window)
    n, ints, space = window.n, window.rule.space.ints, window.rule.space
    order, parents, costs = ints[NEW_ORDER], window.memory, window.costs
    fresh = parents[0, 0] < 0
    for p in range(PARENTS):  # the first is the best list plan or the plan that stands
        for i in range(n):
            if p == 0:
                parents[p, i] = ints[NOW_ORDER, i]
            order[i] = parents[p - 1, i] if fresh and p > 0 else parents[p, i]
        if fresh and p > 0:
            _shuffle(space, n)
            for i in range(n):
                parents[p, i] = order[i]
        costs[p] = _try(window, _0, np.inf)
        best = _keep(window, ints[NEW_ORDER], ints[NEW_AT], best)
    done = PARENTS
    while done < decodes and n > 1:
        _cross(window, parents[_better(window)], parents[_better(window)])
        worst, twin = 0, False
        for p in range(PARENTS):
            worst = p if costs[p] > costs[worst] else worst
        found = _try(window, _0, costs[worst])
        done += 1
        for p in range(PARENTS):
            twin = twin or costs[p] == found
        if found < costs[worst] and not twin:
            costs[worst] = found
            for i in range(n):
                parents[worst, i] = order[i]
            best = _keep(window, ints[NEW_ORDER], ints[NEW_AT], best)
    return done


@inner
def _better(window: Window) -> int:
    """The better of two parents that are drawn."""
    p, q = (_below(window.rule.space, np.int64(PARENTS)), _below(window.rule.space, np.int64(PARENTS)))  # type: ignore[arg-type]
    return p if window.costs[p] <= window.costs[q] else q


@inner
def _cross(window: Window, one: Ints, other: Ints) -> None:
    """Make the candidate the child of two orders: a stretch of one where it stands there, the rest as in the other.
    Every other child has two jobs exchanged."""
    n, space = window.n, window.rule.space
    order, taken = space.ints[NEW_ORDER], window.memory[PARENTS]
    i, j = _below(space, n), _below(space, n)
    low, high = min(i, j), max(i, j)
    for k in range(n):
        taken[k] = 0
    for k in range(low, high + 1):
        order[k] = one[k]
        taken[one[k]] = 1
    at = 0
    for k in range(n):
        if taken[other[k]] == 0:
            at = high + 1 if at == low else at
            order[at] = other[k]
            at += 1
    if _below(space, np.int64(2)) == 0:  # type: ignore[arg-type]
        i, j = _below(space, n), _below(space, n)
        order[i], order[j] = order[j], order[i]
