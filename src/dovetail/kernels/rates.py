"""What the power of a job costs, by when it runs."""

from __future__ import annotations

from typing import NamedTuple

from dovetail.kernels.compile import inner
from dovetail.kernels.run import Floats


class Rates(NamedTuple):
    """Steps of equal length, on each of which a watt costs the same for every second."""

    watts: Floats
    """What each job draws."""
    begin: int
    step_s: int
    paid: Floats
    """What a watt has cost from `begin` to the begin of each step; one more than there are steps. Before and after, it
    is the mean."""
    lowest: float
    """The least that a watt costs in a second."""


@inner
def _paid(rates: Rates, at: int) -> float:
    """What a watt has cost up to an instant."""
    steps = len(rates.paid) - 1
    step = (at - rates.begin) // rates.step_s
    if step < 0 or step >= steps:
        return rates.paid[steps] * ((at - rates.begin) / (steps * rates.step_s))
    within = (at - rates.begin - step * rates.step_s) / rates.step_s
    return rates.paid[step] + within * (rates.paid[step + 1] - rates.paid[step])


@inner
def energy_cost(rates: Rates, job: int, at: int, length: int) -> float:
    """What a job's energy costs if it starts at an instant and runs so long."""
    return rates.watts[job] * (_paid(rates, at + length) - _paid(rates, at))


@inner
def next_change(rates: Rates, now: int) -> int:
    """The first instant after `now` at which the rate may change."""
    return rates.begin + ((now - rates.begin) // rates.step_s + 1) * rates.step_s
