"""The rule of a planner of money: in each pass the best plan that a search finds for what jobs cost and earn.

Jobs are decoded as elsewhere (search.py), but where holding is worth it, a job goes where it costs least: then starts
move with the order. What a job costs is counted above the least that it could cost alone within the time for which it
may be held. One that must wait longer is not thanked for the cheaper hours that it finds then: its cost counts as no
less than that.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import (
    earliest_fit,
    fits_now,
    fits_plan,
    open_plan,
    recall_plan,
    remember_plan,
    reserve,
    start,
)
from dovetail.kernels.passes.order import FCFS, GIVEN, LAF, SAF, SJF, SPF, key_of, sort_by_key
from dovetail.kernels.passes.rates import Rates, cheapest, next_bend, next_change, outlay
from dovetail.kernels.passes.rule import Common, sort_if_moving
from dovetail.kernels.planner.search import (
    BEST_AT,
    BEST_ORDER,
    CAME,
    FROM,
    JOBS,
    KEYS,
    LOW,
    NEW_AT,
    NEW_ORDER,
    NOW_END,
    NOW_SUM,
    SLOT,
    SORTED,
    STOOD,
    Space,
    anneal,
    keep_best,
    place,
    seeded,
)
from dovetail.kernels.planner.search import DUE_AT as UNTIL
from dovetail.kernels.planner.search import URGENT as HELD
from dovetail.kernels.seam import answers
from dovetail.kernels.state import ARRIVE, ESTIMATE, PLACE, SIZE, STARTED, WAITING, WAKE, Run, wake_at_next

# Rows of the search's space that mean something else here; their first numbers are of the pass. UNTIL: only what is
# paid and earned before counts. HELD: 1 if jobs may be held.

_0: int = np.int64(0)  # type: ignore[assignment]  # see timeline.py

MONEY_LISTS = (FCFS, -1, SJF, SAF, LAF, SPF, GIVEN)
"""Orders that a search begins with; -1: that of the standing plan; GIVEN: least power a processor first."""


class MoneyRule(NamedTuple):
    """A planner whose objective is money or carbon. The window has the jobs that are first in the rule's order."""

    common: Common
    window: int
    decodes: int
    seed: int
    hot: float
    cold: float
    hold_s: int
    """No job is held longer than this after its arrival."""
    wait: float
    """What a second of one job's wait costs."""
    tariff: float
    """What a second of a processor earns; 0: what is earned does not count."""
    horizon_s: int
    """Only what is paid and earned in this many seconds from now counts; NEVER: all of it."""
    rates: Rates
    space: Space


@inner
def _outlay(rule: MoneyRule, run: Run, local: int, at: int, wait: float) -> float:
    """What a job costs if it starts at an instant."""
    ints = rule.space.ints
    job = ints[JOBS, local]
    earns, length = rule.tariff * run.jobs[SIZE, job], run.jobs[ESTIMATE, job]
    return outlay(rule.rates, job, length, at, ints[CAME, local], wait, earns, ints[UNTIL, 0])


@inner
def _look_ahead(rule: MoneyRule, run: Run, local: int) -> bool:
    """Write the least that a job can cost alone, from its earliest start until the last for which it may be held, to
    LOW. Returns whether there may be a reason to hold it: for profit only if it loses money somewhere."""
    at, last = rule.space.ints[FROM, local], rule.space.ints[CAME, local] + rule.hold_s
    length = run.jobs[ESTIMATE, rule.space.ints[JOBS, local]]
    least = _outlay(rule, run, local, at, rule.wait)
    loses = _outlay(rule, run, local, at, 0.0) > 0.0
    begin = at
    while at < last:
        at = next_bend(rule.rates, at, length, last)
        least = min(least, _outlay(rule, run, local, at, rule.wait))
        loses = loses or _outlay(rule, run, local, at, 0.0) > 0.0
    rule.space.floats[LOW, local] = least
    return begin < last and (rule.tariff == 0.0 or loses)


@inner
def _excess_money(rule: MoneyRule, run: Run, local: int, at: int) -> float:
    return max(0.0, _outlay(rule, run, local, at, rule.wait) - rule.space.floats[LOW, local])


@inner
def _value_money(rule: MoneyRule, run: Run, n: int, order: Ints, at: Ints) -> float:
    total = 0.0
    for i in range(n):
        total += _excess_money(rule, run, order[i], at[i])
    return total


@inner
def _count_money(rule: MoneyRule, run: Run, n: int) -> None:
    """The least costs are those of the pass."""
    rule.space.floats[NOW_SUM, 0] = rule.space.floats[NOW_END, 0] = 0.0


@inner
def _no_price(rule: MoneyRule, cap: Any, run: Run, now: int, n: int, first: int, order: Ints, at: Ints) -> float:
    return 0.0


