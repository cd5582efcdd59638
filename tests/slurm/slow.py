"""What Slurm does, in slow and obvious steps: one pass of its main loop, and one cycle of its backfill, from a state of
nodes, running jobs and waiting jobs. Real cycles are compared with it (benchmarks/fidelity).

With select/cons_tres, cores and memory; without topology, preemption, sharing of cores, features and licences.
Instants are seconds, memory is MiB.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Node:
    """What a node has."""

    cores: int
    memory: int
    gpus: int = 0
    weight: int = 1


@dataclass(frozen=True)
class Job:
    """What a waiting job asks for."""

    number: int
    partition: str
    limit_s: int
    tasks: int = 1
    per_task: int = 1
    """Cores of a task."""
    least_nodes: int = 1
    most_nodes: int = 0
    """0: as many as there are tasks."""
    tasks_per_node: int = 0
    """0: any number."""
    memory_per_core: int = 0
    memory_per_node: int = 0
    gpus_per_node: int = 0
    whole: bool = False
    priority: int = 1
    submit: int = 0
    since: int = 0
    """Since when it may start."""
    user: str = ""
    array: int = 0
    """Tasks of one array have one number; they stand behind one another. 0: none."""
    takes: tuple[tuple[str, int, bool], ...] = ()
    """From which limits how much, while it runs, and whether that one is asked."""

    @property
    def cores(self) -> int:
        return self.tasks * self.per_task


@dataclass(frozen=True)
class Running:
    """A running job: what it has of each node, and until when it may run."""

    number: int
    had: dict[int, Node]
    end: int
    whole: bool = False
    takes: tuple[tuple[str, int, bool], ...] = ()


@dataclass(frozen=True)
class Limit:
    """What some jobs can have together. `before`: it is asked before nodes are looked for."""

    most: int
    before: bool = False


@dataclass(frozen=True)
class Partition:
    """Some nodes."""

    nodes: frozenset[int]
    tier: int = 1
    most_s: int = 0
    """The longest that a job may run; 0: any time."""


@dataclass(frozen=True)
class Reservation:
    """Nodes that are kept for others, or for maintenance."""

    nodes: frozenset[int]
    begin: int
    end: int


@dataclass(frozen=True)
class Settings:
    """SchedulerParameters, in seconds and counts."""

    window: int = 86_400
    resolution: int = 60
    most_tested: int = 500
    most_user: int = 0
    most_partition: int = 0
    most_started: int = 0
    least_age: int = 0
    least_priority: int = 0
    partition_reservations: int = 0
    """0: any number."""
    array_reservations: int = 20
    table: int = 0
    """Records of the table of nodes; 0: as many as jobs are tested."""
    linear: int = 0
    """By how much the width of a batch of ends grows; 0: it doubles."""
    depth: int = 100
    """Jobs that the main loop tests."""
    newer: bool = False
    """As 24.11 does, not 22.05: what is looked for between two boundaries of the table is looked for there alone;
    reservations end at a boundary behind the job's end; a node that is being cleared is taken last, not left out."""
    by_tasks: bool = False
    """As 24.11 does: a node counts for no more than its tasks of a job."""


@dataclass
class Decision:
    """What became of a job in a cycle: started now, or planned for later, on which nodes."""

    number: int
    start: int
    nodes: dict[int, int]
    """Cores of each."""
    started: bool
    reserved: bool = False


@dataclass
class Machine:
    """Nodes with what runs on them."""

    nodes: Sequence[Node]
    partitions: dict[str, Partition]
    running: list[Running] = field(default_factory=list)
    out: frozenset[int] = frozenset()
    """Nodes that are down or drained."""
    completing: frozenset[int] = frozenset()
    """Nodes on which a job that has just ended is still being cleared away."""
    reservations: tuple[Reservation, ...] = ()
    limits: dict[str, Limit] = field(default_factory=dict)

    def lets(self, job: Job, running: Iterable[Running], before: bool) -> bool:
        """Whether a job stays within its limits beside those that run. `before`: of those that need no nodes."""
        for name, takes, asks in job.takes:
            used = sum(many for one in running for its, many, _ in one.takes if its == name)
            if asks and (self.limits[name].before or not before) and used + takes > self.limits[name].most:
                return False
        return True

    def free(self, running: Iterable[Running]) -> list[Node]:
        """What of each node nobody has."""
        left = list(self.nodes)
        for job in running:
            for at, had in job.had.items():
                mine = self.nodes[at] if job.whole else had
                left[at] = replace(
                    left[at], cores=left[at].cores - mine.cores, memory=left[at].memory - had.memory,
                    gpus=left[at].gpus - mine.gpus,
                )  # fmt: skip
        return left


