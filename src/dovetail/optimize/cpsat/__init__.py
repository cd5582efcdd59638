"""CP-SAT, by OR-Tools: schedules with a proof. The only place that imports OR-Tools, and only when it solves."""

from dovetail.optimize.cpsat.model import solve

__all__ = ["solve"]
