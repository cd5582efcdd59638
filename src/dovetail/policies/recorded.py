"""What the log says happened, beside what policies would have done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

from dovetail.errors import SettingError
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.policies.base import Policy

_PAST: Final = "is what the log says happened, which does not change"


@dataclass(frozen=True)
class Recorded(Policy):
    """The starts that the log itself has. Nobody decides them here: they are the measure of how well a replay, and its
    idea of the machine, meets what happened. The referee counts the rules that they break."""

    name: str = "recorded"
    from_record: ClassVar[bool] = True
    cannot: ClassVar[Mapping[str, str]] = {
        "every": _PAST,
        "cap": _PAST,
        "charge": _PAST,
    }

    def decide(self, state: State) -> Plan:
        raise SettingError("recorded cannot decide: it is what the log says happened")


NAMES: Final = {"recorded": Recorded()}

FAMILY: Final = (0, "What happened")
USES: Final = {
    "recorded": "the starts of the log itself, to compare with; for logs that know them",
}
"""When to use each, in a line."""
