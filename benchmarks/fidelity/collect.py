"""A workload on a real Slurm: submitted in time, watched, and its log taken in."""

from __future__ import annotations

import random
import re
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.fidelity.digest import Digest, had_of, job_of, of_log
from tests.slurm.real import RealSlurm

from dovetail.slurm.conf import read_conf

NODES = 64
PARAMETERS = (
    "bf_interval=30,bf_max_time=600,bf_yield_interval=10000000,bf_continue,max_sched_time=30,sched_min_interval=2000000"
)
"""With a fast clock a cycle takes as many times longer as the clock is faster: no cycle shall yield."""
_PRIORITY = re.compile(r" Priority=(\d+) ")
EXTRA = "MinJobAge=200000\nDebugFlags=backfill\nSlurmctldDebug=verbose"
"""From 24.11 on plans are told to those who want to hear more."""


def mixed(rng: random.Random, jobs: int) -> Iterator[tuple[float, list[str], int]]:
    """Jobs of some cores and jobs of whole and half nodes: when each comes, its options, and how long it runs."""
    at = 0.0
    for _ in range(jobs):
        at += rng.expovariate(1 / 25)
        minutes, kind = rng.choice((5, 10, 20, 30, 60, 120)), rng.random()
        if kind < 0.5:
            options = [f"-n{rng.choice((1, 2, 4, 8, 16, 24, 48))}"]
        elif kind < 0.8:
            options = [f"-N{rng.choice((2, 4, 8, 16, 24))}", f"--ntasks-per-node={rng.choice((8, 16))}"]
        else:
            options = [f"-n{rng.choice((32, 64, 128, 200))}"]
        yield at, [f"-t{minutes}", *options], int(60 * minutes * rng.uniform(0.2, 1.0))


WORKLOADS = {"mixed": mixed}


def collect(slurm: RealSlurm, workload: str, jobs: int, seed: int) -> Digest:
    """Run it, and say what was decided until the last job has come and a while after."""
    digest = Digest(slurm.version, slurm.speed, workload)
    machine = read_conf(slurm.file("etc/slurm.conf"))
    digest.nodes = [(name, int(one["CPUs"]), int(one["RealMemory"])) for name, one in machine.nodes.items()]
    digest.partitions = {name: ",".join(machine.nodes_of(name)) for name in machine.partitions}
    stop = threading.Event()
    watcher = threading.Thread(target=_watch, args=(slurm, digest, stop))
    watcher.start()
    began = time.monotonic()
    try:
        for at, options, seconds in WORKLOADS[workload](random.Random(seed), jobs):
            time.sleep(max(at / slurm.speed - (time.monotonic() - began), 0))
            slurm.run(
                "sbatch", "--parsable", "-D", "/", "-o", "/dev/null", *options, "--wrap", f"sleep {seconds}"
            )  # fmt: skip
            print(f"\r{at / 60:,.0f} min of the cluster's clock", end="", file=sys.stderr, flush=True)
        print(file=sys.stderr)
        time.sleep(300 / slurm.speed)
    finally:
        stop.set()
        watcher.join()
    with slurm.file("log/slurmctld.log").open(encoding="utf-8", errors="replace") as lines:
        of_log(digest, lines)
    return digest


def _watch(slurm: RealSlurm, digest: Digest, stop: threading.Event) -> None:
    """Ask for all jobs, all the time: what a job has on each node is told while it runs."""
    known = dict[int, int]()
    while not stop.is_set():
        now = float(slurm.run("date", "+%s.%N"))
        said = slurm.run("env", "SLURM_TIME_FORMAT=%s", "scontrol", "show", "job", "-d", "-o", check=False)
        for line in said.splitlines():
            if not (found := re.match(r"JobId=(\d+) ", line)) or int(found[1]) in digest.had:
                continue
            number, digest.jobs[number] = job_of(line)
            if (rank := _PRIORITY.search(line)) and known.get(number) != int(rank[1]):
                known[number] = int(rank[1])
                digest.priorities.append((now, number, known[number]))
            if "JobState=RUNNING" in line:
                digest.had[number] = had_of(line)
        stop.wait(0.5)


def started(folder: Path, version: str, speed: int, root: Path | None) -> RealSlurm:
    """A cluster for it."""
    slurm = RealSlurm(version, str(folder), root, speed=speed, extra=EXTRA, parameters=PARAMETERS)
    return slurm.start(NODES)
