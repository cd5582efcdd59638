"""Predictors by name: `limit`, `recent:jobs=3`, `survival:risk=0.03`, `path/to/file.py:Name`."""

from __future__ import annotations

from typing import Final

from dovetail.errors import PolicyError, SettingError
from dovetail.names import in_file, make, settings_of, unknown, with_settings
from dovetail.predict.base import Predictor
from dovetail.predict.history import Hierarchy, Recent, Similar, Survival
from dovetail.predict.known import Known, is_known
from dovetail.predict.online import Neighbours, Online
from dovetail.predict.quantile import Quantile

_ALL: Final = (Recent(), Similar(), Hierarchy(), Survival(), Neighbours(), Online(), Quantile())
LEARNED: Final[dict[str, Predictor]] = {one.name: one for one in _ALL}
ALIASES: Final = {"last2": "recent", "cvh": "online", "sp": "survival"}
"""What the papers call them."""


def predictor(text: str | Predictor) -> Predictor:
    """The predictor of that name, with the settings behind a colon, or one that is given as it is. SettingError lists
    the valid choices."""
    if isinstance(text, type) and issubclass(text, Predictor):
        return text()
    if isinstance(text, Predictor):
        return text
    if is_known(text):
        return Known(text)
    if found := in_file(text):
        own = make(*found, "estimate(job)", "observe(job, runtime_s)")
        if not isinstance(own, Predictor):
            raise PolicyError(f"{found[0]}: {found[1]} is no dovetail.Predictor: let its class be one")
        return own
    name, _, rest = text.partition(":")
    name = ALIASES.get(name.lower(), name)
    if name not in LEARNED:
        if "*" in text:
            raise SettingError(f"no estimate {text!r}: a factor is written runtime*FACTOR, as in runtime*1.5")
        raise SettingError(unknown("estimate", name, [one.partition(":")[0] for one in names()[:-1]]))
    return with_settings(LEARNED[name], rest, text)


def names() -> list[str]:
    """All names, for help and messages."""
    learned = (f"{name}:{','.join(f'{key}=...' for key in settings_of(one))}" for name, one in LEARNED.items())
    return ["runtime", "limit", "runtime*FACTOR", *learned, *ALIASES, "path/to/file.py:Name"]
