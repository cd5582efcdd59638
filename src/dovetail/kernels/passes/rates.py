"""What the power of a job costs, by when it runs."""

from __future__ import annotations

from typing import Any, NamedTuple

from dovetail.arrays import Floats
from dovetail.kernels.compile import inner
from dovetail.kernels.machine.capacity import earliest_fit


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
def outlay(rates: Rates, job: int, length: int, at: int, since: int, wait: float, earns: float, until: int) -> float:
    """What a job costs that starts at an instant and runs so long: its energy, and `wait` for each second since
    `since`, less what it `earns` a second. Of its run only what lies before `until` counts."""
    first, last = min(at, until), min(at + length, until)
    energy = rates.watts[job] * (_paid(rates, last) - _paid(rates, first))
    return energy - earns * (last - first) + wait * (at - since)


@inner
def next_change(rates: Rates, now: int) -> int:
    """The first instant after `now` at which the rate may change."""
    return rates.begin + ((now - rates.begin) // rates.step_s + 1) * rates.step_s


@inner
def next_bend(rates: Rates, at: int, length: int, last: int) -> int:
    """The first instant after `at` at which what a job of a length costs by its start may bend: its start or its end
    meets a change of the rate. No later than `last`."""
    return min(next_change(rates, at), next_change(rates, at + length) - length, last)


@inner
def cheapest(
    rates: Rates, cap: Any, job: int, length: int, first: int, last: int, since: int, wait: float, earns: float,
    until: int, floor: float,
) -> int:  # fmt: skip
    """Where a job that fits first at `first` costs least, of the earliest fits from each bend on until `last`. Nobody
    waits for less than a millionth of what it costs. `floor`: it costs no less, but for the wait.

    Between bends the cost is linear: where it is too high at both, nothing between them is looked at. `until` is never,
    or a change of the rate.
    """
    best, least = first, outlay(rates, job, length, first, since, wait, earns, until)
    little = 1e-6 * abs(least)
    at, here, tried = first, least, True
    while at < last and floor + wait * (at - since) < least - little:
        bend = next_bend(rates, at, length, last)
        there = outlay(rates, job, length, bend, since, wait, earns, until)
        if not tried and min(here, there) < least - little:
            fits = earliest_fit(cap, job, at, length)
            if fits > last:
                return best
            here = outlay(rates, job, length, fits, since, wait, earns, until)
            if here < least - little:
                best, least = fits, here
            if fits >= bend:
                at, tried = fits, True
                continue
        at, here, tried = bend, there, False
    if at == last and not tried and here < least - little and earliest_fit(cap, job, last, length) == last:
        best = last
    return best
