"""The list family: an order of the queue and how many blocked jobs get a reservation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dovetail.arrays import NEVER, Floats, Ints
from dovetail.errors import PolicyError, SettingError
from dovetail.io.turns import read_turns
from dovetail.kernels import state as layout
from dovetail.kernels.passes.lists import ALL, STRICT, ListRule
from dovetail.kernels.passes.order import CODES, MOVING
from dovetail.kernels.passes.slack import SlackRule
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.turns import Turns
from dovetail.names import Kind, choice, duration, in_file, load, number, setting
from dovetail.policies.base import AS_USUAL, Asked, Policy, RulePolicy, place_setting, written
from dovetail.units import MOST_SECONDS

ORDERS: Final = tuple(name for name in CODES if not name.startswith("given"))
"""Names of the built-in orders; docs/policies.md has their formulas."""

TREE_ABOVE = 1000
"""Entries of the queue above which a tree finds what fits (kernels/queue.py)."""

MOST_SLACK: Final = 1_000_000
"""Largest factor of relaxed backfilling."""

UserKey = Callable[[State], npt.ArrayLike]
"""A user's order: the keys of `state.waiting`, smaller first, asked for at each pass; or once for all jobs, if the
function has an attribute `static` that is true (its keys must not depend on time, nor on which other jobs wait)."""


def by_priority(state: State) -> Ints:
    """The highest priority first, as the workload has it (column `priority`); without one last."""
    if "priority" not in state.columns:
        raise SettingError("priority: the workload says none for its jobs (column `priority`)")
    return -state.columns["priority"][state.waiting]


def alike(state: State) -> Floats:
    """Nobody comes before another."""
    return np.ones(len(state.waiting))


def alike_for_good(state: State) -> Floats:
    """The same, said once for all jobs."""
    return alike(state)


alike_for_good.static = True  # type: ignore[attr-defined]
by_priority.static = True  # type: ignore[attr-defined]


def read_order(text: str) -> Any:
    """An order as it is written: the name of a built-in one, or a function of the state."""
    if text == "priority":
        return by_priority
    if text.endswith(".toml"):
        return read_turns(text)
    found = in_file(text)
    if found is None:
        return text
    order = load(*found)
    if isinstance(order, type) or not callable(order):
        raise PolicyError(f"{found[0]}: {found[1]} is not a function: an order is one of the state")
    return order


def _reserve(text: str) -> int | str:
    named: dict[str, int | str] = {"none": 0, "first": 1, "all": "all", "strict": "strict"}
    if text not in named and not text.isdecimal():
        raise ValueError("must be strict, none, first, all, or a number of jobs")
    return named[text] if text in named else int(text)


_ORDER: Final = Kind(
    read_order,
    f"choose from {', '.join(ORDERS)}, priority, path/to/shares.toml, or path/to/file.py:function",
    lambda order: callable(order) or order in ORDERS,
)
_RESERVE: Final = Kind(
    _reserve,
    "must be strict, all, or a number of jobs (0 for none)",
    lambda reserve: reserve in ("strict", "all") or (isinstance(reserve, int) and 0 <= reserve < ALL),
)


@dataclass(frozen=True)
class ListPolicy(RulePolicy):
    """List scheduling (Algorithms 1 and 2 of the papers): an order, and how many blocked jobs get a reservation."""

    order: str | UserKey = setting("fcfs", "order of the queue", _ORDER)
    reserve: int | str = setting("all", "how many blocked jobs get a reservation; strict stops at the first", _RESERVE)
    backfill: str | None = setting(None, "order of the rest after the last reservation", choice(*ORDERS))
    starve_s: int | None = setting(None, "jobs that have waited this long come first", duration(0, MOST_SECONDS))
    relax: float = setting(
        0.0, "a start may push a reserved job back by this part of its first wait", number(0, MOST_SLACK)
    )
    slack: float = setting(
        0.0, "a start may push a reserved job back by this part of its estimate", number(0, MOST_SLACK)
    )
    place: str = place_setting()
    name: str = "list"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.keeps_promises and self.depth < 1:
            raise SettingError("relax and slack push reservations back: they need reserve=1 or more")

    @property
    def keeps_promises(self) -> bool:
        """A relaxed reservation is measured from the first one that the job had."""
        return bool(self.relax or self.slack)

    @property
    def shorter(self) -> str:
        return "reserve=1000" if self.reserve == "all" else ""

    @property
    def depth(self) -> int:
        """The reservation depth as the kernels count it."""
        if self.reserve == "strict":
            return STRICT
        return ALL if self.reserve == "all" else int(self.reserve)

    def rule(self, asked: Asked = AS_USUAL) -> ListRule | SlackRule:
        order = CODES[str(self.order) if not self.user_keys else "given" if self.static_keys else "given-per-pass"]
        backfill = -1 if self.backfill in (None, self.order) else CODES[str(self.backfill)]
        if self.depth == 0 and backfill >= 0:  # the last of no reservations comes before the first job
            order, backfill = backfill, -1
        if self.depth in (STRICT, ALL):  # there is no rest after the last reservation
            backfill = -1
        starve = NEVER if self.starve_s is None else self.starve_s
        moving = starve < NEVER or order in MOVING
        if self.keeps_promises:
            common = self.common(asked, order, backfill, starve, asked.keep)
            return SlackRule(common, self.depth, float(self.relax), float(self.slack))
        # The tree is for one reservation at most; on nodes it would find too many that do not fit.
        tree = self.depth in (0, 1) and not (moving or backfill in MOVING or asked.keep or asked.nodes)
        groups = order != CODES["given-per-pass"]
        common = self.common(asked, order, backfill, starve, asked.keep, groups, TREE_ABOVE if tree else NEVER)
        # On nodes a new plan has the same instants as one that was kept, but not the same nodes.
        anew = moving or asked.every_s or asked.stop_for_news or asked.keep or asked.nodes
        return ListRule(common, self.depth, asked.bounded and self.depth == ALL and not anew)

    def remembered(self, standing: Plan) -> Mapping[int, int]:
        return standing.promised if self.keeps_promises else {}

    def answer(self, state: State, run: layout.Run, starts: Ints) -> Plan:
        row = layout.PROMISED_FIRST if self.keeps_promises else layout.PLACE
        run.jobs[row, starts] = -1
        return Plan(state.waiting[starts].tolist(), promised=written(state, run, row))

    @property
    def turns(self) -> Turns | None:
        return self.order if isinstance(self.order, Turns) else None

    def to_compile(self) -> Policy:
        return replace(self, order=(alike_for_good if self.static_keys else alike)) if self.user_keys else self

    @property
    def static_keys(self) -> bool:
        return bool(getattr(self.order, "static", False))

    @property
    def user_keys(self) -> bool:
        return callable(self.order)

    def keys(self, state: State) -> Any:
        if not callable(self.order):
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


def _names() -> dict[str, Policy]:
    found: dict[str, Policy] = {
        "list": ListPolicy(), "easy": ListPolicy(reserve=1), "easy-sjbf": ListPolicy(reserve=1, backfill="sjf"),
    }  # fmt: skip
    depths: dict[str, int | str] = {"strict": "strict", "greedy": 0, "list": "all"}
    found |= {f"{kind}-{order}": ListPolicy(order, reserve) for kind, reserve in depths.items() for order in ORDERS}
    found |= {f"easy-{order}bf": ListPolicy(reserve=1, backfill=order) for order in ORDERS}
    return found | {f"{order}-easy": ListPolicy(order, 1) for order in ORDERS}


NAMES: Final[Mapping[str, Policy]] = _names()

ALIASES: Final = {
    "list-reg": "list-fcfs", "justbf": "list-fcfs", "aggressive": "greedy-fcfs", "passive": "strict-fcfs",
    **{f"{order}-justbf": f"list-{order}" for order in ORDERS},
    **{f"{order}-aggressive": f"greedy-{order}" for order in ORDERS},
    **{f"{order}-passive": f"strict-{order}" for order in ORDERS},
}  # fmt: skip
"""Names that the papers use."""

FAMILY: Final = (1, "Lists: the queue in an order, gaps filled")
USES: Final = {
    "easy": "first come, first served; a job starts early if the first that waits is not delayed by it",
    "easy-sjbf": "EASY that fills gaps with the shortest first; `easy-ORDERbf` for other orders",
    "easy-ORDERbf": "EASY that fills gaps in another order than it serves",
    "ORDER-easy": "EASY with another queue: sjf-easy waits less on average, and long jobs wait longer",
    "list-ORDER": "every job that waits has a reservation, in an order; `list-reg` is first come, first served",
    "strict-ORDER": "no gap is filled: shows what backfilling is worth",
    "greedy-ORDER": "whatever fits starts, nothing is reserved: wide jobs may starve",
    "list": "all of these by their settings, as in list:order=wfp3,reserve=4",
}
"""When to use each, in a line."""
