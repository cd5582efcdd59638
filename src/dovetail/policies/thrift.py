"""Thrift: jobs wait for cheap or clean hours as far as that is worth their wait."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

from dovetail.arrays import Ints
from dovetail.energy.rates import FREE, SAVES, UNKNOWN, check_told, check_varies, of_jobs, rates_of
from dovetail.energy.site import Site
from dovetail.kernels import state as layout
from dovetail.kernels.passes.order import CODES
from dovetail.kernels.passes.rates import Rates
from dovetail.kernels.passes.thrift import ThriftRule
from dovetail.model.cluster import Cluster
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.names import choice, duration, number, setting, whole
from dovetail.policies.base import AS_USUAL, Asked, Policy, RulePolicy
from dovetail.policies.energy_planner import MOST_PRICE, PLANS_AHEAD, YEAR_S, foreseen
from dovetail.policies.lists import ORDERS
from dovetail.units import DAY_S


@dataclass(frozen=True)
class Thrift(RulePolicy):
    """A list with every job reserved, each where its energy and its wait together cost least.

    `wait` is what an hour of one job's wait costs: in the site's currency, or, to save carbon, in kg of CO2. Prices and
    weather are those of the site: they are taken to be known as far as `hold_s` after a job's arrival, beyond which
    no job is held. `window`: how many jobs of a pass may wait for a cheap hour.
    """

    saves: str = setting("cost", "what is saved", choice(*SAVES))
    wait: float = setting(1.0, "what an hour of one job's wait costs, in currency or kg of CO2", number(0, MOST_PRICE))
    hold_s: int = setting(DAY_S, "no job is held longer than this after its arrival", duration(0, YEAR_S))
    window: int = setting(50, "jobs of a pass that may wait for a cheap hour", whole(0, 10**9, "jobs"))
    order: str = setting("fcfs", "order of the queue", choice(*ORDERS))
    name: str = "thrift"
    rates: Rates = field(default=UNKNOWN, repr=False, compare=False)
    needs_site: ClassVar[bool] = True
    cannot: ClassVar[Mapping[str, str]] = PLANS_AHEAD
    holds: ClassVar[str] = "there is room for it now; it is held for a cheaper hour or for jobs before it"

    def at(self, site: Site | None, workload: Workload, cluster: Cluster) -> Thrift:
        """The same, knowing what jobs draw and what it costs, at full load."""
        if len(self.rates.paid):
            return self
        rates = rates_of(site, workload, cluster.processors, self.saves, self.hold_s, self.name)
        check_varies(site, rates, self.saves)
        return replace(self, rates=rates)

    def rule(self, asked: Asked = AS_USUAL) -> ThriftRule:
        check_told(self.rates, self.name)
        common = self.common(asked, CODES[self.order])
        return ThriftRule(common, self.window, self.hold_s, self.wait / 3600, self.rates)

    def answer(self, state: State, run: layout.Run, starts: Ints) -> Plan:
        return foreseen(state, run, starts)

    def made(self, state: State) -> Plan:
        check_told(self.rates, self.name)
        return RulePolicy.made(replace(self, rates=of_jobs(self.rates, state)), state)

    def to_compile(self) -> Thrift:
        return replace(self, rates=FREE)


NAMES: Final[Mapping[str, Policy]] = {"thrift": Thrift()}

FAMILY: Final = (4, "Money and carbon: jobs held for a better hour")
USES: Final = {
    "thrift": "holds jobs while electricity is dear, for as long as you allow; needs --energy",
}
"""When to use each, in a line."""
