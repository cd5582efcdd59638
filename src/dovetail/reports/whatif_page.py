"""What would have become of waits, as a page for a meeting: a headline for each alternative, then tables, pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from dovetail.files import beside
from dovetail.metrics.whatif import Answer, WhatIf
from dovetail.reports import whatif_figures as figures
from dovetail.reports.columns import named
from dovetail.reports.figures import Key, Picture
from dovetail.reports.sections import Section, page
from dovetail.reports.style import GREY, Stroke, settings, svg
from dovetail.reports.whatif_text import (
    CHANCE,
    UNSAID,
    answers_sheet,
    asked,
    groups_sheet,
    headline,
    more,
    trust_sheet,
    trusted,
    week_names,
    weeks_sheet,
    when,
)
from dovetail.units import printable
from dovetail.version import __version__

MOST_PICTURED: Final = 8
"""Alternatives that get pictures of their own, if they are not on a curve; all have their tables."""
MOST_LINES: Final = 6
"""That a picture of distributions has."""
CHANGED: Final = (
    Key("shorter", figures.SHORTER), Key("longer", figures.LONGER), Key("no difference beyond chance", figures.ALIKE),
)  # fmt: skip


def write(found: WhatIf, path: str | Path, command: str = "") -> None:
    """Write the page to a file, as a whole or not at all."""
    text = render(found, command)
    with beside(Path(path)) as new:
        new.write_text(text, encoding="utf-8")


def render(found: WhatIf, command: str = "") -> str:
    """The page as HTML. Same answers, same bytes."""
    workload = found.workload
    first, *warnings = trusted(found.trust)
    span = f", {text}" if (text := when(found)) else ""
    with settings():
        sections = list(_sections(found))
    past = workload.provenance
    about = {"Dovetail": __version__}
    about |= {"source": printable(past.source, 400), "source sha256": past.sha256} if past.sha256 else {}
    return page(
        f"What if: {named(workload.name)}, {len(workload):,} jobs{span}",
        [first], [headline(one) for one in found.answers], [*found.remarks, UNSAID], sections,
        warnings=warnings, notes=[f"Not followed: {printable(text, 400)}." for text in found.not_followed],
        command=command, provenance=about,
    )  # fmt: skip


def _sections(found: WhatIf) -> Iterator[Section]:
    yield Section("What becomes of waits", [CHANCE], (answers_sheet(found),), tuple(_overall(found)))
    curved = figures.curved(found)
    pictured = [one.waits.name for one in found.answers if one.waits.name not in curved][:MOST_PICTURED]
    for at, one in enumerate(found.answers):
        folded = [groups_sheet(one)] if one.groups else []
        folded += [weeks_sheet(found, one.weeks)] if one.weeks else []
        drawn = tuple(_pictures(found, one, at)) if one.waits.name in pictured else ()
        yield Section(asked(one), [headline(one), *more(one)], pictures=drawn, folded=tuple(folded))
    if found.trust is not None and found.trust.groups:
        title = "Mean waits, recorded and replayed"
        key = (Key("recorded", figures.RECORDED), Key("replayed with today's settings", figures.REPLAYED))
        picture = Picture(title, "", svg(figures.trust_figure(found.trust.groups), "trust", title), key)
        words = "The nearer the replay of today's settings is to what happened, the more the answers above are worth."
        yield Section("Can it be trusted?", [words], (), (picture,), (trust_sheet(found.trust),))


def _overall(found: WhatIf) -> Iterator[Picture]:
    title = "Mean waits"
    caption = "Lines: where 95 % of the replays are, each from another phase of the backfill's clock. Dashed: today."
    key = (*CHANGED, *([Key("recorded", figures.RECORDED)] if found.trust else []))
    yield Picture(title, caption, svg(figures.means_figure(found), "means", title), key)
    title = "How long jobs wait"
    lines = figures.spread_lines(found, MOST_LINES)
    key = tuple(Key(name, stroke) for name, _, stroke in lines)
    caption = "The higher a line, the more jobs have started by then. All phases together."
    yield Picture(title, caption, svg(figures.spread_figure(lines), "spread", title), key)
    for at, (name, tried) in enumerate(figures.curves(found).items()):
        title = f"Mean wait by {named(name, 40)}"
        caption = "Band: where 95 % of the replays are. Dashed: today."
        key = (Key("replayed", figures.REPLAYED), Key("today", Stroke(GREY, (4, 2), "")))
        yield Picture(title, caption, svg(figures.curve_figure(found, name, tried), f"curve-{at}", title), key)


def _pictures(found: WhatIf, one: Answer, at: int) -> Iterator[Picture]:
    if one.groups:
        title = "Who gains and who loses"
        caption = "Dots: the change of the mean wait. Lines: 95 % of all pairs of replays."
        yield Picture(title, caption, svg(figures.changes_figure(one.groups), f"groups-{at}", title), CHANGED)
    if one.weeks:
        title = "Week by week"
        names = week_names(found, one.weeks.begins)
        caption = "By the week in which jobs were submitted."
        yield Picture(
            title, caption, svg(figures.weeks_figure(names, one.weeks.changes), f"weeks-{at}", title), CHANGED
        )
