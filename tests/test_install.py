"""The wheel and the source archive as others get them: what is in them, and that each installs in an environment with
nothing else, works without extras, and gives the same numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from dovetail.version import __version__
from tests.conftest import ROOT, TRACES, needs_traces
from tests.docs.test_docs import blocks, commands
from tests.golden.test_check_values import WAITS, rows

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("wheel")]
UV = str(Path(sys.executable).with_name("uv"))
LOCKED = ("--constraint", "requirements.lock", "--build-constraint", "requirements.lock")
NAME = f"dovetail_hpc-{__version__}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with both."""
    folder = tmp_path_factory.mktemp("dist")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    assert {path.name for path in folder.iterdir()} == {f"{NAME}.tar.gz", f"{NAME}-py3-none-any.whl"}
    return folder


@pytest.fixture(scope="module", params=[f"{NAME}-py3-none-any.whl", f"{NAME}.tar.gz"])
def bare(request: pytest.FixtureRequest, made: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with one of them and what it requires, without extras, in the versions of the lock."""
    venv = tmp_path_factory.mktemp("bare") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", venv], check=True)
    install = [UV, "pip", "install", "-q", "--python", str(venv / "bin" / "python"), *LOCKED]
    subprocess.run([*install, str(made / request.param)], cwd=ROOT, check=True)
    return venv


def committed() -> set[str]:
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True)
    return {name for name in listed.stdout.decode().splitlines() if (ROOT / name).exists()}


def test_the_wheel_has_the_package_and_nothing_else(made: Path) -> None:
    path = made / f"{NAME}-py3-none-any.whl"
    with zipfile.ZipFile(path) as wheel:
        found = set(wheel.namelist())
    about = ("METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE")
    expected = {name.removeprefix("src/") for name in committed() if name.startswith("src/dovetail/")}
    assert found == expected | {f"{NAME}.dist-info/{name}" for name in (*about, "sboms/dovetail.cdx.json")}
    assert path.stat().st_size < 1e6


def test_the_source_archive_is_the_checkout(made: Path) -> None:
    path = made / f"{NAME}.tar.gz"
    with tarfile.open(path) as archive:
        found = {name.partition("/")[2] for name in archive.getnames()}
    assert found == committed() | {"PKG-INFO"}
    assert path.stat().st_size < 6e6


def dovetail(venv: Path, room: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    return subprocess.run([venv / "bin" / "dovetail", *words], cwd=room, env=env, capture_output=True, text=True)


def test_the_commands_of_the_readme_run_without_extras(bare: Path, tmp_path: Path) -> None:
    """Where a page is asked for there is a table in its place, or an error, that say what to install."""
    if next(bare.glob("lib/*/site-packages/dovetail_hpc-*/direct_url.json")).read_text().count(".tar.gz"):
        return  # the same files, and the numbers below
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    ran = [argv[1:] for block in blocks(ROOT / "README.md") if block.language == "console" and not block.marks
           for argv, _ in commands(block) if argv[0] == "dovetail"]  # fmt: skip
    assert [argv[0] for argv in ran] == ["demo", "workload", "compare", "check", "replay"]
    for argv in ran:
        done = dovetail(bare, tmp_path, *argv)
        assert done.returncode == (2 if argv[0] == "compare" else 0), done.stderr
        assert ("'jinja2>=" in done.stdout + done.stderr) == (argv[0] in ("demo", "compare"))


@needs_traces
def test_the_numbers_are_those_of_the_checkout(bare: Path, tmp_path: Path) -> None:
    """Check values that came with the traces, and what this checkout gives, to the byte."""
    expected = {name: values for name, values in rows(WAITS, 1) if name in ("easy", "list-reg")}
    log = str(TRACES / "papers" / "KTH-SP2.swf.gz")
    asked = ("replay", log, "--policy", "easy", "--policy", "list-reg", "--json")
    here = subprocess.run([Path(sys.executable).with_name("dovetail"), *asked], check=True, capture_output=True).stdout
    lines = zip(here.splitlines(), dovetail(bare, tmp_path, *asked).stdout.splitlines(), strict=True)
    for ours, theirs in ((json.loads(one), json.loads(other)) for one, other in lines):
        found = theirs["metrics"]
        keys = zip(("mean_wait_s", "max_wait_s", "bsld", "awf_s"), "4044", strict=True)
        assert " / ".join(f"{found[key]:.{digits}f}" for key, digits in keys) == expected[theirs["policy"]]
        assert found == ours["metrics"]
        assert theirs["workload_sha256"] == ours["workload_sha256"]