@inner
def _spot_money(rule: MoneyRule, cap: Any, run: Run, local: int) -> int:
    """The earliest fit; or, where a job may be held, where it costs least. A job that earns money is not held."""
    ints, floats = rule.space.ints, rule.space.floats
    job, came = ints[JOBS, local], ints[CAME, local]
    length = run.jobs[ESTIMATE, job]
    first = earliest_fit(cap, job, ints[FROM, local], length)
    if ints[HELD, 0] == 0:
        return first
    here = _outlay(rule, run, local, first, rule.wait)
    if here - floats[LOW, local] <= 1e-6 * abs(here):
        return first
    earns = rule.tariff * run.jobs[SIZE, job]
    if rule.tariff > 0.0 and _outlay(rule, run, local, first, 0.0) <= 0.0:
        return first
    floor = min(0.0, (rule.rates.watts[job] * rule.rates.lowest - earns) * length)
    return cheapest(
        rule.rates, cap, job, length, first, came + rule.hold_s, came, rule.wait, earns, ints[UNTIL, 0], floor
    )


@inner
def _list_order(rule: MoneyRule, run: Run, now: int, code: int, n: int) -> None:
    """Write all jobs in a list order to NEW_ORDER."""
    ints, key = rule.space.ints, rule.space.floats[KEYS]
    for i in range(n):
        job = ints[JOBS, i]
        size = run.jobs[SIZE, job]
        if code < 0:
            key[i] = float(ints[STOOD, i]) if ints[STOOD, i] >= 0 else 1e300
        else:
            key[i] = key_of(code, ints[CAME, i], size, run.jobs[ESTIMATE, job], now, rule.rates.watts[job] / size)
        ints[NEW_ORDER, i] = i
    sort_by_key(ints[NEW_ORDER], _0, n, key, ints[SORTED])


@inner
def _best_plan(rule: MoneyRule, cap: Any, run: Run, now: int, n: int) -> None:
    """Put the best plan that is found for the jobs of the window into BEST_*: no worse than the list plans, with some
    held, and with nobody held. The plan must be open, with nothing in it but what runs."""
    ints, space = rule.space.ints, rule.space
    base = space.plans[ints[SLOT, 0]]
    remember_plan(cap, base)
    held = False
    for i in range(n):
        ints[FROM, i] = earliest_fit(cap, ints[JOBS, i], now, run.jobs[ESTIMATE, ints[JOBS, i]])
        held = _look_ahead(rule, run, i) or held
    best = np.inf
    for ways in range(1 + held):
        ints[HELD, 0] = ways
        for code in MONEY_LISTS:
            _list_order(rule, run, now, np.int64(code), n)  # type: ignore[arg-type]
            recall_plan(cap, base)
            place(rule, cap, run, _0, n)
            found = _value_money(rule, run, n, ints[NEW_ORDER], ints[NEW_AT])
            if found < best:
                best = found
                keep_best(space, n, ints[NEW_ORDER], ints[NEW_AT])
        space.counts[0] += len(MONEY_LISTS)
    if best > 0.0:
        space.counts[0] += 1
        anneal(rule, cap, run, now, _0, n, rule.decodes)
    recall_plan(cap, base)


@inner
def _best_starts(rule: MoneyRule, cap: Any, run: Run, now: int, n: int, queue: Ints) -> int:
    """Search, and start the jobs whose turn has come in the best plan; then those beyond the window that fit beside it.
    Returns how many."""
    ints, jobs = rule.space.ints, run.jobs
    until = NEVER
    if rule.horizon_s < NEVER:
        until = next_change(rule.rates, now + rule.horizon_s)
    ints[UNTIL, 0] = until
    window = min(n, rule.window)
    for i in range(window):
        job = queue[i]
        ints[JOBS, i], ints[CAME, i], ints[STOOD, i] = job, jobs[ARRIVE, job], jobs[PLACE, job]
    open_plan(cap, now)
    seeded(rule.space, rule.seed, now, window)
    _best_plan(rule, cap, run, now, window)
    started = _0
    for i in range(window):
        job, at = ints[JOBS, ints[BEST_ORDER, i]], ints[BEST_AT, i]
        reserve(cap, job, at, jobs[ESTIMATE, job])
        jobs[PLACE, job] = at
        if at == now:
            start(cap, job, now, now + jobs[ESTIMATE, job])
            run.lists[STARTED, started] = job
            started += 1
    for i in range(window, n):
        job = queue[i]
        length = jobs[ESTIMATE, job]
        jobs[PLACE, job] = -1
        if not fits_now(cap, job) or not fits_plan(cap, job, now, length):
            continue
        earns = rule.tariff * jobs[SIZE, job]
        if rule.tariff > 0.0 and outlay(rule.rates, job, length, now, now, 0.0, earns, until) > 0.0:
            continue  # it would lose money now
        reserve(cap, job, now, length)
        start(cap, job, now, now + length)
        run.lists[STARTED, started] = job
        started += 1
    return started


@inner
def _decide_money(rule: MoneyRule, cap: Any, run: Run, now: int) -> int:
    n = run.info[WAITING]
    run.info[WAKE] = NEVER
    if n == 0:
        return _0
    queue, _ = sort_if_moving(run, rule, now)
    fits = False
    for i in range(n):
        fits = fits or fits_now(cap, queue[i])
    started = _best_starts(rule, cap, run, now, n, queue) if fits else _0
    wake_at_next(run, now, run.jobs[PLACE], False)
    return started


answers(
    MoneyRule,
    decide=_decide_money,
    spot=_spot_money,
    excess=_excess_money,
    value=_value_money,
    count_costs=_count_money,
    price=_no_price,
)
