"""A page of sections: headlines, then words, tables and pictures, as one HTML file that needs nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from dovetail.reports.dark import themed_svg
from dovetail.reports.figures import Picture
from dovetail.reports.page import filled
from dovetail.reports.sheets import Sheet
from dovetail.units import printable


@dataclass(frozen=True)
class Section:
    """One part of the page."""

    title: str
    words: Sequence[str]
    """What it shows, in a sentence or two each."""
    sheets: tuple[Sheet, ...] = ()
    pictures: tuple[Picture, ...] = ()
    folded: tuple[Sheet, ...] = ()
    """Tables in a fold."""


def page(
    title: str,
    first: Sequence[str],
    headlines: Sequence[str],
    words: Sequence[str],
    sections: Iterable[Section],
    *,
    warnings: Sequence[str] = (),
    notes: Sequence[str] = (),
    thanks: Sequence[str] = (),
    command: str = "",
    provenance: Mapping[str, str],
) -> str:
    """The page as HTML. `first`: what must be read before the headlines."""
    return filled(
        "sections.html.j2", title=title, first=first, headlines=headlines, words=words, warnings=warnings, notes=notes,
        sections=[_themed(section) for section in sections], thanks=thanks, command=printable(command, 10_000),
        provenance=provenance,
    )  # fmt: skip


def _themed(section: Section) -> Section:
    pictures = (replace(one, svg=themed_svg(one.svg)) for one in section.pictures)
    return replace(section, pictures=tuple(pictures))
