"""`dovetail papers`: published tables and figures, made again."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli.prepare import Json, print_json, say
from dovetail.cli.study import shown

if TYPE_CHECKING:
    from dovetail.studies.papers.page import Runs
    from dovetail.studies.papers.registry import Reproduction

app = typer.Typer(no_args_is_help=True, help="Published tables and figures, made again from their traces.")

_TRACES = "../shared/traces"
_FACTS = ("name", "paper", "shows", "extent", "takes_s", "page")


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the tables and figures: what each shows, how much of it is made, and about how long it takes."""
    from dovetail.studies.papers.registry import REPRODUCTIONS
    from dovetail.units import duration

    for found in REPRODUCTIONS.values():
        if as_json:
            study = str(found.study) if found.study else None
            print_json({**{key: getattr(found, key) for key in _FACTS}, "study": study})
        else:
            typer.echo(f"{found.name:<18} {found.shows}")
            typer.echo(f"{'':<18} {found.paper}")
            typer.echo(f"{'':<18} {found.extent}; about {duration(found.takes_s)}")


@app.command("run")
def run_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of `dovetail papers list`.")],
    traces: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help=f"Folder with papers/ and archive/; default: $DOVETAIL_TRACES, or {_TRACES}."),
    ] = None,
    store: Annotated[
        Path, typer.Option("--store", metavar="FOLDER", help="Where runs are kept, those of all papers together.")
    ] = Path("papers.store"),
    on: Annotated[str, typer.Option("--on", metavar="ENGINE", help="As for `dovetail study run`.")] = "local",
    workers: Annotated[int | None, typer.Option(min=1, max=100_000, help="Processes at once.")] = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Where the page and its pictures go.")
    ] = Path("docs/results"),
    as_json: Json = False,
) -> None:
    """Run what the store does not have, then write the page. Stop it at any moment and run it again."""
    from dovetail.studies.papers.registry import find
    from dovetail.studies.papers.reproduce import make_page, tasks_for, work_more, write
    from dovetail.studies.store import Store

    found = find(name)
    began = time.monotonic()
    folder = traces or Path(os.environ.get("DOVETAIL_TRACES") or _TRACES)
    runs = tasks_for(found, folder, Store(store))
    ran = _run(found, runs, on, workers) if runs.tasks else 0
    work_more(found, runs, say)
    page = make_page(found, runs)
    files = [str(path) for path in write(found, page, output)]
    elapsed_s = round(time.monotonic() - began, 1)
    if as_json:
        print_json({"name": name, "runs": len(runs.tasks), "ran": ran, **page.facts, "files": files, "s": elapsed_s})
    else:
        typer.echo(f"{name}: {page.summary}")
        say(f"wrote {', '.join(files)}")


def _run(found: Reproduction, runs: Runs, on: str, workers: int | None) -> int:
    """Run what is missing."""
    from dovetail.studies.executors import engine
    from dovetail.studies.papers.reproduce import run_tasks

    with shown({task.name for task in runs.tasks}, runs.store, on) as tell:
        return run_tasks(runs, engine(on, workers, runs.store.path.resolve()), say, tell)
