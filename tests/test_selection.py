"""Which tests a plain `pytest` runs, and that only the process that was started starts workers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from tests.conftest import COSTLY, QUICK, pytest_cmdline_main, said_of

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
