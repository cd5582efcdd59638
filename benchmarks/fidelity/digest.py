"""What a real Slurm decided in one run, from its log and from what it said of jobs: small enough to be kept.

The log has each cycle of the backfill where DebugFlags has backfill and backfillmap. What a job had on each node is
only told while it runs, so it is asked for all the time.
"""

from __future__ import annotations

import json
import lzma
import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from dovetail.slurm import words
from dovetail.slurm.machine import Texts, of_lines

MAIN, BACKFILL, END, SUBMIT = "main", "backfill", "end", "submit"
_LINE = re.compile(r"\[(\S+)\] (.*)")
_SUBMIT = re.compile(r"_slurm_rpc_submit_batch_job: JobId=(\d+) InitPrio=(\d+)")
_ALLOCATE = re.compile(r"sched: Allocate JobId=(\d+) NodeList=(\S+) ")
_STARTED = re.compile(r"_start_job: Started JobId=(\d+) in \S+ on (\S+)")
_DONE = re.compile(r"(?:_job_complete: JobId=(\d+) done|Time limit exhausted for JobId=(\d+))")
_PLANNED = re.compile(r"_dump_job_sched: JobId=(\d+) to start at (\S+), end at \S+ on nodes (\S+) in")
_COMPLETED = re.compile(r"_attempt_backfill: completed testing (\d+)\(\d+\) jobs, usec=(\d+)")
_HAD = re.compile(r"Nodes=(\S+) CPU_IDs=(\S+) Mem=(\d+)")


@dataclass
class Cycle:
    """One of the backfill."""

    at: float
    took_s: float = 0
    tested: int = 0
    yields: int = 0
    starts: dict[int, str] = field(default_factory=dict)
    """Nodes of the jobs that it started."""
    plans: dict[int, tuple[int, str]] = field(default_factory=dict)
    """When and where others are to start."""


@dataclass
class Digest:
    """One run. Nodes are texts as Slurm writes lists of hosts; instants are seconds."""

    version: str
    speed: int
    workload: str
    nodes: list[tuple[str, int, int]] = field(default_factory=list)
    """Name, cores and memory of each, in Slurm's order."""
    partitions: dict[str, str] = field(default_factory=dict)
    jobs: dict[int, Texts] = field(default_factory=dict)
    """What is read of each job, in Slurm's words."""
    had: dict[int, list[tuple[str, int, int]]] = field(default_factory=dict)
    """Nodes that a job had, with the cores and the memory of each."""
    events: list[tuple[float, str, int, str]] = field(default_factory=list)
    """When what happened to which job, and on which nodes."""
    cycles: list[Cycle] = field(default_factory=list)
    priorities: list[tuple[float, int, int]] = field(default_factory=list)
    """From when on a job has had which, in order: as submitted, and as it was seen."""

    def write(self, path: Path) -> None:
        """Packed JSON."""
        path.write_bytes(lzma.compress(json.dumps(asdict(self), sort_keys=True).encode(), preset=9))


def read(path: Path) -> Digest:
    """What `write` wrote."""
    told = json.loads(lzma.decompress(path.read_bytes()))
    told["cycles"] = [
        Cycle(**{**one, "starts": _numbered(one["starts"]), "plans": _numbered(one["plans"])})
        for one in told["cycles"]
    ]  # fmt: skip
    return Digest(**{**told, "jobs": _numbered(told["jobs"]), "had": _numbered(told["had"])})


def _numbered(texts: dict[str, object]) -> dict[int, object]:
    return {int(number): one for number, one in texts.items()}


def of_log(digest: Digest, lines: Iterable[str]) -> None:
    """Take in the log of slurmctld."""
    cycle = None
    for line in lines:
        if not (found := _LINE.match(line)):
            continue
        at, text = _instant(found[1]), found[2]
        if one := _PLANNED.search(text):
            if cycle is not None:
                cycle.plans[int(one[1])] = (int(_instant(one[2])), one[3])
        elif one := _SUBMIT.search(text):
            digest.events.append((at, SUBMIT, int(one[1]), ""))
            digest.priorities.append((at, int(one[1]), int(one[2])))
        elif one := _ALLOCATE.search(text):
            digest.events.append((at, MAIN, int(one[1]), one[2]))
        elif one := _STARTED.search(text):
            digest.events.append((at, BACKFILL, int(one[1]), one[2]))
            if cycle is not None:
                cycle.starts[int(one[1])] = one[2]
        elif one := _DONE.search(text):
            digest.events.append((at, END, int(one[1] or one[2]), ""))
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


def had_of(job: str) -> list[tuple[str, int, int]]:
    """What a running job has of nodes, by its line of `scontrol show job -d -o`."""
    return [(nodes, _count(cores), int(memory)) for nodes, cores, memory in _HAD.findall(job)]


def _count(cores: str) -> int:
    pieces = (one.partition("-") for one in cores.split(","))
    return sum(int(last or first) - int(first) + 1 for first, _, last in pieces)


KEPT = (
    "Partition",
    "StartTime",
    "TimeLimit",
    "NumTasks",
    "CPUs/Task",
    "SubmitTime",
    "EligibleTime",
    "UserId",
)
"""What is kept of a job; `PerNode` beside it: how many tasks on each node, and `Nodes`: how many it asked for."""


def job_of(line: str) -> tuple[int, Texts]:
    """A job by its line of `scontrol show job -d -o`."""
    texts = of_lines(line, "JobId").popitem()[1]
    kept = {name: texts[name] for name in KEPT}
    kept["PerNode"] = texts["NtasksPerN:B:S:C"].partition(":")[0]
    kept["Nodes"] = str(words.tres(texts.get("ReqTRES") or texts["TRES"]).get("node", 1))
    return int(texts["JobId"]), kept
