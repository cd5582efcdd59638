"""`dovetail history`: what happened on a cluster, by its log alone."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from dovetail.cli import prepare, screen
from dovetail.cli.report import told
from dovetail.units import printable

if TYPE_CHECKING:
    from dovetail.metrics.history import History
    from dovetail.metrics.over_time import Places
    from dovetail.model.workload import Workload

ROWS: Final = 12
"""Lines of the table over time."""
MOST_NODES: Final = 10_000_000
"""In all lists of nodes together."""


def history_command(
    log: Annotated[str, typer.Argument(metavar="LOG", help="Jobs with recorded waits: an import, or SWF.")],
    tz: Annotated[
        str, typer.Option(metavar="ZONE", help="Of hours and days: Europe/Berlin. Default: what the log says, or UTC.")
    ] = "",
    top: Annotated[int, typer.Option(min=1, max=1000, metavar="N", help="Names and long waits that are shown.")] = 10,
    processors: prepare.Processors = None,
    cluster: prepare.ClusterName = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help="Write one page with figures.")
    ] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Write the numbers as tables there.")] = None,
    wide: screen.Wide = False,
    as_json: prepare.Json = False,
) -> None:
    """Say who waited for how long and why, how limits fitted, how busy the cluster was: what happened, no replay."""
    from dataclasses import replace

    from dovetail.io.read import read_workload
    from dovetail.metrics.history import history_of
    from dovetail.reports.history_text import frames

    nodes = prepare.nodes_named(cluster, processors)
    jobs = read_workload(log)
    if processors:
        jobs = replace(jobs, processors=processors)
    found = history_of(jobs, _zone(tz, jobs), nodes, _places(jobs, nodes.nodes if nodes else 0), top)
    if csv is not None:
        _write_tables(found, csv, as_json)
    if out is not None:
        from dovetail.reports.history_page import write

        command = ["dovetail", "history", Path(log).name, *(("--tz", tz) if tz else ()), "--top", str(top)]
        command += ["--processors", str(processors)] if processors else []
        command += ["--cluster", Path(cluster).name] if cluster else []
        write(found, out, shlex.join(command), jobs.provenance)
        told(out, as_json)

    if as_json:
        about = {"log": found.name, "processors": found.processors, "zone": found.zone, "since": found.since}
        about |= {"until": found.until, "span_s": found.span_s}
        about |= {"guesses": found.guesses, "not_known": found.not_known}
        prepare.print_json(about | {name: frame.to_dicts() for name, frame in frames(found).items()})
    else:
        _show(found, wide)


def _zone(tz: str, jobs: Workload) -> str:
    """The zone that is asked for, else the log's own, if there is one of that name."""
    from dovetail.io.local_times import zone_named, zone_of

    return zone_named(tz) if tz else zone_of(jobs.header)


def _places(jobs: Workload, nodes: int) -> Places | None:
    """On which nodes jobs ran, where the log says it: numbers of nodes, or a list of hosts as Slurm writes it.
    None: it does not, or in lists that are too long."""
    import numpy as np

    from dovetail.io.node_list import ran_on
    from dovetail.metrics.over_time import Places

    if not (texts := jobs.names.get("ran_on", ())):
        return None
    number: dict[str, int] = {}
    lists, total = list[list[int]](), 0
    for text in texts:
        named = ran_on(text)
        lists.append([number.setdefault(one, len(number)) for one in named])
        if (total := total + len(named)) > MOST_NODES:
            return None
    first = np.cumsum([0, *map(len, lists)])
    return Places(first, np.array([one for some in lists for one in some], np.int64), max(nodes, len(number)))


def _write_tables(found: History, folder: Path, as_json: bool) -> None:
    from dovetail.files import folder as make_folder
    from dovetail.io.write import write_frame
    from dovetail.reports.history_text import frames

    make_folder(folder)
    made = frames(found)
    for name, frame in made.items():
        write_frame(frame, folder / f"{name}.csv")
    if not as_json:
        prepare.say(f"wrote {folder}: {', '.join(f'{name}.csv' for name in made)}")


def _show(found: History, wide: bool) -> None:
    """All of it for people."""
    from dovetail.reports.history_text import (
        differ,
        entire_sheet,
        limits_sheet,
        longest_sheet,
        over_time_sheet,
        sentences,
        waits_sheet,
    )

    when = f": {found.since} to {found.until} ({found.zone})" if found.since else ""
    screen.tell(f"{found.name}{when}")
    for sentence in sentences(found):
        screen.tell(f"- {sentence}", rest="  ")
    typer.echo("")
    more = "; --wide adds those since submission" if differ(found) and not wide else ""
    screen.tell(f"Waits, from when jobs could start{more}")
    screen.print_sheet(entire_sheet(found), wide)
    for groups in found.by:
        screen.print_sheet(waits_sheet(found, groups), wide)
    if found.limits:
        screen.tell("How much of their limits jobs used")
    for use in found.limits:
        screen.print_sheet(limits_sheet(use), wide)
    screen.tell("What was in use, and what waited")
    screen.print_sheet(over_time_sheet(found, ROWS), wide)
    screen.tell("The longest waits")
    screen.print_sheet(longest_sheet(found), wide)
    rows = [("not counted", f"{many:,} jobs: {printable(why)}") for why, many in found.set_aside.items()]
    rows += [("guessed", text) for text in found.guesses] + [("not known", text) for text in found.not_known]
    screen.facts(rows)
