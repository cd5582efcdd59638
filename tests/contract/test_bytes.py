"""Same input, same bytes: two fresh processes with different hash seeds print the same digest and metrics."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.conftest import ROOT, TRACES, needs_traces

SCRIPT = """
import hashlib, json, sys
from dovetail.engine.replay import replay
from dovetail.metrics import summarize
from dovetail.policies.registry import policy
if sys.argv[1] == "made":
    from dovetail.workloads.lublin import lublin
    workload = lublin(500, 64, seed=11, load=1.2)
else:
    from dovetail.io.swf import read_swf
    workload = read_swf(sys.argv[1])
names = ("easy", "conservative", "list-wfp3", "list:order=unicef,reserve=2,relax=0.5")
for name in names[: int(sys.argv[2])]:
    for by_event in (False, True)[: 2 if sys.argv[1] == "made" else 1]:
        schedule = replay(workload, policy(name), keep_promises=True, event_by_event=by_event)
        digest = hashlib.sha256()
        for column in (schedule.start, schedule.arrive, schedule.promised_first, schedule.promised_last):
            digest.update(column.tobytes())
        print(json.dumps([name, workload.digest(), digest.hexdigest(), summarize(schedule)]))
"""


def printed(source: str, policies: int, hash_seed: str) -> str:
    env = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", SCRIPT, source, str(policies)]
    return subprocess.run(command, env=env, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def _same(source: str, policies: int, lines: int) -> None:
    first = printed(source, policies, "1")
    assert first == printed(source, policies, "4242")
    rows = [json.loads(line) for line in first.splitlines()]
    assert len(rows) == lines
    assert len({row[2] for row in rows}) == policies  # so many schedules: the digest sees differences


def test_a_made_workload() -> None:
    _same("made", 4, 8)


@needs_traces
@pytest.mark.parametrize("log", ["KTH-SP2"])
def test_a_real_trace(log: str) -> None:
    _same(str(TRACES / "papers" / f"{log}.swf.gz"), 2, 2)
