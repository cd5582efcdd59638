"""A workload on a real Slurm: submitted in time, watched, and its log taken in."""

from __future__ import annotations

import random
import sys
import threading
import time
from itertools import islice
from pathlib import Path

from benchmarks.fidelity.digest import OF_ARRAY, Digest, had_of, of_log, reservation_of, take_job
from benchmarks.fidelity.workloads import KINDS, USERS, Submission
from tests.slurm.real import RealSlurm

from dovetail.slurm import sacct, scontrol, words
from dovetail.slurm.conf import read_conf
from dovetail.slurm.machine import of_lines
from dovetail.slurm.programs import ENVIRONMENT
from dovetail.slurm.records import FIELDS, NOT_IN_OLDER

NODES = 64
PARAMETERS = (
    "bf_interval=30,bf_max_time=600,bf_yield_interval=10000000,bf_continue,max_sched_time=30,sched_min_interval=2000000"
)
"""With a fast clock a cycle takes as many times longer as the clock is faster: no cycle shall yield."""
EXTRA = ("MinJobAge=200000",)
TOLD = ("DebugFlags=backfill", "SlurmctldDebug=verbose")
"""From 24.11 on plans are told to those who want to hear more."""

MOST_S = 4 * 3600
"""Of the cluster's time, for a run."""


def collect(slurm: RealSlurm, workload: str, jobs: int, seed: int) -> Digest:
    """Run it, and say what was decided until no job waits. `jobs`: how often sbatch is called; 0: as often as the
    workload is made for."""
    kind = KINDS[workload]
    digest = Digest(slurm.version, slurm.speed, workload)
    machine = read_conf(slurm.file("etc/slurm.conf"))
    digest.nodes = [
        (name, int(one["CPUs"]), int(one["RealMemory"]), sum(words.devices(words.gres(one.get("Gres", ""))).values()))
        for name, one in machine.nodes.items()
    ]
    digest.partitions = {
        name: (
            ",".join(machine.nodes_of(name)),
            int(one.get("PriorityTier", 1)),
            words.limit_minutes(one.get("MaxTime", "INFINITE")),
        )
        for name, one in machine.partitions.items()
    }
    for command in kind.commands():
        slurm.run(*command)
    told = slurm.run("env", "SLURM_TIME_FORMAT=%s", "scontrol", "show", "reservation", "-o", check=False)
    digest.reservations = [reservation_of(one) for one in of_lines(told, "ReservationName").values()]
    stop = threading.Event()
    watcher = threading.Thread(target=_watch, args=(slurm, digest, stop))
    watcher.start()
    began = time.monotonic()
    try:
        for one in islice(kind.jobs(random.Random(seed)), jobs or kind.calls):
            time.sleep(max(one.at / slurm.speed - (time.monotonic() - began), 0))
            number = OF_ARRAY * int(_submit(slurm, one))
            digest.asked[number], digest.seconds[number] = list(one.options), one.seconds
            print(f"\r{one.at / 60:,.0f} min of the cluster's clock", end="", file=sys.stderr, flush=True)
        while (left := _waiting(slurm)) and (time.monotonic() - began) * slurm.speed < MOST_S:
            print(f"\r{left:,} jobs wait           ", end="", file=sys.stderr, flush=True)
            time.sleep(2)
        print(file=sys.stderr)
    finally:
        stop.set()
        watcher.join()
    with slurm.file("log/slurmctld.log").open(encoding="utf-8", errors="replace") as lines:
        of_log(digest, lines)
    return digest


def _waiting(slurm: RealSlurm) -> int:
    return len(slurm.run("squeue", "-h", "-r", "-t", "PENDING", "-o", "%i").split())


def _submit(slurm: RealSlurm, one: Submission) -> str:
    """The number that it was given."""
    number = str(USERS[one.user][0]) if one.user else ""
    own = ["setpriv", f"--reuid={number}", f"--regid={number}", "--clear-groups"] if number else []
    call = ["sbatch", "--parsable", "-D", "/", "-o", "/dev/null", *one.options, "--wrap", f"sleep {one.seconds}"]
    return slurm.run(*own, *call).strip()


def _watch(slurm: RealSlurm, digest: Digest, stop: threading.Event) -> None:
    """Ask for all jobs, all the time: what a job has on each node is told while it runs."""
    while not stop.is_set():
        now = float(slurm.run("date", "+%s.%N"))
        said = slurm.run("env", "SLURM_TIME_FORMAT=%s", "scontrol", "show", "job", "-d", "-o", check=False)
        for line in said.splitlines():
            if (number := take_job(digest, line, now)) is not None and "JobState=RUNNING" in line:
                digest.had[number] = had_of(line)
        stop.wait(0.3)


def started(
    folder: Path, version: str, speed: int, root: Path | None, workload: str, quiet: bool = False,
    nodes: int = NODES, parameters: str = "",
) -> RealSlurm:  # fmt: skip
    """A cluster for it. `quiet`: its log tells of no cycles, which then take less time. `parameters`: more of them."""
    extra = "\n".join((*EXTRA, *([] if quiet else TOLD), *KINDS[workload].extra))
    given = ",".join(filter(None, (PARAMETERS, parameters)))
    slurm = RealSlurm(version, str(folder), root, speed=speed, extra=extra, parameters=given)
    return slurm.start(nodes)


def history(slurm: RealSlurm, begin: int) -> dict[str, str]:
    """What `import-slurm` reads, by file: of the machine, and of all jobs since an instant, when all have ended."""
    while slurm.run("squeue", "-h", "-o", "%i").split():
        time.sleep(2)
    environment = ["env", *(f"{name}={value}" for name, value in ENVIRONMENT.items())]
    told = {f"machine/{name}.txt": slurm.run(*environment, *call) for name, call in scontrol.CALLS.items()}
    known = tuple(name for name in FIELDS if name not in NOT_IN_OLDER)
    about = sacct.About(known, slurm.version, False, False, begin)
    until = int(slurm.run("date", "+%s")) + 60
    call = sacct.command(about, begin, until, sacct.token())
    return told | {"dump.txt": slurm.run(*environment, *call)}
