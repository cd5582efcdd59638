"""Shipped kernels: used only where they are for what is here, and only if each is what was shipped."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from numba import typeof

from dovetail.engine.ahead import missing, parts
from dovetail.errors import InputError
from dovetail.kernels import kept, watch
from dovetail.kernels.announce import Teller, tell
from dovetail.kernels.compile import jit
from dovetail.kernels.kept import Kept, own, sealed, write
from dovetail.kernels.shipped import GENERIC, MANIFEST, OWN_CODE, Shipped, read_manifest
from dovetail.kernels.watch import Watch
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
    assert processors == {name.removesuffix("Rule").lower() for name in kinds} - {"slurm"} | {"slack"}
    assert "slurm-nodes" in parts()
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


@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize("dynamic", [True, False])
def test_only_what_is_the_same_everywhere_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, enabled: bool, dynamic: bool
) -> None:
    """Code with addresses of this process in it is not, and nothing where Numba says so."""
    monkeypatch.setattr(kept, "used", {})
    one = Kept(_rule, Shipped(tmp_path), tmp_path / "kernels")
    if not enabled:
        one.disable()
    compiled = SimpleNamespace(library=SimpleNamespace(has_dynamic_globals=dynamic), _reduce=lambda: ("part",) * 9)
    one.save_overload((typeof(1),), compiled)  # type: ignore[no-untyped-call]
    assert len(list(tmp_path.glob("kernels/*.nbc"))) == len(kept.used) == int(enabled and not dynamic)


class _Noted(Teller):
    def __init__(self) -> None:
        self.said: list[tuple[object, ...]] = []

    def begin(self, part: str, functions: int) -> None:
        self.said.append(("begin", part, functions))

    def done(self, functions: int) -> None:
        self.said.append(("done", functions))

    def end(self) -> None:
        self.said.append(("end",))


def test_what_takes_longer_than_a_second_is_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four functions are compiled for a kernel, each within it; then it is known how many there are."""
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    monkeypatch.setattr(watch, "time", clock)
    folder = tmp_path / "kernels-1"
    kernel = SimpleNamespace(_cache=Kept(_rule, Shipped(folder), folder), py_func=_rule, overloads={(1,): 1})
    told = SimpleNamespace(data={"dispatcher": kernel, "args": (1,)})
    for known, ends in ((0, (0.2, 0.4, 0.6, 0.8)), (0, (0.5, 1.5, 2.0, 2.5)), (5, (3.0, 4.0, 5.0, 6.0))):
        noted, clock.now = _Noted(), 0.0
        listener = Watch(Shipped(folder), folder)
        before = tell(noted)
        try:
            listener.on_start(told)
            for clock.now in ends:
                listener.on_start(told)
                listener.on_end(told)
            listener.on_end(told)
        finally:
            tell(before)
        late = [i + 1 for i, at in enumerate(ends) if at > 1]
        begun = [("begin", "the kernel _rule", known)] if late else []
        assert noted.said == [*begun, *(("done", i) for i in late), *([("end",)] if late else [])]
        assert listener.compiled == 5
        assert watch.functions_in(folder) == ({"the kernel _rule": 5} if late else {})


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    write(tmp_path / "new" / "a", b"1")
    write(tmp_path / "new" / "a", b"2")
    assert [path.read_bytes() for path in (tmp_path / "new").iterdir()] == [b"2"]
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="file"):
        write(tmp_path / "file" / "a", b"1")


def test_nothing_is_written_where_others_can_lead_it_elsewhere(tmp_path: Path) -> None:
    """A link under the name of a kernel is replaced, and in a folder of others nothing is written."""
    (tmp_path / "precious").write_bytes(b"1")
    write(tmp_path / "new" / "a", b"2")
    (tmp_path / "new" / "b").symlink_to(tmp_path / "precious")
    write(tmp_path / "new" / "b", b"3")
    assert (tmp_path / "precious").read_bytes() == b"1"
    assert (tmp_path / "new" / "b").read_bytes() == b"3"
    (tmp_path / "new").chmod(0o777)
    with pytest.raises(InputError, match="other users can write there"):
        write(tmp_path / "new" / "a", b"4")
    assert (tmp_path / "new" / "a").read_bytes() == b"2"


