"""A file that a text of ours names is there."""

from __future__ import annotations

import re
import subprocess

from tests.conftest import ROOT

NAMED = re.compile(r"(?<![\w/.*{-])((?:[\w-]+/)*[\w-]+\.py)\b")
OTHERS = ("file.py", "mine.py", "my.py", "page.py", "figure.py", "path.py")
"""Files of a user's own, and those that each page may have."""


def test_files_that_texts_name_exist() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    known = {path for path in listed if path.endswith(".py")}
    ends = {"/".join(path.split("/")[at:]) for path in known for at in range(path.count("/") + 1)}
    texts = [
        path
        for path in listed
        if path.startswith(("src/", "docs/", "ARCH", "CONTRI")) and path.endswith((".py", ".md"))
    ]
    missing = [
        f"{path}: {name}"
        for path in texts
        for name in NAMED.findall((ROOT / path).read_text(encoding="utf-8"))
        if name not in ends and name.split("/")[-1] not in OTHERS
    ]
    assert missing == []
