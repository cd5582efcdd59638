"""Solvers: the best schedule of one pass under an objective, and values that no schedule can beat.

What docs/solvers.md shows can be had from here by name; it is loaded on first use, OR-Tools not before it solves.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from dovetail.optimize.window.bounds import lower_bound, workload_bounds
    from dovetail.optimize.window.cpsat import solve
    from dovetail.optimize.window.objective import parse
    from dovetail.optimize.window.problem import Problem, check, decode, free_beside

_ROOMS: Final = {
    "Problem": "problem", "check": "problem", "decode": "problem", "free_beside": "problem",
    "lower_bound": "bounds", "parse": "objective", "solve": "cpsat", "workload_bounds": "bounds",
}  # fmt: skip

__all__ = [
    "Problem", "check", "decode", "free_beside", "lower_bound", "parse", "solve", "workload_bounds",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _ROOMS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"dovetail.optimize.window.{_ROOMS[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
