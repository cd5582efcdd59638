"""Switch: a dispatcher that looks at the queue and lets another one decide (an open point of the dispatcher paper)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from dovetail.errors import SettingError
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.names import Kind, setting, whole
from dovetail.policies.base import NO_CAP, NO_LICENCES, Policy
from dovetail.policies.lists import ListPolicy
from dovetail.policies.published.dispatch import NAMES as NAMED

_POLICY: Final = Kind(str, "must be a policy", nested=True)
SHORTEST: Final = ListPolicy("sjf", 1, place="scarce", name="sjf-easy:place=scarce")


@dataclass(frozen=True)
class Switch(Policy):
    """More than `jobs` waiting: `many` decides. Else `mixed`, if not every kind of node will do for every waiting job;
    else `plain`. Each is asked as if it had always decided: what it promised before is not known to the others, so
    policies that keep promises are refused."""

    plain: Policy = setting(NAMED["hcp19"], "decides where any node will do for every waiting job", _POLICY)
    mixed: Policy = setting(NAMED["pcp21"], "decides where not every kind of node will do", _POLICY)
    many: Policy = setting(SHORTEST, "decides where many jobs wait", _POLICY)
    jobs: int = setting(100, "more waiting jobs than this are many", whole(0, 10**9, "jobs"))
    name: str = "switch"

    def __post_init__(self) -> None:
        super().__post_init__()
        for one in self.deciders:
            if one.keeps_promises:
                raise SettingError(f"{one.name} keeps promises from pass to pass: switch cannot take turns with it")
            if one.needs_site:
                raise SettingError(f"{one.name} plans hours ahead: switch cannot take turns with it")
            if one.clairvoyant or one.deciders != (one,):
                raise SettingError(f"{one.name}: switch lets policies decide that do not know the future, nor switch")

    @property
    def cannot(self) -> Mapping[str, str]:
        return {"cap": NO_CAP, "licences": NO_LICENCES}

    @property
    def deciders(self) -> tuple[Policy, ...]:
        """The policies that may have to decide."""
        return self.plain, self.mixed, self.many

    @property
    def timed(self) -> bool:
        """Whether one of them watches the clock."""
        return any(one.timed for one in self.deciders)

    @property
    def by_solver(self) -> bool:
        return any(one.by_solver for one in self.deciders)

    def chosen(self, state: State) -> Policy:
        """The policy that decides at this instant."""
        if len(state.waiting) > self.jobs:
            return self.many
        if state.cluster is None or state.requests is None:
            return self.plain
        asked, waiting = state.requests, state.waiting
        somewhere_none = state.cluster.capacity.min(axis=0) == 0
        choosy = ~asked.sets[asked.among[waiting]].all(axis=1)
        mixed = choosy.any() or (asked.need[waiting][:, somewhere_none] > 0).any()
        return self.mixed if bool(mixed) else self.plain

    def decide(self, state: State) -> Plan:
        plan = self.chosen(state).decide(state)
        return replace(plan, memory={**state.standing.memory, **plan.memory})


NAMES: Final[Mapping[str, Policy]] = {"switch": Switch()}

FAMILY: Final = (6, "From papers: dispatchers for nodes of several kinds")
USES: Final = {
    "switch": "one dispatcher where any node will do, another where not",
}
"""When to use each, in a line."""
