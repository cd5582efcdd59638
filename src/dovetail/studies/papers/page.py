"""What a reproduction is made of and what it makes: kept runs in, a page in Markdown with its pictures out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any, Final

from dovetail.errors import InputError
from dovetail.studies.store import Store
from dovetail.studies.task import Task

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LOGS: Final = (
    "The logs are from the Parallel Workloads Archive (Feitelson, Tsafrir and Krakov, Experience with using the"
    " Parallel Workloads Archive, JPDC 74(10), 2014)."
)


@dataclass(frozen=True)
class Runs:
    """What a page is made from: the folder of the logs, and a study's tasks with the store that has their runs."""

    traces: Path
    store: Store
    tasks: Sequence[Task] = ()

    def log(self, name: str) -> Path:
        """The path of a log in the folder. InputError says where to get one that is not there."""
        return log_at(self.traces, name)


@dataclass(frozen=True)
class Page:
    """A page, its pictures by file name, and what to say about it in one line and in JSON."""

    text: str
    summary: str
    facts: Mapping[str, Any]
    pictures: Mapping[str, str] = field(default_factory=dict)


def log_at(traces: Path, name: str) -> Path:
    """The path of `papers/...` or `archive/...` in the folder of the logs; InputError says where to get it."""
    path = traces / name
    if path.is_file():
        return path
    rule = "no such log: set --traces or DOVETAIL_TRACES to a folder with papers/ and archive/; docs/papers.md says"
    raise InputError(path, 0, f"{rule} where each log comes from (`dovetail workload fetch` gets those of the archive)")


def made_with(name: str) -> str:
    """The command that writes a page, to stand on it."""
    return f"```\ndovetail papers run {name}\n```"


def filled(parts: Sequence[str]) -> str:
    """Parts as one Markdown text with its paragraphs filled to one width, whatever was put into them."""
    fixed = ("|", "- ", "#", "```", "![")
    blocks = [block.strip() for part in parts for block in part.split("\n\n") if block.strip()]
    return "\n\n".join(b if b.startswith(fixed) else fill(b, 110, break_on_hyphens=False) for b in blocks) + "\n"


def grid(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def bullets(lines: Sequence[str]) -> str:
    """A list in Markdown."""
    return "\n".join(f"- {line}" for line in lines)


@dataclass(frozen=True)
class Statement:
    """What a paper says of a figure in words, our numbers for it, and whether it holds: yes, in part, or no."""

    text: str
    ours: str
    holds: bool | str

    @property
    def verdict(self) -> str:
        return self.holds if isinstance(self.holds, str) else "yes" if self.holds else "no"


def stated(source: str, said: Sequence[Statement]) -> str:
    """Statements as a table."""
    rows = [[one.text, one.ours, one.verdict if one.verdict == "yes" else f"**{one.verdict}**"] for one in said]
    return grid([source, "ours", "holds"], rows)


def facts_of(said: Sequence[Statement]) -> dict[str, int]:
    """How many statements there are and how they fare, for JSON."""
    return {"statements": len(said), **{v.replace(" ", "_"): _many(said, v) for v in ("yes", "in part", "no")}}


def held(said: Sequence[Statement]) -> str:
    """The same in one line."""
    part = _many(said, "in part")
    return f"{_many(said, 'yes')} of {len(said)} statements hold" + (f", {part} in part" if part else "")


def _many(said: Sequence[Statement], verdict: str) -> int:
    return sum(one.verdict == verdict for one in said)


def picture(draw: Callable[[], Figure], name: str, label: str) -> str:
    """A figure as the text of an SVG file: the same bytes each time."""
    from dovetail.reports.style import settings, svg

    with settings():
        text = svg(draw(), name, label)
    # A file of its own has no style sheet, and its reader may have a dark page behind it.
    root = (
        '<svg xmlns="http://www.w3.org/2000/svg" font-family="DejaVu Sans, Verdana, sans-serif"'
        ' stroke-linejoin="round" stroke-linecap="butt" style="background:#ffffff" '
    )
    return text.replace("<svg ", root, 1) + "\n"
