"""Builds the documentation as a site, without a network and strictly: a broken link or anchor stops it.

    python docs/site.py OUT

Pages are the Markdown files of the repository, at the same places, so that each link is right in both.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("docs", "reproductions", "src")
BESIDE = {ROOT / "docs" / "iframe-worker.js", ROOT / "docs" / "site.css"}
"""Files that pages need and do not link to."""
FENCE = re.compile(r"^(```\w+) .*$", re.MULTILINE)
"""The opening of a block with marks for the tests, which are not for readers."""
LINK = re.compile(r"\]\(([^)\s#]+)[^)]*\)")


def pages() -> list[Path]:
    """All Markdown of the repository that is for readers."""
    return sorted([*ROOT.glob("*.md"), *(page for folder in FOLDERS for page in (ROOT / folder).rglob("*.md"))])


def linked(page: Path) -> set[Path]:
    """The files of the repository that a page shows or leads to."""
    links = LINK.findall(page.read_text(encoding="utf-8"))
    targets = {(page.parent / link).resolve() for link in links if "://" not in link}
    return {target for target in targets if target.is_file() and target.is_relative_to(ROOT)}


def gather(folder: Path) -> None:
    """Copy the pages and all that they link to. A link to a folder leads nowhere in a site: it becomes plain text."""
    for path in sorted({*BESIDE, *pages(), *(target for page in pages() for target in linked(page))}):
        copy = folder / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".md":
            shutil.copyfile(path, copy)
            continue
        text = FENCE.sub(r"\1", path.read_text(encoding="utf-8"))
        for label, link in re.findall(r"\[([^\]]*)\]\(([^)\s#:]+)\)", text):
            if (path.parent / link).is_dir() and not (path.parent / link / "README.md").exists():
                text = text.replace(f"[{label}]({link})", label)
        copy.write_text(text, encoding="utf-8")


def run(folder: Path, out: Path) -> None:
    """Build the pages of a folder. A warning is an error."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out.resolve())]
    settings = {**os.environ, "DOVETAIL_PAGES": str(folder), "NO_MKDOCS_2_WARNING": "1"}
    subprocess.run(command, cwd=ROOT, env=settings, check=True)  # noqa: S603


def build(out: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        gather(Path(folder))
        run(Path(folder), out)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    build(Path(sys.argv[1]))
