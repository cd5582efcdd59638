"""The capacity seam: another model of the machine, and more than one resource, under the same passes."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from typing import Any, NamedTuple

import numpy as np
import pytest

from dovetail.arrays import NEVER, Ints
from dovetail.kernels import replay as kernel
from dovetail.kernels import state as layout
from dovetail.kernels.compile import inner, jit
from dovetail.kernels.learners.learner import new_learner
from dovetail.kernels.machine import capacity
from dovetail.kernels.machine.capacity import start
from dovetail.kernels.machine.processors import Counted, new_counted
from dovetail.kernels.passes.lists import ALL, STRICT, list_pass
from dovetail.kernels.seam import answers
from dovetail.policies.base import Asked
from dovetail.policies.conservative import Conservative
from tests.conftest import CASES, ROOT
from tests.contract.cases import case
from tests.slow import policies as slow
from tests.slow.workloads import random_jobs

pytestmark = pytest.mark.xdist_group("seam")  # they compile kernels of their own

# A second model: two lists of reservations, read from end to end --------------------------------------------

RUNNING, PLANNED, TOTAL, HEAD = range(4)


class Listed(NamedTuple):
    """Processors as lists of who holds how many from when until when; nothing is remembered in between."""

    need: Ints
    numbers: Ints
    """RUNNING: jobs that run. PLANNED: entries of the plan. TOTAL processors. HEAD: the job in the shadow."""
    running: Ints
    """Rows of job, begin, end."""
    plan: Ints


def new_listed(need: Ints, total: int) -> Listed:
    n = 2 * len(need) + 2
    return Listed(need, np.array([0, 0, total, -1]), np.zeros((n, 3), np.int64), np.zeros((n, 3), np.int64))


@inner
def _left(cap: Listed, rows: Ints, n: int, at: int) -> int:
    """What is free at an instant."""
    free = cap.numbers[TOTAL]
    for i in range(n):
        if rows[i, 1] <= at < rows[i, 2]:
            free -= cap.need[rows[i, 0]]
    return int(free)


@inner
def _spare(cap: Listed) -> int:
    free = cap.numbers[TOTAL]
    for i in range(cap.numbers[RUNNING]):
        free -= cap.need[cap.running[i, 0]]
    return int(free)


@inner
def _fits_now(cap: Listed, job: int) -> bool:
    return bool(cap.need[job] <= _spare(cap))


@inner
def _alike(cap: Listed, job: int, other: int) -> bool:
    return bool(cap.need[job] == cap.need[other])


@inner
def _start(cap: Listed, job: int, now: int, end: int) -> None:
    n = cap.numbers[RUNNING]
    cap.running[n, 0], cap.running[n, 1], cap.running[n, 2] = job, now, end
    cap.numbers[RUNNING] = n + 1


@inner
def _shadow(cap: Listed, job: int, now: int) -> int:
    # A job past its end still runs, and is taken to end at now + 1: so is the shadow at the earliest.
    cap.numbers[HEAD] = job
    at = now + 1
    while _left(cap, cap.running, cap.numbers[RUNNING], at) < cap.need[job]:
        at += 1
    return at


@inner
def _beside(cap: Listed, job: int, end: int, shadow: int) -> bool:
    both = cap.need[job] + cap.need[cap.numbers[HEAD]]
    return end <= shadow or both <= _left(cap, cap.running, cap.numbers[RUNNING], shadow)


@inner
def _take_beside(cap: Listed, job: int) -> None:
    pass


@inner
def _open_plan(cap: Listed, now: int) -> None:
    for i in range(cap.numbers[RUNNING]):
        cap.plan[i, 0], cap.plan[i, 1] = cap.running[i, 0], now
        cap.plan[i, 2] = max(cap.running[i, 2], now + 1)
    cap.numbers[PLANNED] = cap.numbers[RUNNING]


@inner
def _fits_plan(cap: Listed, job: int, at: int, length: int) -> bool:
    for second in range(at, at + length):
        if _left(cap, cap.plan, cap.numbers[PLANNED], second) < cap.need[job]:
            return False
    return True


@inner
def _earliest_fit(cap: Listed, job: int, at: int, length: int) -> int:
    while not _fits_plan(cap, job, at, length):
        at += 1
    return at


@inner
def _reserve(cap: Listed, job: int, at: int, length: int) -> None:
    n = cap.numbers[PLANNED]
    cap.plan[n, 0], cap.plan[n, 1], cap.plan[n, 2] = job, at, at + length
    cap.numbers[PLANNED] = n + 1


@inner
def _ahead(cap: Listed) -> bool:
    return False


answers(
    Listed,
    ahead=_ahead,
    fits_now=_fits_now,
    alike=_alike,
    spare=_spare,
    start=_start,
    shadow=_shadow,
    beside=_beside,
    take_beside=_take_beside,
    open_plan=_open_plan,
    fits_plan=_fits_plan,
    earliest_fit=_earliest_fit,
    reserve=_reserve,
)


@jit
def one_pass(cap: Listed | Counted, now: int, depth: int, other: bool, complete: bool, jobs: Ints, lists: Ints) -> int:
    """Let the jobs of row 0 run that have an end, then pass over the others. Returns how many start.

    Rows of `jobs`: size, estimate, end (-1: waits), place, seen, itself and one. Rows of `lists`: queue, backfill
    queue, working space, started, working space; the last column of the queue is its length.
    """
    for job in range(jobs.shape[1]):
        if jobs[2, job] >= 0:
            start(cap, job, now, jobs[2, job])
    n = lists[0, lists.shape[1] - 1]
    return list_pass(
        cap, now, jobs[1], jobs[0], jobs[5], lists[0], n, lists[1], other, depth, complete, jobs[3], jobs[4], lists[2],
        lists[4],
    )[0]  # fmt: skip


def _state(rng: random.Random) -> tuple[int, Ints, Ints, int]:
    """A machine with running jobs, some past their ends, and a queue in two orders."""
    total, now = rng.choice((2, 4, 16)), rng.randint(0, 30)
    sizes, estimates, ends = [], [], []
    free = total
    for _ in range(rng.randint(0, 5)):
        size = rng.randint(1, (total + 1) // 2)
        if size <= free:
            free -= size
            sizes.append(size)
            estimates.append(1)
            ends.append(max(0, now + rng.randint(-3, 12)))
    running = len(sizes)
    for _ in range(rng.randint(0, 12)):
        sizes.append(rng.choice((1, 1, total, rng.randint(1, total))))
        estimates.append(rng.choice((1, 4, rng.randint(1, 15))))
        ends.append(-1)
    n = len(sizes)
    jobs = np.array([sizes, estimates, ends, [-1] * n, [0] * n, range(1, n + 1)], np.int64).reshape(6, n)
    lists = np.zeros((5, n + 1), np.int64)
    for row in (0, 1):
        lists[row, : n - running] = rng.sample(range(running, n), n - running)
    lists[0, n] = n - running
    return now, jobs, lists, total


@pytest.mark.slow
@pytest.mark.parametrize("depth", [STRICT, 0, 1, 2, 4, ALL])
def test_two_capacity_models_start_the_same_jobs(depth: int) -> None:
    started = 0
    for seed in range(300):
        rng = random.Random(seed)
        now, jobs, lists, total = _state(rng)
        other, complete = rng.random() < 0.5, rng.random() < 0.5
        results = []
        for cap in (
            new_counted(jobs[0].copy(), np.array([total]), 100, 200),
            new_listed(jobs[0].copy(), total),
        ):
            mine, queues = jobs.copy(), lists.copy()
            n = one_pass(cap, now, depth, other, complete, mine, queues)
            results.append((queues[4, :n].tolist(), mine[3].tolist()))
            assert not mine[4].any(), "the working space is left as it was found"
        assert results[0] == results[1], seed
        started += len(results[0][0])
    assert started > (100 if depth == STRICT else 300)


def test_the_counted_model_answers_every_question() -> None:
    """A question that nobody answers shows only when a kernel that asks it is compiled."""
    questions = {name for name in vars(capacity) if callable(getattr(capacity, name)) and name != "seam"}
    text = capacity.__doc__ or ""
    assert questions == {line.split("(")[0].strip() for line in text.splitlines() if "(cap" in line}
    idle = new_counted(np.array([1, 2]), np.array([3]), 10, 20)
    assert _ask(idle) == (True, 3)


@jit
def _ask(cap: Counted) -> tuple[bool, int]:
    return capacity.fits_now(cap, 1), capacity.spare(cap)


# Two resources ----------------------------------------------------------------------------------------------


def _replay(jobs: list[slow.SlowJob], total: slow.Size, rule: Any) -> layout.Run:
    """A whole replay on a machine with several resources."""
    n = len(jobs)
    rows = np.full((layout.JOB_ROWS, n), -1, np.int64)
    rows[layout.SUBMIT] = [job.submit for job in jobs]
    rows[layout.SIZE] = [job.size[0] for job in jobs]
    rows[layout.RUNTIME] = [job.runtime for job in jobs]
    rows[layout.ESTIMATE] = [job.estimate for job in jobs]
    rows[layout.SEEN] = 0
    info = np.zeros(layout.INFO, np.int64)
    info[layout.LAST] = n
    none = np.empty((4, 0), np.int64), np.empty((2, 0), np.int64)
    run = layout.Run(info, rows, np.zeros((2, n)), *none, np.zeros((layout.LIST_ROWS, n), np.int64))
    need = np.array([job.size for job in jobs], np.int64).ravel()
    cap = new_counted(need, np.array(total, np.int64), 1000, 2000)
    assert kernel.replay(cap, run, rule, new_learner(rows[layout.ESTIMATE]), NEVER - 1) == kernel.DONE
    return run


def two_resources(first: int, last: int) -> list[str]:
    """Lists, relaxed lists and conservative backfilling, as in the contract's cases, where a second resource often
    runs short: all that differs from the slow replay."""
    found = []
    for seed in range(first, last):
        this = case(seed)
        jobs, total = random_jobs(random.Random(seed), resources=2, too_small=seed % 3 == 0)
        bounded = all(job.estimate >= job.runtime for job in jobs)
        run = _replay(jobs, total, this.policy.rule(Asked(keep=seed % 2 == 0, bounded=bounded)))
        wanted = slow.slow_replay(jobs, total, this.slow_policy)
        pairs = [(layout.START, wanted.start)]
        if seed % 2 == 0 or isinstance(this.policy, Conservative):
            pairs += [(layout.PROMISED_FIRST, wanted.promised_first), (layout.PROMISED_LAST, wanted.promised_last)]
        differ = [row for row, column in pairs if run.jobs[row].tolist() != column]
        if differ:
            found.append(f"seed {seed}, rows {differ}: {this.policy}")
    return found


@pytest.mark.slow
def test_two_resources_uncompiled() -> None:
    """Workloads in plain Python: compiling the replay for two resources takes most of a minute."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    script = f"from tests.kernels.test_seam import two_resources; print(two_resources(0, {CASES * 4 // 10}))"
    done = subprocess.run([sys.executable, "-c", script], env=env, check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"
