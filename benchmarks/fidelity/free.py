"""Left to itself: waits of a replay by our rules, beside those of real runs of the same jobs.

A real Slurm does not repeat itself, and neither does ours when the clock of its backfill begins at another second: so
each is an ensemble, and means are compared with their intervals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
from benchmarks.fidelity.agree import MEMORY_OF_A_CORE, Run
from benchmarks.fidelity.digest import OF_ARRAY, Digest
from scipy.stats import t as student

from dovetail.arrays import Floats, Ints
from dovetail.engine.replay import replay
from dovetail.model.cluster import PARTITION, Cluster, NodeKind, Outage, by_node, with_features
from dovetail.model.workload import Workload
from dovetail.policies.slurm import Slurm

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
    known = [_by_call(run) for run in runs]
    calls = sorted(set.intersection(*(set(one) for one in known)))
    real = np.array([
        [run.started[one[call]] - _came(run, one[call]) for call in calls] for run, one in zip(runs, known, strict=True)
    ])  # fmt: skip
    ours = []
    for at in range(phases):
        run, one = runs[at % len(runs)], known[at % len(runs)]
        interval = _interval(run.digest)
        policy = Slurm(
            bf_interval=interval, phase=at * interval // phases, order="priority", version=_version(run),
            tiers={name: one.tier for name, one in run.partitions.items()},
        )  # fmt: skip
        workload = workload_of(run)
        made = replay(workload, policy, cluster=cluster_of(run))
        where = {job: row for row, job in enumerate((workload["id"]).tolist())}
        ours.append([float(made.wait[where[one[call]]]) for call in calls])
    cores = np.array([runs[0].jobs[known[0][call]].cores for call in calls])
    return Free(len(calls), cores, real, np.array(ours))


def _by_call(run: Run) -> dict[tuple[int, int], int]:
    """The jobs that started, by the call of sbatch that each came with, and its task: numbers differ from run to run,
    as tasks of arrays take some when they start."""
    calls = {number: at for at, number in enumerate(sorted(run.digest.asked))}
    return {(calls[job // OF_ARRAY * OF_ARRAY], job % OF_ARRAY): job for job in run.started}


def _version(run: Run) -> str:
    return "22.05" if run.digest.version == "22.05" else "24.11"


def _came(run: Run, job: int) -> float:
    return run.submitted[job // OF_ARRAY * OF_ARRAY]


def _interval(digest: Digest) -> int:
    """Seconds from one cycle to the next, as it was: more than bf_interval, as cycles take time."""
    gaps = np.diff([one.at for one in digest.cycles])
    return round(float(np.median(gaps[gaps < 60])))


def cluster_of(run: Run) -> Cluster:
    """The nodes of a run."""
    resources = ("cores", "memory_mb", "gpus")
    alike = groupby(run.digest.nodes, key=lambda node: node[1:])
    kinds = tuple(NodeKind(f"kind {at}", len(list(nodes)), tuple(has)) for at, (has, nodes) in enumerate(alike))
    cluster = by_node(resources, kinds)
    cluster = with_features(cluster, {f"{PARTITION}{name}": sorted(one.nodes) for name, one in run.partitions.items()})
    begin = _first(run)
    outages = tuple(
        Outage(tuple(sorted(one.nodes)), one.begin - begin, one.end - begin) for one in run.reservations
    )  # fmt: skip
    return Cluster(cluster.processors, cluster.resources, cluster.kinds, outages=outages)


def _first(run: Run) -> int:
    return int(min(run.submitted.values()))


def workload_of(run: Run) -> Workload:
    """The jobs of a run, which ran for as long as they did there."""
    names, begin = list(run.partitions), _first(run)
    rows = []
    for number, job in sorted(run.jobs.items(), key=lambda pair: (int(_came(run, pair[0])), pair[0])):
        made = run.digest.seconds[number // OF_ARRAY * OF_ARRAY]
        ran = run.ended[number] - run.started[number] if number in run.ended and number in run.started else made
        per_node = job.tasks_per_node > 0 or job.whole or job.most_nodes == 1
        units = job.least_nodes if per_node else job.tasks
        cores = job.cores // units if not job.whole else 1
        rows.append((
            number, int(_came(run, number)) - begin, units * cores, min(max(round(ran), 1), job.limit_s), job.limit_s,
            units, cores, cores * MEMORY_OF_A_CORE, job.gpus_per_node, int(per_node and not job.whole),
            int(job.whole), names.index(job.partition), _rank(run, number), job.array or -1,
        ))  # fmt: skip
    columns = dict(zip((
        "id", "submit", "size", "runtime", "limit", "units", "unit_cores", "unit_memory_mb", "unit_gpus", "per_node",
        "exclusive", "partition", "priority", "array",
    ), np.array(rows, np.int64).T, strict=True))  # fmt: skip
    cores = sum(cores for _, cores, *_ in run.digest.nodes)
    return Workload(run.digest.workload, columns, cores, names={"partition": tuple(names)})


def _rank(run: Run, number: int) -> int:
    """The last priority that is known of it."""
    ranks = [rank for _, job, rank in run.digest.priorities if job in (number, number // OF_ARRAY * OF_ARRAY)]
    return ranks[-1] if ranks else 1
