"""Asking sacct, with a small program in its place for what a real one cannot be made to do."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dovetail.errors import InputError
from dovetail.slurm import sacct
from dovetail.slurm.history import read_history
from dovetail.slurm.programs import SlurmError

NOW = int(time.time())
DAY = 86_400
PLAY = """#!{python} -S
import calendar, sys, time
one = dict(JobIDRaw="1", Submit="5", Start="5", End="5", State="COMPLETED", ReqTRES="cpu=4", JobName="x")
if sys.argv[1] in ("--helpformat", "--version", "--help"):
    sys.exit(print({{"--helpformat": " ".join(one), "--version": "slurm 99.1", "--help": "--array"}}[sys.argv[1]]))
open("{folder}/calls", "a").write(" ".join(sys.argv) + "\\n")
d = next(word.partition("=")[2] for word in sys.argv if word.startswith("--delimiter"))
fields = next(word.partition("=")[2] for word in sys.argv if word.startswith("--format")).split(",")
begin, end = (calendar.timegm(time.strptime(sys.argv[sys.argv.index(name) + 1], "%Y-%m-%dT%H:%M:%S"))
              for name in ("--starttime", "--endtime"))
head, row = (d.join(texts) + d + "\\n" for texts in (fields, [one[name] for name in fields]))
{body}
"""
WHOLE = "sys.stdout.write(head + row)"


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """A program in the place of sacct; the folder of a dump."""
    monkeypatch.setattr(sacct, "PAUSE_S", 0.0)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    def with_body(body: str) -> Path:
        (tmp_path / "bin").mkdir(exist_ok=True)
        program = tmp_path / "bin" / "sacct"
        program.write_text(PLAY.format(python=sys.executable, folder=tmp_path, body=body))
        program.chmod(0o755)
        return tmp_path / "dump"

    return with_body


def calls(dump: Path) -> list[str]:
    return (dump.parent / "calls").read_text().splitlines()


def test_a_dump_is_private_and_read_again(play: Callable[[str], Path]) -> None:
    dump = play(WHOLE)
    sacct.fetch(dump, NOW - 2 * DAY, NOW)
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (dump, *dump.iterdir())}
    assert modes == {0o700, 0o600}
    log, told = read_history(dump)
    assert (len(log), told.again) == (1, 1)  # both days have it
    assert json.loads((dump / "about.json").read_text())["version"] == "slurm 99.1"
    delimiters = {word for line in calls(dump) for word in line.split() if word.startswith("--delimiter")}
    assert len(delimiters) == 2


def test_what_others_can_look_into_is_refused(play: Callable[[str], Path]) -> None:
    dump = play(WHOLE)
    dump.mkdir(mode=0o755)
    with pytest.raises(InputError, match="chmod 700"):
        sacct.fetch(dump, NOW - DAY, NOW)


def test_windows_double_and_a_refused_one_is_halved(play: Callable[[str], Path]) -> None:
    dump = play(f"if end - begin > 200_000: sys.exit('Too wide of a date range')\n{WHOLE}")
    said: list[str] = []
    sacct.fetch(dump, NOW - 9 * DAY, NOW, say=said.append)
    assert sum("Too wide" in line for line in said) >= 1
    spans = [end - begin for begin, end in sacct.windows(dump)]
    assert spans[:2] == [DAY, 2 * DAY]
    assert max(spans) <= 200_000
    assert sum(spans) == 9 * DAY


def test_what_is_always_refused_ends(play: Callable[[str], Path]) -> None:
    dump = play("sys.exit('no \\x1b[31mdatabase')")
    with pytest.raises(SlurmError, match=r"no �\[31mdatabase"):
        sacct.fetch(dump, NOW - 1000, NOW)
    assert not sacct.windows(dump)


@pytest.mark.parametrize("text", ["''", "head + row[:9]", "head.replace(d, '|')", "'hello'", "row"])
def test_less_than_was_asked_for_is_not_kept(play: Callable[[str], Path], text: str) -> None:
    dump = play(f"sys.stdout.write({text})")
    with pytest.raises(SlurmError, match="not all that was asked for"):
        sacct.fetch(dump, NOW - 1000, NOW)
    assert not sacct.windows(dump)


def test_a_talkative_or_slow_sacct_does_not_hang(play: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch) -> None:
    dump = play(f"sys.stderr.write('x' * 300_000)\n{WHOLE}")
    sacct.fetch(dump, NOW - 1000, NOW)
    assert len(sacct.windows(dump)) == 1
    monkeypatch.setattr(sacct, "LONGEST_CALL_S", 1.0)
    slow = play("time.sleep(20)")
    began = time.monotonic()
    with pytest.raises(SlurmError):
        sacct.fetch(slow.with_name("slow"), NOW - 100, NOW)
    assert time.monotonic() - began < 10


def test_it_goes_on_where_it_was_and_asks_the_last_hour_again(play: Callable[[str], Path]) -> None:
    dump = play(WHOLE)
    sacct.fetch(dump, NOW - 2 * DAY, NOW - DAY)
    sacct.fetch(dump, NOW - 2 * DAY, NOW + DAY)  # the future is not asked for
    first, second, *_, last = [*sacct.windows(dump), sacct.windows(dump)[-1]]
    assert first == (NOW - 2 * DAY, NOW - DAY)
    assert second[0] == NOW - DAY - 3600
    assert NOW <= last[1] <= time.time()


def test_a_gap_is_filled_and_told(play: Callable[[str], Path]) -> None:
    dump = play(WHOLE)
    sacct.fetch(dump, NOW - 4 * DAY, NOW, window_s=DAY)
    gone = sacct.windows(dump)[1]
    (dump / f"{gone[0]}-{gone[1]}.zst").unlink()
    with pytest.raises(InputError, match=f"from {gone[0]} to {gone[1]} is missing"):
        read_history(dump)
    sacct.fetch(dump, NOW - 4 * DAY, NOW, window_s=DAY)
    assert len(read_history(dump)[0]) == 1


@pytest.mark.parametrize("text", ["5", "null", "[]", "{", '{"fields": 5}', '{"fields": [], "since": "x"}'])
def test_a_damaged_about_is_one_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "about.json").write_text(text)
    with pytest.raises(InputError, match="not what a dump has there"):
        read_history(tmp_path)


def test_without_sacct_it_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SlurmError, match="--print-command"):
        sacct.fetch(tmp_path / "dump", NOW - 1000, NOW)
