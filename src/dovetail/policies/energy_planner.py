"""The planner of money: in each pass, the best plan that a search over orders finds for profit, cost or carbon."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final

import numpy as np

from dovetail.energy.rates import FREE, UNKNOWN, check_told, check_varies, of_jobs, rates_of
from dovetail.energy.series import HOUR_S
from dovetail.energy.site import MILLION, Site
from dovetail.errors import SettingError
from dovetail.kernels.passes.order import FCFS, GIVEN
from dovetail.kernels.passes.rates import Rates
from dovetail.kernels.passes.rules import MoneyRule
from dovetail.kernels.planner import money as _  # noqa: F401 - how a MoneyRule decides
from dovetail.kernels.planner.plan import no_space
from dovetail.kernels.state import NEVER, Floats
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.optimize.window.terms import COLD, HOT, check_budget
from dovetail.policies.base import RulePolicy
from dovetail.units import DAY_S, parse_duration

MONEY: Final = ("profit", "cost", "carbon")
"""Objectives that are amounts of money or carbon."""


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

    objective: str = "cost"
    wait: float | None = None
    hold_s: int = DAY_S
    horizon_s: int | None = None
    decodes: int = 200
    window: int = 100
    hot: float = HOT
    cold: float = COLD
    name: str = "plan"
    needs_site: ClassVar[bool] = True
    rates: Rates = field(default=UNKNOWN, repr=False, compare=False)
    tariff: float = field(default=0.0, repr=False, compare=False)
    """What a second of a processor earns."""
    thirst: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    """Watts a processor of each job."""

    def __post_init__(self) -> None:
        if self.objective not in MONEY:
            raise SettingError(f"objective={self.objective}: choose from {', '.join(MONEY)}")
        if self.wait is not None and not 0 <= self.wait < 1e12:
            raise SettingError(f"wait={self.wait}: must be what an hour of wait costs, not negative")
        if not 0 <= self.hold_s <= 365 * DAY_S:
            raise SettingError(f"hold={self.hold_s} s: must not be negative, nor above a year")
        if self.horizon_s is not None and self.objective != "profit":
            raise SettingError(f"horizon: only for objective=profit; of {self.objective}, that of whole jobs counts")
        if self.horizon_s is not None and not 0 < self.horizon_s <= 365 * DAY_S:
            raise SettingError(f"horizon={self.horizon_s} s: must be above 0, and at most a year")
        check_budget(self.decodes, self.window, self.hot, self.cold)

    def at(self, site: Site | None, workload: Workload, processors: int) -> MoneyPlanner:
        """The same, knowing what jobs draw, what it costs, at full load, and what they earn."""
        if len(self.rates.paid):
            return self
        saves = "carbon" if self.objective == "carbon" else "cost"
        rates = rates_of(site, workload, processors, saves, max(self.hold_s, self.horizon_s or 0), self.name)
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

    def rule(
        self, *, every_s: int = 0, bounded: bool = False, stop_for_news: bool = False, keep: bool = False, seed: int = 0
    ) -> MoneyRule:
        check_told(self.rates, self.name)
        if every_s:
            raise SettingError(f"{self.name} plans starts to the second: it cannot run with --every")
        profit = self.objective == "profit"
        horizon_s = (HOUR_S if self.horizon_s is None else self.horizon_s) if profit else NEVER
        wait = (0.0 if profit else 1.0) if self.wait is None else self.wait
        return MoneyRule(
            GIVEN if profit else FCFS, -1, NEVER, 0, stop_for_news, False, self.window, self.decodes, seed,
            float(self.hot), float(self.cold), self.hold_s, wait / 3600, self.tariff, horizon_s, self.rates,
            no_space(),
        )  # fmt: skip

    def decide(self, state: State) -> Plan:
        check_told(self.rates, self.name)
        return RulePolicy.decide(replace(self, rates=of_jobs(self.rates, state)), state)

    def to_compile(self) -> MoneyPlanner:
        return replace(self, rates=FREE, thirst=np.zeros(1))

    @staticmethod
    def settings() -> dict[str, Any]:
        """What can be said behind the name."""
        return {
            "objective": str, "wait": float, "hold": parse_duration, "horizon": parse_duration, "decodes": int,
            "window": int, "hot": float, "cold": float,
        }  # fmt: skip
