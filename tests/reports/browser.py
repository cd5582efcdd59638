"""A real browser for tests of pages: Chromium, offline, with everything written down that a page must not do."""

from __future__ import annotations

import base64
import hashlib
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request, sync_playwright

from dovetail.reports.gantt import Fragment
from tests.conftest import needs

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), ""
)

needs_chromium = needs("browser", bool(CHROMIUM))

_ARGUMENTS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip


@dataclass(frozen=True)
class Seen:
    """A page, and what it did that a self-contained page does not do."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    """Warnings and errors on the console, among them violations of the security policy, and uncaught exceptions."""
    dialogs: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    """Addresses that it asked for, without its own."""

    def is_quiet(self) -> bool:
        return not (self.complaints or self.dialogs or self.requests)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window. One at a time: playwright has one event loop per thread."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(
    browser: Browser,
    file: Path,
    width: int = 1280,
    height: int = 900,
    before: str = "",
    fragment: str = "",
    **settings: Any,
) -> Iterator[Seen]:
    """A file on the screen. Nothing is forbidden, only written down. `before` runs before the page's own script;
    `fragment` is the part of the address that begins with #."""
    page = browser.new_page(viewport={"width": width, "height": height}, **settings)
    seen = Seen(page)
    own = file.resolve().as_uri()

    def on_console(said: ConsoleMessage) -> None:
        if said.type in ("warning", "error"):
            seen.complaints.append(said.text)

    def on_request(request: Request) -> None:
        if request.url.partition("#")[0] != own:
            seen.requests.append(request.url)

    def on_dialog(dialog: Dialog) -> None:
        seen.dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("console", on_console)
    page.on("pageerror", lambda error: seen.complaints.append(str(error)))
    page.on("request", on_request)
    page.on("dialog", on_dialog)
    if before:
        page.add_init_script(before)
    try:
        page.goto(own + fragment)
        yield seen
    finally:
        page.close()


def page_around(*fragments: Fragment) -> str:
    """The least page that holds fragments, with the security policy of a real one."""
    script, style = fragments[0].script, fragments[0].style
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; img-src data:"
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Test</title>'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        f"<style>body {{ background: #fff; margin: 16px }}\n{style}</style></head>"
        f"<body>{''.join(fragment.html for fragment in fragments)}<script>{script}</script></body></html>"
    )


def written(folder: Path, *fragments: Fragment) -> Path:
    """A file with the fragments in a page of their own."""
    page = folder / "page.html"
    page.write_text(page_around(*fragments), encoding="utf-8")
    return page
