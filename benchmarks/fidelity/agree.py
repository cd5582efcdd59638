"""Each decision of a real Slurm, beside what our rules decide from the true state just before it."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from benchmarks.fidelity.digest import BACKFILL, END, MAIN, OF_ARRAY, SUBMIT, Cycle, Digest
from benchmarks.fidelity.workloads import KINDS
from tests.slurm.slow import (
    Decision,
    Job,
    Limit,
    Machine,
    Node,
    Partition,
    Reservation,
    Running,
    Settings,
    backfill,
    main_loop,
)

from dovetail.io.node_list import hosts
from dovetail.slurm import words
from dovetail.slurm.limits import JOBS, limited
from dovetail.slurm.machine import Machine as Told
from dovetail.slurm.machine import Texts

TOGETHER_S = 1.0
"""Starts of the main loop that are no further apart, with nothing between them, are of one pass."""
CLEARED_S = 0.3
"""For so long after its end a job's nodes are being cleared, as it seems: the log does not say. A pass of the main loop
comes when some are; which of them it does not say either, so there all are taken to be."""
AT_AN_END_S = 0.6
"""A cycle or a pass is just after the end of a job if it is no later."""
MEMORY_OF_A_CORE = 1000
"""DefMemPerCPU of these clusters."""


@dataclass
class Counts:
    """Of one kind of decision: how many Slurm made, and how many of them we made, too."""

    theirs: int = 0
    ours_too: int = 0
    same_nodes: int = 0
    only_ours: int = 0

    def add(self, other: Counts) -> None:
        """Both together."""
        for name, many in vars(other).items():
            setattr(self, name, getattr(self, name) + many)


@dataclass
class Agreement:
    """Of one run."""

    main: Counts = field(default_factory=Counts)
    backfill: Counts = field(default_factory=Counts)
    planned: Counts = field(default_factory=Counts)
    """One vote for each job and change of its plan."""
    passes: int = 0
    cycles: int = 0
    unknown: int = 0
    """Cycles and passes whose state nobody knows: of some running job it was not told what it had."""
    differ: list[str] = field(default_factory=list)
    """A line for each decision that is not ours."""
    apart: int = 0
    """Cycles and passes in which something differs."""
    at_an_end: int = 0
    """Those of them just after the end of a job, whose nodes may be free again or not."""

    def see(self, before: int, run: Run, instant: float) -> None:
        """Count a cycle or a pass: `before` it there were so many lines."""
        if len(self.differ) > before:
            self.apart += 1
            self.at_an_end += any(instant - AT_AN_END_S < ended < instant + TOGETHER_S for ended in run.ended.values())


class Run:
    """A digest as states."""

    def __init__(self, digest: Digest) -> None:
        self.digest = digest
        self.names = [name for name, *_ in digest.nodes]
        self.number = {name: at for at, name in enumerate(self.names)}
        self.nodes = [Node(cores, memory, gpus) for _, cores, memory, gpus in digest.nodes]
        self.partitions = {
            name: Partition(self._set(text), tier, max(60 * minutes, 0))
            for name, (text, tier, minutes) in digest.partitions.items()
        }
        self.reservations = tuple(Reservation(self._set(text), *when) for text, *when in digest.reservations)
        self.had = {job: self._shares(told) for job, told in digest.had.items()}
        kind = KINDS[digest.workload]
        config = dict(line.split("=", 1) for line in kind.extra if line.startswith("Accounting"))
        told = Told("", {}, {}, config, qos=kind.qos(), associations=kind.associations())
        self.limited, self.limits = limited(told), dict[str, Limit]()
        self.jobs = {job: self._held(one) for job, one in self._tasks()}
        first: dict[str, dict[int, float]] = {name: {} for name in (SUBMIT, MAIN, BACKFILL, END)}
        for at, what, job, _ in digest.events:
            first[what].setdefault(job, at)
        self.submitted, self.ended = first[SUBMIT], first[END]
        self.started = first[MAIN] | first[BACKFILL]

    def _set(self, nodes: str) -> frozenset[int]:
        return frozenset(self.number[one] for one in hosts(nodes))

    def _shares(self, told: list[tuple[str, int, int, int]]) -> dict[int, Node]:
        return {
            self.number[name]: Node(cores, memory, gpus)
            for nodes, cores, memory, gpus in told for name in hosts(nodes)
        }  # fmt: skip

    def _tasks(self) -> Iterator[tuple[int, Job]]:
        """Every job, and every task of an array, as it was asked for."""
        for number, texts in self.digest.jobs.items():
            asked = self.digest.asked[number // OF_ARRAY * OF_ARRAY]
            if number % OF_ARRAY or "ArrayTaskId" not in texts:
                yield number, job_of(number, texts, asked)
            else:
                for task in range(1, _array(asked) + 1):
                    yield number + task, job_of(number + task, texts, asked)

    def _held(self, job: Job) -> Job:
        """A job with what it takes from limits."""
        texts = self.digest.jobs.get(job.number) or self.digest.jobs[job.number // OF_ARRAY * OF_ARRAY]
        names = (texts["Partition"], texts["QOS"], texts["Account"], texts["UserId"].partition("(")[0])
        has, takes = {JOBS: 1, "cpu": job.cores}, list[tuple[str, int, bool]]()
        for whose, what, most, asks in self.limited.of(names):
            name = " ".join((*whose, what))
            self.limits[name] = Limit(most, before=what == JOBS)
            takes.append((name, has[what], asks))
        return replace(job, takes=tuple(takes))

    def at(self, instant: float, cleared_s: float) -> tuple[Machine, list[Job]] | None:
        """The state just before an instant; None: it is not known. `cleared_s`: for so long after a job's end its nodes
        are being cleared."""
        running = list[Running]()
        for job, began in self.started.items():
            if began < instant <= self.ended.get(job, instant):
                if job not in self.had:
                    return None
                at = self.digest.jobs[job]["StartTime"]
                start = int(at) if at.isdigit() else int(began)
                one = self.jobs[job]
                running.append(Running(job, self.had[job], start + one.limit_s, one.whole, one.takes))
        clearing = [
            job for job, ended in self.ended.items() if instant - cleared_s < ended < instant and job in self.had
        ]
        ranks = {job: priority for at, job, priority in self.digest.priorities if at <= instant}
        waiting = [
            replace(one, priority=ranks.get(job, ranks.get(job // OF_ARRAY * OF_ARRAY, 1)))
            for job, one in self.jobs.items()
            if self.submitted[job // OF_ARRAY * OF_ARRAY] < instant <= self.started.get(job, instant)
        ]  # fmt: skip
        nodes = frozenset(node for job in clearing for node in self.had[job])
        return Machine(
            self.nodes, self.partitions, running, completing=nodes, reservations=self.reservations, limits=self.limits
        ), waiting  # fmt: skip

    def passes(self) -> Iterator[dict[int, tuple[float, str]]]:
        """The jobs that each pass of the main loop started."""
        found: dict[int, tuple[float, str]] = {}
        last = -TOGETHER_S
        for at, what, job, nodes in self.digest.events:
            if found and (what != MAIN or at - last >= TOGETHER_S):
                yield found
                found = {}
            if what == MAIN:
                found[job], last = (at, nodes), at
        if found:
            yield found

    def called(self, decided: Decision) -> set[str]:
        """The names of its nodes."""
        return {self.names[at] for at in decided.nodes}


_OPTIONS = argparse.ArgumentParser(add_help=False)
_OPTIONS.add_argument("-n", type=int, default=0)
_OPTIONS.add_argument("-N", type=int, default=0)
_OPTIONS.add_argument("--ntasks-per-node", type=int, default=0)
_OPTIONS.add_argument("--gres", default="")
_OPTIONS.add_argument("--array", default="")
_OPTIONS.add_argument("--exclusive", action="store_true")


def _array(options: Sequence[str]) -> int:
    """How many tasks an array has."""
    return int(_OPTIONS.parse_known_args(options)[0].array.rpartition("-")[2])


def job_of(number: int, texts: Texts, options: Sequence[str]) -> Job:
    """What a job asks for, by its options, and by what Slurm says of it."""
    asked = _OPTIONS.parse_known_args(options)[0]
    tasks = asked.n or max(asked.N, 1) * max(asked.ntasks_per_node, 1)
    devices = int(asked.gres.rpartition(":")[2] or 0)
    return Job(
        number, texts["Partition"], words.elapsed_s(texts["TimeLimit"]), tasks, 1, max(asked.N, 1), asked.N,
        asked.ntasks_per_node, MEMORY_OF_A_CORE, gpus_per_node=devices, whole=asked.exclusive,
        submit=int(texts["SubmitTime"]), since=words.instant(texts["EligibleTime"]), user=texts["UserId"],
        array=number // OF_ARRAY if asked.array else 0,
    )  # fmt: skip


def settings_of(digest: Digest) -> Settings:
    """Those of a run."""
    newer = digest.version != "22.05"
    return Settings(newer=newer, by_tasks=newer)


def agreement(digest: Digest, settings: Settings, every: int = 1) -> Agreement:
    """All of a run; of the cycles of the backfill one in so many."""
    run, found, votes = Run(digest), Agreement(), dict[tuple[int, int, str], tuple[bool, bool]]()
    for starts in run.passes():
        state = run.at(min(at for at, _ in starts.values()), 0)
        if state is None:
            found.unknown += 1
            continue
        found.passes += 1
        machine, waiting = state
        made = main_loop(machine, waiting, int(min(at for at, _ in starts.values())), settings)
        theirs = {job: nodes for job, (_, nodes) in starts.items()}
        before = len(found.differ)
        found.main.add(_compared(run, theirs, {one.number: one for one in made}, found, "main loop"))
        found.see(before, run, min(at for at, _ in starts.values()))
    for cycle in digest.cycles[::every]:
        state = run.at(cycle.at, CLEARED_S) if not cycle.yields else None
        if state is None:
            found.unknown += 1
            continue
        found.cycles += 1
        decided = {one.number: one for one in backfill(*state, int(cycle.at), settings)}
        started = {number: one for number, one in decided.items() if one.started}
        before = len(found.differ)
        found.backfill.add(_compared(run, cycle.starts, started, found, f"cycle at {cycle.at:.0f}"))
        _vote(run, cycle, decided, settings, votes, found)
        found.see(before, run, cycle.at)
    found.planned = Counts(
        len(votes), sum(start for start, _ in votes.values()), sum(nodes for _, nodes in votes.values())
    )
    return found


def _compared(run: Run, theirs: Mapping[int, str], ours: Mapping[int, Decision], found: Agreement, when: str) -> Counts:
    counts = Counts(len(theirs), only_ours=len(ours.keys() - theirs.keys()))
    for job, nodes in theirs.items():
        same = job in ours and run.called(ours[job]) == set(hosts(nodes))
        counts.ours_too += job in ours
        counts.same_nodes += same
        if not same:
            found.differ.append(
                f"{when}: {job} on {nodes}; ours: {sorted(run.called(ours[job])) if job in ours else '-'}"
            )
    found.differ += [f"{when}: {job} is ours alone" for job in sorted(ours.keys() - theirs.keys())]
    return counts


def _vote(
    run: Run, cycle: Cycle, decided: dict[int, Decision], settings: Settings,
    votes: dict[tuple[int, int, str], tuple[bool, bool]], found: Agreement,
) -> None:  # fmt: skip
    for job, start, nodes in cycle.plans:
        if job in run.jobs:
            ours = decided.get(job)
        else:  # the next task of an array
            tasks = (one for one in sorted(decided) if one // OF_ARRAY * OF_ARRAY == job and not decided[one].started)
            ours = next((decided.pop(one) for one in tasks), None)
        near = ours is not None and not ours.started and abs(ours.start - start) <= settings.resolution
        same = near and ours is not None and run.called(ours) == set(hosts(nodes))
        before = votes.get((job, start, nodes), (True, True))
        votes[job, start, nodes] = (before[0] and near, before[1] and same)
        if not same:
            told = "-" if ours is None else f"{ours.start} on {sorted(run.called(ours))}"
            found.differ.append(f"cycle at {cycle.at:.0f}: {job} at {start} on {nodes}; ours: {told}")
