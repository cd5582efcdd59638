"""The planner: in each pass, the best plan that a search over orders finds for an objective."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

import numpy as np

from dovetail.errors import SettingError
from dovetail.kernels.order import FCFS, SAF, SPF
from dovetail.kernels.planning import new_space
from dovetail.kernels.rules import PlanRule
from dovetail.kernels.run import NEVER
from dovetail.kernels.search import AF, AWF, BSLD, PASF, TERMS
from dovetail.policies.base import RulePolicy

TERM_NAMES: Final = {"af": AF, "awf": AWF, "bsld": BSLD, "p2sf": PASF}
"""What an objective is made of; docs/planner.md has the formulas."""
MOST_WINDOW: Final = 10_000
MOST_DECODES: Final = 10_000_000
LEVEL: Final = 2

_TERM = re.compile(r"^(?:(\d+(?:\.\d+)?)\*)?([a-z0-9]+)$")
_FIRST = {AF: SAF, AWF: FCFS, BSLD: SPF, PASF: FCFS}
"""By the heaviest term: the order that is best for it among rigid jobs on one processor each, or nearly."""


def weights(objective: str) -> list[float]:
    """The weight of each term in an objective: `awf`, `af+0.5*p2sf`."""
    found = [0.0] * TERMS
    for part in objective.split("+"):
        match = _TERM.match(part.strip())
        if not match or match[2] not in TERM_NAMES:
            raise SettingError(f"no objective {part!r}: choose {', '.join(TERM_NAMES)}, or a sum such as af+0.5*p2sf")
        found[TERM_NAMES[match[2]]] += float(match[1] or 1)
    if not 0 < sum(found) < 1e9:
        raise SettingError(f"objective={objective}: its weights must be positive")
    return found


@dataclass(frozen=True)
class Planner(RulePolicy):
    """Plans the waiting jobs anew in each pass and starts those whose turn has come.

    `objective` is what the plan minimises, with estimates for run times. `decodes` is the budget of one pass in plans
    tried. `window` jobs are arranged; what waits beyond them is placed after, by a list order. Jobs that have waited
    `starve_s` come first, in order of arrival. `hot` and `cold` are the temperatures of the annealing, in mean costs
    of a job.
    """

    objective: str = "af"
    decodes: int = 200
    window: int = 100
    starve_s: int | None = None
    hot: float = 0.5
    cold: float = 0.01
    name: str = "plan"

    def __post_init__(self) -> None:
        weights(self.objective)
        if not 0 <= self.decodes <= MOST_DECODES:
            raise SettingError(f"decodes={self.decodes}: must be from 0 to {MOST_DECODES:,}")
        if not 1 <= self.window <= MOST_WINDOW:
            raise SettingError(f"window={self.window}: must be from 1 to {MOST_WINDOW:,} jobs")
        if self.starve_s is not None and self.starve_s < 0:
            raise SettingError(f"starve={self.starve_s}: must be a duration, not negative")
        if not 0 < self.cold <= self.hot <= 1e6:
            raise SettingError(f"hot={self.hot}, cold={self.cold}: must be positive, and hot not below cold")

    def rule(
        self, *, every_s: int = 0, bounded: bool = False, stop_for_news: bool = False, keep: bool = False, seed: int = 0
    ) -> PlanRule:
        terms = np.array(weights(self.objective))
        starve = NEVER if self.starve_s is None else self.starve_s
        first = _FIRST[int(terms.argmax())]
        return PlanRule(
            FCFS, -1, starve, every_s, stop_for_news, False, first, self.window, self.decodes, seed, LEVEL,
            float(self.hot), float(self.cold), terms, new_space(self.window),
        )  # fmt: skip
