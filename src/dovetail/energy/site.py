"""Site: what a machine draws, how it is cooled, and what its hours cost and earn. All numbers are whole."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Final

from dovetail.energy.cooling import ONE, Cooling, constant
from dovetail.energy.series import Hours, always

MILLION: Final = 1_000_000
"""Money is counted in millionths of the currency."""


@dataclass(frozen=True)
class Off:
    """Idle nodes are switched off. Each is woken in time for the next job that it gets, `wake_s` before."""

    after_s: int
    """How long a node stays on while nothing runs on it."""
    wake_s: int
    """How long before its next job it is on again, at idle power."""
    processors: int = 1
    """Processors of a node, where the cluster does not say."""
    mw: int = 0
    """What a processor of a node that is off draws, in milliwatts."""


@dataclass(frozen=True)
class Site:
    """Powers are in milliwatts a processor."""

    name: str
    busy_mw: int
    """A job's, where the workload does not say (`power_mw`)."""
    idle_mw: int = 0
    off: Off | None = None
    cooling: Cooling = field(default_factory=lambda: constant(ONE))
    temperature_mc: Hours = field(default_factory=lambda: always(20_000))
    """Outside, in thousandths of a degree Celsius."""
    price: Hours = field(default_factory=lambda: always(0))
    """Of a megawatt-hour, in millionths of the currency; may be below 0."""
    carbon: Hours = field(default_factory=lambda: always(0))
    """Of a megawatt-hour, in grams."""
    tariff: int = 0
    """What a processor-hour earns, in millionths of the currency."""
    currency: str = "EUR"

    def digest(self) -> str:
        """Hash of all that it says."""
        h = hashlib.sha256()
        series = (self.temperature_mc, self.price, self.carbon)
        plain = (self.name, self.busy_mw, self.idle_mw, self.off, self.tariff, self.currency, self.cooling.coldest_c)
        h.update(repr((plain, self.cooling.pue.shape, [(one.begin, one.step_s) for one in series])).encode())
        for column in (self.cooling.pue, *(one.values for one in series)):
            h.update(column.astype("<i8").tobytes())
        return h.hexdigest()[:16]

    @property
    def rest_mw(self) -> int:
        """What a processor draws that has had nothing to run for long."""
        return self.off.mw if self.off else self.idle_mw
