"""The command `dovetail` run in this process: its output and exit code, without the second that a start takes.

Tests of what only a process shows (what is loaded, what a kill leaves behind) start one.
"""

from __future__ import annotations

import io
import os
import subprocess
import sys
import traceback
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from unittest.mock import patch

from dovetail.cli.main import main

COMMAND = Path(sys.executable).with_name("dovetail")
"""The same command for a process of its own."""


def run(
    *args: str | Path, env: Mapping[str, str] | None = None, merged: bool = False
) -> subprocess.CompletedProcess[str]:
    """What the command prints and how it ends; `merged`: all in one text, in the order in which a terminal shows it."""
    argv = ["dovetail", *map(str, args)]
    out = io.StringIO()
    err = out if merged else io.StringIO()
    with patch.object(sys, "argv", argv), patch.dict(os.environ, env or {}), redirect_stdout(out), redirect_stderr(err):
        code = _exit_code()
    return subprocess.CompletedProcess(argv, code, out.getvalue(), "" if merged else err.getvalue())


def _exit_code() -> int:
    """How the interpreter would end after `main`."""
    try:
        main()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return 1
    except Exception:
        traceback.print_exc()
        return 1
    return 0
