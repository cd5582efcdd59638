"""Priorities against those of a real Slurm: to the unit. Its jobs come after those of the tests of imports, by the name
of this file."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from dovetail.model.shares import standing
from dovetail.slurm import scontrol
from dovetail.slurm.conf import read_conf
from dovetail.slurm.machine import ROOT, of_lines, of_table
from dovetail.slurm.priority import Priorities, priorities
from tests.slurm.real import VERSIONS, RealSlurm, needs_slurm, waits_for

ACCOUNTS: Final = {"p1": ("root", 30), "p1a": ("p1", 5), "p1b": ("p1", 5), "p2": ("root", 70), "p3": ("root", 70)}
"""What is above each, and its shares; p1a and p1b tie until they are used, as p2 and p3 do."""
USERS: Final = {
    ("daemon", "p1a"): "1", ("bin", "p1a"): "parent", ("sys", "p1b"): "2", ("www-data", "p2"): "3",
    ("mail", "p2"): "0", ("bin", "p3"): "4", ("daemon", "p3"): "4",
}  # fmt: skip
NUMBER: Final = {"daemon": 1, "bin": 2, "sys": 3, "www-data": 33, "mail": 8}
SHOWN: Final = ("id", "total", "age", "account", "turn", "size", "partition", "qos", "site", "nice", "resources")
SPRIO: Final = "%i|%Y|%A|%B|%F|%J|%P|%Q|%S|%N|%T"


def set_up(slurm: RealSlurm) -> None:
    """Accounts, users and classes of service; partitions that differ."""
    for name, (above, shares) in ACCOUNTS.items():
        slurm.run("sacctmgr", "-i", "add", "account", name, f"parent={above}", f"fairshare={shares}")
    for (user, account), own in USERS.items():
        slurm.run("sacctmgr", "-i", "add", "user", user, f"account={account}", f"fairshare={own}")
    slurm.run("sacctmgr", "-i", "modify", "user", "sys", "where", "account=p1b", "set", "priority=40")
    slurm.run("sacctmgr", "-i", "modify", "user", "bin", "where", "account=p3", "set", "priority=13")
    for name, priority in (("urgent", 100), ("idle", 7)):
        slurm.run("sacctmgr", "-i", "add", "qos", name, f"priority={priority}")


@contextmanager
def full(slurm: RealSlurm) -> Iterator[None]:
    """No node takes a job, and partitions differ; all is put back."""
    slurm.run("scontrol", "update", "NodeName=ALL", "State=DRAIN", "Reason=test")
    for partition, factor in (("gpu", 50), ("bigmem", 20)):
        slurm.run("scontrol", "update", f"PartitionName={partition}", f"PriorityJobFactor={factor}")
    try:
        yield
    finally:
        slurm.run("scancel", "--state=PENDING", "--quiet", check=False)
        for partition in ("gpu", "bigmem"):
            slurm.run("scontrol", "update", f"PartitionName={partition}", "PriorityJobFactor=1")
        slurm.run("scontrol", "update", "NodeName=ALL", "State=RESUME")


SETTINGS: Final = (
    (), ("PriorityFavorSmall=YES",), ("PriorityFlags=SMALL_RELATIVE_TO_TIME",),
    ("PriorityFavorSmall=YES", "PriorityFlags=SMALL_RELATIVE_TO_TIME,NO_NORMAL_PART,NO_NORMAL_QOS"),
    ("PriorityFlags=NO_NORMAL_ALL",),
)  # fmt: skip
"""The three forms of size, and what is not divided by the most that there is."""


@contextmanager
def configured(slurm: RealSlurm) -> Iterator[Callable[[Sequence[str]], None]]:
    """A function that adds lines to the configuration; it is put back."""
    file = slurm.file("etc/slurm.conf")
    before = file.read_text()

    def add(lines: Sequence[str]) -> None:
        file.write_text("\n".join((before, *lines, "")))
        slurm.run("scontrol", "reconfigure")

    try:
        yield add
    finally:
        add([])


def submit(slurm: RealSlurm, user: str, account: str, *options: str, run: str = "sleep 60") -> str:
    own = ["setpriv", f"--reuid={NUMBER[user]}", f"--regid={NUMBER[user]}", "--clear-groups"]
    words = ["sbatch", "--parsable", "-D", "/", "-o", "/dev/null", "-A", account, *options, "--wrap", run]
    return slurm.run(*own, *words).strip()


def agree(slurm: RealSlurm, folder: Path, ids: Sequence[str], since: int) -> bool:
    """Whether there is an instant, not before some, at which all priorities are those that sprio shows. What is asked
    is asked one by one, so priorities may be older than usage."""
    jobs = of_lines(slurm.run("env", "SLURM_TIME_FORMAT=%s", "scontrol", "show", "job", "-o"), "JobId")
    told = {one["id"]: one for one in of_table(slurm.run("sprio", "-h", "-o", SPRIO), SHOWN)}
    told = {number.strip(): one for number, one in told.items()}
    usage = of_table(
        slurm.run("sshare", "-a", "-P", "-n", "-o", "Account,User,RawUsage"), ("Account", "User", "RawUsage")
    )
    shares = {(one["Account"].strip(), one["User"].strip()): float(one["RawUsage"]) for one in usage}
    made = rules_of(slurm, folder)
    used = [shares.get(member, 0.0) for member in made.members]
    waiting = [jobs[one] | {"SiteFactor": told.get(one, {}).get("site", "0").strip()} for one in ids]
    asking = made.asking(waiting, standing(made.tree, used, shares[ROOT]))
    totals = [int(told[one]["total"]) if one in told else -1 for one in ids]
    return any(made.rules(asking, at).tolist() == totals for at in range(since, int(slurm.run("date", "+%s")) + 1))


def rules_of(slurm: RealSlurm, folder: Path) -> Priorities:
    """Asked as an administrator would. Which flags are set is in the slurm.conf: of some, scontrol says more."""
    folder.mkdir(exist_ok=True)
    for name, call in scontrol.CALLS.items():
        (folder / f"{name}.txt").write_text(slurm.run(*call))
    machine = scontrol.read_folder(folder)
    flags = read_conf(slurm.file("etc/slurm.conf")).config.get("PriorityFlags", "")
    return priorities(replace(machine, config=machine.config | {"PriorityFlags": flags}))


@pytest.mark.slurm
@needs_slurm
@pytest.mark.parametrize("version", VERSIONS)
def test_priorities_are_those_of_sprio(slurm: Callable[[str], RealSlurm], version: str, tmp_path: Path) -> None:
    real, rng = slurm(version), random.Random(version)
    set_up(real)
    ran = [submit(real, user, account, "-n8", "-t", "5", run=f"sleep {30 + 20 * at}")
           for at, (user, account) in enumerate(list(USERS)[:5])]  # fmt: skip
    waits_for(lambda: not real.run("squeue", "-h", "-j", ",".join(ran)).strip(), 60, "jobs that use their shares end")
    with full(real), configured(real) as configure:
        ids = []
        for _ in range(40):
            user, account = rng.choice(list(USERS))
            options = [f"-n{rng.randint(2, 30)}", f"-t{rng.choice((7, 60, 1440))}", f"--nice={rng.choice((0, 0, 300))}"]
            options += [f"--qos={rng.choice(('normal', 'urgent', 'idle'))}", f"--mem-per-cpu={rng.randint(1, 900)}M"]
            options += rng.choice((["-p", "gpu", f"--gres=gpu:a100:{rng.randint(1, 4)}"], ["-p", "bigmem"], [], []))
            options += ["-N2"] * (rng.random() < 0.3)
            ids.append(submit(real, user, account, *options))
        for number, site in zip(ids[:4], (500, -200, 7, 90_000), strict=True):
            real.run("scontrol", "update", f"JobId={number}", f"SiteFactor={site}")
        for lines in SETTINGS:
            configure(lines)
            since = int(real.run("date", "+%s"))
            waits_for(
                partial(agree, real, tmp_path / "machine", ids, since), 60, f"priorities are sprio's with {lines}"
            )
