"""Conservative backfilling: every job is promised a start on arrival; promises only move earlier."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from dovetail.arrays import Ints
from dovetail.kernels import state as layout
from dovetail.kernels.passes.conservative import SWEEPS, ConservativeRule
from dovetail.kernels.passes.order import CODES
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.names import choice, setting
from dovetail.policies.base import (
    AS_USUAL,
    Asked,
    Policy,
    RulePolicy,
    counted,
    depth_setting,
    place_setting,
    unplanned,
    wake_of,
    written,
)


@dataclass(frozen=True)
class Conservative(RulePolicy):
    """Conservative backfilling: every job is promised a start on arrival; promises only move earlier.

    `sweep`: "once" a moment in submit order, after "each-end", "repeat" until nothing moves, once "by-start" in the
    order of the promised starts, once with "start-now" for jobs that can start at once only, or "none".
    `depth`: only so many of those that cannot start at once, the first in order of arrival, are promised a start; the
    others start where they fit beside these.
    """

    sweep: str = setting("once", "how the plan is compressed when a job has ended", choice(*SWEEPS))
    depth: int | str = depth_setting()
    place: str = place_setting()
    name: str = "conservative"
    keeps_promises = True
    stands: ClassVar[int] = layout.PROMISED_LAST
    cannot: ClassVar[Mapping[str, str]] = {
        "every": "promises starts to the second: it cannot run with --every",
    }

    @property
    def shorter(self) -> str:
        return "depth=1000" if self.depth == "all" else ""

    def rule(self, asked: Asked = AS_USUAL) -> ConservativeRule:
        groups = self.depth == "all" and asked.bounded and self.sweep != "by-start" and not asked.nodes
        common = self.common(asked, CODES["fcfs"], groups=groups)
        return ConservativeRule(common, SWEEPS[self.sweep], asked.bounded, counted(self.depth))

    def remembered(self, standing: Plan) -> Mapping[int, int]:
        return standing.promised

    def newcomers(self, state: State) -> Ints:
        """In a state with no replay behind it, those whom no plan knows are new, whenever they came."""
        return unplanned(state, self.remembered(state.standing)) if self.depth == "all" else state.arrived[:0]

    def answer(self, state: State, run: layout.Run, starts: Ints) -> Plan:
        promised = written(state, run, layout.PROMISED_LAST)
        return Plan(state.waiting[starts].tolist(), promised=promised, wake=wake_of(run))


NAMES: Final[Mapping[str, Policy]] = {"conservative": Conservative()}
ALIASES: Final = {"cbf": "conservative"}
"""As the deadline paper calls it."""

FAMILY: Final = (2, "Promises: each job knows its latest start")
USES: Final = {
    "conservative": "nobody ever starts later than was promised on arrival, as long as estimates hold",
}
"""When to use each, in a line."""
