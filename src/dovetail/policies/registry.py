"""Policies by name: `easy`, `list-saf`, `list:order=wfp3,reserve=4`, `path/to/file.py:Name`."""

from __future__ import annotations

import importlib.util
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any

from dovetail.errors import PolicyError, SettingError
from dovetail.policies.base import Policy
from dovetail.policies.lists import ORDERS, Conservative, ListPolicy
from dovetail.policies.planner import PLANNED, Offline, Planner
from dovetail.policies.solver import SOLVER_NAMES, Solver, solver_named
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
_FILE = re.compile(r"^(?P<path>.+\.py):(?P<name>[A-Za-z_]\w*)(?:,(?P<settings>.*))?$")


def policy(text: str) -> Policy:
    """The policy of that name, with the settings behind a colon. SettingError lists the valid choices."""
    if (match := _FILE.match(text)) and ("=" not in match["path"] or Path(match["path"]).is_file()):
        if match["settings"]:
            raise SettingError(f"{text!r}: a policy from a file takes no settings; write them into the file")
        return _from_file(match["path"], match["name"])
    name, _, rest = text.partition(":")
    made = _built_in(name.lower())
    settings = _settings(rest, text)
    if not settings:
        return made
    known: dict[str, Callable[[str], Any]]
    if isinstance(made, Conservative):
        known = {"sweep": str}
    elif isinstance(made, Solver):
        known = made.settings()
    elif isinstance(made, Planner):
        known = {
            "objective": str, "decodes": int, "window": int, "foresight": int, "starve": _starve, "ms": float,
            "hot": float, "cold": float,
        }  # fmt: skip
    else:
        known = {
            "order": _order, "reserve": _reserve, "backfill": str, "starve": parse_duration,
            "relax": float, "slack": float,
        }  # fmt: skip
    changes = {}
    for key, value in settings.items():
        if key not in known:
            raise SettingError(f"{text!r}: no setting {key!r}: choose from {', '.join(known)}")
        try:
            changes["starve_s" if key == "starve" else key] = known[key](value)
        except ValueError as error:
            raise SettingError(f"{text!r}: {key}={value}: {error}") from error
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
        *(f"{kind}-{term}" for kind in ("plan", "offline") for term in PLANNED),
        *SOLVER_NAMES,
        *ALIASES,
        "list:order=...,reserve=...,backfill=...,starve=...,relax=...,slack=...",
        "conservative:sweep=...",
        "plan:objective=...,decodes=...,window=...,foresight=...,starve=...,ms=...,hot=...,cold=...",
        "cp:objective=...,deterministic=...,extend=...,window=...,idle=...,refine=...",
        "offline:... (knows the future), as plan",
        "path/to/file.py:Name",
    ]


def _built_in(name: str) -> ListPolicy | Conservative | Planner | Solver:
    plain = ALIASES.get(name, name)
    if solver := solver_named(plain):
        return solver
    if plain in ("plan", "offline"):
        return Planner(name=name) if plain == "plan" else Offline(name=name)
    if plain == "conservative":
        return Conservative(name=name)
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


def _settings(rest: str, text: str) -> dict[str, str]:
    pairs = {}
    for part in filter(None, rest.split(",")):
        key, equals, value = part.partition("=")
        if not equals or not value:
            raise SettingError(f"{text!r}: {part!r} is not a setting: write name=value, separated by commas")
        pairs[key.strip()] = value.strip()
    return pairs


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
    if match := _FILE.match(value):
        found = getattr(_module(match["path"]), match["name"], None) or _missing(match["path"], match["name"])
        if not callable(found):
            raise PolicyError(f"{match['path']}: {match['name']} is not a function: an order is one of the state")
        return found
    return value


def _from_file(path: str, name: str) -> Policy:
    """A user's policy: a class with `decide`, or an object that has it."""
    found = getattr(_module(path), name, None) or _missing(path, name)
    try:
        made = found() if isinstance(found, type) else found
    except Exception as error:
        raise PolicyError(f"{path}: {name}() failed: {type(error).__name__}: {error}") from error
    if not callable(getattr(made, "decide", None)):
        raise PolicyError(f"{path}: {name} has no method decide(state): a policy is a class with one")
    if not getattr(made, "name", ""):
        try:
            made.name = name
        except AttributeError:
            raise PolicyError(f"{path}: {name} needs a `name`") from None
    return made  # type: ignore[no-any-return]


def _missing(path: str, name: str) -> Any:
    raise PolicyError(f"{path} defines no {name!r}")


def _module(path: str) -> ModuleType:
    """Run a user's file as a module. This executes the user's own code: it is what they asked for."""
    file = Path(path)
    if not file.is_file():
        raise PolicyError(f"{path}: no such file; a policy is given as path/to/file.py:Name")
    module_name = f"dovetail_user_{file.stem}"
    spec = importlib.util.spec_from_file_location(module_name, file)
    if spec is None or spec.loader is None:
        raise PolicyError(f"{path}: not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise PolicyError(f"{path}: could not be loaded: {type(error).__name__}: {error}") from error
    return module
