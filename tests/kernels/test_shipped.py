"""Shipped kernels: used only where they are for what is here, and only if each is what was shipped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from numba import typeof

from dovetail.engine.ahead import missing, parts
from dovetail.kernels.compile import jit
from dovetail.kernels.kept import Kept, own, sealed, write
from dovetail.kernels.shipped import GENERIC, MANIFEST, OWN_CODE, Shipped, read_manifest
from dovetail.policies.registry import named, policy

HERE = {"python": "cpython-311", "numba": "0.68.1"}
CODE = b"code"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One part of one file, for what is here."""
    for name in OWN_CODE:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "a.nbc").write_bytes(CODE)
    _write(tmp_path, {"made": HERE, "parts": {"list": ["a.nbc"]}, "functions": {"list": 3}})
    return tmp_path


def _write(folder: Path, manifest: dict[str, Any]) -> None:
    files = {"a.nbc": hashlib.sha256(CODE).hexdigest()}
    (folder / MANIFEST).write_text(json.dumps({"files": files, **manifest}), encoding="utf-8")


def test_what_was_shipped_is_loaded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = read_manifest(HERE, folder)
    assert (found.trouble, found.read("a.nbc"), found.read("b.nbc")) == ("", CODE, None)
    assert capsys.readouterr().err == ""


def test_what_was_changed_is_not_loaded_and_that_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "a.nbc").write_bytes(b"cod3")
    assert read_manifest(HERE, folder).read("a.nbc") is None
    text = "The shipped kernel a.nbc is not as it was shipped, so it is not loaded: it is compiled here.\n"
    assert capsys.readouterr().err == text
    (folder / "a.nbc").unlink()
    assert read_manifest(HERE, folder).read("a.nbc") is None
    assert "a.nbc cannot be read (No such file or directory): it is compiled here" in capsys.readouterr().err


def test_other_versions_are_named(folder: Path) -> None:
    found = read_manifest(HERE | {"numba": "0.69.0"}, folder)
    assert found.trouble == "numba was 0.68.1, here it is 0.69.0"
    assert found.read("a.nbc") is None


@pytest.mark.parametrize("name", GENERIC)
def test_who_asks_for_another_processor_gets_it(folder: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "")
    found = read_manifest(HERE, folder)
    assert (found.trouble, found.read("a.nbc")) == (f"{name} is set", None)


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"made": 1}', '{"made": {}, "files": [1], "parts": {}, "functions": {}}']
)
def test_a_damaged_manifest_ships_nothing(folder: Path, text: str) -> None:
    (folder / MANIFEST).write_text(text)
    assert read_manifest(HERE, folder).trouble == "manifest.json is damaged"


def test_no_manifest_is_no_trouble(tmp_path: Path) -> None:
    assert read_manifest(HERE, tmp_path / "none") == Shipped(tmp_path / "none")


def test_a_part_is_missing_until_all_of_it_is_there(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dovetail.engine.ahead.MADE_WITH", HERE)
    wanted = {"list": ("easy", False), "plan": ("plan", False)}
    assert missing(wanted, folder).keys() == {"plan"}
    (folder / "a.nbc").write_bytes(b"cod3")
    assert missing(wanted, folder).keys() == {"list", "plan"}


def test_every_policy_finds_the_kernels_of_its_part() -> None:
    """A setting that changed the type of a number would compile all again."""
    kinds: dict[str, set[str]] = {}
    for name in named():
        if (one := policy(name)).compiled:
            rule = one.to_compile().rule()
            kinds.setdefault(type(rule).__name__, set()).add(str(typeof(rule)))  # type: ignore[no-untyped-call]
    assert {name: len(found) for name, found in kinds.items()} == dict.fromkeys(kinds, 1)
    processors = {part for part, (_, nodes) in parts().items() if part != "shared" and not nodes}
    assert processors == {name.removesuffix("Rule").lower() for name in kinds} | {"slack"}
    assert {"list-nodes", "plan-nodes"} <= parts().keys()


def _rule() -> Any:
    class Rule(NamedTuple):
        size: npt.NDArray[np.int64]

    return Rule


def test_classes_of_one_name_are_not_taken_for_each_other(tmp_path: Path) -> None:
    def kernel(rule: Any) -> int:
        return 0

    def name(own: Callable[..., Any], sizes: object) -> str:
        return Kept(kernel, Shipped(tmp_path), tmp_path)._name((typeof(own(sizes)),))  # type: ignore[no-untyped-call]

    one, other = _rule(), _rule()
    other.__module__ = "elsewhere"
    sizes = np.zeros(1, np.int64)
    assert name(one, sizes) == name(one, sizes.copy())
    assert len({name(one, sizes), name(other, sizes), name(one, np.zeros(1))}) == 3


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write(tmp_path / "new" / "a", b"1")
    write(tmp_path / "new" / "a", b"2")
    assert [path.read_bytes() for path in (tmp_path / "new").iterdir()] == [b"2"]
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="file"):
        write(tmp_path / "file" / "a", b"1")


def test_what_cannot_be_kept_is_compiled_all_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()

    @jit
    def one_more(number: int) -> int:
        return number + 1

    one_more._cache = Kept(one_more.py_func, Shipped(tmp_path), tmp_path / "file" / "kernels")  # type: ignore[attr-defined]
    assert (one_more(1), one_more(True)) == (2, 2)
    (line,) = capsys.readouterr().err.splitlines()  # once, not for each kernel
    where = f"{tmp_path}/file/kernels (Not a directory)"
    assert line == f"Compiled kernels cannot be kept in {where}: the next run compiles them again."


def test_only_what_this_user_wrote_and_is_whole_is_loaded(tmp_path: Path) -> None:
    """It is code: a file that others can write, a link, or one that a crash cut short, is as if it were not there."""
    folder = tmp_path / "kernels"
    path = folder / "a.nbc"
    write(path, sealed(CODE))
    assert own(path) == sealed(CODE)
    for damaged in (b"", sealed(CODE)[:-1], sealed(CODE) + b"x"):
        path.write_bytes(damaged)
        assert own(path) is None
    write(path, sealed(CODE))
    path.chmod(0o666)
    assert own(path) is None
    path.chmod(0o644)
    folder.chmod(0o777)
    assert own(path) is None
    folder.chmod(0o755)
    (folder / "b.nbc").symlink_to(path)
    assert own(folder / "b.nbc") is None
    if os.geteuid() == 0:
        os.chown(path, 65534, 65534)
        assert own(path) is None
