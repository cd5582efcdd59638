"""The least policy there is, for tests of engines and checks."""

from __future__ import annotations

from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.policies.base import Policy


def first_fits(state: State) -> Plan:
    """Start whatever has processors, in order of arrival."""
    starts, free = [], state.free
    for job in state.waiting.tolist():
        if state.size[job] <= free:
            starts.append(job)
            free -= int(state.size[job])
    return Plan(starts=starts)


class FirstFits(Policy):
    name = "first-fits"

    def decide(self, state: State) -> Plan:
        return first_fits(state)
