"""The same source runs uncompiled, for debugging and coverage, and gives the same schedules."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.conftest import ROOT
from tests.contract.cases import case

SCRIPT = """
import json, sys
leaf, fan, first, last = map(int, sys.argv[1:])
import dovetail.kernels.profile as profile
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


def test_uncompiled_equals_compiled() -> None:
    got = uncompiled(0, 0, 0, 40)
    assert len(got) == 40
    for seed, (starts, _) in enumerate(got):
        compiled = case(seed).replay()
        columns = (compiled.start, compiled.promised_first, compiled.promised_last)
        assert starts == [column.tolist() for column in columns], seed


def test_small_leaves_change_nothing() -> None:
    """Leaves of four entries, two leaves to a group: small workloads walk through the whole tree."""
    got = uncompiled(4, 2, 1000, 1060)
    assert len(got) == 60
    assert [text for _, found in got for text in found] == []
