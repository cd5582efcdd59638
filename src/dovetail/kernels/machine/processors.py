"""The counted capacity model: a number of processors (and of a few other resources), any of which will do.

`running` is the profile of what runs, to its expected ends; it is kept from pass to pass. A running job past its
expected end has already given its share back there, so at `now` itself the profile may show more than is free:
`free` is the truth for this instant, and a plan counts such jobs as ending one second from now.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.timeline import (
    GIVE,
    TAKE,
    Profile,
    advance,
    change,
    clear,
    copy,
    earliest,
    entries_most,
    first_enough,
    first_short,
    free_at,
    give_back,
    holds,
    new_profile,
)
from dovetail.kernels.seam import answers

_NEVER: int = np.int64(NEVER)  # type: ignore[assignment]


class Counted(NamedTuple):
    """Arrays of a counted machine; the caller owns them."""

    need: Ints
    """What each job needs: K per job."""
    free: Ints
    """K free now, then K that the job in the shadow leaves free when it starts."""
    running: Profile
    plan: Profile

    def copied(self) -> Counted:
        """The same machine in the same state, on its own; what jobs need is shared."""
        running, plan = (p._replace(mem=p.mem.copy()) for p in (self.running, self.plan))
        return self._replace(free=self.free.copy(), running=running, plan=plan)

    def larger(self) -> Counted:
        """The same with room for twice as many jobs."""
        return self._replace(running=_larger(self.running), plan=_larger(self.plan))

    def memory(self) -> Ints:
        """Memory for a plan (remember_plan)."""
        return new_profile(entries_most(self.plan), len(self.plan.width)).mem


def _larger(profile: Profile) -> Profile:
    new = new_profile(2 * entries_most(profile), len(profile.width))
    copy(profile, new)
    return new


def new_counted(need: Ints, total: Ints, entries: int, plan_entries: int) -> Counted:
    """An idle machine with the given totals (K of them), with room for so many profile entries."""
    k = len(total)
    running, plan = new_profile(entries, k), new_profile(plan_entries, k)
    clear(running, 0, total)
    clear(plan, 0, total)
    return Counted(need, np.concatenate([total, np.zeros(k, np.int64)]), running, plan)


@inner
def _fits_now(cap: Counted, job: int) -> bool:
    k_n = len(cap.running.width)
    for k in range(k_n):
        if cap.need[job * k_n + k] > cap.free[k]:
            return False
    return True


@inner
def _alike(cap: Counted, job: int, other: int) -> bool:
    k_n = len(cap.running.width)
    for k in range(k_n):
        if cap.need[job * k_n + k] != cap.need[other * k_n + k]:
            return False
    return True


@inner
def _spare(cap: Counted) -> int:
    return cap.free[0]


@inner
def _start(cap: Counted, job: int, now: int, end: int) -> None:
    k_n = len(cap.running.width)
    for k in range(k_n):
        cap.free[k] -= cap.need[job * k_n + k]
    advance(cap.running, now)
    change(cap.running, now, end, cap.need, job * k_n, TAKE)


@inner
def _release(cap: Counted, job: int, now: int, end: int) -> None:
    k_n = len(cap.running.width)
    for k in range(k_n):
        cap.free[k] += cap.need[job * k_n + k]
    advance(cap.running, now)
    give_back(cap.running, now, end, cap.need, job * k_n)


@inner
def _prolong(cap: Counted, job: int, now: int, end: int) -> None:
    advance(cap.running, now)
    change(cap.running, now, end, cap.need, job * len(cap.running.width), TAKE)


@inner
def _shadow(cap: Counted, job: int, now: int) -> int:
    # What runs only ever ends, so from now + 1 on the profile never falls: the first fit is a fit for ever.
    k_n = len(cap.running.width)
    at = earliest(cap.running, now + 1, GIVE, cap.need, job * k_n)
    for k in range(k_n):
        cap.free[k_n + k] = free_at(cap.running, at, k) - cap.need[job * k_n + k]
    return at


@inner
def _beside(cap: Counted, job: int, end: int, shadow: int) -> bool:
    k_n = len(cap.running.width)
    if end <= shadow:
        return True
    for k in range(k_n):
        if cap.need[job * k_n + k] > cap.free[k_n + k]:
            return False
    return True


@inner
def _spare_beside(cap: Counted) -> int:
    return cap.free[len(cap.running.width)]


@inner
def _take_beside(cap: Counted, job: int) -> None:
    k_n = len(cap.running.width)
    for k in range(k_n):
        cap.free[k_n + k] -= cap.need[job * k_n + k]


@inner
def _open_plan(cap: Counted, now: int) -> None:
    k_n = len(cap.running.width)
    advance(cap.running, now)
    copy(cap.running, cap.plan)
    late = False
    for k in range(k_n):  # the place for what is left beside a shadow is not in use now
        cap.free[k_n + k] = free_at(cap.plan, now, k) - cap.free[k]
        late = late or cap.free[k_n + k] != 0
    if late:
        change(cap.plan, now, now + 1, cap.free, k_n, TAKE)


@inner
def _earliest_fit(cap: Counted, job: int, at: int, length: int) -> int:
    return earliest(cap.plan, at, length, cap.need, job * len(cap.running.width))


@inner
def _fits_plan(cap: Counted, job: int, at: int, length: int) -> bool:
    return holds(cap.plan, at, at + length, cap.need, job * len(cap.running.width))


@inner
def _next_room(cap: Counted, job: int, at: int) -> int:
    return first_enough(cap.plan, at, cap.need, job * len(cap.running.width))


@inner
def _next_lack(cap: Counted, job: int, at: int) -> int:
    return first_short(cap.plan, at, cap.need, job * len(cap.running.width))


@inner
def _reserve(cap: Counted, job: int, at: int, length: int) -> None:
    change(cap.plan, at, at + length, cap.need, job * len(cap.running.width), TAKE)


@inner
def _unreserve(cap: Counted, job: int, at: int, length: int) -> None:
    give_back(cap.plan, at, at + length, cap.need, job * len(cap.running.width))


@inner
def _advance_plan(cap: Counted, now: int) -> None:
    advance(cap.plan, now)


@inner
def _remember_plan(cap: Counted, memory: Ints) -> None:
    copy(cap.plan, Profile(memory, cap.plan.width))


@inner
def _recall_plan(cap: Counted, memory: Ints) -> None:
    copy(Profile(memory, cap.plan.width), cap.plan)


@inner
def _names_nodes(cap: Counted) -> bool:
    return False


@inner
def _room(cap: Counted, running: int, jobs: int) -> bool:
    # A running job is one instant of a profile, its end; a reservation is two. Two more are now and now + 1.
    most = min(entries_most(cap.running), entries_most(cap.plan))
    return running + 2 * jobs + 4 <= most


@inner
def _nothing(cap: Counted, job: int) -> None:
    pass


@inner
def _due(cap: Counted, job: int, now: int) -> None:
    pass


@inner
def _shaken(cap: Counted) -> bool:
    return False


@inner
def _next_event(cap: Counted) -> int:
    return _NEVER


@inner
def _happen(cap: Counted, now: int) -> None:
    pass


@inner
def _ahead(cap: Counted) -> bool:
    return False


answers(
    Counted,
    fits_now=_fits_now,
    alike=_alike,
    spare=_spare,
    start=_start,
    release=_release,
    prolong=_prolong,
    shadow=_shadow,
    beside=_beside,
    spare_beside=_spare_beside,
    take_beside=_take_beside,
    open_plan=_open_plan,
    earliest_fit=_earliest_fit,
    fits_plan=_fits_plan,
    next_room=_next_room,
    next_lack=_next_lack,
    reserve=_reserve,
    unreserve=_unreserve,
    advance_plan=_advance_plan,
    remember_plan=_remember_plan,
    recall_plan=_recall_plan,
    names_nodes=_names_nodes,
    room=_room,
    fits_again=_fits_plan,
    reserve_again=_reserve,
    keep_place=_nothing,
    back_to_kept=_nothing,
    due=_due,
    shaken=_shaken,
    next_event=_next_event,
    happen=_happen,
    ahead=_ahead,
)
