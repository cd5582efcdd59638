"""What is installed and shipped: pinned by hash, under licences that we know, and listed."""

from __future__ import annotations

import json
import re
import tomllib
from importlib.metadata import PackageNotFoundError, requires, version
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from docs.sbom import PATH, bill, closure, licences, locked, text
from tests.conftest import ROOT

LOCKS = ("requirements.lock", "requirements.uv.lock", ".ci/cplex.lock")
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pinned(name: str) -> dict[str, str]:
    """The version of each package of a lock file. Each has a hash, or the file is no lock."""
    lines = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    found: dict[str, str] = {}
    for line in (line for line in lines if line and not line.lstrip().startswith("#")):
        package = re.fullmatch(r"([A-Za-z0-9._-]+)==([^\s;]+)( ;[^-]*)?((?: +--hash=sha256:[0-9a-f]{64})+) *", line)
        assert package, f"{name}: not pinned by hash: {line[:80]}"
        found[canonicalize_name(package[1])] = package[2]
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_locks_pin_by_hash(name: str) -> None:
    assert pinned(name)


def test_the_lock_has_all_that_the_project_asks_for() -> None:
    lock, project = pinned("requirements.lock"), PROJECT["project"]
    groups = [
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *PROJECT["dependency-groups"].values(),
    ]
    for one in (one for group in groups for one in group):
        asked = Requirement(one)
        assert asked.specifier.contains(lock[canonicalize_name(asked.name)]), one
    assert Requirement(PROJECT["build-system"]["requires"][0]).specifier.contains(lock["hatchling"])


def test_nothing_is_installed_without_a_hash() -> None:
    """But Dovetail itself, by what is installed already."""
    seen = 0
    for script in ("setup", ".ci/run"):
        text = (ROOT / script).read_text(encoding="utf-8")
        for line in re.findall(r"^(?!#).*(?:\bpip\"? install|\$\{uv\[@\]\}).*$", text, re.MULTILINE):
            if line.startswith("uv=("):  # the beginning of the commands below it
                continue
            lock = re.search(r"--require-hashes -r (\S+)$", line)
            assert (lock and lock[1] in LOCKS) or line.endswith("--no-deps --no-build-isolation -e ."), (
                f"{script}: {line}"
            )
            seen += 1
    assert seen == 4


PERMISSIVE = {
    "MIT", "MIT License", "MIT-CMU", "0BSD", "BSD", "BSD License", "BSD-2-Clause", "BSD-3-Clause",
    "BSD 2-Clause License", "3-Clause BSD License", "Apache-2.0", "Apache 2.0", "Apache Software License", "ISC",
    "ISC License", "ISC license", "ISC License (ISCL)", "PSF-2.0", "Python Software Foundation License", "Zlib",
    "CC0-1.0", "Apache-2.0 WITH LLVM-exception",
}  # fmt: skip
"""Licences under which a dependency may come with Dovetail, as packages write them."""
FOR_TOOLS = {"MPL-2.0", "Mozilla Public License 2.0 (MPL 2.0)"}
"""And those of tools: they are used here, and nothing of them is shipped."""
EXCEPTIONS = {
    "atheris": "a tool; its metadata says nothing, the file LICENSE in it is the Apache License 2.0",
}
"""Packages whose licence is known otherwise."""


def parts(licence: str) -> set[str]:
    """The licences in an expression of SPDX."""
    found = re.split(r" (?:AND|OR) ", licence)
    return {part.strip("()") for part in found} if len(found) > 1 else {licence}


def test_every_dependency_is_under_a_licence_that_we_know() -> None:
    versions, _ = locked()
    shipped = {component["name"] for component in bill()["components"]}
    wrong, seen = {}, set()
    for package in versions:
        try:
            found = {part for one in licences(package) for part in parts(one)}
        except PackageNotFoundError:  # for other platforms
            assert package not in shipped, f"{package} is not installed: run ./setup"
            continue
        seen.add(package)
        allowed = PERMISSIVE if package in shipped else PERMISSIVE | FOR_TOOLS
        if (not found or found - allowed) and package not in EXCEPTIONS:
            wrong[package] = sorted(found)
    assert wrong == {}, "say under EXCEPTIONS why, or do without"
    assert shipped <= seen
    assert set(EXCEPTIONS) <= set(versions) - shipped
    assert len(seen) > 100


def test_the_bill_of_materials_is_what_the_lock_gives() -> None:
    """`python docs/sbom.py` writes it again."""
    assert PATH.read_text(encoding="utf-8") == text()
    found = json.loads(text())
    refs = [component["bom-ref"] for component in found["components"]]
    assert len(refs) == len(set(refs))
    assert {one for each in found["dependencies"] for one in (each["ref"], *each["dependsOn"])} == {
        "dovetail-hpc",
        *refs,
    }
    assert all(component["licenses"] for component in found["components"])
    versions = pinned("requirements.lock")
    assert {component["name"]: component["version"] for component in found["components"]}.items() <= versions.items()


def brought(asked: list[str]) -> set[str]:
    """What these requirements bring along here, by what the installed packages say that they need."""
    found: set[tuple[str, str]] = set()
    todo = [(Requirement(one), "") for one in asked]
    while todo:
        one, extra = todo.pop()
        if one.marker is not None and not one.marker.evaluate({"extra": extra}):
            continue
        for wanted in ("", *one.extras):
            if (key := (canonicalize_name(one.name), wanted)) not in found:
                found.add(key)
                todo += [(Requirement(needed), wanted) for needed in requires(one.name) or []]
    return {name for name, _ in found}


def test_the_bill_has_what_an_install_brings_along() -> None:
    project, components = PROJECT["project"], bill()["components"]
    required = {component["name"] for component in components if component["scope"] == "required"}
    assert required == brought(project["dependencies"])
    for extra, asked in project["optional-dependencies"].items():
        told = {"name": "dovetail:extra", "value": extra}
        more = {component["name"] for component in components if told in component.get("properties", [])}
        assert more | required == brought(asked) | required, extra
    assert closure(["b"], {"a": {"b"}, "b": {"c"}, "c": {"d"}, "e": {"a"}}) == {"a", "b", "e"}


def test_what_is_tested_is_what_is_locked() -> None:
    """Else the bill and the licences are those of other versions."""
    assert {one["name"]: version(one["name"]) for one in bill()["components"]} == {
        one["name"]: one["version"] for one in bill()["components"]
    }
