"""What a submit line proves: options before the script's name.

It proves nothing by what it lacks: #SBATCH lines and SBATCH_ variables are not in it. What stands behind the script's
name are the script's own arguments. Quotes are lost, so a text with blanks looks like the script's name, or like an
option; hence what is read here is only evidence.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dovetail.slurm.words import MOST_TEXT

_PROGRAMS: Final = ("sbatch", "srun", "salloc")
_ALONE: Final = frozenset((
    "bell", "contiguous", "disable-status", "exclusive", "get-user-env", "help", "hold", "ignore-pbs", "immediate",
    "kill-on-bad-exit", "label", "multi-prog", "nice", "no-bell", "no-kill", "no-requeue", "no-shell", "oom-kill-step",
    "overcommit", "overlap", "oversubscribe", "parsable", "preserve-env", "propagate", "pty", "quiet",
    "quit-on-interrupt", "reboot", "requeue", "share", "spread-job", "test-only", "unbuffered", "usage",
    "use-min-nodes", "verbose", "version", "wait", "whole", "x11",
))  # fmt: skip
"""Long options that take no word behind them; some take one behind `=`."""
_LETTERS: Final = frozenset("HhIkKlOQsuvVWXZ")
"""Short ones that take none."""
_LONG: Final = {"N": "nodes"}
_COUNT: Final = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?(?::\d{1,9})?", re.ASCII)


@dataclass(frozen=True)
class Evidence:
    """What was asked for by options: whole nodes; just so many nodes, 0: it does not say."""

    whole: bool = False
    nodes: int = 0


NOTHING: Final = Evidence()


def evidence(line: str) -> Evidence:
    """What a line proves."""
    given = dict(_options(line[:MOST_TEXT].split()))
    nodes = _COUNT.fullmatch(given.get("nodes", ""))
    exactly = int(nodes[1]) if nodes and nodes[2] in (None, nodes[1]) else 0
    return Evidence(given.get("exclusive") == "", exactly)


def _options(words: list[str]) -> Iterator[tuple[str, str]]:
    """The options with their values, up to the script."""
    if not words or words[0].rpartition("/")[2] not in _PROGRAMS:
        return
    at = 1
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-", "--"):
        name, equals, value = words[at].lstrip("-").partition("=")
        if not words[at].startswith("--"):
            letter, value = words[at][1], words[at][2:]
            name, equals = _LONG.get(letter, letter), value
            if letter in _LETTERS:
                equals = "="
        if not equals and name not in _ALONE:
            at += 1
            value = words[at] if at < len(words) else ""
        yield name, value
        at += 1
