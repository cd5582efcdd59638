"""The code behind a run is known by what it does: not by its comments, its docstrings, or where it lies."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dovetail.studies import identity
from dovetail.studies.grid import tasks_of
from dovetail.studies.identity import PACKAGE, code_hash, hash_of_files, worker_code
from dovetail.studies.spec import read_study
from dovetail.studies.store import Store
from dovetail.studies.task import Task, plain
from dovetail.studies.worker import run_batch
from tests.conftest import ROOT
from tests.studies.small import prepared, written


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of the package."""
    shutil.copytree(PACKAGE, tmp_path / "dovetail", ignore=shutil.ignore_patterns("__pycache__"))
    return tmp_path / "dovetail"


def of(tree: Path) -> str:
    return code_hash(tree / "studies" / "worker.py")


def edit(file: Path, old: str, new: str) -> None:
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def move(tree: Path, old: str, new: str) -> None:
    """Move a module, and its imports with it: `from dovetail.a.b import c` and `from dovetail.a import b [as c]`."""
    (tree / new).parent.mkdir(exist_ok=True)
    (tree / new).parent.joinpath("__init__.py").touch()
    (tree / old).rename(tree / new)
    (room, was), (there, now) = (("dovetail." + path[:-3].replace("/", ".")).rsplit(".", 1) for path in (old, new))
    for file in tree.rglob("*.py"):
        lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        for place, line in enumerate(lines):
            stripped = line.replace(f"from {room}.{was} import", f"from {there}.{now} import")
            if f"from {room} import {was}" in line:
                assert "," not in line
                alias = "" if " as " in line else f" as {was}"
                stripped = line.replace(f"from {room} import {was}", f"from {there} import {now}{alias}")
            lines[place] = stripped
        file.write_text("".join(lines), encoding="utf-8")


@pytest.mark.slow
def test_a_copy_is_the_same_code(tree: Path) -> None:
    assert of(tree) == worker_code()


@pytest.mark.slow
def test_comments_docstrings_and_other_verbs_make_no_difference(tree: Path) -> None:
    edit(tree / "kernels" / "passes" / "lists.py", "\n\n\n", "\n\n# why\n\n\n")
    edit(tree / "kernels" / "heap.py", '"""', '"""Otherwise put: ')
    edit(tree / "model" / "workload.py", '"""Columns that every workload has', '"""Otherwise put')
    edit(tree / "studies" / "worker.py", "    if times is None:\n", "    if (times  is  None):  # what for\n")
    edit(tree / "version.py", "0.2.0", "0.3.0")
    edit(tree / "studies" / "spec.py", "10_000", "10_001")
    edit(tree / "cli" / "study.py", "_SHOWN = 20", "_SHOWN = 21")
    assert of(tree) == worker_code()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("kernels/state.py", "kernels/state.py"),
        ("kernels/passes/lists.py", "kernels/listing.py"),
        ("io/parquet.py", "io/columns.py"),
        ("policies/published/solver.py", "policies/published/solver.py"),
        ("studies/store.py", "studies/shelf.py"),
    ],
)
def test_so_does_a_moved_file(tree: Path, old: str, new: str) -> None:
    move(tree, old, new)
    assert of(tree) == worker_code()  # and it is still followed:
    edit(tree / new, "from __future__ import annotations\n", "from __future__ import annotations\nMORE = 1\n")
    assert of(tree) != worker_code()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("kernels/heap.py", "return n + 1", "return n + 7"),
        ("units.py", "86_400", "86_401"),
        ("metrics/jobs.py", "10", "11"),
        ("optimize/window/cpsat.py", "1", "2"),
        ("io/swf.py", '"MaxJobs"', '"MaxJob"'),
        ("policies/lists.py", '"list-fcfs"', '"list-sjf"'),
        (
            "policies/published/daily.py",
            "delay_search, in_order,",
            "in_order as delay_search, delay_search as in_order,",
        ),
    ],
)
def test_an_edit_of_a_rule_does_not(tree: Path, file: str, old: str, new: str) -> None:
    edit(tree / file, old, new)
    assert of(tree) != worker_code()


@pytest.mark.slow
def test_a_name_from_another_module_is_another_thing(tree: Path) -> None:
    for name, many in (("one", 1), ("two", 2)):
        (tree / "kernels" / f"{name}.py").write_text(f"MANY = {many}\n")
    head = "from __future__ import annotations\n"
    edit(tree / "units.py", head, f"{head}from dovetail.kernels.one import MANY\nfrom dovetail.kernels import two\n")
    first = of(tree)
    edit(tree / "units.py", "one import MANY\nfrom dovetail.kernels import two", "two import MANY")
    edit(tree / "units.py", head, f"{head}from dovetail.kernels import one as two\n")
    assert of(tree) != first


