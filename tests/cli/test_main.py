"""The door of the command: what cannot be is one line, at once, and nothing that is asked speaks to the terminal."""

from __future__ import annotations

import json
import os
import subprocess
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from dovetail.cli.main import app
from tests.command import COMMAND, run
from tests.conftest import ROOT

JOBS = ROOT / "examples" / "six-jobs.swf"


def verbs(command: Any = None, words: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """All commands there are."""
    command = command or typer.main.get_command(app)
    if hasattr(command, "commands"):
        for name, inner in command.commands.items():
            yield from verbs(inner, (*words, name))
    else:
        yield words


BAD = "\x1b[31mred\x9b1m\x07"


@pytest.mark.slow
def test_no_control_character_of_an_argument_gets_through(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever quotes it: our own messages, those of the parser, of libraries."""
    monkeypatch.chdir(tmp_path)
    every = list(verbs())
    assert len(every) > 15
    for verb in every:
        for words in ((BAD, BAD), (f"--{BAD}",), (str(JOBS), f"--policy=list:order={BAD}", f"--seed={BAD}")):
            done = run(*verb, *words)
            assert done.returncode == 2
            printed = done.stdout + done.stderr
            assert not [one for one in printed if unicodedata.category(one) == "Cc" and one != "\n"]
            assert "Traceback" not in printed


def test_a_file_of_such_a_name_can_be_read_and_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = run("workload", "convert", JOBS, f"{BAD}.swf")
    assert (done.returncode, done.stderr) == (
        0,
        "wrote \N{REPLACEMENT CHARACTER}[31mred\N{REPLACEMENT CHARACTER}1m"
        "\N{REPLACEMENT CHARACTER}.swf: 6 jobs; 0 set aside\n",
    )
    done = run("replay", f"{BAD}.swf", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert BAD in json.loads(done.stdout)["trace"]


@pytest.mark.slow
def test_output_on_a_full_disk_is_one_line() -> None:
    for words in (["policies"], ["--version"]):
        with Path("/dev/full").open("w") as full:
            done = subprocess.run([COMMAND, *words], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 2
        assert done.stderr == "dovetail: standard output cannot be written: No space left on device\n"


@pytest.mark.slow
def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for words in (["--version"], ["policies"]):
        done = subprocess.run([COMMAND, *words], stdout=writer, stderr=subprocess.PIPE, text=True)
        assert (done.returncode, done.stderr) == (1, "")
    os.close(writer)


OWN = """
import sys
import dovetail as dt

class Ends:
    def decide(self, state):
        sys.exit(0)

class Made:
    def __init__(self):
        sys.exit()

class Guess(dt.Predictor):
    def estimate(self, job):
        sys.exit(0)
    def observe(self, job, runtime_s):
        pass

class Fails(Guess):
    def estimate(self, job):
        return {}["nothing"]

class Order:
    pass

def order(state):
    sys.exit("done")
"""


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--policy", "own.py:Ends"), "Ends.decide raised SystemExit: 0 (own.py, line 7)"),
        (("--policy", "own.py:Made"), "own.py: Made() failed: SystemExit: "),
        (("--policy", "ended.py:Ends"), "ended.py: could not be loaded: SystemExit: 0"),
        (("--estimate", "own.py:Guess"), "Guess.estimate raised SystemExit: 0 (own.py, line 15)"),
        (("--estimate", "own.py:Fails"), "Fails.estimate raised KeyError: 'nothing' (own.py, line 21)"),
        (("--policy", "list:order=own.py:order"), "list:order=own.py:order: its order raised SystemExit: done"),
        (("--policy", "list:order=own.py:Order"), "own.py: Order is not a function: an order is one of the state"),
    ],
)
def test_a_users_code_that_ends_the_process_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], told: str
) -> None:
    """Else nothing is printed, and the exit code says that all is well."""
    monkeypatch.chdir(tmp_path)
    Path("own.py").write_text(OWN)
    Path("ended.py").write_text("import sys\nsys.exit(0)\n")
    done = run("replay", JOBS, *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith(f"dovetail: {told}")


def test_a_policy_that_ends_the_process_breaks_the_contract(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(OWN)
    done = run("check", f"{tmp_path}/own.py:Ends", "--cases", "1")
    assert done.returncode == 1
    assert "Ends.decide raised SystemExit: 0" in done.stdout


def test_ctrl_c_in_a_users_code_is_ctrl_c(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("class Stops:\n    def decide(self, state):\n        raise KeyboardInterrupt\n")
    done = run("replay", JOBS, "--policy", f"{tmp_path}/own.py:Stops")
    assert done.returncode not in (0, 2)
    assert "raised" not in done.stderr


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("replay", JOBS, "--policy", "plan:objective=cost"), "plan:objective=cost must know prices"),
        (("replay", JOBS, "--policy", "thrift"), "thrift must know prices"),
        (("compare", JOBS, "easy", "plan:objective=carbon"), "plan:objective=carbon must know prices"),
        (("predict", "evaluate", JOBS, "--policy", "thrift"), "thrift must know prices"),
        (("study", "run", "study.toml"), "plan:objective=cost must know prices: give its trace a `site`"),
        (("replay", "none.swf"), "none.swf: no such file"),
        (("replay", JOBS, "--estimate", "limits"), "no estimate 'limits'; did you mean limit?"),
        (("replay", JOBS, "--counting", "end"), "--counting: no rule 'end'; did you mean ended?"),
        (("replay", JOBS, "--policy", "thrift", "--every", "30s"), "thrift must know prices"),
        (("compare", JOBS, "easy", "list-saf", "--pair", "week"), "--pair: no pairing of single replays 'week'"),
        (("deadline", "advise", JOBS, "--size", "100", "--limit", "1h"), "a job of 100 processors"),
    ],
)
def test_what_cannot_be_is_refused_before_kernels_are_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str | Path, ...], told: str
) -> None:
    monkeypatch.chdir(tmp_path)
    study = (
        'name = "x"\npolicies = ["easy", "plan:objective=cost"]\n[[traces]]\ngenerate = {jobs = 9, processors = 8}\n'
    )
    Path("study.toml").write_text(study)
    for room in ("engine.replay", "studies.runner"):
        monkeypatch.setattr(f"dovetail.{room}.warm", lambda *args: pytest.fail("compiled"))
    done = run(*words)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith(f"dovetail: {told}")


def test_standard_output_may_be_closed(tmp_path: Path) -> None:
    """As daemons have it."""
    words = f"'{COMMAND}' workload convert '{JOBS}' '{tmp_path}/out.swf'"
    done = subprocess.run(["/bin/sh", "-c", f"{words} >&-"], capture_output=True, text=True, check=False)
    assert (done.returncode, "Traceback" in done.stderr) == (0, False)
    assert (tmp_path / "out.swf").exists()
