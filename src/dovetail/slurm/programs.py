"""Slurm's programs: how they are called, and what is said where they are not there or refuse."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import Final

from dovetail.errors import DovetailError
from dovetail.units import printable

ENVIRONMENT: Final = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
"""In which they are called: times are seconds since 1970, lists of tasks whole."""


class SlurmError(DovetailError):
    """A program of Slurm's is not there, or refuses."""


def answer(words: list[str]) -> str:
    """What a quick call prints."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and nothing of it is foreign
            words, env=os.environ | ENVIRONMENT, capture_output=True, timeout=60, check=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        rule = "run this where Slurm's commands are, or take --print-command there and read its file here"
        raise SlurmError(f"there is no {words[0]} on this machine: {rule}") from error
    except (subprocess.SubprocessError, OSError) as error:
        raise SlurmError(f"{' '.join(words)} failed: {printable(why(error), 300)}") from error
    return done.stdout.decode("utf-8", "replace")


def shell_line(words: list[str]) -> str:
    """The call as a line for a shell."""
    return shlex.join(["env", *(f"{name}={value}" for name, value in ENVIRONMENT.items()), *words])


def why(error: BaseException) -> str:
    """What it said itself, if it did."""
    said = getattr(error, "stderr", None)
    return said.decode("utf-8", "replace").strip() if said else str(error)
