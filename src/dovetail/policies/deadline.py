"""Deadline-based backfilling: jobs that need only end by a deadline make room for those in a hurry."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from dovetail.arrays import Ints
from dovetail.kernels import state as layout
from dovetail.kernels.passes.conservative import SWEEPS
from dovetail.kernels.passes.deadline import DeadlineRule
from dovetail.kernels.passes.order import CODES
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.names import choice, setting, yes_or_no
from dovetail.policies.base import (
    AS_USUAL,
    Asked,
    Policy,
    RulePolicy,
    agreed,
    counted,
    depth_setting,
    place_setting,
    unplanned,
    wake_of,
)

_SWEEPS: Final = ("once", "start-now", "none")


@dataclass(frozen=True)
class DeadlineBackfilling(RulePolicy):
    """Conservative backfilling that may move waiting jobs with a deadline, as long as they end by it (DBF, 2017)."""

    guard: bool = setting(True, "no accepted deadline is broken while estimates are upper bounds", yes_or_no())
    """Without, it is Algorithm 1 as printed."""
    sweep: str = setting("once", "how the plan is compressed when a job has ended", choice(*_SWEEPS))
    depth: int | str = depth_setting()
    """Counts jobs without a deadline; one with a deadline is always answered on arrival."""
    place: str = place_setting()
    name: str = "dbf"
    keeps_promises = True
    stands: ClassVar[int] = layout.PROMISED_LAST
    makes_offers: ClassVar[bool] = True
    cannot: ClassVar[Mapping[str, str]] = {
        "every": "promises starts to the second: it cannot run with --every",
    }

    @property
    def shorter(self) -> str:
        return "depth=1000" if self.depth == "all" else ""

    def rule(self, asked: Asked = AS_USUAL) -> DeadlineRule:
        groups = self.depth == "all" and asked.bounded and not asked.nodes
        common = self.common(asked, CODES["fcfs"], groups=groups)
        return DeadlineRule(common, self.guard, SWEEPS[self.sweep], asked.bounded, counted(self.depth))

    def remembered(self, standing: Plan) -> Mapping[int, int]:
        return {**standing.expected, **standing.promised}

    def newcomers(self, state: State) -> Ints:
        """In a state with no replay behind it, those whom no plan knows are new, whenever they came."""
        return unplanned(state, self.remembered(state.standing)) if self.depth == "all" else state.arrived[:0]

    def answer(self, state: State, run: layout.Run, starts: Ints) -> Plan:
        """Firm starts are promised, tentative ones expected."""
        promised: dict[int, int] = {}
        expected: dict[int, int] = {}
        rows = run.jobs[[layout.PROMISED_LAST, layout.AGREED]].T.tolist()
        for job, (at, answer) in zip(state.waiting.tolist(), rows, strict=False):
            if at >= 0:
                (expected if answer == layout.TENTATIVE else promised)[job] = at
        return Plan(state.waiting[starts].tolist(), promised, expected, agreed(state, run), wake=wake_of(run))


NAMES: Final[Mapping[str, Policy]] = {"dbf": DeadlineBackfilling()}

FAMILY: Final = (2, "Promises: each job knows its latest start")
USES: Final = {
    "dbf": "jobs with a deadline make room for those without, and are told on arrival whether it is kept",
}
"""When to use each, in a line."""
