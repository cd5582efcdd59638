"""The list family: an order of the queue and how many blocked jobs get a reservation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dovetail.errors import SettingError
from dovetail.kernels.passes.conservative import SWEEPS
from dovetail.kernels.passes.lists import ALL, STRICT
from dovetail.kernels.passes.order import CODES, MOVING
from dovetail.kernels.passes.rules import ConservativeRule, ListRule, Rule, SlackRule
from dovetail.kernels.state import NEVER
from dovetail.model.state import State
from dovetail.policies.base import RulePolicy, check_place

ORDERS = tuple(name for name in CODES if not name.startswith("given"))
"""Names of the built-in orders; docs/policies.md has their formulas."""

MOST_SLACK = 1_000_000
"""Largest factor of relaxed backfilling."""

UserKey = Callable[[State], npt.ArrayLike]
"""A user's order: the keys of `state.waiting`, smaller first, asked for at each pass; or once for all jobs, if the
function has an attribute `static` that is true (its keys must not depend on time, nor on who else waits)."""


@dataclass(frozen=True)
class ListPolicy(RulePolicy):
    """List scheduling (Algorithms 1 and 2 of the papers).

    `order` is a name or a function of the state. `reserve` is how many blocked jobs get a reservation: "strict"
    (stop at the first), 0 (none), 1 (EASY), k, "all". `backfill` is the order of the rest after the last
    reservation. Jobs that have waited `starve_s` come first. `relax` and `slack` let a start push reserved jobs
    back: by that part of the wait that the first reservation meant, and of the job's own estimate. `place` says which
    nodes a job gets, where nodes are known.
    """

    order: str | UserKey = "fcfs"
    reserve: int | str = "all"
    backfill: str | None = None
    starve_s: int | None = None
    relax: float = 0.0
    slack: float = 0.0
    place: str = "best"
    name: str = "list"

    def __post_init__(self) -> None:
        check_place(self.place)
        for order in (self.order, self.backfill):
            if isinstance(order, str) and order not in ORDERS:
                raise SettingError(f"no order {order!r}: choose from {', '.join(ORDERS)}, or path/to/file.py:function")
        if self.reserve not in ("strict", "all") and not (isinstance(self.reserve, int) and 0 <= self.reserve < ALL):
            raise SettingError(f"reserve={self.reserve!r}: must be strict, all, or a number of jobs (0 for none)")
        if self.starve_s is not None and self.starve_s < 0:
            raise SettingError(f"starve={self.starve_s}: must be a duration, not negative")
        if not (0 <= self.relax <= MOST_SLACK and 0 <= self.slack <= MOST_SLACK):
            raise SettingError(f"relax={self.relax}, slack={self.slack}: must be from 0 to {MOST_SLACK:,}")
        if (self.relax or self.slack) and (self.depth < 1):
            raise SettingError("relax and slack push reservations back: they need reserve=1 or more")

    @property
    def depth(self) -> int:
        """The reservation depth as the kernels count it."""
        if isinstance(self.reserve, int):
            return self.reserve
        return STRICT if self.reserve == "strict" else ALL

    def rule(
        self, *, every_s: int = 0, bounded: bool = False, stop_for_news: bool = False, keep: bool = False, seed: int = 0
    ) -> Rule:
        given = "given" if self.static_keys else "given-per-pass"
        order = CODES[self.order if isinstance(self.order, str) else given]
        backfill = -1 if self.backfill in (None, self.order) else CODES[str(self.backfill)]
        if self.depth == 0 and backfill >= 0:  # the last of no reservations comes before the first job
            order, backfill = backfill, -1
        if self.depth in (STRICT, ALL):  # there is no rest after the last reservation
            backfill = -1
        starve = NEVER if self.starve_s is None else self.starve_s
        common = (order, backfill, self.depth, starve, every_s, stop_for_news, keep)
        if self.relax or self.slack:
            return SlackRule(*common, float(self.relax), float(self.slack))
        moving = starve < NEVER or order in MOVING
        reuse = bounded and self.depth == ALL and not (moving or every_s or stop_for_news or keep)
        return ListRule(*common, reuse)

    @property
    def static_keys(self) -> bool:
        return bool(getattr(self.order, "static", False))

    @property
    def user_keys(self) -> bool:
        return not isinstance(self.order, str)

    def keys(self, state: State) -> Any:
        if isinstance(self.order, str):
            return None
        answer = self.order(state)
        try:
            keys = np.asarray(answer, np.float64)
        except (TypeError, ValueError) as error:
            raise SettingError(f"the order of {self.name!r} must give numbers: {error}") from error
        if keys.shape != state.waiting.shape or not np.all(np.isfinite(keys)):
            raise SettingError(
                f"the order of {self.name!r} must give one finite number for each of the {len(state.waiting)} waiting"
                f" jobs; it gave an array of shape {keys.shape}"
            )
        return keys


@dataclass(frozen=True)
class Conservative(RulePolicy):
    """Conservative backfilling: everyone is promised a start on arrival; promises only move earlier.

    `sweep` says how the plan is compressed when a job ended: "once" a moment in submit order, after "each-end",
    "repeat" until nothing moves, or once "by-start" in the order of the promised starts.
    """

    sweep: str = "once"
    name: str = "conservative"

    def __post_init__(self) -> None:
        if self.sweep not in SWEEPS:
            raise SettingError(f"no sweep {self.sweep!r}: choose from {', '.join(SWEEPS)}")

    def rule(
        self, *, every_s: int = 0, bounded: bool = False, stop_for_news: bool = False, keep: bool = False, seed: int = 0
    ) -> Rule:
        if every_s:
            raise SettingError("conservative backfilling promises starts to the second: it cannot run with --every")
        return ConservativeRule(CODES["fcfs"], -1, NEVER, 0, stop_for_news, False, SWEEPS[self.sweep], bounded)
