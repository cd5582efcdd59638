"""Ask a site's sacct for its past, gently: one call at a time, window by window, into a folder that is kept.

The folder is the dump: a packed file for each window, named by its first and last second, and about.json, which says
what it holds. An import can be done again from it; a call that was broken off is asked for again.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from threading import Timer
from typing import IO, Final

from dovetail.errors import InputError
from dovetail.files import beside, folder
from dovetail.io.streams import BLOCK, MOST_BYTES, packed, unpacked
from dovetail.slurm.programs import ENVIRONMENT, SlurmError, answer
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
AGAIN_S: Final = 3600
"""Of what a dump has, so much is asked for again."""
PAUSE_S: Final = 1.0
"""Between two calls, at the least; as long as the last one took, if that is more."""
LONGEST_CALL_S: Final = 1800
_WINDOW: Final = re.compile(r"(\d{1,12})-(\d{1,12})\.zst", re.ASCII)


@dataclass(frozen=True)
class About:
    """What a dump holds."""

    fields: tuple[str, ...]
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
    """What this site's sacct can be asked for. SlurmError if there is none."""
    there = answer(["sacct", "--helpformat"]).split()
    older = {new: old for old, new in TOLD_OTHERWISE.items()}
    wanted = [older.get(name, name) if name not in there else name for name in FIELDS]
    more = [name for name in FREE_TEXTS if submit_lines]
    fields = tuple(name for name in (*wanted, *more) if name in there)
    if not {"JobIDRaw", "Submit", "State"} <= set(fields):
        raise SlurmError(f"sacct --helpformat names none of JobIDRaw, Submit, State: {printable(' '.join(there), 200)}")
    version = printable(answer(["sacct", "--version"]).strip(), 60)
    array = "--array" in answer(["sacct", "--help"])
    return About(fields, version, array, submit_lines, since)


def token() -> str:
    """A delimiter that is in no text: another for each call, since who looks at the list of processes sees it."""
    return f"~{secrets.token_hex(4)}~"


def command(about: About, begin: int, end: int, delimiter: str) -> list[str]:
    """The call for a window. Times in and out are of UTC."""
    array = ["--array"] if about.array else []
    return [
        "sacct", "--allusers", "--allocations", "--duplicates", *array, "--noconvert", "--parsable",
        f"--delimiter={delimiter}", "--starttime", _utc(begin), "--endtime", _utc(end),
        f"--format={','.join(about.fields)}",
    ]  # fmt: skip


