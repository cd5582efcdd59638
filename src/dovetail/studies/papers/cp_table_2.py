"""The page on Table 2 of CP: its rows of list scheduling."""

from __future__ import annotations

from math import floor
from typing import Final

from dovetail.studies.papers.list_tables import (
    counted,
    facts,
    fits,
    groups,
    legend,
    named,
    rules,
    sources,
    tables,
    told,
)
from dovetail.studies.papers.page import Page, Runs, bullets, filled
from dovetail.studies.papers.recompute import AUTHORS, OURS, Results, fit, places, results
from dovetail.studies.papers.tables import TABLE_2, Place

NAME: Final = "cp-table-2"


def page(runs: Runs) -> Page:
    """The page. It holds nothing that changes from run to run."""
    found = results(runs.store, runs.tasks)
    parts = [
        _summary(found),
        sources(NAME, runs),
        rules(),
        fits(TABLE_2, found),
        groups(TABLE_2, found),
        _left_over(found),
        _misread(found),
        legend("List-REG"),
        *tables(TABLE_2, found, OURS),
    ]
    met = facts(TABLE_2, found)
    return Page(filled(parts), told(met), met)


def _summary(found: Results) -> str:
    whole = fit(TABLE_2, places(TABLE_2), found, AUTHORS)
    return f"""
# Table 2 of CP, recomputed: the rows of list scheduling

Table 2 of "CP" (Goponenko, Lamar, Allan, Brandt and Dechev, Job Scheduling for HPC Clusters: Constraint
Programming vs. Backfilling Approaches, DEBS 2024), the rows that need no solver, replayed with Dovetail on
five of its six traces. The sixth, BW201911, could not be had: its printed numbers are kept as data and not
compared. Most cells stand in [Table II of Packing](packing-table-2.md) too, which has the reasons at more
length.

{counted(TABLE_2, found)}

With two conventions of the authors, {whole.near} of the {whole.cells} cells are within a point of the
printed number: equal keys of SJF go to the smaller job and of SPF to the smaller area, and the one job that
ends last is not counted. Dovetail's own rules are the ones that it documents: equal keys go to the earlier
submit, and all jobs count.
"""


def _left_over(found: Results) -> str:
    """What the authors' rules do not give."""
    cells = [(place, found.percent(TABLE_2, place, AUTHORS)) for place in places(TABLE_2)]
    off = [(place, ours) for place, ours in cells if _once(ours) != TABLE_2.percent[place]]
    said = {place: f"{named(place)}: printed {TABLE_2.percent[place]}, ours {ours:.2f}" for place, ours in off}
    far = [said[place] for place, ours in off if abs(ours - TABLE_2.percent[place]) > 1]
    near = [said[place] for place, ours in off if abs(ours - TABLE_2.percent[place]) <= 1]
    once, twice = (sum(how(v) == TABLE_2.percent[p] for p, v in cells) for how in (_once, _twice))
    spf = found.percent(TABLE_2, Place("bsld", "List-SPF", "limit", "CTC-SP2"), ("authors", "all"))
    return f"""
**Left over under the authors' rules**, more than one point off:

{bullets(far)}

BSLD of List-SPF there is {spf:.2f} with the authors' ties and all jobs counted. List-SPF is the row that
CP adds to those of Packing, so it may have been counted otherwise than the others; the paper does not
say.

Within one point and yet not the printed number:

{bullets(near)}

These are the printed numbers when ours are rounded to tenths first and then to whole numbers, halves up:
{twice} of {len(cells)} cells are equal so, {once} when rounded once. Packing prints the same cells
rounded once.
"""


def _misread(found: Results) -> str:
    read = [
        f"{named(place)}: `{text}`, read as {TABLE_2.percent[place]}"
        for place, text in TABLE_2.misread.items()
        if place in TABLE_2.percent
    ]
    lost = Place("bsld", "List-SPF", "runtime", "SDSC-SP2")
    return f"""
**Garbled cells.** The text of CP at hand was read by machine from the printed page. Table II has the same
cells but for List-SPF, and gives these readings:

{bullets(read)}

{named(lost)}: the second digit is lost (`{TABLE_2.misread[lost]}`). Ours is
{found.percent(TABLE_2, lost, AUTHORS):.1f}. It is shown as 2? and not compared.
"""


def _once(value: float) -> int:
    return floor(value + 0.5)


def _twice(value: float) -> int:
    return _once(_once(value * 10) / 10)
