"""Records of sacct to a workload: rows for each CPU second on one core, clean and with names that hold what records are
split by.

    python benchmarks/slurm_import.py [ROWS [MEMORY_MB]]

Rows are generated, in the form that `dovetail workload import-slurm` asks for. Memory: the most that the process had,
what it had before, and what the workload's columns are; records beside them may take MEMORY_MB.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

os.environ["POLARS_MAX_THREADS"] = "1"

DELIMITER = "~5f0a1b22~"
FIELDS = (
    "DBIndex", "JobIDRaw", "JobID", "Submit", "Eligible", "Start", "End", "Suspended", "State", "TimelimitRaw",
    "ReqTRES", "AllocTRES", "ReqNodes", "NNodes", "NodeList", "User", "Account", "Partition", "QOS", "Reservation",
    "Constraints", "Reason", "Flags", "Restarts", "Licenses", "Cluster", "JobName",
)  # fmt: skip
HOSTILE = ("a\nb", "x\x1fy", "\r", "\n")


def rows(count: int, hostile: float, lines: bool) -> Iterator[str]:
    """Jobs of a cluster of a thousand nodes, one in seven of an array; with their submit lines, or without."""
    draw, submit = random.Random(1), 1_700_000_000
    yield DELIMITER.join((*FIELDS, *["SubmitLine"] * lines))
    for at in range(1, count + 1):
        submit += draw.randrange(6)
        start = submit + draw.randrange(20_000)
        cores = draw.choice((1, 1, 2, 4, 8, 16, 32, 64, 128, 256))
        nodes, first = max(1, cores // 64), draw.randrange(1, 900)
        tres = f"billing={cores},cpu={cores},mem={cores * 4000}M,node={nodes}"
        name = draw.choice(HOSTILE) if draw.random() < hostile else f"job_{draw.randrange(50_000)}"
        yield DELIMITER.join((
            str(10**9 + at), str(at), str(at) if at % 7 else f"{at}_3", str(submit), str(submit), str(start),
            str(start + draw.randrange(1, 80_000)), "00:00:00",
            draw.choice(("COMPLETED", "COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1005")),
            draw.choice(("60", "1440", "2880", "30")), tres, tres, str(nodes), str(nodes),
            f"n{first}" if nodes == 1 else f"n[{first}-{first + nodes - 1}]", f"user{draw.randrange(900)}",
            f"acc{draw.randrange(120)}", draw.choice(("batch", "gpu", "long")), "normal", "", "", "None",
            "SchedBackfill,StartReceived", "0", "", "big", name,
            *[f"sbatch --nodes={nodes} --time={draw.choice((60, 1440))} run_{draw.randrange(90_000)}.sh {at}"] * lines,
        ))  # fmt: skip


def measured(path: str, memory_mb: int) -> str:
    """In a process of its own: what one import takes."""
    from dovetail.slurm.history import read_history

    read_history(Path(__file__).parent.parent / "tests" / "slurm" / "recorded" / "26.05.txt.xz")  # all is imported
    first, before = peak_mb(), time.process_time()
    workload, _ = read_history(path, 100_000, memory=memory_mb << 20)
    spent = time.process_time() - before
    own = sum(values.nbytes for values in workload.columns.values()) / 2**20
    rate = len(workload) / spent
    return f"{len(workload):>12,} {spent:>8.1f} {rate:>14,.0f} {peak_mb():>9,.0f} {first:>9,.0f} {own:>11,.0f}"


def peak_mb() -> float:
    """The most memory that this process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(count: int, memory_mb: int) -> None:
    print(f"{'':<13}{'rows':>12} {'CPU s':>8} {'rows / CPU s':>14} {'memory MB':>9} {'before':>9} {'workload':>11}")
    with tempfile.TemporaryDirectory() as folder:
        for name, hostile, lines in (
            ("clean", 0.0, False),
            ("1 % hostile", 0.01, False),
            ("submit lines", 0.0, True),
            ("both", 0.01, True),
        ):
            path = Path(folder) / "dump.txt"
            with path.open("w", encoding="utf-8", newline="") as out:
                out.writelines(f"{row}{DELIMITER}\n" for row in rows(count, hostile, lines))
            done = subprocess.run(
                [sys.executable, __file__, "--of", str(path), str(memory_mb)],
                capture_output=True,
                text=True,
                check=True,
            )
            print(f"{name:<13}{done.stdout.rstrip()}", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--of"]:
        print(measured(sys.argv[2], int(sys.argv[3])))
    else:
        given = [int(text) for text in sys.argv[1:]]
        main(*given, *(1_000_000, 512)[len(given) :])
