"""Takes the picture at the top of the README: the top of the page of the administrator's tutorial, in Chromium.

    python -m docs.screenshot

Fonts and browsers differ from machine to machine, so no test compares it: look at it, then commit it.
"""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

from docs.sample import PATH as SAMPLE

ROOT = Path(__file__).resolve().parent.parent
PICTURE = ROOT / "docs" / "figures" / "page.png"


def take(page: Path, picture: Path) -> None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        tab = browser.new_page(viewport={"width": 1100, "height": 760}, color_scheme="light")
        tab.goto(page.as_uri())
        tab.screenshot(path=picture)
        browser.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        log, page = Path(folder) / "sacct.parquet", Path(folder) / "page.html"
        for command in (
            ["workload", "import", str(SAMPLE), "-o", str(log), "--tz", "Europe/Berlin", "--processors", "64"],
            ["compare", str(log), "recorded", "easy", "conservative", "--no-open", "-o", str(page)],
        ):
            subprocess.run(["dovetail", *command], check=True)  # noqa: S603, S607
        take(page, PICTURE)
