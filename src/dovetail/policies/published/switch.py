"""Switch: a dispatcher that looks at the queue and lets another one decide (an open point of the dispatcher paper)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dovetail.errors import SettingError
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.policies.base import Policy, is_clairvoyant


@dataclass(frozen=True)
class Switch(Policy):
    """More than `jobs` waiting: `many` decides. Else `mixed`, if for somebody who waits not every kind of node will do;
    else `plain`. Each is asked as if it had always decided: what it promised before is not known to the others, so
    policies that keep promises are refused."""

    plain: Policy
    mixed: Policy
    many: Policy
    jobs: int = 100
    name: str = "switch"

    def __post_init__(self) -> None:
        if self.jobs < 0:
            raise SettingError(f"jobs={self.jobs}: must be a number of waiting jobs, not negative")
        for one in self.inner:
            kept = hasattr(one, "sweep") or hasattr(one, "guard") or getattr(one, "patient", None) is not None
            if kept or getattr(one, "relax", 0.0) != 0.0 or getattr(one, "slack", 0.0) != 0.0:
                raise SettingError(f"{one.name} keeps promises from pass to pass: switch cannot take turns with it")
            if getattr(one, "needs_site", False):
                raise SettingError(f"{one.name} plans hours ahead: switch cannot take turns with it")
            if is_clairvoyant(one) or isinstance(one, Switch):
                raise SettingError(f"{one.name}: switch lets policies decide that do not know the future, nor switch")

    @property
    def inner(self) -> tuple[Policy, ...]:
        """Those who may have to decide."""
        return self.plain, self.mixed, self.many

    @property
    def timed(self) -> bool:
        """Whether one of them watches the clock."""
        return any(getattr(one, "timed", False) for one in self.inner)

    def settings(self, named: Callable[[str], Policy]) -> dict[str, Callable[[str], Any]]:
        """What may stand behind the name. A policy's own settings are written NAME;SETTING=VALUE;..."""

        def inner(text: str) -> Policy:
            name, _, rest = text.partition(";")
            return named(f"{name}:{rest.replace(';', ',')}" if rest else name)

        return {"plain": inner, "mixed": inner, "many": inner, "jobs": int}

    def chosen(self, state: State) -> Policy:
        """Who decides at this instant."""
        if len(state.waiting) > self.jobs:
            return self.many
        if state.cluster is None or state.requests is None:
            return self.plain
        asked, waiting = state.requests, state.waiting
        somewhere_none = state.cluster.capacity.min(axis=0) == 0
        choosy = asked.kinds[waiting] != (1 << len(state.cluster.kinds)) - 1
        mixed = choosy.any() or (asked.need[waiting][:, somewhere_none] > 0).any()
        return self.mixed if bool(mixed) else self.plain

    def decide(self, state: State) -> Plan:
        return self.chosen(state).decide(state)
