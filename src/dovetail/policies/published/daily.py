"""Days planned for profit: at the start of each day one plan, which is then carried out.

After Optimizing Profit and Cooling Costs in HPC Cluster Scheduling: optimize/day has its problem and searches.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import numpy as np

from dovetail.arrays import NEVER, Ints
from dovetail.energy.rates import untold
from dovetail.energy.site import Site
from dovetail.errors import SettingError
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.names import choice, duration, number, setting, whole, yes_or_no
from dovetail.optimize.day.problem import Day, Searched, delay_search, in_order, multi_search, segments_of
from dovetail.optimize.window.cpsat import need_ortools
from dovetail.optimize.window.terms import DECODES, WINDOW
from dovetail.policies.base import COUNTS, Policy
from dovetail.policies.lists import ListPolicy
from dovetail.units import DAY_S, MOST_SECONDS


@dataclass(frozen=True)
class Daily(Policy):
    """At the start of each day (counted from the first submission), the jobs that may start today are planned for the
    day's profit at the site.

    `known`: with `day`, today's submissions are known at the start of the day, and run times: the policy is clairvoyant
    and its plan is carried out to the second. With `submitted`, only waiting jobs are planned; jobs are then started as
    EASY would, in the order of the plan, with today's arrivals behind.

    `search`: `multi` takes the best of 22 orders; `delay` goes on from there and holds job after job back by `delay_s`,
    `decodes` plans in all; `relax` goes on with CP-SAT, for `deterministic` of its own seconds; `cp` is CP-SAT from
    nothing, and where it finds no plan in time, jobs are placed in order of submission. CP-SAT plans the first `window`
    jobs. On days after the last submission `multi` is all.
    """

    known: str = setting("day", "whether the submissions of a day are known at its start", choice("day", "submitted"))
    search: str = setting("multi", "how a day is planned", choice("multi", "delay", "relax", "cp"))
    decodes: int = setting(1000, "plans that `delay` tries", DECODES)
    delay_s: int = setting(3600, "how far `delay` holds a job back", duration(1, MOST_SECONDS))
    deterministic: float = setting(1.0, "limit of CP-SAT, in its own seconds of work", number(0, 1e6, "s", above=True))
    window: int = setting(1500, "jobs that CP-SAT plans", WINDOW)
    per_node: int = setting(32, "processors of a node, whose power is one", whole(1, 10**6))
    tomorrow: bool = setting(False, "count what jobs earn after midnight too", yes_or_no())
    name: str = "daily"
    needs_site: ClassVar[bool] = True
    cannot: ClassVar[Mapping[str, str]] = {
        "nodes": COUNTS,
        "every": "plans starts to the second: it cannot run with --every",
        "charge": "plans starts to the second: its decisions take no time",
    }
    site: Site | None = field(default=None, repr=False, compare=False)
    draw_mw: Ints = field(default_factory=lambda: np.empty(0, np.int64), repr=False, compare=False)
    begin: int = 0
    see: Callable[[Day, Searched], None] | None = field(default=None, repr=False, compare=False)
    """Shown every day that was planned, and its plan."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tomorrow and self.search in ("cp", "relax"):
            raise SettingError(f"tomorrow=yes: search={self.search} counts the profit of today alone")

    @property
    def clairvoyant(self) -> bool:
        return self.known == "day"

    @property
    def by_solver(self) -> bool:
        return self.search in ("relax", "cp")

    def at(self, site: Site | None, workload: Workload, processors: int) -> Daily:
        if self.site is not None:
            return self
        if site is None:
            raise SettingError(untold(self.name))
        if site.tariff <= 0:
            raise SettingError(f"{site.name}: there is no profit without a tariff")
        draws = workload.draws_mw(site.rest_mw, site.busy_mw)
        return replace(self, site=site, draw_mw=draws, begin=int(workload.submit[0]) if len(workload) else 0)

    def decide(self, state: State) -> Plan:
        since = (state.now - self.begin) % DAY_S
        midnight = state.now - since + DAY_S
        expected = self._planned(state, midnight) if since == 0 else dict(state.standing.expected)
        more = len(state.waiting) > 0 or len(state.future) > 0
        if self.known == "day":
            starts = [job for job, at in expected.items() if at <= state.now]
            for job in starts:
                del expected[job]
            wake = min([midnight, *expected.values()]) if more else None
            return Plan(starts, expected=expected, wake=wake)
        plan = ListPolicy(lambda now: [expected.get(job, NEVER) for job in now.waiting.tolist()], 1).decide(state)
        for job in plan.starts:
            expected.pop(job, None)
        return Plan(plan.starts, expected=expected, wake=midnight if more else None)

    def _planned(self, state: State, midnight: int) -> dict[int, int]:
        """When each job is to start today; those that are not there do not."""
        day, jobs = self.day(state, midnight)
        if not len(jobs):
            return {}
        found = self._searched(day, len(state.future) > 0 or self.known == "submitted", state.seed)
        if self.see is not None:
            self.see(day, found)
        order = np.argsort(found.starts, kind="stable")
        return {int(jobs[i]): int(found.starts[i]) for i in order.tolist() if found.starts[i] >= 0}

    def day(self, state: State, midnight: int) -> tuple[Day, Ints]:
        """The problem of the day, and which jobs it has."""
        if self.site is None:
            raise SettingError(untold(self.name))
        coming = state.future[state.submit[state.future] < midnight]
        jobs = np.concatenate([state.waiting, coming])
        here = np.concatenate([jobs, state.running])
        left = [state.expected_end(job) - state.now for job in state.running.tolist()]
        problem = Day(
            self.site, segments_of(self.site, state.now, midnight), state.processors, len(jobs),
            np.maximum(state.submit[here], state.now), np.concatenate([state.estimate[jobs], left]).astype(np.int64),
            state.size[here], self.draw_mw[here], self.per_node, state.room_mw if len(state.draws_mw) else -1,
            self.tomorrow,
        )  # fmt: skip
        return problem, jobs

    def _searched(self, day: Day, coming: bool, seed: int) -> Searched:
        if self.search == "cp" and coming:
            return self._solved(day, None, seed) or in_order(day)
        first = multi_search(day)
        if self.search == "delay" and coming:
            return delay_search(day, first, decodes=self.decodes, delay_s=self.delay_s)
        if self.search == "relax" and coming:
            return self._solved(day, first, seed) or first
        return first

    def _solved(self, day: Day, begin: Searched | None, seed: int) -> Searched | None:
        need_ortools()
        from dovetail.optimize.day.cpsat import solve_day

        return solve_day(day, begin, deterministic_s=self.deterministic, window=self.window, seed=seed)


NAMES: Final[Mapping[str, Policy]] = {"daily": Daily()}
