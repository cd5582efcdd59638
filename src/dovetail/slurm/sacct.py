"""Ask a site's sacct for its past, gently: one call at a time, window by window, into a folder that is kept.

The folder is the dump: a packed file for each window, named by its first and last second, and about.json, which says
what it holds. An import can be done again from it; a call that was broken off is asked for again.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from dovetail.errors import DovetailError, InputError
from dovetail.files import beside, folder
from dovetail.io.streams import BLOCK, MOST_BYTES, packed, unpacked
from dovetail.slurm.records import FIELDS, TOLD_OTHERWISE
from dovetail.units import duration, printable

ABOUT: Final = "about.json"
FREE_TEXTS: Final = ("SubmitLine", "Comment")
"""What users wrote, and may hold secrets: asked for only on request."""
FIRST_S: Final = 86_400
"""Seconds of the first window."""
QUICK_S: Final = 10.0
"""While a call takes less, windows double."""
LEAST_S: Final = 60
"""A window of fewer seconds is not asked for: what is refused then will always be."""
PAUSE_S: Final = 1.0
"""Between two calls, at the least; as long as the last one took, if that is more."""
LONGEST_CALL_S: Final = 1800
_WINDOW: Final = re.compile(r"(\d{1,12})-(\d{1,12})\.zst", re.ASCII)


class SacctError(DovetailError):
    """sacct is not there, or refuses."""


@dataclass(frozen=True)
class About:
    """What a dump holds."""

    fields: tuple[str, ...]
    delimiter: str
    version: str
    array: bool
    """Whether each task of an array has a record of its own, also those that wait."""
    submit_lines: bool
    since: int

    @property
    def holds(self) -> str:
        """What is in it that may matter to somebody."""
        more = "submit lines and comments, " if self.submit_lines else ""
        return f"jobs of {self.version}: names of users, accounts and jobs, {more}nodes and times"


def about_sacct(since: int, submit_lines: bool) -> About:
    """What this site's sacct can be asked for. SacctError if there is none."""
    there = _printed(["sacct", "--helpformat"]).split()
    older = {new: old for old, new in TOLD_OTHERWISE.items()}
    wanted = [older.get(name, name) if name not in there else name for name in FIELDS]
    more = [name for name in FREE_TEXTS if submit_lines]
    fields = tuple(name for name in (*wanted, *more) if name in there)
    if not {"JobIDRaw", "Submit", "State"} <= set(fields):
        raise SacctError(f"sacct --helpformat names none of JobIDRaw, Submit, State: {printable(' '.join(there), 200)}")
    version = printable(_printed(["sacct", "--version"]).strip(), 60)
    array = "--array" in _printed(["sacct", "--help"])
    return About(fields, token(), version, array, submit_lines, since)


def token() -> str:
    """A delimiter that is in no text."""
    return f"~{secrets.token_hex(4)}~"


def command(about: About, begin: int, end: int) -> list[str]:
    """The call for a window. Times in and out are of UTC."""
    array = ["--array"] if about.array else []
    return [
        "sacct", "--allusers", "--allocations", "--duplicates", *array, "--noconvert", "--parsable",
        f"--delimiter={about.delimiter}", "--starttime", _utc(begin), "--endtime", _utc(end),
        f"--format={','.join(about.fields)}",
    ]  # fmt: skip


ENVIRONMENT: Final = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
"""In which sacct is called: times are seconds since 1970, lists of tasks whole."""


