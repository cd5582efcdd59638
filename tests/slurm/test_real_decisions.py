"""Our rules beside a real Slurm's decisions, one by one, as they are made now. Recorded ones are in test_slow.py."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from benchmarks.fidelity.agree import agreement, settings_of
from benchmarks.fidelity.collect import collect, started
from benchmarks.fidelity.digest import read

from tests.slurm.real import needs_slurm

JOBS = 100


@pytest.mark.slurm
@needs_slurm
def test_a_real_slurm_decides_as_our_rules(tmp_path: Path) -> None:
    """Jobs of three users under fair share on 64 nodes, with a clock 20 times as fast: some two minutes."""
    real = started(Path(f"/tmp/dovetail-decides-{os.getpid()}"), "22.05", 20, None, "fair")  # noqa: S108
    try:
        collect(real, "fair", JOBS, seed=2).write(tmp_path / "digest.json.xz")
    finally:
        real.wipe()
    digest = read(tmp_path / "digest.json.xz")
    assert len(digest.asked) == JOBS
    found = agreement(digest, settings_of(digest))
    assert found.main.theirs + found.backfill.theirs == JOBS
    assert found.unknown <= 0.05 * (found.cycles + found.passes), found.differ
    for one in (found.main, found.backfill):
        assert one.same_nodes >= 0.95 * one.theirs - 1, found.differ
        assert one.only_ours <= 0.05 * one.theirs + 1, found.differ
    assert found.planned.same_nodes >= 0.9 * found.planned.theirs, found.differ
