"""What a page shows, as plain data: it knows policies, metrics and schedules, and nothing of where they were kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from dovetail.metrics.comparison import Comparison
from dovetail.model.schedule import Schedule


@dataclass(frozen=True)
class Entry:
    """One policy in one case."""

    policy: str
    metrics: Mapping[str, float]
    """By the names of docs/metrics.md; means over its runs, nan where there is nothing to measure."""
    runs: int = 1
    """How many runs (seeds, spans) the means are over."""
    versus: Mapping[str, Comparison] = field(default_factory=dict)
    """By metric: this policy against the baseline, pair by pair. Empty for the baseline and where nothing pairs."""
    schedule: Callable[[], Schedule] | None = None
    """Reads the schedule to draw (of the first run); None where starts were not kept."""


@dataclass(frozen=True)
class Case:
    """All policies on one workload under one estimate. The baseline comes first."""

    trace: str
    estimate: str
    jobs: int
    processors: int
    span_s: int
    """Seconds from the first submission to the last."""
    entries: tuple[Entry, ...]
    pairing: str = ""
    """What the comparisons are paired over, in words: `52 weeks`, `30 seeds`; empty where there are none."""
    detail: str = ""
    """What else tells this case from others: scenario, span; empty for the trace as it is."""
    remarks: tuple[str, ...] = ()
    """What a reader of this case must know: what was left out, and why nothing could be compared."""
    with_limits: Callable[[], Schedule] | None = None
    """Reads the schedule of the baseline with the limits as estimates; None where there is none, or this is it."""
    nodes: int = 0
    """How many nodes the processors are on; 0 where they are only counted."""

    @property
    def title(self) -> str:
        return ", ".join(part for part in (self.trace, self.detail, f"estimate: {self.estimate}") if part)

    @property
    def machine(self) -> str:
        """How large it is, in words."""
        if not self.nodes:
            return f"{self.processors:,} processors"
        return f"{self.nodes:,} node{'s' * (self.nodes > 1)} with {self.processors:,} cores"


@dataclass(frozen=True)
class Content:
    """One page."""

    title: str
    cases: tuple[Case, ...]
    command: str = ""
    """The command that makes this page again."""
    notes: tuple[str, ...] = ()
    """What a reader must know: what was left out, what failed, which code made the runs."""
    thanks: tuple[str, ...] = ()
    """Whom the logs ask to acknowledge."""
    provenance: Mapping[str, str] = field(default_factory=dict)
    """Versions and hashes, for the foot of the page."""
