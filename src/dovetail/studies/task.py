"""One cell of a study with all that a worker needs to run it, and what its run is called."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, Final

FORMAT: Final = 2
"""How runs are named and what their rows hold. Runs of another format are of an earlier version of Dovetail.
1 had no number: names did not follow from the power, queue, group and name of jobs."""


@dataclass(frozen=True)
class Cell:
    """One combination, as tables name it."""

    trace: str
    scenario: str
    """What was done to the trace: transforms, separated by blanks; empty for the trace as it is."""
    span: str
    policy: str
    estimate: str
    seed: int


@dataclass(frozen=True)
class Task:
    """One cell with all that a worker needs to run it, in plain values. Its name tells it from all others."""

    cell: Cell
    code: str
    workload_sha256: str
    processors: int
    jobs: int
    policy: str
    """The policy as the registry reads it: its file, if it has one, by an absolute path."""
    policy_sha256: str
    """Hash of the user's files that the policy needs; empty for a built-in policy."""
    estimate: str
    """The estimate as its registry reads it."""
    estimate_sha256: str
    """Hash of the user's files that the estimate needs; empty for a built-in one."""
    counting: str
    feedback: bool
    every_s: int
    keep: str
    pass_times: bool
    cluster: str = ""
    """The nodes, as store.nodes_text writes them; empty: processors are only counted."""
    site: str = ""
    """The file of the site; empty: what energy costs is not asked."""
    site_sha256: str = ""
    """Hash of what it says."""
    ortools: str = ""
    """The version of OR-Tools, where it may decide."""

    @cached_property
    def name(self) -> str:
        """Hash of all that the run follows from. Where a user's file lies is not part of it."""
        matters = {key: value for key, value in asdict(self).items() if key not in ("policy", "estimate", "site")}
        return hashlib.sha256(json.dumps([FORMAT, matters], sort_keys=True).encode()).hexdigest()[:24]


def plain(task: Task) -> dict[str, Any]:
    """A task as values that any executor can carry; `from_plain` is the way back."""
    return asdict(task)


def from_plain(values: dict[str, Any]) -> Task:
    return Task(**{**values, "cell": Cell(**values["cell"])})
