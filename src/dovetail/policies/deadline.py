"""Deadline-based backfilling: jobs that need only end by a deadline make room for those in a hurry."""

from __future__ import annotations

from dataclasses import dataclass

from dovetail.errors import SettingError
from dovetail.kernels.passes.order import CODES
from dovetail.kernels.passes.rules import DeadlineRule
from dovetail.kernels.state import NEVER
from dovetail.policies.base import RulePolicy


@dataclass(frozen=True)
class DeadlineBackfilling(RulePolicy):
    """Conservative backfilling that may move waiting jobs with a deadline, as long as they end by it (DBF, 2017).

    With `guard` no accepted deadline is broken while estimates are upper bounds; without, it is Algorithm 1 as printed.
    """

    guard: bool = True
    name: str = "dbf"

    def rule(
        self, *, every_s: int = 0, bounded: bool = False, stop_for_news: bool = False, keep: bool = False, seed: int = 0
    ) -> DeadlineRule:
        if every_s:
            raise SettingError("dbf promises starts to the second: it cannot run with --every")
        return DeadlineRule(CODES["fcfs"], -1, NEVER, 0, stop_for_news, False, self.guard, bounded)
