"""Plan: what a policy answers at one instant."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any


@dataclass(frozen=True)
class Plan:
    """Jobs to start now, and what the policy says of the others. Jobs are named by their index in the state.

    `promised` maps a waiting job to the start that it was promised to come no later than, and may count on while
    estimates are upper bounds; `expected` to the start that is foreseen; `reasons` says why a job waits. `deadlines`
    maps a waiting job that came with a deadline to the instant by which it will have ended, promised too; -1: refused.
    `nodes` maps each job to start, on a cluster whose nodes are known, to the node of each of its units; `devices` to
    the shared devices of each (bit d: device d), where the cluster has any. Both may also have jobs that start later,
    for a policy that wants to remember where.
    `wake` is when the policy wants to be asked again, if nothing happens before; None: it does not mind.
    `memory` has numbers by name that the policy wants to find again in the next pass.
    """

    starts: Sequence[int] = ()
    promised: Mapping[int, int] = field(default_factory=dict)
    expected: Mapping[int, int] = field(default_factory=dict)
    deadlines: Mapping[int, int] = field(default_factory=dict)
    reasons: Mapping[int, str] = field(default_factory=dict)
    wake: int | None = None
    nodes: Mapping[int, Sequence[int]] = field(default_factory=dict)
    devices: Mapping[int, Sequence[int]] = field(default_factory=dict)
    memory: Mapping[str, int] = field(default_factory=dict)

    def without(self, jobs: Collection[int]) -> Plan:
        """The same, saying nothing of these jobs."""
        gone = set(jobs)
        said: dict[str, Any] = {
            name: {job: one for job, one in getattr(self, name).items() if job not in gone}
            for name in ("promised", "expected", "deadlines", "reasons", "nodes", "devices")
        }
        return replace(self, starts=[job for job in self.starts if job not in gone], **said)

    def __repr__(self) -> str:
        said = {"promised": self.promised, "expected": self.expected, "deadlines": self.deadlines}
        more = "".join(f", {len(jobs):,} {word}" for word, jobs in said.items() if jobs)
        shown = ", ".join(str(job) for job in self.starts[:5]) + (", ..." if len(self.starts) > 5 else "")
        starts = f"{len(self.starts):,} to start" + (f" ({shown})" if shown else "")
        return f"Plan: {starts}{more}" + (f", wake at {self.wake:,} s" if self.wake is not None else "")
