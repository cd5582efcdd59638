"""What several verbs share: reading a trace, filters and scenarios given on the command line, JSON out."""

from __future__ import annotations

import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from dovetail.errors import SettingError

if TYPE_CHECKING:
    from dovetail.model.cluster import Cluster
    from dovetail.model.workload import Workload
    from dovetail.policies.base import Policy
    from dovetail.reports.page_data import Case

WITHOUT_LIMITS: Final = "--filter limit_from_runtime --filter standard --estimate runtime"
"""How a log without limits is replayed: its run times are known beforehand."""
JOBS: Final = "The jobs"
MACHINE: Final = "The machine"
DECISIONS: Final = "Decisions"
"""Groups of options in the help."""


def policy_names(incomplete: str) -> list[str]:
    """Names that a shell may complete."""
    from dovetail.policies.registry import aliases, named

    return [name for name in (*named(), *aliases()) if name.startswith(incomplete.lower())]


def _estimate_names(incomplete: str) -> list[str]:
    from dovetail.predict.registry import names

    return [name for name in (one.partition(":")[0] for one in names()) if name.startswith(incomplete)]


def _filter_names(incomplete: str) -> list[str]:
    from dovetail.workloads.filters import FILTERS

    return [name for name in FILTERS if name.startswith(incomplete)]


