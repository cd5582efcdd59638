"""What `python -m tests.faults` tries: a sample of it, and that it knows every command there is."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

from tests.cli.test_main import verbs
from tests.conftest import ROOT, needs
from tests.faults.commands import COMMANDS


def test_every_command_is_tried() -> None:
    tried = {verb for verb in verbs() for one in COMMANDS if one.line.split()[: len(verb)] == list(verb)}
    assert tried == set(verbs())


@pytest.mark.slow
@needs("cc", shutil.which("cc") is not None)
def test_a_sample() -> None:
    """Polars writes CSV from native code: the disk is full at each of its writes, then it is killed at each."""
    words = ["--only", "workload convert log.swf.gz out.csv", "--how", "full", "--how", "kill"]
    done = subprocess.run([sys.executable, "-m", "tests.faults", *words], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    count, cases = done.stdout.splitlines()[-1].split(", ")[:2]
    assert count == "1 commands"
    assert int(cases.split()[0]) >= 24
    assert done.stdout.endswith(" 0 wrong\n")
