"""`dovetail warm`, and what a person sees while kernels are compiled."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.kernels.compile import CACHE
from tests.command import run

COMPILES = """
import sys
import numpy as np
from dovetail.cli.compiling import show_compiling
from dovetail.kernels import watch
from dovetail.kernels.machine.timeline import clear, new_profile
watch._SOON_S = 0.0
sys.argv += {words!r}
show_compiling()
clear(new_profile(4, 1), 0, np.ones(1, np.int64))
"""


@pytest.mark.slow
def test_what_is_there_is_not_compiled_again() -> None:
    """Other tests need the same kernels, so they are compiled at most once in all tests."""
    first = run("warm", "list:reserve=2", "--json", "--workers", "1")
    assert first.returncode == 0, first.stderr
    again = run("warm", "easy", "--json")
    rows = [json.loads(line) for line in again.stdout.splitlines()]
    assert {row["part"]: row["functions"] for row in rows[:-1]} == {"shared": 0, "list-nodes": 0, "list": 0}
    assert (rows[-1]["parts"], rows[-1]["folder"]) == (3, str(CACHE))
    told = run("warm", "easy")
    assert "list: there already" in told.stderr
    assert told.stdout.startswith(f"0 of 3 parts compiled, 3 were there already: {CACHE} (")


def test_a_policy_that_does_not_exist_is_named() -> None:
    done = run("warm", "eazy")
    assert done.returncode == 2
    assert "eazy" in done.stderr


def _at_terminal(cache: Path, *words: str) -> str:
    """What a terminal of 100 columns shows of standard error while one kernel is compiled."""
    ours, theirs = pty.openpty()
    env = os.environ | {"DOVETAIL_CACHE": str(cache), "TERM": "xterm", "COLUMNS": "100"}
    command = [sys.executable, "-c", COMPILES.format(words=list(words))]
    subprocess.run(command, env=env, stderr=theirs, check=True)
    os.close(theirs)
    found = b""
    while True:
        try:
            block = os.read(ours, 4096)
        except OSError:  # Linux says so at the end
            break
        if not block:
            break
        found += block
    os.close(ours)
    return found.decode()


@pytest.mark.slow
def test_a_terminal_shows_what_is_compiled_and_how_far(tmp_path: Path) -> None:
    shown = _at_terminal(tmp_path)
    assert shown.endswith("\x1b[2K")  # it leaves nothing behind
    plain = re.sub(r"\x1b\[\??\d*[A-Za-z]", "", shown)
    assert "compiling the kernel clear, only once: 2 functions, 0 s" in plain
    assert list(tmp_path.glob("*/timeline.clear-*.nbc"))
    for kernel in tmp_path.glob("*/*.nbc"):
        kernel.unlink()
    assert "only once: 2 of ~3, 0 s" in _at_terminal(tmp_path)  # as many as the last time
    for kernel in tmp_path.glob("*/*.nbc"):
        kernel.unlink()
    line = "Compiling the kernel clear, once on this machine. It may take a minute."
    assert _at_terminal(tmp_path, "--json").splitlines() == [line]
