"""The page: a Content as one HTML file that needs nothing else, and lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from dovetail.files import beside
from dovetail.metrics.catalog import METRICS
from dovetail.reports.columns import named
from dovetail.reports.dark import themed
from dovetail.reports.figures import Picture, drawable, least_wait, pictures
from dovetail.reports.page_data import Case, Content
from dovetail.reports.style import MARKS
from dovetail.reports.summary_text import summary
from dovetail.reports.tables import Table, judged, of_case, overview, split
from dovetail.units import duration, printable

if TYPE_CHECKING:
    from markupsafe import Markup

    from dovetail.reports.gantt import Fragment

MOST_ROWS: Final = 600
"""Rows that the tables of a page have in all: with pictures and Gantt charts it then stays below 5 MB."""
MOST_PICTURED: Final = 6
"""Cases that get pictures; the others have their tables."""


@dataclass(frozen=True)
class Section:
    """One case of a page."""

    id: str
    title: str
    facts: str
    plain: Table
    expert: Table
    base: str
    against: bool
    """Whether values can be set against the baseline's: it started all jobs."""
    pairing: str
    compared: bool
    confidence: str
    pictures: tuple[Picture, ...]
    expert_pictures: tuple[Picture, ...]
    remarks: tuple[str, ...]
    folded: str
    """What experts find in the fold, in a few words; empty: nothing."""


@dataclass(frozen=True)
class Gantt:
    """The charts of one case."""

    title: str
    fragment: Fragment


def write(content: Content, path: str | Path) -> None:
    """Write the page to a file: beside it first, then renamed, so that no reader sees half a page."""
    text = render(content)
    with beside(Path(path)) as new:
        new.write_text(text, encoding="utf-8")


def render(content: Content) -> str:
    """The page as HTML. Same content, same bytes."""
    gantt, cases = _gantt(content.cases), _few(content.cases)
    notes = [printable(note, 2_000) for note in content.notes]
    if gone := len(content.cases) - len(cases):
        notes.append(f"To keep this page small, {gone:,} of {len(content.cases):,} cases are not on it.")
    scripts = [gantt.fragment.script] if gantt else []
    return filled(
        "page.html.j2",
        title=named(content.title, 200),
        told=summary(content),
        overview=overview(cases) if len(cases) > 1 and not content.sentences else [],
        sections=[_section(at, case) for at, case in enumerate(cases, 1)],
        gantt=gantt,
        columns=[c for c in METRICS if any(c.key in entry.metrics for case in cases for entry in case.entries)],
        notes=notes,
        command=printable(content.command, 10_000),
        provenance={named(name): named(text, 400) for name, text in content.provenance.items()},
        thanks=[printable(text, 2_000) for text in content.thanks],
        styles=[gantt.fragment.style] if gantt else [],
        scripts=scripts,
    )


def filled(template: str, *, styles: Sequence[str] = (), scripts: Sequence[str] = (), **values: Any) -> str:
    """A page of one of our templates, with the style of all pages and no right to anything but its own scripts."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    room = files("dovetail.reports")
    loader = FunctionLoader(lambda name: room.joinpath(name).read_text("utf-8"))
    world = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, loader=loader)
    world.filters |= {"breakable": _breakable, "unbroken": _unbroken, "themed": themed}
    own = (room.joinpath("page.css").read_text("utf-8"), *styles)
    page = world.get_template(template)
    return page.render(marks=MARKS, styles=own, scripts=scripts, policy=_security(scripts), **values)


def _few(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The first cases, with no more than MOST_ROWS policies in all; always one."""
    rows = list(accumulate(len(case.entries) for case in cases))
    return tuple(case for at, case in enumerate(cases) if at == 0 or rows[at] <= MOST_ROWS)


def _breakable(name: str) -> Markup:
    """A name that a narrow column may break between its settings, and not at a hyphen."""
    from markupsafe import Markup, escape

    text = re.sub("([,:=])", r"\1<wbr>", str(escape(name)))
    return Markup(_HYPHENED.sub(r'<span class="word">\g<0></span>', text))  # noqa: S704 (escaped right here)


