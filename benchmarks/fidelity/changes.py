"""What `dovetail whatif` says of a change, by the history of a real Slurm before it, beside what real ones then did.

Two changes: `bf_window` from 10 minutes to a day, and a quarter more nodes. The history of each run before is imported
and asked as an administrator would; the real change is that of the mean waits of five runs each.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from benchmarks.fidelity.agree import Run
from benchmarks.fidelity.digest import Digest, read, unpacked
from benchmarks.fidelity.free import PHASES, by_call
from benchmarks.fidelity.nouns import came
from scipy.stats import t as student

from dovetail.arrays import Floats, Mask
from dovetail.studies.whatif import of_sizes

RUNS = range(1, 6)
BEFORE = "window10-64"
QUESTIONS = {"bf_window=1440": "", "nodes+=25%": "window10-80"}
"""What is asked, and what the runs after it are called; '': as those with default settings."""
ALL = "all"


@dataclass(frozen=True)
class Told:
    """Of one question about one workload, in seconds: the real change of a mean wait with its 95 % interval, and of
    each history before it what was predicted, from where to where."""

    jobs: int
    before_s: float
    real_s: float
    margin_s: float
    predicted: Sequence[tuple[float, float, float]]

    @property
    def inside(self) -> int:
        """Of how many histories the real change is in the interval that was predicted."""
        return sum(low <= self.real_s <= high for _, low, high in self.predicted)

    @property
    def tells(self) -> bool:
        """Whether the real runs can tell that there is a change."""
        return abs(self.real_s) > self.margin_s

    @property
    def signs(self) -> int:
        """Of how many the sign is right."""
        return sum(one * self.real_s > 0 for one, *_ in self.predicted)


def told(folder: Path, kind: str) -> dict[tuple[str, str], Told]:
    """Each question about a workload, of all jobs and of each class of size, by the runs in a folder and in `changes`
    below it."""
    changes = folder / "changes"
    files = {"": [folder / f"{kind}-22.05{f'-{run}' if run > 1 else ''}.json.xz" for run in RUNS]}
    files |= {name: [changes / f"{kind}-{name}-{run}.json.xz" for run in RUNS] for name in (BEFORE, "window10-80")}
    waits, classes = _waits({name: [read(one) for one in some] for name, some in files.items()})
    foretold = [predicted(changes / f"{kind}-{BEFORE}-{run}.history.json.xz") for run in RUNS]
    found = {}
    for at, (question, after) in enumerate(QUESTIONS.items()):
        for name, chosen in classes.items():
            before, then = (waits[one][:, chosen].mean(axis=1) for one in (BEFORE, after))
            spread = sum(values.var(ddof=1) / len(values) for values in (before, then))
            margin = float(student.ppf(0.975, len(RUNS) - 1) * np.sqrt(spread))
            of_it = [one[at][name] for one in foretold]
            real = float(then.mean() - before.mean())
            found[question, name] = Told(int(chosen.sum()), float(before.mean()), real, margin, of_it)
    return found


def _waits(digests: dict[str, list[Digest]]) -> tuple[dict[str, Floats], dict[str, Mask]]:
    """The waits in each run of the jobs that all of them started, and the classes of these."""
    runs = {name: [Run(one) for one in some] for name, some in digests.items()}
    known = {name: [by_call(run) for run in some] for name, some in runs.items()}
    calls = sorted(set.intersection(*(set(one) for some in known.values() for one in some)))
    first, of_first = runs[BEFORE][0], known[BEFORE][0]
    cores = np.array([int(first.digest.jobs[of_first[call]]["NumCPUs"]) for call in calls])
    classes = {ALL: np.ones(len(calls), bool)} | dict(of_sizes(cores, first.nodes[0].cores))
    found = {
        name: np.array([[run.started[by[call]] - came(run, by[call]) for call in calls]
                        for run, by in zip(some, known[name], strict=True)])
        for name, some in runs.items()
    }  # fmt: skip
    return found, {name: chosen for name, chosen in classes.items() if chosen.any()}


def predicted(packed: Path, phases: int = PHASES) -> list[dict[str, tuple[float, float, float]]]:
    """The change of the mean wait and its interval, of each question, of all jobs and of each class, as the command
    says it of one history."""
    texts: dict[str, str] = unpacked(packed)
    with TemporaryDirectory() as name:
        folder = Path(name)
        for one, text in texts.items():
            (folder / one).parent.mkdir(exist_ok=True)
            (folder / one).write_text(text)
        cluster, jobs = str(folder / "c.toml"), str(folder / "jobs.parquet")
        _dovetail("cluster", "import-slurm", str(folder / "machine"), "-o", cluster)
        _dovetail("workload", "import-slurm", str(folder / "dump.txt"), "-o", jobs, "--cluster", cluster)
        many = ("--phases", str(phases))
        asked = [word for question in QUESTIONS for word in ("--set", question)]
        answers: list[Any] = json.loads(_dovetail("whatif", jobs, "--cluster", cluster, *asked, *many, "--json"))[
            "answers"
        ]
    return [
        {name: (its["then_s"] - its["today_s"], its["low_s"], its["high_s"])
         for name, its in ({ALL: one} | one["groups"]).items()}
        for one in answers
    ]  # fmt: skip


def _dovetail(*words: str) -> str:
    command = [str(Path(sys.executable).parent / "dovetail"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stderr[-2000:]}")
    return done.stdout
