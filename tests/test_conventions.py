"""What people and machines expect at the top of a repository: there, valid, and of this version."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from dovetail.version import __version__
from tests.conftest import ROOT

FORMS = [*(ROOT / ".github/ISSUE_TEMPLATE").glob("[!c]*.yml")]
SCHEMAS = {
    "citation-file-format": [ROOT / "CITATION.cff"],
    "github-workflows": [*(ROOT / ".github/workflows").glob("*.yml")],
    "github-issue-forms": FORMS,
    "github-issue-config": [ROOT / ".github/ISSUE_TEMPLATE/config.yml"],
}
"""What each file must obey; the schemas come with the tool."""


@pytest.mark.parametrize("schema", SCHEMAS)
def test_files_for_others_obey_their_schemas(schema: str, tmp_path: Path) -> None:
    assert SCHEMAS[schema]
    command = [str(Path(sys.executable).with_name("check-jsonschema")), "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*command, *map(str, SCHEMAS[schema])], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    bad = tmp_path / "bad.yml"
    bad.write_text("nothing: that it knows\n")
    assert subprocess.run([*command, str(bad)], capture_output=True).returncode == 1


def test_the_citation_is_of_this_version_and_licence() -> None:
    text = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert re.search(rf"^version: {re.escape(__version__)}$", text, re.MULTILINE)
    assert re.search(r"^license: Apache-2.0$", text, re.MULTILINE)


def test_the_workflow_runs_what_runs_here() -> None:
    text = (ROOT / ".github/workflows/ci.yml").read_text(encoding="utf-8")
    assert "      - run: .ci/run\n" in text


def test_the_container_takes_what_is_locked() -> None:
    """The tools come by the same script as everybody's; what is installed by them is constrained."""
    text = (ROOT / "packaging/Containerfile").read_text(encoding="utf-8").replace("\\\n", "")
    assert "RUN ./setup /opt/tools " in text
    assert [
        line for line in text.splitlines() if "pip install" in line and "--constraint requirements.lock" not in line
    ] == []


def test_spack_is_told_what_the_project_asks_for() -> None:
    """But for the extras that need what Spack does not have."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    asked = [
        *project["project"]["dependencies"],
        *extras["studies"],
        *extras["dask"],
        *project["build-system"]["requires"],
    ]
    text = (ROOT / "packaging/spack/packages/py_dovetail_hpc/package.py").read_text(encoding="utf-8")
    told = re.findall(r'depends_on\("py-(\S+)@(\S+):"', text)
    numbers = [
        (one.name, tuple(map(int, next(iter(one.specifier)).version.split(".")))) for one in map(Requirement, asked)
    ]
    assert sorted((name, Version(least)) for name, least in told) == sorted(
        (name, Version(".".join(map(str, number)))) for name, number in numbers
    )
    assert f'version("{__version__}")' in text


HIDDEN = """
import os, sys
sys.modules["resource"] = None
del os.sched_getaffinity
from dovetail.cli.main import main
main()
"""


@pytest.mark.slow
def test_it_runs_where_the_system_tells_less(tmp_path: Path) -> None:
    """macOS has no sched_getaffinity, Windows no resource either: a replay and a study run."""

    def run(*words: str, code: str = HIDDEN) -> str:
        done = subprocess.run([sys.executable, "-c", code, *words], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("workload", "generate", "log.swf", "--jobs", "300", "--processors", "32")
    assert json.loads(run("replay", "log.swf", "--json"))["peak_mb"] is None
    told = json.loads(run("replay", "log.swf", "--json", code="from dovetail.cli.main import main; main()"))
    assert told["peak_mb"] > 10
    (tmp_path / "study.toml").write_text('name = "s"\npolicies = ["easy", "list-saf"]\n[[traces]]\npath = "log.swf"\n')
    run("study", "run", "study.toml", "--workers", "1")
    assert "list-saf" in run("study", "results", "study.store")
