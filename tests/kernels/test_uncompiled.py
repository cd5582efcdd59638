"""The same source runs uncompiled, for debugging and coverage, and gives the same schedules."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT
from tests.contract.cases import case

SCRIPT = """
import json, sys
leaf, fan, first, last = map(int, sys.argv[1:])
import dovetail.kernels.machine.timeline as profile
profile.LEAF, profile.FAN = leaf or profile.LEAF, fan or profile.FAN  # before anyone takes a copy of them
from tests.contract.cases import case, disagreements
from dovetail.kernels.replay import replay
assert not hasattr(replay, "py_func"), "compiled"
for seed in range(first, last):
    this = case(seed)
    schedule = this.replay()
    starts = [schedule.start.tolist(), schedule.promised_first.tolist(), schedule.promised_last.tolist()]
    print(json.dumps([starts, disagreements(this) if leaf else []]))
"""


def uncompiled(leaf: int, fan: int, first: int, last: int) -> list[tuple[list[list[int]], list[str]]]:
    """Cases replayed by plain Python, with so many entries to a leaf and leaves to a group (0: as it is)."""
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path}
    command = [sys.executable, "-c", SCRIPT, *map(str, (leaf, fan, first, last))]
    done = subprocess.run(command, env=env, cwd=ROOT, check=True, capture_output=True, text=True)
    return [tuple(json.loads(line)) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_uncompiled_equals_compiled() -> None:
    got = uncompiled(0, 0, 0, 40)
    assert len(got) == 40
    for seed, (starts, _) in enumerate(got):
        compiled = case(seed).replay()
        columns = (compiled.start, compiled.promised_first, compiled.promised_last)
        assert starts == [column.tolist() for column in columns], seed


@pytest.mark.slow
def test_small_leaves_change_nothing() -> None:
    """Leaves of four entries, two leaves to a group: small workloads walk through the whole tree."""
    got = uncompiled(4, 2, 1000, 1060)
    assert len(got) == 60
    assert [text for _, found in got for text in found] == []


OVERFLOW = """
import numpy as np
from dovetail.engine.compiled import new_replay
from dovetail.kernels.machine.timeline import LEAF, LEAVES, LEAVES_MOST
from dovetail.model.cluster import Cluster
from dovetail.model.workload import Provenance, Workload
from dovetail.policies.lists import ListPolicy

half, leaves, full, far = LEAF // 2, 2 * (1024 // LEAF + 2) - 6, 12, 10**7
rows = []  # submit, expected end, end
for i in range(half * leaves):  # ends in rising order: leaves that are half full; most of the later jobs end early
    rows.append((i, far + 1000 * i, far + 1000 * i if i // half < full or i % half < 2 else 5000 + i))
for i in range(full * half):  # the first of the leaves get full
    rows.append((10_000 + i, far + 1000 * i + 300, far + 1000 * i + 300))
for i in range(full):  # and in one moment each of them gets one more
    rows.append((20_000, far + 1000 * half * i + 650, far + 1000 * half * i + 650))
submit, expected, end = np.array(rows).T
one = np.ones(len(rows), np.int64)
columns = {"id": one.cumsum(), "submit": submit, "size": one, "runtime": end - submit, "limit": expected - submit}
jobs = Workload("many ends", columns, 5000, Provenance("made here"))
replay = new_replay(jobs, Cluster(5000), ListPolicy("fcfs", 1).rule(), expected - submit)
replay.advance(20_000)
assert replay.cap.running.mem[LEAVES] <= replay.cap.running.mem[LEAVES_MOST]
assert replay.advance() and (replay.start == submit).all()
"""


@pytest.mark.slow
def test_a_profile_grows_before_its_leaves_run_out() -> None:
    """Uncompiled, because a compiled kernel writes beyond its array where this goes wrong."""
    env = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", OVERFLOW], env=env, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