def _utc(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def _printed(words: list[str]) -> str:
    """What a quick call prints."""
    try:
        done = subprocess.run(  # noqa: S603 - no shell, and nothing of it is foreign
            words, env=os.environ | ENVIRONMENT, capture_output=True, timeout=60, check=True, stdin=subprocess.DEVNULL
        )
    except FileNotFoundError as error:
        rule = "run this where Slurm's commands are, or take --print-command there and read its file here"
        raise SacctError(f"there is no {words[0]} on this machine: {rule}") from error
    except (subprocess.SubprocessError, OSError) as error:
        raise SacctError(f"{' '.join(words)} failed: {printable(_why(error), 300)}") from error
    return done.stdout.decode("utf-8", "replace")


def _why(error: BaseException) -> str:
    said = getattr(error, "stderr", None)
    return said.decode("utf-8", "replace").strip() if said else str(error)


def fetch(
    path: Path,
    since: int,
    until: int,
    submit_lines: bool = False,
    window_s: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Fill a dump with what happened from one second to another; what it has already is not asked for again.

    A window is a day at first. It doubles while calls are quick, and halves when one is refused. `window_s`: all
    windows have that many seconds.
    """
    if until <= since:
        raise SacctError(f"nothing to ask for: from {_utc(since)} to {_utc(until)}")
    folder(path, 0o700)
    about = _begun(path, since, submit_lines)
    begin, width = max([end for _, end in windows(path)], default=about.since), window_s or FIRST_S
    first = begin
    while begin < until:
        end = min(begin + width, until)
        began = time.monotonic()
        why = _window(path, about, begin, end)
        took = time.monotonic() - began
        if why:
            width //= 2
            if width < LEAST_S:
                raise SacctError(f"sacct refuses {_utc(begin)} to {_utc(end)}: {printable(why, 300)}")
            say(f"sacct refuses {duration(end - begin)} at once: {printable(why, 120)}")
        else:
            share = (end - first) / max(until - first, 1)
            say(f"{_utc(end)}  {100 * share:.0f} %, {duration(end - begin)} in {took:.1f} s")
            begin, width = end, window_s or (2 * width if took < QUICK_S else width)
        if begin < until:
            time.sleep(max(took, PAUSE_S))


def _begun(path: Path, since: int, submit_lines: bool) -> About:
    """What a dump is asked for: as before, if it was begun."""
    if (path / ABOUT).exists():
        about = read_about(path)
        if about.submit_lines != submit_lines or since < about.since:
            rule = "holds" if about.submit_lines else "does not hold"
            raise InputError(
                path, 0, f"begun at {_utc(about.since)}, and {rule} submit lines: take another folder for anything else"
            )
        return about
    if any(path.iterdir()):
        raise InputError(path, 0, "a folder with something else in it: name one that is new or empty")
    about = about_sacct(since, submit_lines)
    with beside(path / ABOUT) as new:
        new.write_text(json.dumps({**asdict(about), "holds": about.holds}, indent=1) + "\n", encoding="utf-8")
        new.chmod(0o600)
    return about


def read_about(path: Path) -> About:
    """What about.json says."""
    try:
        told: dict[str, Any] = json.loads((path / ABOUT).read_text(encoding="utf-8"))
        told.pop("holds", None)
        about = About(**{**told, "fields": tuple(map(str, told["fields"]))})
        if not isinstance(about.since, int) or not about.delimiter:
            raise ValueError("since is no number")
    except OSError as error:
        raise InputError(path, 0, f"no dump: {ABOUT} cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, KeyError) as error:
        raise InputError(path / ABOUT, 0, f"not what a dump has there: {printable(str(error), 100)}") from error
    return about


def windows(path: Path) -> list[tuple[int, int]]:
    """The windows of a dump that are there, the first first."""
    found = (_WINDOW.fullmatch(one.name) for one in path.iterdir())
    return sorted((int(one[1]), int(one[2])) for one in found if one)


def _window(path: Path, about: About, begin: int, end: int) -> str:
    """Ask for a window and keep what is printed; why not, if sacct refuses."""
    target = path / f"{begin}-{end}.zst"
    try:
        with packed(target) as out:
            process = subprocess.Popen(  # noqa: S603 - no shell, and nothing of it is foreign
                command(about, begin, end), env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )  # fmt: skip
            try:
                assert process.stdout is not None  # noqa: S101
                shutil.copyfileobj(process.stdout, out, BLOCK)
                _, said = process.communicate(timeout=LONGEST_CALL_S)
            finally:
                process.kill()
                process.wait()
            if process.returncode:
                raise _RefusedError(said.decode("utf-8", "replace").strip() or f"exit code {process.returncode}")
    except _RefusedError as error:
        return str(error)
    except FileNotFoundError as error:
        raise SacctError("there is no sacct on this machine any more") from error
    target.chmod(0o600)
    return ""


class _RefusedError(Exception):
    """What sacct said."""


def printed(path: Path, window: tuple[int, int]) -> Iterator[bytes]:
    """What sacct printed for a window of a dump, in blocks."""
    file = path / f"{window[0]}-{window[1]}.zst"
    with file.open("rb") as stream:
        yield from unpacked(stream, str(file), MOST_BYTES)
