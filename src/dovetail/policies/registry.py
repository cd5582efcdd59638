"""Policies by name: `easy`, `list-saf`, `list:order=wfp3,reserve=4`, `path/to/file.py:Name`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dovetail.errors import PolicyError, SettingError
from dovetail.names import in_file, load, make, settings, yes_no
from dovetail.policies.base import Policy
from dovetail.policies.deadline import DeadlineBackfilling
from dovetail.policies.energy_planner import MONEY, MoneyPlanner
from dovetail.policies.lists import ORDERS, Conservative, ListPolicy
from dovetail.policies.planner import PATIENT, PLANNED, Offline, Planner
from dovetail.policies.published.daily import Daily
from dovetail.policies.published.dispatch import DISPATCH_NAMES, Dispatch, dispatch_named
from dovetail.policies.published.solver import SOLVER_NAMES, Solver, solver_named
from dovetail.policies.published.switch import Switch
from dovetail.policies.thrift import Thrift
from dovetail.units import parse_duration

ALIASES = {
    "list-reg": "list-fcfs",
    "justbf": "list-fcfs",
    "aggressive": "greedy-fcfs",
    "passive": "strict-fcfs",
}
"""Names that the papers use; also ORDER-justbf, ORDER-aggressive, ORDER-passive."""

_BACKFILL = {"sjbf": "sjf", **{f"{order}bf": order for order in ORDERS}}
_DEPTHS: dict[str, int | str] = {
    "strict": "strict", "greedy": 0, "list": "all", "easy": 1, "justbf": "all", "aggressive": 0, "passive": "strict",
}  # fmt: skip


def policy(text: str) -> Policy:
    """The policy of that name, with the settings behind a colon. SettingError lists the valid choices."""
    if found := in_file(text):
        return make(*found, "decide(state): a policy is a class with one")  # type: ignore[no-any-return]
    name, _, rest = text.partition(":")
    made = _built_in(name.lower())
    if name.lower() == "plan" and any(f"objective={one}" in rest.replace(" ", "").split(",") for one in MONEY):
        made = MoneyPlanner(name=name)
    known: dict[str, Callable[[str], Any]]
    if isinstance(made, Conservative):
        known = {"sweep": str}
    elif isinstance(made, DeadlineBackfilling):
        known = {"guard": yes_no}
    elif isinstance(made, Solver | Dispatch | Thrift | Daily | MoneyPlanner):
        known = made.settings()
    elif isinstance(made, Switch):
        known = made.settings(policy)
    elif isinstance(made, Planner):
        known = {
            "objective": str, "decodes": int, "window": int, "foresight": int, "starve": _starve, "ms": float,
            "hot": float, "cold": float, "patient": float, "place": str,
        }  # fmt: skip
    else:
        known = {
            "order": _order, "reserve": _reserve, "backfill": str, "starve": parse_duration,
            "relax": float, "slack": float, "place": str,
        }  # fmt: skip
    changes = settings(rest, text, known)
    if not changes:
        return made
    for duration in ("starve", "hold", "delay", "horizon"):
        if duration in changes:
            changes[f"{duration}_s"] = changes.pop(duration)
    return replace(made, **changes, name=text)


def names() -> list[str]:
    """All built-in names, for help and messages."""
    return [
        *(f"strict-{order}" for order in ORDERS),
        *(f"greedy-{order}" for order in ORDERS),
        "easy",
        *(f"easy-{back}" for back in _BACKFILL),
        *(f"{order}-easy" for order in ORDERS),
        *(f"list-{order}" for order in ORDERS),
        "conservative",
        "dbf",
        "thrift",
        "daily",
        *(f"{kind}-{term}" for kind in ("plan", "offline") for term in PLANNED),
        "plan-deadline",
        *SOLVER_NAMES,
        *DISPATCH_NAMES,
        *ALIASES,
        "list:order=...,reserve=...,backfill=...,starve=...,relax=...,slack=...,place=...",
        "conservative:sweep=...",
        "dbf:guard=no",
        "thrift:saves=cost|carbon,wait=...,hold=...,window=...,order=...",
        "daily:known=day|submitted,search=multi|delay|relax|cp,decodes=...,delay=...,deterministic=...,window=...",
        "plan:objective=...,decodes=...,window=...,foresight=...,starve=...,patient=...,ms=...,hot=...,cold=...,place=...",
        "plan:objective=cost|carbon,wait=...,hold=...,decodes=...,window=...,hot=...,cold=...",
        "plan:objective=profit,horizon=..., and as for cost",
        "cp:objective=...,deterministic=...,extend=...,window=...,idle=...,refine=...",
        "pcp21:window=...,delta=...,most=...,clock=..., as pcp19, hcp19, pcp21s",
        "offline:... (knows the future), as plan",
        "switch:plain=...,mixed=...,many=...,jobs=...",
        "path/to/file.py:Name",
    ]


def _built_in(
    name: str,
) -> (
    ListPolicy
    | Conservative
    | DeadlineBackfilling
    | Planner
    | MoneyPlanner
    | Solver
    | Dispatch
    | Switch
    | Thrift
    | Daily
):
    plain = ALIASES.get(name, name)
    if solver := solver_named(plain) or dispatch_named(plain):
        return solver
    if plain in ("plan", "offline"):
        return Planner(name=name) if plain == "plan" else Offline(name=name)
    if plain == "plan-deadline":
        return Planner(name=name, **PATIENT)
    if plain == "switch":
        many = ListPolicy("sjf", 1, place="scarce", name="sjf-easy:place=scarce")
        return Switch(_built_in("hcp19"), _built_in("pcp21"), many, name=name)
    if plain == "conservative":
        return Conservative(name=name)
    if plain == "thrift":
        return Thrift(name=name)
    if plain == "daily":
        return Daily(name=name)
    if plain == "dbf":
        return DeadlineBackfilling(name=name)
    if plain in ("easy", "list"):
        return ListPolicy(reserve=1 if plain == "easy" else "all", name=name)
    first, _, second = plain.partition("-")
    if first == "plan" and second in PLANNED:
        return Planner(name=name, **PLANNED[second])
    if first == "offline" and second in PLANNED:
        return Offline(objective=second, name=name)
    if first in ("strict", "greedy", "list") and second in ORDERS:
        return ListPolicy(order=second, reserve=_DEPTHS[first], name=name)
    if first == "easy" and second in _BACKFILL:
        return ListPolicy(reserve=1, backfill=_BACKFILL[second], name=name)
    if first in ORDERS and second in ("easy", "justbf", "aggressive", "passive"):
        return ListPolicy(order=first, reserve=_DEPTHS[second], name=name)
    raise SettingError(f"no policy {name!r}: choose from {', '.join(names())}; orders are {', '.join(ORDERS)}")


def _starve(value: str) -> int | None:
    return None if value == "none" else parse_duration(value)


def _reserve(value: str) -> int | str:
    named: dict[str, int | str] = {"none": 0, "first": 1, "all": "all", "strict": "strict"}
    if value in named:
        return named[value]
    if not value.isdigit():
        raise ValueError("must be strict, none, first, all, or a number of jobs")
    return int(value)


def _order(value: str) -> Any:
    found = in_file(value)
    if found is None:
        return value
    order = load(*found)
    if not callable(order):
        raise PolicyError(f"{found[0]}: {found[1]} is not a function: an order is one of the state")
    return order
