"""The documentation as a site: it builds strictly, its menu is whole, it asks for nothing outside, its search finds."""

from __future__ import annotations

import lzma
import os
import re
import subprocess
from pathlib import Path

import pytest

import dovetail
from docs.figures import figures
from docs.sample import PATH, text
from docs.site import build, pages, run
from tests.conftest import ROOT, why
from tests.docs.test_docs import PAGES, blocks
from tests.reports.browser import chromium, needs_chromium, opened

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
WORDS = 600
"""A tutorial has fewer words than this, those of its blocks included."""


def test_every_page_is_in_the_menu_once() -> None:
    menu = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:")[2]
    listed = re.findall(r": ([\w./-]+\.md)$", menu, re.MULTILINE)
    assert len(listed) == len(set(listed))
    assert {str(page.relative_to(ROOT)) for page in PAGES} <= set(listed)


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_a_tutorial_is_short_and_runs(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) < WORDS
    assert any({"python", "console"} & {block.language} for block in blocks(page))


def test_there_are_three_tutorials() -> None:
    assert [page.stem for page in TUTORIALS] == ["first-policy", "notebook", "own-log", "slurm"]


def test_the_reference_has_every_name() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    listed = re.findall(r"^::: dovetail\.(\w+)$", page, re.MULTILINE)
    assert sorted([*listed, "__version__", "optimize"]) == sorted(dovetail.__all__)


def test_the_glossary_has_every_word_of_the_architecture_in_order() -> None:
    def first_column(name: str, heading: str) -> list[str]:
        part = (ROOT / name).read_text(encoding="utf-8").partition(heading)[2].partition("\n#")[0]
        return [cell.strip() for cell in re.findall(r"^\| ([^|]+) \|", part, re.MULTILINE)][1:]

    rows = first_column("docs/glossary.md", "# Glossary")
    assert rows == sorted(rows, key=str.lower)
    known = {word for row in rows for word in row.lower().split(", ")}
    words = {word for row in first_column("ARCHITECTURE.md", "## Words") for word in row.lower().split(", ")}
    assert len(words) > 20
    assert words - known == set()


def test_the_policy_of_the_tutorial_is_the_example() -> None:
    example = (ROOT / "examples" / "narrow_first.py").read_text(encoding="utf-8").rstrip()
    page = ROOT / "docs" / "tutorials" / "first-policy.md"
    assert [block.text for block in blocks(page) if "class NarrowFirst" in block.text] == [example]


@pytest.mark.slow
def test_figures_are_what_the_code_draws() -> None:
    """`python docs/figures.py` draws them again."""
    drawn = figures()
    assert sorted((ROOT / "docs" / "figures").glob("six-jobs-*.svg")) == sorted(drawn)
    assert [path.name for path, drawing in drawn.items() if path.read_text(encoding="utf-8") != drawing] == []


@pytest.mark.slow
def test_the_sample_log_is_what_the_code_writes() -> None:
    """`python docs/sample.py` writes it again."""
    assert lzma.decompress(PATH.read_bytes()).decode() == text()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site: where `.ci/run` has built it, else built here."""
    pytest.importorskip("mkdocs", reason=why("mkdocs"))
    if built := os.environ.get("DOVETAIL_SITE"):
        return Path(built)
    out = tmp_path_factory.mktemp("site")
    build(out)
    return out


@needs_chromium
def test_search_works_from_a_folder_and_nothing_comes_from_outside(site: Path) -> None:
    with chromium() as browser:
        with opened(browser, site / "index.html") as first:
            first.page.locator("input.md-search__input").click()
            first.page.keyboard.type("shadow")
            first.page.locator(".md-search-result__link").first.wait_for(timeout=20_000)
            assert "What others call EASY" in first.page.locator(".md-search-result__list").inner_text()
        asked, complaints = [*first.requests], [*first.complaints]
        for name in ("docs/tutorials/first-policy.html", "docs/api.html", "reproductions/windows/index.html"):
            with opened(browser, site / name, width=390) as seen:
                assert seen.page.evaluate("[...document.images].every(image => image.naturalWidth > 0)"), name
                wide = seen.page.evaluate("document.documentElement.scrollWidth")
                assert wide <= 390, f"{name} is {wide} pixels wide on a telephone"
            asked += seen.requests
            complaints += seen.complaints
    assert [address for address in asked if not address.startswith(("file:", "data:", "blob:"))] == []
    assert complaints == []


@pytest.mark.slow
def test_every_page_is_there_and_names_nothing_outside_to_load(site: Path) -> None:
    for page in pages():
        name = page.relative_to(ROOT).with_suffix(".html")
        made = site / (name.with_name("index.html") if page.name == "README.md" else name)
        loaded = re.findall(
            r'<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)="(https?:[^"]+)"', made.read_text("utf-8")
        )
        assert loaded == [], made


@pytest.mark.slow
def test_a_broken_link_stops_the_build(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("mkdocs", reason=why("mkdocs"))
    (tmp_path / "README.md").write_text("# Here\n\n[nowhere](nowhere.md) [no such place](#there)\n", encoding="utf-8")
    with pytest.raises(subprocess.CalledProcessError):
        run(tmp_path, tmp_path.parent / "out")
    assert "nowhere.md" in capfd.readouterr().err
