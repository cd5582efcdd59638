"""Each decision of a real Slurm, beside what our rules decide from the true state just before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from benchmarks.fidelity.digest import BACKFILL, END, MAIN, SUBMIT, Cycle, Digest
from tests.slurm.slow import Decision, Job, Machine, Node, Partition, Running, Settings, backfill, main_loop

from dovetail.io.node_list import hosts
from dovetail.slurm import words
from dovetail.slurm.machine import Texts

TOGETHER_S = 0.25
"""Starts of the main loop that are no further apart are of one pass."""
CLEARED_S = 0.3
"""For so long after its end a job's nodes are being cleared, as it seems: the log does not say. (That they are free
again is what a pass of the main loop waits for.)"""
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


class Run:
    """A digest as states."""

    def __init__(self, digest: Digest) -> None:
        self.digest = digest
        self.names = [name for name, _, _ in digest.nodes]
        self.number = {name: at for at, name in enumerate(self.names)}
        self.nodes = [Node(cores, memory) for _, cores, memory in digest.nodes]
        self.partitions = {
            name: Partition(frozenset(self.number[one] for one in hosts(text)))
            for name, text in digest.partitions.items()
        }  # fmt: skip
        self.had = {job: self._shares(told) for job, told in digest.had.items()}
        self.jobs = {number: job_of(number, texts) for number, texts in digest.jobs.items()}
        first: dict[str, dict[int, float]] = {name: {} for name in (SUBMIT, MAIN, BACKFILL, END)}
        for at, what, job, _ in digest.events:
            first[what].setdefault(job, at)
        self.submitted, self.ended = first[SUBMIT], first[END]
        self.started = first[MAIN] | first[BACKFILL]

    def _shares(self, told: list[tuple[str, int, int]]) -> dict[int, Node]:
        return {
            self.number[name]: Node(cores, memory) for nodes, cores, memory in told for name in hosts(nodes)
        }  # fmt: skip

    def at(self, instant: float) -> tuple[Machine, list[Job]] | None:
        """The state just before an instant; None: it is not known."""
        running = list[Running]()
        for job, began in self.started.items():
            if began < instant <= self.ended.get(job, instant):
                if job not in self.had or job not in self.jobs:
                    return None
                at = self.digest.jobs[job]["StartTime"]
                start = int(at) if at.isdigit() else int(began)
                running.append(Running(job, self.had[job], start + self.jobs[job].limit_s))
        clearing = [
            job for job, ended in self.ended.items() if instant - CLEARED_S < ended < instant and job in self.had
        ]
        ranks = {job: priority for at, job, priority in self.digest.priorities if at <= instant}
        waiting = [
            replace(self.jobs[job], priority=ranks.get(job, 1)) for job, came in self.submitted.items()
            if came < instant <= self.started.get(job, instant) and job in self.jobs
        ]  # fmt: skip
        nodes = frozenset(node for job in clearing for node in self.had[job])
        return Machine(self.nodes, self.partitions, running, completing=nodes), waiting

    def passes(self) -> Iterator[dict[int, tuple[float, str]]]:
        """The jobs that each pass of the main loop started."""
        found: dict[int, tuple[float, str]] = {}
        last = -TOGETHER_S
        for at, what, job, nodes in self.digest.events:
            if what == MAIN:
                if at - last >= TOGETHER_S and found:
                    yield found
                    found = {}
                found[job], last = (at, nodes), at
        if found:
            yield found

    def called(self, decided: Decision) -> set[str]:
        """The names of its nodes."""
        return {self.names[at] for at in decided.nodes}


def job_of(number: int, texts: Texts) -> Job:
    """What a job asks for, by what Slurm says of it."""
    tasks, per_node = int(texts["NumTasks"]), int(texts["PerNode"])
    nodes = tasks // per_node if per_node else 0
    return Job(
        number, texts["Partition"], words.elapsed_s(texts["TimeLimit"]), tasks, int(texts["CPUs/Task"]), max(nodes, 1),
        nodes, per_node, MEMORY_OF_A_CORE, submit=int(texts["SubmitTime"]),
        since=words.instant(texts["EligibleTime"]), user=texts["UserId"],
    )  # fmt: skip


def settings_of(digest: Digest) -> Settings:
    """Those of a run."""
    return Settings(newer=digest.version != "22.05")


def agreement(digest: Digest, settings: Settings, every: int = 1) -> Agreement:
    """All of a run; of the cycles of the backfill one in so many."""
    run, found, votes = Run(digest), Agreement(), dict[tuple[int, int, str], tuple[bool, bool]]()
    for starts in run.passes():
        state = run.at(min(at for at, _ in starts.values()))
        if state is None:
            found.unknown += 1
            continue
        found.passes += 1
        machine, waiting = replace(state[0], completing=frozenset()), state[1]
        made = main_loop(machine, waiting, int(min(at for at, _ in starts.values())), settings)
        theirs = {job: nodes for job, (_, nodes) in starts.items()}
        found.main.add(_compared(run, theirs, {one.number: one for one in made}, found, "main loop"))
    for cycle in digest.cycles[::every]:
        state = run.at(cycle.at) if not cycle.yields else None
        if state is None:
            found.unknown += 1
            continue
        found.cycles += 1
        decided = {one.number: one for one in backfill(*state, int(cycle.at), settings)}
        started = {number: one for number, one in decided.items() if one.started}
        found.backfill.add(_compared(run, cycle.starts, started, found, f"cycle at {cycle.at:.0f}"))
        _vote(run, cycle, decided, settings, votes, found)
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
    run: Run, cycle: Cycle, decided: Mapping[int, Decision], settings: Settings,
    votes: dict[tuple[int, int, str], tuple[bool, bool]], found: Agreement,
) -> None:  # fmt: skip
    for job, (start, nodes) in cycle.plans.items():
        ours = decided.get(job)
        near = ours is not None and not ours.started and abs(ours.start - start) <= settings.resolution
        same = near and ours is not None and run.called(ours) == set(hosts(nodes))
        before = votes.get((job, start, nodes), (True, True))
        votes[job, start, nodes] = (before[0] and near, before[1] and same)
        if not same:
            told = "-" if ours is None else f"{ours.start} on {sorted(run.called(ours))}"
            found.differ.append(f"cycle at {cycle.at:.0f}: {job} at {start} on {nodes}; ours: {told}")
