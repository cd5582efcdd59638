"""Which tests a plain `pytest` runs, that only the process that was started starts workers, and which skips fail."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import COSTLY, QUICK, ROOT, pytest_cmdline_main, said_of, said_of_skips, unexpected, why

Source = pytest.Config.ArgsSource


def chosen(source: Source, *, worker: bool = False, **options: Any) -> Any:
    """The options after the hook, for a run with arguments from there."""
    option = SimpleNamespace(**{"markexpr": "", "numprocesses": None, "usepdb": False, "dist": "no", **options})
    config: Any = SimpleNamespace(option=option, args_source=source, stash={})
    if worker:
        config.workerinput = {}
    pytest_cmdline_main(config)
    return option


def test_a_plain_run_leaves_the_costly_out_and_uses_workers() -> None:
    option = chosen(Source.TESTPATHS)
    assert option.markexpr == QUICK
    assert option.numprocesses in (1, 2)
    assert all(f"not {kind}" in QUICK for kind in COSTLY)


def test_a_worker_leaves_the_same_out_and_starts_none() -> None:
    """Workers get the arguments of the command, not its options: else each would start two more, without end."""
    option = chosen(Source.TESTPATHS, worker=True)
    assert (option.markexpr, option.numprocesses, option.dist) == (QUICK, None, "no")


def test_what_is_named_is_run() -> None:
    assert chosen(Source.ARGS).markexpr == ""
    assert chosen(Source.TESTPATHS, markexpr="docs").markexpr == "docs"
    assert chosen(Source.TESTPATHS, numprocesses=0).numprocesses == 0
    assert chosen(Source.TESTPATHS, usepdb=True).numprocesses is None


def test_what_was_left_out_is_said() -> None:
    assert "Left out: 3 contract, 1 slow." in said_of([("slow", 1), ("contract", 3)])


def test_a_skip_is_expected_for_a_reason_that_is_listed_and_only_where_it_may_lack() -> None:
    skipped = {"a": why("traces"), "b": why("traces"), "c": why("slurm"), "d": "traces: no time", "e": "xfail: later"}
    assert set(unexpected(skipped, all_here=False, lacks=())) == {"d", "e"}
    assert set(unexpected(skipped, all_here=True, lacks=("traces",))) == {"c", "d", "e"}
    assert [*said_of_skips({"a": why("traces"), "b": why("traces")}, False, ())] == [
        "2 tests left out: no traces (set DOVETAIL_TRACES)"
    ]
    assert [*said_of_skips({}, True, ())] == ["0 tests left out"]
    assert [*said_of_skips({}, False, ())] == []
    *_, last = said_of_skips({"a": why("slurm")}, True, ())
    assert last.startswith("UNEXPECTED SKIP a: slurm: no script that starts a Slurm")


MADE = {
    "listed": """
import pytest
from tests.conftest import needs, why
@needs("traces", False)
@pytest.mark.parametrize("n", range(3))
def test_marked(n): pass
def test_on_the_way(): pytest.skip(why("slurm"))
def test_runs(): pass
""",
    "whole_file": """
import pytest
from tests.conftest import why
pytest.skip(why("browser"), allow_module_level=True)
""",
    "unknown": """
import pytest
def test_imports(): pytest.importorskip("no_such_module")
@pytest.mark.xfail(reason="one day")
def test_fails(): assert False
@pytest.mark.xfail(reason="long done")
def test_passes(): pass
@pytest.mark.parametrize("n", [])
def test_nothing(n): pass
""",
    "runs": "def test_runs(): pass\n",
    "unknown_file": "import pytest\npytest.importorskip('no_such_module')\n",
}


def run_of(folder: Path, files: Collection[str], workers: int, **environment: str) -> tuple[int, list[str]]:
    """A run of its own, with our hooks: its exit code, and what it says of tests left out."""
    for name in files:
        (folder / f"test_{name}.py").write_text(MADE[name])
    (folder / "pytest.ini").write_text("[pytest]\n")
    clean = {k: v for k, v in os.environ.items() if k not in ("CI", "DOVETAIL_ALL", "DOVETAIL_LACKS")}
    clean = {k: v for k, v in clean.items() if not k.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.conftest", "-p", "no:cacheprovider", f"-n{workers}"]
    environment = {**clean, "PYTHONPATH": str(ROOT), **environment}
    done = subprocess.run([*command, "."], cwd=folder, env=environment, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if " left out" in line or line.startswith("UNEXPECTED")]
    return done.returncode, [line.partition(": could not")[0].partition(" (")[0] for line in lines]


@pytest.mark.slow
def test_workers_tell_of_tests_and_files_that_are_left_out(tmp_path: Path) -> None:
    assert run_of(tmp_path, ("listed", "whole_file"), 2) == (
        0,
        [
            "1 test left out: no Chromium on this machine",
            "1 test left out: no script that starts a Slurm",
            "3 tests left out: no traces",
        ],
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_all_that_may_not_be_left_out_is_found(workers: int, tmp_path: Path) -> None:
    code, lines = run_of(tmp_path, MADE, workers, DOVETAIL_ALL="1", DOVETAIL_LACKS="slurm")
    assert code == 1
    assert [line.removeprefix("UNEXPECTED SKIP ") for line in lines if line.startswith("UNEXPECTED")] == [
        *(f"test_listed.py::test_marked[{n}]: traces: no traces" for n in range(3)),
        "test_unknown.py::test_fails: xfail: one day",
        "test_unknown.py::test_imports",
        "test_unknown.py::test_nothing[NOTSET]: got empty parameter set for",
        "test_unknown.py::test_passes: xfail: long done",
        "test_unknown_file.py",
        "test_whole_file.py: browser: no Chromium on this machine",
    ]
    assert "1 test left out: no script that starts a Slurm" in lines


@pytest.mark.slow
def test_a_run_that_leaves_out_nothing_may_say_so(tmp_path: Path) -> None:
    assert run_of(tmp_path, ("runs",), 0, CI="true") == (0, ["0 tests left out"])


GROUPED = """
import os
from pathlib import Path
import pytest
@pytest.mark.xdist_group("one")
@pytest.mark.parametrize("n", range(6))
def test_together(n): Path(f"{n}.txt").write_text(os.environ["PYTEST_XDIST_WORKER"])
"""


@pytest.mark.slow
def test_a_group_stays_on_one_worker(tmp_path: Path) -> None:
    """Not two real Slurms side by side: a pytest that pytest-xdist does not know keeps no groups, in silence."""
    (tmp_path / "test_grouped.py").write_text(GROUPED)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    clean = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-n2", "--dist", "loadgroup", "."]
    subprocess.run(command, cwd=tmp_path, env=clean, check=True, capture_output=True)
    workers = [path.read_text() for path in tmp_path.glob("*.txt")]
    assert len(workers) == 6
    assert len(set(workers)) == 1
