"""`dovetail workload import-slurm`: a site's accounting, from its sacct or from what was printed before."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from dovetail.cli.prepare import ClusterName, Json, nodes_named, say
from dovetail.cli.workload import FORMS, MEMORY_MB, Anonymize, Key, Processors, Zone, import_history
from dovetail.errors import SettingError

_FORMS: Final = ("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M")


def import_slurm_command(
    source: Annotated[
        Path | None,
        typer.Argument(metavar="[DUMP]", help="What sacct printed: a folder of --dump, or a file, parsable or JSON."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", metavar="OUT", help=f"Where to: {FORMS}.")] = None,
    since: Annotated[
        str, typer.Option("--from", metavar="DAY", help="Ask sacct from there on: 2026-01-31 (UTC).")
    ] = "",
    until: Annotated[str, typer.Option("--to", metavar="DAY", help="Up to there; default: now.")] = "",
    dump: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Keep what sacct prints there.")] = None,
    window: Annotated[str, typer.Option(metavar="TIME", help="Of each call; default: it is found out.")] = "",
    submit_lines: Annotated[
        bool, typer.Option("--submit-lines", help="Ask for submit lines and comments too: they may hold secrets.")
    ] = False,
    print_command: Annotated[
        bool, typer.Option("--print-command", help="Print the call, for who may run it, and do nothing.")
    ] = False,
    tz: Zone = "UTC",
    processors: Processors = None,
    cluster: ClusterName = None,
    anonymous: Anonymize = False,
    key: Key = None,
    memory: Annotated[
        int, typer.Option(metavar="MB", min=1, help="For records beside the workload; the rest waits on disk.")
    ] = MEMORY_MB,
    as_json: Json = False,
) -> None:
    """Make a workload of a Slurm's accounting, and say what was understood of it.

    With --from it asks sacct, one window at a time and gently, and keeps what it prints in a folder, from which the
    import can be done again. The same command goes on after an interruption.
    """
    from dovetail.io.local_times import zone_named
    from dovetail.slurm import sacct

    if print_command:
        _print_command(since, until, submit_lines)
        return
    zone_named(tz)
    nodes = nodes_named(cluster, processors)
    if out is None:
        raise SettingError("nothing is written without --out: give --out jobs.parquet")
    if since:
        if source is not None or dump is None:
            raise SettingError("--from asks sacct: give --dump FOLDER to keep what it prints, and no DUMP to read")
        if anonymous:
            raise SettingError("--anonymize keeps no dump: ask without it, then read the dump and take it away")
        begin, end = instant("--from", since), instant("--to", until) if until else int(time.time())
        sacct.fetch(dump, begin, end, submit_lines, _seconds(window), say)
        source = dump
    if source is None:
        raise SettingError("nothing to read: name a dump, or ask sacct with --from DAY --dump FOLDER")
    import_history(source, out, nodes or processors or 0, tz, anonymous, key, as_json, memory)


def _seconds(window: str) -> int | None:
    """Of each call; None: it is found out."""
    from dovetail.units import parse_duration

    if not window:
        return None
    try:
        seconds = parse_duration(window)
    except ValueError as error:
        raise SettingError(f"--window: {error}") from error
    if seconds < 1:
        raise SettingError("--window must be a second at least")
    return seconds


def instant(option: str, text: str) -> int:
    """Seconds since 1970 of a day, or of a time of it, in UTC."""
    for form in _FORMS:
        try:
            return int(datetime.strptime(text, form).replace(tzinfo=UTC).timestamp())
        except ValueError:
            continue
    raise SettingError(f"{option} {text!r} is no day such as 2026-01-31, and no time such as 2026-01-31T08:00:00")


def _print_command(since: str, until: str, submit_lines: bool) -> None:
    """The line for a shell that prints a dump."""
    from dovetail.slurm import sacct
    from dovetail.slurm.programs import SlurmError, shell_line
    from dovetail.slurm.records import FIELDS, NOT_IN_OLDER

    begin, end = instant("--from", since or "2026-01-01"), instant("--to", until) if until else int(time.time())
    try:
        about = sacct.about_sacct(begin, submit_lines)
    except SlurmError:  # on another machine than Slurm's: fields that every version has
        there = tuple(name for name in FIELDS if name not in NOT_IN_OLDER)
        there += sacct.FREE_TEXTS if submit_lines else ()
        about = sacct.About(there, "unknown", False, submit_lines, begin)
        say("no sacct here: the line leaves out fields that older versions refuse")
    line = shell_line(sacct.command(about, begin, end, sacct.token()))
    typer.echo(f"umask 077; {line} > dump.txt")