_HYPHENED: Final = re.compile(r"\b\w{1,12}(?:-\w{1,12}){1,2}\b")
"""A short word with a hyphen, as `list-reg`."""


def _unbroken(sentence: str) -> str:
    """A sentence whose lines do not end between a number and its unit."""
    return _UNIT.sub("\u00a0", sentence)


_UNIT: Final = re.compile(r"(?<=\d) (?=%|[smhd]\b|of \d)|(?<=\d of) (?=\d)|(?<=\d [dhm]) (?=\d+ [hms]\b)")
"""The blank between a number and its unit, in `2 of 3`, and in `1 h 5 m`: a line must not end there."""


def _security(scripts: Iterable[str]) -> str:
    """What the browser may do for this page: show it, run the scripts of just these bytes, and nothing else."""
    hashes = (base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in scripts)
    allowed = " ".join(f"'sha256-{text}'" for text in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:;"
        " base-uri 'none'; form-action 'none'"
    )


def _section(at: int, case: Case) -> Section:
    comparisons = [found for entry in case.entries for found in entry.versus.values()]
    span = f" over {duration(case.span_s)}" if case.span_s > 0 else ""
    plain, expert = split(of_case(case))
    compared = any(judged(entry) for entry in case.entries)
    drawn = tuple(pictures(case, f"c{at}")) if at <= MOST_PICTURED else ()
    shown = tuple(picture for picture in drawn if not picture.expert) or drawn
    return Section(
        id=f"case-{at}",
        title=named(case.title, 200),
        facts=f"{case.jobs:,} jobs{span}, {case.machine}",
        plain=plain,
        expert=expert,
        base=named(case.entries[0].policy) if case.entries else "",
        against=bool(case.entries) and not case.entries[0].unstarted,
        pairing=named(case.pairing) or "pairs",
        compared=compared,
        confidence=f"{100 * comparisons[0].confidence:g} %" if comparisons else "",
        pictures=shown,
        expert_pictures=tuple(picture for picture in drawn if picture not in shown),
        remarks=tuple(_remarks(at, case)),
        folded=_folded([head.text for head in expert.heads], compared),
    )


def _folded(heads: list[str], compared: bool) -> str:
    parts = [*heads, *(["statistics"] if compared else []), "more in words"]
    return f"{', '.join(parts[:-1])} and {parts[-1]}" if len(parts) > 1 else parts[0]


def _remarks(at: int, case: Case) -> Iterable[str]:
    yield from (printable(remark, 2_000) for remark in case.remarks)
    if at > MOST_PICTURED:
        yield f"To keep this page small, only its first {MOST_PICTURED} cases have pictures."
        return
    shown = drawable(case)
    if not shown:
        yield "Starts of jobs were not kept, so there are no pictures of waits, queue and cluster."
        return
    if any(entry.runs > 1 for entry in shown):
        yield "The table has means over runs. The pictures of waits, queue and cluster show one run of each policy."
    left = [entry for entry in case.entries if entry not in shown]
    if kept := ", ".join(named(entry.policy) for entry in left if entry.schedule is not None):
        yield f"More than {len(shown)} lines could not be told apart. Not drawn as lines: {kept}."
    if lost := ", ".join(named(entry.policy) for entry in left if entry.schedule is None):
        yield f"Starts of jobs were not kept, so not drawn as lines: {lost}."


def _gantt(cases: Iterable[Case]) -> Gantt | None:
    """Charts of the first case whose schedules were kept: the baseline's, and that of the least mean wait."""
    from dovetail.reports.gantt import Chart, fragment

    for case in cases:
        if first := next((entry for entry in case.entries if entry.schedule is not None), None):
            shown = [entry for entry in (first, least_wait(case)) if entry is not None]
            charts = [Chart(named(entry.policy), entry.schedule()) for entry in shown if entry.schedule is not None]
            return Gantt(named(case.title, 200), fragment(charts))
    return None