def _one_more(folder: Path) -> Any:
    """A kernel that is kept in a folder, as a new process sees it."""

    @jit
    def one_more(number: int) -> int:
        return number + 1

    one_more._cache = Kept(one_more.py_func, Shipped(folder), folder)  # type: ignore[attr-defined]
    return one_more


def test_what_cannot_be_kept_is_compiled_all_the_same(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setattr(kept, "lost", [])
    one_more = _one_more(tmp_path / "file" / "kernels")
    assert (one_more(1), one_more(True)) == (2, 2)
    assert len(kept.lost) == 2  # `dovetail warm` asks
    (line,) = capsys.readouterr().err.splitlines()  # once, not for each kernel
    why = f"{tmp_path}/file/kernels: cannot be made: Not a directory"
    assert line == f"Compiled kernels are not kept, so the next run compiles them again: {why}."


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kept kernel, of which nothing has been said."""
    monkeypatch.setattr(kept, "_said", set())
    path = tmp_path / "kernels" / "a.nbc"
    write(path, sealed("a.nbc", CODE))
    return path


def test_only_what_is_whole_is_loaded(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """It is code: cut short anywhere, changed, or put under another name, it is not loaded, and that is said."""
    whole = sealed("a.nbc", CODE)
    assert own(file) == whole
    assert capsys.readouterr().err == ""
    flipped = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    cut = [whole[:at] for at in range(len(whole))]
    for damaged in (*cut, *flipped, whole + b"x", bytes(len(whole)), CODE, sealed("b.nbc", CODE)):
        file.write_bytes(damaged)
        assert own(file) is None
    assert capsys.readouterr().err == f"The kernel {file} is damaged: it is compiled anew.\n"
    assert own(file.with_name("none.nbc")) is None
    assert capsys.readouterr().err == ""


def test_only_what_this_user_wrote_is_loaded(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = file.parent
    file.chmod(0o666)
    assert own(file) is None
    file.chmod(0o644)
    assert capsys.readouterr().err == (
        f"The kernel {file} is not loaded: another user can have written it. It is compiled anew.\n"
    )
    for mode in (0o775, 0o757):
        folder.chmod(mode)
        assert own(file) is None
    folder.chmod(0o755)
    assert capsys.readouterr().err == (
        f"The kernels in {folder} are not loaded: it must be your own, and chmod go-w.\n"
    )
    (folder / "b.nbc").symlink_to(file)
    assert own(folder / "b.nbc") is None
    (folder / "c.nbc").mkdir()
    assert own(folder / "c.nbc") is None
    link, room = capsys.readouterr().err.splitlines()
    assert "b.nbc cannot be read (Too many levels of symbolic links): it is compiled anew" in link
    assert "c.nbc cannot be read (Is a directory): it is compiled anew" in room
    if os.geteuid() == 0:
        os.chown(file, 65534, 65534)
        assert own(file) is None


@pytest.mark.parametrize("how", ["cut", "empty", "other", "folder"])
def test_a_damaged_kernel_is_made_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """As it happens: kept by one process, damaged, found by the next, and right for the one after it."""
    monkeypatch.setattr(kept, "lost", [])
    folder = tmp_path / how
    assert _one_more(folder)(1) == 2
    (path,) = folder.glob("*.nbc")
    good = path.read_bytes()
    if how == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes({"cut": good[:-9], "empty": b"", "other": b"other" * 99}[how])
    capsys.readouterr()
    again = _one_more(folder)
    assert (again(1), sum(again.stats.cache_hits.values())) == (2, 0)
    said = capsys.readouterr().err
    if how == "folder":  # it is not ours to delete: each run says so
        assert "Is a directory" in said
        assert "cannot be written: it is a folder" in said
        return
    assert said == f"The kernel {path} is damaged: it is compiled anew.\n"
    last = _one_more(folder)
    assert (last(1), sum(last.stats.cache_hits.values())) == (2, 1)
    assert capsys.readouterr().err == ""


def test_a_manifest_of_any_bytes_ships_nothing(folder: Path) -> None:
    (folder / MANIFEST).write_bytes(b"\xff\xfe{")
    assert read_manifest(HERE, folder).trouble == "manifest.json is damaged"
    (folder / MANIFEST).write_bytes(b"[" * 100_000)
    assert read_manifest(HERE, folder).trouble == "manifest.json is damaged"
