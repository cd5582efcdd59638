"""`dovetail warm`: kernels compiled before they are asked for."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from dovetail.cli import prepare
from dovetail.process import cores

if TYPE_CHECKING:
    from dovetail.engine.ahead import Made


def warm_command(
    policies: Annotated[
        list[str] | None, typer.Argument(metavar="[POLICY]...", help="Only what these policies need. Default: all.")
    ] = None,
    all_users: Annotated[
        bool,
        typer.Option(
            "--all-users", help="Into the installed package, for any processor of this platform; needs its folder."
        ),
    ] = False,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes at a time. Default: one for each core.")] = None,
    as_json: prepare.Json = False,
) -> None:
    """Compile the kernels that are missing, so that nobody waits for them later."""
    from dovetail.engine.ahead import compile_parts, parts, ship
    from dovetail.kernels.compile import CACHE
    from dovetail.kernels.shipped import FOLDER

    wanted = parts(policies or ())
    many = workers or cores()
    began = time.monotonic()
    made: list[Made] = []
    with _bar(len(wanted), as_json) as tell:

        def told(one: Made) -> None:
            made.append(one)
            tell(one)

        if all_users:
            ship(wanted, many, told)
        else:
            for one in compile_parts(wanted, many):
                told(one)
    where = FOLDER if all_users else CACHE
    if as_json:
        for one in made:
            prepare.print_json({"part": one.part, "functions": one.functions, "cpu_s": one.cpu_s})
        prepare.print_json({"folder": str(where), "parts": len(wanted), "wall_s": round(time.monotonic() - began, 1)})
        return
    new = sum(one.functions > 0 for one in made)
    typer.echo(
        f"{new} of {len(wanted)} parts compiled, {len(wanted) - new} were there already: {where}"
        f" ({time.monotonic() - began:.0f} s)"
    )


@contextmanager
def _bar(parts: int, as_json: bool) -> Iterator[Callable[[Made], None]]:
    """Says of each part when it is there; at a terminal with a bar below."""
    from rich.console import Console

    console = Console(stderr=True, highlight=False)

    def line(one: Made) -> None:
        done = f"{one.functions} functions compiled" if one.functions else "there already"
        console.print(f"{one.part}: {done}, {one.cpu_s:.0f} s of CPU")

    if as_json or not console.is_terminal:
        yield (lambda one: None) if as_json else line
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("compiling kernels"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=parts)

        def tell(one: Made) -> None:
            line(one)
            bar.advance(task)

        yield tell
