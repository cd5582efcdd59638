"""Mutated files against every reader:  python -m tests.fuzz --reader all --records 1000000 --seed 1

Each file has a seed of its own, so that one that fails can be made again: --file N. A reader runs in a process of its
own; where that dies, the file is counted as a crash and the next one is begun.
"""

from __future__ import annotations

import argparse
import csv
import random
import resource
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from dataclasses import asdict
from importlib import import_module
from pathlib import Path

from tests.fuzz.common import Tally

READERS = ("swf", "csv", "table", "parquet", "toml", "hours", "slurm")
MOST_SECONDS = 5.0
"""CPU time that one file may take with its check; most take a tenth of a second."""
MOST_MEMORY = 4 << 30
RUNS = Path(__file__).parent / "runs.csv"


def maker(reader: str) -> Callable[[random.Random, Path], Tally]:
    found: Callable[[random.Random, Path], Tally] = import_module(f"tests.fuzz.{reader}_fuzz").one
    return found


def many(reader: str, seed: int, records: int, first: int, only: int) -> None:
    """Files one after the other; a line for each: its number, its counts, its CPU seconds, what was wrong."""
    one = maker(reader)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_DATA, (MOST_MEMORY, MOST_MEMORY))
    with tempfile.TemporaryDirectory() as folder:
        one(random.Random(0), Path(folder))  # compiles, and loads what is loaded late
        done, number = 0, first
        while done < records and (only < 0 or number == first):
            print(f"{number},", end="", flush=True)
            began = time.process_time()
            try:
                tally = one(random.Random(f"{reader}/{seed}/{number}"), Path(folder))
                tally.check()
                wrong = ""
                seconds = time.process_time() - began
                assert seconds < MOST_SECONDS, f"took {seconds:.1f} s"
            except BaseException as error:  # a panic of polars is no Exception
                if isinstance(error, KeyboardInterrupt):
                    raise
                tally, wrong = Tally(1), f"{type(error).__name__}: {error}"
                if only >= 0:
                    traceback.print_exc()
            row = [*asdict(tally).values(), f"{time.process_time() - began:.4f}", " ".join(wrong.split())[:300]]
            csv.writer(sys.stdout).writerow(row)
            sys.stdout.flush()
            done += tally.records
            number += 1


def run(reader: str, seed: int, records: int, only: int = -1) -> tuple[Tally, list[str], float]:
    """So many records against one reader: counts, what was wrong in which file, CPU seconds."""
    tally, wrong, cpu, number = Tally(), list[str](), 0.0, max(only, 0)
    while tally.records < records:
        command = [sys.executable, "-m", "tests.fuzz", "--child", "--reader", reader, "--seed", str(seed)]
        command += ["--records", str(records - tally.records), "--file", str(number)] + (["--one"] if only >= 0 else [])
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        last = ""
        assert child.stdout is not None
        for line in child.stdout:
            last = line
            if not line.endswith("\n"):
                break
            number_text, *counts, seconds, why = next(csv.reader([line]))
            number, cpu = int(number_text) + 1, cpu + float(seconds)
            tally.add(Tally(*map(int, counts)))
            if why:
                wrong.append(f"file {number_text}: {why}")
        if child.wait():
            if last.endswith("\n") or not last:
                raise SystemExit(f"{reader}: its process ended with {child.returncode} between files")
            number = int(last.rstrip(",")) + 1
            tally.add(Tally(files=1))
            wrong.append(f"file {number - 1}: the process ended with {child.returncode}")
        if only >= 0 or len(wrong) >= 100:
            break
    return tally, wrong, cpu


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--reader", default="all", choices=("all", *READERS))
    parser.add_argument("--records", type=int, default=1_000_000, help="of each reader")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--file", type=int, default=-1, help="only this one, to see what was wrong with it")
    parser.add_argument("--keep", action="store_true", help=f"add what was counted to {RUNS.name}")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.child:
        many(chosen.reader, chosen.seed, chosen.records, chosen.file, chosen.file if chosen.one else -1)
        return
    bad = 0
    for reader in READERS if chosen.reader == "all" else (chosen.reader,):
        tally, wrong, cpu = run(reader, chosen.seed, chosen.records, chosen.file)
        row = {"reader": reader, "seed": chosen.seed, **asdict(tally), "crashes": len(wrong), "cpu_s": round(cpu, 1)}
        print("  ".join(f"{name} {value}" for name, value in row.items()), *wrong[:20], sep="\n  ", flush=True)
        bad += len(wrong)
        if chosen.keep:
            _keep({**row, "commit": _commit()})
    sys.exit(1 if bad else 0)


def _commit() -> str:
    asked = ("git", "describe", "--always", "--dirty", "--exclude=*")
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()


def _keep(row: dict[str, object]) -> None:
    new = not RUNS.exists()
    with RUNS.open("a", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, list(row), lineterminator="\n")
        if new:
            table.writeheader()
        table.writerow(row)


if __name__ == "__main__":
    main()
