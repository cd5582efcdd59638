"""Faults while a study is run into a store: after each, running it again must give what it would have given.

python -m tests.simulate.faults STUDY.toml POINT K    runs a study and kills itself at the K-th fsync or rename
"""

from __future__ import annotations

import errno
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from dovetail.errors import DovetailError, InputError
from dovetail.studies import store as stores
from dovetail.studies.runner import run_study
from dovetail.studies.store import Store
from tests.conftest import ROOT
from tests.simulate.checks import Trial, check
from tests.simulate.files import Grid, cells, completed, environment, grid_of, studied

SEALED: Final = find_spec("dovetail.io.sealed") is not None
"""Parquet files say themselves whether a bit of theirs has changed."""
POINTS: Final = ("fsync", "replace")
"""Functions of `os` at which a write fails: before its bytes are on disk, and before they have their name."""


@contextmanager
def at_call(point: str, number: int, act: Callable[[], None]) -> Iterator[None]:
    """Before the call of that number of a function of `os`, the file that it is about is cut off, as one may be whose
    bytes did not reach the disk; then something happens."""
    real, calls = getattr(os, point), [0]

    def counted(what: Any, *more: Any, **named: Any) -> Any:
        calls[0] += 1
        if calls[0] == number:
            file = Path(f"/proc/self/fd/{what}" if isinstance(what, int) else what).resolve()
            if file.is_file():
                os.truncate(file, file.stat().st_size // 2)
            act()
        return real(what, *more, **named)

    setattr(os, point, counted)
    try:
        yield
    finally:
        setattr(os, point, real)


def _no_space() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@check(studied, part=0.01)
def faulty(trial: Trial) -> Iterator[str]:
    """A write fails, a file is damaged, the clock steps: nothing half or wrong is left, and the next run completes."""
    rng = trial.rng("faulty")
    grid = grid_of(trial.case, rng)
    with tempfile.TemporaryDirectory() as one:
        path = grid.write(Path(one))
        fault = rng.choice((_write_fails, _write_fails, _damage, _damage, _clock_steps))
        yield from (f"{fault.__name__[1:]}: {said}" for said in fault(rng, path))
        yield from _whole(trial, grid, path)


@check(studied, part=0.0008)
def killed(trial: Trial) -> Iterator[str]:
    """A process that runs the study is killed, or two run it at once: the next run completes it."""
    rng = trial.rng("killed")
    grid = grid_of(trial.case, rng)
    with tempfile.TemporaryDirectory() as folder:
        path = grid.write(Path(folder))
        two = rng.random() < 0.4
        wanted = [["", "0"], ["", "0"]] if two else [[rng.choice(POINTS), str(rng.randint(1, 12))]]
        env = environment()
        command = [sys.executable, "-m", "tests.simulate.faults", str(path)]
        running = [
            subprocess.Popen([*command, *one], env=env, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            for one in wanted
        ]
        for one in running:
            _, said = one.communicate()
            if one.returncode not in (0, -signal.SIGKILL) or (two and one.returncode):
                yield f"a process that ran the study ended with {one.returncode}: {said.decode()[-300:]}"
        yield from _whole(trial, grid, path)


def _whole(trial: Trial, grid: Grid, path: Path) -> Iterator[str]:
    """Run again, the store has every cell as a replay of its own would have it, and nothing half written."""
    stores._read.cache_clear()
    store, tasks, errors = completed(path)
    yield from (f"run again, a cell failed: {error}" for error in errors)
    if not errors:
        yield from cells(trial, grid, store, tasks)


def _write_fails(rng: random.Random, path: Path) -> Iterator[str]:
    """The k-th write fails: it is told in one line, and nothing half written stays."""
    try:
        with at_call(rng.choice(POINTS), rng.randint(1, 15), _no_space):
            store, tasks, errors = completed(path)
        if not errors and store.names() != {task.name for task in tasks}:
            yield "a run is not there, and nobody said so"
    except DovetailError as wrong:
        errors = [str(wrong)]
    for error in errors:
        if "No space left" not in error or "\n" in error:
            yield f"told as {error!r}"
    left = [file.name for file in path.parent.rglob("*.new")]
    if left:
        yield f"half-written files stay: {left}"


def _damage(rng: random.Random, path: Path) -> Iterator[str]:
    """A file of the store is empty, cut off or has another bit: that is told, or what is read is the same."""
    store, tasks, _ = completed(path)
    store.frame()
    before = _content(store, [task.name for task in tasks])
    victim = rng.choice(sorted(file for file in store.path.rglob("*") if file.is_file()))
    data = bytearray(victim.read_bytes())
    how = rng.choice(("empty", "cut off", *(("flipped",) if SEALED and victim.suffix == ".parquet" else ())))
    if how == "flipped":
        at = rng.randrange(len(data))
        data[at] ^= 1 << rng.randrange(8)
    else:
        data = data[: 0 if how == "empty" else rng.randrange(len(data))]
    victim.write_bytes(data)
    stores._read.cache_clear()
    try:
        if _content(store, [task.name for task in tasks]) != before:
            yield f"{victim.relative_to(store.path).parts[0]} {how}: other numbers are read, without a word"
    except InputError as error:
        if "\n" in str(error) or victim.name not in str(error):
            yield f"{how}: told as {error!r}"
    if victim.name != "index.parquet":
        victim.unlink()  # as the message says


def _content(store: Store, names: list[str]) -> str:
    """All that can be read of a store, as text."""
    made = [store.schedule(name) for name in names]
    columns = ("start", "arrive", "promised_first", "promised_last", "said", "accepted")
    starts = [[getattr(one, column).tolist() for column in columns] for one in made if one is not None]
    return repr((starts, [one.workload.digest() for one in made if one], store.frame().rows(), store.study()))


def _clock_steps(rng: random.Random, path: Path) -> Iterator[str]:
    """The clock of the machine jumps by hours, forth and back, while the study is run."""
    real = time.time
    time.time = lambda: real() + rng.choice((-86400.0, 0.0, 700.0, 86400.0))
    try:
        _, _, errors = completed(path)
        yield from errors
    finally:
        time.time = real


def main() -> None:
    path, point, number = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    if point:
        with at_call(point, number, _die):
            completed(path)
    else:
        _, outcome = run_study(path, path.parent / "store", "local", 2, print)
        if outcome.failed:
            sys.exit(str(outcome.failed))


if __name__ == "__main__":
    main()
