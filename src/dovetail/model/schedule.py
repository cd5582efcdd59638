"""Schedule: what a replay realised, one value per job, in the order of its workload."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from dovetail.arrays import Ints, Mask
from dovetail.model import frames
from dovetail.model.cluster import Cluster
from dovetail.model.requests import Placement
from dovetail.model.workload import Workload
from dovetail.units import duration, printable

if TYPE_CHECKING:
    import polars as pl


@dataclass(frozen=True)
class Lost:
    """A run that a failure of a node ended at `end`: its work is lost, and the job waited again from then on."""

    job: int
    start: int
    end: int
    nodes: Ints
    devices: Ints
    estimate: int
    """How long it was expected to run when it started."""


@dataclass(frozen=True)
class Schedule:
    """Realised starts of all jobs of a workload. A job that was never started has start -1.

    `arrive` is when the job entered the queue: its submit, or later where user feedback held it back or it was not to
    start before; -1: it left before that.
    `promised_first` and `promised_last` are the first and last start that the policy promised (-1: none).
    `said` is the estimate of each job's run time when it arrived; empty where that is not known.
    `accepted` says what the policy made of each job's deadline: 1 accepted, 0 refused, -1 the job has none; empty where
    it was not asked.
    `placement`: the node of every unit, where the cluster's nodes are known.
    `charged_s`: how long all decisions took together, where that was added to the waits.
    `clairvoyant`: the policy knew the run times and the submissions to come.
    `lost`: runs that a failure ended. The job's `start` and `placement` are those of its last run.
    `recorded`: nobody decided these starts; they are those of the log. They may break rules.
    """

    workload: Workload
    cluster: Cluster
    policy: str
    estimate: str
    start: Ints
    arrive: Ints
    promised_first: Ints
    promised_last: Ints
    passes: int
    seed: int = 0
    versions: dict[str, str] = field(default_factory=dict)
    said: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    clairvoyant: bool = False
    accepted: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    placement: Placement | None = None
    charged_s: float = 0.0
    recorded: bool = False
    lost: tuple[Lost, ...] = ()

    def __repr__(self) -> str:
        ran = self.start >= 0
        waited = f", mean wait {duration(round(float(self.wait[ran].mean())))}" if bool(ran.any()) else ""
        never = f", {int(self.unstarted.sum()):,} never started" if bool(self.unstarted.any()) else ""
        never += f", {int(self.left.sum()):,} left the queue" if bool(self.left.any()) else ""
        name, policy = printable(self.workload.name, 60), printable(self.policy, 60)
        return f"Schedule: {name} under {policy}, {len(self.start):,} jobs{waited}{never}"

    def jobs(self) -> pl.DataFrame:
        """A polars frame with one row per job: when it was submitted, started and ended, how long it waited, and what
        was known of it; null where there is nothing to say. docs/python.md has the columns."""
        return frames.of_schedule(self)

    @property
    def end(self) -> Ints:
        """When each job ended: start plus run time."""
        return self.start + self.workload.runtime

    @property
    def deadline_at(self) -> Ints:
        """By when each job must have ended: its arrival plus `deadline_s`; -1 where it has none."""
        deadline_s = self.workload.get("deadline_s")
        return np.where(deadline_s >= 0, self.arrive + deadline_s, -1)

    @property
    def left(self) -> Mask:
        """Which jobs left the queue without having run."""
        return (self.start < 0) & (self.workload.leaves >= 0)

    @property
    def unstarted(self) -> Mask:
        """Which jobs stayed in the queue and never started."""
        return (self.start < 0) & (self.workload.leaves < 0)

    @property
    def wait(self) -> Ints:
        """Seconds from arrival to start."""
        return self.start - self.arrive
