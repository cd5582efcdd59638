"""What people and machines expect at the top of a repository: there, valid, and of this version."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

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
    """By the same script as everybody; nothing is installed beside it but Debian's packages."""
    text = (ROOT / "packaging/Containerfile").read_text(encoding="utf-8")
    assert "RUN ./setup /opt/dovetail\n" in text
    assert "pip install" not in text
