"""Runs the notebook of the examples and writes it with its outputs: `python -m tests.docs.notebook`."""

from __future__ import annotations

from typing import Any

import nbformat
from nbclient import NotebookClient

from tests.conftest import ROOT

NOTEBOOK = ROOT / "examples" / "first-steps.ipynb"


def read() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)  # type: ignore[no-untyped-call]


def run(notebook: Any) -> Any:
    """The same with new outputs, without what only the first run on a machine says, and when it ran."""
    client = NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False)
    client.execute(cwd=str(ROOT / "examples"))
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs = [one for one in cell.outputs if one.get("name") != "stderr"]
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    return notebook


if __name__ == "__main__":
    nbformat.write(run(read()), NOTEBOOK)  # type: ignore[no-untyped-call]