def _utc(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def fetch(
    path: Path,
    since: int,
    until: int,
    submit_lines: bool = False,
    window_s: int | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Fill a dump with what happened from one second to another, now at the latest; what it has already is not asked
    for again, but for the last hour of it, as the database may have learnt of jobs since.

    A window is a day at first. It doubles while calls are quick, and halves when one is refused. `window_s`: no window
    is longer, and none grows.
    """
    until = min(until, int(time.time()))
    if not 0 <= since < until:
        raise SlurmError(f"nothing to ask for from {_utc(since)} to {_utc(until)}")
    folder(path, 0o700)
    if path.stat().st_mode & 0o077:
        raise InputError(path, 0, "others can look into this folder: take a new one, or say chmod 700")
    about = _begun(path, since, submit_lines)
    done, _ = joined(about, windows(path))
    first, width = done, window_s or FIRST_S
    again = 0 if done == about.since else AGAIN_S
    while done < until:
        end = min(done + width, until)
        began = time.monotonic()
        why = _window(path, about, max(about.since, done - again), end)
        took = time.monotonic() - began
        if why:
            width = (end - done) // 2
            if width < LEAST_S:
                raise SlurmError(f"sacct refuses {_utc(done)} to {_utc(end)}: {printable(why, 300)}")
            say(f"sacct refuses {duration(end - done)} at once: {printable(why, 120)}")
        else:
            say(f"{_utc(end)}  {100 * (end - first) / (until - first):.0f} %, {duration(end - done)} in {took:.1f} s")
            done, again = end, 0
            width = 2 * width if took < QUICK_S and window_s is None else width
        if done < until:
            time.sleep(max(took, PAUSE_S))


def joined(about: About, found: list[tuple[int, int]]) -> tuple[int, list[tuple[int, int]]]:
    """Up to when windows cover all, from the beginning on; and those behind a gap."""
    done = about.since
    for at, (begin, end) in enumerate(found):
        if begin > done:
            return done, found[at:]
        done = max(done, end)
    return done, []


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
    if any(not one.name.startswith(".") for one in path.iterdir()):
        raise InputError(path, 0, "a folder with something else in it: name one that is new or empty")
    about = about_sacct(since, submit_lines)
    with _private(), beside(path / ABOUT) as new:
        new.write_text(json.dumps({**asdict(about), "holds": about.holds}, indent=1) + "\n", encoding="utf-8")
    return about


def read_about(path: Path) -> About:
    """What about.json says."""
    try:
        told = json.loads((path / ABOUT).read_text(encoding="utf-8"))
        if not isinstance(told, dict):
            raise ValueError("no object")
        told.pop("holds", None)
        about = About(**{**told, "fields": tuple(map(str, told["fields"]))})
        if not isinstance(about.since, int):
            raise ValueError("since is no number")
    except OSError as error:
        raise InputError(path, 0, f"no dump: {ABOUT} cannot be read ({error.strerror})") from error
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise InputError(path / ABOUT, 0, f"not what a dump has there: {printable(str(error), 100)}") from error
    return about


def windows(path: Path) -> list[tuple[int, int]]:
    """The windows of a dump that are there, the first first."""
    found = (_WINDOW.fullmatch(one.name) for one in path.iterdir())
    return sorted((int(one[1]), int(one[2])) for one in found if one)


def _window(path: Path, about: About, begin: int, end: int) -> str:
    """Ask for a window and keep what is printed; why not, if sacct refuses or prints less than it should."""
    delimiter = token()
    with TemporaryFile() as said:
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell, and nothing of it is foreign
                command(about, begin, end, delimiter), env=os.environ | ENVIRONMENT, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=said,
            )  # fmt: skip
        except OSError as error:
            raise SlurmError(f"sacct cannot be called: {error.strerror}") from error
        late = Timer(LONGEST_CALL_S, process.kill)
        late.start()
        why = ""
        try:
            assert process.stdout is not None  # noqa: S101
            with process.stdout, _private(), packed(path / f"{begin}-{end}.zst") as out:
                whole = _copied(process.stdout, out, layout=f"{delimiter.join(about.fields)}{delimiter}\n".encode())
                if process.wait() or not whole:
                    said.seek(0)
                    why = said.read(1 << 16).decode("utf-8", "replace").strip()
                    why = why or f"exit code {process.returncode}{'' if whole else ', and not all that was asked for'}"
                    raise _NotKeptError
        except _NotKeptError:
            return why
        finally:
            late.cancel()
            process.kill()
            process.wait()
    return ""


class _NotKeptError(Exception):
    """A window is not kept."""


def _copied(printed: IO[bytes], out: IO[bytes], layout: bytes) -> bool:
    """Copy what sacct prints; whether it begins with the header and ends with the end of a record."""
    head = last = b""
    while block := printed.read(BLOCK):
        out.write(block)
        head = head if len(head) >= len(layout) else (head + block)[: len(layout)]
        last = (last + block)[-64:]
    return head == layout and last.endswith(layout[layout.rfind(b"~", 0, -2) :])


@contextmanager
def _private() -> Iterator[None]:
    """What is made meanwhile is for its owner alone."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def printed(path: Path, window: tuple[int, int]) -> Iterator[bytes]:
    """What sacct printed for a window of a dump, in blocks."""
    file = path / f"{window[0]}-{window[1]}.zst"
    with file.open("rb") as stream:
        yield from unpacked(stream, str(file), MOST_BYTES)
