"""`python -m reproductions`: list them, run what is missing, render the pages, check them."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cache import cache_home
from dovetail.cli.prepare import Json, print_json, say
from dovetail.errors import DovetailError

if TYPE_CHECKING:
    from reproductions.folders import Folder

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)

_TRACES = "../shared/traces"
Traces = Annotated[
    Path | None, typer.Option(metavar="DIR", help=f"Folder of the logs; default: $DOVETAIL_TRACES, or {_TRACES}.")
]
Names = Annotated[list[str] | None, typer.Argument(metavar="NAME...", help="Default: all.")]


@app.command("list")
def list_command(as_json: Json = False) -> None:
    """List the pages: what each shows, how much of it is there, and how its claims fare."""
    from reproductions.folders import every
    from reproductions.pages import content, summary

    for folder in every():
        made, about = content(folder), folder.about
        if as_json:
            counts = {whose: vars(made.tally(whose)) for whose in ("paper", "ours")}
            print_json({"name": folder.name, "runs": len(made.runs), **about.model_dump(), "claims": counts})
        else:
            typer.echo(f"{folder.name:<18} {about.shows} ({about.paper or 'ours'})")
            typer.echo(f"{'':<18} {about.extent}; {about.takes} of CPU time; {summary(made)}")


@app.command("run")
def run_command(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A name of `python -m reproductions list`.")],
    traces: Traces = None,
    store: Annotated[Path | None, typer.Option(metavar="FOLDER", help="Where whole runs are kept meanwhile.")] = None,
    only: Annotated[
        str, typer.Option(metavar="PATTERN", help="Cells to run: trace|scenario|span|policy|estimate|seed with * and ?")
    ] = "*",
    again: Annotated[bool, typer.Option("--again", help="Also repeat runs of other code than today's.")] = False,
    on: Annotated[str, typer.Option("--on", metavar="ENGINE", help="As for `dovetail study run`.")] = "local",
    workers: Annotated[int | None, typer.Option(min=1, max=100_000, help="Processes at once.")] = None,
    as_json: Json = False,
) -> None:
    """Run what runs.csv lacks, then write the page. Stop it at any moment and run it again."""
    from dovetail.studies.store import Store
    from reproductions.folders import find
    from reproductions.pages import content, summary
    from reproductions.running import prepare, run

    began, folder = time.monotonic(), find(name)
    work = prepare(folder, _folder(traces), Store(store or cache_home() / "reproductions.store"), only=only)
    ran = run(work, on, workers, only, again, say)
    files = _write([folder])
    if as_json:
        print_json({"name": folder.name, "ran": ran, "files": files, "s": round(time.monotonic() - began, 1)})
    else:
        typer.echo(f"{folder.name}: {summary(content(folder))}")
        say(f"{ran:,} runs; wrote {', '.join(files) or 'nothing new'}")


@app.command("render")
def render_command(names: Names = None, as_json: Json = False) -> None:
    """Write pages and pictures, and the index, from the committed files alone."""
    began = time.monotonic()
    folders = _chosen(names)
    files = _write(folders)
    if as_json:
        print_json({"pages": len(folders), "changed": files, "s": round(time.monotonic() - began, 1)})
    else:
        typer.echo(f"{len(folders)} pages in {time.monotonic() - began:.1f} s; changed: {', '.join(files) or 'none'}")


@app.command("check")
def check_command(
    names: Names = None,
    traces: Traces = None,
    cells: Annotated[bool, typer.Option(help="Whether the cheapest runs of each page are repeated.")] = True,
    as_json: Json = False,
) -> None:
    """Say which runs are older than today's code. Exit with 1 if a page is not what its files give or a run differs."""
    from reproductions.folders import every
    from reproductions.pages import content, index, rendered
    from reproductions.running import older, repeated

    pages, logs = {folder.name: content(folder) for folder in every()}, _folder(traces)
    stale, bad = _different(index(list(pages.values()))), False
    if cells and not logs.is_dir():
        say(f"no folder of logs at {logs}: no run is repeated")
    for folder in _chosen(names):
        made = pages[folder.name]
        stale += _different(rendered(made))
        again, differ = repeated(folder, logs, made.runs) if cells and logs.is_dir() and len(made.runs) else (0, [])
        bad = bad or bool(differ)
        facts = {"runs": len(made.runs), "older": len(older(made.runs)), "repeated": again, "differ": differ}
        if as_json:
            print_json({"name": folder.name, **facts})
        else:
            older_text = f"{facts['older']} of other code than today's"
            typer.echo(
                "\n  ".join([f"{folder.name}: {len(made.runs):,} runs, {older_text}; {again} repeated", *differ])
            )
    for path in stale:
        say(f"{os.path.relpath(path)} is not what its folder gives: render it")
    bad = bad or bool(stale)
    if bad:
        raise typer.Exit(1)


def _chosen(names: list[str] | None) -> list[Folder]:
    from reproductions.folders import every, find

    return [find(name) for name in names] if names else list(every())


def _folder(traces: Path | None) -> Path:
    return traces or Path(os.environ.get("DOVETAIL_TRACES") or _TRACES)


def _different(files: dict[Path, str]) -> list[Path]:
    return [path for path, text in files.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]


def _write(folders: list[Folder]) -> list[str]:
    """Write the pages of some folders, and the index; which files changed."""
    from dovetail.files import beside
    from reproductions.folders import every
    from reproductions.pages import content, index, rendered

    pages = {folder.name: content(folder) for folder in every()}
    files = index(list(pages.values()))
    for folder in folders:
        files |= rendered(pages[folder.name])
    changed = _different(files)
    for path in changed:
        with beside(path) as new:
            new.write_text(files[path], encoding="utf-8")
    return [os.path.relpath(path) for path in changed]


def main() -> None:
    """Run; an error that a person can act on is printed without a traceback, with exit code 2."""
    try:
        app(prog_name="python -m reproductions")
    except (DovetailError, OSError) as error:
        print(f"reproductions: {error}", file=sys.stderr)
        raise SystemExit(2) from None


if __name__ == "__main__":
    main()
