"""A real Slurm for tests: one cluster of each version, started when the first test asks for it."""

from __future__ import annotations

import os
import shlex
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.conftest import ROOT, needs

CLUSTER: Final = Path(os.environ.get("DOVETAIL_SLURM_CLUSTER", ROOT.parent / "shared" / "slurm" / "cluster"))
"""The script that starts one; `root` beside it makes a small Debian root with another version."""
SUITES: Final = {"22.05": "", "24.11": "trixie", "26.05": "sid"}
"""The Debian in which each version is; the first is this machine's own."""
ROOTS: Final = Path(os.environ.get("DOVETAIL_SLURM_ROOTS", "/srv/dovetail-slurm"))
"""Where the roots are made and stay."""
TRIES: Final = 3
SPEED: Final = 60
"""So many times as fast as real time goes the clock of these clusters."""
FAKETIME: Final = Path("/usr/lib")
"""Where the library of clocks is, below: the first cluster with a fast clock installs it."""
EXTRA: Final = "\n".join((
    "MinJobAge=200000", "AccountingStorageTRES=gres/gpu,gres/gpu:a100", "PriorityCalcPeriod=2", "PriorityMaxAge=1-0",
    "PriorityWeightAge=864000", "PriorityWeightFairShare=70001", "PriorityWeightJobSize=30011",
    "PriorityWeightPartition=5003", "PriorityWeightQOS=7001", "PriorityWeightAssoc=911",
    "PriorityWeightTRES=CPU=1009,Mem=2003,GRES/gpu=3001",
))  # fmt: skip
"""Jobs that have ended stay known to scontrol: they are compared with it. GPUs are counted by their type, too. What
makes a priority is told apart by its weight."""
VERSIONS: Final = tuple(os.environ.get("DOVETAIL_SLURM_VERSIONS", "22.05 24.11").split())
"""Which versions are tested; 26.05 takes minutes more."""
needs_slurm = needs("slurm", CLUSTER.is_file() and os.geteuid() == 0)


@dataclass
class RealSlurm:
    """A running cluster. `folder` is where it is as it sees it, `root` the Debian root that it is in."""

    version: str
    folder: str
    root: Path | None = None
    environment: dict[str, str] = field(default_factory=dict)
    speed: int = SPEED
    extra: str = EXTRA
    parameters: str = ""
    """SchedulerParameters; empty: those that start jobs soonest."""

    def start(self, nodes: int) -> RealSlurm:
        """Make the root if there is none, start the daemons, and remember how clients reach them. On a machine that
        stands still for a minute now and then a database may not come up: then again, from nothing."""
        if self.root is not None and not (self.root / "usr/bin/apt-get").exists():
            self.root.parent.mkdir(parents=True, exist_ok=True)
            _done([str(CLUSTER.parent / "root"), "make", str(self.root), SUITES[self.version]], 600)
        for again in range(TRIES):
            try:
                self._control("start", self.folder, str(nodes))
                break
            except AssertionError:
                if again == TRIES - 1:
                    raise
                self.wipe()
                time.sleep(10)
        for line in self._control("env", self.folder).stdout.splitlines():
            for word in shlex.split(line.removeprefix("export ")):
                name, _, value = word.partition("=")
                self.environment[name] = value
        return self

    def file(self, name: str) -> Path:
        """One of its files, as this machine sees it."""
        return Path(f"{self.root or ''}{self.folder}/{name}")

    def wipe(self) -> None:
        """Stop it, and take away all of it but the root."""
        self._control("wipe", self.folder)

    def _control(self, *words: str) -> subprocess.CompletedProcess[str]:
        inside = [] if self.root is None else [str(CLUSTER.parent / "root"), "run", str(self.root)]
        script = "cluster" if inside else str(CLUSTER)
        options = {"SPEED": str(self.speed), "PRIORITY": "multifactor", "EXTRA": self.extra}
        options |= {"SCHEDPARAMS": self.parameters} if self.parameters else {}
        return _done([*inside, script, *words], 300, os.environ | options)

    def command(self, words: Sequence[str]) -> list[str]:
        """What to run on this machine for one of Slurm's programs. A root has its own files for its clock."""
        inside = [] if self.root is None else ["chroot", str(self.root)]
        return [*inside, "env", *(f"{name}={value}" for name, value in self.environment.items()), *words]

    def run(self, *words: str, check: bool = True) -> str:
        """What a program of Slurm's prints."""
        done = subprocess.run(
            self.command(words), capture_output=True, text=True, errors="replace",
            timeout=120, check=False, restore_signals=False,  # after a broken pipe Slurm's programs try again
        )  # fmt: skip
        if check and done.returncode:
            raise AssertionError(f"{words[:6]} exited with {done.returncode}: {done.stderr[-500:]}")
        return done.stdout

    def programs(self, folder: Path) -> dict[str, str]:
        """The environment in which a program finds sacct and the others, each behind a small script: they live on the
        cluster's fast clock, and the program on one that shows the same now and goes as this machine's."""
        folder.mkdir(exist_ok=True)
        for name in ("sacct", "scontrol", "sacctmgr", "squeue", "sinfo"):
            given = "${SLURM_TIME_FORMAT:+SLURM_TIME_FORMAT=$SLURM_TIME_FORMAT}"
            line = f'env -u FAKETIME {shlex.join(self.command([]))} {given} /usr/bin/{name} "$@"'
            (folder / name).write_text(f"#!/bin/sh\nexec {line}\n")
            (folder / name).chmod(0o755)
        ahead = int(self.run("date", "+%s")) - int(time.time()) + 30
        clock = {"LD_PRELOAD": str(next(FAKETIME.glob("*/faketime/libfaketime.so.1"))), "FAKETIME": f"+{ahead}"}
        return os.environ | clock | {"PATH": f"{folder}:{os.environ['PATH']}"}


def clusters() -> Iterator[Callable[[str], RealSlurm]]:
    """A function that gives the cluster of a version, started when it is first asked for; all are wiped at the end."""
    running: dict[str, RealSlurm] = {}

    def of(version: str) -> RealSlurm:
        if version not in running:
            root = ROOTS / SUITES[version] if SUITES[version] else None
            running[version] = RealSlurm(version, f"/tmp/dovetail-slurm-{os.getpid()}", root)  # noqa: S108
            running[version].start(8)
        return running[version]

    try:
        yield of
    finally:
        for one in running.values():
            one.wipe()


def _done(words: Sequence[str], seconds: int, env: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(words, capture_output=True, text=True, timeout=seconds, check=False, env=env)
    assert not done.returncode, f"{words}: {done.stdout[-500:]} {done.stderr[-500:]}"
    return done


def waits_for(what: Callable[[], bool], seconds: float, words: str) -> None:
    """Until it is so."""
    until = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < until, f"not within {seconds} s: {words}"
        time.sleep(0.2)
