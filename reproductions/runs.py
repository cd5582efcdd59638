"""runs.csv: what was run, one line each, with the metrics that a page needs; figure.csv: its curves, point by point."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from io import StringIO
from math import isfinite, nan
from pathlib import Path
from typing import Any, Final

from dovetail.files import beside
from dovetail.studies.task import Cell
from reproductions.folders import Folder
from reproductions.values import read_lines

CELL: Final = ("trace", "scenario", "span", "policy", "estimate", "seed")
FACTS: Final = ("cpu_s", "code", "version")
POINT: Final = ("cell", "curve", "x", "y")

Points = Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Run:
    """One line of runs.csv, with its curves."""

    cell: Cell
    numbers: Mapping[str, float]
    """nan where there is nothing to measure."""
    cpu_s: float
    code: str
    """Hash of the code that made it."""
    version: str
    curves: Mapping[str, Points] = field(default_factory=dict)


class Runs:
    """The runs that are there."""

    def __init__(self, runs: Iterable[Run]) -> None:
        self._runs = {run.cell: run for run in runs}

    def __iter__(self) -> Iterator[Run]:
        return iter(self._runs.values())

    def __len__(self) -> int:
        return len(self._runs)

    def get(
        self, trace: str, policy: str, estimate: str = "limit", *, scenario: str = "", span: str = "all", seed: int = 0
    ) -> Run | None:
        """A run; None if it is not there."""
        return self._runs.get(Cell(trace, scenario, span, policy, estimate, seed))

    def number(self, metric: str, trace: str, policy: str, estimate: str = "limit", **more: Any) -> float | None:
        """A metric of a run; None if the run is not there."""
        run = self.get(trace, policy, estimate, **more)
        return None if run is None else run.numbers[metric]

    @property
    def versions(self) -> list[str]:
        return sorted({run.version for run in self})


def code_of(cell: Cell) -> str:
    """A cell as one text."""
    return "|".join(str(getattr(cell, key)) for key in CELL)


def read_runs(folder: Folder) -> Runs:
    """The runs of a folder."""
    curves: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for line in read_lines(folder.path / "figure.csv", POINT):
        curves.setdefault(line["cell"], {}).setdefault(line["curve"], []).append((float(line["x"]), float(line["y"])))
    columns = (*CELL, *folder.about.metrics, *FACTS)
    found = []
    for line in read_lines(folder.path / "runs.csv", columns):
        cell = Cell(**{key: line[key] for key in CELL[:-1]}, seed=int(line["seed"]))
        numbers = {key: float(line[key]) if line[key] else nan for key in folder.about.metrics}
        facts = (float(line["cpu_s"]), line["code"], line["version"])
        found.append(Run(cell, numbers, *facts, curves.get(code_of(cell), {})))
    return Runs(found)


def write_runs(folder: Folder, runs: Iterable[Run]) -> None:
    """Write runs.csv, and figure.csv if there are curves, sorted: the same runs give the same bytes."""
    ordered = sorted(runs, key=lambda run: tuple(getattr(run.cell, key) for key in CELL))
    rows = [
        [
            *(getattr(run.cell, key) for key in CELL),
            *(shortest(run.numbers.get(key, nan)) for key in folder.about.metrics),
            shortest(round(run.cpu_s, 6)), run.code, run.version,
        ]
        for run in ordered
    ]  # fmt: skip
    _write(folder.path / "runs.csv", (*CELL, *folder.about.metrics, *FACTS), rows)
    points = [
        [code_of(run.cell), name, shortest(x), shortest(y)]
        for run in ordered
        for name in folder.about.curves
        for x, y in run.curves.get(name, ())
    ]
    if folder.about.curves:
        _write(folder.path / "figure.csv", POINT, points)


def shortest(number: float) -> str:
    """A number as the shortest text that is read back as it; empty for one that is none."""
    if not isfinite(number):
        return "" if number != number else repr(number)
    return f"{number:.0f}" if float(number).is_integer() and abs(number) < 1e15 else repr(float(number))


def _write(path: Path, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    text = StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(columns)
    lines.writerows(rows)
    with beside(path) as new:
        new.write_text(text.getvalue(), encoding="utf-8")
