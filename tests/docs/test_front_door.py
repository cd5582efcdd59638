"""Documentation, README and examples import from `dovetail` alone; the notebook runs and is as it was committed."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import dovetail
from tests.conftest import ROOT
from tests.docs.notebook import NOTEBOOK, read, run
from tests.docs.test_docs import PAGES, blocks

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))


def sources(path: Path) -> Iterator[str]:
    """The Python in a page, a notebook or an example."""
    if path.suffix == ".py":
        yield path.read_text(encoding="utf-8")
    elif path.suffix == ".ipynb":
        yield from (cell.source for cell in read().cells if cell.cell_type == "code")
    else:
        for block in blocks(path):
            if block.language == "python":
                lines = block.text.splitlines()
                typed = [line[4:] for line in lines if line.startswith((">>> ", "... "))]
                yield "\n".join(typed if ">>>" in block.text else lines)


def through_the_wall(source: str) -> list[str]:
    """What is imported from a room behind the front door, or is not shown at it."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found += [one.name for one in node.names if one.name.startswith("dovetail.")]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "dovetail":
            known = node.module == "dovetail"
            found += [one.name for one in node.names if not known or one.name not in dovetail.__all__]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "dt":
            found += [] if node.attr in dovetail.__all__ else [f"dt.{node.attr}"]
    return found


@pytest.mark.parametrize("path", [*PAGES, *EXAMPLES, NOTEBOOK], ids=lambda path: str(path.relative_to(ROOT)))
def test_all_comes_through_the_front_door(path: Path) -> None:
    assert [name for source in sources(path) for name in through_the_wall(source)] == []


def test_the_wall_is_seen() -> None:
    source = "import dovetail.model.plan\nfrom dovetail import metrics, Plan\nfrom dovetail.api import read\ndt.engine"
    assert sorted(through_the_wall(source)) == ["dovetail.model.plan", "dt.engine", "metrics", "read"]
    assert sum(1 for page in PAGES for _ in sources(page)) > 20


def test_the_first_result_takes_five_lines() -> None:
    first = next(cell.source for cell in read().cells if cell.cell_type == "code")
    assert len(first.splitlines()) <= 5


@pytest.mark.slow
def test_the_notebook_runs_and_says_what_is_committed() -> None:
    """Texts and tables are equal; pictures are there. `python -m tests.docs.notebook` makes it anew."""

    def shown(notebook: object) -> list[dict[str, str]]:
        outputs = [one for cell in notebook.cells if cell.cell_type == "code" for one in cell.outputs]  # type: ignore[attr-defined]
        return [{kind: "" if kind == "image/png" else text for kind, text in one["data"].items()} for one in outputs]

    committed = shown(read())
    assert sum("image/png" in one for one in committed) == 2
    assert shown(run(read())) == committed
