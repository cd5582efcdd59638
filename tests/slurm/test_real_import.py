"""What a real Slurm did, imported: every job that sacct can show, with its times, nodes and state."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from dovetail.api import prepare
from dovetail.arrays import NEVER
from dovetail.engine.replay import replay
from dovetail.io.clusters import read_cluster
from dovetail.io.read import read_workload
from dovetail.model.workload import Workload
from dovetail.referee import check_schedule
from dovetail.slurm import words
from dovetail.slurm.history import read_history
from tests.slurm.real import VERSIONS, RealSlurm, needs_slurm, waits_for
from tests.slurm.traps import Submitted

pytestmark = [needs_slurm, pytest.mark.parametrize("version", VERSIONS)]
Trapped = Callable[[str], tuple[RealSlurm, Submitted]]
DOVETAIL = str(Path(sys.executable).parent / "dovetail")


def imported(folder: Path, begin: int, end: int, *options: str) -> list[str]:
    """The command that imports what happened in some seconds, with its dump in a folder."""
    days = [time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(second)) for second in (begin, end)]
    words = ["--from", days[0], "--to", days[1], "--dump", str(folder / "dump"), "-o", str(folder / "jobs.parquet")]
    return [DOVETAIL, "workload", "import-slurm", *words, "--processors", "160", *options]


def run(command: list[str], env: dict[str, str]) -> str:
    """What it printed. Once more where one of Slurm's programs hung: on a busy machine the library of fast clocks makes
    them, now and then. It goes on where it was."""
    for last in (False, True):
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=150, check=False)
        except subprocess.TimeoutExpired:
            if last:
                raise
            continue
        if last or "timed out after" not in done.stderr:
            break
    assert not done.returncode, done.stderr
    return done.stdout + done.stderr


def now(real: RealSlurm) -> int:
    return int(real.run("date", "+%s"))


LATELY: Final = 8 * 3600
"""Seconds of the cluster's clock in which all jobs came, also where the machine is busy: 8 minutes of this one's."""


def test_every_job_comes_back(version: str, trapped: Trapped, tmp_path: Path) -> None:
    real, made = trapped(version)
    end = now(real)
    env = real.programs(tmp_path / "bin")
    run(imported(tmp_path, end - LATELY, end), env)
    log = read_workload(tmp_path / "jobs.parquet")
    assert log.provenance.lines == len(log) + len(log.set_aside)
    shown = of_sacct(real)
    first = int(log.header["UnixStartTime"][0])
    there = set(zip((log["id"] % 10**10).tolist(), (first + log.submit).tolist(), strict=True))
    lost = {one: told for one, told in shown.items() if one not in there}
    # on a busy machine a job may fail so fast that its end is kept and its start is not
    assert all(start == NEVER and nodes != "None assigned" for start, _, nodes, _ in lost.values()), lost
    assert log.set_aside.counts() == ({"ended, and nobody knows when it started": len(lost)} if lost else {})
    assert len(lost) < 5
    assert len(shown) - len(lost) == len(log) > 200
    for at in range(len(log)):
        number = int(log["id"][at]) % 10**10
        submit = first + int(log.submit[at])
        start, over, nodes, state = shown[number, submit]
        wait, runtime = int(log["wait"][at]), int(log.runtime[at])
        if start == NEVER or state.startswith("CANCELLED"):
            assert (wait, runtime, submit + int(log["leaves_s"][at])) == (-1, -1, over)
            assert log.called("ran_on", int(log["ran_on"][at])) == ""
        else:
            assert (submit + wait, submit + wait + runtime) == (start, over), number
            assert log.called("ran_on", int(log["ran_on"][at])) == nodes
        assert int(log["status"][at]) == {"COMPLETED": 1, "CANCELLED": 5}.get(words.state(state).word, 0)
    submitted = {number for some in made.ids.values() for number in some}
    assert submitted - {number for number, _ in shown} == set(
        made.of("held")
    )  # they are what the import says that nobody can know
    in_controller(real, log, first)


def of_sacct(real: RealSlurm) -> dict[tuple[int, int], tuple[int, int, str, str]]:
    """Start, end, nodes and state of each job by its number and submission, as sacct prints them without texts."""
    found = {}
    fields = "JobIDRaw,Submit,Start,End,NodeList,State"
    line = f"SLURM_TIME_FORMAT=%s sacct -a -X -D -P -n -S now-8hours -E now -o {fields}"
    for row in real.run("sh", "-c", line).splitlines():
        number, submit, start, end, nodes, state = row.split("|")
        found[int(number), int(submit)] = (words.instant(start), words.instant(end), nodes, state)
    return found


def in_controller(real: RealSlurm, log: Workload, first: int) -> None:
    """The controller still knows the jobs: it says the same of the last run of each. A name can forge a line."""
    lines = real.run("sh", "-c", "SLURM_TIME_FORMAT=%s scontrol show job -o").splitlines()
    told = [line for line in lines if re.match(r"JobId=\d+ .*NodeList=", line) and line.count(" JobState=") == 1]
    seen = 0
    ids = log["id"] % 10**10
    for line in told:
        number = int(line[6:].split()[0])
        start, end, nodes = (re.findall(rf" {key}=(\S*)", line)[-1] for key in ("StartTime", "EndTime", "NodeList"))
        mine = np.flatnonzero(ids == number)
        if not len(mine) or int(log["wait"][mine[-1]]) < 0:
            continue
        submit = first + int(log.submit[mine[-1]])
        began = submit + int(log["wait"][mine[-1]])
        assert (began, began + int(log.runtime[mine[-1]])) == (int(start), int(end)), line
        assert log.called("ran_on", int(log["ran_on"][mine[-1]])) == nodes
        seen += 1
    assert seen > 150


def test_windows_and_a_kill_make_the_same_bytes(version: str, trapped: Trapped, tmp_path: Path) -> None:
    real, _ = trapped(version)
    end = now(real)
    begin = end - 3 * 3600
    env = real.programs(tmp_path / "bin")
    made = {}
    for name, width in (("one", "1d"), ("hours", "1h"), ("killed", "12m")):
        folder = tmp_path / name
        folder.mkdir()
        command = imported(folder, begin, end, "--window", width)
        if name == "killed":
            process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            waits_for(lambda folder=folder: len(list(folder.glob("dump/*.zst"))) >= 5, 180, "some windows")  # type: ignore[misc]
            process.send_signal(signal.SIGKILL)
            process.wait()
            assert not (folder / "jobs.parquet").exists()
        run(command, env)
        made[name] = (folder / "jobs.parquet").read_bytes()
        assert len(list(folder.glob("dump/*.zst"))) == {"one": 1, "hours": 3, "killed": 15}[name]
    assert made["one"] == made["hours"] == made["killed"]
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "one" / "dump").iterdir()}
    assert modes == {0o600}


def test_json_is_the_same(version: str, trapped: Trapped, tmp_path: Path) -> None:
    real, _ = trapped(version)
    end = now(real)
    run(imported(tmp_path, end - LATELY, end), real.programs(tmp_path / "bin"))
    plain, _ = read_history(tmp_path / "dump", 160)
    (tmp_path / "dump.json").write_text(real.run("sacct", "-a", "-X", "-D", "--json", "-S", "now-8hours"))
    told, _ = read_history(tmp_path / "dump.json", 160)
    assert sorted(told.columns) == sorted(plain.columns)
    for column in plain.columns:
        if column in plain.names:
            mine, other = ([log.called(column, number) for number in log[column].tolist()] for log in (plain, told))
            if column == "user" and version == "22.05":  # it names those alone that have an account
                other = [name or known for name, known in zip(other, mine, strict=True)]
            assert mine == other, column
        else:
            assert plain[column].tolist() == told[column].tolist(), column


def test_names_come_back_and_do_no_harm(version: str, trapped: Trapped, tmp_path: Path) -> None:
    real, made = trapped(version)
    end = now(real)
    env = real.programs(tmp_path / "bin")
    command = imported(tmp_path, end - LATELY, end)
    assert "\x1b" not in run(command, env)
    log = read_workload(tmp_path / "jobs.parquet")
    name_of = {int(number): log.called("name", int(name)) for number, name in zip(log["id"], log["name"], strict=True)}
    for number in made.of("name"):
        given = "".join(one if one.isprintable() else "�" for one in made.names[number])
        if given.isascii() or version != "22.05":  # 22.05 keeps no more than Latin letters
            assert name_of[number][:190] in (given[:190], given.strip("�")[:190]), number
    assert os.environ.get("SLURM_CONF") is None


def test_what_happened_is_possible_on_the_imported_cluster(
    version: str, trapped: Trapped, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Shapes are inferred, and the referee finds nothing that could not have been."""
    real, made = trapped(version)
    end = now(real)
    env = real.programs(tmp_path / "bin")
    run([DOVETAIL, "cluster", "import-slurm", "--dump", str(tmp_path / "machine"), "-o", str(tmp_path / "c.toml")], env)
    command = imported(tmp_path, end - LATELY, end, "--cluster", str(tmp_path / "c.toml"))
    command = [one for one in command if one not in ("--processors", "160")]
    run(command, env)
    nodes = read_cluster(tmp_path / "c.toml")
    log = prepare(read_workload(tmp_path / "jobs.parquet"), ("standard",))
    told = replay(log, "recorded", cluster=nodes)
    assert told.placement is not None
    whole = dict(zip((log["id"] % 10**10).tolist(), log.get("exclusive").tolist(), strict=True))
    assert {whole.get(number) for number in made.of("exclusive", "whole")} == {1}
    shown = of_sacct(real).values()
    ran = [one for one in shown if one[0] < one[1] < NEVER]  # for a second at least, as the standard filter wants
    aside = log.set_aside.counts()
    assert aside.pop("no requested time") == 1
    assert len(log) + 1 == len(ran) > 190, aside
    assert check_schedule(told) == []
    easy = replay(log, "easy", cluster=nodes)
    assert check_schedule(easy) == []
