"""What happened as one HTML file that needs nothing else, and lets nothing else in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final

from dovetail.files import beside
from dovetail.metrics.history import Groups, History
from dovetail.model.workload import Provenance
from dovetail.reports import history_figures as figures
from dovetail.reports.columns import named
from dovetail.reports.figures import Key, Picture
from dovetail.reports.history_text import (
    differ,
    entire_sheet,
    limits_sheet,
    longest_sheet,
    over_time_sheet,
    resource,
    sentences,
    waits_sheet,
)
from dovetail.reports.sections import Section, page
from dovetail.reports.style import GREY, STROKES, Stroke, settings, svg
from dovetail.units import duration, printable
from dovetail.version import __version__

ROWS: Final = 52
"""Lines of the table over time."""


def write(found: History, path: str | Path, command: str = "", past: Provenance | None = None) -> None:
    """Write the page to a file, as a whole or not at all."""
    text = render(found, command, past)
    with beside(Path(path)) as new:
        new.write_text(text, encoding="utf-8")


def render(found: History, command: str = "", past: Provenance | None = None) -> str:
    """The page as HTML. Same history, same bytes."""
    with settings():
        sections = tuple(_sections(found))
    headline, *words = sentences(found)
    when = f", {found.since} to {found.until} ({found.zone})" if found.since else ""
    notes = [f"{many:,} jobs are not counted: {printable(why)}." for why, many in found.set_aside.items()]
    notes += [f"Guessed: {text}." for text in found.guesses] + [f"Not known: {text}." for text in found.not_known]
    about, thanks = {"Dovetail": __version__}, []
    if past is not None:
        steps = [step for step in past.steps if step.changed or step.removed]
        notes += [f"{printable(s.name)}: {s.removed:,} removed, {s.changed:,} changed." for s in steps]
        about |= {"source": printable(past.source, 400), "source sha256": past.sha256} if past.sha256 else {}
        thanks = [printable(past.acknowledge, 2_000)] if past.acknowledge else []
    return page(
        f"{named(found.name, 100)}: what happened{when}", [], [headline], words, sections,
        notes=notes, thanks=thanks, command=command, provenance=about,
    )  # fmt: skip


def _sections(found: History) -> Iterator[Section]:
    when = ("hour of submission", "day of submission")
    who = [one for one in found.by if one.by not in when]
    words = "A wait is from when a job could start" + (
        ": later than its submission, if it was held or waited for another." if differ(found) else "."
    )
    yield Section(
        "Who waited", [words], (entire_sheet(found),),
        tuple(_waits(at, one) for at, one in enumerate(who)), tuple(waits_sheet(found, one) for one in who),
    )  # fmt: skip
    yield Section(
        "When", [f"Hours and days of {found.zone}." if found.week else "Time since the first submission."], (),
        tuple(_when(found)),
        (*(waits_sheet(found, one) for one in found.by if one.by in when), over_time_sheet(found, ROWS)),
    )  # fmt: skip
    if found.limits:
        yield Section(
            "Limits", ["How much of the time that they asked for jobs used."], (limits_sheet(found.limits[0]),),
            (_limits(found),), tuple(limits_sheet(one) for one in found.limits[1:]),
        )  # fmt: skip
    words = "The jobs that waited longest since their submission."
    if any(one.reason for one in found.longest):
        words += " A reason is the last one that Slurm kept; the table of waits by reason, above, says what each means."
    yield Section("The longest waits", [words], (longest_sheet(found),))


def _waits(at: int, groups: Groups) -> Picture:
    title = f"Waits by {groups.by}" + " (since submission)" * (groups.by == "reason")
    key = (
        Key("median to nine in ten", Stroke(figures.BAR, (), "s")),
        Key("to 99 of 100", Stroke(GREY, (), "")),
        Key("mean", figures.MEAN),
    )
    caption = "Beside each name: its share of the core hours." if at == 0 else ""
    return Picture(title, caption, svg(figures.waits_figure(groups), f"waits-{at}", title), key)


def _when(found: History) -> Iterator[Picture]:
    line = found.over_time
    if found.week is not None:
        title = "Mean wait by hour of submission"
        caption = f"The darker, the longer. Hatched hours have fewer than {figures.FEW} jobs, so they say little."
        yield Picture(title, caption, svg(figures.week_figure(found.week), "week", title), wide=True)
    if not len(line.queue_jobs):
        return
    each = f"Means over {duration(int(line.edges[1] - line.edges[0]))} each"
    title = "How busy the cluster was"
    key = tuple(
        Key(resource(name), replace(stroke, marker="")) for name, stroke in zip(line.busy, STROKES, strict=False)
    )
    caption = f"{each}. A log may show more in use than there was: sizes change, and logs err."
    yield Picture(title, caption, svg(figures.busy_figure(found), "busy", title), key, wide=True)
    title = "What waited"
    caption = (
        f"{each}. Jobs that could have started and had not; the backlog is their cores times their run times:"
        f" {found.processors:,} core hours are an hour of work for all cores."
    )
    yield Picture(title, caption, svg(figures.queue_figure(found), "queue", title), wide=True)


def _limits(found: History) -> Picture:
    title = "How much of their limits jobs used"
    key = (Key("jobs", figures.JOBS), Key("core hours", figures.CORE_HOURS))
    caption = "Jobs at the left asked for far more time than they needed. Those at the right reached their limit."
    return Picture(title, caption, svg(figures.limits_figure(found), "limits", title), key)
