"""A planner that learns from the past of its own replay which settings suit the cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.names import choice, duration, setting, whole
from dovetail.policies.base import AS_USUAL, Asked, Choices, Policy, RulePolicy, place_setting
from dovetail.policies.planner import PLANNED, Planner
from dovetail.units import DAY_S, MOST_SECONDS

CANDIDATES: Final[Mapping[str, tuple[dict[str, Any], ...]]] = {
    "af": ({}, {"commit": 0.5}, {"long_s": 2 * DAY_S}, {"long_s": 32 * DAY_S}),
    "awf": ({}, {"wide": 0.0}, {"long_s": 2 * DAY_S}, {"long_s": None}),
    "bsld": (
        {},
        {"commit": 0.0},
        {"foresight": 0},
        {"objective": "af", "foresight": 0, "long_s": 8 * DAY_S, "commit": 0.5},
    ),
}
"""What it chooses from, by what is to be good: how each differs from the planner of that metric."""


@dataclass(frozen=True)
class AutoPlanner(RulePolicy):
    """Plans as one of several planners does, and chooses anew which one at fixed intervals: each of them is tried on
    the interval that has just passed, from the state at its beginning, with what was known by its end. The one that
    did best in the last `look` intervals decides in the next.

    Event by event, and at a single state, there is no past to look at: the first of them decides."""

    goal: str = setting("af", "what is to be good", choice(*CANDIDATES))
    every_s: int = setting(7 * DAY_S, "how often it chooses anew", duration(3600, MOST_SECONDS))
    look: int = setting(8, "how many of these intervals it looks back on", whole(1, 1000))
    trial: int = setting(50, "plans tried in one pass of a trial", whole(0, 10_000))
    place: str = place_setting()
    name: str = "plan-auto"

    @property
    def planners(self) -> tuple[Planner, ...]:
        """What it chooses from."""
        first = Planner(**PLANNED[self.goal], place=self.place, name=f"plan-{self.goal}")
        return tuple(replace(first, **settings) for settings in CANDIDATES[self.goal])

    @property
    def choices(self) -> Choices:
        return Choices(self.planners, self.goal, self.every_s, self.look, self.trial)

    @property
    def cannot(self) -> Mapping[str, str]:
        return {
            "charge": "chooses in whole replays; where decisions take time it is asked event by event",
            "outages": "would try its choices with outages that nobody knows of yet",
        }

    @property
    def forks(self) -> bool:
        return False

    def rule(self, asked: Asked = AS_USUAL) -> Any:
        return self.planners[0].rule(asked)

    def made(self, state: State) -> Plan:
        return self.planners[0].made(state)


NAMES: Final[Mapping[str, Policy]] = {"plan-auto": AutoPlanner()}
FAMILY: Final = (3, "Planners: the best plan that a search finds at each pass")
USES: Final = {"plan-auto": "a planner that chooses its settings anew each week, of what the weeks before say"}
"""When to use each, in a line."""


def written(settings: Mapping[str, Any]) -> str:
    """Settings as they stand behind a name: `:long=2d,wide=0.2`; nothing for none."""
    words = []
    for key, value in settings.items():
        text = "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
        text = f"{value // DAY_S}d" if key.endswith("_s") and value is not None else text
        words.append(f"{key.removesuffix('_s')}={text}")
    return f":{','.join(words)}" if words else ""
