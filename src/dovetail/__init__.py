"""Dovetail decides when and where batch jobs run on a cluster. This is its front door:

    import dovetail as dt

    log = dt.read("KTH-SP2.swf.gz")
    both = dt.compare(log, ["easy", "plan-awf"])

`dir(dovetail)` lists all names, docs/python.md says what they are for. Everything else is internal.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from dovetail.version import __version__

if TYPE_CHECKING:
    from dovetail import optimize
    from dovetail.api import (
        check,
        compare,
        fetch,
        generate,
        plot,
        policy,
        predictor,
        prepare,
        read,
        replay,
        report,
        study,
        summarize,
        write,
    )
    from dovetail.energy.site import Site
    from dovetail.errors import DovetailError
    from dovetail.model.cluster import Cluster
    from dovetail.model.plan import Plan
    from dovetail.model.schedule import Schedule
    from dovetail.model.state import State
    from dovetail.model.workload import Workload
    from dovetail.policies.base import Policy
    from dovetail.policies.planner import Planner
    from dovetail.predict.base import Predictor
    from dovetail.studies.environment import Environment
    from dovetail.studies.store import Store

__all__ = [
    "Cluster", "DovetailError", "Environment", "Plan", "Planner", "Policy", "Predictor", "Schedule", "Site", "State",
    "Store", "Workload", "__version__", "check", "compare", "fetch", "generate", "optimize", "plot", "policy",
    "predictor", "prepare", "read", "replay", "report", "study", "summarize", "write",
]  # fmt: skip

_ROOMS: Final = {
    "Cluster": "model.cluster", "DovetailError": "errors", "Environment": "studies.environment", "Plan": "model.plan",
    "Planner": "policies.planner", "Policy": "policies.base", "Predictor": "predict.base",
    "Schedule": "model.schedule", "Site": "energy.site", "State": "model.state", "Store": "studies.store",
    "Workload": "model.workload",
}  # fmt: skip
"""Where the classes are; functions are in `api`."""


def __getattr__(name: str) -> Any:
    """Load on first use: `import dovetail` alone stays light."""
    if name not in __all__:
        raise AttributeError(f"module 'dovetail' has no attribute {name!r}; it has {', '.join(__all__)}")
    if name == "optimize":
        return import_module("dovetail.optimize")
    found = globals()[name] = getattr(import_module(f"dovetail.{_ROOMS.get(name, 'api')}"), name)
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
