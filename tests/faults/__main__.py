"""Every command of the CLI with the disk full at each of its writes, and killed at each.

    python -m tests.faults                       all of it
    python -m tests.faults --only "study run"    the commands that begin so; repeat
    python -m tests.faults --how kill            one kind of fault: full, kill; once: only that write fails
    python -m tests.faults --traced              does the library see every write that strace sees?

A small library is preloaded (disk.c; cc compiles it), so that native code meets the fault too. Of each command the
writes are counted. Then, for each of them, with no files there and with old ones under the names that it writes: it
meets the fault there, what it said and left behind is looked at, and it is run again undisturbed.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import importlib
import itertools
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, NamedTuple, NoReturn

from tests.faults import traced

SOURCE: Final = Path(__file__).with_name("disk.c")
HOW: Final = ("full", "kill", "once")
OLD: Final = b"old"
OLD_HASH: Final = sha256(OLD).hexdigest()
RUN: Final = re.compile(r".*\.store/(runs/.*|index)\.parquet")
IMPORTED: Final = (
    "dovetail.api", "dovetail.cli.main", "dovetail.engine.ahead", "dovetail.io.write", "dovetail.reports.page",
    "dovetail.studies.cases", "dovetail.studies.runner", "matplotlib.pyplot", "polars", "rich.progress",
)  # fmt: skip
"""What is imported once, before commands are forked off. Polars must not have worked: a fork loses its threads."""
LEFT: Final = re.compile(r"(.*/)?\.[^/]+\.new|tmp/.*")
"""What a process that was killed may leave behind."""
INDEX: Final = re.compile(r".*\.store/index\.parquet")
"""It grows with the runs: one of fewer is whole too."""
UGLY: Final = ("Traceback", "panicked", "Exception ignored", "Errno", "os error")


class Ended(NamedTuple):
    """How a command ended: its exit code, what it said to standard error, and how many writes it made."""

    code: int
    said: str
    writes: int


class Room:
    """A folder with the disk that fills (`box`), and beside it what is needed to run commands there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.box, self.given, self.count = folder / "box", folder / "given", folder / "count"

    def fill(self, command: Any, old: Mapping[str, str]) -> None:
        """Put what a command is given into the box, and old files under these names."""
        shutil.rmtree(self.box, ignore_errors=True)
        without = shutil.ignore_patterns(*["cache"] * (not command.own), *["package"] * (not command.package))
        shutil.copytree(self.given, self.box, ignore=without)
        for path in self.box.glob(command.missing) if command.missing else ():
            path.unlink()
        for name in old:
            (self.box / name).parent.mkdir(parents=True, exist_ok=True)
            (self.box / name).write_bytes(OLD)

    def run(self, command: Any, how: str = "full", at: int = 0, report: Path | None = None) -> Ended:
        """Run a command in the box, with a fault at one of its writes; 0: with none. `report`: what strace sees."""
        self.count.write_bytes(bytes(8))
        out, err = (self.folder if command.works else self.box) / "stdout", self.folder / "stderr"
        child = forked(lambda: self._become(command, how, at, out, err, report is not None))
        watch = traced.attach(child, report) if report else None
        _, status = os.waitpid(child, 0)
        if watch is not None:
            watch.wait()
        _none_left(child)
        writes = int.from_bytes(self.count.read_bytes(), sys.byteorder)
        out.unlink()
        return Ended(os.waitstatus_to_exitcode(status), err.read_text(errors="replace"), writes)

    def _become(self, command: Any, how: str, at: int, out: Path, err: Path, watched: bool) -> NoReturn:
        """In the child: be the command."""
        os.setsid()
        os.chdir(self.box)
        for path, number in ((out, 1), (err, 2)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
        os.environ |= {"TMPDIR": str(self.box / "tmp"), "COLUMNS": "200", "PYTHONDONTWRITEBYTECODE": "1"}
        os.environ |= {"DOVETAIL_CACHE": str(self.box / "cache")} if command.cache or command.own else {}
        os.environ |= {"PYTHONPATH": str(self.box / "package")} if command.package else {}
        os.environ |= {"FAULT_FOLDER": str(self.box), "FAULT_COUNT": str(self.count)}
        os.environ |= {"FAULT_AT": str(at), "FAULT_HOW": how}
        while watched and not traced.is_watched():
            time.sleep(0.01)
        words = command.line.split()
        if command.own:
            os.execv(sys.executable, [sys.executable, "-c", "from dovetail.cli.main import main; main()", *words])  # noqa: S606
        sys.argv, sys.dont_write_bytecode, tempfile.tempdir = ["dovetail", *words], True, None
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115 - it lasts as long as the process
        ctypes.CDLL(None).fault_arm()
        _end()

    def contents(self) -> dict[str, str]:
        """What lies in the box: a hash by name; of runs in a store, and of its index, that of what is the same each
        time."""
        found = {str(path.relative_to(self.box)): path for path in sorted(self.box.rglob("*")) if path.is_file()}
        made = {name: sha256(_steady(path.read_bytes())).hexdigest() for name, path in found.items()}
        kept = {name: path for name, path in found.items() if RUN.fullmatch(name) and made[name] != OLD_HASH}
        if kept:
            made |= aside(lambda: {name: _hash_of_run(path) for name, path in kept.items()})
        return made


def _steady(content: bytes) -> bytes:
    """Without the times that an entry of the benchmark says it took."""
    return re.sub(rb"(?m)^(p999_ms|cpu_s) = \S+$", rb"\1", content)


def _hash_of_run(path: Path) -> str:
    import polars as pl

    from dovetail.studies.store import VOLATILE

    try:
        return sha256(repr(pl.read_parquet(path).drop(VOLATILE, strict=False).to_dicts()).encode()).hexdigest()
    except pl.exceptions.PolarsError as error:
        return f"damaged: {error}"


def _end() -> NoReturn:
    """Run the command and end as Python does, but for freeing all memory, which takes longer than the command."""
    from dovetail.cli.main import main

    code: Any = 0
    try:
        main()
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError as error:
        print(f"Exception ignored in: {sys.stdout!r}: {error}", file=sys.stderr)
        code = 120
    os._exit(code)


def forked(work: Callable[[], Any]) -> int:
    """A process that does this."""
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if not child:
        work()
        os._exit(0)
    return child


def aside(work: Callable[[], Any]) -> Any:
    """What a function gives, called in a process of its own."""
    reader, writer = os.pipe()

    def tell() -> None:
        with os.fdopen(writer, "wb") as pipe:
            pipe.write(pickle.dumps(work()))

    child = forked(tell)
    os.close(writer)
    with os.fdopen(reader, "rb") as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return pickle.loads(told)  # noqa: S301 - our own child


def _none_left(group: int) -> None:
    """Wait for the workers of a command that was killed: they end by themselves."""
    for _ in range(200):
        try:
            os.killpg(group, 0)
        except ProcessLookupError:
            return
        time.sleep(0.05)
    os.killpg(group, signal.SIGKILL)
    raise AssertionError("processes of a command outlived it")


def try_command(room: Room, command: Any, hows: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    """Each case of a command by name, and what is wrong with it."""
    room.fill(command, {})
    given = room.contents()
    good = room.run(command)
    whole = room.contents()
    made = {name: what for name, what in whole.items() if given.get(name) != what}
    yield f"undisturbed: {good.writes} writes, {len(made)} files", [] if good.code == 0 else [repr(good)]
    for how in hows:
        for old in ({}, made) if made else ({},):
            before = given | dict.fromkeys(old, OLD_HASH)
            for at in itertools.count(1):
                room.fill(command, old)
                ended = room.run(command, how, at)
                if ended.writes < at:
                    break
                after = room.contents()
                wrong = [*_of_files(before, after, whole, how), *_of_words(command, ended, how)]
                if ended.code == 0 and not command.works and _visible(after) != whole:
                    wrong.append("said to have worked, and did not")
                again = room.run(command)
                differ = sorted({name for name, _ in _visible(room.contents()).items() ^ whole.items()})
                if again.code or differ:
                    wrong.append(f"run again: {again if again.code else differ}")
                yield f"{how} at write {at}{' over old files' * bool(old)}", wrong


def _visible(contents: Mapping[str, str]) -> dict[str, str]:
    return {name: what for name, what in contents.items() if not LEFT.fullmatch(name)}


def _of_files(before: Mapping[str, str], after: Mapping[str, str], whole: Mapping[str, str], how: str) -> Iterator[str]:
    """What a fault may not leave: half a file, a temporary one where it could be deleted, nothing where one was."""
    for name, what in after.items():
        if name not in before and name not in whole:
            if how != "kill" or not LEFT.fullmatch(name):
                yield f"left behind: {name}"
        elif what not in (before.get(name), whole.get(name)) and (not INDEX.fullmatch(name) or "damaged" in what):
            yield f"half: {name}"
    for name in before:
        if name not in after and not RUN.fullmatch(name):  # old bytes are no run: a store throws them away
            yield f"gone: {name}"


def _of_words(command: Any, ended: Ended, how: str) -> Iterator[str]:
    """A full disk is told in one line, and ends the command with an exit code."""
    lines = ended.said.splitlines()
    if how == "kill" and ended.code == -signal.SIGKILL:
        return
    if ugly := [line for line in lines if any(word in line for word in UGLY)]:
        yield f"said: {ugly[-1]}"
    if command.works or how != "full":
        if ended.code < 0 or (command.works and ended.code):
            yield f"exit code {ended.code}"
    elif ended.code <= 0:
        yield f"exit code {ended.code}"
    told = [sum(line.startswith(word) for line in lines) for word in ("dovetail: ", "failed: ")]
    if ended.code > 0 and told[0] != 1 and not told[1]:
        yield f"exit code {ended.code}, and {told[0]} lines say why"


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a server for a folder."""
    command = [sys.executable, "-u", "-m", "http.server", "--bind", "127.0.0.1", "--directory", str(folder), "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        line = server.stdout.readline() if server.stdout else ""
        yield f"http://127.0.0.1:{line.split(' port ')[1].split()[0]}"
    finally:
        server.kill()
        server.wait()


def tried(room: Room, commands: Sequence[Any], hows: Sequence[str]) -> int:
    """Try commands, tell, and count what was wrong."""
    cases = broken = 0
    for command in commands:
        began, here, bad = time.monotonic(), 0, 0
        for name, wrong in try_command(room, command, hows):
            here, bad = here + 1, bad + bool(wrong)
            if here == 1:
                print(f"{command.line}: {name}", flush=True)
            for text in wrong:
                print(f"  {name}: {text}", flush=True)
        cases, broken = cases + here - 1, broken + bad
        print(f"  {here - 1} cases, {bad} wrong, {time.monotonic() - began:.0f} s", flush=True)
    print(f"{len(commands)} commands, {cases} cases, {broken} wrong")
    return min(broken, 1)


def compared(room: Room, commands: Sequence[Any]) -> int:
    """Each command undisturbed: how many writes the library counted, and how many strace saw."""
    missed = 0
    for command in commands:
        room.fill(command, {})
        ended = room.run(command, report=room.folder / "report")
        seen = traced.writes(room.folder / "report", room.box)
        print(f"{command.line}: {ended.writes} counted, {len(seen)} seen by strace", flush=True)
        if ended.code or len(seen) != ended.writes:
            print(*seen, sep="\n")
            missed += 1
    print(f"{len(commands)} commands, {missed} with other writes")
    return min(missed, 1)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", action="append", help="commands that begin so; repeat")
    parser.add_argument("--traced", action="store_true", help="only: does strace see more writes than the library?")
    parser.add_argument("--how", action="append", choices=HOW, help="kinds of fault; repeat. Default: full, kill")
    asked = parser.parse_args()
    if "FAULT_ROOM" not in os.environ:
        return _preloaded()
    for name in IMPORTED:
        importlib.import_module(name)
    import dovetail as dt
    from tests.faults.commands import COMMANDS, give, make_small

    wanted = [one for one in COMMANDS if one.line.startswith(tuple(asked.only or ("",)))]
    make_small()
    room = Room(Path(os.environ["FAULT_ROOM"]))
    aside(lambda: give(room.given, room.folder / "archive", wanted))
    for policy in ("easy", *(["plan-af"] if any(one.line.startswith("demo") for one in wanted) else [])):
        dt.replay(dt.read(room.given / "log.swf.gz"), policy)  # kernels are loaded once
    return compared(room, wanted) if asked.traced else tried(room, wanted, asked.how or HOW[:2])


def _preloaded() -> int:
    """This command again, with the library. What must be cleared away is kept here: a fork would clear it too."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        library = f"{folder}/disk.so"
        (folder / "archive").mkdir()
        subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-o", library, str(SOURCE), "-ldl"], check=True)
        with served(folder / "archive") as archive:
            env = {**os.environ, "LD_PRELOAD": library, "FAULT_ROOM": str(folder), "DOVETAIL_ARCHIVE": archive}
            return subprocess.run([sys.executable, "-m", "tests.faults", *sys.argv[1:]], env=env).returncode


if __name__ == "__main__":
    sys.exit(main())
