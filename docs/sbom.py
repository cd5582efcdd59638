"""The bill of materials that is in the wheel: `python docs/sbom.py` writes docs/dovetail.cdx.json, in CycloneDX 1.6.

It lists what an install brings along, with and without extras, in the versions of requirements.lock and under the
licences that the installed packages declare. Same lock, same bytes: it has no date and no random number.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterable, Mapping
from importlib.metadata import metadata
from pathlib import Path
from typing import Any, Final

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT: Final = Path(__file__).resolve().parent.parent
PATH: Final = ROOT / "docs" / "dovetail.cdx.json"
_PACKAGE: Final = re.compile(r"^(\S+)==([^\s;]+)(?:.*\n)+?((?:    # .*\n)+)", re.MULTILINE)
SPDX: Final = frozenset(("Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "MPL-2.0", "PSF-2.0"))
"""Words of older metadata that SPDX knows too."""
_CLASSIFIER: Final = "License :: OSI Approved :: "
_LONGEST: Final = 40
"""Of the name of a licence: some packages have all of its text in that place."""


def _said(package: str, field: str) -> list[str]:
    """What an installed package says in a field, which it may not have."""
    return [str(one) for one in metadata(package).get_all(field, [])]


def licences(package: str) -> list[str]:
    """What an installed package says its licence is: an expression of SPDX, else its own words and its classifiers."""
    if expression := _said(package, "License-Expression"):
        return expression
    own = _said(package, "License")
    if own and own[0] != "UNKNOWN" and len(own[0]) <= _LONGEST:
        return own
    return [one.removeprefix(_CLASSIFIER) for one in _said(package, "Classifier") if one.startswith(_CLASSIFIER)]


def locked() -> tuple[dict[str, str], dict[str, set[str]]]:
    """The version of each package of the lock, and which packages need it."""
    text = (ROOT / "requirements.lock").read_text(encoding="utf-8")
    found = _PACKAGE.findall(text)
    return {name: version for name, version, _ in found}, {name: set(via.split()) for name, _, via in found}


def closure(roots: Iterable[str], needed_by: Mapping[str, set[str]]) -> set[str]:
    """These packages and all that they need."""
    found = set(roots)
    while more := {name for name, by in needed_by.items() if by & found} - found:
        found |= more
    return found


def bill() -> dict[str, Any]:
    """The bill of materials."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    versions, needed_by = locked()
    direct = {"": project["dependencies"], **project["optional-dependencies"]}
    roots = {extra: {canonicalize_name(Requirement(one).name) for one in some} for extra, some in direct.items()}
    parts = {extra: closure(some, needed_by) for extra, some in roots.items()}
    refs = {name: f"pkg:pypi/{name}@{versions[name]}" for name in sorted(set().union(*parts.values()))}
    needs = {name: sorted(refs[other] for other in refs if name in needed_by[other]) for name in refs}
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": _itself(project)},
        "components": [_component(name, versions[name], ref, parts) for name, ref in refs.items()],
        "dependencies": [
            {"ref": project["name"], "dependsOn": sorted(refs[name] for name in set().union(*roots.values()))},
            *({"ref": refs[name], "dependsOn": needs[name]} for name in refs),
        ],
    }


def _itself(project: Mapping[str, Any]) -> dict[str, Any]:
    from dovetail.version import __version__

    return {
        "type": "application", "bom-ref": project["name"], "name": project["name"], "version": __version__,
        "description": "The wheel contains no code of others. Components are what an install brings along, in the"
        " versions that are tested (requirements.lock); an install may have later ones.",
        "licenses": [{"license": {"id": project["license"]}}],
    }  # fmt: skip


def _component(name: str, version: str, ref: str, parts: Mapping[str, set[str]]) -> dict[str, Any]:
    found: dict[str, Any] = {"type": "library", "bom-ref": ref, "name": name, "version": version, "purl": ref}
    found["scope"] = "required" if name in parts[""] else "optional"
    if expression := _said(name, "License-Expression"):
        found["licenses"] = [{"expression": expression[0]}]
    else:
        found["licenses"] = [{"license": {"id" if one in SPDX else "name": one}} for one in licences(name)]
    if name not in parts[""]:
        extras = [extra for extra, some in parts.items() if name in some]
        found["properties"] = [{"name": "dovetail:extra", "value": extra} for extra in extras]
    return found


def text() -> str:
    """The file."""
    return json.dumps(bill(), indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    PATH.write_text(text(), encoding="utf-8")
