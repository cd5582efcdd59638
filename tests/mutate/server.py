"""A plugin of pytest that collects tests once and then forks for each piece of work: no import is paid twice.

Work is a file of JSON: mutants, each to be tried against tests, in turn, until one fails; without any, it is measured
what each test calls and how long it takes. In a fork a function is mutated by giving it other code: kernels too, as
they run uncompiled.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import CodeType, FrameType, FunctionType
from typing import Any

import pytest

from tests.mutate.points import mutated

WORK = json.loads(Path(os.environ["MUTATE_WORK"]).read_text(encoding="utf-8"))
SOURCE = Path(WORK["source"])
MOST_WALL = 60
"""A fork that takes this many times its CPU limit waits for something that will not come: it is ended."""


def pytest_runtestloop(session: pytest.Session) -> bool:
    items = {item.nodeid: item for item in session.items}
    functions = _functions()
    with Path(WORK["out"]).open("a", encoding="utf-8") as out:
        known = set(WORK.get("known", ()))
        for task in WORK["tasks"] or [{"test": name} for name in items if name not in known]:
            began = time.monotonic()
            work, most_s = _work(task, items, functions)
            answer = _forked(work, most_s)
            out.write(json.dumps({**task, "tests": [], **answer, "wall_s": round(time.monotonic() - began, 3)}) + "\n")
            out.flush()
    return True


def _work(
    task: dict[str, Any], items: dict[str, pytest.Item], functions: dict[str, list[FunctionType]]
) -> tuple[Callable[[], dict[str, Any]], float]:
    """What a fork is to do, and how many seconds it has."""
    if "test" in task:
        return partial(_measured, items[task["test"]]), WORK["most_s"]
    if any(name not in items for name in task["tests"]):  # a file of tests cannot even be imported any more
        return partial(dict, result="killed", by="import"), task["most_s"]
    chosen = [items[name] for name in task["tests"]] or list(items.values())
    return partial(_tried, task, chosen, functions), task["most_s"]


def _functions() -> dict[str, list[FunctionType]]:
    """All functions of the package that there are, by their file."""
    found: dict[str, list[FunctionType]] = {}
    for one in gc.get_objects():
        if isinstance(one, FunctionType) and one.__code__.co_filename.startswith(str(SOURCE)):
            found.setdefault(str(Path(one.__code__.co_filename).relative_to(SOURCE)), []).append(one)
    return found


def _forked(work: Callable[[], dict[str, Any]], most_s: float) -> dict[str, Any]:
    """What a fork answers; it may take so many seconds of CPU."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        _in_fork(work, write, most_s)
    os.close(write)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.alarm(int(MOST_WALL * most_s) + 60)
    with os.fdopen(read, "rb") as stream:
        answer = stream.read()
    left = signal.alarm(0)
    _, status, used = os.wait4(child, 0)
    ended = "crash" if not os.WIFSIGNALED(status) else "timeout" if left else "stuck"
    found = json.loads(answer) if answer else {"result": ended}
    return {**found, "cpu_s": round(used.ru_utime + used.ru_stime, 3)}


def _in_fork(work: Callable[[], dict[str, Any]], write: int, most_s: float) -> None:
    os.setpgid(0, 0)
    null = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(null, stream)
    limit = int(most_s * 1.5) + 2
    resource.setrlimit(resource.RLIMIT_CPU, (limit, limit))
    resource.setrlimit(resource.RLIMIT_DATA, (6 << 30, 6 << 30))
    folder = tempfile.mkdtemp()
    tempfile.tempdir = folder
    os.environ["TMPDIR"] = folder

    def late(*_: object) -> None:
        os.write(write, json.dumps({"result": "timeout", "calls": _called()}).encode())
        os._exit(0)

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, most_s)
    try:
        answer = json.dumps(work())
    except BaseException as error:
        answer = json.dumps({"result": "error", "why": repr(error)})
    signal.setitimer(signal.ITIMER_PROF, 0)
    shutil.rmtree(folder, ignore_errors=True)
    with os.fdopen(write, "w") as pipe:
        pipe.write(answer)
    os._exit(0)


_CODES: set[CodeType] = set()


def _called() -> dict[str, list[int]]:
    """The first lines of the functions that were called, by file."""
    found: dict[str, list[int]] = {}
    for code in _CODES:
        if code.co_filename.startswith(str(SOURCE)):
            found.setdefault(str(Path(code.co_filename).relative_to(SOURCE)), []).append(code.co_firstlineno)
    return found


def _run(item: pytest.Item) -> str:
    """Run one test; the first thing that went wrong, '' if nothing did."""
    reports = list[pytest.TestReport]()
    item.config.pluginmanager.register(_Listener(reports))
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=None)
    wrong = [str(report.longrepr) for report in reports if report.failed]
    return (wrong[0].strip().splitlines() or ["failed"])[-1][:200] if wrong else ""


class _Listener:
    def __init__(self, reports: list[pytest.TestReport]) -> None:
        self.reports = reports

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(report)


def _measured(item: pytest.Item) -> dict[str, Any]:
    def seen(frame: FrameType, event: str, arg: object) -> None:
        _CODES.add(frame.f_code)

    began = time.process_time()
    sys.settrace(seen)
    wrong = _run(item)
    sys.settrace(None)
    return {
        "result": "fails" if wrong else "passes",
        "why": wrong,
        "s": time.process_time() - began,
        "calls": _called(),
    }


def _tried(task: dict[str, Any], items: list[pytest.Item], functions: dict[str, list[FunctionType]]) -> dict[str, Any]:
    """Mutate, then run tests until one fails."""
    if task["number"] >= 0:
        _mutate(task, functions.get(task["file"], []))
    for item in items:
        if wrong := _run(item):
            return {"result": "killed", "by": item.nodeid, "why": wrong}
    return {"result": "survived", "ran": len(items)}


def _mutate(task: dict[str, Any], functions: list[FunctionType]) -> None:
    """Give the functions that hold the mutant their new code."""
    path = SOURCE / task["file"]
    tree = mutated(path.read_text(encoding="utf-8"), task["number"])
    new: dict[tuple[str, int], CodeType] = {}
    _gather(compile(tree, str(path), "exec"), new)
    changed = 0
    for function in functions:
        code = function.__code__
        if task["first"] <= code.co_firstlineno <= task["last"]:
            function.__code__ = new[code.co_qualname, code.co_firstlineno]
            changed += 1
    if not changed:
        raise LookupError("nothing to mutate")


def _gather(code: CodeType, found: dict[tuple[str, int], CodeType]) -> None:
    found[code.co_qualname, code.co_firstlineno] = code
    for one in code.co_consts:
        if isinstance(one, CodeType):
            _gather(one, found)