Policies = Annotated[
    list[str] | None,
    typer.Option(
        "--policy",
        "-p",
        metavar="NAME",
        help="A name (see `dovetail policies`) or file.py:Name; repeat.",
        autocompletion=policy_names,
        rich_help_panel=DECISIONS,
    ),
]
Filters = Annotated[
    list[str] | None,
    typer.Option(
        "--filter",
        "-f",
        metavar="NAME",
        help="Filter to apply, in turn; repeat. Default: standard.",
        autocompletion=_filter_names,
        rich_help_panel=JOBS,
    ),
]
Scenarios = Annotated[
    list[str] | None,
    typer.Option(
        "--scenario",
        "-s",
        metavar="NAME=VALUE",
        help="scale-load=1.2, span=0d..30d, sample=0.1, ...; repeat.",
        rich_help_panel=JOBS,
    ),
]
ClusterName = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="NAME|FILE",
        help="Nodes to run on: eurora, kit-fh2, a TOML file, or Alibaba's list of nodes.",
        rich_help_panel=MACHINE,
    ),
]
Outages = Annotated[
    Path | None,
    typer.Option(
        "--outages",
        metavar="FILE",
        help="When which nodes are out: a table of nodes,begin,end,only,known; needs --cluster.",
        rich_help_panel=MACHINE,
    ),
]
Processors = Annotated[
    int | None,
    typer.Option(
        min=1, max=10**9, metavar="N", help="Size of the cluster; default: the trace's own.", rich_help_panel=MACHINE
    ),
]
Seed = Annotated[int, typer.Option(min=0, metavar="N", help="For what is drawn at random.", rich_help_panel=JOBS)]
Overrun = Annotated[
    str,
    typer.Option(
        metavar="cut|run", help="A run time above the limit: cut it there, or let it run.", rich_help_panel=JOBS
    ),
]
Estimate = Annotated[
    str,
    typer.Option(
        "--estimate",
        "-e",
        metavar="NAME",
        help="Run time estimates: limit, runtime, recent, hierarchy, ...",
        autocompletion=_estimate_names,
        rich_help_panel=DECISIONS,
    ),
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


def nodes_named(name: str | None, processors: int | None = None, outages: Path | None = None) -> Cluster | None:
    """The cluster of nodes that is asked for, with its outages; None: processors are only counted."""
    from dovetail.io.clusters import cluster_named
    from dovetail.io.outages import read_outages

    if name is None:
        if outages is not None:
            raise SettingError("--outages needs --cluster: they are of nodes")
        return None
    if processors is not None:
        raise SettingError(
            f"--processors {processors} and --cluster {name}: the nodes say how many processors there are"
        )
    found = cluster_named(name)
    return found if outages is None else replace(found, outages=read_outages(outages, found.nodes))


def need_jobs(workload: Workload) -> None:
    """There is nothing to replay without jobs: say where they went."""
    from dovetail.workloads.filters import NO_LIMIT

    if not len(workload):
        gone = "; ".join(f"{count:,}: {reason}" for reason, count in workload.set_aside.counts().items())
        hint = f"; if the log knows no limits: {WITHOUT_LIMITS}" if NO_LIMIT in workload.set_aside.reasons else ""
        raise SettingError(f"{workload.name}: no jobs are left to replay (set aside: {gone or 'none'}){hint}")
    if workload.processors < 1:
        raise SettingError(f"{workload.name} does not say how large its machine is: give --processors or --cluster")


def make_ready(workload: Workload, policies: Iterable[Policy], cluster: Cluster | None, **how: Any) -> None:
    """Have the kernels compiled that policies need. That may take minutes: what cannot be replayed is refused first."""
    from dovetail.engine.replay import ready, warm

    chosen = list(policies)
    for one in chosen:
        ready(workload, one, cluster=cluster, **how)
    for one in chosen:
        warm(one, cluster is not None and bool(cluster.kinds))


def print_json(value: dict[str, Any]) -> None:
    """One object on one line; what is not a number is null."""
    typer.echo(json.dumps(_plain(value), ensure_ascii=True))


def print_case(case: Case, **more: Any) -> None:
    """What was found of each policy of a case, as JSON: metrics, and how they compare with the first one's."""
    from dataclasses import asdict

    where: dict[str, Any] = {"trace": case.trace, "detail": case.detail, "estimate": case.estimate}
    where |= {"pairing": case.pairing, "remarks": list(case.remarks)}
    for entry in case.entries:
        versus = {metric: asdict(comparison) for metric, comparison in entry.versus.items()}
        found = {"policy": entry.policy, "runs": entry.runs, "metrics": entry.metrics, "versus": versus}
        print_json({**where, **found, **more})


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


@contextmanager
def counted(what: str, total: int, unit: str, wanted: bool = True) -> Iterator[Callable[[int], None] | None]:
    """A bar with rate and time left on the terminal; None where output is not a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not (wanted and console.is_terminal):
        yield None
        return
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    began = time.monotonic()
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(what, total=total, rate="")

        def tell(done: int) -> None:
            rate = done / max(time.monotonic() - began, 1e-9)
            bar.update(task, completed=done, rate=f"{rate:,.{0 if rate >= 10 else 1}f} {unit}/s")

        yield tell


def end(unstarted: Iterable[tuple[str, str]]) -> None:
    """The end of a verb that replayed. If a policy left jobs waiting (its name, and how many, in words), exit code 3
    says so to scripts."""
    from dovetail.units import printable

    found = [f"{printable(name, 60)} {words}" for name, words in unstarted if words]
    for text in found:
        say(f"{text}: its numbers are of the others alone, so they are not compared")
    if found:
        raise typer.Exit(3)


def lacking(module: str) -> str:
    """What to install where a module is missing: all that is of the same extra. Not the extra by its name, as who has
    the wheel or a checkout need not have it in an index."""
    from importlib.metadata import PackageNotFoundError, requires

    package = module.partition(".")[0]
    extras: dict[str, list[str]] = {}
    with suppress(PackageNotFoundError):
        for one in requires("dovetail-hpc") or ():
            wanted, _, extra = one.partition("; extra == ")
            extras.setdefault(extra, []).append(wanted)
    names = {extra: [re.split(r"[^\w-]", one)[0].replace("-", "_") for one in some] for extra, some in extras.items()}
    brought = (some for extra, some in extras.items() if extra and package in names[extra])
    wanted = " ".join(f"'{one}'" for one in next(brought, [package]))
    return f"this needs {package}, which is not installed: pip install {wanted}"


def say(text: str) -> None:
    """A remark for the person at the terminal, folded to its width; standard output stays clean."""
    if sys.stderr.isatty():
        from textwrap import fill

        width = max(os.get_terminal_size(sys.stderr.fileno()).columns, 40)
        text = "\n".join(fill(line, width, break_long_words=False, break_on_hyphens=False) for line in text.split("\n"))
    print(text, file=sys.stderr, flush=True)
