"""What `dovetail whatif` says of a change, by the history of a real Slurm before it, beside what real ones then did.

Two changes: `bf_window` from 10 minutes to a day, and a quarter more nodes. The history of each run before is imported
and asked as an administrator would; the real change is that of the mean waits of five runs each.
"""

from __future__ import annotations

import json
import lzma
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from benchmarks.fidelity.agree import Run
from benchmarks.fidelity.digest import Digest, read
from benchmarks.fidelity.free import PHASES, by_call
from benchmarks.fidelity.nouns import came
from scipy.stats import t as student

from dovetail.arrays import Floats

RUNS = range(1, 6)
BEFORE = "window10-64"
QUESTIONS = {"bf_window=1440": "", "nodes+=25%": "window10-80"}
"""What is asked, and what the runs after it are called; '': as those with default settings."""


@dataclass(frozen=True)
class Told:
    """Of one question about one workload, in seconds: the real change of the mean wait with its 95 % interval, and of
    each history before it what was predicted, from where to where."""

    before_s: float
    real_s: float
    margin_s: float
    predicted: Sequence[tuple[float, float, float]]

    @property
    def inside(self) -> int:
        """Of how many histories the real change is in the interval that was predicted."""
        return sum(low <= self.real_s <= high for _, low, high in self.predicted)

    @property
    def signs(self) -> int:
        """Of how many the sign is right."""
        return sum(one * self.real_s > 0 for one, *_ in self.predicted)


def pack(folder: Path, out: Path) -> None:
    """Keep what Slurm said of a run: files by their names."""
    texts = {str(one.relative_to(folder)): one.read_text() for one in sorted(folder.rglob("*.txt"))}
    out.write_bytes(lzma.compress(json.dumps(texts, sort_keys=True).encode(), preset=9))


def slim(digest: Digest) -> Digest:
    """A run without what only decisions are compared by."""
    digest.cycles, digest.priorities, digest.had = [], [], {}
    return digest


def told(folder: Path, kind: str) -> dict[str, Told]:
    """Each question about a workload, by the runs in a folder and in `changes` below it."""
    changes = folder / "changes"
    plain = [folder / f"{kind}-22.05{f'-{run}' if run > 1 else ''}.json.xz" for run in RUNS]
    sets = {name: [changes / f"{kind}-{name}-{run}.json.xz" for run in RUNS] for name in (BEFORE, "window10-80")}
    files = {BEFORE: sets[BEFORE], "": plain, "window10-80": sets["window10-80"]}
    means = _means({name: [read(one) for one in some] for name, some in files.items()})
    foretold = [predicted(changes / f"{kind}-{BEFORE}-{run}.history.json.xz") for run in RUNS]
    found = {}
    for at, (question, after) in enumerate(QUESTIONS.items()):
        real = float(means[after].mean() - means[BEFORE].mean())
        spread = sum(values.var(ddof=1) / len(values) for values in (means[after], means[BEFORE]))
        margin = float(student.ppf(0.975, len(RUNS) - 1) * np.sqrt(spread))
        found[question] = Told(float(means[BEFORE].mean()), real, margin, [one[at] for one in foretold])
    return found


def _means(digests: dict[str, list[Digest]]) -> dict[str, Floats]:
    """The mean wait of each run, of the jobs that all of them started."""
    runs = {name: [Run(one) for one in some] for name, some in digests.items()}
    known = {name: [by_call(run) for run in some] for name, some in runs.items()}
    calls = sorted(set.intersection(*(set(one) for some in known.values() for one in some)))
    return {
        name: np.array([
            np.mean([run.started[job] - came(run, job) for job in map(by.__getitem__, calls)])
            for run, by in zip(some, known[name], strict=True)
        ])
        for name, some in runs.items()
    }  # fmt: skip


def predicted(packed: Path, phases: int = PHASES) -> list[tuple[float, float, float]]:
    """The change of the mean wait and its interval, of each question, as the command says it of one history."""
    texts: dict[str, str] = json.loads(lzma.decompress(packed.read_bytes()))
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
    return [(one["then_s"] - one["today_s"], one["low_s"], one["high_s"]) for one in answers]


def _dovetail(*words: str) -> str:
    command = [str(Path(sys.executable).parent / "dovetail"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{words}: {done.stderr[-2000:]}")
    return done.stdout
