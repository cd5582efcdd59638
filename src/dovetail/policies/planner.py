"""The planner: in each pass, the best plan that a search over orders finds for an objective."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, Final

import numpy as np

from dovetail.errors import PolicyError, SettingError
from dovetail.kernels.passes.rules import PlanRule
from dovetail.kernels.planner.search import WAIT
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.optimize.window.objective import parse
from dovetail.optimize.window.terms import COLD, HOT, MOST_DECODES, check_budget, plan_rule, terms
from dovetail.policies.base import RulePolicy, check_place
from dovetail.policies.energy_planner import MONEY
from dovetail.units import DAY_S

PLANNED: Final[dict[str, dict[str, Any]]] = {
    "af": {"objective": "af+0.1*p2sf"},
    "awf": {"objective": "awf+0.1*p2sf"},
    "bsld": {"objective": "bsld+0.1*p2sf", "foresight": 4},
    "p2sf": {"objective": "p2sf", "foresight": 4, "starve_s": None},
}
"""Metrics that have a planner of their own, plan-af and so on, and its settings where they are not the general ones
(docs/planner.md says why)."""
PATIENT: Final[dict[str, Any]] = {**PLANNED["af"], "patient": 0.1}
"""The settings of plan-deadline."""
MOST_FORESIGHT: Final = 256
FIRST_DECODES: Final = 32
"""With a budget in milliseconds: so many decodes tell how long one takes."""


@dataclass(frozen=True)
class Planner(RulePolicy):
    """Plans the waiting jobs anew in each pass and starts those whose turn has come.

    `objective` is what the plan minimises, with estimates for run times. `decodes` is the budget of one pass in plans
    tried; `ms` one in milliseconds instead, for live use. `window` jobs are arranged; what waits beyond them is placed
    after, by a list order. `foresight` jobs that may come, copies of the last that came, are planned for and never
    started. `starve_s` bounds how long a job may be passed over: the nearer a wait comes to it the more it counts, and
    from then on the job comes first, in order of arrival; None: no bound. `hot` and `cold` are the temperatures of the
    annealing, in mean costs of a job.

    With `patient`, promises are kept: deadlines that were accepted, and that any other job starts no later than it was
    first planned to. A job with an accepted deadline counts only so much in the objective, and the bound on waits is a
    cost and no more. None: nothing is promised, and deadlines are not looked at.

    A subclass may say in `weigh` what a second of each job's wait counts in the objective `wait`.
    """

    objective: str = "af"
    decodes: int = 200
    window: int = 100
    foresight: int = 0
    starve_s: int | None = 4 * DAY_S
    ms: float | None = None
    hot: float = HOT
    cold: float = COLD
    patient: float | None = None
    place: str = "best"
    name: str = "plan"

    def __post_init__(self) -> None:
        check_place(self.place)
        if any(term.strip() in MONEY for term in re.split(r"[+*]", self.objective)):
            raise SettingError(
                f"objective={self.objective}: {', '.join(MONEY)} stand alone, with a price for waits:"
                " plan:objective=cost,wait=..."
            )
        terms(parse(self.objective))
        check_budget(self.decodes, self.window, self.hot, self.cold)
        if not 0 <= self.foresight <= MOST_FORESIGHT:
            raise SettingError(f"foresight={self.foresight}: must be from 0 to {MOST_FORESIGHT} jobs")
        if self.starve_s is not None and self.starve_s < 0:
            raise SettingError(f"starve={self.starve_s}: must be a duration, not negative")
        if self.patient is not None and not 0 <= self.patient <= 1:
            raise SettingError(f"patient={self.patient}: must be from 0 to 1")
        if self.ms is not None and not 0 < self.ms <= 3_600_000:
            raise SettingError(f"ms={self.ms}: must be above 0, and at most an hour")

    def weigh(self, state: State) -> Any:
        """What a second of wait counts for each of the waiting jobs; 1 unless a subclass says otherwise."""
        return np.ones(len(state.waiting))

    @property
    def static_keys(self) -> bool:
        return bool(terms(parse(self.objective))[0][WAIT])

    def keys(self, state: State) -> Any:
        if not self.static_keys:
            return None
        weights = np.asarray(self.weigh(state), np.float64)
        if weights.shape != state.waiting.shape or not bool(np.all(np.isfinite(weights) & (weights >= 0))):
            raise PolicyError(f"{self.name}: weigh gives one number of at least 0 for each waiting job")
        return weights

    @property
    def timed(self) -> bool:
        return self.ms is not None

    def rule(
        self, *, every_s: int = 0, bounded: bool = False, stop_for_news: bool = False, keep: bool = False, seed: int = 0
    ) -> PlanRule:
        if every_s and self.patient is not None:
            raise SettingError(f"{self.name} promises starts to the second: it cannot run with --every")
        return plan_rule(
            parse(self.objective), window=self.window, decodes=self.decodes, foresight=self.foresight,
            clairvoyant=self.clairvoyant, starve_s=self.starve_s, hot=self.hot, cold=self.cold, every_s=every_s,
            stop_for_news=stop_for_news, seed=seed, patient=-1.0 if self.patient is None else self.patient,
        )  # fmt: skip

    def decide(self, state: State) -> Plan:
        if self.ms is None:
            return super().decide(state)
        began = perf_counter()
        plan = replace(self, ms=None, decodes=FIRST_DECODES).decide(state)
        spent_ms = 1000 * (perf_counter() - began)
        decodes = int(FIRST_DECODES * (self.ms - spent_ms) / spent_ms)
        if decodes < 1:
            return plan
        found = replace(plan, starts=(), expected={**plan.expected, **dict.fromkeys(plan.starts, state.now)})
        return replace(self, ms=None, decodes=min(decodes, MOST_DECODES)).decide(replace(state, standing=found))


@dataclass(frozen=True)
class Offline(Planner):
    """Clairvoyant: plans for the next `foresight` jobs as they will really come, with the run times of all."""

    clairvoyant: ClassVar[bool] = True
    foresight: int = 50
    name: str = "offline"
