"""Days planned for profit: at the start of each day one plan, which is then carried out; and the rules beside it.

After Optimizing Profit and Cooling Costs in HPC Cluster Scheduling: optimize/day has its problem and searches. Its
rules are lists, strict or not, by submission (EST), by run time (WT) and by profit; all put units on the first nodes.
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
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.names import choice, duration, number, setting, whole, yes_or_no
from dovetail.optimize.day.problem import Day, OnNodes, Searched, delay_search, in_order, multi_search, segments_of
from dovetail.optimize.window.cpsat import need_ortools
from dovetail.optimize.window.terms import DECODES, WINDOW
from dovetail.policies.base import BLIND, NO_LICENCES, Policy
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

    On nodes each unit of a job goes to the first that has room for it. `relax` is there as the paper defines it: jobs
    with several units stay on their nodes.
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
        "every": "plans starts to the second: it cannot run with --every",
        "charge": "plans starts to the second: its decisions take no time",
        "outages": BLIND,
        "licences": NO_LICENCES,
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

    def at(self, site: Site | None, workload: Workload, cluster: Cluster) -> Daily:
        if self.site is not None:
            return self
        if site is None:
            raise SettingError(untold(self.name))
        if site.tariff <= 0:
            raise SettingError(f"{site.name}: there is no profit without a tariff")
        draws = workload.draws_mw(site.rest_mw, site.busy_mw)
        return replace(self, site=site, draw_mw=draws, begin=int(workload.submit[0]) if len(workload) else 0)

    def decide(self, state: State) -> Plan:
        self.look_at(state)
        since = (state.now - self.begin) % DAY_S
        midnight = state.now - since + DAY_S
        today = self._planned(state, midnight) if since == 0 else state.standing
        expected = dict(today.expected)
        more = len(state.waiting) > 0 or len(state.future) > 0
        if self.known == "day":
            starts = [job for job, at in expected.items() if at <= state.now]
            for job in starts:
                del expected[job]
            wake = min([midnight, *expected.values()]) if more else None
            return replace(today, starts=starts, expected=expected, wake=wake)
        by_plan = ListPolicy(
            lambda now: [expected.get(job, NEVER) for job in now.waiting.tolist()], 1, place="first"
        )  # fmt: skip
        plan = by_plan.decide(state)
        for job in plan.starts:
            expected.pop(job, None)
        return replace(plan, promised={}, expected=expected, wake=midnight if more else None)

    def _planned(self, state: State, midnight: int) -> Plan:
        """When each job is to start today, and where; those that are not there do not."""
        day, jobs = self.day(state, midnight)
        if not len(jobs):
            return Plan()
        found = self._searched(day, len(state.future) > 0 or self.known == "submitted", state.seed)
        if self.see is not None:
            self.see(day, found)
        order = [i for i in np.argsort(found.starts, kind="stable").tolist() if found.starts[i] >= 0]
        expected = {int(jobs[i]): int(found.starts[i]) for i in order}
        if day.on is None:
            return Plan(expected=expected)
        first = day.on.requests.first
        nodes, devices = ({int(jobs[i]): row[first[i] : first[i + 1]].tolist() for i in order} for row in found.where)
        return Plan(expected=expected, nodes=nodes, devices=devices)

    def day(self, state: State, midnight: int) -> tuple[Day, Ints]:
        """The problem of the day, and which jobs it has."""
        if self.site is None:
            raise SettingError(untold(self.name))
        coming = state.future[state.submit[state.future] < midnight]
        jobs = np.concatenate([state.waiting, coming])
        here = np.concatenate([jobs, state.running])
        left = [state.expected_end(job) - state.now for job in state.running.tolist()]
        on = None
        if state.cluster is not None and state.requests is not None:
            if state.cluster.shared and self.by_solver:
                raise SettingError(f"{self.name}: CP-SAT does not share {state.cluster.shared}: choose another search")
            of = [(state.nodes[job], state.devices[job]) for job in state.running.tolist()]
            held = np.concatenate([np.empty((2, 0), np.int64), *of], axis=1)
            on = OnNodes(state.cluster, state.requests.of(here), held)
        problem = Day(
            self.site, segments_of(self.site, state.now, midnight), state.processors, len(jobs),
            np.maximum(state.submit[here], state.now), np.concatenate([state.estimate[jobs], left]).astype(np.int64),
            state.size[here], self.draw_mw[here], self.per_node, state.room_mw if len(state.draws_mw) else -1,
            self.tomorrow, on,
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


@dataclass(frozen=True)
class ByProfit(ListPolicy):
    """A list whose order is the profit of a job over its cost, the most first.

    Every job pays the same tariff for a processor-hour, so the order is that of the watts a processor, the fewest
    first, whatever the price and the tariff are.
    """

    order: str = "profit"
    name: str = "nonstrict-profit"
    needs_site: ClassVar[bool] = True
    static_keys: ClassVar[bool] = True
    user_keys: ClassVar[bool] = True
    mw: Ints = field(default_factory=lambda: np.empty(0, np.int64), repr=False, compare=False)
    """What a processor of each job draws."""

    def at(self, site: Site | None, workload: Workload, cluster: Cluster) -> ByProfit:
        if len(self.mw):
            return self
        if site is None:
            raise SettingError(untold(self.name))
        return replace(self, mw=workload.power_mw(site.busy_mw))

    def keys(self, state: State) -> Ints:
        if not len(self.mw):
            raise SettingError(untold(self.name))
        return self.mw[state.waiting]

    def to_compile(self) -> ByProfit:
        return replace(self, mw=np.ones(1, np.int64))


def _rules(kind: str, reserve: int | str) -> dict[str, Policy]:
    """The paper's rules: those that stop at the first job that does not fit, or those that skip it."""
    return {
        f"{kind}-est": ListPolicy("fcfs", reserve, place="first"),
        f"{kind}-wt": ListPolicy("sjf", reserve, place="first"),
        f"{kind}-profit": ByProfit(reserve=reserve, place="first"),
    }


NAMES: Final[Mapping[str, Policy]] = {
    "daily": Daily(), "multisearch": Daily(search="multi"), "delaysearch": Daily(search="delay"),
    "relaxationsearch": Daily(search="relax"), **_rules("strict", "strict"), **_rules("nonstrict", 0),
}  # fmt: skip

FAMILY: Final = (7, "From papers: days planned for profit")
USES: Final = {
    "daily": "plans a day at a time for profit; needs --energy",
    "multisearch": "daily by a search over many orders",
    "delaysearch": "multisearch that also delays jobs",
    "relaxationsearch": "multisearch, then a search by relaxation",
    "strict-est": "the paper's rules that it compares with; also strict-wt, strict-profit, nonstrict-est, -wt, -profit",
    "strict-wt": "strict, least wait first",
    "strict-profit": "strict, most profit first",
    "nonstrict-est": "gaps filled, shortest first",
    "nonstrict-wt": "gaps filled, least wait first",
    "nonstrict-profit": "gaps filled, most profit first",
}
"""When to use each, in a line."""
