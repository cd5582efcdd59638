"""What a real Slurm decided in one run, from its log and from what it said of jobs: small enough to be kept.

The log has each cycle of the backfill where DebugFlags has backfill. What a job had on each node is only told while it
runs, so it is asked for all the time. The number of a job is 1,000 times Slurm's; that of a task of an array is 1,000
times its array's and its own: so they stand in the order in which Slurm takes them.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dovetail.slurm.machine import Texts, of_lines

MAIN, BACKFILL, END, SUBMIT = "main", "backfill", "end", "submit"
_LINE = re.compile(r"\[(\S+)\] (.*)")
_JOB = r"JobId=(\d+)(?:_(\d+|\[[^\]]*\])(?:\(\d+\))?)?"
_SUBMIT = re.compile(rf"_slurm_rpc_submit_batch_job: {_JOB} InitPrio=(\d+)")
_ALLOCATE = re.compile(rf"sched: Allocate {_JOB} NodeList=(\S+) ")
_STARTED = re.compile(rf"_start_job: Started {_JOB} in \S+ on (\S+)")
_DONE = re.compile(rf"(?:_job_complete: {_JOB} done|Time limit exhausted for {_JOB})")
_TESTED = re.compile(rf"_attempt_backfill: (?:BACKFILL: )?test for {_JOB} Prio=(\d+)")
_PLANNED = re.compile(rf"_dump_job_sched: (?:BACKFILL: )?{_JOB} to start at (\S+), end at \S+ on nodes (\S+) in")
_COMPLETED = re.compile(r"_attempt_backfill: completed testing (\d+)\(\d+\) jobs, usec=(\d+)")
_HAD = re.compile(r"Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+) GRES=(\S*)")
_DEVICES = re.compile(r"gpu[^,(]*:(\d+)\(")
_SHOWN = re.compile(r"JobId=(\d+)(?: ArrayJobId=(\d+)(?: ArrayTaskId=(\d+)(?= ))?)?")
OF_ARRAY = 1000


@dataclass
class Cycle:
    """One of the backfill."""

    at: float
    took_s: float = 0
    tested: int = 0
    yields: int = 0
    starts: dict[int, str] = field(default_factory=dict)
    """Nodes of the jobs that it started."""
    plans: list[tuple[int, int, str]] = field(default_factory=list)
    """Which others are to start when and where, in order; tasks of an array all by the array's number."""


@dataclass
class Digest:
    """One run. Nodes are texts as Slurm writes lists of hosts; instants are seconds."""

    version: str
    speed: int
    workload: str
    nodes: list[tuple[str, int, int, int]] = field(default_factory=list)
    """Name, cores, memory and GPUs of each, in Slurm's order."""
    partitions: dict[str, tuple[str, int, int]] = field(default_factory=dict)
    """Nodes, tier, and the most minutes of a job; -1: any number."""
    reservations: list[tuple[str, int, int]] = field(default_factory=list)
    """Nodes, begin and end."""
    jobs: dict[int, Texts] = field(default_factory=dict)
    """What is read of each job, in Slurm's words; of tasks of an array that have not started, under the array's."""
    asked: dict[int, list[str]] = field(default_factory=dict)
    """The options of each job that was submitted."""
    seconds: dict[int, int] = field(default_factory=dict)
    """How long it was made to run; each task of an array."""
    had: dict[int, list[tuple[str, int, int, int]]] = field(default_factory=dict)
    """Nodes that a job had, with the cores, the memory and the GPUs of each."""
    events: list[tuple[float, str, int, str]] = field(default_factory=list)
    """When what happened to which job, and on which nodes."""
    cycles: list[Cycle] = field(default_factory=list)
    priorities: list[tuple[float, int, int]] = field(default_factory=list)
    """From when on a job has had which, in order: as submitted, and as it was seen."""

    def write(self, path: Path) -> None:
        """Packed JSON."""
        pack(path, asdict(self))


def pack(path: Path, value: Any) -> None:
    path.write_bytes(lzma.compress(json.dumps(value, sort_keys=True).encode(), preset=9))


def unpacked(path: Path) -> Any:
    return json.loads(lzma.decompress(path.read_bytes()))


