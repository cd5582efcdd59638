"""Referee: an independent, obvious checker of any schedule or plan. It shares no code with the kernels."""

from dovetail.referee.plan import check_plan
from dovetail.referee.schedule import assert_valid, check_schedule
from dovetail.referee.violation import RefereeError, Violation

__all__ = ["RefereeError", "Violation", "assert_valid", "check_plan", "check_schedule"]
