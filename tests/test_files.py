"""Files as a whole or not at all: what a full disk, a crash and a careless name leave behind."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
import time
from errno import EINVAL, EIO, ENOSPC
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

from dovetail.errors import InputError
from dovetail.files import beside, folder
from tests.conftest import ROOT


def test_a_file_is_the_old_one_until_it_is_the_new_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    with beside(path) as new:
        new.write_text("new")
        assert path.read_text() == "old"
        assert new.parent == tmp_path
        assert new.name[0] == "."
    assert path.read_text() == "new"
    with pytest.raises(UnicodeEncodeError), beside(path) as new:
        new.write_text("half" * 9999 + "\udcff", encoding="utf-8")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.parametrize(
    "error",
    [
        OSError(ENOSPC, "No space left on device"),
        OSError("No space left on device (os error 28): .a.1234.new"),
        pl.exceptions.ComputeError("parquet: File out of specification: underlying IO error: No space (os error 28)"),
    ],
)
def test_a_full_disk_is_one_sentence_whoever_notices(tmp_path: Path, error: Exception) -> None:
    with pytest.raises(InputError) as told, beside(tmp_path / "a"):
        raise error
    assert str(told.value) == f"{tmp_path}/a: cannot be written: No space left on device"
    assert os.listdir(tmp_path) == []


def test_other_errors_stay_what_they_are(tmp_path: Path) -> None:
    for error in (pl.exceptions.ComputeError("no nested columns"), KeyboardInterrupt()):
        with pytest.raises(type(error)), beside(tmp_path / "a"):
            raise error


def test_a_rename_is_on_disk_when_it_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    fsync, replace = os.fsync, os.replace

    def synced(number: int) -> None:
        done.append("folder" if stat.S_ISDIR(os.fstat(number).st_mode) else "file")
        fsync(number)

    def renamed(old: Path, new: Path) -> None:
        done.append("rename")
        replace(old, new)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(os, "replace", renamed)
    with beside(tmp_path / "a") as new:
        new.touch()
    assert done == ["file", "rename", "folder"]
    done.clear()
    folder(tmp_path / "b" / "c")
    assert done == ["folder", "folder"]
    folder(tmp_path / "b" / "c")
    assert len(done) == 2


@pytest.mark.parametrize(("number", "told"), [(EINVAL, ""), (EIO, "Input/output error")])
def test_a_folder_that_cannot_be_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, told: str
) -> None:
    """A file system may not know how; any other error says that the name may not be on disk."""

    def synced(file: int) -> None:
        if stat.S_ISDIR(os.fstat(file).st_mode):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", synced)
    said = ""
    try:
        with beside(tmp_path / "a") as new:
            new.touch()
    except InputError as error:
        said = error.rule
    assert said == (f"cannot be written: {told}" if told else "")


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    """A user who is root could lose /dev/null."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for path in (Path("/dev/null"), tmp_path / "pipe", tmp_path / "folder"):
        before = path.stat().st_mode
        with pytest.raises(InputError, match="it is a folder, a pipe or a device"), beside(path):
            raise AssertionError("not asked")
        assert path.stat().st_mode == before


def test_a_link_stays_one(tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "far" / "file")
    for text in ("1", "2"):  # it leads nowhere, then to a file
        with beside(tmp_path / "link") as new:
            new.write_text(text)
        assert (tmp_path / "far" / "file").read_text() == text
        assert (tmp_path / "link").is_symlink()
    with beside(tmp_path / "link", follow=False) as new:
        new.write_text("3")
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "link").read_text()) == (False, "3")
    assert (tmp_path / "far" / "file").read_text() == "2"


def test_what_a_killed_process_left_goes_when_it_is_old(tmp_path: Path) -> None:
    left, *others = (tmp_path / name for name in (".a.0011aabb.new", ".mine", ".bashrc.new"))
    for path in (left, *others):
        path.touch()
    folder(tmp_path)
    assert left.exists()  # it may have a writer
    for path in (left, *others):
        os.utime(path, (time.time() - 3600, time.time() - 3600))
    folder(tmp_path)
    assert sorted(os.listdir(tmp_path)) == [".bashrc.new", ".mine"]


_AS_NOBODY = """
import os, sys
from pathlib import Path
from dovetail.errors import InputError
from dovetail.files import beside, folder
closed, blind = map(Path, sys.argv[1:])
if os.geteuid() == 0:
    os.setuid(65534)
try:
    with beside(closed / "a") as new:
        new.touch()
except InputError as error:
    print(error)
with beside(blind / "a") as new:
    new.touch()
folder(blind / "inner")
"""


def test_folders_that_may_not_be_searched_or_read() -> None:
    """Into the first nothing can be written, and that is said; in the second a name cannot be brought to disk."""
    with TemporaryDirectory() as open_to_all:
        closed, blind = Path(open_to_all, "closed"), Path(open_to_all, "blind")
        Path(open_to_all).chmod(0o755)
        for path, mode in ((closed, 0o600), (blind, 0o300)):
            path.mkdir()
            if os.geteuid() == 0:
                os.chown(path, 65534, 65534)
            path.chmod(mode)
        done = subprocess.run(
            [sys.executable, "-c", _AS_NOBODY, closed, blind], capture_output=True, text=True, check=False
        )
        assert (done.stdout, done.stderr) == (f"{closed}/a: cannot be written: Permission denied\n", "")
        assert sorted(os.listdir(blind)) == ["a", "inner"]


def test_a_folder_that_cannot_be_made_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InputError) as told:
        folder(tmp_path / "file" / "a")
    assert str(told.value) == f"{tmp_path}/file/a: cannot be made: Not a directory"


def test_no_other_place_writes() -> None:
    """Who renames or makes folders elsewhere forgets to bring them to disk, or to say in one line why not."""
    own = re.compile(r"os\.(replace|renames?|mkdir|makedirs|link)\b|\.(rename|mkdir|hardlink_to)\(|NamedTemporary")
    sources = (ROOT / "src" / "dovetail").rglob("*.py")
    assert [path.name for path in sources if own.search(path.read_text(encoding="utf-8"))] == ["files.py"]
