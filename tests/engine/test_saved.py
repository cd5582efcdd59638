"""A replay that is written down goes on from there, to the same schedule."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from dataclasses import replace
from itertools import repeat
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest

from dovetail.api import generate
from dovetail.energy.series import Hours
from dovetail.energy.site import Site
from dovetail.engine import saved
from dovetail.engine.replay import replay
from dovetail.errors import InputError, SettingError
from dovetail.metrics import summarize
from dovetail.model.cluster import Cluster, PowerCap
from dovetail.model.schedule import Schedule
from dovetail.model.workload import Workload
from dovetail.policies.registry import policy
from dovetail.predict.history import Recent
from dovetail.referee import check_schedule
from tests.contract.cases import case
from tests.slow.node_cases import coming_and_going, random_nodes_case, with_outages

ROOT = Path(__file__).parents[2]
COLUMNS = ("start", "arrive", "promised_first", "promised_last", "said", "accepted")


class _KilledError(Exception):
    pass


def stopped_and_gone_on(folder: Path, stops: int, *args: Any, **how: Any) -> Schedule:
    """A replay that is written down at every stop, ends after some of them, and is begun again."""
    kept = saved.Saved.keep
    for stop in (*range(1, stops + 1), 10**9):
        left = repeat(None, stop)

        def keep(self: saved.Saved, going: Any, left: Any = left) -> None:
            self._every_s = 0.0
            kept(self, going)
            try:
                next(left)
            except StopIteration:
                raise _KilledError from None

        with patch.object(saved.Saved, "keep", keep):
            try:
                return replay(*args, keep=folder, **how)
            except _KilledError:
                assert len(list(folder.glob("*.replay"))) == 1
    raise AssertionError("it never came to its end")


def same(one: Schedule, other: Schedule) -> None:
    for column in COLUMNS:
        assert np.array_equal(getattr(one, column), getattr(other, column)), column
    assert one.passes == other.passes
    assert repr(one.lost) == repr(other.lost)
    assert repr(summarize(one)) == repr(summarize(other))


def test_on_processors_it_goes_on_to_the_same_schedule(tmp_path: Path) -> None:
    for seed in range(12):
        this = case(seed)
        how: dict[str, Any] = {"estimate": this.estimate, "feedback": this.feedback, "every_s": this.every_s}
        made = stopped_and_gone_on(tmp_path, 1 + seed % 7, this.workload, this.policy, **how)
        same(made, replay(this.workload, this.policy, **how))
    assert list(tmp_path.iterdir()) == []


def test_on_nodes_that_fail_it_goes_on_to_the_same_schedule(tmp_path: Path) -> None:
    lost = 0
    for seed in range(24):
        rng = random.Random(seed)
        this = coming_and_going(with_outages(random_nodes_case(rng), rng), rng)
        chosen = policy(("easy", "list-reg", "conservative", "plan-af:decodes=5")[seed % 4])
        made = stopped_and_gone_on(tmp_path, 1 + seed % 7, this.workload, chosen, cluster=this.cluster)
        same(made, replay(this.workload, chosen, cluster=this.cluster))
        assert check_schedule(made) == []
        lost += len(made.lost)
    assert lost > 1


def test_predictors_know_what_they_had_learned(tmp_path: Path) -> None:
    workload = generate(400, 64, seed=3, load=1.1)
    for name in ("recent", "quantile", "recent:correct=double"):
        made = stopped_and_gone_on(tmp_path, 5, workload, "easy", estimate=name)
        same(made, replay(workload, "easy", estimate=name))


def test_a_command_that_is_killed_goes_on(tmp_path: Path) -> None:
    """By the operating system, in the middle of it."""
    script = (
        "import sys; from pathlib import Path; from dovetail.engine import saved;"
        "from dovetail.engine.replay import replay; from dovetail.api import generate;"
        "saved.Saved.__init__.__defaults__ = (0.0,);"
        "made = replay(generate(5000, 64, seed=1, load=1.2), 'easy', keep=Path(sys.argv[1]));"
        "print(int(made.start.sum()), made.passes)"
    )
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-c", script, str(tmp_path)]
    going = subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)
    until = time.monotonic() + 120
    while not list(tmp_path.glob("*.replay")) and time.monotonic() < until:
        time.sleep(0.01)
    going.send_signal(signal.SIGKILL)
    assert going.communicate()[0] == ""
    again = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert "The replay goes on from" in again.stderr
    made = replay(generate(5000, 64, seed=1, load=1.2), "easy")
    assert again.stdout.split() == [str(int(made.start.sum())), str(made.passes)]
    assert list(tmp_path.glob("*.replay")) == []


def test_a_file_that_cannot_be_trusted_is_not_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    this = case(3)
    wanted = replay(this.workload, this.policy, estimate=this.estimate)
    for cut in (True, False):
        with pytest.raises(_KilledError), patch.object(saved.Saved, "keep", _written_and_killed):
            replay(this.workload, this.policy, estimate=this.estimate, keep=tmp_path)
        (path,) = tmp_path.glob("*.replay")
        data = path.read_bytes()
        path.write_bytes(data[:-1] if cut else data[:100] + b"!" + data[101:])
        same(replay(this.workload, this.policy, estimate=this.estimate, keep=tmp_path), wanted)
    assert capfd.readouterr().err.count("is damaged: it begins anew.") == 1  # said once of a file


_kept = saved.Saved.keep


def _written_and_killed(self: saved.Saved, going: Any) -> None:
    self._every_s = 0.0
    _kept(self, going)
    raise _KilledError


def name_of(folder: Path, workload: Workload, chosen: str, **how: Any) -> str:
    """The file in which a replay is kept."""
    found: list[str] = []

    def gone_on(self: saved.Saved, fresh: Any) -> Any:
        found.append(self.path.name)
        return fresh

    with patch.object(saved.Saved, "gone_on", gone_on):
        replay(workload, policy(chosen), keep=folder, **how)
    return found[0]


def test_another_replay_has_another_file(tmp_path: Path) -> None:
    log = generate(400, 16, seed=1, load=0.9)
    hours = np.full(2000, 100)
    hours[::2] = 300
    dear = hours.copy()
    dear[1500] = 200
    one, other = (Site("s", 1, price=Hours(of)) for of in (hours, dear))
    wide = Cluster(32)
    asked: list[tuple[str, dict[str, Any]]] = [
        ("easy", {}), ("list-sjf", {}), ("easy", {"seed": 1}), ("easy", {"cluster": wide}), ("easy", {"every_s": 60}),
        ("easy", {"cluster": replace(wide, cap=PowerCap(10**12))}), ("easy", {"estimate": "runtime"}),
        ("easy", {"estimate": Recent(jobs=1)}), ("easy", {"estimate": Recent(jobs=50)}),
        ("easy", {"estimate": "recent:correct=double"}), ("thrift", {"site": one}), ("thrift", {"site": other}),
        ("plan-af", {}), ("plan-af:decodes=9", {}),
    ]  # fmt: skip
    names = [name_of(tmp_path, log, chosen, **how) for chosen, how in asked]
    assert len(set(names)) == len(names)
    same = name_of(tmp_path, log, "easy", cluster=replace(wide, licences=(("a", 1),)))  # no job holds one
    assert same == name_of(tmp_path, log, "easy", cluster=wide)
    assert name_of(tmp_path, log, "easy") == names[0]
    with patch.object(saved, "_code", lambda: b"other code"):
        assert name_of(tmp_path, log, "easy") != names[0]


def test_a_folder_that_fills_up_ends_no_replay(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    this = case(3)
    wanted = replay(this.workload, this.policy, estimate=this.estimate)

    def full(path: Path, data: bytes) -> None:
        raise InputError(path, 0, "cannot be written: No space left on device")

    with patch.object(saved, "write", full), patch.object(saved.Saved.__init__, "__defaults__", (0.0,)):
        same(replay(this.workload, this.policy, estimate=this.estimate, keep=tmp_path), wanted)
    assert capfd.readouterr().err.count("is not written down any more") == 1
    tmp_path.chmod(0o777)
    with pytest.raises(InputError, match="other users can write there"):
        replay(this.workload, this.policy, keep=tmp_path)


def test_what_is_not_written_down_is_refused(tmp_path: Path) -> None:
    this = case(3)
    for how in ({"event_by_event": True}, {"charge_decisions": 1.0}, {"estimate": "online"}):
        with pytest.raises(SettingError, match="cannot be written down"):
            replay(this.workload, "easy", keep=tmp_path, **how)
