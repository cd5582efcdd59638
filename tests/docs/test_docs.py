"""The documentation is tried: its commands and Python blocks run, its links lead somewhere, its lists are complete."""

from __future__ import annotations

import ast
import contextlib
import doctest
import html
import io
import os
import re
import resource
import runpy
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main

from docs.site import pages
from dovetail.cli.main import app
from dovetail.engine.contract import check_policy
from dovetail.io import archive
from dovetail.kernels.passes.conservative import SWEEPS
from dovetail.policies.lists import ORDERS
from dovetail.policies.registry import aliases, policy
from tests.command import COMMAND, run
from tests.conftest import ROOT, TRACES, why

PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
OTHERS = [page for page in pages() if page not in PAGES]
LOG = TRACES / "archive" / "KTH-SP2-1996-2.swf.gz"
LOGS = [
    LOG,
    TRACES / "archive" / "KIT-FH2-2016-1.first25k.swf.gz",
    TRACES / "heterogeneous" / "eurora_jobs_merged.csv.gz",
]
MARKS = {"cell", "exact", "exact-but-cpu", "network", "output", "page", "some", "traces"}


@dataclass(frozen=True)
class Block:
    """A fenced block of a page: its language, its marks (see CONTRIBUTING.md), its text and its line."""

    language: str
    marks: frozenset[str]
    text: str
    line: int


def blocks(page: Path) -> Iterator[Block]:
    inside: list[str] | None = None
    language, marks = "", frozenset[str]()
    first = 0
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        if not line.startswith("```"):
            if inside is not None:
                inside.append(line)
        elif inside is None:
            language, _, rest = line[3:].strip().partition(" ")
            marks = frozenset(rest.split())
            inside, first = [], number + 1
        else:
            yield Block(language, marks, "\n".join(inside), first)
            inside = None
    assert inside is None, f"{page}: a block is not closed"


def commands(block: Block) -> list[tuple[list[str], str]]:
    """The commands of a console block, each with the output printed below it."""
    found: list[tuple[list[str], list[str]]] = []
    for line in block.text.splitlines():
        if line.startswith("$ "):
            found.append((shlex.split(line[2:]), []))
        else:
            found[-1][1].append(line)
    return [(argv, "\n".join(output)) for argv, output in found]


def tidy(output: str, but_cpu: bool) -> list[str]:
    """Lines without blanks at their ends and without what only a first run says; perhaps without the last column."""
    lines = [line.rstrip() for line in output.splitlines() if not line.startswith("Compiling")]
    lines = "\n".join(lines).strip("\n").splitlines()
    return [re.sub(r"%\s+\d+\.\d\d$", "%", line) if but_cpu else line for line in lines]


def parsed(argv: list[str]) -> None:
    """Verb, arguments and options exist; nothing is run."""
    command: Any = typer.main.get_command(app)
    rest = argv[1:]
    while hasattr(command, "commands") and not rest[0].startswith("-"):
        assert rest[0] in command.commands, f"no verb {rest[0]!r}"
        command, rest = command.commands[rest[0]], rest[1:]
    command.make_context("dovetail", list(rest))


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a user has it: no special terminal; and no screen on which a page would be opened."""
    for name in ("COLUMNS", "FORCE_COLOR", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("DOVETAIL_TRACES", str(TRACES))


def run_console(block: Block, where: str) -> None:
    for argv, printed in commands(block):
        if argv[0] != "dovetail":
            assert argv[0] in ("python3", ".", "pip"), f"{where}: nobody runs {argv[0]}"
            continue
        parsed(argv)
        if "network" in block.marks:
            continue
        done = run(*argv[1:], merged=True)
        assert done.returncode == 0, f"{where}: {shlex.join(argv)}\n{done.stdout}"
        if "some" in block.marks:
            assert set(tidy(printed, False)) <= set(tidy(done.stdout, False)), f"{where}: {shlex.join(argv)}"
        if block.marks & {"exact", "exact-but-cpu"}:
            but_cpu = "exact-but-cpu" in block.marks
            assert tidy(done.stdout, but_cpu) == tidy(printed, but_cpu), f"{where}: {shlex.join(argv)}"


def run_python(block: Block, where: str, folder: Path, names: dict[str, Any]) -> None:
    if ">>>" in block.text:
        test = doctest.DocTestParser().get_doctest(block.text, names, where, where, block.line)
        said: list[str] = []
        doctest.DocTestRunner().run(test, out=said.append, clear_globs=False)
        names.update(test.globs)  # blocks of a page go on from each other
        assert not said, "".join(said)
        return
    script = folder / f"block_{block.line}.py"
    script.write_text(block.text, encoding="utf-8")
    runpy.run_path(str(script))


def run_cell(block: Block, where: str, names: dict[str, Any]) -> str:
    """What a cell of a notebook shows: all that it prints, and the value of its last line."""
    tree = ast.parse(block.text, where)
    shown = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(io.StringIO()) as said:
        exec(compile(tree, where, "exec"), names)  # noqa: S102 - our own page
        if isinstance(shown, ast.Expr):
            value = eval(compile(ast.Expression(shown.value), where, "eval"), names)  # noqa: S307 - likewise
            print(repr(value) if value is not None else "")
    return said.getvalue()


def page_written(folder: Path) -> str:
    """The text of the newest page in a folder, without its tags."""
    newest = max(folder.rglob("*.html"), key=lambda path: path.stat().st_mtime_ns)
    return html.unescape(re.sub(r"<[^>]+>", " ", newest.read_text(encoding="utf-8")))


def words(text: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"\s+([:.,])", r"\1", text)).strip()


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    for log in LOGS if LOG.exists() else ():
        (tmp_path / log.name).symlink_to(log)
    (tmp_path / "logs").symlink_to(tmp_path)
    monkeypatch.setattr(archive, "cache_home", lambda: tmp_path)  # where `fetch` finds a log that it had once
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    said, left_out = "", False
    for block in blocks(page):
        where = f"{page.relative_to(ROOT)}:{block.line}"
        assert block.marks <= MARKS, f"{where}: unknown mark in {block.marks}"
        if "traces" in block.marks and not LOG.exists():
            left_out = True
            continue
        if "output" in block.marks:
            assert tidy(said, False) == tidy(block.text, False), where
        elif "page" in block.marks:
            assert words(block.text) in words(page_written(tmp_path)), where
        elif "cell" in block.marks:
            said = run_cell(block, where, names)
        elif block.language == "console":
            run_console(block, where)
        elif block.language == "python" and "network" in block.marks:
            compile(block.text, where, "exec")
        elif block.language == "python":
            run_python(block, where, tmp_path, names)
    if left_out:  # the other blocks of the page did run
        pytest.skip(why("traces"))


def prose(page: Path) -> str:
    """A page without its fenced blocks, in which a line may look like a heading or a link."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def slugs(page: Path) -> set[str]:
    """The anchors of a page, as GitHub and the site make them from its headings."""
    heads = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", [*PAGES, *OTHERS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = prose(page)
    for link in [*re.findall(r"\]\(([^)\s]+)\)", text), *re.findall(r'(?:src|srcset|href)="([^"]+)"', text)]:
        path, _, anchor = link.partition("#")
        if path.startswith(("https://", "http://")):
            continue
        target = (page.parent / path) if path else page
        assert target.exists(), f"{page.name} links to {link}"
        assert not anchor or anchor in slugs(target), f"{page.name} links to {link}"


