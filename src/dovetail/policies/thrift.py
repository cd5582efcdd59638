"""Thrift: jobs wait for cheap or clean hours as far as that is worth their wait."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

from dovetail.energy.rates import FREE, SAVES, UNKNOWN, check_told, check_varies, of_jobs, rates_of
from dovetail.energy.site import Site
from dovetail.errors import SettingError
from dovetail.kernels.passes import thrift as _  # noqa: F401 - how a ThriftRule decides
from dovetail.kernels.passes.order import CODES
from dovetail.kernels.passes.rates import Rates
from dovetail.kernels.passes.rules import ThriftRule
from dovetail.kernels.state import NEVER
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.policies.base import RulePolicy
from dovetail.units import DAY_S, parse_duration


@dataclass(frozen=True)
class Thrift(RulePolicy):
    """A list with everybody reserved, each where its energy and its wait together cost least.

    `wait` is what an hour of one job's wait costs: in the site's currency, or, to save carbon, in kg of CO2. Prices and
    weather are those of the site: they are taken to be known as far as `hold_s` after a job's arrival, beyond which
    nobody is held. `window`: how many jobs of a pass may wait for a cheap hour.
    """

    saves: str = "cost"
    wait: float = 1.0
    hold_s: int = DAY_S
    window: int = 50
    order: str = "fcfs"
    name: str = "thrift"
    needs_site: ClassVar[bool] = True
    rates: Rates = field(default=UNKNOWN, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.saves not in SAVES:
            raise SettingError(f"saves={self.saves}: choose from {', '.join(SAVES)}")
        if not 0 <= self.wait < 1e12:
            raise SettingError(f"wait={self.wait}: must be what an hour of wait costs, not negative")
        if self.order not in CODES:
            raise SettingError(f"order={self.order}: choose from {', '.join(CODES)}")
        if self.window < 0 or not 0 <= self.hold_s <= 365 * DAY_S:
            raise SettingError(f"window={self.window}, hold={self.hold_s} s: must not be negative, nor above a year")

    def at(self, site: Site | None, workload: Workload, processors: int) -> Thrift:
        """The same, knowing what jobs draw and what it costs, at full load."""
        if len(self.rates.paid):
            return self
        rates = rates_of(site, workload, processors, self.saves, self.hold_s, "thrift")
        check_varies(site, rates, self.saves)
        return replace(self, rates=rates)

    def rule(
        self, *, every_s: int = 0, bounded: bool = False, stop_for_news: bool = False, keep: bool = False, seed: int = 0
    ) -> ThriftRule:
        check_told(self.rates, "thrift")
        if every_s:
            raise SettingError("thrift plans starts to the second: it cannot run with --every")
        return ThriftRule(
            CODES[self.order], -1, NEVER, 0, stop_for_news, False, self.window, self.hold_s, self.wait / 3600,
            self.rates,
        )  # fmt: skip

    def decide(self, state: State) -> Plan:
        check_told(self.rates, "thrift")
        return RulePolicy.decide(replace(self, rates=of_jobs(self.rates, state)), state)

    def to_compile(self) -> Thrift:
        return replace(self, rates=FREE)

    @staticmethod
    def settings() -> dict[str, Any]:
        """What can be said behind the name."""
        return {"saves": str, "wait": float, "hold": parse_duration, "window": int, "order": str}
