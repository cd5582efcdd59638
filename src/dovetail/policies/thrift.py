"""Thrift: jobs wait for cheap or clean hours as far as that is worth their wait."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import gcd
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dovetail.energy.cooling import ONE
from dovetail.energy.site import MILLION, Site
from dovetail.errors import SettingError
from dovetail.kernels import thrift as _  # noqa: F401 - how a ThriftRule decides
from dovetail.kernels.order import CODES
from dovetail.kernels.rules import ThriftRule
from dovetail.kernels.run import NEVER
from dovetail.model.cluster import PowerCap
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.policies.base import RulePolicy
from dovetail.units import DAY_S, parse_duration

SAVES: Final = ("cost", "carbon")
_WS_PER_MWH: Final = 3.6e9
_MOST_STEPS: Final = 1_000_000
_NO_SITE: Final = "thrift must know prices: `dovetail replay --energy SITE.toml` tells it, or replay(..., site=...)"
Floats = npt.NDArray[np.float64]


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
    watts: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    paid: Floats = field(default_factory=lambda: np.empty(0), repr=False, compare=False)
    begin: int = 0
    step_s: int = 1

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
        if site is None:
            raise SettingError(_NO_SITE)
        series, warm = site.price if self.saves == "cost" else site.carbon, site.temperature_mc
        if series.constant:
            raise SettingError(f"{site.name}: there is nothing to wait for: its {self.saves} is the same at all hours")
        # Where a job is not, its processors draw what idle ones do.
        watts = PowerCap(0, site.off.mw if site.off else site.idle_mw, site.busy_mw).draws(workload) / 1000
        step_s = series.step_s if warm.constant else gcd(series.step_s, warm.step_s, abs(series.begin - warm.begin))
        first = int(workload.submit[0]) if len(workload) else 0
        first -= (first - series.begin) % step_s
        last = int(workload.submit[-1]) + self.hold_s if len(workload) else 1
        # Replays go on after the last arrival; beyond twice the span the mean will do.
        times = np.arange(first, 2 * last - first + step_s, step_s, dtype=np.int64)
        if len(times) > _MOST_STEPS:
            raise SettingError(f"{site.name}: more than {_MOST_STEPS:,} steps of {step_s} s; make them longer")
        pue = site.cooling.at(np.full(len(times), processors * site.busy_mw), site.temperature_mc.at(times)) / ONE
        unit = MILLION if self.saves == "cost" else 1000
        rate = series.at(times) / unit * pue / _WS_PER_MWH
        paid = np.concatenate([[0.0], np.cumsum(rate * step_s)])
        return replace(self, watts=watts, paid=paid, begin=first, step_s=step_s)

    def rule(
        self, *, every_s: int = 0, bounded: bool = False, stop_for_news: bool = False, keep: bool = False, seed: int = 0
    ) -> ThriftRule:
        if not len(self.paid):
            raise SettingError(_NO_SITE)
        if every_s:
            raise SettingError("thrift plans starts to the second: it cannot run with --every")
        return ThriftRule(
            CODES[self.order], -1, NEVER, 0, stop_for_news, False, self.window, self.hold_s, self.wait / 3600,
            np.ascontiguousarray(self.watts), self.begin, self.step_s, self.paid,
            float(np.diff(self.paid).min() / self.step_s),
        )  # fmt: skip

    def decide(self, state: State) -> Plan:
        if not len(self.paid):
            raise SettingError(_NO_SITE)
        here = np.concatenate([state.waiting, state.running, state.ended])
        return RulePolicy.decide(replace(self, watts=self.watts[here]), state)

    def free_of_charge(self) -> Thrift:
        """The same where energy costs nothing: to compile it."""
        return replace(self, watts=np.zeros(1), paid=np.zeros(2))

    @staticmethod
    def settings() -> dict[str, Any]:
        """What can be said behind the name."""
        return {"saves": str, "wait": float, "hold": parse_duration, "window": int, "order": str}
