"""Predictors by name: `limit`, `recent:jobs=3`, `survival:risk=0.03`, `path/to/file.py:Name`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from dovetail.errors import PolicyError, SettingError
from dovetail.names import in_file, make, settings
from dovetail.predict.base import Predictor
from dovetail.predict.history import Hierarchy, Recent, Similar, Survival
from dovetail.predict.known import Known, is_known
from dovetail.predict.online import Neighbours, Online
from dovetail.predict.quantile import Quantile

_ALL: Final = (Recent(), Similar(), Hierarchy(), Survival(), Neighbours(), Online(), Quantile())
LEARNED: Final[dict[str, Any]] = {one.name: one for one in _ALL}
_KINDS: Final = {
    "jobs": int,
    "last": int,
    "rate": float,
    "penalty": float,
    "share": float,
    "risk": float,
    "level": float,
    "correct": str,
}


def predictor(text: str) -> Predictor:
    """The predictor of that name, with the settings behind a colon. SettingError lists the valid choices."""
    if is_known(text):
        return Known(text)
    if found := in_file(text):
        own = make(*found, "estimate(job)", "observe(job, runtime_s)")
        if not isinstance(own, Predictor):
            raise PolicyError(f"{found[0]}: {found[1]} is no dovetail.predict.base.Predictor: let its class be one")
        return own
    name, _, rest = text.partition(":")
    if name not in LEARNED:
        raise SettingError(f"no estimate {text!r}: choose from {', '.join(names())}")
    made = LEARNED[name]
    changes = settings(rest, text, {key: read for key, read in _KINDS.items() if hasattr(made, key)})
    return replace(made, **changes, name=text)  # type: ignore[no-any-return]


def names() -> list[str]:
    """All names, for help and messages."""
    return [
        "runtime", "limit", "runtime*FACTOR", "recent:jobs=...,correct=...", "similar:correct=...",
        "hierarchy:share=...,correct=...", "survival:risk=...,share=...,jobs=...,correct=...",
        "neighbours:jobs=...,last=...,correct=...", "online:rate=...,penalty=...,correct=...",
        "quantile:level=...,correct=...", "path/to/file.py:Name",
    ]  # fmt: skip
