"""Where tests find real traces, what each kind of test costs, which run by default, and why one may be left out."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
TRACES = Path(os.environ.get("DOVETAIL_TRACES", ROOT.parent / "shared" / "traces"))
CASES = int(os.environ.get("DOVETAIL_CASES", "100"))
"""How many random cases a test of the contract runs, or a part of it for the slowest; CI runs 500."""

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

WHY = {
    "browser": "no Chromium on this machine (install the package chromium)",
    "cc": "no C compiler (install the packages gcc and libc6-dev)",
    "cpoptimizer": "no program cpoptimizer in the PATH (it comes with the wheel cplex)",
    "mkdocs": "no mkdocs (install the group docs)",
    "slurm": "no script that starts a Slurm (set DOVETAIL_SLURM_CLUSTER), or not root",
    "traces": "no traces (set DOVETAIL_TRACES)",
}
"""Why a test may be skipped: what it needs, and what to do. A skip for any other reason fails the run, and so does an
expected failure (xfail)."""
ALL_HERE = bool(os.environ.get("DOVETAIL_ALL") or os.environ.get("CI"))
"""Everything in WHY must be there: any skip fails the run. `.ci/run` says so."""
LACKS = frozenset(os.environ.get("DOVETAIL_LACKS", "").split())
"""But for these: `DOVETAIL_LACKS="slurm browser" .ci/run` where a machine cannot have them."""
COSTLY_KINDS = "kinds"
"""The property of a test that goes with its report, whatever process ran it."""
SPENT: dict[str, float] = {}
"""Seconds of the tests of each kind."""
SKIPPED: dict[str, str] = {}
"""Reasons of this run, by test or by file."""


def why(kind: str) -> str:
    """The reason of a skip, for `pytest.skip` and `pytest.importorskip`."""
    return f"{kind}: {WHY[kind]}"


def needs(kind: str, there: bool) -> pytest.MarkDecorator:
    """For tests that need more than Python: they are of that kind, and skipped with a reason where it is missing."""
    return pytest.mark.skipif(not there, reason=why(kind))


needs_traces = needs("traces", (TRACES / "papers").is_dir())


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
        found = kinds(item)
        for kind in found:
            item.add_marker(kind)
        if "slurm" in found:  # not two clusters side by side: each takes a core
            item.add_marker(pytest.mark.xdist_group("slurm"))
        item.user_properties.append((COSTLY_KINDS, sorted(found)))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        left_out: Counter[str] = item.config.stash[LEFT_OUT]
        left_out.update(kinds(item))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Of tests of this process and of all workers."""
    for kind in dict(report.user_properties).get(COSTLY_KINDS, ()):  # type: ignore[attr-defined]
        SPENT[kind] = SPENT.get(kind, 0.0) + report.duration
    if hasattr(report, "wasxfail"):
        SKIPPED[report.nodeid] = f"xfail: {report.wasxfail}"
    elif report.skipped:
        SKIPPED[report.nodeid] = _reason(report)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Of files that are skipped as a whole, likewise."""
    if report.skipped:
        SKIPPED[report.nodeid] = _reason(report)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    found = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return found.removeprefix("Skipped: ")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """A worker hands what it left out to the process that reports. All workers leave out the same. A skip that was not
    expected fails the run."""
    if hasattr(session.config, "workeroutput"):
        left_out: Counter[str] = session.config.stash[LEFT_OUT]
        session.config.workeroutput["left_out"] = dict(left_out)
    elif unexpected(SKIPPED) and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    node.config.stash[LEFT_OUT] = Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    for line in said_of_skips(SKIPPED):
        terminalreporter.write_line(line)
    if SPENT:
        times = ", ".join(f"{kind} {seconds / 60:.1f}" for kind, seconds in sorted(SPENT.items()))
        terminalreporter.write_line(f"Minutes by kind: {times}")
    if config.option.markexpr == QUICK:
        terminalreporter.write_line(said_of(config.stash[LEFT_OUT].items()))


def unexpected(skipped: Mapping[str, str], all_here: bool = ALL_HERE, lacks: Collection[str] = LACKS) -> dict[str, str]:
    """The skips that fail a run: for no reason of WHY, or for one where everything must be there."""
    allowed = {why(kind) for kind in WHY if not all_here or kind in lacks}
    return {test: reason for test, reason in skipped.items() if reason not in allowed}


def said_of_skips(
    skipped: Mapping[str, str], all_here: bool = ALL_HERE, lacks: Collection[str] = LACKS
) -> Iterator[str]:
    """How many tests were left out and why; then each that should not have been."""
    listed = {why(kind): text for kind, text in WHY.items()}
    for reason, count in sorted(Counter(skipped.values()).items()):
        yield f"{count} test{'s' * (count > 1)} left out: {listed.get(reason, reason)}"
    if all_here and not skipped:
        yield "0 tests left out"
    for test, reason in sorted(unexpected(skipped, all_here, lacks).items()):
        rule = "DOVETAIL_ALL or CI says that it is there" if reason in listed else "no reason of tests/conftest.py"
        yield f"UNEXPECTED SKIP {test}: {reason} ({rule})"


def said_of(left_out: Iterable[tuple[str, int]]) -> str:
    """What a quick run did not try, and how to try it."""
    counts = ", ".join(f"{count} {kind}" for kind, count in sorted(left_out))
    return f"Quick tests only. Left out: {counts}. All: pytest tests; one kind: pytest -m docs"
