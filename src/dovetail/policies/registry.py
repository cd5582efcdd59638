"""Policies by name: `easy`, `list-saf`, `list:order=wfp3,reserve=4`, `path/to/file.py:Name`.

A module of this room that has NAMES (a policy for each name), and perhaps ALIASES, is found by itself, with its FAMILY
and when to use each (USES): a new policy is one file here.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import dovetail.policies
import dovetail.policies.published
from dovetail.errors import SettingError
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.turns import Turns
from dovetail.names import in_file, make, settings_of, unknown, with_settings
from dovetail.policies.base import Policy
from dovetail.policies.lists import ORDERS


class UserPolicy(Policy):
    """Any object with `decide(state)`, as a policy. What it declares of itself counts; all else is as for any other."""

    def __init__(self, own: Any) -> None:
        self.own = own
        self.name = str(getattr(own, "name", "") or type(own).__name__)
        self.__doc__ = type(own).__doc__
        for word in ("clairvoyant", "keeps_promises", "timed", "cannot", "place", "needs_site", "turns"):
            if hasattr(own, word):
                setattr(self, word, getattr(own, word))
        if not isinstance(self.turns, Turns | None):
            raise SettingError(f"{self.name}: `turns` says whose turn it is: a Turns, or None")

    def __repr__(self) -> str:
        return f"UserPolicy({self.name})"

    def decide(self, state: State) -> Plan:
        plan: Plan = self.own.decide(state)
        return plan


def policy(given: str | Policy | Any) -> Policy:
    """The policy that is meant: one of that name, with the settings behind a colon, or one that is given as it is, or
    any object with `decide(state)`, or a class of such. SettingError lists the valid choices."""
    if isinstance(given, type) and callable(getattr(given, "decide", None)):
        given = given()
    if isinstance(given, Policy):
        if not given.name:
            object.__setattr__(given, "name", type(given).__name__)  # a policy may be frozen
        return given
    if not isinstance(given, str):
        if not callable(getattr(given, "decide", None)):
            raise SettingError(f"{given!r} is no policy: give a name, or an object with decide(state)")
        return UserPolicy(given)
    if found := in_file(given):
        return policy(make(*found, "decide(state): a policy is a class with one"))
    name, _, rest = given.partition(":")
    plain = aliases().get(name.lower(), name.lower())
    if plain not in named():
        known = [*(one for one in named() if ":" not in one), *aliases()]
        said = unknown("policy", name, known)
        raise SettingError(said if said.endswith("?") else f"no policy {name!r}: `dovetail policies` lists all")
    return with_settings(_meant(plain, rest), rest, given if rest else name.lower(), policy)


def _meant(name: str, rest: str) -> Policy:
    """The policy of a name; a setting may choose another kind of it (`plan:objective=cost`)."""
    written = {part.strip() for part in rest.replace(" ", "").split(",")}
    kinds = (one for key, one in named().items() if key.startswith(f"{name}:") and key.partition(":")[2] in written)
    return next(kinds, named()[name])


@cache
def named() -> Mapping[str, Policy]:
    """All built-in policies by name."""
    return {name: one for found in _modules() for name, one in getattr(found, "NAMES", {}).items()}


@cache
def aliases() -> Mapping[str, str]:
    """Other names for some of them."""
    return {name: of for found in _modules() for name, of in getattr(found, "ALIASES", {}).items()}


def names() -> list[str]:
    """All names, and how each kind of policy is written with its settings, for help and messages."""
    kinds: dict[type, str] = {}
    for name, one in named().items():
        if settings_of(one):
            kinds.setdefault(type(one), f"{name.partition(':')[0]}:{_written(one)}")
    plain = (name for name in named() if ":" not in name)
    return [*plain, *aliases(), *kinds.values(), "path/to/file.py:Name"]


@cache
def families() -> Mapping[str, Mapping[str, str]]:
    """When to use each policy, in a line, by families. ORDER in a name stands for each of the orders."""
    found: dict[tuple[int, str], dict[str, str]] = {}
    for module in _modules():
        if hasattr(module, "FAMILY"):  # its place in the list, and its title
            found.setdefault(module.FAMILY, {}).update(module.USES)
    return {family[1]: found[family] for family in sorted(found)}


def use_of(name: str) -> str:
    """When to use the policy of a name, in a line; empty for one of the user's."""
    plain = aliases().get(name.lower(), name.lower())
    lines = {key: line for family in families().values() for key, line in family.items()}
    general = {key.replace("ORDER", order): line for key, line in lines.items() for order in ORDERS}
    return {**general, **lines}.get(plain) or general.get(plain.partition(":")[0], "")


def _written(one: Policy) -> str:
    return ",".join(f"{name}=..." for name in settings_of(one))


@cache
def _modules() -> list[Any]:
    rooms = (dovetail.policies, dovetail.policies.published)
    return [
        import_module(f"{room.__name__}.{found.name}")
        for room in rooms
        for found in iter_modules(room.__path__)
        if not found.ispkg and found.name != "registry"
    ]