def test_the_index_has_all_pages() -> None:
    index = (ROOT / "docs" / "README.md").read_text(encoding="utf-8")
    listed = [str(page.relative_to(ROOT / "docs")) for page in PAGES[1:]]
    assert [page for page in listed if page != "README.md" and f"]({page})" not in index] == []


def test_the_policy_of_the_page_is_the_example() -> None:
    example = (ROOT / "examples" / "shortest_first.py").read_text(encoding="utf-8").rstrip()
    assert len(example.splitlines()) <= 15
    shown = [block.text for block in blocks(ROOT / "docs" / "write-a-policy.md") if "class ShortestFirst" in block.text]
    assert shown == [example]


def test_the_readme_is_short_and_shows_a_page() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.split()) <= 725
    picture = ROOT / "docs" / "figures" / "page.png"
    assert text.index("docs/figures/page.png") < text.index("\n## ")
    assert picture.stat().st_size < 150_000


def test_the_order_on_the_page_is_the_example() -> None:
    example = (ROOT / "examples" / "waited_area.py").read_text(encoding="utf-8").rstrip()
    shown = [block.text for block in blocks(ROOT / "docs" / "write-a-policy.md") if "def waited_area" in block.text]
    assert shown == [example]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["shortest_first.py:ShortestFirst", "steadfast.py:Steadfast", "waited_area.py:waited_area"]
)
def test_examples_keep_the_contract(name: str) -> None:
    path = str(ROOT / "examples" / name)
    chosen = policy(f"easy:order={path}" if "waited" in name else path)
    assert [finding for finding in check_policy(chosen, cases=20) if finding.broken] == []


def test_every_name_and_option_is_documented() -> None:
    policies = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")
    wanted = [
        f"`{name}`"
        for name in (
            *ORDERS,
            *(name for name in aliases() if "-" not in name or name == "list-reg"),
            *SWEEPS,
            "order",
            "reserve",
            "backfill",
            "starve",
        )
    ]
    assert [name for name in wanted if name not in policies] == []
    replay: Any = typer.main.get_command(app)
    options = [name for option in replay.commands["replay"].params for name in option.opts if name.startswith("--")]
    assert len(options) > 10
    page = (ROOT / "docs" / "replay.md").read_text(encoding="utf-8")
    assert [name for name in options if f"`{name}`" not in page] == []


LOADED = """
import sys
from dovetail.cli.main import main
sys.argv = ["dovetail", "--help"]
try:
    main()
except SystemExit as done:
    assert not done.code
print([name for name in ("numba", "numpy", "polars", "rich", "zstandard") if name in sys.modules])
"""


@pytest.mark.slow
def test_help_is_light(tmp_path: Path) -> None:
    """No heavy library is loaded, and the answer takes less than 0.4 s of CPU, with byte code kept from run to run."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(tmp_path)
    command = [sys.executable, "-c", LOADED]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout.splitlines()
    assert "Commands:" in said
    assert said[-1] == "[]"
    spent = []
    for _ in range(3):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([str(COMMAND), "--help"], env=environment, check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    assert min(spent) < 0.4, spent
