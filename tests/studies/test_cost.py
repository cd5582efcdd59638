"""What a study will cost: probes are short, however slow a policy is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from dovetail.studies import cost
from dovetail.studies.store import Store
from tests.studies.small import prepared, written

SLOW = """\
import time
from dovetail.model.plan import Plan

class Slow:
    name = "slow"

    def decide(self, state):
        begun = time.process_time()
        while time.process_time() - begun < 0.02:
            pass
        return Plan(starts=[job for job in state.waiting.tolist() if state.size[job] <= state.free][:1])
"""
STUDY = """\
name = "slow"
policies = ["slow.py:Slow"]
[[traces]]
generate = {jobs = 2000, processors = 64, load = 0.5}
"""


def test_a_probe_is_broken_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cost, "PROBE_S", 0.3)
    store = Store(tmp_path / "store")
    tasks = prepared(written(tmp_path, STUDY), store)
    begun = time.process_time()
    found = cost.costs(tasks, store)
    assert time.process_time() - begun < 5  # 500 jobs are about 1,000 passes, 20 s in all
    assert found[tasks[0].name] > 2000 * 0.02
