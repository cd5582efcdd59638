"""Where tests find real traces, what each kind of test costs, and which run by default."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
TRACES = Path(os.environ.get("DOVETAIL_TRACES", ROOT.parent / "shared" / "traces"))
CASES = int(os.environ.get("DOVETAIL_CASES", "100"))
"""How many random cases a test of the contract runs; CI runs 1,000."""

COSTLY = ("browser", "contract", "docs", "papers", "slow", "slurm", "traces")
"""Kinds of test that a plain `pytest` leaves out; pyproject.toml says what they are."""
PATHS = {
    "contract": "tests/contract/",
    "docs": "tests/docs/test_docs.py::test_blocks_run",
    "papers": "tests/reproductions/",
}
"""Kinds that are told by where a test stands."""
QUICK = " and ".join(f"not {kind}" for kind in COSTLY)
LEFT_OUT = pytest.StashKey[Counter[str]]()


def needs(kind: str, there: bool, otherwise: str) -> pytest.MarkDecorator:
    """For tests that need more than Python: they are of that kind, and skipped with a reason where it is missing."""
    return pytest.mark.skipif(not there, reason=f"{kind}: {otherwise}")


needs_traces = needs(
    "traces",
    (TRACES / "papers").is_dir(),
    f"real traces are not at {TRACES}: set DOVETAIL_TRACES to the folder that holds them",
)


def kinds(item: pytest.Item) -> set[str]:
    """The costly kinds that a test belongs to; none for a quick one."""
    needed = {mark.kwargs.get("reason", "").partition(":")[0] for mark in item.iter_markers("skipif")}
    here = {kind for kind, path in PATHS.items() if item.nodeid.startswith(path)}
    return {kind for kind in COSTLY if kind in needed | here or item.get_closest_marker(kind)}


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Plain `pytest` runs the quick tests on the cores there are; whoever names paths or marks gets just these."""
    config.stash[LEFT_OUT] = Counter()
    if config.args_source is pytest.Config.ArgsSource.ARGS or config.option.markexpr:
        return
    config.option.markexpr = QUICK
    if hasattr(config, "workerinput"):  # a worker decides the same from the same arguments, but starts no workers
        return
    if getattr(config.option, "numprocesses", 0) is None and not config.option.usepdb:
        config.option.numprocesses = min(2, os.cpu_count() or 1)
        config.option.dist = "loadgroup"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark by cost, before pytest selects by marks."""
    for item in items:
        for kind in kinds(item):
            item.add_marker(kind)


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        left_out: Counter[str] = item.config.stash[LEFT_OUT]
        left_out.update(kinds(item))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands what it left out to the process that reports. All workers leave out the same."""
    if hasattr(session.config, "workeroutput"):
        left_out: Counter[str] = session.config.stash[LEFT_OUT]
        session.config.workeroutput["left_out"] = dict(left_out)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    if config.option.markexpr == QUICK:
        terminalreporter.write_line(said_of(config.stash[LEFT_OUT].items()))


def said_of(left_out: Iterable[tuple[str, int]]) -> str:
    """What a quick run did not try, and how to try it."""
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(left_out))
    return f"Quick tests only. Left out: {counts}. All: pytest tests; one kind: pytest -m docs"
