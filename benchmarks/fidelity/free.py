"""Left to itself: waits of a replay by our rules, beside those of real runs of the same jobs.

A real Slurm does not repeat itself, and neither does ours when the clock of its backfill begins at another second: so
each is an ensemble, and means are compared with their intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from benchmarks.fidelity.agree import Run
from benchmarks.fidelity.digest import OF_ARRAY, Digest
from benchmarks.fidelity.nouns import came, cluster_of, machine_of, workload_of
from scipy.stats import t as student

from dovetail.arrays import Floats, Ints
from dovetail.engine.replay import replay
from dovetail.policies.slurm import as_told

PHASES = 20
CLASSES = ((1, "to 1 node"), (4, "to 4"), (16, "to 16"), (64, "to 64"))
"""Sizes of jobs, in nodes of 16 cores."""


@dataclass(frozen=True)
class Free:
    """Waits of the same jobs, a row for each run, in seconds."""

    jobs: int
    cores: Ints
    real: Floats
    ours: Floats

    def means(self, of: slice | Ints | None = None) -> tuple[Floats, Floats]:
        """Of each run, of all jobs or of some."""
        chosen = slice(None) if of is None else of
        return self.real[:, chosen].mean(axis=1), self.ours[:, chosen].mean(axis=1)

    def ratio(self) -> tuple[float, float, float]:
        """Our mean wait beside theirs, with its 95 % interval: as of two means of so many runs."""
        real, ours = self.means()
        ratio = float(ours.mean() / real.mean())
        if len(real) < 2:
            return ratio, 0.0, float("inf")
        parts = [values.var(ddof=1) / len(values) / values.mean() ** 2 for values in (real, ours)]
        wide = float(student.ppf(0.975, len(real) - 1)) * ratio * float(np.sqrt(sum(parts)))
        return ratio, ratio - wide, ratio + wide

    def classes(self) -> list[tuple[str, int, float, float]]:
        """Mean waits of jobs by their size: its name, how many, theirs and ours."""
        found, below = [], 0
        for most, name in CLASSES:
            here = np.flatnonzero((self.cores > 16 * below) & (self.cores <= 16 * most))
            if len(here):
                real, ours = self.means(here)
                found.append((name, len(here), float(real.mean()), float(ours.mean())))
            below = most
        return found


def free(digests: Sequence[Digest], phases: int = PHASES) -> Free:
    """Our ensemble: of each real run its own jobs, as they came and ran, from each phase of the backfill's clock."""
    runs = [Run(digest) for digest in digests]
    known = [by_call(run) for run in runs]
    calls = sorted(set.intersection(*(set(one) for one in known)))
    real = np.array([
        [run.started[one[call]] - came(run, one[call]) for call in calls] for run, one in zip(runs, known, strict=True)
    ])  # fmt: skip
    ours = []
    for at in range(phases):
        run, one = runs[at % len(runs)], known[at % len(runs)]
        interval = _interval(run.digest)
        policy = replace(as_told(machine_of(run))[0], bf_interval=interval, phase=at * interval // phases)
        workload = workload_of(run)
        made = replay(workload, policy, cluster=cluster_of(run))
        where = {job: row for row, job in enumerate((workload["id"]).tolist())}
        ours.append([float(made.wait[where[one[call]]]) for call in calls])
    cores = np.array([runs[0].jobs[known[0][call]].cores for call in calls])
    return Free(len(calls), cores, real, np.array(ours))


def by_call(run: Run) -> dict[tuple[int, int], int]:
    """The jobs that started, by the call of sbatch that each came with, and its task: numbers differ from run to run,
    as tasks of arrays take some when they start."""
    calls = {number: at for at, number in enumerate(sorted(run.digest.asked))}
    return {(calls[job // OF_ARRAY * OF_ARRAY], job % OF_ARRAY): job for job in run.started}


def _interval(digest: Digest) -> int:
    """Seconds from one cycle to the next, as it was: more than bf_interval, as cycles take time; that if not known."""
    gaps = np.diff([one.at for one in digest.cycles])
    return round(float(np.median(gaps[gaps < 60]))) if len(gaps) else 30
