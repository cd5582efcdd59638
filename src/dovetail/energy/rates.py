"""What a site's hours cost, as policies that know of it see them."""

from __future__ import annotations

from math import gcd
from typing import Final

import numpy as np

from dovetail.energy.cooling import ONE
from dovetail.energy.site import MILLION, Site
from dovetail.errors import SettingError
from dovetail.kernels.passes.rates import Rates
from dovetail.model.state import State
from dovetail.model.workload import Workload

SAVES: Final = ("cost", "carbon")
_WS_PER_MWH: Final = 3.6e9
_MOST_STEPS: Final = 1_000_000

UNKNOWN: Final = Rates(np.empty(0), 0, 1, np.empty(0), 0.0)
"""Of a policy that does not know its site yet."""
FREE: Final = Rates(np.zeros(1), 0, 1, np.zeros(2), 0.0)
"""Where energy costs nothing."""


def rates_of(site: Site | None, workload: Workload, processors: int, saves: str, ahead_s: int, name: str) -> Rates:
    """What jobs draw, and what a watt costs at full load (or: the carbon of it), from the first submission to `ahead_s`
    after the last and as long again."""
    if site is None:
        raise SettingError(untold(name))
    series, warm = site.price if saves == "cost" else site.carbon, site.temperature_mc
    # Where a job is not, its processors draw what idle ones do.
    watts = workload.draws_mw(site.rest_mw, site.busy_mw) / 1000
    lead = warm if series.constant else series  # where its steps begin
    if series.constant or warm.constant:
        step_s = lead.step_s
    else:
        step_s = gcd(series.step_s, warm.step_s, abs(series.begin - warm.begin))
    first = int(workload.submit[0]) if len(workload) else 0
    first -= (first - lead.begin) % step_s
    last = int(workload.submit[-1]) + ahead_s if len(workload) else 1
    # Replays go on after the last arrival; beyond twice the span the mean will do.
    end = 2 * last - first + step_s
    if end - first > _MOST_STEPS * step_s:
        raise SettingError(f"{site.name}: more than {_MOST_STEPS:,} steps of {step_s} s; make them longer")
    times = np.arange(first, end, step_s, dtype=np.int64)
    pue = site.cooling.at(np.full(len(times), processors * site.busy_mw), warm.at(times)) / ONE
    unit = MILLION if saves == "cost" else 1000
    rate = series.at(times) / unit * pue / _WS_PER_MWH
    paid = np.concatenate([[0.0], np.cumsum(rate * step_s)])
    return Rates(np.ascontiguousarray(watts), first, step_s, paid, float(rate.min()))


def check_varies(site: Site | None, rates: Rates, saves: str) -> None:
    """Refuse to wait for cheap hours where all cost the same, cooling included."""
    if site is None or not (site.price if saves == "cost" else site.carbon).constant:
        return
    if not bool(np.ptp(np.diff(rates.paid)) > 1e-9 * np.abs(np.diff(rates.paid)).max()):
        raise SettingError(f"{site.name}: there is nothing to wait for: its {saves} is the same at all hours")


def check_told(rates: Rates, name: str) -> None:
    """Refuse a policy that decides before it knows its site."""
    if not len(rates.paid):
        raise SettingError(untold(name))


def of_jobs(rates: Rates, state: State) -> Rates:
    """The rates of the jobs of one instant, in the order in which a rule gets them."""
    here = np.concatenate([state.waiting, state.running, state.ended])
    return rates._replace(watts=rates.watts[here])


def untold(name: str) -> str:
    """What is wrong if a policy was not given its site, and what to do."""
    return f"{name} must know prices: `dovetail replay --energy SITE.toml` tells it, or replay(..., site=...)"
