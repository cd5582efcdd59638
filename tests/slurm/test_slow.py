"""Slurm in slow and obvious steps: what a real one decided, and what holds of any queue."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from benchmarks.fidelity.agree import agreement, settings_of
from benchmarks.fidelity.changes import predicted
from benchmarks.fidelity.digest import Digest, read
from benchmarks.fidelity.priorities import ranked

from tests.conftest import CASES, ROOT
from tests.slurm.slow import Decision, Job, Machine, Node, Partition, Running, Settings, backfill, main_loop

RECORDED = ROOT / "benchmarks" / "fidelity" / "recorded"


def test_a_real_slurm_decided_so() -> None:
    """All passes of the main loop, and one in 6 cycles of the backfill, of 250 jobs on a real Slurm 22.05."""
    found = agreement(read(RECORDED / "mixed-22.05.json.xz"), Settings(), every=6)
    assert found.differ == []
    assert (found.passes, found.cycles, found.unknown) == (68, 63, 0)
    assert found.main.same_nodes == found.main.theirs == 82
    assert found.backfill.same_nodes == found.backfill.theirs == 32
    assert found.planned.same_nodes == found.planned.theirs == 1920


def test_a_newer_one_decided_so() -> None:
    """The same of a Slurm 24.11."""
    digest = read(RECORDED / "mixed-24.11.json.xz")
    found = agreement(digest, settings_of(digest), every=6)
    assert found.differ == []
    assert found.main.same_nodes == found.main.theirs == 87
    assert found.backfill.same_nodes == found.backfill.theirs == 20
    assert found.planned.same_nodes == found.planned.theirs == 2021


def test_limits_held_jobs_back_there() -> None:
    """Of three users and their accounts: all passes, and all cycles, of 250 jobs on a real Slurm 22.05."""
    digest = read(RECORDED / "limits-22.05.json.xz")
    found = agreement(digest, settings_of(digest))
    assert (found.passes, found.cycles, found.unknown, found.apart, found.at_an_end) == (211, 311, 0, 2, 2)
    assert (found.main.theirs, found.main.ours_too, found.main.same_nodes, found.main.only_ours) == (227, 227, 226, 0)
    assert (found.backfill.theirs, found.backfill.same_nodes, found.backfill.only_ours) == (18, 18, 1)


def test_a_digest_comes_back(tmp_path: Path) -> None:
    told = read(RECORDED / "mixed-22.05.json.xz")
    told.write(tmp_path / "again.json.xz")
    assert read(tmp_path / "again.json.xz") == told
    assert isinstance(told, Digest)


def test_a_change_was_foretold() -> None:
    """By the import of one real run, what five others did with a quarter more nodes: 755 s less, by 626 to 882 s."""
    packed = RECORDED / "changes" / "mixed-window10-64-1.history.json.xz"
    window, nodes = (one["all"] for one in predicted(packed, phases=4))
    assert window[1] < 66 < window[2]
    assert -1000 < nodes[1] < -755 < nodes[2] < -500


def random_case(rng: random.Random) -> tuple[Machine, list[Job]]:
    nodes = [Node(rng.choice((4, 8)), 16, rng.choice((0, 2)), rng.choice((1, 1, 5))) for _ in range(rng.randint(1, 8))]
    every = frozenset(range(len(nodes)))
    some = frozenset(rng.sample(sorted(every), rng.randint(1, len(nodes))))
    partitions = {"all": Partition(every), "some": Partition(some, rng.choice((1, 2)), rng.choice((0, 3600)))}
    machine = Machine(nodes, partitions, out=frozenset(at for at in every if rng.random() < 0.1))
    for number in range(rng.randint(0, 5)):
        free, whole = machine.free(machine.running), rng.random() < 0.2
        places = [at for at, one in enumerate(free) if one.cores > 0 and (not whole or one == nodes[at])]
        if places:
            at = rng.choice(places)
            had = nodes[at] if whole else Node(rng.randint(1, free[at].cores), 0)
            machine.running.append(Running(1000 + number, {at: had}, rng.randint(1, 9000), whole))
    jobs = []
    for number in range(rng.randint(0, 12)):
        least = rng.choice((1, 1, 2, 3))
        per_node = rng.choice((0, 0, 1, 2))
        tasks = least * per_node if per_node else rng.randint(least, 12)
        jobs.append(Job(
            number, rng.choice(("all", "some")), rng.choice((60, 600, 7200)), tasks, rng.choice((1, 1, 2)), least,
            least if per_node or rng.random() < 0.3 else 0, per_node, rng.choice((0, 1, 3)), 0, rng.choice((0, 0, 1)),
            rng.random() < 0.1, rng.choice((0, 1, 1, 2)), number, rng.choice((0, 0, 5000)), rng.choice("ab"),
        ))  # fmt: skip
    return machine, jobs


@pytest.mark.parametrize("seed", range(CASES))
def test_what_starts_has_room_and_what_is_planned_is_kept_free(seed: int) -> None:
    rng = random.Random(seed)
    machine, jobs = random_case(rng)
    settings = Settings(
        window=rng.choice((3600, 86_400)), resolution=rng.choice((1, 60)), most_tested=rng.choice((3, 500)),
        most_user=rng.choice((0, 2)), most_started=rng.choice((0, 1)), partition_reservations=rng.choice((0, 1)),
        linear=rng.choice((0, 30)), newer=rng.random() < 0.5, by_tasks=rng.random() < 0.5,
    )  # fmt: skip
    by_number = {job.number: job for job in jobs}
    for made in (main_loop(machine, jobs, 1000, settings), backfill(machine, jobs, 1000, settings)):
        assert len({one.number for one in made}) == len(made)
        running = list(machine.running)
        for one in made:
            judged(machine, by_number[one.number], one)
            if one.started:
                job = by_number[one.number]
                had = {
                    at: Node(cores, job.memory_per_node or cores * job.memory_per_core, job.gpus_per_node)
                    for at, cores in one.nodes.items()
                }
                running.append(Running(one.number, had, 1000 + job.limit_s, job.whole))
        assert all(one.cores >= 0 and one.memory >= 0 and one.gpus >= 0 for one in machine.free(running))
        reserved = [one for one in made if one.reserved]
        for at, one in enumerate(reserved):
            for other in reserved[:at]:
                ends = [two.start + by_number[two.number].limit_s for two in (one, other)]
                apart = one.start // settings.resolution >= ends[1] // settings.resolution
                apart |= other.start // settings.resolution >= ends[0] // settings.resolution
                step = settings.resolution  # less than that is one step of the table
                apart |= min(ends[0] - one.start, ends[1] - other.start) <= step
                assert apart or not one.nodes.keys() & other.nodes.keys(), (one, other)


def judged(machine: Machine, job: Job, one: Decision) -> None:
    """What a job is given is what it asked for, where it may be."""
    assert one.nodes.keys() <= machine.partitions[job.partition].nodes - machine.out
    assert job.priority > 0
    assert job.since <= 1000
    assert one.start >= 1000
    assert one.start == 1000 or not one.started
    assert len(one.nodes) >= job.least_nodes
    assert not job.most_nodes or len(one.nodes) <= job.most_nodes
    assert sum(one.nodes.values()) >= job.cores
    if job.tasks_per_node and not job.whole:
        assert set(one.nodes.values()) == {job.tasks_per_node * job.per_task}


def test_a_real_slurm_gave_these_priorities() -> None:
    """Of a run of three users under fair share: each that was seen, and when it was worked out."""
    found = ranked(read(RECORDED / "fair-22.05-4.json.xz"))
    assert (found.seen, found.same, found.moments) == (348, 348, 26)
    other = ranked(read(RECORDED / "fair-24.11.json.xz"))
    assert (other.seen, other.same) == (331, 329)
    for line in other.differ:  # seen in the second before it was worked out
        theirs, ours = (int(text.split()[-1]) for text in line.split(", "))
        assert ours - theirs == 1