def queue_order(jobs: Iterable[Job], partitions: dict[str, Partition]) -> list[Job]:
    """The order in which both loops look at jobs."""
    return sorted(jobs, key=lambda job: (-partitions[job.partition].tier, -job.priority, job.submit, job.number))


# One job on some nodes.


def cores_on(job: Job, free: Node, node: Node, by_tasks: bool) -> int:
    """How many cores of a node the job could use; 0: it cannot be there."""
    if job.whole and (free.cores < node.cores or free.memory < free.cores * job.memory_per_core):
        return 0
    if free.gpus < job.gpus_per_node or free.memory < job.memory_per_node:
        return 0
    cores = free.cores
    if job.memory_per_core:
        cores = min(cores, free.memory // job.memory_per_core)
    tasks = cores // job.per_task
    if tasks < job.tasks_per_node:
        return 0
    if (by_tasks or job.gpus_per_node) and job.tasks_per_node:
        tasks = job.tasks_per_node
    if job.most_nodes == 1 and tasks < job.tasks:
        return 0
    if job.gpus_per_node and job.most_nodes == 1:  # with GPUs a node counts for no more than its tasks
        tasks = job.tasks
    if job.whole:
        return free.cores if tasks else 0
    return tasks * job.per_task


def choose(
    job: Job, machine: Machine, free: Sequence[Node], allowed: Iterable[int], settings: Settings
) -> dict[int, int] | None:
    """The nodes that a job would be given, with its cores on each; None: it does not fit."""
    found = _chosen(job, machine, free, allowed, settings.by_tasks)
    if found is None or not job.tasks_per_node or job.whole:
        return found
    return dict.fromkeys(found, job.tasks_per_node * job.per_task)


def _chosen(
    job: Job, machine: Machine, free: Sequence[Node], allowed: Iterable[int], by_tasks: bool
) -> dict[int, int] | None:
    there = {at: cores_on(job, free[at], machine.nodes[at], by_tasks) for at in sorted(allowed)}
    there = {at: cores for at, cores in there.items() if cores > 0}
    found = _gathered(job, machine, there)
    if found is not None or len(there) <= job.least_nodes:
        return found
    for least in range(1, max(there.values())):  # without the nodes that have little
        small = [at for at, cores in there.items() if cores <= least]
        if not small and least > 1:
            continue
        for at in small:
            if len(there) <= job.least_nodes:
                break
            del there[at]
        found = _gathered(job, machine, there)
        if found is not None or len(there) <= job.least_nodes:
            return found
    return None


def _gathered(job: Job, machine: Machine, there: dict[int, int]) -> dict[int, int] | None:
    """Runs of neighbours of one weight, the best first, until there is enough."""
    if len(there) < job.least_nodes:
        return None
    wanted = max(job.least_nodes, job.most_nodes)
    most = min(job.most_nodes or len(machine.nodes), max(job.tasks, job.least_nodes))
    runs = _runs(machine, there)
    cores, nodes, still, taken = job.cores, wanted, job.least_nodes, dict[int, int]()
    while runs and most > 0:
        best = _best(runs, there, machine, cores, nodes, job.least_nodes, wanted)
        run = runs.pop(best)
        if nodes <= 1:
            fits = [at for at in run if there[at] >= cores]
            if fits:
                exact = [at for at in fits if there[at] == cores]
                run = [exact[0] if exact else min(fits, key=lambda at: there[at])]
        for at in run:
            if most == 0 or (nodes <= 0 and cores <= 0):
                break
            if most == 1 and there[at] < cores:
                continue
            use = there[at]
            if not job.whole:
                use = min(use, max(cores - max(still - 1, 0), job.per_task))
            taken[at] = use
            cores, nodes, still, most = cores - use, nodes - 1, still - 1, most - 1
        if nodes <= 0 and cores <= 0:
            return taken
    enough = nodes + job.least_nodes - wanted if wanted > job.least_nodes else nodes
    return taken if cores <= 0 and enough <= 0 else None


def _runs(machine: Machine, there: dict[int, int]) -> list[list[int]]:
    runs, last = list[list[int]](), None
    for at in range(len(machine.nodes)):
        if at not in there:
            last = None
        elif last is not None and machine.nodes[at].weight == machine.nodes[last].weight:
            runs[-1].append(at)
            last = at
        else:
            runs.append([at])
            last = at
    return runs


def _best(
    runs: list[list[int]], there: dict[int, int], machine: Machine, cores: int, nodes: int, least: int, wanted: int
) -> int:
    """Which run is taken next: of the lowest weight the first that has enough, then the tightest; else the largest."""
    best, best_cores, best_enough, best_weight = -1, 0, False, 0
    for at, run in enumerate(runs):
        has, weight = sum(there[one] for one in run), machine.nodes[run[0]].weight
        needed = nodes + least - wanted if wanted > least else nodes
        enough = has >= cores and len(run) >= needed
        better = best < 0 or weight < best_weight
        if not better and weight == best_weight:
            better = (enough and not best_enough) or (enough and has < best_cores) or (not enough and has > best_cores)
        if better:
            best, best_cores, best_enough, best_weight = at, has, enough, weight
    return best


def will_run(
    job: Job,
    machine: Machine,
    running: Sequence[Running],
    allowed: frozenset[int],
    now: int,
    settings: Settings,
    now_only: bool,
    between: tuple[int, int] = (0, 0),
) -> tuple[int, dict[int, int]] | None:
    """When and where a job can start on some nodes. `between`: from when on it is looked for, and up to when; 0:
    without an end. 24.11 counts all free cores of nodes first, and if that is not at once, its tasks alone."""
    plain = replace(settings, by_tasks=False)
    found = _will_run(job, machine, running, allowed, now, plain, now_only, between)
    if settings.by_tasks and (found is None or found[0] > now):
        return _will_run(job, machine, running, allowed, now, settings, now_only, between)
    return found


def _will_run(
    job: Job,
    machine: Machine,
    running: Sequence[Running],
    allowed: frozenset[int],
    now: int,
    settings: Settings,
    now_only: bool,
    between: tuple[int, int],
) -> tuple[int, dict[int, int]] | None:
    """As those that run end by their limits: in batches whose width doubles."""
    begin, until = between
    found = None
    if begin <= now:
        weighed = _cleared_last(machine) if settings.newer else machine
        found = choose(job, weighed, machine.free(running), allowed, settings)
    if found is not None:
        return now, found
    if now_only:
        return None
    gone, at, width, barrier = {one.number for one in running if one.end < begin}, 0, 30, 0
    if begin:
        left = [one for one in running if one.number not in gone]
        found = choose(job, machine, machine.free(left), allowed, settings)
        if found is not None:
            return now, found
    ends = sorted((one for one in running if one.number not in gone), key=lambda one: (one.end, one.number))
    if until:
        ends = [one for one in ends if one.end <= until]
    while at < len(ends):
        last, after, count = -1, -1, 0
        while at < len(ends):
            one = ends[at]
            at += 1
            if not allowed & one.had.keys():  # what is behind it goes too, whenever it ends
                continue
            barrier = barrier or one.end + (30 - one.end % 30)
            gone.add(one.number)
            last, after = one.end, ends[at].end if at < len(ends) else -1
            count += 1
            if after < 0 or after > barrier + width or count > 201:
                break
        if last < 0:
            break
        if count > 201:
            continue
        width = width + settings.linear if settings.linear else width * 2
        while after > barrier + width:
            width = width + settings.linear if settings.linear else width * 2
        left = [other for other in running if other.number not in gone]
        found = choose(job, machine, machine.free(left), allowed, settings)
        if found is not None:
            return (last if last > now else now + 1), found
    return None


def _cleared_last(machine: Machine) -> Machine:
    """Nodes that are being cleared weigh a little more."""
    nodes = [replace(one, weight=2 * one.weight + (at in machine.completing)) for at, one in enumerate(machine.nodes)]
    return replace(machine, nodes=nodes)


def _slot(start: int, limit: int, settings: Settings) -> tuple[int, int]:
    """The steps of the table that a job takes."""
    step = settings.resolution
    return start // step * step, (start + limit + settings.newer * (step - 1)) // step * step


# The table of nodes.


@dataclass
class Span:
    """Between two instants: the nodes that are not reserved."""

    begin: int
    end: int
    nodes: frozenset[int]


@dataclass
class Table:
    """Which nodes are not reserved, from instant to instant."""

    spans: list[Span]
    records: int = 1
    """How many there have been: one that has become part of another still counts."""

    def reserve(self, start: int, end: int, taken: Iterable[int], resolution: int) -> None:
        """Take nodes away for a time."""
        spans, gone = self.spans, frozenset(taken)
        start = max(start, spans[0].begin)
        end = max(end, start + resolution)
        at = next((at for at, span in enumerate(spans) if span.end >= start), -1)
        if at < 0:
            return
        before = max(at - 1, 0)
        if spans[at].end > start:
            spans.insert(at + 1, Span(start, spans[at].end, spans[at].nodes))
            spans[at].end = start
            self.records += 1
        after = len(spans)
        for place in range(at + 1, len(spans)):
            span = spans[place]
            if end < span.end:
                spans.insert(place + 1, Span(end, span.end, span.nodes))
                span.end = end
                self.records += 1
            span.nodes -= gone
            if span.end == end:
                after = place + 1
                break
        for place in range(before, min(after, len(spans) - 1)):  # one pair that is alike becomes one
            if spans[place].nodes == spans[place + 1].nodes:
                spans[place].end = spans[place + 1].end
                del spans[place + 1]
                break


def backfill(machine: Machine, waiting: Iterable[Job], now: int, settings: Settings) -> list[Decision]:
    """One cycle that takes no time: what starts, and what is planned."""
    step = settings.resolution
    every = frozenset(range(len(machine.nodes))) - machine.out
    table = Table([Span(now // step * step, (now + settings.window) // step * step, every)])
    running, made, tested = list(machine.running), list[Decision](), 0
    users, parts, reserved, started = dict[str, int](), dict[str, int](), dict[str, int](), 0
    array, of_array, rejected = 0, 0, 0
    for job in queue_order(waiting, machine.partitions):
        if tested >= settings.most_tested and not (job.array and job.array == array):
            break
        if not machine.lets(job, running, before=True):
            continue
        if job.priority == 0 or job.since > now or (job.array and job.array == rejected):
            continue
        if job.array != array:
            array, of_array = job.array, 0
        elif job.array and of_array >= settings.array_reservations:
            continue
        rejected = job.array  # until it is not
        if settings.most_user and users.get(job.user, 0) >= settings.most_user:
            continue
        if settings.most_partition and parts.get(job.partition, 0) >= settings.most_partition:
            continue
        users[job.user], parts[job.partition] = users.get(job.user, 0) + 1, parts.get(job.partition, 0) + 1
        now_only = job.priority < settings.least_priority or now - job.since < settings.least_age
        count = settings.partition_reservations
        now_only = now_only or bool(count and reserved.get(job.partition, 0) >= count)
        if len(machine.nodes) and job.least_nodes > len(machine.partitions[job.partition].nodes):
            continue
        decided, tries = _planned(job, machine, running, table, now, settings, now_only)
        tested += tries > 0
        if decided is None:
            continue
        if (decided.started or decided.reserved) and not machine.lets(job, running, before=False):
            continue
        made.append(decided)
        if decided.started:
            started += 1
            rejected = 0
            had = {at: share(job, cores) for at, cores in decided.nodes.items()}
            running.append(Running(job.number, had, now + job.limit_s, job.whole, job.takes))
            if job.whole and table.records < (settings.table or settings.most_tested):
                table.reserve(0, _slot(now, job.limit_s, settings)[1], decided.nodes, step)
            if settings.most_started and started >= settings.most_started:
                break
        elif decided.reserved:
            reserved[job.partition] = reserved.get(job.partition, 0) + 1
            rejected, of_array = 0, of_array + 1
            begin, end = _slot(decided.start, job.limit_s, settings)
            if table.records >= (settings.table or settings.most_tested):
                break
            table.reserve(begin, end, decided.nodes, step)
    return made


def share(job: Job, cores: int) -> Node:
    """What a job has of a node on which it has so many cores."""
    return Node(cores, job.memory_per_node or cores * job.memory_per_core, job.gpus_per_node)


def _planned(
    job: Job, machine: Machine, running: list[Running], table: Table, now: int, settings: Settings, now_only: bool
) -> tuple[Decision | None, int]:
    """Where one job goes, and how often it was tried: from one boundary of the table to the next."""
    partition = machine.partitions[job.partition]
    limit = min(job.limit_s, partition.most_s) if partition.most_s else job.limit_s
    later, tries = now, 0
    while True:
        earliest, kept = _beside_reservations(machine, partition, later, limit)
        end, later = earliest + limit, 0
        base = partition.nodes - machine.out - kept
        allowed, spans = base, table.spans
        for at, (span, behind) in enumerate(zip(spans, [*spans[1:], None], strict=True)):
            if span.end <= earliest:
                continue
            if behind is not None and not later and not base & behind.nodes <= allowed & span.nodes:
                later = span.end
            if span.begin > end:
                if settings.newer and not later and at + 2 < len(spans):
                    later = spans[at + 1].end
                break
            allowed &= span.nodes
        ends = [one.end for one in machine.reservations if one.end >= earliest]
        if kept and ends:
            free_again = -(-min(ends) // settings.resolution) * settings.resolution + 1
            if free_again < (now + settings.window) // settings.resolution * settings.resolution:
                later = min(later or free_again, free_again)
        found = None
        if len(allowed) >= job.least_nodes:
            tries += 1
            between = (earliest, later) if settings.newer else (0, 0)
            found = will_run(job, machine, running, allowed, now, settings, now_only, between)
        if found is None:
            if later and not now_only:
                continue
            return None, tries
        start = max(found[0], earliest)
        if settings.newer and start > now and _reserved(table, found[1], *_slot(start, limit, settings)):
            later = start
            continue
        if start <= now and machine.completing & found[1].keys():
            start, later = now + 1, 0
        if start <= now:
            weighed = _cleared_last(machine) if settings.newer else machine
            begun = choose(job, weighed, machine.free(running), allowed, settings)
            if begun is not None:
                return Decision(job.number, now, begun, started=True), tries
            later = 0  # a job that should have ended is still there: the start fails, and what it needs is kept for it
        if now_only:
            return None, tries
        if later and start > later:
            continue
        if start > now + settings.window:
            return Decision(job.number, start, found[1], started=False), tries
        if _reserved(table, found[1], *_slot(start, limit, settings)):
            later = start
            continue
        return Decision(job.number, start, found[1], started=False, reserved=True), tries


def _beside_reservations(
    machine: Machine, partition: Partition, start: int, limit: int, move: bool = True
) -> tuple[int, frozenset[int]]:
    """Of a job that would start then: when it may, and the nodes of its partition that are kept from it. Where all of
    the partition is, it waits for the end of that."""
    for _ in range(11):
        kept = frozenset[int]()
        for one in machine.reservations:
            if one.begin < start + limit and one.end > start:
                kept |= one.nodes & partition.nodes
                if partition.nodes <= one.nodes and move:
                    start = one.end
                    break
        else:
            return start, kept
    return start, partition.nodes


def _reserved(table: Table, nodes: Iterable[int], begin: int, end: int) -> bool:
    """Whether any of some nodes is reserved at any time between two instants."""
    wanted = frozenset(nodes)
    return any(span.end > begin and span.begin < end and not wanted <= span.nodes for span in table.spans)


def main_loop(machine: Machine, waiting: Iterable[Job], now: int, settings: Settings) -> list[Decision]:
    """One pass of the main loop: in order, until in each partition one job does not fit. Its nodes are then left alone
    for those behind it."""
    made, running, blocked, left = list[Decision](), list(machine.running), set[str](), frozenset[int]()
    for tested, job in enumerate(queue_order(waiting, machine.partitions)):
        if tested > settings.depth:
            break
        if job.priority == 0 or job.since > now or job.partition in blocked:
            continue
        if not machine.lets(job, running, before=False):
            continue
        partition = machine.partitions[job.partition]
        limit = min(job.limit_s, partition.most_s) if partition.most_s else job.limit_s
        kept = _beside_reservations(machine, partition, now, limit, move=False)[1]
        allowed = partition.nodes - machine.out - machine.completing - left - kept
        fits = len(allowed) >= job.least_nodes
        found = choose(job, machine, machine.free(running), allowed, settings) if fits else None
        if found is None:
            blocked.add(job.partition)
            left |= machine.partitions[job.partition].nodes
            continue
        made.append(Decision(job.number, now, found, started=True))
        had = {at: share(job, cores) for at, cores in found.items()}
        running.append(Running(job.number, had, now + job.limit_s, job.whole, job.takes))
    return made
