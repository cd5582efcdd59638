"""What a page shows, as plain data: it knows policies, metrics and schedules, and nothing of where they were kept. A
case can also be looked at by itself, in Python: as a table, a frame, a picture or a page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import nan
from pathlib import Path
from typing import TYPE_CHECKING

from dovetail.errors import SettingError
from dovetail.metrics.comparison import Comparison
from dovetail.model.schedule import Schedule
from dovetail.names import unknown

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure


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

    @property
    def unstarted(self) -> str:
        """How many jobs still waited when the replay ended, in words; empty: none did."""
        return unstarted(self.metrics, self.runs)

    @property
    def recorded(self) -> bool:
        """Whether this is no policy but what the log says happened."""
        return self.metrics.get("rules_broken", nan) >= 0

    @property
    def contends(self) -> bool:
        """Whether it can be best of something: it is a policy, and started all jobs."""
        return not (self.unstarted or self.recorded)

    @property
    def note(self) -> str:
        """What a reader must know of its numbers, below its name."""
        return self.unstarted or (recorded(self.metrics, self.runs) if self.recorded else left(self.metrics))


def recorded(metrics: Mapping[str, float], runs: int = 1) -> str:
    """How many starts of the log break a rule of replays, in words."""
    many = metrics["rules_broken"]
    some = "no start breaks" if not many else "1 start breaks" if many == 1 else f"{many:,.0f} starts break"
    return f"as the log says; {some} a rule{' in a run' if runs > 1 else ''}"


def left(metrics: Mapping[str, float]) -> str:
    """How many jobs left the queue, in words; empty: none did. Numbers are of the others."""
    many = metrics.get("jobs_left", 0)
    return f"{many:,.0f} jobs left the queue" if many > 0 else ""


def unstarted(metrics: Mapping[str, float], runs: int = 1) -> str:
    """How many jobs still waited when the replay ended, in words; empty: none did. Numbers of such a policy are of
    other jobs than those of the others: it is compared with none of them, and best of nothing."""
    many = metrics.get("jobs_unstarted", 0)
    if not many > 0:
        return ""
    if runs > 1:
        return f"never started {many * runs:,.0f} of {metrics['jobs'] * runs:,.0f} jobs in {runs:,} runs"
    return f"never started {many:,.0f} of {metrics['jobs']:,.0f} jobs"


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
    axes: tuple[str, str] = ("af_s", "p2sf_s")
    """The two metrics of its front: what users feel on average, and how unevenly."""

    @property
    def title(self) -> str:
        return ", ".join(part for part in (self.trace, self.detail, f"estimate: {self.estimate}") if part)

    @property
    def machine(self) -> str:
        """How large it is, in words."""
        if not self.nodes:
            return f"{self.processors:,} processors"
        return f"{self.nodes:,} node{'s' * (self.nodes > 1)} with {self.processors:,} cores"

    @property
    def policies(self) -> tuple[str, ...]:
        """Their names, the baseline first."""
        return tuple(entry.policy for entry in self.entries)

    @property
    def schedules(self) -> dict[str, Schedule]:
        """The schedule of each policy whose starts were kept; of several runs, the one that pictures show."""
        return {entry.policy: entry.schedule() for entry in self.entries if entry.schedule is not None}

    def frame(self) -> pl.DataFrame:
        """A polars frame with one row per policy, the baseline first, and one column per metric."""
        import polars as pl

        rows = [{"policy": entry.policy, "runs": entry.runs, **entry.metrics} for entry in self.entries]
        return pl.from_dicts(rows, infer_schema_length=None)

    def versus(self, policy: str) -> Mapping[str, Comparison]:
        """How a policy compares with the baseline, by metric: the change, its interval and the verdict."""
        others = self.entries[1:]
        found = next((entry for entry in others if entry.policy == policy), None)
        if found is None:
            known = [entry.policy for entry in others]
            raise SettingError(f"{unknown('compared policy', policy, known)} (the baseline is {self.policies[0]})")
        return found.versus

    def plot(self, kind: str = "waits") -> Figure:
        """A picture of one kind (`waits`, `queue`, `utilization`, `changes`, ...), as a Matplotlib figure."""
        from dovetail.reports.plots import of_case

        return of_case(self, kind)

    def report(self, path: str | Path, *, command: str = "") -> None:
        """Write one self-contained page. `command`: the one that makes it again, for its foot."""
        from dovetail.reports.page import write

        write(self.page(command), path)

    def page(self, command: str = "") -> Content:
        """A page about this case alone."""
        first = self.entries[0].schedule
        past = None if first is None else first().workload
        return Content(
            title=f"{self.trace}: " + ", ".join(self.policies),
            cases=(self,),
            command=command,
            notes=tuple(
                f"{step.name}: {step.removed:,} removed, {step.changed:,} changed"
                for step in (past.provenance.steps if past else ())
            ),
            thanks=(past.provenance.acknowledge,) if past and past.provenance.acknowledge else (),
            provenance={"workload sha256": past.digest()} if past else {},
        )

    def __repr__(self) -> str:
        from dovetail.reports.display import as_text

        return as_text(self)

    def _repr_html_(self) -> str:
        from dovetail.reports.display import as_html

        return as_html(self)


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
    sentences: tuple[str, ...] = ()
    """What it says first, in place of what the numbers say by themselves."""

    @property
    def unstarted(self) -> list[tuple[str, str]]:
        """Each policy of each case, and how many jobs it left waiting, in words."""
        return [(f"{entry.policy} ({case.title})", entry.unstarted) for case in self.cases for entry in case.entries]
