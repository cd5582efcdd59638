"""Errors that a person can act on: each says what is wrong, where, and what to do."""

from __future__ import annotations

from pathlib import Path
from typing import Final

_LONGEST: Final = 1500
"""Of a line about a file: it quotes what is there, and that may be of any length."""


class DovetailError(Exception):
    """Base of all errors that the command line prints without a traceback."""


class InputError(DovetailError):
    """A file does not follow a rule. Names the file, the line (0 where none applies) and the rule."""

    def __init__(self, path: str | Path, line: int, rule: str) -> None:
        cut = (text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…" for text in rule.split("\n"))
        self.path, self.line, self.rule = str(path), line, "\n".join(cut)
        where = f"{self.path}:{line}" if line else self.path
        super().__init__(f"{where}: {self.rule}")


class SettingError(DovetailError, ValueError):
    """A name or a setting that Dovetail does not know. The message lists the valid choices."""


class StateError(DovetailError, ValueError):
    """A state says something that cannot be. Names the job or the node, and the rule."""


class PolicyError(DovetailError):
    """A policy returned a plan that cannot be carried out, or could not be loaded."""
