"""The planner: in each pass, the best plan that a search over orders finds for an objective."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, ClassVar, Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.errors import PolicyError, SettingError
from dovetail.kernels import state as layout
from dovetail.kernels.planner.plan import PlanRule
from dovetail.kernels.planner.search import RECENT_JOBS, WAIT
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.turns import Turns
from dovetail.names import Kind, duration, number, setting, whole
from dovetail.optimize.window.objective import parse
from dovetail.optimize.window.terms import (
    COLD,
    DECODES,
    HEAT,
    HOT,
    MOST_DECODES,
    WINDOW,
    check_heat,
    plan_rule,
    terms,
)  # fmt: skip
from dovetail.policies.base import (
    AS_USUAL,
    Asked,
    Policy,
    RulePolicy,
    agreed,
    counted,
    depth_setting,
    place_setting,
    wake_of,
    written,
)
from dovetail.policies.energy_planner import MONEY
from dovetail.policies.lists import alike, by_priority, read_order
from dovetail.units import DAY_S, MOST_SECONDS

PLANNED: Final[dict[str, dict[str, Any]]] = {
    "af": {"objective": "af"},
    "awf": {"objective": "awf", "wide": 0.2, "decodes": 200},
    "bsld": {"objective": "bsld", "foresight": 4, "long_s": 2 * DAY_S, "commit": 0.5},
    "p2sf": {"objective": "p2sf", "foresight": 4, "decodes": 200},
}
"""Metrics that have a planner of their own, plan-af and so on, and its settings where they are not the general ones
(docs/planner.md says why)."""
PATIENT: Final[dict[str, Any]] = {**PLANNED["af"], "patient": 0.1}
"""The settings of plan-deadline."""
MOST_FORESIGHT: Final = 256
Weights = Callable[[State], npt.ArrayLike]
"""What a second of wait counts for each of `state.waiting`, asked for at each pass."""
OBJECTIVE: Final = Kind(str, "must be an objective: af, awf+0.1*p2sf, ...")
GROUPS_ABOVE = 1000
"""Where more jobs wait than this, arrays are planned as groups."""
FIRST_DECODES: Final = 32
"""With a budget in milliseconds: this many decodes tell how long one takes."""


def priorities(state: State) -> Ints:
    """The priorities of the waiting jobs, as the workload has them (column `priority`); without one 0."""
    return np.maximum(-by_priority(state), 0)


def _favour(text: str) -> Weights:
    order = read_order(text)
    if order is by_priority:
        return priorities
    if not callable(order):
        raise ValueError(_FAVOUR.words)
    return order  # type: ignore[no-any-return]


_FAVOUR: Final = Kind(_favour, "must be priority, path/to/shares.toml, or path/to/file.py:function", callable)


@dataclass(frozen=True)
class Planner(RulePolicy):
    """Plans the waiting jobs anew in each pass and starts those whose turn has come.

    `objective` is what the plan minimises, with estimates for run times. `decodes` is the budget of one pass in plans
    tried; `ms` one in milliseconds instead, for live use. `window` jobs are arranged; what waits beyond them is placed
    after, by a list order. `depth`: only so many jobs, the first in order of arrival, are in the plan; those behind
    start where they fit beside it. `foresight` jobs that may come, copies of the last that came, are planned for and
    never started. A wait counts more than its seconds in AF, AWF, BSLD and `wait`, one of `long_s` twice and others by
    the fourth power; None: none does. `starve_s` bounds how long a job may be passed over: from then on it comes first,
    in order of arrival; None: no bound. In AWF, the area of a job counts times its size to the power `wide`. `commit`
    is the price of commitment: what jobs like the last that came, at their rate, would wait for what a plan starts;
    what is only planned can give way to them. `hot` and `cold` are the temperatures of the annealing, in mean costs of
    a job.

    With `patient`, promises are kept: deadlines that were accepted, and that any other job starts no later than it was
    first planned to. A job with an accepted deadline weighs `patient` in the objective. None: nothing is promised, and
    deadlines are not looked at.

    With `favour`, what a job waits counts by whose it is: by a function of the state that gives a number of at least 0
    for each waiting job (`Turns` and `priorities` are such), to the power `strength`.

    A subclass may say in `weigh` what a second of each job's wait counts in the objective `wait`.
    """

    objective: str = setting("af", "what a plan minimises, with estimates for run times", OBJECTIVE)
    decodes: int = setting(100, "plans tried in one pass", DECODES)
    window: int = setting(50, "jobs that are arranged; the others are placed behind", WINDOW)
    foresight: int = setting(0, "jobs that may come, planned for and never started", whole(0, MOST_FORESIGHT, "jobs"))
    starve_s: int | None = setting(
        None, "the longest that a job may be passed over", duration(0, MOST_SECONDS), optional=True
    )
    ms: float | None = setting(None, "a budget in milliseconds in place of decodes", number(0, 3_600_000, above=True))
    hot: float = setting(HOT, "temperature at the start of the annealing, in mean costs of a job", HEAT)
    cold: float = setting(COLD, "temperature at its end", HEAT)
    patient: float | None = setting(None, "what a job with an accepted deadline counts; keeps promises", number(0, 1))
    depth: int | str = depth_setting()
    long_s: int | None = setting(
        8 * DAY_S,
        "a wait of this length counts twice; none: none does",
        duration(1, MOST_SECONDS),
        optional=True,
    )
    wide: float = setting(0.0, "in AWF, a job's area counts times its size to this power", number(-2, 2))
    commit: float = setting(0.0, "what jobs that may come count that would wait for what starts", number(0, 1e6))
    favour: Weights | None = setting(None, "whose waits count more", _FAVOUR, optional=True)
    strength: float = setting(1.0, "the power to which what `favour` says is raised", number(0, 100))
    place: str = place_setting()
    name: str = "plan"

    def __post_init__(self) -> None:
        super().__post_init__()
        if any(term.strip() in MONEY for term in re.split(r"[+*]", self.objective)):
            raise SettingError(
                f"objective={self.objective}: {', '.join(MONEY)} stand alone, with a price for waits:"
                " plan:objective=cost,wait=..."
            )
        terms(parse(self.objective))
        check_heat(self.hot, self.cold)
        if self.favour is None and self.strength != 1.0:
            raise SettingError(f"strength={self.strength:g} is the power of what favour says: give favour too")
        if self.favour is not None and type(self).weigh is not Planner.weigh:
            raise SettingError(f"{self.name}: `weigh` and favour both say what a wait counts; give one of them")

    holds: ClassVar[str] = "there is room for it now; the plan gives it to others first"
    stands: ClassVar[int] = layout.PLACE

    @property
    def keeps_promises(self) -> bool:
        return self.patient is not None

    @property
    def looks_back(self) -> int:
        return RECENT_JOBS if self.commit else 0

    @property
    def keeps_deadlines(self) -> bool:
        return self.keeps_promises

    @property
    def cannot(self) -> Mapping[str, str]:
        second = "promises starts to the second: it cannot run with --every"
        return {"every": second} if self.keeps_promises else {}

    @property
    def shorter(self) -> str:
        return "depth=100" if self.depth == "all" else ""

    def weigh(self, state: State) -> Any:
        """What a second of wait counts for each of the waiting jobs; 1 unless a subclass says otherwise."""
        return np.ones(len(state.waiting))

    @property
    def static_keys(self) -> bool:
        return self._weighs and self.favour is None

    @property
    def _weighs(self) -> bool:
        """Whether `weigh` is asked."""
        return bool(terms(parse(self.objective))[0][WAIT])

    @property
    def user_keys(self) -> bool:
        return self._weighs or self.favour is not None

    @property
    def turns(self) -> Turns | None:
        return self.favour if isinstance(self.favour, Turns) else None

    def to_compile(self) -> Policy:
        return self if self.favour is None else replace(self, favour=alike)

    def keys(self, state: State) -> Any:
        if self.favour is None:
            return self._checked(self.weigh(state), state, "weigh") if self._weighs else None
        of = self.favour.of if isinstance(self.favour, Turns) else self.favour
        weights = self._checked(of(state), state, "favour")
        most = weights.max(initial=0.0)  # who counts most counts 1: no power of that is too large
        return (weights / most) ** self.strength if most > 0 else np.ones(len(weights))

    def _checked(self, answer: Any, state: State, who: str) -> Floats:
        try:
            weights = np.asarray(answer, np.float64)
        except (TypeError, ValueError) as error:
            raise PolicyError(f"{self.name}: {who} must give numbers: {error}") from error
        if weights.shape != state.waiting.shape or not bool(np.all(np.isfinite(weights) & (weights >= 0))):
            raise PolicyError(f"{self.name}: {who} gives one number of at least 0 for each waiting job")
        return weights

    @property
    def timed(self) -> bool:
        return self.ms is not None

    def rule(self, asked: Asked = AS_USUAL) -> PlanRule:
        if asked.every_s:
            self.refuse("every")
        groups = self.depth == "all" and not (self.keeps_promises or self.user_keys)
        return plan_rule(
            parse(self.objective), window=self.window, decodes=self.decodes, foresight=self.foresight,
            clairvoyant=self.clairvoyant, starve_s=self.starve_s, hot=self.hot, cold=self.cold, every_s=asked.every_s,
            stop_for_news=asked.stop_for_news, seed=asked.seed, patient=-1.0 if self.patient is None else self.patient,
            depth=counted(self.depth), groups_above=GROUPS_ABOVE if groups else NEVER,
            long_s=self.long_s, wide=self.wide, commit=self.commit, favours=self.favour is not None,
        )  # fmt: skip

    def answer(self, state: State, run: layout.Run, starts: Ints) -> Plan:
        """A planner may change its plan; one that keeps promises, within what it promised."""
        run.jobs[layout.PLACE, starts] = -1
        promised = written(state, run, layout.PROMISED_FIRST) if self.keeps_promises else {}
        expected = written(state, run, layout.PLACE)
        return Plan(state.waiting[starts].tolist(), promised, expected, agreed(state, run), wake=wake_of(run))

    def made(self, state: State) -> Plan:
        if self.ms is None:
            return super().made(state)
        began = perf_counter()
        plan = replace(self, ms=None, decodes=FIRST_DECODES).made(state)
        spent_ms = 1000 * (perf_counter() - began)
        decodes = int(FIRST_DECODES * (self.ms - spent_ms) / spent_ms)
        if decodes < 1:
            return plan
        found = replace(plan, starts=(), expected={**plan.expected, **dict.fromkeys(plan.starts, state.now)})
        return replace(self, ms=None, decodes=min(decodes, MOST_DECODES)).made(replace(state, standing=found))


@dataclass(frozen=True)
class Offline(Planner):
    """Clairvoyant: plans for the next `foresight` jobs as they will really come, with the run times of all."""

    clairvoyant = True
    foresight: int = setting(50, "jobs to come that are planned for", whole(0, MOST_FORESIGHT, "jobs"))
    name: str = "offline"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.commit:
            raise SettingError(f"{self.name} knows who comes: it has no commit")


NAMES: Final[Mapping[str, Policy]] = {
    "plan": Planner(),
    "offline": Offline(),
    "plan-deadline": Planner(**PATIENT),
    **{f"plan-{term}": Planner(**settings) for term, settings in PLANNED.items()},
    **{f"offline-{term}": Offline(objective=term) for term in PLANNED},
}

FAMILY: Final = (3, "Planners: the best plan that a search finds at each pass")
USES: Final = {
    "plan-af": "least mean response, and so least mean wait: the first to try",
    "plan-awf": "computation done early, whoever's it is: large jobs count more",
    "plan-bsld": "least slowdown: short jobs wait little",
    "plan-p2sf": "fair: nobody waits much longer than others",
    "plan-deadline": "a planner that accepts or refuses deadlines, and keeps them",
    "plan": "any objective, as in plan:objective=af+0.1*p2sf",
    "offline-af": "knows the future, as no scheduler can: what is possible at best; also offline-awf, -bsld, -p2sf",
    "offline-awf": "the same for AWF",
    "offline-bsld": "the same for slowdown",
    "offline-p2sf": "the same for P2SF",
    "offline": "the same for any objective",
}
"""When to use each, in a line."""
