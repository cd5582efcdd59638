"""The planner of money: in each pass, the best plan that a search over orders finds for profit, cost or carbon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.energy.rates import FREE, UNKNOWN, check_told, check_varies, of_jobs, rates_of
from dovetail.energy.series import HOUR_S
from dovetail.energy.site import MILLION, Site
from dovetail.errors import SettingError
from dovetail.kernels import state as layout
from dovetail.kernels.passes.order import FCFS, GIVEN
from dovetail.kernels.passes.rates import Rates
from dovetail.kernels.planner.money import MoneyRule
from dovetail.kernels.planner.search import no_space
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.names import choice, duration, number, setting
from dovetail.optimize.window.terms import COLD, DECODES, HEAT, HOT, WINDOW, check_heat
from dovetail.policies.base import AS_USUAL, Asked, Policy, RulePolicy, wake_of, written
from dovetail.units import DAY_S

MONEY: Final = ("profit", "cost", "carbon")
"""Objectives that are amounts of money or carbon."""
MOST_PRICE: Final = 1e12
YEAR_S: Final = 365 * DAY_S
PLANS_AHEAD: Final = {"every": "plans starts to the second: it cannot run with --every"}
"""What policies that wait for cheap hours cannot do."""


@dataclass(frozen=True)
class MoneyPlanner(RulePolicy):
    """Plans the waiting jobs anew in each pass and starts those whose turn has come.

    `objective`: `cost` and `carbon` are those of the jobs' energy, `profit` what the next `horizon_s` earn less what
    their energy costs. `wait` is what an hour of one job's wait costs beside: in the site's currency, or in kg of CO2;
    None: 1, and nothing for `profit`.
    Jobs wait for cheap hours where that is worth it, but none is held longer than `hold_s` after its arrival; so far
    ahead prices and weather are taken to be known. For `profit` only those are held that would lose money. `window`
    jobs are arranged, the first to come, or for `profit` those of which a processor earns most; the others start where
    they fit beside the plan. `decodes`, `hot` and `cold` are those of Planner.
    """

    objective: str = setting("cost", "what a plan saves or earns", choice(*MONEY))
    wait: float | None = setting(None, "what an hour of one job's wait costs beside", number(0, MOST_PRICE))
    hold_s: int = setting(DAY_S, "no job is held longer than this after its arrival", duration(0, YEAR_S))
    horizon_s: int | None = setting(None, "what the next ... earn and cost counts, for profit", duration(1, YEAR_S))
    decodes: int = setting(200, "plans tried in one pass", DECODES)
    window: int = setting(100, "jobs that are arranged; the others start where they fit beside", WINDOW)
    hot: float = setting(HOT, "temperature at the start of the annealing, in mean costs of a job", HEAT)
    cold: float = setting(COLD, "temperature at its end", HEAT)
    name: str = "plan"
    needs_site: ClassVar[bool] = True
    cannot: ClassVar[Mapping[str, str]] = PLANS_AHEAD
    holds: ClassVar[str] = "there is room for it now; the plan has it start in a better hour"
    rates: Rates = field(default=UNKNOWN, repr=False, compare=False)
    tariff: float = field(default=0.0, repr=False, compare=False)
    """What a second of a processor earns."""
    thirst: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    """Watts a processor of each job."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.horizon_s is not None and self.objective != "profit":
            raise SettingError(f"horizon: only for objective=profit; of {self.objective}, that of whole jobs counts")
        check_heat(self.hot, self.cold)

    def at(self, site: Site | None, workload: Workload, cluster: Cluster) -> MoneyPlanner:
        """The same, knowing what jobs draw, what it costs, at full load, and what they earn."""
        if len(self.rates.paid):
            return self
        saves = "carbon" if self.objective == "carbon" else "cost"
        rates = rates_of(site, workload, cluster.processors, saves, max(self.hold_s, self.horizon_s or 0), self.name)
        tariff = 0.0
        if self.objective != "profit":
            check_varies(site, rates, saves)
        elif site is not None:
            tariff = site.tariff / MILLION / 3600
            if tariff <= 0:
                raise SettingError(f"{site.name}: there is no profit without a tariff")
        return replace(self, rates=rates, tariff=tariff, thirst=rates.watts / np.maximum(workload.size, 1))

    @property
    def static_keys(self) -> bool:
        return self.objective == "profit"

    def keys(self, state: State) -> Any:
        return self.thirst[state.waiting] if self.static_keys else None

    def rule(self, asked: Asked = AS_USUAL) -> MoneyRule:
        check_told(self.rates, self.name)
        profit = self.objective == "profit"
        horizon_s = (HOUR_S if self.horizon_s is None else self.horizon_s) if profit else NEVER
        wait = (0.0 if profit else 1.0) if self.wait is None else self.wait
        return MoneyRule(
            self.common(asked, GIVEN if profit else FCFS), self.window, self.decodes, asked.seed, float(self.hot),
            float(self.cold), self.hold_s, wait / 3600, self.tariff, horizon_s, self.rates, no_space(),
        )  # fmt: skip

    def answer(self, state: State, run: layout.Run, starts: Ints) -> Plan:
        return foreseen(state, run, starts)

    def made(self, state: State) -> Plan:
        check_told(self.rates, self.name)
        return RulePolicy.made(replace(self, rates=of_jobs(self.rates, state)), state)

    def to_compile(self) -> MoneyPlanner:
        return replace(self, rates=FREE, thirst=np.zeros(1))


def foreseen(state: State, run: layout.Run, starts: Ints) -> Plan:
    """What a pass has decided that promises nothing: tomorrow may be cheaper."""
    run.jobs[layout.PLACE, starts] = -1
    expected = written(state, run, layout.PLACE)
    return Plan(state.waiting[starts].tolist(), expected=expected, wake=wake_of(run))


NAMES: Final[Mapping[str, Policy]] = {f"plan:objective={amount}": MoneyPlanner(objective=amount) for amount in MONEY}

FAMILY: Final = (4, "Money and carbon: jobs held for a better hour")
USES: Final = {
    "plan:objective=cost": "a planner that weighs the bill, carbon or profit against waits; needs --energy",
}
"""When to use each, in a line."""
