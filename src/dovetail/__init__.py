"""Dovetail decides when and where batch jobs run on a cluster.

What a user's own policy needs can be imported from here: Plan, Policy, State.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dovetail.version import __version__

__all__ = ["Plan", "Policy", "State", "__version__"]

if TYPE_CHECKING:
    from dovetail.model.plan import Plan
    from dovetail.model.state import State
    from dovetail.policies.base import Policy


def __getattr__(name: str) -> Any:
    """Load on first use: `import dovetail` alone stays light."""
    if name in ("Plan", "State"):
        from importlib import import_module

        return getattr(import_module(f"dovetail.model.{name.lower()}"), name)
    if name == "Policy":
        from dovetail.policies.base import Policy

        return Policy
    raise AttributeError(f"module 'dovetail' has no attribute {name!r}")
