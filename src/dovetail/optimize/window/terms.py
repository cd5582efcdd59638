"""An objective as the compiled search knows it: the weight of each of its terms."""

from __future__ import annotations

from math import inf
from typing import Final

import numpy as np

from dovetail.arrays import NEVER, Floats
from dovetail.errors import SettingError
from dovetail.kernels.passes.lists import ALL
from dovetail.kernels.passes.order import FCFS, GIVEN_PER_PASS
from dovetail.kernels.passes.rule import Common
from dovetail.kernels.planner.plan import PlanRule
from dovetail.kernels.planner.search import AF, AWF, BOUND_S, BSLD, PASF, SPAN, TERMS, WAIT, no_space
from dovetail.names import number, whole
from dovetail.optimize.window.objective import Af, Awf, Bsld, Makespan, Objective, Pasf, Sum, Wait

HOT: Final = 0.1
COLD: Final = 0.001
"""Temperatures of the annealing at its start and end, in mean costs of a job above its least."""
MOST_LEVEL: Final = 16
MOST_WINDOW: Final = 10_000
"""Jobs."""
MOST_DECODES: Final = 10_000_000

_TERM: Final[dict[type[Objective], int]] = {Af: AF, Awf: AWF, Bsld: BSLD, Pasf: PASF, Wait: WAIT, Makespan: SPAN}


def terms(objective: Objective) -> tuple[Floats, int]:
    """The weight of each term, and the level of PaSF."""
    found, levels = np.zeros(TERMS), set()
    for weight, part in objective.parts if isinstance(objective, Sum) else ((1.0, objective),):
        if type(part) not in _TERM or (isinstance(part, Bsld) and part.bound_s != BOUND_S):
            raise SettingError(
                f"the search cannot minimise {part}: choose af, awf, bsld, pasf, wait, makespan, or a sum"
            )
        found[_TERM[type(part)]] += weight
        if isinstance(part, Pasf):
            levels.add(part.level)
    if len(levels) > 1 or any(level != int(level) or level > MOST_LEVEL for level in levels):
        raise SettingError(f"the search knows one PaSF, of a whole level from 0 to {MOST_LEVEL}, got {sorted(levels)}")
    return found, int(levels.pop()) if levels else 0


DECODES: Final = whole(0, MOST_DECODES)
WINDOW: Final = whole(1, MOST_WINDOW, "jobs")
HEAT: Final = number(0, 1e6, above=True)


def check_heat(hot: float, cold: float) -> None:
    """Refuse an annealing that gets hotter."""
    if not cold <= hot:
        raise SettingError(f"hot={hot}, cold={cold}: hot must not be below cold")


def plan_rule(
    objective: Objective, *, window: int, decodes: int = 0, foresight: int = 0, clairvoyant: bool = False,
    starve_s: int | None = None, hot: float = HOT, cold: float = COLD, every_s: int = 0, stop_for_news: bool = False,
    seed: int = 0, patient: float = -1.0, depth: int = ALL, groups_above: int = NEVER,
    long_s: float | None = None, wide: float = 0.0, commit: float = 0.0, favours: bool = False,
) -> PlanRule:  # fmt: skip
    """The rule of a planner, without its working space."""
    weights, level = terms(objective)
    starve = NEVER - 1 if starve_s is None else starve_s  # below NEVER: the queue is kept in order of arrival
    order = GIVEN_PER_PASS if favours else FCFS
    common = Common(order, -1, starve, every_s, stop_for_news, False, foresight, groups_above < NEVER, NEVER)
    return PlanRule(
        common, window, decodes, clairvoyant, seed, level, float(hot), float(cold), float(patient), depth, favours,
        groups_above, inf if long_s is None else float(long_s), float(wide), float(commit), weights, no_space(),
    )  # fmt: skip
