"""What several verbs share: reading a trace, filters and scenarios given on the command line, JSON out."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dovetail.errors import SettingError

if TYPE_CHECKING:
    from rich.table import Table

    from dovetail.model.cluster import Cluster
    from dovetail.model.workload import Workload

Filters = Annotated[
    list[str] | None,
    typer.Option("--filter", "-f", metavar="NAME", help="Filter to apply, in turn; repeat. Default: standard."),
]
Scenarios = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario",
        "-s",
        metavar="NAME=VALUE",
        help="scale-load=1.2, span=0d..30d, sample=0.1, ...; repeat.",
    ),
]
ClusterName = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="NAME|FILE",
        help="Nodes to run on: eurora, kit-fh2, a TOML file, or Alibaba's list of nodes.",
    ),
]
Overrun = Annotated[str, typer.Option(help="A run time above the limit: cut it there, or let it run (cut|run).")]
Estimate = Annotated[
    str,
    typer.Option("--estimate", "-e", metavar="NAME", help="Run time estimates: limit, runtime, recent, hierarchy, ..."),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON: one object per line.")]


def load(
    path: str,
    filters: Sequence[str] | None,
    scenarios: Sequence[str] | None,
    overrun: str,
    seed: int,
    processors: int | None = None,
    cluster: Cluster | None = None,
) -> Workload:
    """A trace as `dovetail.read` reads it; the filter that is meant where none is given knows of overruns."""
    from dovetail.api import read

    wanted = [f"standard:overrun={overrun}"] if filters is None else filters
    return read(path, wanted, scenarios or (), processors=processors, cluster=cluster, seed=seed)


def nodes_named(name: str | None, processors: int | None = None) -> Cluster | None:
    """The cluster of nodes that is asked for; None: processors are only counted."""
    from dovetail.io.clusters import cluster_named

    if name is None:
        return None
    if processors is not None:
        raise SettingError(
            f"--processors {processors} and --cluster {name}: the nodes say how many processors there are"
        )
    return cluster_named(name)


def need_jobs(workload: Workload) -> None:
    """There is nothing to replay without jobs: say where they went."""
    if not len(workload):
        gone = "; ".join(f"{count:,}: {reason}" for reason, count in workload.set_aside.counts().items())
        raise SettingError(f"{workload.name}: no jobs are left to replay (set aside: {gone or 'none'})")
    if workload.processors < 1:
        raise SettingError(f"{workload.name} does not say how large its machine is: give --processors or --cluster")


def print_json(value: dict[str, Any]) -> None:
    """One object on one line; what is not a number is null."""
    typer.echo(json.dumps(_plain(value), ensure_ascii=True))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def new_table(words: Iterable[str], numbers: Iterable[str]) -> Table:
    """An empty table as all verbs print them: columns of words at the left, of numbers at the right, none ever cut."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, padding=(0, 1))
    for title in words:
        table.add_column(title, no_wrap=True)
    for title in numbers:
        table.add_column(title, justify="right", no_wrap=True)
    return table


def print_table(table: Table, *notes: str) -> None:
    """A table as wide as it needs to be, so that no number is ever cut, and the notes below it."""
    from rich.console import Console

    console = Console(width=1_000)
    for part in (table, *notes):
        console.print(part)


def end(unstarted: Iterable[tuple[str, str]]) -> None:
    """The end of a verb that replayed. If a policy left jobs waiting (its name, and how many, in words), exit code 3
    says so to scripts."""
    from dovetail.units import printable

    found = [f"{printable(name, 60)} {words}" for name, words in unstarted if words]
    for text in found:
        say(f"{text}: its numbers are of the others alone, so they are not compared")
    if found:
        raise typer.Exit(3)


def say(text: str) -> None:
    """A remark for the person at the terminal; standard output stays clean."""
    print(text, file=sys.stderr, flush=True)
