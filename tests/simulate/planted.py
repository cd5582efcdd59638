"""Bugs that are planted to see whether the simulation finds them: each a line of a copy of the package, replaced.

python -m tests.simulate --planted [NAME ...]    all of them: writes planted.csv
"""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import dovetail
from dovetail.errors import SettingError
from tests.conftest import ROOT

MOST_S: Final = 600
"""Each is to be found within so many seconds of one core."""
FOUND: Final = Path(__file__).with_name("planted.csv")
FIELDS: Final = ("bug", "what", "file", "found_by", "seed", "cases", "seconds", "cpu_s", "said")


@dataclass(frozen=True)
class Bug:
    """What is wrong, and the text of a file that is replaced. Kernels run uncompiled where they are changed."""

    name: str
    what: str
    file: str
    old: str
    new: str

    @property
    def compiled(self) -> bool:
        return not self.file.startswith("kernels/")


BUGS: Final = (
    Bug(
        "shadow", "a backfilled job may end a second after the reservation of the first job begins",
        "kernels/machine/processors.py", "    if end <= shadow:", "    if end <= shadow + 1:",
    ),
    Bug(
        "tie", "of two jobs with equal keys the later one comes first",
        "kernels/passes/order.py", "        if key[queue[mid]] <= mine:", "        if key[queue[mid]] < mine:",
    ),
    Bug(
        "overdue", "a job that has outlived its estimate is taken to end now",
        "kernels/machine/processors.py", "    if late:", "    if late and k_n < 0:",
    ),
    Bug(
        "promise", "when a plan is compressed, jobs start no earlier than in a second",
        "kernels/passes/conservative.py", "            promised[job] = earliest_fit(cap, job, now, length)",
        "            promised[job] = earliest_fit(cap, job, now + 1, length)",
    ),
    Bug(
        "full node", "a node takes units that need one core more than it has",
        "kernels/machine/node_fit.py", "vector[base + r] // need)", "(vector[base + r] + 1) // need)",
    ),
    Bug(
        "peeking", "a predictor that has seen no job yet says the run time",
        "kernels/learners/learner.py", "    return whole_seconds(np.inf, limit)",
        "    return whole_seconds(float(runtime[job]), limit)",
    ),
    Bug(
        "resume", "a replay that is copied forgets when it is to wake",
        "engine/compiled.py", "        return replace(self, run=run, cap=self.cap.copied()",
        "        run.info[layout.WAKE] = NEVER\n        return replace(self, run=run, cap=self.cap.copied()",
    ),
    Bug(
        "feedback", "event by event, a job follows another one second after its end at the earliest",
        "engine/stepped.py", "self.now + int(self._links[THINK, child])",
        "self.now + max(int(self._links[THINK, child]), 1)",
    ),
    Bug(
        "mean", "the mean wait counts one job too few",
        "metrics/jobs.py", "    return exact_mean(jobs.wait)\n", "    return exact_mean(jobs.wait[1:])\n",
    ),
    Bug(
        "scenario", "a span leaves out the job that is submitted as it begins",
        "workloads/scenarios.py", "(workload.submit >= begin_s)", "(workload.submit > begin_s)",
    ),
    Bug(
        "names", "the runs of two estimates have the same name",
        "studies/task.py", "        matters = {key: value",
        "        matters = {key: {**value, 'estimate': ''} if key == 'cell' else value",
    ),
    Bug(
        "half a run", "a file whose bytes could not be written out gets its name all the same",
        "files.py", "            os.fsync(written.fileno())",
        "            with suppress(OSError):\n                os.fsync(written.fileno())",
    ),
)  # fmt: skip


@contextmanager
def planted(bug: Bug) -> Iterator[dict[str, str]]:
    """The environment of a process whose package has the bug."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "dovetail"
        shutil.copytree(Path(dovetail.__file__).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        path = copy / bug.file
        text = path.read_text(encoding="utf-8")
        if text.count(bug.old) != 1:
            raise SettingError(f"{bug.name}: {bug.file} has its text {text.count(bug.old)} times: choose another")
        path.write_text(text.replace(bug.old, bug.new), encoding="utf-8")
        env = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), folder))}
        yield env if bug.compiled else {**env, "NUMBA_DISABLE_JIT": "1"}


def hunted(bug: Bug, first: int = 0, most_s: float = MOST_S) -> dict[str, object]:
    """How a bug was found, in a process of its own: by which check, after how long; by '' if it was not."""
    with planted(bug) as env:
        command = [sys.executable, "-m", "tests.simulate.planted", str(first), str(most_s)]
        done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SettingError(f"{bug.name}: the simulation ended with {done.returncode}: {done.stderr[-500:]}")
    return {"bug": bug.name, "what": bug.what, "file": bug.file, **json.loads(done.stdout.splitlines()[-1])}


def hunt_all(names: Sequence[str] = ()) -> int:
    """Look for every bug, tell how it went, and write it down. How many were not found?"""
    missed, rows = 0, []
    for bug in BUGS:
        if names and bug.name not in names:
            continue
        row = hunted(bug)
        rows.append(row)
        missed += not row["found_by"]
        how = f"found by {row['found_by']} after {row['cpu_s']} s of CPU, {row['cases']} cases"
        print(f"{bug.name}: {bug.what}: {how if row['found_by'] else 'MISSED'}", flush=True)
    if not names:
        with FOUND.open("w", newline="", encoding="utf-8") as file:
            table = csv.DictWriter(file, FIELDS, lineterminator="\n")
            table.writeheader()
            table.writerows(rows)
    print(f"{len(rows) - missed} of {len(rows)} planted bugs were found within {MOST_S} s of CPU each")
    return missed


def main() -> None:
    """The hunt itself, in the process that has the bug: from a seed on, until something is found."""
    from tests.simulate.run import Totals, seeds_from, simulate

    first, most_s = int(sys.argv[1]), float(sys.argv[2])
    totals, began, clock = Totals(), time.monotonic(), time.process_time()
    simulate(seeds_from(first, most_s, time.process_time), totals, say=False, stop=True)
    seed, check, said = totals.violations[0] if totals.violations else ("", "", "")
    took = {"seconds": round(time.monotonic() - began, 1), "cpu_s": round(time.process_time() - clock, 1)}
    print(json.dumps({"found_by": check, "seed": seed, "cases": totals.cases, **took, "said": said}))


if __name__ == "__main__":
    main()