@pytest.mark.slow
def test_all_that_a_worker_imports_is_followed(tmp_path: Path) -> None:
    """In a process of its own: after runs of several kinds, every module of ours that is loaded is hashed."""
    followed = identity.modules([PACKAGE / "studies" / "worker.py"], identity._Places(PACKAGE))
    names = {"dovetail." + ".".join(path.relative_to(PACKAGE).with_suffix("").parts) for path in followed}
    study = 'name = "x"\npolicies = ["easy", "conservative"]\nestimates = ["limit", "recent"]\nfeedback = true\n'
    store = Store(tmp_path / "s.store")
    tasks = prepared(written(tmp_path, study + "[[traces]]\ngenerate = {jobs = 30, processors = 4}\n"), store)
    script = f"""
import sys
from dovetail.studies.worker import run_batch
assert not [one["error"] for one in run_batch({str(store.path)!r}, {[plain(task) for task in tasks]!r}) if one["error"]]
print(*(name for name, module in sys.modules.items() if name.partition(".")[0] == "dovetail"))
"""
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True, cwd=ROOT)
    loaded = set(done.stdout.split())
    assert {"dovetail.engine.replay", "dovetail.metrics.energy", "dovetail.studies.worker"} <= loaded & names
    assert {name for name in loaded if name not in names and f"{name}.__init__" not in names} == {
        "dovetail",
        "dovetail.version",
    }
    assert not [
        name for name in names if name.startswith(("dovetail.cli", "dovetail.reports", "dovetail.studies.grid"))
    ]


def user_files(folder: Path) -> None:
    (folder / "pack").mkdir(parents=True)
    (folder / "mine.py").write_text(
        "from dovetail import Plan, Policy\nimport beside\nimport numpy\n"
        "class Mine(Policy):\n    def decide(self, state):\n        return Plan()\n"
    )
    (folder / "beside.py").write_text("def rule():\n    from pack.deep import more\n    return more\n")
    (folder / "pack" / "__init__.py").write_text("from .other import MANY\n")
    (folder / "pack" / "deep.py").write_text("more = 1\n")
    (folder / "pack" / "other.py").write_text("MANY = 1\n")
    (folder / "unrelated.py").write_text("x = 1\n")


@pytest.mark.parametrize(
    ("file", "matters"),
    [("mine.py", True), ("beside.py", True), ("pack/deep.py", True), ("pack/other.py", True), ("unrelated.py", False)],
)
def test_a_users_file_is_followed_to_what_lies_beside_it(tmp_path: Path, file: str, matters: bool) -> None:
    user_files(tmp_path / "a")
    user_files(tmp_path / "b")
    first = hash_of_files(f"{tmp_path}/a/mine.py:Mine")
    assert first == hash_of_files(f"{tmp_path}/b/mine.py:Mine") == hash_of_files(f"list:order={tmp_path}/b/mine.py:x")
    assert not hash_of_files("easy")
    said = set[str]()
    for text in ("[shares]\na = 1", "[priority]\na = 1", "[priority]\na = 2"):
        (tmp_path / "s.toml").write_text(text)
        said.add(hash_of_files(f"plan-af:favour={tmp_path}/s.toml,strength=2"))
        assert hash_of_files(f"list:order={tmp_path}/s.toml") in said
    assert len(said) == 3
    assert "" not in said
    changed = tmp_path / "b" / file
    text = changed.read_text()
    changed.write_text(f'"""What for."""\n{text}# why\n')
    assert hash_of_files(f"{tmp_path}/b/mine.py:Mine") == first
    changed.write_text(f"{text}changed = True\n")
    assert (hash_of_files(f"{tmp_path}/b/mine.py:Mine") != first) == matters
    changed.write_text("no Python (")
    assert (hash_of_files(f"{tmp_path}/b/mine.py:Mine") != first) == matters


def test_a_users_file_is_followed_into_dovetail_too(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text("from dovetail.io.archive import LOGS\n")
    places = identity._Places(PACKAGE, (tmp_path,))
    assert PACKAGE / "io" / "archive.py" in identity.modules([tmp_path / "mine.py"], places)


POLICIES = {
    "easy": False, "plan-af": False, "daily": False, "switch:plain=easy,mixed=easy,many=easy": False,
    "cp-af": True, "pcp21": True, "daily:search=cp": True, "daily:search=relax": True, "switch": True,
    "mine.py:Mine": True,
}  # fmt: skip


def test_the_solvers_version_is_in_the_name_where_it_decides(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "class Mine:\n    def decide(self, state):\n        raise NotImplementedError\n"
    (tmp_path / "mine.py").write_text(text)
    study = f'name = "x"\npolicies = {list(POLICIES)!r}\n[[traces]]\ngenerate = {{jobs = 9, processors = 4}}\n'
    path = written(tmp_path, study)

    def tasks() -> list[Task]:
        return tasks_of(read_study(path), path, lambda _: None)

    first = tasks()
    monkeypatch.setattr(identity, "version", lambda name: f"{name} of tomorrow")
    later = tasks()
    changed = {one.cell.policy: one.name != other.name for one, other in zip(first, later, strict=True)}
    assert changed == POLICIES
    assert {task.ortools for task in later} == {"", "ortools of tomorrow"}


def test_a_worker_with_another_solver_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(tmp_path / "s.store")
    study = 'name = "x"\npolicies = ["cp-af", "easy"]\n[[traces]]\ngenerate = {jobs = 9, processors = 4}\n'
    tasks = prepared(written(tmp_path, study), store)
    monkeypatch.setattr(identity, "version", lambda name: "0.0.1")
    solved, listed = run_batch(str(store.path), [plain(task) for task in tasks])
    assert "where this worker runs, it is 0.0.1" in solved["error"]
    assert not listed["error"]
