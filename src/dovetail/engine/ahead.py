"""Kernels compiled before they are asked for: into the cache of this machine, or into the package for all who use it.

They come in parts, one for each kind of rule on processors and on nodes. Each is compiled by a process of its own, so
that cores share the work and what comes out does not depend on what was compiled before.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, Final, NamedTuple

import numba
import numpy as np

from dovetail.engine.compiled import new_replay, read_only
from dovetail.engine.replay import one_job, replay
from dovetail.errors import DovetailError, SettingError
from dovetail.io.swf import read_swf_stream
from dovetail.kernels.compile import CACHE, MADE_WITH, WATCH
from dovetail.kernels.kept import lost, own, used, write
from dovetail.kernels.learners.learner import new_learner, observe, outlived, predicted
from dovetail.kernels.shipped import FOLDER, GENERIC, MANIFEST, read_manifest
from dovetail.kernels.watch import functions_in
from dovetail.policies.registry import named, policy
from dovetail.process import cores

SHARED: Final = "shared"
"""The part that all others need, so it comes first: reading logs, learning from jobs that ended."""
UNNAMED: Final = ("easy:relax=0.5",)
"""Policies of a kind that no name alone has."""


class Made(NamedTuple):
    """A part that is there now."""

    part: str
    functions: int
    """How many were compiled for it; 0: all were there."""
    cpu_s: float
    files: tuple[str, ...]
    folder: Path
    """Where those files are."""


def parts(policies: Sequence[str] = ()) -> dict[str, tuple[str, bool]]:
    """What there is to compile, for some policies or for all: by name, a policy that needs it and whether on nodes."""
    found: dict[str, tuple[str, bool]] = {SHARED: ("", False)}
    for name in policies or (*named(), *UNNAMED):
        one = policy(name)
        if not one.compiled:
            continue
        rule = type(one.to_compile().rule()).__name__.removesuffix("Rule").lower()
        if not one.needs_nodes:
            found.setdefault(rule, (name, False))
        try:
            one.refuse("nodes")
        except SettingError:
            continue
        found.setdefault(f"{rule}-nodes", (name, True))
    return found


def compile_parts(
    wanted: Mapping[str, tuple[str, bool]], workers: int, more: Mapping[str, str] | None = None
) -> Iterator[Made]:
    """Compile parts, each as it comes to its end. `more`: what the environment has beside."""
    environment = {**os.environ, "PYTHONHASHSEED": "0", **(more or {})}
    rest = sorted(wanted.keys() - {SHARED}, key=lambda part: (not wanted[part][1], part))  # the longest first
    if SHARED in wanted:
        yield _in_process(SHARED, *wanted[SHARED], environment)
    with ThreadPoolExecutor(workers) as pool:
        yield from (
            one.result()
            for one in as_completed([pool.submit(_in_process, part, *wanted[part], environment) for part in rest])
        )


def _in_process(part: str, name: str, nodes: bool, environment: Mapping[str, str]) -> Made:
    command = [sys.executable, "-P", "-m", "dovetail.engine.ahead", "part", part, name, "nodes" * nodes]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)  # noqa: S603 - ourselves, no shell
    if done.returncode:
        why = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise DovetailError(f"kernels of part {part} could not be made: {why[-1]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return Made(part, found["functions"], found["cpu_s"], tuple(found["files"]), Path(found["folder"]))


def missing(wanted: Mapping[str, tuple[str, bool]], folder: Path = FOLDER) -> dict[str, tuple[str, bool]]:
    """Those parts that are not in a folder of shipped kernels, whole and for what is here."""
    there = read_manifest(MADE_WITH, folder, asked=())
    good = {name for name in there.files if there.read(name) is not None}
    return {part: how for part, how in wanted.items() if not good.issuperset(there.parts.get(part, [""]))}


def ship(
    wanted: Mapping[str, tuple[str, bool]], workers: int, tell: Callable[[Made], None], folder: Path = FOLDER
) -> None:
    """Put parts, compiled for any processor of this platform, into a folder from which they are loaded; what it has
    for what is here stays. Same sources and versions, empty cache: same bytes."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise DovetailError("NUMBA_DISABLE_JIT is set: nothing is compiled, so there is nothing to ship")
    there = read_manifest(MADE_WITH, folder, asked=())
    files, known, functions = dict(there.files), dict(there.parts), dict(there.functions)
    if there.trouble:
        files, known, functions = {}, {}, {}
    for made in compile_parts(missing(wanted, folder), workers, GENERIC):
        for name in made.files:
            data = own(made.folder / name)
            if data is None:
                raise DovetailError(f"{made.folder / name}: not whole, or another user can write there")
            files[name] = hashlib.sha256(data).hexdigest()
            write(folder / name, data)
        known[made.part] = sorted(made.files)
        functions |= functions_in(made.folder)
        tell(made)
    found = {"made": MADE_WITH, "parts": known, "functions": functions, "files": files}
    write(folder / MANIFEST, json.dumps(found, indent=1, sort_keys=True).encode())
    for path in folder.iterdir():
        if path.suffix == ".nbc" and path.name not in files:
            path.unlink()


def compile_here(part: str, name: str, nodes: bool) -> None:
    """A part, by this process: run whole and event by event."""
    if part != SHARED:
        workload, cluster = one_job(nodes)
        for one_by_one in (False, True):
            replay(workload, policy(name).to_compile(), cluster=cluster, event_by_event=one_by_one)
        return
    read_swf_stream(io.BytesIO(b"1 0 0 1 1 -1 -1 1 1 -1 1 1 1 -1 -1 -1 -1 -1\n"), "warm-up", "warm-up")
    one = np.ones(1, np.int64)
    learner = new_learner(one)
    observe(learner, 0, 1)
    for runtime in (one, read_only(one)):  # within a replay, and from Python
        predicted(learner, runtime, 0)
        outlived(learner, runtime, 0, 1)
    for on_nodes in (False, True):
        workload, cluster = one_job(on_nodes)
        new_replay(workload, cluster, policy("easy").rule(), one).cap.larger()


def _main(task: str, *words: str) -> None:
    """`part NAME POLICY [nodes]` compiles one part in this process; `ship FOLDER [POLICY ...]` fills a folder."""
    if task == "ship":
        folder, *policies = words
        ship(parts(policies), cores(), lambda one: print(f"kernels: {one.part}"), Path(folder))
        return
    part, name, nodes = words
    compile_here(part, name, bool(nodes))
    if lost:
        sys.exit(lost[0])
    made = {"functions": WATCH.compiled, "cpu_s": round(time.process_time(), 1), "files": [*used], "folder": str(CACHE)}
    print(json.dumps(made))


if __name__ == "__main__":
    _main(*sys.argv[1:])
