"""Slurm's rules: the kernels equal slow and obvious ones, every start and every node; and the referee agrees."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pytest

from dovetail.engine.replay import replay
from dovetail.errors import SettingError
from dovetail.model.cluster import PARTITION, Cluster, NodeKind, Outage, by_node
from dovetail.model.plan import Plan
from dovetail.model.state import State
from dovetail.model.workload import Workload
from dovetail.policies.slurm import Slurm
from dovetail.referee import check_schedule
from dovetail.slurm.limits import COUNTED, Limited
from tests.conftest import CASES
from tests.slurm import slow

PARTITIONS = ("all", "some")
QOS = ("high", "low")


@dataclass(frozen=True)
class Case:
    """The same jobs, nodes and settings twice."""

    workload: Workload
    cluster: Cluster
    policy: Slurm
    machine: slow.Machine
    jobs: list[slow.Job]
    settings: slow.Settings


def random_case(rng: random.Random) -> Case:
    """Up to 30 jobs that come and go on up to 15 nodes."""
    gpus, memory = rng.random() < 0.5, rng.random() < 0.7
    resources = ("cores", *["memory_mb"] * memory, *["gpus"] * gpus)
    kinds, some = list[NodeKind](), list[int]()
    for at in range(rng.randint(1, 3)):
        has = (rng.choice((4, 8)), *[16] * memory, *[rng.choice((0, 2, 4))] * gpus)
        both = at > 0 and rng.random() < 0.6
        features = tuple(f"{PARTITION}{name}" for name in PARTITIONS[: 1 + both])
        count = rng.randint(1, 5)
        some += range(sum(one.count for one in kinds), sum(one.count for one in kinds) + count) if both else []
        kinds.append(NodeKind(f"k{at}", count, has, features))
    cluster = by_node(resources, tuple(kinds), "gpus" if gpus and rng.random() < 0.5 else "")
    capacity = [kinds[kind].capacity for kind in cluster.kind_of.tolist()]
    places = {"cores": 0, "memory_mb": 1, "gpus": 1 + memory}

    def node(has: Sequence[int]) -> slow.Node:
        return slow.Node(has[0], has[places["memory_mb"]] if memory else 0, has[places["gpus"]] if gpus else 0)

    tiers = {"some": rng.choice((1, 1, 2))}
    every = frozenset(range(cluster.nodes))
    partitions = {"all": slow.Partition(every), "some": slow.Partition(frozenset(some), tiers["some"])}
    limits = [rng.choice((20, 60, 100, 400, 1000)) if rng.random() < 0.5 else rng.randint(20, 3000) for _ in range(6)]
    gap, submit, array = rng.choice((0, 2, 20, 100)), 0, -1
    jobs, rows = list[slow.Job](), list[dict[str, int]]()
    while len(jobs) < 30 and rng.random() < 0.96:
        submit += rng.randint(0, gap)
        within = "some" if some and rng.random() < 0.4 else "all"
        there = sorted(partitions[within].nodes)
        cores, units = rng.choice((1, 1, 2, 3)), rng.choice((1, 2, 3, 4, 8))
        per_node, whole = rng.choice((0, 0, 1, 2)), rng.random() < 0.15
        mem, devices = rng.choice((0, 1, 3)) * memory, rng.choice((0, 0, 1)) * gpus
        per_node = 0 if whole or units % max(per_node, 1) or units == 1 else per_node
        devices = devices if per_node < 2 and (per_node or units == 1) else 0
        units = min(units, len(there) * max(per_node, 1)) if per_node or whole else units
        units = max(units // max(per_node, 1), 1) * max(per_node, 1)
        limit, priority, user = rng.choice(limits), rng.choice((0, 5, 5, 9)), rng.choice((0, 1))
        run = rng.choice((limit, rng.randint(1, limit)))
        asked = {
            "size": units * cores, "units": units, "unit_cores": cores, "per_node": per_node, "exclusive": int(whole),
            "partition": PARTITIONS.index(within), "priority": priority, "user": user, "runtime": run, "limit": limit,
            "submit": submit, "qos": rng.choice((0, 1)), **({"unit_memory_mb": mem * cores} if memory else {}),
            **({"unit_gpus": devices} if gpus else {}),
        }  # fmt: skip
        tasks = rng.choice((1, 1, 1, 5))
        array = array + 1 if tasks > 1 else array
        for _ in range(tasks):
            number = len(jobs)
            one = _job(number, asked, within, mem, devices, array if tasks > 1 else -1)
            if slow.choose(one, slow.Machine([node(has) for has in capacity], partitions),
                           [node(has) for has in capacity], there, slow.Settings()) is None:  # fmt: skip
                continue
            jobs.append(one)
            rows.append({**asked, "id": number, "array": array if tasks > 1 else -1})
    names = ("id", "submit", "size", "runtime", "limit") if not rows else tuple(rows[0])
    columns = {name: np.array([row[name] for row in rows], np.int64) for name in names}
    reservations = list[slow.Reservation]()
    for _ in range(rng.choice((0, 0, 1, 2))):
        begin = rng.randint(1, 2000)
        nodes = rng.choice((some or [0], list(every), rng.sample(sorted(every), rng.randint(1, len(every)))))
        reservations.append(slow.Reservation(frozenset(nodes), begin, begin + rng.randint(1, 500)))
    reservations = list({(one.begin, one.end): one for one in reservations}.values())
    reservations.sort(key=lambda one: (one.begin, one.end))
    outages = tuple(Outage(tuple(sorted(one.nodes)), one.begin, one.end) for one in reservations)
    policy = Slurm(
        bf_interval=rng.choice((7, 30)), bf_window=rng.choice((10, 1440)), bf_resolution=rng.choice((1, 30, 60)),
        bf_max_job_test=rng.choice((4, 500, 500)), bf_max_job_user=rng.choice((0, 0, 3)),
        bf_max_job_part=rng.choice((0, 0, 3)), bf_max_job_start=rng.choice((0, 0, 1)),
        bf_max_job_array_resv=rng.choice((2, 20)), bf_job_part_count_reserve=rng.choice((0, 0, 1)),
        bf_min_age_reserve=rng.choice((0, 0, 60)), bf_node_space_size=rng.choice((0, 500)),
        bf_window_linear=rng.choice((0, 0, 30)), default_queue_depth=rng.choice((2, 100)),
        phase=rng.choice((0, 3)), version=rng.choice(("22.05", "24.11")), order="priority", tiers=tiers,
    )  # fmt: skip
    settings = slow.Settings(
        60 * policy.bf_window, policy.bf_resolution, policy.bf_max_job_test, policy.bf_max_job_user,
        policy.bf_max_job_part, policy.bf_max_job_start, policy.bf_min_age_reserve, 0,
        policy.bf_job_part_count_reserve, policy.bf_max_job_array_resv, policy.bf_node_space_size,
        policy.bf_window_linear, policy.default_queue_depth, policy.version == "24.11", policy.version == "24.11",
    )  # fmt: skip
    machine = slow.Machine([node(has) for has in capacity], partitions, reservations=tuple(reservations))
    called = {"partition": PARTITIONS, "qos": QOS} if rows else {}
    workload = Workload("random", columns, cluster.processors, names=called)
    if rows and rng.random() < 0.4:
        policy, machine, jobs = _limited(rng, policy, machine, jobs, workload)
    return Case(workload, replace(cluster, outages=outages), policy, machine, jobs, settings)


def _limited(
    rng: random.Random, policy: Slurm, machine: slow.Machine, jobs: list[slow.Job], workload: Workload
) -> tuple[Slurm, slow.Machine, list[slow.Job]]:
    """The same where QOS have limits: of a QOS together, and of each user in it."""

    def some(names: Sequence[str]) -> dict[tuple[str, str], int]:
        kept = {(name, "jobs" if "Jobs" in name else rng.choice(COUNTED[1:])): rng.randint(1, 12) for name in names}
        return {one: most for one, most in kept.items() if rng.random() < 0.5}

    qos = {name: some(("GrpJobs", "GrpTRES", "MaxJobsPerUser", "MaxTRESPerUser")) for name in QOS}
    limits, made = dict[str, slow.Limit](), list[slow.Job]()
    for at, job in enumerate(jobs):
        row = {name: int(values[at]) for name, values in workload.columns.items()}
        units = row["units"]
        nodes = units if row["exclusive"] else -(-units // row["per_node"]) if row["per_node"] else 1
        has = {"jobs": 1, "cpu": row["size"], "node": nodes, "mem": units * row.get("unit_memory_mb", 0),
               "gres/gpu": units * row.get("unit_gpus", 0)}  # fmt: skip
        takes = list[tuple[str, int, bool]]()
        for (name, what), most in qos[QOS[row["qos"]]].items():
            whose = f"{QOS[row['qos']]} {name} {what} {job.user if 'User' in name else ''}"
            limits[whose] = slow.Limit(most, before=what == "jobs")
            takes += [(whose, has[what], has[what] <= most)] * (has[what] > 0)
        made.append(replace(job, takes=tuple(takes)))
    return replace(policy, limits=Limited(qos)), replace(machine, limits=limits), made


def _job(number: int, asked: dict[str, int], within: str, mem: int, devices: int, array: int) -> slow.Job:
    units, cores, each = asked["units"], asked["unit_cores"], max(asked["per_node"], 1)
    whole = bool(asked["exclusive"])
    spread = whole or units == 1 or asked["per_node"] > 0
    by_core = spread and each == 1
    nodes = units // each if spread else 0
    on_each = cores if by_core else each
    return slow.Job(
        number, within, asked["limit"], units * cores if by_core else units, 1 if by_core else cores, max(nodes, 1),
        nodes, on_each if units > 1 and spread and not whole else 0, 0 if whole else mem, mem * cores if whole else 0,
        devices, whole, 1 + asked["priority"], asked["submit"], asked["submit"], str(asked["user"]), array + 1,
    )  # fmt: skip


@dataclass
class SlowReplay:
    """When each job starts, and the nodes of its units."""

    case: Case
    start: dict[int, int] = field(default_factory=dict)
    nodes: dict[int, list[int]] = field(default_factory=dict)
    running: list[slow.Running] = field(default_factory=list)
    waiting: list[slow.Job] = field(default_factory=list)
    planned: dict[int, dict[int, int]] = field(default_factory=dict)
    """By cycle: when jobs that do not start are to."""
    now: int = -1

    def run(self) -> SlowReplay:
        case, runtime = self.case, self.case.workload["runtime"].tolist()
        policy = case.policy
        while len(self.start) < len(case.jobs):
            end = {one.number: self.start[one.number] + runtime[one.number] for one in self.running}
            clock = list[int]()
            if self.waiting:
                clocks = ((policy.bf_interval, policy.phase), (policy.sched_interval, 0))
                clock += [self.now + step - (self.now - phase) % step for step, phase in clocks]
                clock += [at for one in case.machine.reservations for at in (one.begin, one.end) if at > self.now]
            came = [job.submit for job in case.jobs if job.submit > self.now]
            self.now = now = min([*end.values(), *came, *clock])
            self.running = [one for one in self.running if end[one.number] > now]
            self.waiting += [job for job in case.jobs if job.submit == now]
            full = now % policy.sched_interval == 0
            settings = replace(case.settings, depth=10**6) if full else case.settings
            self.begin(slow.main_loop(self.machine(), self.waiting, now, settings))
            if (now - policy.phase) % policy.bf_interval == 0:
                made = slow.backfill(self.machine(), self.waiting, now, settings)
                self.planned[now] = {one.number: one.start for one in made if not one.started}
                self.begin(made)
        return self

    def machine(self) -> slow.Machine:
        return replace(self.case.machine, running=self.running)

    def begin(self, made: list[slow.Decision]) -> None:
        for one in made:
            if one.started:
                job = self.case.jobs[one.number]
                self.start[job.number], self.nodes[job.number] = self.now, units_of(self.case, one)
                had = {node: slow.share(job, cores) for node, cores in one.nodes.items()}
                self.running.append(slow.Running(job.number, had, self.now + job.limit_s, job.whole, job.takes))
                self.waiting.remove(job)


def units_of(case: Case, one: slow.Decision) -> list[int]:
    """The node of each unit of a job."""
    asked = {name: int(values[one.number]) for name, values in case.workload.columns.items()}
    spread = asked["exclusive"] or asked["units"] == 1 or asked["per_node"]
    each = {
        at: max(asked["per_node"], 1) if spread else cores // asked["unit_cores"] for at, cores in one.nodes.items()
    }
    return [at for at, many in each.items() for _ in range(many)]


@dataclass(frozen=True)
class Watched(Slurm):
    """The policy, asked event by event, with what it planned in each cycle."""

    planned: dict[int, dict[int, int]] = field(default_factory=dict, hash=False)

    def made(self, state: State) -> Plan:
        plan = super().made(state)
        if (state.now - self.phase) % self.bf_interval == 0:
            self.planned[state.now] = dict(plan.promised)
        return plan


def disagreement(seed: int) -> list[str]:
    """What is not as in slow code, or not legal, in one case; empty if all is."""
    case = random_case(random.Random(seed))
    if not case.jobs:
        return []
    found = SlowReplay(case).run()
    watched = (
        Watched(**{one.name: getattr(case.policy, one.name) for one in fields(Slurm) if one.init})
        if seed % 20 == 0
        else None
    )
    made = replay(case.workload, watched or case.policy, cluster=case.cluster, event_by_event=watched is not None)
    assert made.placement is not None
    ours = [(int(made.start[job]), sorted(made.placement.of(job).tolist())) for job in range(len(case.jobs))]
    slowly = [(found.start[job], sorted(found.nodes[job])) for job in range(len(case.jobs))]
    wrong = [
        f"case {seed}: job {job} at {one[0]} on {one[1]}; slowly at {other[0]} on {other[1]}"
        for job, (one, other) in enumerate(zip(ours, slowly, strict=True))
        if one != other
    ]
    for now, planned in found.planned.items() if watched else ():
        if watched is not None and watched.planned.get(now, {}) != planned:
            wrong.append(f"case {seed}: planned at {now}: {watched.planned.get(now)}; slowly {planned}")
    return wrong + [f"case {seed}: {violation}" for violation in check_schedule(made)]


@pytest.mark.contract
@pytest.mark.parametrize("part", range(10))
def test_the_kernels_decide_as_slow_code(part: int) -> None:
    """Six in ten of all cases: slow code takes half a second for a queue."""
    for seed in range(part, CASES * 6 // 10, 10):
        assert disagreement(seed) == []


def one_job(nodes: tuple[int, ...], shared: str = "", **asked: int) -> tuple[Workload, Cluster]:
    cluster = by_node(("cores", "gpus")[: len(nodes)], (NodeKind("n", 4, nodes),), shared)
    row = {"id": 1, "submit": 10, "size": 1, "runtime": 5, "limit": 9, "units": 1, "unit_cores": 1} | asked
    columns = {name: np.array([value], np.int64) for name, value in row.items()}
    names = {"reservation": ("ours",)} if "reservation" in row else {}
    return Workload("one", columns, cluster.processors, names=names), cluster


def test_a_job_that_these_rules_can_never_place_is_refused() -> None:
    """Others do: without this the replay would ask for ever."""
    for workload, cluster in (
        one_job((1,), units=4, size=4, per_node=2),
        one_job((1, 1), "gpus", unit_gpus=1, gpu_share=500),
    ):
        assert replay(workload, "easy", cluster=cluster).start.tolist() == [10]
        with pytest.raises(SettingError, match="can never start"):
            replay(workload, Slurm(), cluster=cluster)


@pytest.mark.contract
def test_a_reservation_is_for_its_jobs_whenever_it_is_told() -> None:
    workload, cluster = one_job((4,), reservation=0)
    for known in (0, 5):
        kept = replace(cluster, outages=(Outage((0, 1, 2, 3), 5, 5000, "ours", known),))
        assert replay(workload, Slurm(), cluster=kept).start.tolist() == [10]


def test_what_a_state_does_not_say_is_refused() -> None:
    with pytest.raises(SettingError, match="does not know its jobs"):
        Slurm().rule()
    workload, _ = one_job((4,))
    with pytest.raises(SettingError, match="needs a cluster"):
        replay(workload, Slurm(), cluster=Cluster(4))
    assert hash(Slurm()) == hash(Slurm())