def read(path: Path) -> Digest:
    """What `write` wrote."""
    told = unpacked(path)
    told["cycles"] = [
        Cycle(**{**one, "starts": _numbered(one["starts"])}) for one in told["cycles"]
    ]  # fmt: skip
    return Digest(**{**told, **{name: _numbered(told[name]) for name in ("jobs", "asked", "seconds", "had")}})


def _numbered(texts: dict[str, object]) -> dict[int, object]:
    return {int(number): one for number, one in texts.items()}


def of_log(digest: Digest, lines: Iterable[str]) -> None:
    """Take in the log of slurmctld."""
    cycle, ranks = None, dict[int, int]()
    for line in lines:
        if not (found := _LINE.match(line)):
            continue
        at, text = _instant(found[1]), found[2]
        if one := _PLANNED.search(text):
            if cycle is not None:
                cycle.plans.append((_number(one), int(_instant(one[3])), one[4]))
        elif one := _SUBMIT.search(text):
            digest.events.append((at, SUBMIT, _number(one), ""))
            digest.priorities.append((at, _number(one), int(one[3])))
        elif one := _ALLOCATE.search(text):
            digest.events.append((at, MAIN, _number(one), one[3]))
        elif one := _STARTED.search(text):
            digest.events.append((at, BACKFILL, _number(one), one[3]))
            if cycle is not None:
                cycle.starts[_number(one)] = one[3]
        elif one := _TESTED.search(text):
            number, rank = _number(one), int(one[3])
            if cycle is not None and ranks.get(number) != rank:
                ranks[number] = rank
                digest.priorities.append((cycle.at - 0.001, number, rank))
        elif one := _DONE.search(text):
            digest.events.append((at, END, _number(one) if one[1] else _number(one, 3), ""))
        elif "_attempt_backfill: beginning" in text:
            cycle = Cycle(at)
        elif cycle is not None and "yielding locks" in text:
            cycle.yields += 1
        elif cycle is not None and (one := _COMPLETED.search(text)):
            cycle.tested, cycle.took_s = int(one[1]), int(one[2]) / 1e6
            digest.cycles.append(cycle)
            cycle = None
    digest.priorities.sort()


def _instant(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def _number(found: re.Match[str], at: int = 1) -> int:
    """Of a job in a line of the log."""
    task = found[at + 1] or ""
    return OF_ARRAY * int(found[at]) + (int(task) if task.isdecimal() else 0)


def had_of(job: str) -> list[tuple[str, int, int, int]]:
    """What a running job has of nodes, by its line of `scontrol show job -d -o`."""
    return [
        (nodes, _count(cores), int(memory), sum(int(one) for one in _DEVICES.findall(gres)))
        for nodes, cores, memory, gres in _HAD.findall(job)
    ]


def _count(cores: str) -> int:
    pieces = (one.partition("-") for one in cores.split(","))
    return sum(int(last or first) - int(first) + 1 for first, _, last in pieces)


NOT_KEPT = ("Command", "WorkDir", "StdErr", "StdIn", "StdOut", "AllocNode:Sid", "SubmitLine")
"""Fields of a job that say where this machine's files are, or nothing of the job."""


def take_job(digest: Digest, line: str, now: float) -> int | None:
    """Take in a job by its line of `scontrol show job -d -o`; its number, if it runs and is not yet known to."""
    if not (found := _SHOWN.match(line)):
        return None
    number = OF_ARRAY * int(found[2] or found[1]) + int(found[3] or 0)
    if number in digest.had:
        return None
    texts = of_lines(line, "JobId").popitem()[1]
    known = digest.jobs.get(number, {})
    digest.jobs[number] = {name: text for name, text in texts.items() if name not in NOT_KEPT}
    if texts["JobState"] == "PENDING" and known.get("Priority") != texts["Priority"]:
        digest.priorities.append((now, number, int(texts["Priority"])))
    return number


def reservation_of(texts: Texts) -> tuple[str, int, int]:
    """A reservation by what `scontrol show reservation -o` says of it."""
    return texts["Nodes"], int(texts["StartTime"]), int(texts["EndTime"])
